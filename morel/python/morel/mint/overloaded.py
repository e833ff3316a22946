"""Functions of morel.mint with several forms, which no single row can say."""

from morel import _core
from morel.api import make_operator
from morel.common import _random
from morel.common.tensor import Tensor

__all__ = [
    "add",
    "bernoulli",
    "max",
    "meshgrid",
    "min",
    "nonzero",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "sub",
    "where",
]

(
    _add,
    _sub,
    _mul,
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
) = (
    make_operator(name, name)
    for name in (
        "add",
        "sub",
        "mul",
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


def _no_generator(generator):
    if generator is not None:
        raise NotImplementedError("a generator of its own is not supported: numbers follow morel.set_seed.")


def rand(*size, generator=None, dtype=None):
    """Uniform numbers in [0, 1)."""
    _no_generator(generator)
    return _random.uniform(_sizes(size), 0.0, 1.0, dtype)


def randn(*size, generator=None, dtype=None):
    """Standard normal numbers."""
    _no_generator(generator)
    return _random.normal(_sizes(size), 0.0, 1.0, dtype)


def rand_like(input, *, dtype=None):
    """Uniform numbers in [0, 1) in the shape of input."""
    return _random.uniform(input.shape, 0.0, 1.0, dtype or input.dtype)


def randn_like(input, *, dtype=None):
    """Standard normal numbers in the shape of input."""
    return _random.normal(input.shape, 0.0, 1.0, dtype or input.dtype)


def randint(*args, size=None, generator=None, dtype=None):
    """randint(high, size) or randint(low, high, size): integers in [low, high), low 0 by default."""
    _no_generator(generator)
    args = list(args)
    if size is None:
        size = args.pop()
    low, high = (0, args[0]) if len(args) == 1 else args
    return _integers(tuple(size), low, high, dtype or _core.dtype_named("Int64"))


def randperm(n, *, generator=None, dtype=None):
    """A permutation of 0 ... n - 1."""
    _no_generator(generator)
    return _permutation(n, dtype or _core.dtype_named("Int64"))


def normal(mean=0.0, std=1.0, size=None, generator=None):
    """Normal numbers; mean and std are numbers (with size) or tensors that broadcast."""
    _no_generator(generator)
    shape = size
    if shape is None:
        shape = (mean + std).shape
    return _random.normal(shape, 0.0, 1.0, None) * std + mean


def bernoulli(input, *, generator=None):
    """1 with the probability of each element, else 0."""
    _no_generator(generator)
    return _bernoulli(input)
