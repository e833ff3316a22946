"""Decorators of execution. What ``jit`` does is in ``morel/compiler/``."""

import functools

from morel import _core
from morel.compiler import jit

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
