"""Reading and writing at positions."""

from morel import _core, ops
from morel.api import make_operator
from morel.common import dtype as mstype
from morel.ops.composed import _check

__all__ = [
    "assign",
    "assign_add",
    "assign_sub",
    "embedding",
    "gather",
    "gather_nd",
    "index_add",
    "index_fill",
    "inplace_add",
    "inplace_sub",
    "inplace_update",
    "scatter",
    "scatter_add",
    "scatter_div",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_nd",
    "scatter_nd_add",
    "scatter_nd_div",
    "scatter_nd_max",
    "scatter_nd_min",
    "scatter_nd_mul",
    "scatter_nd_sub",
    "scatter_nd_update",
    "scatter_update",
    "tensor_scatter_add",
    "tensor_scatter_div",
    "tensor_scatter_elements",
    "tensor_scatter_max",
    "tensor_scatter_min",
    "tensor_scatter_mul",
    "tensor_scatter_sub",
    "tensor_scatter_update",
    "unsorted_segment_max",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sum",
]

_gather, _embedding = make_operator("gather", "gather"), make_operator("embedding", "embedding")
_put, _scatter_elements, _scatter_add_elements = (
    make_operator(name, name) for name in ("index_put", "scatter_elements", "scatter_add_elements")
)
_COMBINE = {"mul": "mul", "div": "div", "max": "maximum", "min": "minimum"}


def gather(input_params, input_indices, axis, batch_dims=0):
    """The slices of input_params at positions along axis.

    Args:
        input_params (Tensor): the values.
        input_indices (Tensor): integers.
        axis (int, Tensor): where the positions count.
        batch_dims (int): how many of the first axes both share, each with its own positions.
    """
    if isinstance(batch_dims, int) and -1 <= batch_dims <= 1:
        return _gather(input_params, input_indices, axis, batch_dims)
    axis = axis.item() if isinstance(axis, _core.Tensor) else axis
    axis = _check.axis(axis, input_params.ndim, "axis", "gather")
    batch_dims = _check.axis(batch_dims, input_indices.ndim + 1, "batch_dims", "gather")
    shared = input_params.shape[:batch_dims]
    if batch_dims > axis or input_indices.shape[:batch_dims] != shared:
        raise ValueError(
            f"For 'gather', the first {batch_dims} axes must agree and 'axis' come after them, but got shapes "
            f"{input_params.shape} and {input_indices.shape} and axis {axis}."
        )
    # The shared axes as one.
    found = _gather(
        input_params.reshape((-1, *input_params.shape[batch_dims:])),
        input_indices.reshape((-1, *input_indices.shape[batch_dims:])),
        axis - batch_dims + 1,
        1,
    )
    return found.reshape((*shared, *found.shape[1:]))


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False):
    """The rows of weight at the positions `input`.

    Args:
        input (Tensor): integers.
        weight (Parameter, Tensor): [count, size].
        padding_idx (int, optional): a row that gets no gradient.
        max_norm (float, optional): rows that are used are scaled down to this norm, in place.
        norm_type (float): order of that norm.
        scale_grad_by_freq (bool): gradients are divided by how often their row is used.
    """
    if max_norm is None and not scale_grad_by_freq:
        return _embedding(input, weight, padding_idx)
    import numpy

    rows, inverse, counts = numpy.unique(
        _check.integral(input, "input", "embedding").asnumpy(), return_inverse=True, return_counts=True
    )
    if max_norm is not None:
        if isinstance(max_norm, bool) or not isinstance(max_norm, (int, float)):
            raise TypeError(f"For 'embedding', 'max_norm' must be float, but got {type(max_norm).__name__}.")
        _core.without_grad(_limit_rows, weight, _core.Tensor(rows.astype(numpy.int64)), max_norm, float(norm_type))
    output = _embedding(input, weight, padding_idx)
    if not scale_grad_by_freq:
        return output
    share = _core.Tensor((1.0 / counts[inverse]).reshape(input.shape), output.dtype).expand_dims(-1)
    return _core.custom_backward("EmbeddingFrequency", [output], [output], lambda grad: (grad * share,))[0]


def _limit_rows(weight, rows, max_norm, norm_type):
    used = weight[rows]
    norms = ops.vector_norm(used, norm_type, -1, True)
    weight[rows] = ops.where(norms > max_norm, used * (max_norm / (norms + 1e-7)), used)


