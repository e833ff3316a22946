"""morel.mint: operators with PyTorch-like names and parameters. Names come from api/mint.toml and are made when first used."""

from morel.api import NameTable, load_table

_functions = NameTable(load_table("mint")["functions"])
# Functions of several forms; they stand in overloaded.py, which is imported when the first of them is used.
OVERLOADED = (
    "add",
    "allclose",
    "argsort",
    "bernoulli",
    "bincount",
    "cdist",
    "count_nonzero",
    "diff",
    "empty",
    "equal",
    "histc",
    "index_add",
    "kthvalue",
    "max",
    "median",
    "meshgrid",
    "min",
    "multinomial",
    "nansum",
    "nonzero",
    "norm",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "repeat_interleave",
    "round",
    "scatter",
    "scatter_add",
    "sort",
    "sub",
    "unique",
    "where",
)
# Functions that are those of morel.ops.
_SAME = (
    "addbmm addmv cross dstack einsum float_power frac gcd hstack isneginf logaddexp logaddexp2 nan_to_num polar searchsorted "
    "sinc t take trace unique_consecutive xlogy"
).split()
_REFUSED = ("erfinv", "inverse", "triangular_solve")


def refusal(name):
    """A function that says that `name` is not there yet."""

    def refuse(*_args, **_kwargs):
        raise NotImplementedError(f"mint.{name} is not supported yet.")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def __getattr__(name):
    import importlib

    if name in ("nn", "optim", "distributed", "func", "linalg", "special"):
        try:
            return importlib.import_module(f"morel.mint.{name}")
        except ModuleNotFoundError:
            raise AttributeError(f"module 'morel.mint' has no attribute '{name}'") from None
    if name in OVERLOADED:
        value = getattr(importlib.import_module("morel.mint.overloaded"), name)
    elif name in _SAME:
        value = getattr(importlib.import_module("morel.ops"), name)
    elif name in _REFUSED:
        value = refusal(name)
    elif not name.startswith("_") and name in _functions:
        value = _functions.make(name)
    else:
        raise AttributeError(f"module 'morel.mint' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    return sorted(
        {*globals(), *_functions.rows, *OVERLOADED, *_SAME, *_REFUSED, "func", "linalg", "nn", "optim", "special"}
    )
