"""Activation layers. Each is a thin cell around the operator of the same name."""

from morel import ops
from morel._core import Tensor
from morel.common import _random
from morel.common import dtype as mstype
from morel.common.initializer import initializer
from morel.common.parameter import Parameter
from morel.nn import _check
from morel.nn.cell import Cell

__all__ = [
    "Softmin",
    "Softmax",
    "SoftmaxExt",
    "Softmax2d",
    "LogSoftmax",
    "LogSoftmaxExt",
    "ReLU",
    "ReLU6",
    "RReLU",
    "SeLU",
    "SiLU",
    "Tanh",
    "Tanhshrink",
    "Hardtanh",
    "GELU",
    "FastGelu",
    "Sigmoid",
    "Softsign",
    "PReLU",
    "PReLUExt",
    "get_activation",
    "LeakyReLU",
    "HSigmoid",
    "HSwish",
    "ELU",
    "CELU",
    "LogSigmoid",
    "LRN",
    "SoftShrink",
    "HShrink",
    "Threshold",
    "Mish",
    "GLU",
]


def _check_axis(axis, cls, allow_tuple=False):
    kinds = (int, tuple) if allow_tuple else (int,)
    if isinstance(axis, bool) or not isinstance(axis, kinds):
        raise TypeError(
            f"For '{cls}', the 'axis' must be int{' or tuple of int' if allow_tuple else ''}, "
            f"but got {type(axis).__name__}."
        )
    return axis


class _Plain(Cell):
    """A layer without arguments."""

    def __init__(self):
        super().__init__()


class ReLU(_Plain):
    """max(x, 0).

    Example:
        >>> from morel import nn, Tensor
        >>> nn.ReLU()(Tensor([-1.0, 2.0])).asnumpy().tolist()
        [0.0, 2.0]
    """

    def construct(self, input):
        return ops.relu(input)


class ReLU6(_Plain):
    """min(max(x, 0), 6)."""

    def construct(self, x):
        return ops.relu6(x)


class LeakyReLU(Cell):
    """x where x >= 0, alpha * x elsewhere.

    Args:
        alpha (Union[int, float]): slope for negative values. Default ``0.2``.
    """

    def __init__(self, alpha=0.2):
        super().__init__()
        self.alpha = alpha

    def construct(self, x):
        return ops.leaky_relu(x, self.alpha)


class RReLU(Cell):
    """Leaky ReLU whose slope is drawn uniformly from [lower, upper] for each element, at every call.

    Args:
        lower (Union[int, float]): lower bound. Default ``1/8``.
        upper (Union[int, float]): upper bound. Default ``1/3``.
    """

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3):
        super().__init__()
        self.lower = _check.check_float(lower, "lower", self.cls_name)
        self.upper = _check.check_float(upper, "upper", self.cls_name, low=self.lower)

    def construct(self, x):
        slope = _random.uniform(x.shape, self.lower, self.upper, x.dtype)
        return ops.where(x >= 0, x, x * slope)


class ELU(Cell):
    """x where x >= 0, alpha * (exp(x) - 1) elsewhere.

    Args:
        alpha (float): limit for large negative values. Default ``1.0``.
    """

    def __init__(self, alpha=1.0):
        super().__init__()
        self.alpha = alpha

    def construct(self, x):
        return ops.elu(x, self.alpha)


