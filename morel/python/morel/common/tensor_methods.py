"""Tensor methods that have several forms, or are functions of morel.ops written in Python.

Where MindSpore has two forms of a method, the words tell which one is meant: ``axis``, ``keepdims`` and ``ddof``, or ``dim``,
``keepdim`` and ``correction``. Without words it is the form whose types fit, as stated with each method.
"""

from morel import _core
from morel.api import load_table, make_operator

__all__ = ["complete"]

_FORWARDED = (
    "addbmm addmv addr adjoint aminmax angle approximate_equal argwhere atleast_1d bincount cartesian_prod copysign cov cross "
    "deg2rad diagflat diagonal_scatter diff dot dsplit float_power fliplr flipud fmax fmin fills frac gather_nd gcd heaviside histc "
    "hsplit hypot index_fill inner isneginf isposinf isreal lcm ldexp logaddexp logaddexp2 logcumsumexp logit "
    "matrix_band_part msort nan_to_num nanmean nanmedian nanquantile nansum positive quantile rad2deg reverse "
    "reverse_sequence rot90 searchsorted select_scatter sgn signbit sinc slice_scatter t tensor_scatter_update trace "
    "type_as unique_consecutive unique_with_pad unsorted_segment_max unsorted_segment_min unsorted_segment_prod vsplit "
    "xdivy xlogy"
).split()
# Operators by their names, for the methods below.
_NAMES = (
    "add sub sum std var amax amin max min cumsum flatten tile gather_elements select "
    "where nonzero unbind diag full zeros ones empty scatter_add_elements clone broadcast_to squeeze round_even view sort argsort repeat_interleave allclose"
).split()
_call = {}
_KEEP = {"keepdims": "keep_dims", "keepdim": "keep_dims"}
# Further words for arguments, by method.
_WORDS = {
    "all": {"dim": "axis", **_KEEP},
    "any": {"dim": "axis", **_KEEP},
    "argmax": {"dim": "axis", **_KEEP},
    "argmin": {"dim": "axis", **_KEEP},
    "chunk": {"dim": "axis"},
    "logsumexp": {"dim": "axis", "keepdim": "keepdims", "keep_dims": "keepdims"},
    "mean": {"dim": "axis", **_KEEP},
    "prod": {"dim": "axis", **_KEEP},
    "split": {"dim": "axis", "split_size": "split_size_or_sections"},
    "cummax": {"dim": "axis"},
    "cummin": {"dim": "axis"},
    "count_nonzero": {"dim": "axis", "keepdims": "keep_dims"},
    "index_select": {"dim": "axis"},
    "tensor_split": {"dim": "axis"},
    "isclose": {"other": "x2"},
}


def _renamed(name, words, kwargs):
    for word, own in words.items():
        if word in kwargs:
            if own in kwargs:
                raise TypeError(f"For 'Tensor.{name}', '{word}' and '{own}' are one argument under two names.")
            kwargs[own] = kwargs.pop(word)
    return kwargs


def _with_words(name, call, words):
    def method(self, *args, **kwargs):
        return call(self, *args, **_renamed(name, words, kwargs)) if kwargs else call(self, *args)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = call.__doc__
    return method