def assign(variable, value):
    """Copies value into the parameter `variable`, which is returned."""
    _check.tensor(variable, "variable", "assign")
    value = value if isinstance(value, _core.Tensor) else _core.Tensor(value, variable.dtype)
    return variable.copy_(value)


def assign_add(variable, value):
    """Adds value to the parameter `variable` in place, and returns it."""
    return _check.tensor(variable, "variable", "assign_add").add_(value)


def assign_sub(variable, value):
    """Subtracts value from the parameter `variable` in place, and returns it."""
    return _check.tensor(variable, "variable", "assign_sub").sub_(value)


def _columns(indices, rank, name):
    """[..., K] positions as K index tensors."""
    _check.integral(indices, "indices", name)
    if indices.ndim < 1 or indices.shape[-1] > rank:
        raise ValueError(
            f"For '{name}', the last axis of 'indices' must have at most {rank} elements, but got shape {indices.shape}."
        )
    return ops.unbind(indices.astype(mstype.int64), -1)


def gather_nd(input_x, indices):
    """What lies at the positions in the last axis of indices: shape indices.shape[:-1] + input_x.shape[indices.shape[-1]:]."""
    _check.tensor(input_x, "input_x", "gather_nd")
    return input_x[tuple(_columns(indices, input_x.ndim, "gather_nd"))]


def _occurrences(keys):
    """For each key how often it has come before, an array."""
    import numpy

    order = numpy.argsort(keys, kind="stable")
    ordered = keys[order]
    first = numpy.concatenate(([True], ordered[1:] != ordered[:-1])) if len(keys) else numpy.zeros(0, bool)
    start = numpy.maximum.accumulate(numpy.where(first, numpy.arange(len(keys)), 0)) if len(keys) else order
    before = numpy.empty(len(keys), numpy.int64)
    before[order] = numpy.arange(len(keys)) - start
    return before


def _combined(x, columns, updates, how):
    """x with `how` (add, sub, update, mul, div, max, min) applied at positions; repeated ones one after the other."""
    count = columns[0].size
    tail = x.shape[len(columns) :]
    updates = ops.broadcast_to(updates, (*columns[0].shape, *tail)).reshape((count, *tail))
    columns = [column.reshape((-1,)) for column in columns]
    if how in ("add", "sub"):
        return _put(x, columns, updates if how == "add" else -updates, True)
    if how == "update":
        return _put(x, columns, updates, False)
    import numpy

    keys = numpy.ravel_multi_index(
        [column.asnumpy() % extent for column, extent in zip(columns, x.shape)], x.shape[: len(columns)]
    )
    combine, before = getattr(ops, _COMBINE[how]), _occurrences(keys)
    for turn in range(int(before.max()) + 1 if count else 0):
        if turn == 0 and not before.any():
            places, now = columns, updates
        else:
            chosen = _core.Tensor(numpy.flatnonzero(before == turn), mstype.int64)
            places, now = [column[chosen] for column in columns], updates[chosen]
        x = _put(x, places, combine(x[tuple(places)], now), False)
    return x


def _at_positions(name, how, in_place=False):
    """A function that applies updates in one way at positions in the last axis of indices."""

    def applied(input_x, indices, updates):
        _check.tensor(input_x, "input_x", name), _check.tensor(updates, "updates", name)
        columns = _columns(indices, input_x.ndim, name)
        expected = (*indices.shape[:-1], *input_x.shape[indices.shape[-1] :])
        if updates.shape != expected:
            raise ValueError(f"For '{name}', 'updates' must have shape {expected}, but got {updates.shape}.")
        return _combined(input_x, columns, updates.astype(input_x.dtype), how)

    def applied_in_place(input_x, indices, updates, use_locking=False):
        return input_x.copy_(applied(input_x, indices, updates))

    scatter = applied_in_place if in_place else applied
    scatter.__name__ = scatter.__qualname__ = name
    start = "Changes the parameter input_x in place: updates are" if in_place else "A copy of input_x with updates"
    scatter.__doc__ = f"""{start} applied ({how}) at the positions in the last axis of indices.

    Args:
        input_x ({"Parameter" if in_place else "Tensor"}): the values.
        indices (Tensor): integers [..., K], K at most the rank of input_x.
        updates (Tensor): shape indices.shape[:-1] + input_x.shape[K:].
    """
    if in_place:
        scatter.__doc__ += "    use_locking (bool): updates are never concurrent here.\n    "
    return scatter


