"""Argument checks under MindSpore's names; each returns the value."""

import functools
import inspect
import operator
import re

from morel.nn._check import kind_name

_RELATIONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
EQ, NE, LT, LE, GT, GE = _RELATIONS
INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH = "()", "[)", "(]", "[]"


def _subject(name, operator_name):
    return (f"For '{operator_name}', the " if operator_name else "The ") + (f"'{name}'" if name else "input value")


def _check_kind(value, kinds, name, operator_name):
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise TypeError(
            f"{_subject(name, operator_name)} must be {kind_name(kinds)}, but got '{type(value).__name__}': {value!r}."
        )
    return value


def _check_relation(value, bound, rel, kind, name, operator_name):
    _check_kind(value, kind, name, operator_name)
    if not _RELATIONS[rel](value, bound):
        raise ValueError(
            f"{_subject(name, operator_name)} must be {kind.__name__} and must {rel} {bound}, but got '{value}' with type "
            f"'{type(value).__name__}'."
        )
    return value


def check_int(arg_value, value, rel, arg_name=None, prim_name=None):
    """An int in a relation, ``">="`` and so on, to `value`."""
    return _check_relation(arg_value, value, rel, int, arg_name, prim_name)


def check_float(arg_value, value, rel, arg_name=None, prim_name=None):
    """A float in a relation to `value`."""
    return _check_relation(arg_value, value, rel, float, arg_name, prim_name)


def _of_sign(rel, kind):
    def check(arg_value, arg_name=None, prim_name=None):
        return _check_relation(arg_value, 0, rel, kind, arg_name, prim_name)

    check.__doc__ = f"A {kind.__name__} that is {rel} 0."
    return check


check_positive_int, check_negative_int = _of_sign(">", int), _of_sign("<", int)
check_non_negative_int, check_non_positive_int = _of_sign(">=", int), _of_sign("<=", int)
check_positive_float, check_negative_float = _of_sign(">", float), _of_sign("<", float)
check_non_negative_float, check_non_positive_float = _of_sign(">=", float), _of_sign("<=", float)


def _check_range(value, low, high, bounds, kind, name, operator_name):
    _check_kind(value, kind, name, operator_name)
    above = value > low or (bounds[0] == "[" and value == low)
    below = value < high or (bounds[1] == "]" and value == high)
    if not (above and below):
        raise ValueError(
            f"{_subject(name, operator_name)} must be in range of {bounds[0]}{low}, {high}{bounds[1]}, but got {value}."
        )
    return value


def check_int_range(arg_value, lower_limit, upper_limit, rel, arg_name=None, prim_name=None):
    """An int between limits; `rel` is one of INC_NEITHER, INC_LEFT, INC_RIGHT, INC_BOTH."""
    return _check_range(arg_value, lower_limit, upper_limit, rel, int, arg_name, prim_name)


def check_float_range(arg_value, lower_limit, upper_limit, rel, arg_name=None, prim_name=None):
    """A float or int between limits."""
    return _check_range(arg_value, lower_limit, upper_limit, rel, (float, int), arg_name, prim_name)


def check_is_int(arg_value, arg_name=None, prim_name=None):
    """An int."""
    return _check_kind(arg_value, int, arg_name, prim_name)


def check_is_float(arg_value, arg_name=None, prim_name=None):
    """A float."""
    return _check_kind(arg_value, float, arg_name, prim_name)


def check_bool(arg_value, arg_name=None, prim_name=None):
    """A bool."""
    return _check_kind(arg_value, bool, arg_name, prim_name)


def check_value_type(arg_name, arg_value, valid_types, prim_name=None):
    """A value of one of the types."""
    return _check_kind(
        arg_value, tuple(valid_types) if isinstance(valid_types, list) else valid_types, arg_name, prim_name
    )


def check_isinstance(arg_name, arg_value, classes):
    """An instance of one of the classes."""
    if not isinstance(arg_value, classes):
        raise ValueError(f"The '{arg_name}' must be {kind_name(classes)}, but got '{type(arg_value).__name__}'.")
    return arg_value


def check_string(arg_value, valid_values, arg_name=None, prim_name=None):
    """One of the strings."""
    if not isinstance(arg_value, str) or arg_value not in valid_values:
        raise ValueError(f"{_subject(arg_name, prim_name)} must be one of {list(valid_values)}, but got '{arg_value}'.")
    return arg_value


def check_str_by_regular(target, reg=None, flag=re.ASCII, prim_name=None):
    """A string of letters, digits, dots, dashes and underscores, or one that the expression matches."""
    pattern = r"^[0-9a-zA-Z\_\-\.]*$" if reg is None else reg
    if re.match(pattern, target, flag) is None:
        raise ValueError(f"{_subject(None, prim_name)} '{target}' does not match the expression '{pattern}'.")
    return True


def check_input_format(input_param):
    """ "NCHW" alone."""
    if input_param != "NCHW":
        raise ValueError(f"The data format must be 'NCHW', but got {input_param!r}.")
    return input_param


def _expand_tuple(n_dimensions):
    """The function that repeats an int n times; a tuple of n ints stays."""

    def expand(value):
        if isinstance(value, bool) or not isinstance(value, (int, tuple)):
            raise TypeError(f"The value must be int or a tuple of ints, but got {type(value).__name__}.")
        if isinstance(value, int):
            return (value,) * n_dimensions
        for item in value:
            _check_kind(item, int, None, None)
        if len(value) != n_dimensions:
            raise TypeError(f"The tuple must have {n_dimensions} ints, but got {value}.")
        return value

    return expand


once, twice, triple = _expand_tuple(1), _expand_tuple(2), _expand_tuple(3)


def args_type_check(*type_args, **type_kwargs):
    """Decorator that checks the types of arguments; None is always allowed."""

    def decorate(fn):
        signature = inspect.signature(fn)
        wanted = signature.bind_partial(*type_args, **type_kwargs).arguments

        @functools.wraps(fn)
        def checked(*args, **kwargs):
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                if name in wanted and value is not None and not isinstance(value, wanted[name]):
                    raise TypeError(f"The '{name}' must be {wanted[name]}, but got {type(value).__name__}.")
            return fn(*args, **kwargs)

        return checked

    return decorate
