"""Convolution layers and their transposes."""

import math

from morel import ops
from morel._core import Tensor
from morel.common import dtype as mstype
from morel.common.initializer import HeUniform, Uniform, _calculate_fan_in_and_fan_out, initializer
from morel.common.parameter import Parameter
from morel.nn import _check, _window
from morel.nn.cell import Cell

__all__ = ["Conv2d", "Conv2dTranspose", "Conv1d", "Conv1dTranspose", "Conv3d", "Conv3dTranspose"]


def _check_padding(padding, count, cls):
    """An int or a tuple of `count` ints (before and after each dimension), none negative."""
    if isinstance(padding, int):
        _check.check_int(padding, "padding", cls, 0)
        return (padding,) * count
    if not isinstance(padding, tuple):
        raise TypeError(
            f"For '{cls}', the type of 'padding' must be int or tuple(int), but got {type(padding).__name__}."
        )
    if len(padding) != count:
        raise ValueError(f"For '{cls}', the 'padding' must be an int or a tuple of {count} ints, but got {padding}.")
    for item in padding:
        _check.check_int(item, "padding item", cls, 0)
    return padding


class _Conv(Cell):
    """Arguments, checks and parameters that all convolution layers share."""

    _rank = 2
    _transposed = False

    def __init__(
        self,
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
        data_format="NCHW",
        dtype=mstype.float32,
    ):
        super().__init__()
        cls = self.cls_name
        self.in_channels = _check.check_positive_int(in_channels, "in_channels", cls)
        self.out_channels = _check.check_positive_int(out_channels, "out_channels", cls)
        self.kernel_size = _check.int_tuple(kernel_size, self._rank, "kernel_size", cls)
        self.stride = _check.int_tuple(stride, self._rank, "stride", cls)
        self.dilation = _check.int_tuple(dilation, self._rank, "dilation", cls)
        self.pad_mode = _check.check_string(pad_mode, ["valid", "same", "pad"], "pad_mode", cls)
        self.data_format = _check.check_string(data_format, ["NCHW", "NCDHW"], "format", cls)
        self._sides = _check_padding(padding, 2 * self._rank, cls)
        self.padding = padding
        if pad_mode != "pad" and any(self._sides):
            raise ValueError(
                f"For '{cls}', the 'padding' must be zero when 'pad_mode' is not 'pad', but got "
                f"'padding': {padding} and 'pad_mode': {pad_mode}."
            )
        # ops.conv2d pads by itself in the other modes.
        self._operator_padding = self._sides if pad_mode == "pad" else 0
        self.group = _check.check_positive_int(group, "group", cls)
        if in_channels % group or out_channels % group:
            raise ValueError(
                f"For '{cls}', 'in_channels' and 'out_channels' must be divisible by 'group', but got "
                f"in_channels: {in_channels}, out_channels: {out_channels}, group: {group}."
            )
        self.has_bias = _check.check_bool(has_bias, "has_bias", cls)
        self._create_parameters(weight_init, bias_init, dtype)

    def _create_parameters(self, weight_init, bias_init, dtype):
        pair = (
            (self.in_channels, self.out_channels // self.group)
            if self._transposed
            else (self.out_channels, self.in_channels // self.group)
        )
        shape = (*pair, *self.kernel_size)
        self.weight_init = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        self.bias_init = bias_init
        self.weight = Parameter(initializer(self.weight_init, shape, dtype), name="weight")
        self.bias = None
        if self.has_bias:
            if bias_init is None:
                self.bias_init = Uniform(1 / math.sqrt(_calculate_fan_in_and_fan_out(shape)[0]))
            self.bias = Parameter(initializer(self.bias_init, (self.out_channels,), dtype), name="bias")

    def extend_repr(self):
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}, "
            f"padding={self.padding}, dilation={self.dilation}, group={self.group}, has_bias={self.has_bias}, "
            f"weight_init={self.weight_init}, bias_init={self.bias_init}, format={self.data_format}"
        )


