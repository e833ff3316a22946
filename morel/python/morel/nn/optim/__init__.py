"""The optimizers; `morel.nn` offers all of them."""

from morel.nn.optim import adam, adaptive, momentum, optimizer
from morel.nn.optim.adam import *
from morel.nn.optim.adaptive import *
from morel.nn.optim.momentum import *
from morel.nn.optim.optimizer import Optimizer, opt_init_args_register

__all__ = ["Optimizer", *adam.__all__, *adaptive.__all__, *momentum.__all__]
