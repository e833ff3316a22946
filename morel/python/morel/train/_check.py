"""Checks of arguments that several modules of this package make."""


def int_at_least(value, low, name=None):
    """Raises unless `value` is an int of at least `low`."""
    what = f"'{name}'" if name else "input value"
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"The {what} must be int, but got '{type(value).__name__}'")
    if value < low:
        sign = "> 0" if low == 1 else f">= {low}"
        raise ValueError(f"The {what} must be int and must {sign}, but got '{value}' with type 'int'.")
    return value


def is_bool(value, name=None):
    """Raises unless `value` is a bool."""
    if not isinstance(value, bool):
        what = f"'{name}'" if name else "input value"
        raise TypeError(f"The {what} must be a bool, but got {type(value).__name__}.")
    return value


def number(value, name):
    """Raises unless `value` is an int or a float."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise TypeError(f"The '{name}' must be int or float, but got '{type(value).__name__}'.")
    return value
