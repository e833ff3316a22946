"""Cells around networks; `morel.nn` offers all of them."""

from morel.nn.wrap import cell_wrapper, grad_reducer, loss_scale
from morel.nn.wrap.cell_wrapper import *
from morel.nn.wrap.grad_reducer import *
from morel.nn.wrap.loss_scale import *

__all__ = [*cell_wrapper.__all__, *grad_reducer.__all__, *loss_scale.__all__]
