"""Random tensors straight from the random operators; the numbers follow `set_seed`."""

from morel.api import make_operator

_operators = {}


def _draw(name, size, first, second, dtype, *further):
    if name not in _operators:
        _operators[name] = make_operator(name, name)
    if dtype.is_floating_point:
        return _operators[name](size, first, second, *further, dtype)
    from morel.common import dtype as mstype

    return _operators[name](size, first, second, *further, mstype.float32).astype(dtype)


def uniform(size, low, high, dtype):
    """Uniform on [low, high)."""
    return _draw("random_uniform", size, low, high, dtype)


def normal(size, mean, deviation, dtype):
    """Normal."""
    return _draw("random_normal", size, mean, deviation, dtype)


def truncated_normal(size, mean, deviation, low, high, dtype):
    """Normal, restricted to [low, high]; the operator counts its limits in deviations from the mean."""
    if deviation == 0:
        from morel import ops

        return ops.full(size, min(max(mean, low), high), dtype)
    return _draw(
        "random_truncated_normal", size, mean, deviation, dtype, (low - mean) / deviation, (high - mean) / deviation
    )
