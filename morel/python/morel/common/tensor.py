"""What the Tensor type has in Python: construction, conversions, printing, and its methods from api/tensor.toml."""

import functools

from morel import _core
from morel._core import Tensor
from morel.api import make_operator
from morel.common import tensor_methods

__all__ = ["Tensor", "tensor"]


def _from_data(data, dtype):
    """A new tensor with its own memory from Python numbers, nested sequences, arrays or tensors."""
    if isinstance(data, Tensor):
        return _cast(data, dtype) if dtype is not None and dtype != data.dtype else data.clone()
    if isinstance(data, bool):
        return _full((), data, dtype or _core.dtypes[0])
    if isinstance(data, (int, float, complex)) and not hasattr(data, "dtype"):
        if dtype is None:
            dtype = _core.dtype_named({int: "Int64", float: "Float32", complex: "Complex64"}[_number_kind(data)])
        return _full((), data, dtype)
    import numpy

    if isinstance(data, numpy.ndarray) or hasattr(data, "__array__"):
        array = numpy.asarray(data)
    elif isinstance(data, (list, tuple)):
        array = _from_sequence(data)
    else:
        raise TypeError(
            "For Tensor, the input_data must be one of ['Tensor', 'ndarray', 'str', 'list', 'tuple', 'float', 'int', 'bool', "
            f"'complex', 'bytes'], but got {data} with type {type(data).__name__}."
        )
    if array.dtype.kind not in "biufc" and str(array.dtype) != "bfloat16":
        raise TypeError(
            f"For Tensor, input_data of dtype {array.dtype} is not supported: it must be boolean or a number."
        )
    if str(array.dtype) == "bfloat16":
        found = _core.to_current_device(_core.from_numpy(numpy.array(array, dtype=numpy.float32)))
        return _cast(found, dtype or _core.dtype_named("BFloat16"))
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    found = _core.to_current_device(_core.from_numpy(numpy.array(array, order="C")))
    return found if dtype is None or dtype == found.dtype else _cast(found, dtype)


def _number_kind(data):
    for kind in (int, float):
        if isinstance(data, kind):
            return kind
    return complex


def _from_sequence(data):
    """Nested numbers and tensors as an array; Python floats are float32, as in MindSpore."""
    import numpy

    def plain(item):
        if isinstance(item, (list, tuple)):
            return [plain(part) for part in item]
        return item.asnumpy() if isinstance(item, Tensor) else item

    def has_array(item):
        return any(has_array(part) for part in item) if isinstance(item, (list, tuple)) else hasattr(item, "dtype")

    try:
        array = numpy.array(plain(data))
    except ValueError as error:
        raise ValueError(
            "For Tensor, the input_data is a sequence whose items differ in shape, or hold no numbers."
        ) from error
    if array.dtype == numpy.float64 and not has_array(data):
        return array.astype(numpy.float32)
    if array.dtype == numpy.complex128 and not has_array(data):
        return array.astype(numpy.complex64)
    return array


def of_sequence(data):
    """A tuple or list of numbers and tensors as one tensor, through which gradients flow: an operand of arithmetic."""
    if _are_numbers(data):
        return _from_data(data, None)
    return _stack([of_sequence(part) if isinstance(part, (list, tuple)) else _as_tensor(part) for part in data])


def _are_numbers(data):
    if isinstance(data, (list, tuple)):
        return all(map(_are_numbers, data))
    return not isinstance(data, (Tensor, _core.Size))


def _as_tensor(item):
    if isinstance(item, _core.Size):
        return _full((), item, _core.dtype_named("Int64"))
    return item if isinstance(item, Tensor) else _from_data(item, None)


def _placed(tensor, device):
    """The tensor on that device; itself where it is there already."""
    if device is None or _core.parse_device(device) == tensor.device:
        return tensor
    return _core.to_device(tensor, device)


_full = make_operator("full", "full")
_cast = make_operator("cast", "cast")
_stack = make_operator("stack", "stack")


