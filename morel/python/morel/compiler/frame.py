"""The names of one call, and functions that are defined while a graph is built."""

import builtins
import contextlib
import types

from morel.compiler.facts import rely_on
from morel.compiler.source import Unsupported


class Undefined:
    """Stands for a name that one branch of an ``if`` on a tensor (``missing``: the other one) or a loop on a tensor assigns."""

    def __init__(self, name, missing=None):
        self.name, self.missing = name, missing

    def refuse(self):
        if self.missing is None:
            where = "defined in the 'while' loop body cannot be used outside of the loop body."
        else:
            other = "false" if self.missing == "true" else "true"
            where = f"is not defined in {self.missing} branch, but defined in {other} branch."
        raise UnboundLocalError(f"The local variable '{self.name}' {where}")


class Frame:
    """The names of one call. A nested function's frame has its definer's as ``outer``."""

    __slots__ = ("names", "arguments", "outer", "source", "globals", "foreign")

    def __init__(self, source, outer=None, arguments=()):
        self.names = dict(arguments)
        self.arguments = dict(arguments)
        self.outer = outer
        self.source = source
        self.globals = source.globals
        self.foreign = {}  # names declared global or nonlocal -> where they live

    @contextlib.contextmanager
    def aside(self):
        """What is assigned within is gone afterwards; until then the functions defined here see it too."""
        before = dict(self.names)
        try:
            yield
        finally:
            self.names.clear()
            self.names.update(before)

    def load(self, name):
        frame = self
        while frame is not None:
            if name in frame.names and name not in frame.foreign:
                value = frame.names[name]
                if isinstance(value, Undefined):
                    value.refuse()
                return value
            frame = frame.outer
        if name in self.source.closure:
            cell = self.source.closure[name]
            rely_on(cell, "cell_contents", cell.cell_contents)
            return cell.cell_contents
        if name in self.globals:
            rely_on(self.globals, name, self.globals[name])
            return self.globals[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise NameError(f"name '{name}' is not defined")

    def store(self, name, value):
        if name in self.foreign:
            frame = self.outer
            while frame is not None:
                if name in frame.names:
                    frame.names[name] = value
                    return
                frame = frame.outer
            raise Unsupported(
                f"assigning to the {self.foreign[name]} name '{name}' is not supported in a compiled function"
            )
        self.names[name] = value


class Closure:
    """A function or lambda defined in interpreted code; a callable for Python code too."""

    def __init__(self, interpreter, source, outer):
        self.interpreter, self.source, self.outer = interpreter, source, outer
        self.__name__ = source.name

    def __call__(self, *args, **kwargs):
        return self.interpreter.run_source(self.source, args, kwargs, self.outer)

    def __get__(self, instance, _owner=None):
        return self if instance is None else types.MethodType(self, instance)