_WAYS = ("add", "div", "max", "min", "mul", "sub", "update")
(
    tensor_scatter_add,
    tensor_scatter_div,
    tensor_scatter_max,
    tensor_scatter_min,
    tensor_scatter_mul,
    tensor_scatter_sub,
    tensor_scatter_update,
) = (_at_positions(f"tensor_scatter_{how}", how) for how in _WAYS)
(
    scatter_nd_add,
    scatter_nd_div,
    scatter_nd_max,
    scatter_nd_min,
    scatter_nd_mul,
    scatter_nd_sub,
    scatter_nd_update,
) = (_at_positions(f"scatter_nd_{how}", how, in_place=True) for how in _WAYS)


def _scatter_in_place(how):
    name = f"scatter_{how}"

    def scatter(input_x, indices, updates):
        _check.tensor(input_x, "input_x", name), _check.tensor(updates, "updates", name)
        _check.integral(indices, "indices", name)
        expected = (*indices.shape, *input_x.shape[1:])
        if updates.shape not in (expected, ()):
            raise ValueError(f"For '{name}', 'updates' must have shape {expected}, but got {updates.shape}.")
        found = _combined(input_x, [indices.astype(mstype.int64)], updates.astype(input_x.dtype), how)
        return input_x.copy_(found)

    scatter.__name__ = scatter.__qualname__ = name
    scatter.__doc__ = f"""Applies updates ({how}) to the rows `indices` of the parameter input_x in place.

    Args:
        input_x (Parameter): the values.
        indices (Tensor): integers; positions along the first axis.
        updates (Tensor): shape indices.shape + input_x.shape[1:].
    """
    return scatter


scatter_add, scatter_div, scatter_max, scatter_min, scatter_mul = (
    _scatter_in_place(how) for how in ("add", "div", "max", "min", "mul")
)
scatter_update = _scatter_in_place("update")


def scatter_nd(indices, updates, shape):
    """Zeros of `shape` with updates added at the positions in the last axis of indices."""
    _check.tensor(updates, "updates", "scatter_nd")
    zeros = ops.zeros(tuple(shape), updates.dtype)
    columns = _columns(indices, zeros.ndim, "scatter_nd")
    expected = (*indices.shape[:-1], *zeros.shape[indices.shape[-1] :])
    if updates.shape != expected:
        raise ValueError(f"For 'scatter_nd', 'updates' must have shape {expected}, but got {updates.shape}.")
    return _combined(zeros, columns, updates, "add")


def scatter(input, axis, index, src):
    """A copy of input with src[i, j, ...] written at [index[i, j, ...], j, ...] for axis 0, alike for others."""
    _check.tensor(input, "input", "scatter"), _check.integral(index, "index", "scatter")
    if not isinstance(src, _core.Tensor):
        src = ops.full(index.shape, src, dtype=input.dtype)
    return _scatter_elements(input, axis, index, src)


def tensor_scatter_elements(input_x, indices, updates, axis=0, reduction="none"):
    """A copy of input_x with updates written ('none') or added ('add') at positions along axis, as `scatter` does."""
    _check.tensor(input_x, "input_x", "tensor_scatter_elements")
    _check.one_of(reduction, ("none", "add"), "reduction", "tensor_scatter_elements")
    write = _scatter_elements if reduction == "none" else _scatter_add_elements
    return write(input_x, axis, _check.integral(indices, "indices", "tensor_scatter_elements"), updates)


def _along(rank, axis, indices):
    """Index tensors that pick `indices` along axis and everything along the axes before it."""
    return (*(slice(None),) * axis, indices.astype(mstype.int64))


def index_add(x, indices, y, axis, use_lock=True, check_index_bound=True):
    """x with the slices of y added at the positions `indices` along axis; a Parameter is changed in place.

    Args:
        x (Parameter, Tensor): the values.
        indices (Tensor): integers, a vector.
        y (Tensor): as x, but for its size along axis, which is that of indices.
        axis (int): where the positions count.
        use_lock (bool): updates are never concurrent here.
        check_index_bound (bool): positions are always checked.
    """
    _check.tensor(x, "x", "index_add"), _check.tensor(y, "y", "index_add")
    _check.integral(indices, "indices", "index_add")
    axis = _check.axis(axis, x.ndim, "axis", "index_add")
    expected = (*x.shape[:axis], indices.size, *x.shape[axis + 1 :])
    if indices.ndim != 1 or y.shape != expected:
        raise ValueError(f"For 'index_add', 'y' must have shape {expected}, but got {y.shape}.")
    moved = _put(
        ops.movedim(x, axis, 0), (indices.astype(mstype.int64),), ops.movedim(y.astype(x.dtype), axis, 0), True
    )
    output = ops.movedim(moved, 0, axis)
    return x.copy_(output) if type(x).__name__ == "Parameter" else output


