"""Functions that call themselves under a condition on a tensor.

Such a function becomes a graph of its own, with its arguments and the tensors of outside that it reads as operands. What it
returns is found by building it again until that settles: first from the branches that end alone, then with calls of it.
"""

import sys
import threading

from morel import _core
from morel.compiler.source import Unsupported, annotated
from morel.compiler.tree import flatten, unflatten
from morel.context import get_context

MAX_TRIES = 8
# Of Python, for the interpreter: one call in the user's code takes up to forty of its own.
FRAMES_OF_A_CALL = 40

_state = threading.local()


class Unsettled(BaseException):
    """Leaves a branch that needs the result of a call of which nothing is known yet."""

    def __init__(self, call):
        self.call = call


class Restart(BaseException):
    """Leaves a graph in which a function turned out to call itself: it is built again."""


class Session:
    """What is known while one function is compiled; as a context manager it is the thread's."""

    def __init__(self):
        self.recursive = set()  # functions, with the kinds of their arguments, that call themselves
        self.calls = []  # those that are being run

    def __enter__(self):
        self.outer, _state.session = getattr(_state, "session", None), self
        self.limit = sys.getrecursionlimit()
        sys.setrecursionlimit(self.limit + FRAMES_OF_A_CALL * get_context("max_call_depth"))
        return self

    def __exit__(self, *_):
        _state.session = self.outer
        sys.setrecursionlimit(self.limit)
        self.calls.clear()

    def compile(self, build):
        """Calls ``build`` until no further function turns out to call itself."""
        while True:
            try:
                return build()
            except Restart:
                self.calls.clear()
            except RecursionError as error:
                raise Unsupported(
                    "the function is nested too deeply. A loop over Python values, such as 'while True', that a tensor ends "
                    "must have the condition in a 'while'; set_recursion_limit allows more"
                ) from error


class _Call:
    def __init__(self, session, key, source):
        self.key, self.source, self.name = key, source, source.name.rsplit(".", 1)[-1]
        self.level, self.depth = len(session.calls), _core.graph_depth()
        self.function = None  # its graph, if it has one
        self.imports = []
        self.known = None  # (structure, leaves) of what it returns; of tensors only the types count

    def again(self, tensors):
        """A call of the function from within itself."""
        if self.known is None:
            raise Unsettled(self)
        return self.emit(tensors)

    def emit(self, tensors):
        structure, leaves = self.known
        results = iter(_core.graph_call(self.function, [*tensors, *self.imports]))
        return unflatten(structure, [next(results) if isinstance(leaf, _core.Tensor) else leaf for leaf in leaves])

    def build(self, leaves, structure, run):
        with annotated(self.source, self.source.node):
            return self._build(leaves, structure, run)

    def _build(self, leaves, structure, run):
        given = _tensors(leaves)
        for _ in range(MAX_TRIES):
            self.function = _core.graph_begin_function(self.name)
            before, keep = self.known, False
            try:
                found, graph = self._run(leaves, structure, run)
                keep = before is not None and _agree(before, found) and len(graph.imports) == len(self.imports)
                self.known, self.imports = found, graph.imports
            except Unsettled as unsettled:
                if unsettled.call is not self:
                    raise
                raise Unsupported(
                    f"'{self.name}' calls itself on every path; a compiled function needs one on which it ends"
                ) from None
            finally:
                if not keep:
                    _core.graph_drop_function(self.function)
            if keep:
                return self.emit(given)
        raise TypeError(f"the types of what '{self.name}' returns, which calls itself, do not settle")

    def _run(self, leaves, structure, run):
        """One try: (what it returns, its graph)."""
        if self.known is not None:
            _core.graph_declare_results(self.function, _tensors(self.known[1]))
        try:
            inside = [_core.graph_parameter(leaf) if isinstance(leaf, _core.Tensor) else leaf for leaf in leaves]
            for tensor in self.imports:
                _core.graph_import(tensor)
            results, tree = flatten(run(unflatten(structure, inside)))
            if not all(_core.graph_is_parameter(tensor) for tensor in _tensors(inside)):
                raise Unsupported(f"'{self.name}', which calls itself, changes an argument in place")
            return (tree, results), _core.graph_end(_tensors(results))
        except BaseException:
            _core.graph_abort()
            raise


def _tensors(leaves):
    return [leaf for leaf in leaves if isinstance(leaf, _core.Tensor)]


def _agree(a, b):
    """Whether two results have the same structure, types of tensors, and other values."""
    if a[0] != b[0]:
        return False
    return all(
        (tuple(x.shape), x.dtype) == (tuple(y.shape), y.dtype)
        if isinstance(x, _core.Tensor) and isinstance(y, _core.Tensor)
        else type(x) is type(y) and (x is y or x == y)
        for x, y in zip(a[1], b[1])
    )


def call(source, outer, names, kind, run):
    """``run(names)``, or a call of the graph of the function where it is one that calls itself."""
    leaves, structure = flatten(names)
    session = getattr(_state, "session", None)
    if session is None or not _tensors(leaves):
        return run(names)
    where = (id(source.node), structure, tuple(kind(leaf) for leaf in leaves))
    key = (where, id(outer))
    for active in reversed(session.calls):
        if active.key != key:
            continue
        if active.function is not None:
            return active.again(_tensors(leaves))
        if _core.graph_depth() > active.depth:
            session.recursive.add(where)
            raise Restart
        break
    active = _Call(session, key, source)
    session.calls.append(active)
    try:
        return active.build(leaves, structure, run) if where in session.recursive else run(names)
    finally:
        del session.calls[active.level :]
