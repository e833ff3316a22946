"""Lists, dicts, sets and variables of outside stay as they are under a condition on a tensor, where every part is traced."""

import ast
import contextlib
import functools
import threading
import types

from morel import _core
from morel.compiler.source import Unsupported
from morel.compiler.tree import flatten, unflatten

_state = threading.local()  # .active: the reaches of the conditions on tensors under which code runs, outer ones first

_LEAVES = (_core.Tensor, int, float, complex, str, bytes, type(None), type, types.ModuleType)


@functools.cache
def _names_in(node):
    return frozenset(part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def _items(container):
    return list(container.items() if isinstance(container, dict) else container)


class _Snapshot:
    """What a container holds now."""

    def __init__(self, name, container):
        self.name, self.container, self.items = name, container, _items(container)

    def changed(self):
        now = _items(self.container)
        if isinstance(self.container, dict):
            return len(now) != len(self.items) or any(
                a is not c or b is not d for (a, b), (c, d) in zip(now, self.items)
            )
        return len(now) != len(self.items) or any(a is not b for a, b in zip(now, self.items))

    def restore(self):
        now = _items(self.container)
        self.container.clear()
        (self.container.extend if isinstance(self.container, list) else self.container.update)(self.items)
        return now

    def describe(self, now):
        if self.name is not None:
            return f"the {type(self.container).__name__} '{self.name}'"
        before, now = dict(self.items), dict(now)
        name = next(name for name in {**before, **now} if before.get(name, self) is not now.get(name, self))
        return f"the variable '{name}'"


class _Reach:
    """Snapshots of the containers that a frame can reach: ``local`` ones were made by its call, ``outer`` ones live longer."""

    def __init__(self, frame, assigns):
        self.outer, self.local = [], []
        self._seen = {}  # id -> object, which keeps the id valid
        self._globals = frame.globals
        if assigns:
            self._seen[id(frame.names)] = frame.names
        outer = []
        self._add_variables(frame.outer if assigns else frame, outer)
        self._walk([*outer, *frame.arguments.items()], self.outer)
        self.add_source(frame.source)
        self._walk(list(frame.names.items()), self.local)

    def add_source(self, source):
        """What a function reads from outside of itself."""
        read, closure = _names_in(source.node), source.closure
        self.add([(name, closure[name]) for name in read if name in closure])
        self.add([(name, source.globals[name]) for name in read - closure.keys() if name in source.globals])

    def add(self, items):
        self._walk(items, self.outer)

    def _add_variables(self, frame, pending):
        """The names of a frame and of those around it, which nested functions may assign."""
        while frame is not None and id(frame.names) not in self._seen:
            self._seen[id(frame.names)] = frame.names
            self.outer.append(_Snapshot(None, frame.names))
            pending += frame.names.items()
            frame = frame.outer

    def _walk(self, pending, found):
        while pending:
            name, item = pending.pop()
            if isinstance(item, _LEAVES) or id(item) in self._seen:
                continue
            self._seen[id(item)] = item
            if isinstance(item, (list, dict, set)):
                found.append(_Snapshot(name, item))
            pending += self._parts(name, item)

    def _parts(self, name, item):
        if isinstance(item, dict):
            return [(f"{name}[{key!r}]", part) for key, part in item.items() if not isinstance(part, _LEAVES)]
        if isinstance(item, (list, tuple)):
            return [(f"{name}[{at}]", part) for at, part in enumerate(item) if not isinstance(part, _LEAVES)]
        if isinstance(item, types.CellType):
            try:
                return [(name, item.cell_contents)]
            except ValueError:  # not assigned yet
                return []
        if isinstance(item, types.MethodType):
            return [(name, item.__self__), (name, item.__func__)]
        if isinstance(item, types.FunctionType):
            return self._parts_of_function(item)
        if hasattr(item, "construct") or not type(item).__module__.startswith("morel."):
            return [(f"{name}.{key}", part) for key, part in getattr(item, "__dict__", {}).items()]
        frame = getattr(item, "outer", None)  # of a function that the interpreter made
        found = []
        self._add_variables(frame, found)
        return found

    def _parts_of_function(self, function):
        if function.__globals__ is not self._globals:
            return []
        code = function.__code__
        read = [(name, self._globals[name]) for name in code.co_names if name in self._globals]
        return [*zip(code.co_freevars, function.__closure__ or ()), *read]


def under_condition():
    """Whether a condition on a tensor decides on the code that runs."""
    return bool(getattr(_state, "active", ()))


def enter(source):
    """Notice that a function runs: until now nothing that only it can reach has changed."""
    for reach in getattr(_state, "active", ()):
        reach.add_source(source)


def enter_value(name, value):
    """The same for a value of another module."""
    for reach in getattr(_state, "active", ()):
        reach.add([(name, value)])


@contextlib.contextmanager
def _active(reach):
    before = getattr(_state, "active", ())
    _state.active = (*before, reach)
    try:
        yield
    finally:
        _state.active = before


def run_guarded(frame, where, run, assigns=False, leaves=False):
    """Runs a part of a function under a condition on a tensor; what it gives: (names, what it returns).

    ``assigns``: the part may assign the frame's names. ``leaves``: it takes along the rest of the function, so that what its
    call has made itself may change: nobody else sees it.
    """
    reach = _Reach(frame, assigns)
    try:
        with _active(reach):
            names, result = run()
        if leaves and result is not None and any(snapshot.changed() for snapshot in reach.local):
            values, structure = flatten(result.value)
            result.value = unflatten(structure, values)  # lists of its own, which stay
    finally:
        changed = [(snapshot, snapshot.restore()) for snapshot in (*reach.outer, *reach.local) if snapshot.changed()]
    for snapshot, now in changed:
        if not leaves or snapshot in reach.outer:
            raise Unsupported(
                f"{snapshot.describe(now)} is changed within {where} on a tensor, which a graph cannot do under a condition; "
                "make a new one and assign it to the name, or return the new values"
            )
    return names, result
