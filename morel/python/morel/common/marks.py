"""Small functions of scripts: mutable, inlining marks, tensors over foreign memory."""

import functools

from morel import _core

__all__ = ["JitConfig", "constexpr", "from_numpy", "frombuffer", "is_tensor", "lazy_inline", "mutable", "no_inline"]


class _DynamicLength:
    """A list or tuple whose length may differ from call to call, as `mutable` marks it: its items are of one kind."""

    def __add__(self, other):
        return _joined(self, other, type(self)(super().__add__(other)))

    def __radd__(self, other):
        return _joined(other, self, type(self)([*other, *self]))


class DynamicList(_DynamicLength, list):
    """A list marked so."""


class DynamicTuple(_DynamicLength, tuple):
    """A tuple marked so."""


def _joined(first, second, both):
    if first and second and _kind(first[0]) != _kind(second[0]):
        raise TypeError(
            f"For a sequence of dynamic length, the element of first input {_kind(first[0])} is not same with the element of "
            f"second input {_kind(second[0])}."
        )
    return both


def _kind(item):
    """What items of a sequence of dynamic length have in common: types, also of their items, and shapes."""
    if isinstance(item, (tuple, list)):
        return [type(item).__name__, *map(_kind, item)]
    return f"Tensor{list(item.shape)} of {item.dtype}" if isinstance(item, _core.Tensor) else type(item).__name__


def mutable(input_data, dynamic_len=False):
    """Marks a value whose parts may change between calls of a compiled function. Values are never constants here: itself.

    Args:
        input_data (Tensor, number, bool, tuple, list, dict): the value.
        dynamic_len (bool): the length of a tuple or list may change too; its items must be of one kind.
    Raises:
        TypeError: other values; dynamic_len for something without a length. ValueError: items of several kinds.
        RuntimeError: a sequence of dynamic length without dynamic_len.
    """
    if not isinstance(dynamic_len, bool):
        raise TypeError(f"For 'mutable', the second input should be bool, but got {type(dynamic_len).__name__}.")
    _check_mutable(input_data, ())
    if not dynamic_len:
        if isinstance(input_data, _DynamicLength):
            raise RuntimeError("For 'mutable', a sequence of dynamic length cannot get a fixed one.")
        return input_data
    if not isinstance(input_data, (tuple, list)):
        raise TypeError(
            "For 'mutable', when the variable_len is True, the first input should be list or tuple, but got "
            f"{type(input_data).__name__}."
        )
    kinds = [_kind(item) for item in input_data]
    if any(kind != kinds[0] for kind in kinds):
        raise ValueError(
            "For 'mutable': In graph mode, the element type of dynamic length array must be the same. The element types are "
            f"{kinds}."
        )
    return (DynamicList if isinstance(input_data, list) else DynamicTuple)(input_data)


def _check_mutable(value, outer):
    if isinstance(value, (tuple, list, dict)):
        if any(value is container for container in outer):
            raise TypeError("For 'mutable', the 'input_data' should be nested structures with no self-reference.")
        for item in value.values() if isinstance(value, dict) else value:
            _check_mutable(item, (*outer, value))
    elif not isinstance(value, (bool, int, float, _core.Tensor)):
        raise TypeError(
            "For 'mutable', the 'input_data' should be one of (bool, int, float, Tensor, tuple, list, dict) or their nested "
            f"structures, but got {type(value).__name__}: {value}."
        )


def _mark(fn):
    return fn


def lazy_inline(fn=None, attrs=None, policy=None):
    """Decorator of a Cell's `__init__`: a wish about how its graph is built, which changes no values."""
    if policy not in (None, "front"):
        raise ValueError(f"For 'lazy_inline', 'policy' must be None or 'front', but got {policy!r}.")
    return _mark if fn is None else fn


def no_inline(fn=None):
    """Decorator of a function: a wish about how its graph is built, which changes no values."""
    if fn is None or not callable(fn):
        raise TypeError("For 'no_inline', 'fn' must be a function.")
    return fn


def constexpr(fn=None, get_instance=True, name=None, reuse_result=True, check=True):
    """Decorator of a function that is run when a graph is compiled. It runs as it is.

    Args:
        fn (function): works on constants.
        get_instance (bool): return the function; False: a class whose objects are called.
        name (str, optional): name of the operator.
        reuse_result (bool): the result for the same arguments may be used again.
        check (bool): the arguments are checked to be constants.
    """
    if fn is None:
        return functools.partial(
            constexpr, get_instance=get_instance, name=name, reuse_result=reuse_result, check=check
        )
    if get_instance:
        return fn
    return type(name or fn.__name__, (), {"__call__": staticmethod(fn), "__doc__": fn.__doc__})


class JitConfig:
    """Options of compilation, as a dict `jit_config_dict`.

    Args:
        jit_level (str): "", "O0", "O1" or "O2".
        exc_mode (str): "auto", "sink" or "no_sink".
        jit_syntax_level (str): "", "STRICT" or "LAX".
        debug_level (str): "RELEASE" or "DEBUG".
        infer_boost (str): "on" or "off".
        kwargs: further options.
    Raises:
        ValueError: a value that is none of these.
    """

    def __init__(
        self, jit_level="", exc_mode="auto", jit_syntax_level="", debug_level="RELEASE", infer_boost="off", **kwargs
    ):
        choices = {
            "jit_level": ("", "O0", "O1", "O2"),
            "exc_mode": ("auto", "sink", "no_sink"),
            "jit_syntax_level": ("", "STRICT", "LAX"),
            "debug_level": ("RELEASE", "DEBUG"),
            "infer_boost": ("on", "off"),
        }
        given = (jit_level, exc_mode, jit_syntax_level, debug_level, infer_boost)
        self.jit_config_dict = dict(zip(choices, given))
        for name, allowed in choices.items():
            if self.jit_config_dict[name] not in allowed:
                raise ValueError(
                    f"For 'JitConfig', '{name}' must be one of {allowed}, but got {self.jit_config_dict[name]!r}."
                )
        self.jit_config_dict.update(kwargs)


def is_tensor(obj):
    """Whether it is a tensor."""
    return isinstance(obj, _core.Tensor)


def from_numpy(array):
    """A tensor over the memory of a NumPy array: writing to one changes the other."""
    import numpy

    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"For 'from_numpy', 'array' must be a numpy.ndarray, but got {type(array).__name__}.")
    return _core.from_numpy(array)


def frombuffer(buffer, dtype, count=-1, offset=0):
    """A vector over the memory of an object with the buffer protocol: `count` elements (-1: all) from byte `offset` on.

    Raises:
        TypeError: no buffer, or a dtype that NumPy lacks. ValueError: the buffer is too short.
    """
    import numpy

    from morel.common.dtype import dtype_to_nptype

    array = numpy.frombuffer(buffer, dtype_to_nptype(_core.as_dtype(dtype)), count, offset)
    return _core.from_numpy(array if array.flags.writeable else array.copy())
