"""Optimizers in the interface of ``mint``."""

from morel.mint.optim.adam import Adam, AdamW
from morel.mint.optim.sgd import SGD

__all__ = ["Adam", "AdamW", "SGD"]
