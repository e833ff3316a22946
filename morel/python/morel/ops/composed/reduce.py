"""Sums, order statistics and other reductions."""

import math

from morel import _core, ops
from morel.common import dtype as mstype
from morel.ops.composed import _check

__all__ = [
    "aminmax",
    "bincount",
    "clip_by_global_norm",
    "clip_by_norm",
    "cov",
    "diff",
    "dist",
    "histc",
    "logcumsumexp",
    "matrix_norm",
    "median",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "quantile",
    "trace",
    "trapz",
]


def aminmax(input, *, axis=0, keepdims=False):
    """(smallest, largest) along axis; None: of all elements."""
    _check.tensor(input, "input", "aminmax")
    if axis is None or input.ndim == 0:
        axis = ()
    return ops.amin(input, axis, keepdims), ops.amax(input, axis, keepdims)


def bincount(input, weights=None, minlength=0):
    """How often each number 0, 1, ... occurs in a vector, or the sum of its weights; at least minlength counts.

    float32 without weights, as in MindSpore; otherwise of the weights' dtype.
    """
    _check.integral(input, "input", "bincount")
    _check.integer(minlength, "minlength", "bincount", 0)
    if input.ndim != 1:
        raise ValueError(f"For 'bincount', 'input' must be a vector, but got shape {input.shape}.")
    if input.size and int(input.min().item()) < 0:
        raise ValueError("For 'bincount', 'input' must not be negative.")
    if weights is None:
        source = ops.ones((input.size,), mstype.float32)
    else:
        source = _check.tensor(weights, "weights", "bincount")
        if source.shape != input.shape:
            raise ValueError(f"For 'bincount', 'weights' must have shape {input.shape}, but got {source.shape}.")
    count = max(minlength, int(input.max().item()) + 1 if input.size else 0)
    zeros = ops.zeros((count,), source.dtype)
    return ops.index_put(zeros, (input.astype(mstype.int64),), source, True) if input.size else zeros


def _global_norm(tensors):
    return ops.sqrt(sum(ops.sum(ops.square(_check.as_float(item).astype(mstype.float32))) for item in tensors))


def clip_by_global_norm(x, clip_norm=1.0, use_norm=None):
    """The tensors times clip_norm / max(clip_norm, norm), where norm is that of all their elements together.

    Args:
        x (tuple[Tensor], list[Tensor]): the tensors.
        clip_norm (float, int): the largest norm, above 0.
        use_norm: None, as in MindSpore.
    Returns:
        tuple[Tensor].
    Raises:
        TypeError: x is no tuple or list of tensors. ValueError: clip_norm is not positive, or use_norm is given.
    """
    tensors = _check.tensors(x, "x", "clip_by_global_norm")
    if isinstance(clip_norm, bool) or not isinstance(clip_norm, (int, float)):
        raise TypeError(f"For 'clip_by_global_norm', 'clip_norm' must be float, but got {type(clip_norm).__name__}.")
    if clip_norm <= 0:
        raise ValueError(f"For 'clip_by_global_norm', 'clip_norm' must be positive, but got {clip_norm}.")
    if use_norm is not None:
        raise ValueError("For 'clip_by_global_norm', 'use_norm' must be None.")
    factor = clip_norm / ops.maximum(_global_norm(tensors), float(clip_norm))
    return tuple(item * factor.astype(item.dtype) for item in tensors)


def clip_by_norm(x, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """A tensor, or the tensors of a tuple or list together, scaled down to a norm of at most max_norm.

    Args:
        x (Tensor, tuple[Tensor], list[Tensor]): the values.
        max_norm (float, int): the largest norm.
        norm_type (float, int): order of the norm; ``inf`` too.
        error_if_nonfinite (bool): RuntimeError where the norm is NaN or infinite.
    Returns:
        Tensor, or a tuple of tensors.
    """
    single = isinstance(x, _core.Tensor)
    tensors = (x,) if single else _check.tensors(x, "x", "clip_by_norm")
    for name, value in (("max_norm", max_norm), ("norm_type", norm_type)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"For 'clip_by_norm', '{name}' must be float, but got {type(value).__name__}.")
    norms = [ops.vector_norm(_check.as_float(item).astype(mstype.float32), float(norm_type)) for item in tensors]
    total = ops.vector_norm(ops.stack(norms), float(norm_type))
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"For 'clip_by_norm', the norm is {total.item()}.")
    factor = ops.clamp(max_norm / (total + 1e-6), None, 1.0)
    found = [item * factor.astype(item.dtype) if item.dtype.is_floating_point else item * factor for item in tensors]
    return found[0] if single else tuple(found)


