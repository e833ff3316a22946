"""Checks of arguments that several families share."""

from morel import _core


def values_known():
    """Whether values can be looked at: not while a function is compiled."""
    return not _core.graph_active()


def tensor(value, name, function):
    """`value`, which must be a tensor."""
    if not isinstance(value, _core.Tensor):
        raise TypeError(f"For '{function}', '{name}' must be a Tensor, but got {type(value).__name__}.")
    return value


def floating(value, name, function):
    """`value`, which must be a tensor of floating or complex numbers."""
    tensor(value, name, function)
    if not (value.dtype.is_floating_point or value.dtype.is_complex):
        raise TypeError(f"For '{function}', '{name}' must be of a floating or complex dtype, but got {value.dtype}.")
    return value


def as_float(value):
    """Integers and booleans as float32, as the operators of real functions take them."""
    if value.dtype.is_floating_point or value.dtype.is_complex:
        return value
    return value.astype(_core.dtype_named("Float32"))


def integral(value, name, function):
    """`value`, which must be a tensor of integers."""
    tensor(value, name, function)
    if value.dtype.is_floating_point or value.dtype.is_complex or str(value.dtype) == "Bool":
        raise TypeError(f"For '{function}', '{name}' must be of an integer dtype, but got {value.dtype}.")
    return value


def integer(value, name, function, least=None):
    """`value`, which must be an int, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"For '{function}', '{name}' must be int, but got {type(value).__name__}.")
    if least is not None and value < least:
        raise ValueError(f"For '{function}', '{name}' must be at least {least}, but got {value}.")
    return value


def axis(value, rank, name, function):
    """`value` as an axis in [0, rank)."""
    integer(value, name, function)
    if not -rank <= value < max(rank, 1):
        raise ValueError(f"For '{function}', '{name}' must be in [{-rank}, {rank}), but got {value}.")
    return value % rank if rank else 0


def one_of(value, choices, name, function):
    """`value`, which must be one of the choices."""
    if value not in choices:
        raise ValueError(
            f"For '{function}', '{name}' must be one of {', '.join(map(repr, choices))}, but got {value!r}."
        )
    return value


def tensors(values, name, function):
    """`values` as a tuple, which must be a tuple or list of tensors, not empty."""
    if not isinstance(values, (tuple, list)):
        raise TypeError(
            f"For '{function}', '{name}' must be a tuple or list of Tensors, but got {type(values).__name__}."
        )
    if not values:
        raise ValueError(f"For '{function}', '{name}' must hold a tensor.")
    return tuple(tensor(value, f"{name}[{idx}]", function) for idx, value in enumerate(values))
