"""Operators as functions (``ops.add``) and as Primitive classes (``ops.Add``).

Names come from the tables in morel/api and are made when first used.
"""

from morel import _core
from morel.api import NameTable, load_table

_functions = NameTable(load_table("ops")["functions"])
_HOMES = {
    "composite": ("HyperMap", "Map", "MultitypeFuncGraph", "Partial", "add_flags", "partial", "switch", "switch_layer"),
    "primitive": ("PrimitiveWithCheck", "PrimitiveWithInfer", "prim_attr_register"),
    "autograd": ("GradOperation", "get_grad", "grad", "stop_gradient", "value_and_grad"),
    # Names that the registry has too, in a form with fewer arguments.
    "composed.arrange": ("meshgrid", "nonzero", "select"),
    "composed.draw": ("dropout",),
    "composed.elementwise": ("arcsin", "round", "subtract"),
    "composed.inspect": ("allclose",),
    "composed.network": ("pad",),
    "composed.products": ("dot",),
    "composed.scatter": ("embedding", "gather"),
    "jacobian": ("jacfwd", "jacrev", "jvp", "linearize", "vjp"),
    "taylor": ("derivative", "jet"),
    "vectorisation": ("vmap",),
}
_written = {name: module for module, names in _HOMES.items() for name in names}
_SUBMODULES = (
    "auto_generate",
    "autograd",
    "composed",
    "composite",
    "function",
    "functional",
    "jacobian",
    "operations",
    "primitive",
    "taylor",
    "vectorisation",
)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    import importlib

    if name in _SUBMODULES:
        try:
            return importlib.import_module(f"morel.ops.{name}")
        except ModuleNotFoundError:
            raise AttributeError(f"module 'morel.ops' has no attribute '{name}'") from None
    if name == "constexpr":
        value = importlib.import_module("morel.common.marks").constexpr
    elif name in _written:
        value = getattr(importlib.import_module(f"morel.ops.{_written[name]}"), name)
    elif name in _functions:
        value = _functions.make(name)
    else:
        value = importlib.import_module("morel.ops.composed").find(name)
        if value is None:
            value = importlib.import_module("morel.ops.primitive").find(name)
        if value is None:
            raise AttributeError(f"module 'morel.ops' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    from morel.ops import composed, primitive

    return sorted({*globals(), *_written, *_functions.rows, *composed.names(), *primitive.names()})
