"""Cells around networks; `morel.nn` offers all of them."""

from morel.nn.wrap import cell_wrapper, loss_scale
from morel.nn.wrap.cell_wrapper import *
from morel.nn.wrap.loss_scale import *

__all__ = [*cell_wrapper.__all__, *loss_scale.__all__]
