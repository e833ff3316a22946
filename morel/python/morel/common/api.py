"""Decorators of execution. What ``jit`` does is in ``morel/compiler/``."""

import functools

from morel import _core
from morel.compiler import CompiledFunction, compiled_cell, jit

__all__ = ["_no_grad", "jit", "jit_class", "ms_function", "pynative_synchronize"]


ms_function = jit


def jit_class(cls):
    """Marks a class whose objects may be used in compiled functions."""
    cls.__ms_class__ = True
    return cls


class _no_grad:
    """Within this context nothing is recorded for gradients."""

    def __enter__(self):
        self._pause = _core.pause_grad()
        return self

    def __exit__(self, *_):
        _core.resume_grad(self._pause)
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def without(*args, **kwargs):
            return _core.without_grad(function, *args, **kwargs)

        return without


def pynative_synchronize(*_args, **_kwargs):
    """Calls are always synchronous on the CPU: nothing to do."""


class _PyNativeExecutor:
    """How scripts wait for the calls of PyNative mode."""

    sync = staticmethod(pynative_synchronize)


class _CellGraphExecutor:
    """Compiles cells without running them."""

    def compile(self, obj, *args, phase="predict", **kwargs):
        """Compiles a cell for these arguments; (a name of its graph, whether it was compiled)."""
        return f"{phase}.{id(compiled_cell(obj).prepare(*args, **kwargs))}", True


class _JitExecutor:
    """Compiles a function without running it."""

    def __init__(self, fn, ms_create_time, *_options):
        self._compiled = CompiledFunction(fn)

    def compile(self, method_name, *args, **kwargs):
        """Compiles for these arguments; a name of the graph."""
        return f"{method_name}.{id(self._compiled.prepare(*args, **kwargs))}"


_pynative_executor, _cell_graph_executor = _PyNativeExecutor(), _CellGraphExecutor()
