"""Functions that map functions: HyperMap, Map, MultitypeFuncGraph, partial. Other names are those of morel.ops."""

import functools
import sys

from morel import _core
from morel.common import dtype as mstype

__all__ = ["HyperMap", "Map", "MultitypeFuncGraph", "Partial", "add_flags", "partial", "switch", "switch_layer"]

_KINDS = {
    "Tensor": lambda value: isinstance(value, _core.Tensor),
    "Number": lambda value: isinstance(value, (bool, int, float)),
    "Bool": lambda value: isinstance(value, bool),
    "Int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "Float": lambda value: isinstance(value, float),
    "String": lambda value: isinstance(value, str),
    "None": lambda value: value is None,
    "Tuple": lambda value: isinstance(value, tuple),
    "List": lambda value: isinstance(value, list),
    "Dict": lambda value: isinstance(value, dict),
    "Function": lambda value: callable(value) and not isinstance(value, _core.Tensor),
    # Kinds that no value has here.
    "RowTensor": lambda value: False,
    "COOTensor": lambda value: False,
    "CSRTensor": lambda value: False,
    "MapTensor": lambda value: False,
}
_ALIASES = {"str": "String", "int": "Int", "float": "Float", "bool": "Bool", "tensor": "Tensor", "number": "Number"}


def _kind_name(kind):
    from morel.common import dtype as mstype

    if kind is mstype.number:
        return "Number"
    name = kind if isinstance(kind, str) else kind.__name__ if isinstance(kind, type) else str(kind)
    name = _ALIASES.get(name, name)
    if name not in _KINDS:
        raise TypeError(f"For 'MultitypeFuncGraph', the kind {kind!r} is not one of {', '.join(_KINDS)}.")
    return name


def _call(fn, args):
    """``fn(*args)``; while a graph is built its source is read, as that of any function there."""
    if not _core.graph_active():
        return fn(*args)
    from morel.compiler import call_in_graph

    return call_in_graph(fn, args)


class MultitypeFuncGraph:
    """A function with several implementations, chosen by the kinds of its arguments.

    Args:
        name (str): its name.
        read_value (bool): whether graph mode may look at constants.

    Example:
        >>> from morel import ops
        >>> add = ops.MultitypeFuncGraph("add")
        >>> @add.register("Tensor", "Number")
        ... def add_number(x, y):
        ...     return x + y
        >>> add(ops.ones(2), 3)
    """

    def __init__(self, name, read_value=False):
        if not isinstance(name, str):
            raise TypeError(f"For 'MultitypeFuncGraph', 'name' must be str, but got {type(name).__name__}.")
        self.name, self.read_value, self.entries = name, read_value, []

    def register(self, *type_names):
        """Decorator of the implementation for arguments of these kinds: "Tensor", "Number", "Tuple" and so on."""
        names = tuple(map(_kind_name, type_names))

        def add(fn):
            self.entries.append((names, fn))
            return fn

        return add

    def __call__(self, *args):
        for names, fn in self.entries:
            if len(names) == len(args) and all(_KINDS[name](arg) for name, arg in zip(names, args)):
                return _call(fn, args)
        known = ["(" + ", ".join(names) + ")" for names, _ in self.entries]
        raise ValueError(
            f"For '{self.name}', no implementation is registered for ({', '.join(type(arg).__name__ for arg in args)}); "
            f"there are {', '.join(known) or 'none'}."
        )

    def __repr__(self):
        return self.name


class _Mapper:
    _deep = True

    def __init__(self, ops=None, reverse=False):
        if ops is not None and not callable(ops):
            raise TypeError(f"For '{type(self).__name__}', 'ops' must be callable, but got {type(ops).__name__}.")
        if not isinstance(reverse, bool):
            raise TypeError(f"For '{type(self).__name__}', 'reverse' must be bool, but got {type(reverse).__name__}.")
        self.ops, self.reverse = ops, reverse

    def __call__(self, *args):
        if self.ops is None:
            if not args or not callable(args[0]):
                raise TypeError(f"For '{type(self).__name__}' without 'ops', the first argument must be a function.")
            return self._map(args[0], args[1:], True)
        return self._map(self.ops, args, True)

    def _map(self, fn, args, outer):
        first = args[0] if args else None
        if not isinstance(first, (tuple, list, dict)) or not (outer or self._deep):
            return _call(fn, args)
        name = type(self).__name__
        kind = dict if isinstance(first, dict) else (tuple, list)
        if any(not isinstance(arg, kind) or len(arg) != len(first) for arg in args):
            raise ValueError(
                f"For '{name}', the arguments must be sequences of the same length, or dicts of the same keys."
            )
        if isinstance(first, dict):
            if any(arg.keys() != first.keys() for arg in args):
                raise ValueError(f"For '{name}', the dicts must have the same keys.")
            return tuple(self._map(fn, [arg[key] for arg in args], False) for key in first)
        rows = list(zip(*args))
        if self.reverse:
            rows.reverse()
        found = [self._map(fn, list(row), False) for row in rows]
        return tuple(reversed(found) if self.reverse else found)


class HyperMap(_Mapper):
    """Applies a function to the elements of sequences side by side, also of nested ones; returns tuples.

    Args:
        ops (function, optional): the function; by default it is the first argument of the call.
        reverse (bool): begin with the last elements; the results keep their places.
    """


class Map(_Mapper):
    """Applies a function to the elements of sequences side by side; elements may be sequences. Arguments as `HyperMap`."""

    _deep = False


def partial(fn, *args, **kwargs):
    """`fn` with its first arguments given."""
    if not callable(fn):
        raise TypeError(f"For 'partial', 'fn' must be a function, but got {type(fn).__name__}.")
    return functools.partial(fn, *args, **kwargs)


def switch(cond, true_branch, false_branch):
    """`true_branch` where `cond`, a tensor of one bool, holds, else `false_branch`: tensors, numbers or functions."""
    index = cond.astype(mstype.int32) if isinstance(cond, _core.Tensor) else bool(cond)
    return switch_layer(index, (false_branch, true_branch))


def switch_layer(index, layers):
    """The function of `layers` at a place that a tensor of one integer gives; in a compiled function each has a branch."""
    if _core.graph_active():
        from morel.compiler import call_in_graph
        from morel.compiler.choice import item_at

        return item_at(call_in_graph, tuple(layers), index)
    return layers[int(index)]


class Partial:
    """`partial` as a class: ``Partial()(fn, *args)``."""

    def __call__(self, fn, *args, **kwargs):
        return partial(fn, *args, **kwargs)


def add_flags(fn=None, **flags):
    """Decorator that keeps wishes about compilation; they change no values."""
    return (lambda function: function) if fn is None else fn


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "base":
        return sys.modules[__name__]
    from morel import ops

    return getattr(ops, name)