class Conv2d(_Conv):
    """2-D convolution of [N, C_in, H, W]: ``out[n, o] = bias[o] + sum_c weight[o, c] * x[n, c]`` (correlation).

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the output.
        kernel_size (Union[int, tuple[int]]): height and width of the kernel.
        stride (Union[int, tuple[int]]): steps. Default ``1``.
        pad_mode (str): ``"same"`` (output size ceil(size / stride)), ``"valid"`` (none) or ``"pad"``. Default
            ``"same"``.
        padding (Union[int, tuple[int]]): zeros for ``"pad"``: all sides, or (top, bottom, left, right). Default ``0``.
        dilation (Union[int, tuple[int]]): spacing of kernel elements. Default ``1``.
        group (int): number of independent channel groups. Default ``1``.
        has_bias (bool): whether to add a bias. Default ``False``.
        weight_init (Union[Tensor, str, Initializer, Number]): values of `weight`, shape
            [C_out, C_in / group, kH, kW]. Default ``None``: uniform within 1/sqrt(fan_in).
        bias_init (Union[Tensor, str, Initializer, Number]): values of `bias`. Default ``None``: as the weight.
        data_format (str): ``"NCHW"``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``float32``.

    Inputs:
        - **x** (Tensor) - shape [N, C_in, H, W].

    Outputs:
        Tensor of shape [N, C_out, H_out, W_out].

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a size is not positive, channels are not divisible by `group`, or `pad_mode` is unknown.

    Example:
        >>> import numpy as np
        >>> from morel import nn, Tensor
        >>> nn.Conv2d(3, 8, 3, stride=2)(Tensor(np.ones((1, 3, 8, 8), np.float32))).shape
        (1, 8, 4, 4)
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
        weight_init=None,
        bias_init=None,
        data_format="NCHW",
        dtype=mstype.float32,
    ):
        super().__init__(
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
            data_format,
            dtype,
        )

    def construct(self, x):
        return ops.conv2d(
            x, self.weight, self.bias, self.stride, self.pad_mode, self._operator_padding, self.dilation, self.group
        )


class Conv3d(_Conv):
    """3-D convolution of [N, C_in, D, H, W]; arguments as `Conv2d`, padding has six numbers.

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the output.
        kernel_size (Union[int, tuple[int]]): depth, height and width of the kernel.
        stride (Union[int, tuple[int]]): steps. Default ``1``.
        pad_mode (str): ``"same"``, ``"valid"`` or ``"pad"``. Default ``"same"``.
        padding (Union[int, tuple[int]]): zeros for ``"pad"``: (head, tail, top, bottom, left, right). Default ``0``.
        dilation (Union[int, tuple[int]]): spacing of kernel elements. Default ``1``.
        group (int): number of independent channel groups. Default ``1``.
        has_bias (bool): whether to add a bias. Default ``False``.
        weight_init (Union[Tensor, str, Initializer, Number]): values of `weight`. Default ``None``.
        bias_init (Union[Tensor, str, Initializer, Number]): values of `bias`. Default ``None``.
        data_format (str): ``"NCDHW"``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``float32``.
    """

    _rank = 3

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
        weight_init=None,
        bias_init=None,
        data_format="NCDHW",
        dtype=mstype.float32,
    ):
        super().__init__(
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
            data_format,
            dtype,
        )

    def construct(self, x):
        _check.check_rank(x, (5,), self.cls_name)
        if x.shape[1] != self.in_channels:
            raise ValueError(f"For 'Conv3d', the input must have {self.in_channels} channels, but got {x.shape[1]}.")
        sides = (
            _window.same_sides(x.shape[2:], self.kernel_size, self.stride, self.dilation)
            if self.pad_mode == "same"
            else list(zip(self._sides[::2], self._sides[1::2]))
        )
        return _window.conv3d(x, self.weight, self.bias, self.stride, sides, self.dilation, self.group)


def _line_arguments(cls, kernel_size, stride, padding, dilation, weight_init):
    """The arguments of a 1-D layer as those of a 2-D one of height 1."""
    for value, name, least in (
        (kernel_size, "kernel_size", 1),
        (stride, "stride", 1),
        (padding, "padding", 0),
        (dilation, "dilation", 1),
    ):
        _check.check_int(value, name, cls, least)
    if isinstance(weight_init, Tensor):
        if weight_init.ndim != 3:
            raise ValueError(f"For '{cls}', 'weight_init' must have 3 dims, but got {weight_init.ndim}.")
        weight_init = weight_init.expand_dims(2)
    return (1, kernel_size), (1, stride), (0, 0, padding, padding), (1, dilation), weight_init


class Conv1d(_Conv):
    """1-D convolution of [N, C_in, L]; runs as a 2-D convolution of height 1, and so is `weight`'s shape.

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the output.
        kernel_size (int): length of the kernel.
        stride (int): step. Default ``1``.
        pad_mode (str): ``"same"``, ``"valid"`` or ``"pad"``. Default ``"same"``.
        padding (int): zeros on both sides for ``"pad"``. Default ``0``.
        dilation (int): spacing of kernel elements. Default ``1``.
        group (int): number of independent channel groups. Default ``1``.
        has_bias (bool): whether to add a bias. Default ``False``.
        weight_init (Union[Tensor, str, Initializer, Number]): values of `weight`; a tensor has shape
            [C_out, C_in / group, k]. Default ``None``.
        bias_init (Union[Tensor, str, Initializer, Number]): values of `bias`. Default ``None``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``float32``.
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
        weight_init=None,
        bias_init=None,
        dtype=mstype.float32,
    ):
        kernel_size, stride, padding, dilation, weight_init = _line_arguments(
            type(self).__name__, kernel_size, stride, padding, dilation, weight_init
        )
        super().__init__(
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
            dtype=dtype,
        )

    def construct(self, x):
        return ops.conv2d(
            x.expand_dims(2),
            self.weight,
            self.bias,
            self.stride,
            self.pad_mode,
            self._operator_padding,
            self.dilation,
            self.group,
        ).squeeze(2)


