"""Functions of morel.mint with several forms, which no single row can say."""

from morel import _core
from morel.api import make_operator
from morel.common import _random
from morel.common.generator import using
from morel.common.tensor import Tensor
from morel.mint import OVERLOADED

__all__ = list(OVERLOADED)

(
    _add,
    _sub,
    _where,
    _amax,
    _amin,
    _max,
    _min,
    _maximum,
    _minimum,
    _nonzero,
    _unbind,
    _meshgrid,
    _bernoulli,
    _integers,
    _permutation,
    _empty,
    _sort,
    _argsort,
    _count_nonzero,
    _norm,
) = (
    make_operator(name, name)
    for name in (
        "add",
        "sub",
        "where",
        "amax",
        "amin",
        "max",
        "min",
        "maximum",
        "minimum",
        "nonzero",
        "unbind",
        "meshgrid",
        "random_bernoulli",
        "random_integers",
        "random_permutation",
        "empty",
        "sort",
        "argsort",
        "count_nonzero",
        "norm",
    )
)


def _scaled(other, alpha):
    if isinstance(alpha, (int, float)) and alpha == 1:
        return other
    return other * alpha


def add(input, other, *, alpha=1):
    """input + alpha * other, with broadcasting."""
    return _add(input, _scaled(other, alpha))


def sub(input, other, *, alpha=1):
    """input - alpha * other, with broadcasting."""
    return _sub(input, _scaled(other, alpha))


def _extremum(along, whole, pairwise, args, kwargs):
    input, *rest = args
    if "other" in kwargs:
        rest.append(kwargs.pop("other"))
    if rest and isinstance(rest[0], Tensor):
        return pairwise(input, rest[0])
    dim = rest[0] if rest else kwargs.get("dim")
    keepdim = rest[1] if len(rest) > 1 else kwargs.get("keepdim", False)
    return whole(input) if dim is None else along(input, dim, keepdim)


def max(*args, **kwargs):
    """max(input): the largest element; max(input, dim, keepdim=False): values and indices along dim; max(input, other): per element."""
    if "input" in kwargs:
        args = (kwargs.pop("input"), *args)
    return _extremum(_max, _amax, _maximum, args, kwargs)


def min(*args, **kwargs):
    """min(input): the smallest element; min(input, dim, keepdim=False): values and indices along dim; min(input, other): per element."""
    if "input" in kwargs:
        args = (kwargs.pop("input"), *args)
    return _extremum(_min, _amin, _minimum, args, kwargs)


def where(condition, input=None, other=None):
    """Elements of input where condition holds, of other elsewhere; with the condition alone: nonzero(condition, as_tuple=True)."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    return _where(condition, input, other)


def nonzero(input, *, as_tuple=False):
    """Positions of the elements that are not zero: int64 [count, rank], or with as_tuple one vector per axis."""
    positions = _nonzero(input)
    return _unbind(positions, 1) if as_tuple else positions


def meshgrid(*tensors, indexing="ij"):
    """Coordinate arrays of a grid from one vector per axis."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    return _meshgrid(tuple(tensors), indexing or "ij")


def _sizes(size):
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size


def _draw(draw, size, dtype, generator, device):
    with using(generator), _core.DeviceScope(device):
        return draw(_sizes(size), 0.0, 1.0, dtype or _core.dtype_named("Float32"))


def rand(*size, generator=None, dtype=None, device=None):
    """Uniform numbers in [0, 1)."""
    return _draw(_random.uniform, size, dtype, generator, device)


def randn(*size, generator=None, dtype=None, device=None):
    """Standard normal numbers."""
    return _draw(_random.normal, size, dtype, generator, device)


def rand_like(input, *, dtype=None, device=None):
    """Uniform numbers in [0, 1) in the shape of input."""
    return _draw(_random.uniform, input.shape, dtype or input.dtype, None, device or input.device)


def randn_like(input, *, dtype=None, device=None):
    """Standard normal numbers in the shape of input."""
    return _draw(_random.normal, input.shape, dtype or input.dtype, None, device or input.device)


def randint(*args, low=None, high=None, size=None, generator=None, dtype=None, device=None):
    """randint(high, size) or randint(low, high, size): integers in [low, high), low 0 by default, int64 by default."""
    args = list(args)
    if size is None:
        size = args.pop()
    bounds = [bound for bound in (low, *args, high) if bound is not None]
    if not 1 <= len(bounds) <= 2 or not all(isinstance(bound, int) for bound in bounds):
        raise TypeError(f"For 'randint', one or two bounds must be given as ints, but got {bounds}.")
    low, high = (0, bounds[0]) if len(bounds) == 1 else bounds
    with using(generator), _core.DeviceScope(device):
        return _integers(tuple(size), low, high, _core.dtype_named("Int64")).astype(dtype or _core.dtype_named("Int64"))


def randint_like(input, *args, low=None, high=None, dtype=None, device=None):
    """randint_like(input, high) or randint_like(input, low, high): integers in the shape, and by default dtype, of input."""
    return randint(
        *args, low=low, high=high, size=input.shape, dtype=dtype or input.dtype, device=device or input.device
    )


def randperm(n, *, generator=None, dtype=None, device=None):
    """A permutation of 0 ... n - 1, int64 by default."""
    with using(generator), _core.DeviceScope(device):
        return _permutation(n, _core.dtype_named("Int64")).astype(dtype or _core.dtype_named("Int64"))