def index_fill(x, axis, index, value):
    """A copy of x with value, a number or a tensor of one element, at the positions `index` along axis."""
    _check.tensor(x, "x", "index_fill"), _check.integral(index, "index", "index_fill")
    axis = axis.item() if isinstance(axis, _core.Tensor) else axis
    axis = _check.axis(axis, x.ndim, "axis", "index_fill")
    if index.ndim > 1:
        raise ValueError(f"For 'index_fill', 'index' must be a number or a vector, but got shape {index.shape}.")
    output = ops.clone(x)
    output[_along(x.ndim, axis, index)] = value.astype(x.dtype) if isinstance(value, _core.Tensor) else value
    return output


def _rows(indices):
    if isinstance(indices, int):
        indices = (indices,)
    return indices if isinstance(indices, _core.Tensor) else _core.Tensor(list(indices), mstype.int64)


def inplace_update(x, v, indices):
    """x with its rows `indices` (int or tuple) replaced by those of v."""
    return _combined(x, [_rows(indices).astype(mstype.int64)], _check.tensor(v, "v", "inplace_update"), "update")


def inplace_add(x, v, indices):
    """x with the rows of v added to its rows `indices` (int or tuple)."""
    return _combined(x, [_rows(indices).astype(mstype.int64)], _check.tensor(v, "v", "inplace_add"), "add")


def inplace_sub(x, v, indices):
    """x with the rows of v subtracted from its rows `indices` (int or tuple)."""
    return _combined(x, [_rows(indices).astype(mstype.int64)], _check.tensor(v, "v", "inplace_sub"), "sub")


def _segments(x, segment_ids, num_segments, how, empty, name):
    _check.tensor(x, "x", name), _check.integral(segment_ids, "segment_ids", name)
    num_segments = int(num_segments.item()) if isinstance(num_segments, _core.Tensor) else num_segments
    _check.integer(num_segments, "num_segments", name, 1)
    if segment_ids.shape != x.shape[: segment_ids.ndim]:
        raise ValueError(
            f"For '{name}', 'segment_ids' of shape {segment_ids.shape} must be the front of the shape {x.shape}."
        )
    tail = x.shape[segment_ids.ndim :]
    ids = segment_ids.reshape((-1,)).astype(mstype.int64)
    if ids.size and _check.values_known() and ids.max().item() >= num_segments:
        raise ValueError(f"For '{name}', 'segment_ids' must be below {num_segments}, but got {ids.max().item()}.")
    ids = ops.where(ids < 0, num_segments, ids)  # one more segment for what is dropped
    start = ops.full((num_segments + 1, *tail), empty, dtype=x.dtype)
    return _combined(start, [ids], x.reshape((segment_ids.size, *tail)), how)[:num_segments]


def unsorted_segment_sum(input_x, segment_ids, num_segments):
    """[num_segments, ...]: the sum of what has each id; negative ids are dropped, ids that do not occur give 0."""
    return _segments(input_x, segment_ids, num_segments, "add", 0, "unsorted_segment_sum")


def unsorted_segment_prod(x, segment_ids, num_segments):
    """[num_segments, ...]: the product of what has each id; ids that do not occur give 1."""
    return _segments(x, segment_ids, num_segments, "mul", 1, "unsorted_segment_prod")


def _limits(dtype):
    import numpy

    name = mstype._numpy_name(dtype)
    if dtype == mstype.bfloat16:
        return -3.3895313892515355e38, 3.3895313892515355e38
    information = numpy.finfo(name) if dtype.is_floating_point else numpy.iinfo(name)
    as_python = float if dtype.is_floating_point else int
    return as_python(information.min), as_python(information.max)


def unsorted_segment_max(x, segment_ids, num_segments):
    """[num_segments, ...]: the largest of what has each id; ids that do not occur give the smallest number of the dtype."""
    return _segments(x, segment_ids, num_segments, "max", _limits(x.dtype)[0], "unsorted_segment_max")


def unsorted_segment_min(x, segment_ids, num_segments):
    """[num_segments, ...]: the smallest of what has each id; ids that do not occur give the largest number of the dtype."""
    return _segments(x, segment_ids, num_segments, "min", _limits(x.dtype)[1], "unsorted_segment_min")