class _TransposedConv(_Conv):
    """Common part of the transposes: which part of the full result each pad_mode keeps."""

    _transposed = True

    def __init__(self, *args, output_padding=0, **kwargs):
        super().__init__(*args, **kwargs)
        self.output_padding = output_padding
        self._output_padding = _check.int_tuple(output_padding, self._rank, "output_padding", self.cls_name, 0)
        if self.pad_mode != "pad" and any(self._output_padding):
            raise ValueError(
                f"For '{self.cls_name}', the 'output_padding' must be zero when 'pad_mode' is not 'pad', "
                f"but got {output_padding}."
            )
        cut, extra = [], []
        for axis in range(self._rank):
            reach = self.dilation[axis] * (self.kernel_size[axis] - 1) + 1
            surplus = reach - self.stride[axis]
            if self.pad_mode == "pad":
                cut.append(self._sides[2 * axis : 2 * axis + 2])
                extra.append(self._output_padding[axis] if self._rank == 3 else 0)
            elif self.pad_mode == "same":  # output size = size * stride
                cut.append((max(surplus, 0) // 2, max(surplus, 0) - max(surplus, 0) // 2))
                extra.append(max(-surplus, 0))
            else:  # output size = size * stride + max(reach - stride, 0)
                cut.append((0, 0))
                extra.append(max(-surplus, 0))
        self._cut, self._extra = tuple(cut), tuple(extra)

    def _transpose_convolve(self, operator, x):
        return operator(x, self.weight, self.bias, self.stride, self._cut, self._extra, self.group, self.dilation)


class Conv2dTranspose(_TransposedConv):
    """Transpose (gradient with respect to the input) of `Conv2d`, often called deconvolution.

    Args:
        in_channels (int): channels of the input.
        out_channels (int): channels of the output.
        kernel_size (Union[int, tuple[int]]): height and width of the kernel.
        stride (Union[int, tuple[int]]): steps of the forward convolution. Default ``1``.
        pad_mode (str): ``"same"`` (output size = size * stride), ``"valid"`` or ``"pad"``. Default ``"same"``.
        padding (Union[int, tuple[int]]): cut off for ``"pad"``: all sides, or (top, bottom, left, right). Default 0.
        output_padding (Union[int, tuple[int]]): zeros added at the end (bottom, right) for ``"pad"``. Default ``0``.
        dilation (Union[int, tuple[int]]): spacing of kernel elements. Default ``1``.
        group (int): number of independent channel groups. Default ``1``.
        has_bias (bool): whether to add a bias. Default ``False``.
        weight_init (Union[Tensor, str, Initializer, Number]): values of `weight`, shape [C_in, C_out / group, kH, kW].
        bias_init (Union[Tensor, str, Initializer, Number]): values of `bias`. Default ``None``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``float32``.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        pad_mode="same",
        padding=0,
        output_padding=0,
        dilation=1,
        group=1,
        has_bias=False,
        weight_init=None,
        bias_init=None,
        dtype=mstype.float32,
    ):
        super().__init__(
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
            dtype=dtype,
            output_padding=output_padding,
        )

    def construct(self, x):
        output = self._transpose_convolve(_window.conv_transpose2d, x)
        height, width = self._output_padding
        return ops.pad(output, [0, width, 0, height]) if height or width else output


class Conv1dTranspose(_TransposedConv):
    """Transpose of `Conv1d`; arguments as there."""

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
        weight_init=None,
        bias_init=None,
        dtype=mstype.float32,
    ):
        kernel_size, stride, padding, dilation, weight_init = _line_arguments(
            type(self).__name__, kernel_size, stride, padding, dilation, weight_init
        )
        super().__init__(
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
            dtype=dtype,
        )

    def construct(self, x):
        return self._transpose_convolve(_window.conv_transpose2d, x.expand_dims(2)).squeeze(2)


class Conv3dTranspose(_TransposedConv):
    """Transpose of `Conv3d`; arguments as `Conv2dTranspose` with six paddings."""

    _rank = 3

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
        output_padding=0,
        has_bias=False,
        weight_init=None,
        bias_init=None,
        data_format="NCDHW",
        dtype=mstype.float32,
    ):
        super().__init__(
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
            data_format,
            dtype,
            output_padding=output_padding,
        )

    def construct(self, x):
        _check.check_rank(x, (5,), self.cls_name)
        return self._transpose_convolve(_window.conv_transpose3d, x)
