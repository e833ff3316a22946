"""What a graph relies on: Python values that the code reads, and the kinds of its arguments."""

import contextlib
import threading

from morel import _core
from morel.common.structure import STRUCTURE, watch

_recorder = threading.local()
_PLAIN = (bool, int, float, str, type(None))


@contextlib.contextmanager
def recorded_facts():
    """What Python values, and which tensors, the code within relies on: (owner, name, value).

    An owner is a cell, the cell of a closure, or the dict of a module's globals.
    """
    before = getattr(_recorder, "facts", None)
    _recorder.facts = facts = {}
    try:
        yield facts
    finally:
        _recorder.facts = before


def rely_on(owner, name, value):
    facts = getattr(_recorder, "facts", None)
    if isinstance(value, _core.Tensor):
        known = not _core.is_symbolic(value)
    else:
        known = isinstance(value, _PLAIN)
    if facts is not None and known:
        facts.setdefault((id(owner), name), (owner, name, value))


def relied_on(owner, name):
    """Whether that is known already; also where nobody asks."""
    facts = getattr(_recorder, "facts", None)
    return facts is None or (id(owner), name) in facts


def rely_on_structure(owner):
    """The children, hooks and precision of a cell, or whether a Parameter is trained."""
    facts = getattr(_recorder, "facts", None)
    if facts is not None:
        watch(owner)
        facts.setdefault((id(STRUCTURE), "version"), (STRUCTURE, "version", STRUCTURE["version"]))


def kind_of(leaf):
    """What a graph depends on of an argument: number of axes and dtype of a tensor, the value of anything else."""
    if isinstance(leaf, _core.Tensor):
        return (leaf.ndim, leaf.dtype, type(leaf))
    if isinstance(leaf, float):
        return (float, leaf.hex())  # tells -0.0 from 0.0, and NaN equals itself
    try:
        hash(leaf)
    except TypeError:
        return id(leaf)  # who keeps the kind keeps the object alive
    return (type(leaf), leaf)


def kind_with_sizes(leaf):
    """The same with the sizes of a tensor, which may be expressions."""
    return (kind_of(leaf), _core.describe(leaf)) if isinstance(leaf, _core.Tensor) else kind_of(leaf)