def normal(mean=0.0, std=1.0, size=None, generator=None):
    """Normal numbers; mean and std are numbers (with size) or tensors that broadcast."""
    shape = size
    if shape is None:
        if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
            raise ValueError("For 'normal', 'size' must be given where 'mean' and 'std' are numbers.")
        shape = (mean + std).shape
    with using(generator):
        return _random.normal(tuple(shape), 0.0, 1.0, _core.dtype_named("Float32")) * std + mean


def bernoulli(input, *, generator=None):
    """1 with the probability of each element, else 0."""
    with using(generator):
        return _bernoulli(input)


def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Classes drawn in proportion to the weights in the rows of input: int64 [num_samples] or [N, num_samples]."""
    from morel import ops

    with using(generator):
        return ops.multinomial(input, num_samples, replacement).astype(_core.dtype_named("Int64"))


def empty(*size, dtype=None, device=None, pin_memory=False):
    """A tensor whose elements are not set."""
    with _core.DeviceScope(device):
        return _empty(_sizes(size), dtype or _core.dtype_named("Float32"))


def equal(input, other):
    """Whether both have the same shape and elements; a bool. See `eq` for single elements."""
    return input.shape == other.shape and bool((input == other).all())


def sort(input, *, dim=-1, descending=False, stable=False):
    """(the elements sorted along dim, where they were); equal elements always keep their order."""
    return _sort(input, dim, descending)


def argsort(input, dim=-1, descending=False, stable=False):
    """Where the elements sorted along dim were; equal elements always keep their order."""
    return _argsort(input, dim, descending)


def repeat_interleave(input, repeats, dim=None, *, output_size=None):
    """Each element, or slice along dim, repeated in turn; output_size is checked."""
    return input.repeat_interleave(repeats, dim, output_size=output_size)


def count_nonzero(input, dim=None):
    """Number of elements that are not 0 along dim; None: of all. int64."""
    return _count_nonzero(input, () if dim is None else dim, False, _core.dtype_named("Int64"))


def norm(input, p="fro", dim=None, keepdim=False, *, dtype=None):
    """p-norm of all elements or along dim; 'fro': the root of the sum of squares."""
    return _norm(input, None if p == "fro" else p, dim, keepdim, dtype=dtype)


def round(input, *, decimals=0):
    """Rounds to `decimals` places, halves to even."""
    from morel import ops

    return ops.round(input, decimals=decimals)


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether abs(input - other) <= atol + rtol * abs(other) for all elements; a bool."""
    from morel import ops

    return ops.allclose(input, other, rtol, atol, equal_nan)


def bincount(input, weights=None, minlength=0):
    """How often each number occurs in a vector (int64), or the sum of its weights; at least minlength counts."""
    from morel import ops

    found = ops.bincount(input, weights, minlength)
    return found.astype(_core.dtype_named("Int64")) if weights is None else found


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """p-norm distances between the rows of x1 [..., P, M] and of x2 [..., R, M]; all compute modes give the same."""
    from morel import ops

    modes = tuple(f"{word}use_mm_for_euclid_dist" for word in ("", "donot_")) + ("use_mm_for_euclid_dist_if_necessary",)
    if compute_mode not in modes:
        raise ValueError(f"For 'cdist', 'compute_mode' must be one of {modes}, but got {compute_mode!r}.")
    return ops.cdist(x1, x2, float(p))


def diff(input, n=1, dim=-1, prepend=None, append=None):
    """Differences of neighbours along dim, n times; prepend and append are joined on before."""
    from morel import ops

    return ops.diff(input, n, dim, prepend, append)


def histc(input, bins=100, min=0, max=0):
    """Counts of the elements in `bins` equal parts of [min, max]; both 0: from the smallest to the largest element."""
    from morel import ops

    return ops.histc(input, bins, float(min), float(max))


def index_add(input, dim, index, source, *, alpha=1):
    """A copy of input with alpha * source added at the positions `index` along dim."""
    return input.index_add(dim, index, source, alpha=alpha)


def kthvalue(input, k, dim=-1, keepdim=False):
    """(the k-th smallest element along dim, counted from 1, where it is)"""
    axis = dim % input.ndim if input.ndim else 0
    size = input.shape[axis] if input.ndim else 1
    if isinstance(k, bool) or not isinstance(k, int):
        raise TypeError(f"For 'kthvalue', 'k' must be int, but got {type(k).__name__}.")
    if not 1 <= k <= size:
        raise ValueError(f"For 'kthvalue', 'k' must be in [1, {size}], but got {k}.")
    if not input.ndim:
        return input, input.astype(_core.dtype_named("Int64")) * 0
    found = [part.narrow(axis, k - 1, 1) for part in _sort(input, axis, False)]
    return tuple(part if keepdim else part.squeeze(axis) for part in found)


def median(input, dim=None, keepdim=False):
    """The median of all elements, the lower one of an even number; with dim: (median, its index) along it."""
    from morel import ops

    if dim is None:
        return ops.median(input.reshape((-1,)), 0)[0]
    return ops.median(input, dim, keepdim)


def nansum(input, dim=None, keepdim=False, *, dtype=None):
    """Sum of the elements that are no NaN."""
    from morel import ops

    return ops.nansum(input, dim, keepdim, dtype=dtype)


def scatter(input, dim, index, src):
    """A copy of input with src, a tensor or number, written at positions along dim."""
    from morel import ops

    return ops.scatter(input, dim, index, src)


def scatter_add(input, dim, index, src):
    """A copy of input with src added at positions along dim."""
    return input.scatter_add(dim, index, src)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements, or slices along dim, in ascending order; also where each is among them, and how often."""
    return input.unique(sorted, return_inverse, return_counts, dim)
