"""Transforms of any kind of data."""

from morel.dataset.transforms.transforms import *  # noqa: F401,F403
from morel.dataset.transforms.transforms import Plugin, __all__

__all__ = [*__all__, "Plugin"]
