"""Functions of ``morel.ops`` that are a few lines over operators of the registry, by family.

A function stays here as long as its composition is fast enough; then it becomes an entry of the registry.
"""

import importlib

FAMILIES = ("elementwise", "reduce", "arrange", "scatter", "products", "network", "image", "draw", "inspect")


def find(name):
    """The function of that name, None if no family has one."""
    for family in FAMILIES:
        module = importlib.import_module(f"morel.ops.composed.{family}")
        if name in module.__all__:
            return getattr(module, name)
    return None


def names():
    """All names of all families."""
    return [name for family in FAMILIES for name in importlib.import_module(f"morel.ops.composed.{family}").__all__]