def _init(self, input_data=None, dtype=None, shape=None, init=None, const_arg=False, device=None):
    """Makes a tensor.

    Args:
        input_data (Tensor, numpy.ndarray, number, list, tuple): the values. Floats of Python become float32, ints int64.
        dtype (DType, optional): element type; by default that of the values.
        shape (int, tuple, optional): with ``init``: the sizes.
        init (Initializer, optional): fills the tensor when ``init_data()`` is called.
        const_arg (bool): whether graph mode treats it as a constant when it is an argument.
        device (str, optional): where it lies, ``"CPU"`` or ``"OpenCL"``; by default where `morel.set_device` says, and
            where `input_data` is if that is a Tensor.
    Raises:
        TypeError: values that are no numbers. ValueError: ragged sequences.
    """
    if _core.is_initialized(self):
        return
    if dtype is not None and not isinstance(dtype, _core.DType):
        dtype = _core.as_dtype(dtype)
    if init is not None:
        if input_data is not None:
            raise ValueError("For 'Tensor', 'input_data' and 'init' cannot both be given.")
        if shape is None or dtype is None:
            raise ValueError("For 'Tensor', 'dtype' and 'shape' must be given with 'init'.")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        _core.init_tensor(self, _placed(_full(shape, 0, dtype), device))
        self.init, self._const_arg = init, const_arg
        return
    if input_data is None:
        if shape is None:
            raise ValueError("For 'Tensor', one of 'input_data' and 'init' must be given.")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        _core.init_tensor(self, _placed(_full(shape, 0, dtype or _core.dtype_named("Float32")), device))
        return
    _core.init_tensor(self, _placed(_from_data(input_data, dtype), device))
    if const_arg:
        self.const_arg = True


def tensor(input_data=None, dtype=None, shape=None, init=None, const_arg=False):
    """Makes a tensor; see :class:`Tensor`."""
    return Tensor(input_data, dtype, shape, init, const_arg)


def _asnumpy(self):
    """The values as a numpy.ndarray over the same memory; of a tensor on a device, over a copy."""
    return _core.to_numpy(self)


def _array(self, dtype=None, copy=None):
    array = (
        self.asnumpy()
        if self.dtype != _core.dtype_named("BFloat16")
        else _cast(self, _core.dtype_named("Float32")).asnumpy()
    )
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def _tolist(self):
    return self.__array__().tolist()


def _distributed(self):
    """What is shown of a distributed tensor: how it lies, and this process' part (all of them in a simulated world)."""
    dist = _core.dist
    parts = zip(dist.local_ranks(), dist.to_parts(self))
    shown = "".join(f",\nrank {rank}:\n{part}" for rank, part in parts)
    return f"DTensor(shape={list(self.shape)}, dtype={self.dtype}, layout={dist.sharding_of(self)}{shown})"


def _format(self):
    import numpy

    if _core.dist.sharding_of(self) is not None:
        return _distributed(self)
    array = self.__array__()
    with numpy.printoptions(threshold=1000):
        return str(array)


def _repr(self):
    import numpy

    if _core.dist.sharding_of(self) is not None:
        return _distributed(self)
    text = numpy.array2string(self.__array__(), separator=", ", prefix="       ")
    return (
        f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, value=\n{text})"
        if self.shape
        else f"Tensor(shape=[], dtype={self.dtype}, value= {text})"
    )


def _item(self, index=None):
    """The value at ``index`` (flat, or a tuple) as a Python number; without index the tensor must have one element."""
    if index is None:
        return _core.item(self)
    if isinstance(index, tuple):
        return _core.item(self[index])
    return _core.item(self.reshape((-1,))[index])


def _iter(self):
    if not self.shape:
        raise TypeError("iteration over a tensor without axes")
    return (self[position] for position in range(self.shape[0]))


def _contains(self, element):
    return bool((self == element).any())


def _itemset(self, *args):
    value = args[-1]
    if len(args) == 1:
        self[...] = value
    elif isinstance(args[0], tuple):
        self[args[0]] = value
    else:
        self.reshape((-1,))[args[0]] = value
    return self


