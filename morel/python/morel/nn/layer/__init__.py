"""The layers; `morel.nn` offers all of them."""

from morel.nn.layer import (
    activation,
    basic,
    combined,
    container,
    conv,
    embedding,
    image,
    math,
    normalization,
    padding,
    pooling,
    transformer,
)
from morel.nn.layer.activation import *
from morel.nn.layer.basic import *
from morel.nn.layer.combined import *
from morel.nn.layer.container import *
from morel.nn.layer.conv import *
from morel.nn.layer.embedding import *
from morel.nn.layer.image import *
from morel.nn.layer.math import *
from morel.nn.layer.normalization import *
from morel.nn.layer.padding import *
from morel.nn.layer.pooling import *
from morel.nn.layer.transformer import *

__all__ = [
    name
    for module in (
        activation,
        basic,
        combined,
        container,
        conv,
        embedding,
        image,
        math,
        normalization,
        padding,
        pooling,
        transformer,
    )
    for name in module.__all__
]