def cov(input, *, correction=1, fweights=None, aweights=None):
    """Covariance matrix of the variables in the rows of input, whose columns are observations.

    Args:
        input (Tensor): [variables, observations], or one variable as a vector.
        correction (int): what is subtracted from the number of observations.
        fweights (Tensor, optional): how often each observation counts; integers.
        aweights (Tensor, optional): weight of each observation.
    """
    _check.tensor(input, "input", "cov")
    if input.ndim > 2:
        raise ValueError(f"For 'cov', 'input' must have at most 2 axes, but got shape {input.shape}.")
    x = _check.as_float(input).reshape((1, -1)) if input.ndim < 2 else _check.as_float(input)
    weights = None
    if fweights is not None:
        weights = _check.integral(fweights, "fweights", "cov").astype(x.dtype)
    if aweights is not None:
        own = _check.floating(aweights, "aweights", "cov").astype(x.dtype)
        weights = own if weights is None else weights * own
    count = x.shape[1]
    if weights is None:
        mean, factor = ops.mean(x, 1, True), float(count)
        centred = x - mean
        scaled = centred
    else:
        if weights.shape != (count,):
            raise ValueError(f"For 'cov', the weights must have shape {(count,)}, but got {weights.shape}.")
        factor = weights.sum()
        centred = x - (x * weights).sum(1, True) / factor
        scaled = centred * weights
    if aweights is not None and correction:
        factor = factor - correction * (weights * own).sum() / weights.sum()
    else:
        factor = factor - correction
    found = ops.matmul(scaled, ops.conj(centred).swapaxes(0, 1)) / factor
    return found.reshape(()) if input.ndim < 2 else found


