"""Strings with tensors in them: f-strings and `str.format`."""

import string

from morel import _core
from morel.compiler.source import Unsupported


class Text(str):
    """A string with tensors in it: where the graph gives or prints it, it has their values; elsewhere it tells their types."""

    parts = ()

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
        out.parts = parts
        return out


def _is_unknown(value):
    return isinstance(value, _core.Tensor) and _core.is_symbolic(value)


def formatted(value, conversion, spec):
    """A value as a field of a format; ``conversion`` is one of "s", "r", "a" and None."""
    if _is_unknown(value):
        if spec or conversion not in (None, "s"):
            raise Unsupported("how a tensor is written ('!r', ':.2f') cannot be chosen in a compiled function")
        return Text.of([value])
    if isinstance(value, Text) and not spec and conversion in (None, "s"):
        return value
    convert = {"s": str, "r": repr, "a": ascii}.get(conversion, lambda v: v)
    return format(convert(value), spec)


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