class CELU(Cell):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).

    Args:
        alpha (float): not zero. Default ``1.0``.

    Source: Barron, Continuously Differentiable Exponential Linear Units, 2017.
    """

    def __init__(self, alpha=1.0):
        super().__init__()
        self.alpha = _check.check_type(alpha, float, "alpha", self.cls_name)
        if alpha == 0.0:
            raise ValueError("For 'CELU', the 'alpha' must not be 0.")

    def construct(self, x):
        return ops.celu(x, self.alpha)


class SeLU(_Plain):
    """scale * elu(x, alpha) with the constants that keep mean 0 and variance 1.

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017.
    """

    def construct(self, input_x):
        return ops.selu(input_x)


class SiLU(_Plain):
    """x * sigmoid(x)."""

    def construct(self, x):
        return ops.silu(x)


class GELU(Cell):
    """x * Phi(x), Phi being the standard normal distribution function.

    Args:
        approximate (bool): use 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) instead. Default ``True``.

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.
    """

    def __init__(self, approximate=True):
        super().__init__()
        self.approximate = _check.check_bool(approximate, "approximate", self.cls_name)
        self._formula = "tanh" if approximate else "none"

    def construct(self, x):
        return ops.gelu(x, approximate=self._formula)


class FastGelu(_Plain):
    """x / (1 + exp(-1.702 |x|)) * exp(0.851 (x - |x|)), which equals x * sigmoid(1.702 x)."""

    def construct(self, x):
        return ops.fast_gelu(x)


class Sigmoid(_Plain):
    """1 / (1 + exp(-x))."""

    def construct(self, x):
        return ops.sigmoid(x)


class LogSigmoid(_Plain):
    """log(sigmoid(x))."""

    def construct(self, input_x):
        return ops.logsigmoid(input_x)


class Tanh(_Plain):
    """tanh(x)."""

    def construct(self, x):
        return ops.tanh(x)


class Tanhshrink(_Plain):
    """x - tanh(x)."""

    def construct(self, x):
        return ops.tanhshrink(x)


class Hardtanh(Cell):
    """x limited to [min_val, max_val].

    Args:
        min_val (Union[int, float]): lower limit. Default ``-1.0``.
        max_val (Union[int, float]): upper limit. Default ``1.0``.
    """

    def __init__(self, min_val=-1.0, max_val=1.0):
        super().__init__()
        self.min_val = _check.check_type(min_val, (int, float), "min_val", self.cls_name)
        self.max_val = _check.check_type(max_val, (int, float), "max_val", self.cls_name)
        if max_val < min_val:
            raise ValueError(f"For 'Hardtanh', 'max_val' must be at least 'min_val', but got {max_val} < {min_val}.")

    def construct(self, x):
        return ops.hardtanh(x, self.min_val, self.max_val)


class HSigmoid(_Plain):
    """min(max((x + 3) / 6, 0), 1)."""

    def construct(self, input):
        return ops.hardsigmoid(input)


class HSwish(_Plain):
    """x * hsigmoid(x)."""

    def construct(self, input):
        return ops.hardswish(input)


class HShrink(Cell):
    """x where |x| > lambd, 0 elsewhere.

    Args:
        lambd (float): threshold. Default ``0.5``.
    """

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def construct(self, input):
        return ops.hardshrink(input, self.lambd)


class SoftShrink(Cell):
    """x moved by `lambd` towards zero, stopping there.

    Args:
        lambd (float): distance. Default ``0.5``.
    """

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def construct(self, input):
        return ops.softshrink(input, self.lambd)


class Softsign(_Plain):
    """x / (1 + |x|)."""

    def construct(self, x):
        return ops.softsign(x)


class Mish(_Plain):
    """x * tanh(softplus(x)).

    Source: Misra, Mish: A Self Regularized Non-Monotonic Activation Function, 2019.
    """

    def construct(self, input_x):
        return ops.mish(input_x)


class Threshold(Cell):
    """x where x > threshold, `value` elsewhere.

    Args:
        threshold (Union[int, float]): the threshold.
        value (Union[int, float]): what replaces smaller elements.
    """

    def __init__(self, threshold, value):
        super().__init__()
        self.threshold = _check.check_type(threshold, (int, float), "threshold", self.cls_name)
        self.value = _check.check_type(value, (int, float), "value", self.cls_name)

    def construct(self, input_x):
        return ops.where(input_x > self.threshold, input_x, ops.full_like(input_x, self.value))


class GLU(Cell):
    """a * sigmoid(b), where a and b are the halves of the input along `axis`.

    Args:
        axis (int): the dimension to halve. Default ``-1``.
    """

    def __init__(self, axis=-1):
        super().__init__()
        self.axis = _check_axis(axis, self.cls_name)

    def construct(self, x):
        size = x.shape[self.axis]
        if size % 2:
            raise ValueError(f"For 'GLU', the size of axis {self.axis} must be even, but got {size}.")
        first, second = ops.split(x, size // 2, self.axis)
        return first * ops.sigmoid(second)


class Softmax(Cell):
    """exp(x) / sum(exp(x)) along `axis`.

    Args:
        axis (Union[int, tuple[int]]): the dimension. Default ``-1``.

    Raises:
        TypeError: `axis` is not int or tuple.
    """

    def __init__(self, axis=-1):
        super().__init__()
        self.axis = _check_axis(axis, self.cls_name, allow_tuple=True)

    def construct(self, input):
        return ops.softmax(input, self.axis)


class SoftmaxExt(Cell):
    """`Softmax` in the interface of ``mint``.

    Args:
        dim (Union[int, None]): the dimension. Default ``None``: 0 for 0, 1 and 3 dimensions, otherwise 1.
    """

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def construct(self, input):
        return ops.softmax(input, _implicit_dim(input) if self.dim is None else self.dim)


def _implicit_dim(x):
    return 0 if x.ndim in (0, 1, 3) else 1


class Softmin(Cell):
    """Softmax of -x along `axis`.

    Args:
        axis (Union[int, tuple[int]]): the dimension. Default ``-1``.
    """

    def __init__(self, axis=-1):
        super().__init__()
        self.axis = _check_axis(axis, self.cls_name, allow_tuple=True)

    def construct(self, x):
        return ops.softmax(-x, self.axis)


class Softmax2d(_Plain):
    """Softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def construct(self, x):
        _check.check_rank(x, (3, 4), self.cls_name)
        return ops.softmax(x, -3)


class LogSoftmax(Cell):
    """log(softmax(x)) along `axis`.

    Args:
        axis (int): the dimension. Default ``-1``.
    """

    def __init__(self, axis=-1):
        super().__init__()
        self.axis = _check_axis(axis, self.cls_name)

    def construct(self, x):
        return ops.log_softmax(x, self.axis)