def _assign_value(self, value):
    """Copies the values of another tensor, from any device, into this one."""
    self.copy_(_core.to_device(value, self.device))
    return self


def _deepcopy(self, memo):
    copied = self.__class__.__new__(self.__class__)
    memo[id(self)] = copied
    _core.init_tensor(copied, _core.detach(self).clone())
    from copy import deepcopy

    for key, value in self.__dict__.items():
        copied.__dict__[key] = deepcopy(value, memo)
    return copied


def _rebuild(kind, values, dtype, attributes):
    made = kind.__new__(kind)
    _core.init_tensor(made, _from_data(values, dtype))
    made.__dict__.update(attributes)
    return made


def _reduce(self, _protocol=None):
    return _rebuild, (type(self), self.__array__().copy(), self.dtype, dict(self.__dict__))


def _astype(self, dtype, copy=True):
    """The values converted to ``dtype``."""
    dtype = _core.as_dtype(dtype)
    return self if not copy and dtype == self.dtype else _cast(self, dtype)


def _type(self, dtype=None):
    return str(self.dtype) if dtype is None else _cast(self, _core.as_dtype(dtype))


def _to(self, *args, device=None, dtype=None, other=None, non_blocking=False, copy=False):
    """The values on another device and / or in another dtype; the tensor itself where it is there and of that dtype.

    Args:
        args: a device (``"CPU"``, ``"OpenCL"``), a dtype, or a Tensor whose device and dtype are meant; then
            `non_blocking` and `copy`.
        device (str, optional): the device. dtype (DType, optional): the dtype. other (Tensor, optional): has both.
        non_blocking (bool): kept for scripts; work on a device runs in order and is waited for when values are read.
        copy (bool): a new tensor in any case.

    Raises:
        ValueError: there is no such device. RuntimeError: the system has no driver for it.
    """
    flags = [arg for arg in args if isinstance(arg, bool)]
    for arg in args:
        if isinstance(arg, Tensor):
            other = arg
        elif isinstance(arg, str):
            device = arg
        elif arg is not None and not isinstance(arg, bool):
            dtype = _core.as_dtype(arg)
    if other is not None:
        device, dtype = other.device, other.dtype
    out = _placed(self, device)
    out = out if dtype is None else _cast(out, _core.as_dtype(dtype))
    return out.clone() if out is self and (copy or flags[1:] == [True]) else out


def _to_in_place(self, device=None, non_blocking=False):
    """Moves this tensor to another device."""
    _core.set_data(self, _core.to_device(_core.detach(self), device or "CPU"))
    return self


def _move_to(self, to="CPU", blocking=True):
    """The values on another device; see :meth:`to`."""
    return _placed(self, to)


def _register_hook(self, hook):
    """Calls ``hook(grad)`` when this tensor's gradient is known; what it returns, unless None, takes its place.

    In a compiled function the hook becomes a part of the gradient's graph.

    Returns:
        handle whose ``remove()`` takes the hook out again; in a compiled function, as in MindSpore, the tensor itself.
    Raises:
        TypeError: `hook` cannot be called.
        ValueError: within a compiled function, on a tensor of outside, such as a Parameter.
    """
    if not callable(hook):
        raise TypeError(f"For 'register_hook', 'hook' must be a function, but got {type(hook).__name__}.")
    if not _core.graph_active():
        return _core.register_hook(self, functools.partial(_run_hook, hook))
    _core.graph_register_hook(self, functools.partial(_run_hook, hook))
    return self


def _run_hook(hook, gradient):
    if not _core.graph_active():
        return hook(gradient)
    from morel.compiler import call_in_graph

    return call_in_graph(hook, (gradient,))


