"""The losses; `morel.nn` offers all of them."""

from morel.nn.loss import loss, margin
from morel.nn.loss._base import LossBase
from morel.nn.loss.loss import *
from morel.nn.loss.margin import *

__all__ = ["LossBase", *loss.__all__, *margin.__all__]
