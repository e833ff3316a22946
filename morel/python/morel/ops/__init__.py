"""Operators as functions (``ops.add``) and as Primitive classes (``ops.Add``).

Names come from the tables in morel/api and are made when first used.
"""
from morel import _core
from morel.api import NameTable, load_table

_functions = NameTable(load_table("ops")["functions"])
_HOMES = {
    "autograd": ("GradOperation", "grad", "stop_gradient", "value_and_grad"),
}
_written = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _written:
        import importlib
        value = getattr(importlib.import_module(f"morel.ops.{_written[name]}"), name)
    elif name in _functions:
        value = _functions.make(name)
    else:
        from morel.ops import primitive
        value = primitive.find(name)
        if value is None:
            raise AttributeError(f"module 'morel.ops' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    from morel.ops import primitive
    return sorted({*globals(), *_written, *_functions.rows, *primitive.names()})


def __all_names():
    return [name for name in __dir__() if not name.startswith("_")]
