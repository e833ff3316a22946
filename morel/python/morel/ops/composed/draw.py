"""Random numbers. They follow `morel.set_seed`.

A `seed` of a function starts numbers of its own, which go on from call to call, and start again at `morel.set_seed`.
"""

from morel import _core, ops
from morel.api import make_operator
from morel.common import dtype as mstype
from morel.common import seed as _seed
from morel.common.generator import Generator, using
from morel.ops.composed import _check

__all__ = [
    "bernoulli",
    "dropout",
    "laplace",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "shuffle",
    "standard_laplace",
    "standard_normal",
    "uniform",
]

_uniform, _normal, _integers, _permutation, _bernoulli, _dropout = (
    make_operator(name, name)
    for name in (
        "random_uniform",
        "random_normal",
        "random_integers",
        "random_permutation",
        "random_bernoulli",
        "dropout",
    )
)


# (function, seed) -> its generator, for one generation of `morel.set_seed`.
_generators, _generation = {}, None


def _seeded(seed, name):
    """A context that draws from the generator of this function's seed if one is given."""
    global _generators, _generation
    if seed is None:
        return using(None)
    _check.integer(seed, "seed", name, 0)
    if _generation != _seed.generation:
        _generators, _generation = {}, _seed.generation
    if (name, seed) not in _generators:
        start = (seed * 0x9E3779B97F4A7C15 + (_seed.get_seed() or 0)) % 2**63
        _generators[name, seed] = Generator().manual_seed(start)
    return using(_generators[name, seed])


def _shape(shape, name):
    if isinstance(shape, int) and not isinstance(shape, bool):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"For '{name}', the shape must be an int or a tuple of ints, but got {type(shape).__name__}.")
    return tuple(_check.integer(size, "shape", name, 0) for size in shape)


def _float_dtype(dtype, name):
    dtype = mstype.float32 if dtype is None else dtype
    if not dtype.is_floating_point:
        raise ValueError(f"For '{name}', 'dtype' must be a floating dtype, but got {dtype}.")
    return dtype


def bernoulli(input, p=0.5, seed=None):
    """1 with probability p (a number or a tensor that broadcasts), else 0, in the shape and dtype of input."""
    _check.tensor(input, "input", "bernoulli")
    if not isinstance(p, _core.Tensor):
        if isinstance(p, bool) or not isinstance(p, (int, float)):
            raise TypeError(f"For 'bernoulli', 'p' must be a Tensor or float, but got {type(p).__name__}.")
        limits = (p, p)
        p = ops.full((), float(p), dtype=mstype.float32)
    else:
        limits = (p.min().item(), p.max().item()) if p.size and _check.values_known() else (0, 1)
        p = p.astype(mstype.float32)
    if not 0 <= limits[0] <= limits[1] <= 1:
        raise ValueError(f"For 'bernoulli', 'p' must be in [0, 1], but got {limits}.")
    with _seeded(None if seed == -1 else seed, "bernoulli"):
        return _bernoulli(ops.broadcast_to(p, input.shape)).astype(input.dtype)


def dropout(input, p=0.5, training=True, seed=None):
    """Zeroes elements with probability p in training and scales the others by 1 / (1 - p)."""
    if seed is None:
        return _dropout(input, p, training)
    with _seeded(seed, "dropout"):
        return _dropout(input, p, training)


def standard_normal(shape, seed=None):
    """Normal numbers with mean 0 and deviation 1, float32."""
    with _seeded(seed, "standard_normal"):
        return _normal(_shape(shape, "standard_normal"), 0.0, 1.0, mstype.float32)


def normal(shape, mean, stddev, seed=None):
    """Normal numbers; mean and stddev are numbers or tensors that broadcast against shape."""
    with _seeded(seed, "normal"):
        return _normal(_shape(shape, "normal"), 0.0, 1.0, mstype.float32) * stddev + mean


def standard_laplace(shape, seed=None):
    """Laplace numbers with mean 0 and scale 1, float32."""
    with _seeded(seed, "standard_laplace"):
        half = _uniform(_shape(shape, "standard_laplace"), -0.5, 0.5, mstype.float32)
    return -ops.sign(half) * ops.log1p(ops.clamp(ops.abs(half) * -2, -1 + 2.0**-24, None))


def laplace(shape, mean, lambda_param, seed=None):
    """Laplace numbers; mean and scale lambda_param are tensors or numbers that broadcast against shape."""
    return standard_laplace(shape, seed) * lambda_param + mean


