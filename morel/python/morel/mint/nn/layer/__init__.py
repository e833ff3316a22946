"""The layers; `morel.mint.nn` offers all of them."""

from morel.mint.nn.layer import activation, basic, conv, loss, normalization, padding, pooling
from morel.mint.nn.layer.activation import *
from morel.mint.nn.layer.basic import *
from morel.mint.nn.layer.conv import *
from morel.mint.nn.layer.loss import *
from morel.mint.nn.layer.normalization import *
from morel.mint.nn.layer.padding import *
from morel.mint.nn.layer.pooling import *

__all__ = [
    name for module in (activation, basic, conv, loss, normalization, padding, pooling) for name in module.__all__
]