class LogSoftmaxExt(Cell):
    """`LogSoftmax` in the interface of ``mint``.

    Args:
        dim (Union[int, None]): the dimension. Default ``None``: as in `SoftmaxExt`.
    """

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def construct(self, x):
        return ops.log_softmax(x, _implicit_dim(x) if self.dim is None else self.dim)


class PReLU(Cell):
    """x where x >= 0, w * x elsewhere; `w` is learnt, one value or one per channel.

    Args:
        channel (int): number of values of `w`. Default ``1``.
        w (Union[float, list, Tensor]): the first values. Default ``0.25``.

    Source: He et al., Delving Deep into Rectifiers, 2015.
    """

    def __init__(self, channel=1, w=0.25):
        super().__init__()
        _check.check_positive_int(channel, "channel", self.cls_name)
        if isinstance(w, (int, float)) and not isinstance(w, bool):
            first = initializer(float(w), [channel])
        elif isinstance(w, (list, Tensor)):
            first = Tensor(w, mstype.float32) if isinstance(w, list) else w
            if tuple(first.shape) != (channel,):
                raise ValueError(f"For 'PReLU', the shape of 'w' must be ({channel},), but got {tuple(first.shape)}.")
        else:
            raise TypeError(f"For 'PReLU', the 'w' must be float, list or Tensor, but got {type(w).__name__}.")
        self.w = Parameter(first, name="a")

    def construct(self, x):
        return ops.prelu(x, self.w)


class PReLUExt(Cell):
    """`PReLU` in the interface of ``mint``.

    Args:
        num_parameters (int): number of learnt slopes. Default ``1``.
        init (float): the first value. Default ``0.25``.
        dtype (mindspore.dtype): dtype of the slopes. Default ``None``: float32.
    """

    def __init__(self, num_parameters=1, init=0.25, dtype=None):
        super().__init__()
        self.num_parameters = _check.check_positive_int(num_parameters, "num_parameters", self.cls_name)
        self.init = init
        self.weight = Parameter(
            initializer(init, num_parameters, mstype.float32 if dtype is None else dtype), name="weight"
        )

    def construct(self, input):
        return ops.prelu(input, self.weight)


class LRN(Cell):
    """Local response normalisation across channels: x / (bias + alpha * sum of squares nearby)^beta.

    Args:
        depth_radius (int): how many channels count on each side. Default ``5``.
        bias (float): offset. Default ``1.0``.
        alpha (float): scale. Default ``1.0``.
        beta (float): exponent. Default ``0.5``.
        norm_region (str): ``"ACROSS_CHANNELS"``.

    Source: Krizhevsky et al., ImageNet Classification with Deep Convolutional Neural Networks, 2012, section 3.3.
    """

    def __init__(self, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS"):
        super().__init__()
        self.depth_radius = _check.check_int(depth_radius, "depth_radius", self.cls_name, 0)
        self.bias = bias
        self.alpha = alpha
        self.beta = beta
        _check.check_string(norm_region, ["ACROSS_CHANNELS"], "norm_region", self.cls_name)

    def construct(self, input_x):
        radius, channels = self.depth_radius, input_x.shape[1]
        padded = ops.pad(ops.square(input_x), [0, 0, 0, 0, radius, radius])
        total = padded[:, :channels]
        for offset in range(1, 2 * radius + 1):
            total = total + padded[:, offset : offset + channels]
        return input_x / (total * self.alpha + self.bias) ** self.beta


_BY_NAME = {
    "softmin": Softmin,
    "softmax": Softmax,
    "softmax2d": Softmax2d,
    "logsoftmax": LogSoftmax,
    "logsoftmaxExt": LogSoftmaxExt,
    "relu": ReLU,
    "relu6": ReLU6,
    "rrelu": RReLU,
    "silu": SiLU,
    "tanh": Tanh,
    "tanhshrink": Tanhshrink,
    "hardtanh": Hardtanh,
    "gelu": GELU,
    "fast_gelu": FastGelu,
    "elu": ELU,
    "sigmoid": Sigmoid,
    "softsign": Softsign,
    "prelu": PReLU,
    "preluExt": PReLUExt,
    "leakyrelu": LeakyReLU,
    "hswish": HSwish,
    "hsigmoid": HSigmoid,
    "logsigmoid": LogSigmoid,
    "softshrink": SoftShrink,
    "hshrink": HShrink,
    "threshold": Threshold,
    "mish": Mish,
}


def get_activation(name, prim_name=None):
    """The activation layer called `name`, or ``None`` for ``None``.

    Args:
        name (Union[str, None]): such as ``"relu"``.
        prim_name (str, optional): the class named in the error.

    Raises:
        KeyError: the name is unknown.

    Example:
        >>> from morel import nn
        >>> nn.get_activation("sigmoid")
        Sigmoid()
    """
    if name is None:
        return None
    if name not in _BY_NAME:
        where = f"For '{prim_name}', the" if prim_name else "The"
        raise KeyError(f"{where} 'name' must be in {list(_BY_NAME)}, but got {name}.")
    return _BY_NAME[name]()