def diff(x, n=1, axis=-1, prepend=None, append=None):
    """Differences of neighbours along axis, n times; prepend and append are joined on before."""
    _check.tensor(x, "x", "diff")
    _check.integer(n, "n", "diff", 0)
    if x.ndim == 0:
        raise ValueError("For 'diff', 'x' must have an axis.")
    axis = _check.axis(axis, x.ndim, "axis", "diff")
    parts = [part for part in (prepend, x, append) if part is not None]
    x = ops.concat(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        count = x.shape[axis]
        later, earlier = (ops.narrow(x, axis, start, max(count - 1, 0)) for start in (min(1, count), 0))
        x = ops.logical_xor(later, earlier) if x.dtype == mstype.bool_ else later - earlier
    return x


def dist(input, other, p=2):
    """p-norm of input - other as one vector."""
    if not isinstance(p, (int, float)) or isinstance(p, bool):
        raise TypeError(f"For 'dist', 'p' must be int or float, but got {type(p).__name__}.")
    difference = _check.tensor(input, "input", "dist") - _check.tensor(other, "other", "dist")
    return ops.vector_norm(_check.as_float(difference).reshape((-1,)), float(p))


def histc(input, bins=100, min=0.0, max=0.0):
    """Counts of the elements in `bins` equal parts of [min, max]; both 0: from the smallest to the largest element."""
    _check.tensor(input, "input", "histc")
    _check.integer(bins, "bins", "histc", 1)
    if min > max:
        raise ValueError(f"For 'histc', 'min' must not be above 'max', but got {min} and {max}.")
    flat = input.reshape((-1,))
    low, high = float(min), float(max)
    if low == high == 0.0 and flat.size:
        low, high = float(flat.min().item()), float(flat.max().item())
    if low == high:
        low, high = low - 1, high + 1
    inside = ops.logical_and(flat >= low, flat <= high)
    place = ops.floor((ops.masked_select(_check.as_float(flat), inside) - low) * (bins / (high - low)))
    place = ops.clamp(place.astype(mstype.int64), 0, bins - 1)
    return bincount(place, None, bins).astype(input.dtype)


def logcumsumexp(input, axis):
    """log of the running sum of exp(input) along axis, without overflow."""
    _check.floating(input, "input", "logcumsumexp")
    axis = _check.axis(axis, input.ndim, "axis", "logcumsumexp")
    step, output = 1, input
    # After each round an element holds twice as many terms: Hillis and Steele, Data Parallel Algorithms, 1986.
    while input.ndim and step < input.shape[axis]:
        before = ops.narrow(output, axis, 0, input.shape[axis] - step)
        later = ops.logaddexp(ops.narrow(output, axis, step, input.shape[axis] - step), before)
        output = ops.concat((ops.narrow(output, axis, 0, step), later), axis)
        step *= 2
    return output


def matrix_norm(A, ord="fro", axis=(-2, -1), keepdims=False, *, dtype=None):
    """Norm of matrices: 'fro' (root of the sum of squares), 1 and -1 (largest, smallest column sum), inf and -inf (row sums)."""
    _check.floating(A, "A", "matrix_norm")
    if ord in (2, -2, "nuc"):
        raise NotImplementedError(f"For 'matrix_norm', 'ord' {ord!r} needs singular values, which are not supported.")
    _check.one_of(ord, ("fro", 1, -1, math.inf, -math.inf), "ord", "matrix_norm")
    row, column = (_check.axis(item, A.ndim, "axis", "matrix_norm") for item in axis)
    if row == column:
        raise ValueError(f"For 'matrix_norm', 'axis' must name two axes, but got {axis}.")
    A = A if dtype is None else A.astype(dtype)
    if ord == "fro":
        return ops.sqrt(ops.sum(ops.square(ops.abs(A)), (row, column), keepdims))
    summed, kept = (row, column) if abs(ord) == 1 else (column, row)
    sums = ops.sum(ops.abs(A), summed, True)
    found = (ops.amax if ord > 0 else ops.amin)(sums, kept, True)
    return found if keepdims else found.squeeze((row, column))


def _kth_along(input, kth, axis, keepdims):
    values, indices = ops.sort(input, axis)
    found = [ops.narrow(part, axis, kth, 1) for part in (values, indices)]
    return found if keepdims else [part.squeeze(axis) for part in found]


def median(input, axis=-1, keepdims=False):
    """(median, its index) along axis; of an even number of elements the lower one. NaN where one is NaN."""
    _check.tensor(input, "input", "median")
    axis = _check.axis(axis, input.ndim, "axis", "median")
    if input.ndim == 0:
        return input, ops.zeros((), mstype.int64)
    values, indices = _kth_along(input, (input.shape[axis] - 1) // 2, axis, keepdims)
    if input.dtype.is_floating_point:
        nan = ops.isnan(input)
        any_nan = ops.any(nan, axis, keepdims)
        values = ops.where(any_nan, math.nan, values)
        indices = ops.where(
            any_nan, ops.argmax(nan.astype(mstype.int32), axis, keepdims).astype(indices.dtype), indices
        )
    return values, indices


def nanmedian(input, axis=-1, keepdims=False):
    """(median, its index) along axis of the elements that are no NaN; NaN where all are."""
    _check.tensor(input, "input", "nanmedian")
    if input.ndim == 0 or not input.dtype.is_floating_point:
        return median(input, axis, keepdims)
    axis = _check.axis(axis, input.ndim, "axis", "nanmedian")
    values, indices = ops.sort(ops.where(ops.isnan(input), math.inf, input), axis)
    count = ops.sum(ops.logical_not(ops.isnan(input)), axis, True)
    kth = ops.clamp(ops.floor_divide(count - 1, 2), 0, None)
    values, indices = (ops.gather_elements(part, axis, kth) for part in (values, indices))
    values = ops.where(count == 0, math.nan, values)
    return (values, indices) if keepdims else (values.squeeze(axis), indices.squeeze(axis))


def nansum(input, axis=None, keepdims=False, *, dtype=None):
    """Sum of the elements that are no NaN."""
    _check.tensor(input, "input", "nansum")
    if input.dtype.is_floating_point:
        input = ops.where(ops.isnan(input), 0, input)
    return ops.sum(input, axis, keepdims, dtype=dtype)


def nanmean(input, axis=None, keepdims=False, *, dtype=None):
    """Mean of the elements that are no NaN; NaN where all are."""
    input = _check.as_float(_check.tensor(input, "input", "nanmean"))
    count = ops.sum(ops.logical_not(ops.isnan(input)), axis, keepdims)
    return nansum(input, axis, keepdims, dtype=dtype) / count.astype(dtype or input.dtype)


def _quantile(input, q, axis, keepdims, skip_nan, name):
    _check.floating(input, "input", name)
    if isinstance(q, bool) or not isinstance(q, (float, _core.Tensor)):
        raise TypeError(f"For '{name}', 'q' must be float or a Tensor, but got {type(q).__name__}.")
    given = [q] if isinstance(q, float) else q.reshape((-1,)).tolist() if _check.values_known() else []
    if not all(0 <= value <= 1 for value in given):
        raise ValueError(f"For '{name}', 'q' must be in [0, 1], but got {given}.")
    q = ops.full((), q, dtype=input.dtype) if isinstance(q, float) else q.astype(input.dtype)
    if q.ndim > 1:
        raise ValueError(f"For '{name}', 'q' must be a number or a vector, but got shape {q.shape}.")
    shape = input.shape
    if axis is None:
        kept_shape = (1,) * len(shape)
        input, axis = input.reshape((-1,)), 0
    else:
        axis = _check.axis(axis, input.ndim, "axis", name)
        kept_shape = (*shape[:axis], 1, *shape[axis + 1 :])
    if not input.shape[axis]:
        raise ValueError(f"For '{name}', 'input' must have elements along 'axis', but got shape {shape}.")
    rows = ops.movedim(input, axis, -1)  # [..., n]
    nan = ops.isnan(rows)
    ordered = ops.sort(ops.where(nan, math.inf, rows), -1)[0]
    count = ops.sum(ops.logical_not(nan), -1, True) if skip_nan else ops.full_like(rows[..., :1], rows.shape[-1])
    place = q.reshape((-1,)) * (ops.clamp(count, 1, None) - 1).astype(input.dtype)  # [..., number of q]
    below = ops.floor(place)
    low, high = (ops.gather_elements(ordered, -1, edge.astype(mstype.int64)) for edge in (below, ops.ceil(place)))
    found = low + (high - low) * (place - below)
    missing = count == 0 if skip_nan else ops.any(nan, -1, True)
    found = ops.movedim(ops.where(missing, math.nan, found), -1, 0)
    tail = kept_shape if keepdims else found.shape[1:]
    return found.reshape((*q.shape, *tail))


def quantile(input, q, axis=None, keepdims=False):
    """The q-th quantiles along axis (None: of all elements), interpolated linearly; NaN where one is NaN.

    Several q, as a vector, come along a new first axis.
    """
    return _quantile(input, q, axis, keepdims, False, "quantile")


def nanquantile(input, q, axis=None, keepdims=False):
    """`quantile` of the elements that are no NaN; NaN where all are."""
    return _quantile(input, q, axis, keepdims, True, "nanquantile")


def trace(input):
    """Sum of the diagonal of a matrix."""
    if _check.tensor(input, "input", "trace").ndim != 2:
        raise ValueError(f"For 'trace', 'input' must be a matrix, but got shape {input.shape}.")
    return ops.sum(ops.diagonal(input)).astype(input.dtype)


def trapz(y, x=None, *, dx=1.0, dim=-1):
    """Integral of y along dim by the trapezoidal rule, at points x or with distance dx."""
    y = _check.as_float(_check.tensor(y, "y", "trapz"))
    dim = _check.axis(dim, y.ndim, "dim", "trapz")
    count = y.shape[dim]
    if count < 2:
        return ops.sum(y * 0, dim)
    pairs = (ops.narrow(y, dim, 1, count - 1) + ops.narrow(y, dim, 0, count - 1)) / 2
    if x is None:
        return ops.sum(pairs, dim) * float(dx)
    width = diff(_check.tensor(x, "x", "trapz"), axis=-1 if x.ndim == 1 else dim)
    if x.ndim == 1 and y.ndim > 1:
        width = width.reshape((-1, *(1,) * (y.ndim - dim - 1)))
    return ops.sum(pairs * width, dim)
