"""Activation layers of `mint.nn`."""

from morel import ops
from morel.mint.nn.layer._common import InplaceActivation
from morel.nn.cell import Cell
from morel.nn.layer.activation import HShrink as Hardshrink
from morel.nn.layer.activation import HSigmoid as Hardsigmoid
from morel.nn.layer.activation import HSwish as Hardswish
from morel.nn.layer.activation import LogSoftmaxExt as LogSoftmax
from morel.nn.layer.activation import PReLUExt as PReLU
from morel.nn.layer.activation import ReLU
from morel.nn.layer.activation import SoftmaxExt as Softmax
from morel.nn.layer.activation import SoftShrink as Softshrink

__all__ = [
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softshrink",
    "Tanh",
    "Threshold",
]


class ReLU6(InplaceActivation):
    """min(max(x, 0), 6).

    Args:
        inplace (bool): overwrite the input. Default ``False``.
    """

    def _compute(self, input):
        return ops.relu6(input)


class ELU(InplaceActivation):
    """x where x >= 0, alpha * (exp(x) - 1) elsewhere.

    Args:
        alpha (float): limit for large negative values. Default ``1.0``.
        inplace (bool): overwrite the input. Default ``False``.
    """

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__(inplace)
        self.alpha = alpha

    def _compute(self, input):
        return ops.elu(input, self.alpha)


class SiLU(InplaceActivation):
    """x * sigmoid(x).

    Args:
        inplace (bool): overwrite the input. Default ``False``.
    """

    def _compute(self, input):
        return ops.silu(input)


class Hardtanh(InplaceActivation):
    """x limited to [min_val, max_val].

    Args:
        min_val (Union[int, float]): lower limit. Default ``-1.0``.
        max_val (Union[int, float]): upper limit. Default ``1.0``.
        inplace (bool): overwrite the input. Default ``False``.
    """

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False):
        super().__init__(inplace)
        self.min_val = min_val
        self.max_val = max_val

    def _compute(self, input):
        return ops.hardtanh(input, self.min_val, self.max_val)


class Threshold(InplaceActivation):
    """x where x > threshold, `value` elsewhere.

    Args:
        threshold (Union[int, float]): the threshold.
        value (Union[int, float]): what replaces smaller elements.
        inplace (bool): overwrite the input. Default ``False``.
    """

    def __init__(self, threshold, value, inplace=False):
        super().__init__(inplace)
        self.threshold = threshold
        self.value = value

    def _compute(self, input):
        return ops.where(input > self.threshold, input, ops.full_like(input, self.value))


class GELU(Cell):
    """x * Phi(x), Phi being the standard normal distribution function.

    Args:
        approximate (str): ``"none"`` or ``"tanh"``. Default ``"none"``.
    """

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def construct(self, input):
        return ops.gelu(input, approximate=self.approximate)


class GLU(Cell):
    """a * sigmoid(b), where a and b are the halves of the input along `dim`.

    Args:
        dim (int): the dimension to halve. Default ``-1``.
    """

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def construct(self, input):
        size = input.shape[self.dim]
        if size % 2:
            raise ValueError(f"For 'GLU', the size of dimension {self.dim} must be even, but got {size}.")
        first, second = ops.split(input, size // 2, self.dim)
        return first * ops.sigmoid(second)


class LogSigmoid(Cell):
    """log(sigmoid(x))."""

    def construct(self, input):
        return ops.logsigmoid(input)


class Mish(Cell):
    """x * tanh(softplus(x))."""

    def construct(self, input):
        return ops.mish(input)


class SELU(Cell):
    """scale * elu(x, alpha) with the constants that keep mean 0 and variance 1."""

    def construct(self, input):
        return ops.selu(input)


class Sigmoid(Cell):
    """1 / (1 + exp(-x))."""

    def construct(self, input):
        return ops.sigmoid(input)


class Tanh(Cell):
    """tanh(x)."""

    def construct(self, input):
        return ops.tanh(input)
