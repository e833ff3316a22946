"""Argument checks that the layers share; each names the class and the argument, and returns the value."""


def kind_name(kinds):
    """How a type or a tuple of types is called in a message."""
    if isinstance(kinds, tuple):
        return "[" + ", ".join(kind.__name__ for kind in kinds) + "]"
    return kinds.__name__


def check_type(value, kinds, name, cls):
    """`value` is of one of the types; a bool passes only where bool is asked for."""
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in wanted):
        raise TypeError(f"For '{cls}', the '{name}' must be {kind_name(kinds)}, but got {type(value).__name__}.")
    return value


def check_bool(value, name, cls):
    """A bool."""
    if not isinstance(value, bool):
        raise TypeError(f"For '{cls}', the '{name}' must be a bool, but got {type(value).__name__}.")
    return value


def check_int(value, name, cls, at_least=None):
    """An int that is at least `at_least`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"For '{cls}', the '{name}' must be int, but got '{type(value).__name__}'.")
    if at_least is not None and value < at_least:
        relation = {1: "> 0", 0: ">= 0"}.get(at_least, f">= {at_least}")
        raise ValueError(f"For '{cls}', the '{name}' must be int and must {relation}, but got '{value}'.")
    return value


def check_positive_int(value, name, cls):
    """An int above zero."""
    return check_int(value, name, cls, 1)


def check_float(value, name, cls, low=None, high=None, bounds="[]"):
    """A float or int within the bounds: ``"[]"`` inclusive, ``"()"`` exclusive and so on; returned as float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"For '{cls}', the '{name}' must be float, but got '{type(value).__name__}'.")
    below = low is not None and (value < low or (bounds[0] == "(" and value == low))
    above = high is not None and (value > high or (bounds[1] == ")" and value == high))
    if below or above or value != value:
        shown = f"{bounds[0]}{'-inf' if low is None else low}, {'inf' if high is None else high}{bounds[1]}"
        raise ValueError(f"For '{cls}', the '{name}' must be a number in range {shown}, but got {value}.")
    return float(value)


def check_string(value, choices, name, cls):
    """One of the strings `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"For '{cls}', the '{name}' must be str and must be in '{list(choices)}', but got '{value}'.")
    return value


def int_tuple(value, count, name, cls, at_least=1):
    """An int repeated `count` times, or a tuple or list of `count` ints (or of one); each at least `at_least`."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = (value,) * count
    elif not isinstance(value, (tuple, list)):
        raise TypeError(f"For '{cls}', the '{name}' must be int or tuple(int), but got {type(value).__name__}.")
    if len(value) == 1:
        value = tuple(value) * count
    if len(value) != count:
        raise ValueError(f"For '{cls}', the '{name}' must be an int or a tuple of {count} ints, but got {value}.")
    for item in value:
        check_int(item, f"{name} item", cls, at_least)
    return tuple(value)


def check_rank(x, ranks, cls):
    """The input has one of the numbers of dimensions."""
    if x.ndim not in ranks:
        wanted = " or ".join(str(rank) for rank in ranks)
        raise ValueError(f"For '{cls}', the input must have {wanted} dims, but got {x.ndim}: shape {tuple(x.shape)}.")
