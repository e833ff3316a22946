"""morel.mint: operators with PyTorch-like names and parameters. Names come from api/mint.toml and are made when first used."""

from morel.api import NameTable, load_table

_functions = NameTable(load_table("mint")["functions"])
_OVERLOADED = (
    "max",
    "min",
    "nonzero",
    "meshgrid",
    "add",
    "sub",
    "randn",
    "rand",
    "randint",
    "randperm",
    "randn_like",
    "rand_like",
    "normal",
    "where",
    "bernoulli",
)


def __getattr__(name):
    import importlib

    if name in ("nn", "optim", "distributed", "linalg", "special"):
        try:
            return importlib.import_module(f"morel.mint.{name}")
        except ModuleNotFoundError:
            raise AttributeError(f"module 'morel.mint' has no attribute '{name}'") from None
    if name in _OVERLOADED:
        value = getattr(importlib.import_module("morel.mint.overloaded"), name)
    elif not name.startswith("_") and name in _functions:
        value = _functions.make(name)
    else:
        raise AttributeError(f"module 'morel.mint' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_functions.rows, *_OVERLOADED, "nn", "optim"})
