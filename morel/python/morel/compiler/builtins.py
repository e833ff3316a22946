"""Python's functions in graphs, where they differ from themselves: on tensors, and where MindSpore gives something else."""

import builtins
import functools
import sys

from morel import _core
from morel.api import make_operator
from morel.common.marks import DynamicList, DynamicTuple
from morel.compiler.source import Unsupported
from morel.compiler.text import Text, format_text, join_text, refuse_text

_print_tensors = make_operator("print_", "print_")
_raise_tensors = make_operator("raise_", "raise_")


class Raises(BaseException):
    """Leaves a part under a condition on a tensor that raises an error when it runs, as its graph says already."""

    def __init__(self):
        self.depth = _core.graph_depth()


def items_of(iterable):
    """What a loop runs over: the rows of a tensor, or the items of anything else."""
    if isinstance(iterable, _core.Tensor):
        if iterable.ndim == 0:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return [iterable[i] for i in range(iterable.shape[0])]
    return iterable


def _refuse_dynamic(name, sequences):
    if any(isinstance(sequence, (DynamicList, DynamicTuple)) for sequence in sequences):
        raise Unsupported(f"For '{name}', the dynamic length input is unsupported in graph mode")


def _int(_call, value=0, *base):
    return value if type(value) is _core.Size else int(value, *base)


def _str(_call, *args, **options):
    if len(args) == 1 and isinstance(args[0], (Text, _core.Tensor)):
        return Text.of(args)
    return str(*args, **options)


def _len(_call, value):
    return value.shape[0] if isinstance(value, _core.Tensor) and value.ndim else len(value)


def _map(call, fn, *iterables):
    _refuse_dynamic("map", iterables)
    kind = list if isinstance(iterables[0], list) else tuple
    return kind(call(fn, row) for row in zip(*map(items_of, iterables)))


def _filter(call, fn, iterable):
    return [item for item in items_of(iterable) if (item if fn is None else call(fn, (item,)))]


def _sum(_call, iterable, start=0):
    return functools.reduce(lambda total, item: total + item, iter(items_of(iterable)), start)


def _enumerate(_call, iterable, start=0):
    _refuse_dynamic("enumerate", [iterable])
    return tuple(enumerate(items_of(iterable), start))


def _zip(_call, *iterables, **options):
    _refuse_dynamic("zip", iterables)
    return tuple(zip(*map(items_of, iterables), **options))


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


def print_lines(values):
    """What `ops.Print` prints."""
    tensors = []
    lines = [_field(value, tensors, repr if isinstance(value, _core.Tensor) else str) + "\n" for value in values]
    _print_tensors(tensors, "".join(lines))


_TABLE = {
    builtins.enumerate: _enumerate,
    builtins.filter: _filter,
    builtins.int: _int,
    builtins.isinstance: _isinstance,
    builtins.len: _len,
    builtins.list: lambda _call, items=(): list(items_of(items)),
    builtins.map: _map,
    builtins.print: _print,
    builtins.str: _str,
    builtins.sum: _sum,
    builtins.tuple: lambda _call, items=(): tuple(items_of(items)),
    builtins.zip: _zip,
}


def in_graph(fn):
    """The form of one of Python's functions in graphs, which takes the interpreter's `call` first; None: as it is."""
    if not isinstance(fn, (type, type(len))):
        return None
    owner = getattr(fn, "__self__", None)
    if isinstance(owner, Text):
        return refuse_text
    if isinstance(owner, str) and fn.__name__ == "format":
        return lambda _call, *args, **kwargs: format_text(owner, args, kwargs)
    if isinstance(owner, str) and fn.__name__ == "join":
        return lambda _call, parts: join_text(owner, parts)
    return _TABLE.get(fn)
