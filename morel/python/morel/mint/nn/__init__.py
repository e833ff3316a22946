"""Layers, losses and functions in the interface of ``mint``."""

from morel.mint.nn import layer
from morel.mint.nn.layer import *
from morel.nn.cell import Cell

__all__ = ["Cell", *layer.__all__]


def __getattr__(name):
    if name in ("functional", "F"):
        from importlib import import_module

        return import_module("morel.mint.nn.functional")
    raise AttributeError(f"module 'morel.mint.nn' has no attribute '{name}'")
