"""Python's functions in graphs, where they differ from themselves: on tensors, and where MindSpore gives something else."""

import builtins
import functools
import sys

from morel import _core
from morel.api import make_operator
from morel.compiler.source import Unsupported

_print_tensors = make_operator("print_", "print_")
_raise_tensors = make_operator("raise_", "raise_")


class Raises(BaseException):
    """Leaves a part under a condition on a tensor that raises an error when it runs, as its graph says already."""

    def __init__(self):
        self.depth = _core.graph_depth()


class Text(str):
    """An f-string with tensors in it: `print` writes their values when the graph runs, elsewhere it tells their types."""

    parts = ()

    @classmethod
    def of(cls, parts):
        if not any(isinstance(part, (Text, _core.Tensor)) for part in parts):
            return "".join(parts)
        types = [
            f"Tensor(shape={list(part.shape)}, dtype={part.dtype})" if isinstance(part, _core.Tensor) else part
            for part in parts
        ]
        out = cls("".join(types))
        out.parts = parts
        return out


def items_of(iterable):
    """What a loop runs over: the rows of a tensor, or the items of anything else."""
    if isinstance(iterable, _core.Tensor):
        if iterable.ndim == 0:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return [iterable[i] for i in range(iterable.shape[0])]
    return iterable


def _int(_call, value=0, *base):
    return value if type(value) is _core.Size else int(value, *base)


def _len(_call, value):
    return value.shape[0] if isinstance(value, _core.Tensor) and value.ndim else len(value)


def _map(call, fn, *iterables):
    kind = list if isinstance(iterables[0], list) else tuple
    return kind(call(fn, row) for row in zip(*map(items_of, iterables)))


def _filter(call, fn, iterable):
    return [item for item in items_of(iterable) if (item if fn is None else call(fn, (item,)))]


def _sum(_call, iterable, start=0):
    items = items_of(iterable)
    return functools.reduce(lambda total, item: total + item, items, start)


def _enumerate(_call, iterable, start=0):
    return tuple(enumerate(items_of(iterable), start))


def _isinstance(_call, value, kinds):
    wrong = [kind for kind in (kinds if isinstance(kinds, tuple) else (kinds,)) if not isinstance(kind, (type, tuple))]
    if wrong and not hasattr(wrong[0], "__args__"):
        raise TypeError(f"isinstance() arg 2 must be a type or tuple of types, but got {wrong[0]!r}.")
    return isinstance(value, kinds)


def _field(value, tensors, convert=str):
    """The text of a value as a part of a format; its tensors are appended to ``tensors``."""
    if isinstance(value, Text):
        quote = "'" if convert is repr else ""
        return quote + "".join(_field(part, tensors) for part in value.parts) + quote
    if isinstance(value, _core.Tensor) and not hasattr(value, "param_info"):
        tensors.append(value)
        return "{}" if convert is str else "{!r}"
    if type(value) in (list, tuple):
        inner = ", ".join(_field(item, tensors, repr) for item in value)
        return f"[{inner}]" if type(value) is list else f"({inner}{',' * (len(value) == 1)})"
    if type(value) is dict:
        items = (f"{_field(key, tensors, repr)}: {_field(item, tensors, repr)}" for key, item in value.items())
        return "{{" + ", ".join(items) + "}}"
    return convert(value).replace("{", "{{").replace("}", "}}")


def _print(_call, *values, sep=" ", end="\n", file=None, flush=False):
    if file not in (None, sys.stdout):
        raise Unsupported("'print' to a file is not supported in a compiled function")
    tensors = []
    text = _field(" " if sep is None else sep, tensors).join(_field(value, tensors) for value in values)
    _print_tensors(tensors, text + _field("\n" if end is None else end, tensors))


def raise_when_run(error, place):
    """``raise error`` under a condition on a tensor; ``place``: the user's line."""
    error = error() if isinstance(error, type) else error
    kind = type(error).__name__
    if getattr(builtins, kind, None) is not type(error):
        raise Unsupported(
            f"raising {kind} under a condition on a tensor is not supported in a compiled function, only Python's own "
            "exceptions are"
        )
    tensors = []
    text = _field(error.args[0] if len(error.args) == 1 else error.args or "", tensors)
    _raise_tensors(tensors, text + _field(place or "", tensors), kind)
    raise Raises


_TABLE = {
    builtins.enumerate: _enumerate,
    builtins.filter: _filter,
    builtins.int: _int,
    builtins.isinstance: _isinstance,
    builtins.len: _len,
    builtins.list: lambda _call, items=(): list(items_of(items)),
    builtins.map: _map,
    builtins.print: _print,
    builtins.sum: _sum,
    builtins.tuple: lambda _call, items=(): tuple(items_of(items)),
    builtins.zip: lambda _call, *iterables, **options: tuple(zip(*map(items_of, iterables), **options)),
}


def in_graph(fn):
    """The form of one of Python's functions in graphs, which takes the interpreter's `call` first; None: as it is."""
    return _TABLE.get(fn) if isinstance(fn, (type, type(len))) else None
