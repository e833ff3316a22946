"""Small functions of scripts: mutable, inlining marks, tensors over foreign memory."""

import functools

from morel import _core

__all__ = ["JitConfig", "constexpr", "from_numpy", "frombuffer", "is_tensor", "lazy_inline", "mutable", "no_inline"]


def mutable(input_data, dynamic_len=False):
    """Marks a value whose parts may change between calls of a compiled function. Values are never constants here: itself.

    Args:
        input_data (Tensor, number, bool, tuple, list, dict): the value.
        dynamic_len (bool): the length of a tuple or list may change too.
    Raises:
        TypeError: other values. ValueError: dynamic_len for something without a length.
    """
    if not isinstance(dynamic_len, bool):
        raise TypeError(f"For 'mutable', the second input should be bool, but got {type(dynamic_len).__name__}.")
    if dynamic_len and not isinstance(input_data, (tuple, list)):
        raise ValueError("For 'mutable', 'dynamic_len' needs a tuple or list.")

    def check(value):
        if isinstance(value, (tuple, list)):
            for item in value:
                check(item)
        elif isinstance(value, dict):
            for item in value.values():
                check(item)
        elif not isinstance(value, (bool, int, float, _core.Tensor)):
            raise TypeError(
                "For 'mutable', 'input_data' must be a bool, int, float, Tensor, or a tuple, list or dict of these, but got "
                f"{type(value).__name__}: {value}."
            )

    check(input_data)
    return input_data


def _mark(fn):
    return fn


def lazy_inline(fn=None, attrs=None, policy=None):
    """Decorator of a Cell's `__init__`: a wish about how its graph is built, which changes no values."""
    if policy not in (None, "front"):
        raise ValueError(f"For 'lazy_inline', 'policy' must be None or 'front', but got {policy!r}.")
    return _mark if fn is None else fn


def no_inline(fn=None):
    """Decorator of a function: a wish about how its graph is built, which changes no values."""
    if fn is None or not callable(fn):
        raise TypeError("For 'no_inline', 'fn' must be a function.")
    return fn


def constexpr(fn=None, get_instance=True, name=None, reuse_result=True, check=True):
    """Decorator of a function that is run when a graph is compiled. It runs as it is.

    Args:
        fn (function): works on constants.
        get_instance (bool): return the function; False: a class whose objects are called.
        name (str, optional): name of the operator.
        reuse_result (bool): the result for the same arguments may be used again.
        check (bool): the arguments are checked to be constants.
    """
    if fn is None:
        return functools.partial(
            constexpr, get_instance=get_instance, name=name, reuse_result=reuse_result, check=check
        )
    if get_instance:
        return fn
    return type(name or fn.__name__, (), {"__call__": staticmethod(fn), "__doc__": fn.__doc__})


class JitConfig:
    """Options of compilation, as a dict `jit_config_dict`.

    Args:
        jit_level (str): "", "O0", "O1" or "O2".
        exc_mode (str): "auto", "sink" or "no_sink".
        jit_syntax_level (str): "", "STRICT" or "LAX".
        debug_level (str): "RELEASE" or "DEBUG".
        infer_boost (str): "on" or "off".
        kwargs: further options.
    Raises:
        ValueError: a value that is none of these.
    """

    def __init__(
        self, jit_level="", exc_mode="auto", jit_syntax_level="", debug_level="RELEASE", infer_boost="off", **kwargs
    ):
        choices = {
            "jit_level": ("", "O0", "O1", "O2"),
            "exc_mode": ("auto", "sink", "no_sink"),
            "jit_syntax_level": ("", "STRICT", "LAX"),
            "debug_level": ("RELEASE", "DEBUG"),
            "infer_boost": ("on", "off"),
        }
        given = (jit_level, exc_mode, jit_syntax_level, debug_level, infer_boost)
        self.jit_config_dict = dict(zip(choices, given))
        for name, allowed in choices.items():
            if self.jit_config_dict[name] not in allowed:
                raise ValueError(
                    f"For 'JitConfig', '{name}' must be one of {allowed}, but got {self.jit_config_dict[name]!r}."
                )
        self.jit_config_dict.update(kwargs)


def is_tensor(obj):
    """Whether it is a tensor."""
    return isinstance(obj, _core.Tensor)


def from_numpy(array):
    """A tensor over the memory of a NumPy array: writing to one changes the other."""
    import numpy

    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"For 'from_numpy', 'array' must be a numpy.ndarray, but got {type(array).__name__}.")
    return _core.from_numpy(array)


def frombuffer(buffer, dtype, count=-1, offset=0):
    """A vector over the memory of an object with the buffer protocol: `count` elements (-1: all) from byte `offset` on.

    Raises:
        TypeError: no buffer, or a dtype that NumPy lacks. ValueError: the buffer is too short.
    """
    import numpy

    from morel.common.dtype import dtype_to_nptype

    array = numpy.frombuffer(buffer, dtype_to_nptype(_core.as_dtype(dtype)), count, offset)
    return _core.from_numpy(array if array.flags.writeable else array.copy())
