"""A layer, batch normalisation and an activation in one cell."""

from morel.nn import _check
from morel.nn.cell import Cell
from morel.nn.layer.activation import LeakyReLU, get_activation
from morel.nn.layer.basic import Dense
from morel.nn.layer.conv import Conv2d
from morel.nn.layer.normalization import BatchNorm1d, BatchNorm2d

__all__ = ["Conv2dBnAct", "DenseBnAct"]


class _WithBnAct(Cell):
    """Adds the optional normalisation and activation; a subclass has made the layer."""

    def _add(self, norm, channels, has_bn, momentum, eps, activation, alpha, after_fake):
        self.has_bn = _check.check_bool(has_bn, "has_bn", self.cls_name)
        self.has_act = activation is not None
        self.after_fake = after_fake
        self.batchnorm = norm(channels, eps, momentum) if has_bn else None
        if activation == "leakyrelu":
            self.activation = LeakyReLU(alpha)
        else:
            self.activation = get_activation(activation) if isinstance(activation, str) else activation

    def _finish(self, x):
        x = self.batchnorm(x) if self.has_bn else x
        return self.activation(x) if self.has_act else x


class Conv2dBnAct(_WithBnAct):
    """`Conv2d`, then `BatchNorm2d` if `has_bn`, then the activation if given.

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the output.
        kernel_size (Union[int, tuple[int]]): the kernel.
        stride (Union[int, tuple[int]]): steps. Default ``1``.
        pad_mode (str): ``"same"``, ``"valid"`` or ``"pad"``. Default ``"same"``.
        padding (Union[int, tuple[int]]): zeros for ``"pad"``. Default ``0``.
        dilation (Union[int, tuple[int]]): spacing of kernel elements. Default ``1``.
        group (int): number of independent channel groups. Default ``1``.
        has_bias (bool): whether to add a bias. Default ``False``.
        weight_init (Union[Tensor, str, Initializer, Number]): values of the weight. Default ``"normal"``.
        bias_init (Union[Tensor, str, Initializer, Number]): values of the bias. Default ``"zeros"``.
        has_bn (bool): whether to normalise. Default ``False``.
        momentum (float): of the normalisation. Default ``0.997``.
        eps (float): of the normalisation. Default ``1e-5``.
        activation (Union[str, Cell]): the activation. Default ``None``.
        alpha (float): slope of ``"leakyrelu"``. Default ``0.2``.
        after_fake (bool): kept for compatibility. Default ``True``.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        pad_mode="same",
        padding=0,
        dilation=1,
        group=1,
        has_bias=False,
        weight_init="normal",
        bias_init="zeros",
        has_bn=False,
        momentum=0.997,
        eps=1e-5,
        activation=None,
        alpha=0.2,
        after_fake=True,
    ):
        super().__init__()
        self.conv = Conv2d(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            pad_mode,
            padding,
            dilation,
            group,
            has_bias,
            weight_init,
            bias_init,
        )
        self._add(BatchNorm2d, out_channels, has_bn, momentum, eps, activation, alpha, after_fake)

    def construct(self, x):
        return self._finish(self.conv(x))


class DenseBnAct(_WithBnAct):
    """`Dense`, then `BatchNorm1d` if `has_bn`, then the activation if given.

    Args:
        in_channels (int): features of the input.
        out_channels (int): features of the output.
        weight_init (Union[Tensor, str, Initializer, Number]): values of the weight. Default ``"normal"``.
        bias_init (Union[Tensor, str, Initializer, Number]): values of the bias. Default ``"zeros"``.
        has_bias (bool): whether to add a bias. Default ``True``.
        has_bn (bool): whether to normalise. Default ``False``.
        momentum (float): of the normalisation. Default ``0.9``.
        eps (float): of the normalisation. Default ``1e-5``.
        activation (Union[str, Cell]): the activation. Default ``None``.
        alpha (float): slope of ``"leakyrelu"``. Default ``0.2``.
        after_fake (bool): kept for compatibility. Default ``True``.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        weight_init="normal",
        bias_init="zeros",
        has_bias=True,
        has_bn=False,
        momentum=0.9,
        eps=1e-5,
        activation=None,
        alpha=0.2,
        after_fake=True,
    ):
        super().__init__()
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self._add(BatchNorm1d, out_channels, has_bn, momentum, eps, activation, alpha, after_fake)

    def construct(self, x):
        return self._finish(self.dense(x))