def _transpose(self, *axes):
    """Axes permuted as given; reversed without arguments. With two integers on a higher rank: see swapaxes."""
    if len(axes) == 1 and isinstance(axes[0], (tuple, list)):
        axes = tuple(axes[0])
    if not axes or axes == (None,):
        axes = tuple(range(self.ndim))[::-1]
    if len(axes) == 2 and self.ndim != 2:
        return _swapaxes(self, *axes)
    return _permute(self, axes)


_permute = make_operator("permute", "permute")
_swapaxes = make_operator("swapaxes", "swapaxes")


def _view_of(cls, array):
    """A tensor over the memory of a NumPy array (no copy)."""
    return _core.from_numpy(array)


def _stub_sync(self, *_args, **_kwargs):
    """Values are always ready on the CPU: returns the tensor itself."""
    return self


_METHODS = {
    "__init__": _init,
    "__array__": _array,
    "__array_priority__": 100.0,  # array + tensor is a tensor
    "__str__": _format,
    "__repr__": _repr,
    "__iter__": _iter,
    "__contains__": _contains,
    "__deepcopy__": _deepcopy,
    "__reduce_ex__": _reduce,
    "__pos__": lambda self: self,
    "__round__": lambda self, decimals=0: self.round(decimals),
    "asnumpy": _asnumpy,
    "numpy": _asnumpy,
    "tolist": _tolist,
    "item": _item,
    "itemset": _itemset,
    "assign_value": _assign_value,
    "astype": _astype,
    "type": _type,
    "to": _to,
    "to_": _to_in_place,
    "move_to": _move_to,
    "register_hook": _register_hook,
    "transpose": _transpose,
    "wait": _stub_sync,
    "init_check": lambda self: True,
    "get_bytes": lambda self: self.asnumpy().tobytes(),
    "value": lambda self: self,
    "is_contiguous": lambda self: _core.is_contiguous(self),
    "stride": lambda self, dim=None: _stride(self, dim),
    "storage_offset": lambda self: _core.offset(self),
    "data_ptr": lambda self: _core.data_ptr(self),
    "dim": lambda self: self.ndim,
    "element_size": lambda self: self.itemsize,
    "numel": lambda self: self.size,
    "nelement": lambda self: self.size,
    "is_floating_point": lambda self: self.dtype.is_floating_point,
    "is_complex": lambda self: self.dtype.is_complex,
    "is_signed": lambda self: self.dtype.is_signed,
    "half": lambda self: _cast(self, _core.dtype_named("Float16")),
    "float": lambda self: _cast(self, _core.dtype_named("Float32")),
    "double": lambda self: _cast(self, _core.dtype_named("Float64")),
    "bfloat16": lambda self: _cast(self, _core.dtype_named("BFloat16")),
    "int": lambda self: _cast(self, _core.dtype_named("Int32")),
    "long": lambda self: _cast(self, _core.dtype_named("Int64")),
    "short": lambda self: _cast(self, _core.dtype_named("Int16")),
    "byte": lambda self: _cast(self, _core.dtype_named("UInt8")),
    "bool": lambda self: _cast(self, _core.dtype_named("Bool")),
    "detach": lambda self: _core.detach(self),
    "from_numpy": classmethod(_view_of),
    "set_const_arg": lambda self, const_arg=True: setattr(self, "const_arg", const_arg) or self,
}


def _stride(self, dim):
    strides = tuple(step // self.itemsize for step in self._strides)
    return strides if dim is None else strides[dim]


_PROPERTIES = {
    "strides": lambda self: self._strides,
    "T": lambda self: self.transpose(),
    "H": lambda self: self.swapaxes(-1, -2).conj(),
    "mT": lambda self: self.swapaxes(-1, -2),
    "data": lambda self: self,
    "has_init": lambda self: getattr(self, "init", None) is not None,
}


def _complete_type():
    """Gives the C++ type its methods. Comparisons and arithmetic are slots of the type already."""
    tensor_methods.complete(Tensor)
    for name, method in _METHODS.items():
        setattr(Tensor, name, method)
    for name, getter in _PROPERTIES.items():
        setattr(Tensor, name, property(getter))
    Tensor.__module__ = "morel"


_complete_type()