def _forward(name):
    def method(self, *args, **kwargs):
        from morel import ops

        return getattr(ops, name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"See :func:`morel.ops.{name}`."
    return method


def _axis_or_dim(name, axis, kwargs):
    if "dim" not in kwargs:
        return axis
    if axis is not None:
        raise TypeError(f"For 'Tensor.{name}', 'dim' and 'axis' are one argument under two names.")
    return kwargs.pop("dim")


def _sum(self, axis=None, *args, **kwargs):
    """Sum along axis or dim; None: of all elements.

    sum(dim=None, keepdim=False, *, dtype=None), or sum(axis=None, dtype=None, keepdims=False, initial=None): after axis comes a
    bool or a dtype.
    """
    if args:
        word = "dtype" if args[0] is None or not isinstance(args[0], bool) else "keep_dims"
        further = (word, "keep_dims", "initial") if word == "dtype" else (word,)
        if len(args) > len(further):
            raise TypeError(f"For 'Tensor.sum', {len(args) + 1} positional arguments are too many.")
        for key, value in zip(further, args):
            if key in kwargs:
                raise TypeError(f"For 'Tensor.sum', got two values for '{key}'.")
            kwargs[key] = value
    if kwargs:
        kwargs = _renamed("sum", _KEEP, kwargs)
        axis = _axis_or_dim("sum", axis, kwargs)
        initial = kwargs.pop("initial", None)
        found = _call["sum"](self, axis, **kwargs)
        return found if initial is None else (found + initial).astype(found.dtype)
    return _call["sum"](self, axis)


def _deviation(name):
    def method(self, axis=None, *args, **kwargs):
        if kwargs:
            kwargs = _renamed(name, {"keepdim": "keepdims"}, kwargs)
            by_dim = "dim" in kwargs or "correction" in kwargs
            kwargs = _renamed(name, {"correction": "ddof"}, kwargs)
            axis = _axis_or_dim(name, axis, kwargs)
            if by_dim and not args:
                kwargs.setdefault("ddof", 1)
        return _call[name](self, axis, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"""The {"standard deviation" if name == "std" else "variance"} along axis or dim; None: of all elements.

    {name}(axis=None, ddof=0, keepdims=False), or with the words dim and correction {name}(dim=None, *, correction=1,
    keepdim=False). The sum of squares is divided by the number of elements less ddof or correction.
    """
    return method


def _extremum(name, whole):
    def method(self, *args, **kwargs):
        if not args and not kwargs:
            return _call[whole](self)
        positional_axis = bool(args) and args[0] is not None
        if "dim" in kwargs or (
            positional_axis and not ({"initial", "where", "return_indices", "keepdims"} & {*kwargs})
        ):
            kwargs = _renamed(name, {"dim": "axis", "keepdim": "keepdims"}, kwargs)
            return _call[name](self, *args, **kwargs)  # values and indices
        kwargs = _renamed(name, {"keepdim": "keepdims"}, kwargs)
        axis = args[0] if args else kwargs.pop("axis", None)
        keepdims = args[1] if len(args) > 1 else kwargs.pop("keepdims", False)
        return_indices = kwargs.pop("return_indices", False)
        if kwargs.get("where") is True:
            del kwargs["where"]
        if return_indices:
            return _call[name](self, axis, keepdims, **kwargs)
        return _call[whole](self, () if axis is None else axis, keepdims, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"""The {"largest" if name == "max" else "smallest"} elements.

    {name}(): of all elements. {name}(dim, keepdim=False): (values, indices) along dim. {name}(axis=None, keepdims=False, *,
    initial=None, where=True, return_indices=False) with words: values along axis, or with return_indices also where they are.
    """
    return method


def _cumsum(self, axis=None, dtype=None, *, dim=None):
    """Running sum along axis or dim; None: of the flattened tensor."""
    axis = dim if axis is None else axis
    return _call["cumsum"](self.reshape((-1,)), 0, dtype) if axis is None else _call["cumsum"](self, axis, dtype)


def _flatten(self, order="C", *args, start_dim=0, end_dim=-1):
    """The axes start_dim to end_dim as one, all by default.

    flatten(start_dim=0, end_dim=-1), or flatten(order='C', *, start_dim=0, end_dim=-1); order 'F': the first axis runs fastest.
    """
    if isinstance(order, int):
        start_dim, order = order, "C"
        if args:
            (end_dim,) = args
    elif args:
        raise TypeError("For 'Tensor.flatten', only 'order' is positional in the form that begins with it.")
    if not isinstance(order, str):
        raise TypeError(f"For 'Tensor.flatten', 'order' must be str, but got {type(order).__name__}.")
    if order not in ("C", "F"):
        raise ValueError(f"For 'Tensor.flatten', 'order' must be 'C' or 'F', but got {order!r}.")
    x = self if order == "C" else self.transpose()
    return x.reshape((1,)) if x.ndim == 0 else _call["flatten"](x, start_dim=start_dim, end_dim=end_dim)


def _sizes(size):
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size


def _repeat(self, *repeats):
    """The whole tensor repeated along each axis; more repeats than axes: axes in front."""
    repeats = _sizes(repeats)
    if len(repeats) < self.ndim:
        raise ValueError(f"For 'Tensor.repeat', {self.ndim} or more repeats are needed, but got {repeats}.")
    return _call["tile"](self, repeats)


def _tile(self, *dims):
    """The whole tensor repeated along each axis: ints, or one tuple of them."""
    return _call["tile"](self, _sizes(dims))


def _gather(self, *args, **kwargs):
    """gather(dim, index): elements at positions along dim, of the shape of index. gather(input_indices, axis, batch_dims=0):
    slices at positions along axis."""
    first_is_tensor = bool(args) and isinstance(args[0], _core.Tensor)
    if first_is_tensor or "input_indices" in kwargs:
        from morel import ops

        return ops.gather(self, *args, **kwargs)
    return _call["gather_elements"](self, *args, **kwargs)


def _select(self, *args, **kwargs):
    """select(dim, index): the slice at index along dim. select(condition, y): elements of self where condition holds, of y
    elsewhere."""
    if (args and isinstance(args[0], _core.Tensor)) or "condition" in kwargs:
        condition = args[0] if args else kwargs.pop("condition")
        other = args[1] if len(args) > 1 else kwargs.pop("y")
        return _call["where"](condition, self, other, **kwargs)
    return _call["select"](self, *args, **_renamed("select", {"axis": "dim"}, kwargs))


def _where(self, condition, y=None, *, other=None):
    """Elements of self where condition holds, of y elsewhere."""
    return _call["where"](condition, self, other if y is None else y)


def _sorting(name):
    def method(self, *args, stable=False, **kwargs):
        if not isinstance(stable, bool):
            raise TypeError(f"For 'Tensor.{name}', 'stable' must be bool, but got {type(stable).__name__}.")
        return _call[name](self, *args, **_renamed(name, {"dim": "axis"}, kwargs))

    method.__name__ = method.__qualname__ = name
    found = "(elements, where they were)" if name == "sort" else "where the elements were"
    method.__doc__ = f"""Sorts along an axis, the last by default; returns {found}.

    {name}(axis=-1, descending=False), or {name}(dim=-1, descending=False, stable=False). Equal elements always keep their order.
    """
    return method


def _repeat_interleave(self, repeats, dim=None, *, output_size=None):
    """Each element, or slice along dim, repeated in turn.

    Args:
        repeats (int, tuple, list, Tensor): how often, the same for all or one for each.
        dim (int, optional): axis of the slices. None: elements of the flattened tensor.
        output_size (int, optional): number of elements or slices of the result, which is checked.
    """
    output = _call["repeat_interleave"](self, repeats, dim)
    if output_size is not None and output.shape[dim or 0] != output_size:
        raise ValueError(
            f"For 'Tensor.repeat_interleave', 'output_size' is {output_size}, but the result has {output.shape[dim or 0]}."
        )
    return output


def _median(self, axis=-1, keepdims=False, *, dim=None, keepdim=None):
    """(median, its index) along axis or dim, the last by default."""
    from morel import ops

    return ops.median(self, axis if dim is None else dim, keepdims if keepdim is None else keepdim)


def _take(self, indices, axis=None, mode="clip"):
    """Elements of the flattened tensor, or slices along axis, at positions.

    Args:
        indices (Tensor): integers.
        axis (int, optional): where the positions count.
        mode (str): what is done with positions outside: 'clip' (the nearest one), 'wrap' (counted on from the start) or 'raise'
            (IndexError; negative ones count from the end).
    """
    if mode not in ("clip", "wrap", "raise"):
        raise ValueError(f"For 'Tensor.take', 'mode' must be 'clip', 'wrap' or 'raise', but got {mode!r}.")
    x, axis = (self.reshape((-1,)), 0) if axis is None else (self, axis % max(self.ndim, 1))
    indices = indices if isinstance(indices, _core.Tensor) else _core.Tensor(indices)
    count = x.shape[axis]
    if mode == "clip":
        indices = indices.clamp(0, count - 1)
    elif mode == "wrap":
        indices = indices % count
    return x[(slice(None),) * axis + (indices.astype(_core.dtype_named("Int64")),)]


def _unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements, or slices along dim, in ascending order.

    Args:
        sorted (bool): they are always sorted.
        return_inverse (bool): also where each element is among them.
        return_counts (bool): also how often each occurs.
        dim (int, optional): axis of the slices. None: elements of the flattened tensor.
    Returns:
        Tensor, or a tuple (elements, inverse, counts) of those that are asked for.
    """
    import numpy

    rows = self.reshape((-1,)) if dim is None else self.movedim(dim, 0)
    _, first, inverse, counts = numpy.unique(
        rows.__array__(), return_index=True, return_inverse=True, return_counts=True, axis=None if dim is None else 0
    )
    found = rows[_core.Tensor(first.astype(numpy.int64))]
    results = [found if dim is None else found.movedim(0, dim)]
    if return_inverse:
        shape = self.shape if dim is None else (rows.shape[0],)
        results.append(_core.Tensor(inverse.astype(numpy.int64)).reshape(shape))
    if return_counts:
        results.append(_core.Tensor(counts.astype(numpy.int64)))
    return tuple(results) if len(results) > 1 else results[0]


def _nonzero(self, *, as_tuple=False):
    """Positions of the elements that are not zero: int64 [count, rank], or with as_tuple one vector for each axis."""
    positions = _call["nonzero"](self)
    return _call["unbind"](positions, 1) if as_tuple else positions


def _diag(self, diagonal=0):
    """A matrix with the vector on a diagonal, or the diagonal of a matrix."""
    return _call["diag"](self, diagonal)


def _index_add(self, *args, **kwargs):
    """index_add(dim, index, source, *, alpha=1), or index_add(indices, y, axis, use_lock=True, check_index_bound=True): a copy
    with slices added at positions along an axis."""
    from morel import ops

    if (args and isinstance(args[0], _core.Tensor)) or "indices" in kwargs:
        return ops.index_add(_call["clone"](self), *args, **kwargs)
    names = ("dim", "index", "source")
    values = {**dict(zip(names, args)), **kwargs}
    alpha = values.pop("alpha", 1)
    dim, index, source = (values.pop(name) for name in names)
    if values or len(args) > 3:
        raise TypeError(f"For 'Tensor.index_add', got unexpected arguments {[*values]}.")
    return ops.index_add(_call["clone"](self), index, source if alpha == 1 else source * alpha, dim)


def _scatter(self, *args, **kwargs):
    """scatter(dim, index, src) or scatter(axis, index, src): a copy with src written at positions along dim."""
    from morel import ops

    return ops.scatter(self, *args, **_renamed("scatter", {"dim": "axis", "value": "src"}, kwargs))


def _scatter_add(self, *args, **kwargs):
    """scatter_add(dim, index, src): a copy with src added at positions along dim. scatter_add(indices, updates): with updates
    added at the positions in the last axis of indices."""
    from morel import ops

    if (args and isinstance(args[0], _core.Tensor)) or "indices" in kwargs:
        return ops.tensor_scatter_add(self, *args, **kwargs)
    return _call["scatter_add_elements"](self, *args, **kwargs)


def _tensor_scatter(how):
    def method(self, indices, updates):
        from morel import ops

        return getattr(ops, f"tensor_scatter_{how}")(self, indices, updates)

    method.__doc__ = f"See :func:`morel.ops.tensor_scatter_{how}`."
    return method


def _ptp(self, axis=None, keepdims=False):
    """Largest less smallest element along axis."""
    axis = () if axis is None else axis
    return _call["amax"](self, axis, keepdims) - _call["amin"](self, axis, keepdims)


def _choose(self, choices, mode="clip"):
    """For each element the value at its place in the choice with that number.

    Args:
        choices (Tensor, tuple, list): tensors or sequences that broadcast against self; a tensor: its first axis.
        mode (str): what is done with numbers outside: 'clip', 'wrap' or 'raise' (IndexError).
    """
    from morel import ops

    if mode not in ("clip", "wrap", "raise"):
        raise ValueError(f"For 'Tensor.choose', 'mode' must be 'clip', 'wrap' or 'raise', but got {mode!r}.")
    parts = [part if isinstance(part, _core.Tensor) else _core.Tensor(part) for part in choices]
    shape = self.shape
    for part in parts:
        shape = ops.add(ops.zeros(shape), ops.zeros(part.shape)).shape
    numbers = _call["broadcast_to"](self.astype(_core.dtype_named("Int64")), shape)
    if mode == "clip":
        numbers = numbers.clamp(0, len(parts) - 1)
    elif mode == "wrap":
        numbers = numbers % len(parts)
    elif numbers.size and not 0 <= numbers.min().item() <= numbers.max().item() < len(parts):
        raise IndexError(f"For 'Tensor.choose', numbers must be in [0, {len(parts)}).")
    table = ops.stack([_call["broadcast_to"](part, shape) for part in parts], 0)
    return _call["gather_elements"](table, 0, numbers.expand_dims(0)).squeeze(0)


def _resize(self, *new_shape):
    """The elements in order in a new shape; cut off, or filled up with zeros."""
    from morel import ops

    shape = _sizes(new_shape)
    count = 1
    for size in shape:
        count *= size
    flat = self.reshape((-1,))
    if count > flat.size:
        flat = ops.concat((flat, _call["zeros"]((count - flat.size,), self.dtype)), 0)
    return flat[:count].reshape(shape)


def _view(self, *shape):
    """The same memory in another shape: ints, or one tuple of them. view(dtype): a copy whose bytes are read as `dtype`."""
    if len(shape) == 1 and isinstance(shape[0], _core.DType):
        import numpy

        from morel.common.dtype import _numpy_name, bfloat16

        if bfloat16 in (shape[0], self.dtype):
            raise NotImplementedError("For 'Tensor.view', bytes cannot be read as bfloat16; use a shape, or astype.")
        return _core.Tensor(numpy.ascontiguousarray(self.asnumpy()).view(_numpy_name(shape[0])))
    return _call["view"](self, _sizes(shape))


def _fill(self, value):
    """All elements `value`, out of place."""
    return _call["full"](self.shape, value, dtype=self.dtype)


def _new(maker):
    def method(self, size, dtype=None, **kwargs):
        device = kwargs.pop("device", None)
        if kwargs:
            raise TypeError(f"For 'Tensor.new_{maker}', got unexpected arguments {[*kwargs]}.")
        return _core.to_device(_call[maker](size, dtype or self.dtype), device or self.device)

    method.__name__ = method.__qualname__ = f"new_{maker}"
    method.__doc__ = (
        f"A tensor of the given size, of this one's dtype unless another is given; see :func:`morel.ops.{maker}`."
    )
    return method


def _new_full(self, size, fill_value, *, dtype=None):
    """A tensor of the given size with all elements fill_value, of this one's dtype unless another is given."""
    return _call["full"](size, fill_value, dtype=dtype or self.dtype)


def _scaled(name):
    def method(self, other, alpha=1):
        return _call[name](self, other if alpha == 1 else other * alpha)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"self {'+' if name == 'add' else '-'} alpha * other."
    return method


def _round(self, decimals=0):
    """Rounds to `decimals` places, halves to even."""
    if decimals == 0:
        return _call["round_even"](self)
    from morel import ops

    return ops.round(self, decimals=decimals)


def _squeeze(self, *axis):
    """Without axes of size 1: all of them, or those that are named: ints, or one tuple of them."""
    axis = axis[0] if len(axis) == 1 else axis or None
    return _call["squeeze"](self, axis)


def _reshape_as(self, other):
    """In the shape of other."""
    return self.reshape(other.shape)


def _fill_diagonal(self, fill_value, wrap=False):
    """A copy with fill_value on the main diagonal; wrap: again below, one row after its end, in tall matrices."""
    output = _call["clone"](self)
    return output.fill_diagonal_(fill_value, wrap)


def _fill_diagonal_(self, fill_value, wrap=False):
    """fill_value on the main diagonal, in place; wrap: again below, one row after its end, in tall matrices."""
    if self.ndim < 2 or (self.ndim > 2 and len({*self.shape}) > 1):
        raise ValueError(
            f"For 'Tensor.fill_diagonal_', two axes or equal sizes are needed, but got shape {self.shape}."
        )
    import numpy

    step = sum(numpy.cumprod([1, *self.shape[:0:-1]]).tolist())
    last = self.size if wrap and self.ndim == 2 else min(self.shape[1] ** 2 if self.ndim == 2 else self.size, self.size)
    places = numpy.unravel_index(numpy.arange(0, last, step), self.shape)
    with _core.DeviceScope(self.device):
        self[tuple(_core.Tensor(part) for part in places)] = fill_value
    return self


def _uniform_(self, from_=0, to=1, *, generator=None):
    """Uniform numbers in [from_, to), in place."""
    from morel.common import _random

    return _drawn(self, generator, _random.uniform, self.shape, float(from_), float(to), self.dtype)


def _normal_(self, mean=0, std=1, *, generator=None):
    """Normal numbers, in place."""
    from morel.common import _random

    return _drawn(self, generator, _random.normal, self.shape, float(mean), float(std), self.dtype)


def _bernoulli_(self, p=0.5, *, generator=None):
    """1 with probability p (a number or a tensor that broadcasts), else 0, in place."""
    from morel import ops

    return _drawn(self, generator, ops.bernoulli, self, p)


def _random_(self, from_=0, to=None, *, generator=None):
    """Integers in [from_, to), in place; without `to` up to what the dtype can hold exactly."""
    from morel import ops

    if to is None:
        bits = {"Bool": 1, "Float16": 11, "BFloat16": 8, "Float32": 24, "Float64": 53}
        to = 2 ** bits.get(str(self.dtype), min(8 * self.itemsize - self.dtype.is_signed, 62))
    return _drawn(self, generator, ops.randint, from_, to, self.shape)


def _drawn(self, generator, draw, *args):
    from morel.common.generator import using

    with using(generator), _core.DeviceScope(self.device):
        return self.copy_(draw(*args))


def _in_place(name):
    def method(self, *args, **kwargs):
        return self.copy_(getattr(self, name)(*args, **kwargs))

    method.__name__ = method.__qualname__ = name + "_"
    method.__doc__ = f"`{name}` in place."
    return method


# Methods of which the form in place is a copy of their result.
_IN_PLACE = ("index_add", "index_fill", "masked_scatter", "scatter", "scatter_add")


def _masked_scatter(self, mask, source):
    """A copy with the elements of source, in order, where mask holds."""
    mask = _call["broadcast_to"](mask, self.shape)
    places = _call["nonzero"](mask)
    if places.shape[0] > source.size:
        raise ValueError(f"For 'Tensor.masked_scatter', {places.shape[0]} elements are needed, but got {source.size}.")
    output = _call["clone"](self)
    output[mask] = source.reshape((-1,))[: places.shape[0]]
    return output


_METHODS = {
    "add": _scaled("add"),
    "bernoulli_": _bernoulli_,
    "random_": _random_,
    "allclose": lambda self, other, rtol=1e-05, atol=1e-08, equal_nan=False: bool(
        _call["allclose"](self, other, rtol, atol, equal_nan)
    ),
    "argsort": _sorting("argsort"),
    "choose": _choose,
    "cumsum": _cumsum,
    "diag": _diag,
    "fill": _fill,
    "fill_diagonal": _fill_diagonal,
    "fill_diagonal_": _fill_diagonal_,
    "flatten": _flatten,
    "gather": _gather,
    "index_add": _index_add,
    "masked_scatter": _masked_scatter,
    "max": _extremum("max", "amax"),
    "median": _median,
    "min": _extremum("min", "amin"),
    "ndimension": lambda self: self.ndim,
    "new_empty": _new("empty"),
    "new_full": _new_full,
    "new_ones": _new("ones"),
    "new_zeros": _new("zeros"),
    "nonzero": _nonzero,
    "normal_": _normal_,
    "ptp": _ptp,
    "repeat": _repeat,
    "repeat_interleave": _repeat_interleave,
    "reshape_as": _reshape_as,
    "resize": _resize,
    "round": _round,
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "select": _select,
    "sort": _sorting("sort"),
    "squeeze": _squeeze,
    "std": _deviation("std"),
    "sub": _scaled("sub"),
    "sum": _sum,
    "take": _take,
    "tile": _tile,
    "uniform_": _uniform_,
    "unique": _unique,
    "var": _deviation("var"),
    "view": _view,
    "where": _where,
    **{f"scatter_{how}": _tensor_scatter(how) for how in ("div", "max", "min", "mul", "sub")},
}


def complete(cls):
    """Gives the Tensor type these methods, and those of api/tensor.toml."""
    for name, spec in load_table("tensor")["methods"].items():
        call = make_operator(name, spec)
        setattr(cls, name, _with_words(name, call, _WORDS[name]) if name in _WORDS else call)
    for name in _FORWARDED:
        setattr(cls, name, _forward(name))
    for name in _NAMES:
        _call[name] = make_operator(name, name)
    for name, method in _METHODS.items():
        setattr(cls, name, method)
    for name in _IN_PLACE:
        setattr(cls, name + "_", _in_place(name))
