"""Strings with tensors in them: f-strings and `str.format`."""

import string

from morel import _core
from morel.compiler.source import Unsupported


def refuse_text(*_args):
    raise Unsupported(
        "a string with a tensor in it has its characters when the graph runs: a compiled function can give it, print it, raise it "
        "and put it into another string"
    )


class Text(str):
    """A string with tensors in it: where the graph gives, prints or raises it, it has their values; an error while the graph is
    built tells their types."""

    parts = ()
    __len__ = __iter__ = __getitem__ = __contains__ = __mul__ = __rmul__ = __mod__ = refuse_text
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = refuse_text
    __hash__ = str.__hash__

    def __add__(self, other):
        return Text.of([self, other]) if isinstance(other, str) else NotImplemented

    def __radd__(self, other):
        return Text.of([other, self]) if isinstance(other, str) else NotImplemented

    @classmethod
    def of(cls, parts):
        """The parts - strings, texts and tensors - one after another; a plain string where the values are known."""
        if not any(isinstance(part, Text) or _is_unknown(part) for part in parts):
            return "".join(map(str, parts))
        types = [
            f"Tensor(shape={list(part.shape)}, dtype={part.dtype})" if _is_unknown(part) else str(part)
            for part in parts
        ]
        out = cls("".join(types))
        # The values of now, whatever changes in place later.
        out.parts = [_core.graph_value(part) if _is_unknown(part) else part for part in parts]
        return out


def _is_unknown(value):
    return isinstance(value, _core.Tensor) and _core.is_symbolic(value)


def formatted(value, conversion, spec):
    """A value as a field of a format; ``conversion`` is one of "s", "r", "a" and None."""
    if isinstance(value, Text) or _is_unknown(value):
        if spec or conversion not in (None, "s"):
            raise Unsupported("how a tensor is written ('!r', ':.2f') cannot be chosen in a compiled function")
        return Text.of([value])
    convert = {"s": str, "r": repr, "a": ascii}.get(conversion, lambda v: v)
    return format(convert(value), spec)


def join_text(separator, parts):
    """``separator.join(parts)``."""
    parts = list(parts)
    plain = separator.join(parts)  # refuses what is no string
    if not any(isinstance(part, Text) for part in parts):
        return plain
    return Text.of([piece for part in parts for piece in (separator, part)][1:])


def format_text(template, args, kwargs):
    """``template.format(*args, **kwargs)`` of values among which there are tensors."""
    formatter, parts, count = string.Formatter(), [], 0
    for literal, field, spec, conversion in formatter.parse(template):
        parts.append(literal)
        if field is None:
            continue
        if not field or field[0] in ".[":  # they are counted
            field, count = f"{count}{field}", count + 1
        value, _ = formatter.get_field(field, args, kwargs)
        parts.append(formatted(value, conversion, formatter.vformat(spec, args, kwargs)))
    return Text.of(parts)
