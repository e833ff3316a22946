"""Convolution layers of `mint.nn`."""

import math

from morel import ops
from morel.common import dtype as mstype
from morel.common.initializer import HeUniform, Uniform, _calculate_fan_in_and_fan_out, initializer
from morel.common.parameter import Parameter
from morel.nn import _check, _window
from morel.nn.cell import Cell

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d"]


class _Conv(Cell):
    """Arguments, checks and parameters that all these layers share."""

    _rank = 2
    _transposed = False

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, dtype
    ):
        super().__init__()
        cls = self.cls_name
        self.in_channels = _check.check_int(in_channels, "in_channels", cls, 0)
        self.out_channels = _check.check_int(out_channels, "out_channels", cls, 0)
        self.groups = _check.check_positive_int(groups, "groups", cls)
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"For '{cls}', 'in_channels' and 'out_channels' must be divisible by 'groups', but got "
                f"{in_channels}, {out_channels} and {groups}."
            )
        self.kernel_size = _check.int_tuple(kernel_size, self._rank, "kernel_size", cls)
        self.stride = _check.int_tuple(stride, self._rank, "stride", cls)
        self.dilation = _check.int_tuple(dilation, self._rank, "dilation", cls)
        self.padding_mode = _check.check_string(
            padding_mode, ["zeros", "reflect", "replicate", "circular"], "padding_mode", cls
        )
        self.padding = self._check_padding(padding)
        self._create_parameters(_check.check_bool(bias, "bias", cls), mstype.float32 if dtype is None else dtype)

    def _check_padding(self, padding):
        if not isinstance(padding, str):
            return _check.int_tuple(padding, self._rank, "padding", self.cls_name, 0)
        _check.check_string(padding, ["same", "valid"], "padding", self.cls_name)
        if padding == "same" and any(step != 1 for step in self.stride):
            raise ValueError(f"For '{self.cls_name}', padding='same' is not supported for strided convolutions.")
        return padding

    def _create_parameters(self, bias, dtype):
        pair = (
            (self.in_channels, self.out_channels // self.groups)
            if self._transposed
            else (self.out_channels, self.in_channels // self.groups)
        )
        shape = (*pair, *self.kernel_size)
        self.weight = Parameter(initializer(HeUniform(math.sqrt(5)), shape, dtype), name="weight")
        self.bias = None
        if bias:
            bound = 1 / math.sqrt(_calculate_fan_in_and_fan_out(shape)[0])
            self.bias = Parameter(initializer(Uniform(bound), (self.out_channels,), dtype), name="bias")

    def extend_repr(self):
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, groups={self.groups}, bias={self.bias is not None}"
        )


class _ForwardConv(_Conv):
    """A convolution; padding that the operator lacks is put around the input first."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        dtype=None,
    ):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, dtype
        )
        if self.padding == "valid":
            sides = [(0, 0)] * self._rank
        elif self.padding == "same":
            totals = [step * (size - 1) for step, size in zip(self.dilation, self.kernel_size)]
            sides = [(total // 2, total - total // 2) for total in totals]
        else:
            sides = [(side, side) for side in self.padding]
        even = all(before == after for before, after in sides)
        self._pad_list = None
        self._operator_padding = tuple(before for before, _ in sides)
        if not even or (padding_mode != "zeros" and any(map(any, sides))):
            self._pad_list = [side for pair in reversed(sides) for side in pair]
            self._operator_padding = (0,) * self._rank
        self._pad_mode = "constant" if padding_mode == "zeros" else padding_mode

    def _convolve(self, operator, x):
        if self._pad_list is not None:
            x = ops.pad(x, self._pad_list, self._pad_mode)
        single = x.ndim == self._rank + 1
        output = operator(
            x.expand_dims(0) if single else x,
            self.weight,
            self.bias,
            self.stride,
            "pad",
            self._operator_padding,
            self.dilation,
            self.groups,
        )
        return output.squeeze(0) if single else output


class Conv2d(_ForwardConv):
    """2-D convolution of [N, C_in, H, W] or [C_in, H, W].

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the output.
        kernel_size (Union[int, tuple[int]]): the kernel.
        stride (Union[int, tuple[int]]): steps. Default ``1``.
        padding (Union[int, tuple[int], str]): on both sides, or ``"same"`` or ``"valid"``. Default ``0``.
        dilation (Union[int, tuple[int]]): spacing of kernel elements. Default ``1``.
        groups (int): number of independent channel groups. Default ``1``.
        bias (bool): whether to add a bias. Default ``True``.
        padding_mode (str): ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``. Default ``"zeros"``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``None``: float32.

    Raises:
        ValueError: channels are not divisible by `groups`, a size is not positive, or a mode is unknown.
    """

    def construct(self, input):
        return self._convolve(ops.conv2d, input)


class Conv3d(_ForwardConv):
    """3-D convolution of [N, C_in, D, H, W]; arguments as `Conv2d`."""

    _rank = 3

    def construct(self, input):
        return self._convolve(_conv3d, input)


class Conv1d(_ForwardConv):
    """1-D convolution of [N, C_in, L]; arguments as `Conv2d`."""

    _rank = 1

    def construct(self, input):
        return self._convolve(_conv1d, input)


def _conv3d(x, weight, bias, stride, _pad_mode, padding, dilation, groups):
    if x.shape[1] != weight.shape[1] * groups:
        raise ValueError(
            f"For 'Conv3d', the input must have {weight.shape[1] * groups} channels, but got {x.shape[1]}."
        )
    return _window.conv3d(x, weight, bias, stride, [(side, side) for side in padding], dilation, groups)


def _conv1d(x, weight, bias, stride, pad_mode, padding, dilation, groups):
    """As a 2-D convolution of height 1."""
    return ops.conv2d(
        x.expand_dims(2), weight.expand_dims(2), bias, (1, *stride), pad_mode, (0, *padding), (1, *dilation), groups
    ).squeeze(2)


class ConvTranspose2d(_Conv):
    """Transpose of `Conv2d`.

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the output.
        kernel_size (Union[int, tuple[int]]): the kernel.
        stride (Union[int, tuple[int]]): steps of the forward convolution. Default ``1``.
        padding (Union[int, tuple[int]]): cut off on both sides. Default ``0``.
        output_padding (Union[int, tuple[int]]): added to the size at the end. Default ``0``.
        groups (int): number of independent channel groups. Default ``1``.
        bias (bool): whether to add a bias. Default ``True``.
        dilation (Union[int, tuple[int]]): spacing of kernel elements. Default ``1``.
        padding_mode (str): ``"zeros"``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``None``: float32.
    """

    _transposed = True

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f"For 'ConvTranspose2d', only 'zeros' padding mode is supported, but got {padding_mode}.")
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, dtype
        )
        self.output_padding = _check.int_tuple(output_padding, 2, "output_padding", self.cls_name, 0)

    def construct(self, input, output_size=None):
        extra = self.output_padding
        if output_size is not None:
            extra = self._extra_for(input, output_size)
        single = input.ndim == 3
        sides = [(side, side) for side in self.padding]
        output = _window.conv_transpose2d(
            input.expand_dims(0) if single else input,
            self.weight,
            self.bias,
            self.stride,
            sides,
            extra,
            self.groups,
            self.dilation,
        )
        return output.squeeze(0) if single else output

    def _extra_for(self, x, output_size):
        """The output padding that gives `output_size`."""
        extra = []
        for axis, wanted in enumerate(tuple(output_size)[-2:]):
            reach = self.dilation[axis] * (self.kernel_size[axis] - 1) + 1
            least = (x.shape[axis - 2] - 1) * self.stride[axis] - 2 * self.padding[axis] + reach
            if not least <= wanted < least + max(self.stride[axis], self.dilation[axis]):
                raise ValueError(
                    f"For 'ConvTranspose2d', 'output_size' {wanted} must be in [{least}, "
                    f"{least + max(self.stride[axis], self.dilation[axis])})."
                )
            extra.append(wanted - least)
        return tuple(extra)