def uniform(shape, minval, maxval, seed=None, dtype=mstype.float32):
    """Uniform numbers in [minval, maxval): tensors that broadcast against shape; integers for an integer dtype."""
    with _seeded(seed, "uniform"):
        unit = _uniform(_shape(shape, "uniform"), 0.0, 1.0, mstype.float64 if dtype == mstype.int32 else mstype.float32)
    if dtype == mstype.int32:
        return (ops.floor(unit * (maxval - minval)) + minval).astype(mstype.int32)
    if not dtype.is_floating_point:
        raise TypeError(f"For 'uniform', 'dtype' must be Int32 or a floating dtype, but got {dtype}.")
    return (unit * (maxval - minval) + minval).astype(dtype)


def multinomial(input, num_samples, replacement=True, seed=None):
    """Classes drawn in proportion to weights.

    Args:
        input (Tensor): weights that are not negative, [C] or [N, C].
        num_samples (int): how many are drawn from each row.
        replacement (bool): whether a class can be drawn again.
        seed (int, optional): of these numbers alone.
    Returns:
        Tensor: int32 [num_samples] or [N, num_samples].
    """
    weights = _check.floating(input, "input", "multinomial").astype(mstype.float64)
    _check.integer(num_samples, "num_samples", "multinomial", 1)
    if input.ndim not in (1, 2):
        raise ValueError(f"For 'multinomial', 'input' must be a vector or a matrix, but got shape {input.shape}.")
    if not bool(ops.isfinite(weights).all()) or weights.min().item() < 0 or weights.sum(-1).min().item() <= 0:
        raise ValueError("For 'multinomial', each row must have finite weights, none negative, not all 0.")
    if not replacement:
        if num_samples > int((weights > 0).sum(-1).min().item()):
            raise ValueError("For 'multinomial' without replacement, a row has fewer positive weights than samples.")
        # The largest log(w) + Gumbel noise are a sample without replacement: Gumbel-top-k, Vieira 2014.
        with _seeded(seed, "multinomial"):
            noise = -ops.log(-ops.log(_uniform(input.shape, 2.0**-53, 1.0, mstype.float64)))
        return ops.topk(ops.log(weights) + noise, num_samples, -1)[1].astype(mstype.int32)
    with _seeded(seed, "multinomial"):
        place = _uniform((*input.shape[:-1], num_samples), 0.0, 1.0, mstype.float64)
    running = ops.cumsum(weights, input.ndim - 1)
    return ops.searchsorted(running, place * running[..., -1:], out_int32=True, right=True)


def rand(*size, dtype=None, seed=None):
    """Uniform numbers in [0, 1)."""
    size = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    with _seeded(seed, "rand"):
        return _uniform(_shape(size or (1,), "rand"), 0.0, 1.0, mstype.float32).astype(_float_dtype(dtype, "rand"))


def rand_like(input, seed=None, *, dtype=None):
    """Uniform numbers in [0, 1) in the shape of input."""
    return rand(_check.tensor(input, "input", "rand_like").shape, dtype=dtype or input.dtype, seed=seed)


def randn(*size, dtype=None, seed=None):
    """Standard normal numbers."""
    size = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    with _seeded(seed, "randn"):
        return _normal(_shape(size or (1,), "randn"), 0.0, 1.0, mstype.float32).astype(_float_dtype(dtype, "randn"))


def randn_like(input, seed=None, *, dtype=None):
    """Standard normal numbers in the shape of input."""
    return randn(_check.tensor(input, "input", "randn_like").shape, dtype=dtype or input.dtype, seed=seed)


def randint(low, high, size, seed=None, *, dtype=None):
    """Integers in [low, high), int64 by default."""
    _check.integer(low, "low", "randint"), _check.integer(high, "high", "randint")
    if low >= high:
        raise ValueError(f"For 'randint', 'low' must be below 'high', but got {low} and {high}.")
    with _seeded(seed, "randint"):
        return _integers(_shape(size, "randint"), low, high, mstype.int64).astype(dtype or mstype.int64)


def randint_like(input, low, high, seed=None, *, dtype=None):
    """Integers in [low, high) in the shape of input, int64 by default."""
    return randint(low, high, _check.tensor(input, "input", "randint_like").shape, seed, dtype=dtype or mstype.int64)


def randperm(n, seed=0, offset=0, dtype=mstype.int64):
    """A permutation of 0 ... n - 1; seed and offset other than 0 choose which."""
    n = n.item() if isinstance(n, _core.Tensor) else n
    _check.integer(n, "n", "randperm", 0), _check.integer(offset, "offset", "randperm", 0)
    if seed in (0, -1) and not offset:
        return _permutation(n, mstype.int64).astype(dtype)
    with _seeded(seed + (offset << 32), "randperm"):
        return _permutation(n, mstype.int64).astype(dtype)


def shuffle(x, seed=None):
    """The slices along the first axis in a random order."""
    if _check.tensor(x, "x", "shuffle").ndim == 0:
        return x
    with _seeded(seed, "shuffle"):
        order = _permutation(x.shape[0], mstype.int64)
    return x[order]
