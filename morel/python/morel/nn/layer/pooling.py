"""Pooling layers. The first dimension of an input may be left out."""

from morel import ops
from morel.nn import _check, _window
from morel.nn.cell import Cell

__all__ = [
    "AvgPool3d",
    "MaxPool3d",
    "AvgPool2d",
    "MaxPool2d",
    "AvgPool1d",
    "MaxPool1d",
    "AdaptiveAvgPool1d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "AvgPool1dExt",
    "AvgPool2dExt",
    "AvgPool3dExt",
    "MaxPool2dExt",
]


def _flat(sides):
    return tuple(side for pair in sides for side in pair)


class _PoolNd(Cell):
    """Arguments and padding modes that all windowed pooling layers share; computes on `_rank` trailing dimensions."""

    _rank = 2

    def __init__(self, kernel_size, stride, pad_mode, padding=0, data_format="NCHW"):
        super().__init__()
        cls = self.cls_name
        _check.check_type(pad_mode, str, "pad_mode", cls)
        self.pad_mode = _check.check_string(pad_mode.upper(), ["VALID", "SAME", "PAD"], "pad_mode", cls)
        self.format = _check.check_string(data_format, ["NCHW", "NCDHW"], "format", cls)
        self.kernel_size = self._check_window("kernel_size", kernel_size)
        self.stride = self._check_window("stride", stride)
        self._kernel = _check.int_tuple(self.kernel_size, self._rank, "kernel_size", cls)
        self._step = _check.int_tuple(self.stride, self._rank, "stride", cls)
        self._padding = _check.int_tuple(padding, self._rank, "padding", cls, 0)
        if self.pad_mode != "PAD" and any(self._padding):
            raise ValueError(
                f"For '{cls}', the 'padding' must be zero when 'pad_mode' is not 'pad', "
                f"but got padding: {padding} and pad_mode: {pad_mode}."
            )
        self._fixed_sides = None if self.pad_mode == "SAME" else tuple((side, side) for side in self._padding)
        self._fixed_pads = None if self.pad_mode == "SAME" else _flat(self._fixed_sides)

    def _check_window(self, name, value):
        if isinstance(value, bool) or not isinstance(value, (int, tuple)):
            raise TypeError(
                f"For '{self.cls_name}', the '{name}' must be int or tuple, but got {type(value).__name__}."
            )
        for item in value if isinstance(value, tuple) else (value,):
            if not isinstance(item, int) or item <= 0:
                raise ValueError(
                    f"For '{self.cls_name}', the '{name}' must be an positive int number or a tuple, but got {value}."
                )
        return value[0] if isinstance(value, tuple) and len(value) == 1 else value

    def _sides(self, x):
        """(before, after) for each pooled axis."""
        if self._fixed_sides is not None:
            return self._fixed_sides
        return _window.same_sides(x.shape[-self._rank :], self._kernel, self._step, (1,) * self._rank)

    def _pads(self, x):
        """The same as one flat tuple."""
        return _flat(self._sides(x)) if self._fixed_pads is None else self._fixed_pads

    def construct(self, x):
        if x.ndim == self._rank + 2:
            return self._pool(x)
        _check.check_rank(x, (self._rank + 1, self._rank + 2), self.cls_name)
        output = self._pool(x.expand_dims(0))
        return tuple(part.squeeze(0) for part in output) if isinstance(output, tuple) else output.squeeze(0)

    def extend_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}"


class _MaxPoolNd(_PoolNd):
    """Maximum over windows."""

    def __init__(self, kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode, data_format="NCHW"):
        super().__init__(kernel_size, stride, pad_mode, padding, data_format)
        self.return_indices = _check.check_bool(return_indices, "return_indices", self.cls_name)
        self.ceil_mode = _check.check_bool(ceil_mode, "ceil_mode", self.cls_name)
        self._dilation = _check.int_tuple(dilation, self._rank, "dilation", self.cls_name)
        if self.pad_mode != "PAD" and (dilation != 1 or return_indices or ceil_mode):
            raise ValueError(
                f"For {self.cls_name}, the parameter 'padding', 'dilation', 'return_indices', 'ceil_mode' "
                f"can not be set to non-default value when pad_mode is not 'pad', but got "
                f"pad_mode:{pad_mode}."
            )

    def _pool(self, x):
        return ops.max_pool2d(
            x, self._kernel, self._step, self._pads(x), self._dilation, self.return_indices, self.ceil_mode
        )


class MaxPool2d(_MaxPoolNd):
    """Maximum over windows of [N, C, H, W].

    Args:
        kernel_size (Union[int, tuple[int]]): window. Default ``1``.
        stride (Union[int, tuple[int]]): steps. Default ``1``.
        pad_mode (str): ``"valid"``, ``"same"`` (output size ceil(size / stride)) or ``"pad"``. Default ``"valid"``.
        padding (Union[int, tuple[int]]): for ``"pad"``: added to both sides; never the maximum. Default ``0``.
        dilation (Union[int, tuple[int]]): spacing of window elements, for ``"pad"``. Default ``1``.
        return_indices (bool): also return where the maxima are, for ``"pad"``. Default ``False``.
        ceil_mode (bool): round output sizes up, for ``"pad"``. Default ``False``.
        data_format (str): ``"NCHW"``.

    Inputs:
        - **x** (Tensor) - shape [N, C, H, W] or [C, H, W].

    Outputs:
        Tensor, or a tuple of it and int64 indices into H*W.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a size is not positive, the mode is unknown, or an argument needs ``pad_mode="pad"``.

    Example:
        >>> import numpy as np
        >>> from morel import nn, Tensor
        >>> nn.MaxPool2d(2, 2)(Tensor(np.arange(16).reshape(1, 1, 4, 4).astype(np.float32))).asnumpy().tolist()
        [[[[5.0, 7.0], [13.0, 15.0]]]]
    """

    def __init__(
        self,
        kernel_size=1,
        stride=1,
        pad_mode="valid",
        padding=0,
        dilation=1,
        return_indices=False,
        ceil_mode=False,
        data_format="NCHW",
    ):
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode, data_format)


class MaxPool1d(_MaxPoolNd):
    """Maximum over windows of [N, C, L]; arguments as `MaxPool2d`."""

    _rank = 1

    def __init__(
        self, kernel_size=1, stride=1, pad_mode="valid", padding=0, dilation=1, return_indices=False, ceil_mode=False
    ):
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode)
        # What MindSpore shows: the window of the operator it calls.
        ones = (1, 1) if self.pad_mode == "PAD" else (1,)
        self.kernel_size, self.stride = (*ones, *self._kernel), (*ones, *self._step)

    def _pool(self, x):
        output = ops.max_pool2d(
            x.expand_dims(2),
            (1, *self._kernel),
            (1, *self._step),
            (0, 0, *self._sides(x)[0]),
            (1, *self._dilation),
            self.return_indices,
            self.ceil_mode,
        )
        return tuple(part.squeeze(2) for part in output) if self.return_indices else output.squeeze(2)


class MaxPool3d(_MaxPoolNd):
    """Maximum over windows of [N, C, D, H, W]; arguments as `MaxPool2d`."""

    _rank = 3

    def __init__(
        self, kernel_size=1, stride=1, pad_mode="valid", padding=0, dilation=1, return_indices=False, ceil_mode=False
    ):
        super().__init__(kernel_size, stride, pad_mode, padding, dilation, return_indices, ceil_mode)

    def _pool(self, x):
        if self.return_indices:
            raise NotImplementedError("For 'MaxPool3d', 'return_indices' is not supported; MaxPool2d supports it.")
        return _window.max_pool3d(x, self._kernel, self._step, self._sides(x), self._dilation, self.ceil_mode)


class _AvgPoolNd(_PoolNd):
    """Mean over windows."""

    def __init__(
        self,
        kernel_size,
        stride,
        pad_mode,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override=None,
        data_format="NCHW",
    ):
        super().__init__(kernel_size, stride, pad_mode, padding, data_format)
        self.ceil_mode = _check.check_bool(ceil_mode, "ceil_mode", self.cls_name)
        self.count_include_pad = _check.check_bool(count_include_pad, "count_include_pad", self.cls_name)
        if divisor_override is not None and divisor_override <= 0:
            raise ValueError(f"For '{self.cls_name}', the 'divisor_override' must be > 0, but got {divisor_override}.")
        self.divisor_override = divisor_override or 0

        # The padding of "same" never counts.
        self._count_pad = self.count_include_pad and self.pad_mode != "SAME"

    def _pool(self, x):
        return ops.avg_pool2d(
            x, self._kernel, self._step, self._pads(x), self.ceil_mode, self._count_pad, self.divisor_override
        )


class AvgPool2d(_AvgPoolNd):
    """Mean over windows of [N, C, H, W].

    Args:
        kernel_size (Union[int, tuple[int]]): window. Default ``1``.
        stride (Union[int, tuple[int]]): steps. Default ``1``.
        pad_mode (str): ``"valid"``, ``"same"`` (padding never counts) or ``"pad"``. Default ``"valid"``.
        padding (Union[int, tuple[int]]): zeros on both sides, for ``"pad"``. Default ``0``.
        ceil_mode (bool): round output sizes up. Default ``False``.
        count_include_pad (bool): padding counts in the mean. Default ``True``.
        divisor_override (int): divide by this instead of the window's size. Default ``None``.
        data_format (str): ``"NCHW"``.

    Inputs:
        - **x** (Tensor) - shape [N, C, H, W] or [C, H, W].

    Outputs:
        Tensor.
    """

    def __init__(
        self,
        kernel_size=1,
        stride=1,
        pad_mode="valid",
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
        data_format="NCHW",
    ):
        super().__init__(
            kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad, divisor_override, data_format
        )


class AvgPool1d(_AvgPoolNd):
    """Mean over windows of [N, C, L]; arguments as `AvgPool2d`."""

    _rank = 1

    def __init__(self, kernel_size=1, stride=1, pad_mode="valid", padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad)
        if self.pad_mode != "PAD":  # what MindSpore shows
            self.kernel_size, self.stride = (1, *self._kernel), (1, *self._step)

    def _pool(self, x):
        return ops.avg_pool2d(
            x.expand_dims(2),
            (1, *self._kernel),
            (1, *self._step),
            (0, 0, *self._sides(x)[0]),
            self.ceil_mode,
            self._count_pad,
        ).squeeze(2)


class AvgPool3d(_AvgPoolNd):
    """Mean over windows of [N, C, D, H, W]; arguments as `AvgPool2d`."""

    _rank = 3

    def __init__(
        self,
        kernel_size=1,
        stride=1,
        pad_mode="valid",
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        super().__init__(kernel_size, stride, pad_mode, padding, ceil_mode, count_include_pad, divisor_override)

    def _pool(self, x):
        return _window.avg_pool3d(
            x, self._kernel, self._step, self._sides(x), self.ceil_mode, self._count_pad, self.divisor_override
        )


def _mean(x, axis):
    return x.mean(axis)


class _Adaptive(Cell):
    """Pools to a given output size, whatever the input size."""

    _rank = 2
    _reduce = staticmethod(_mean)

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def construct(self, input):
        return _window.adaptive_pool(input, self._rank, self.output_size, self._reduce, self.cls_name)


class AdaptiveAvgPool1d(_Adaptive):
    """Mean over [N, C, L] with output length `output_size`.

    Args:
        output_size (int): length of the output.
    """

    _rank = 1


class AdaptiveAvgPool2d(_Adaptive):
    """Mean over [N, C, H, W] with output size `output_size`.

    Args:
        output_size (Union[int, tuple]): height and width; ``None`` keeps the input's.
    """


class AdaptiveAvgPool3d(_Adaptive):
    """Mean over [N, C, D, H, W] with output size `output_size`.

    Args:
        output_size (Union[int, tuple]): depth, height and width; ``None`` keeps the input's.
    """

    _rank = 3


def _largest(x, axis):
    return ops.amax(x, axis)


class AdaptiveMaxPool1d(_Adaptive):
    """Maximum over [N, C, L] with output length `output_size`.

    Args:
        output_size (int): length of the output.
    """

    _rank = 1
    _reduce = staticmethod(_largest)

    def construct(self, x):
        return super().construct(x)


class _AdaptiveMaxWithIndices(_Adaptive):
    _reduce = staticmethod(_largest)

    def __init__(self, output_size, return_indices=False):
        super().__init__(output_size)
        self.return_indices = _check.check_bool(return_indices, "return_indices", self.cls_name)

    def construct(self, input):
        return self._with_indices(input) if self.return_indices else super().construct(input)

    def _with_indices(self, x):
        raise NotImplementedError(
            f"For '{self.cls_name}', 'return_indices' is not supported; AdaptiveMaxPool2d supports it."
        )


class AdaptiveMaxPool2d(_AdaptiveMaxWithIndices):
    """Maximum over [N, C, H, W] with output size `output_size`.

    Args:
        output_size (Union[int, tuple]): height and width; ``None`` keeps the input's.
        return_indices (bool): also return where the maxima are; the output size must divide the input's. Default
            ``False``.
    """

    def _with_indices(self, x):
        sizes = x.shape[-2:]
        wanted = _window.adaptive_sizes(sizes, self.output_size, self.cls_name)
        if any(size % count for size, count in zip(sizes, wanted)):
            raise NotImplementedError(
                f"For '{self.cls_name}', 'return_indices' needs an output size that divides the "
                f"input's, but got {wanted} and {list(sizes)}."
            )
        window = tuple(size // count for size, count in zip(sizes, wanted))
        return ops.max_pool2d(x, window, window, 0, 1, True, False)


class AdaptiveMaxPool3d(_AdaptiveMaxWithIndices):
    """Maximum over [N, C, D, H, W] with output size `output_size`; arguments as `AdaptiveMaxPool2d`."""

    _rank = 3


class _LPPool(Cell):
    """(sum of x^p over windows)^(1/p)."""

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        if norm_type == 0:
            raise ValueError(f"For '{self.cls_name}', the 'norm_type' must not be 0.")
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def _power_mean(self, x, kernel, stride):
        """x^p is averaged; times the window's size that is the sum, also for windows that leave the input."""
        p = float(self.norm_type)
        mean = ops.avg_pool2d(x**p, kernel, stride, 0, self.ceil_mode)
        return (mean * float(kernel[0] * kernel[1])) ** (1.0 / p)


class LPPool1d(_LPPool):
    """Power-average pooling of [N, C, L].

    Args:
        norm_type (Union[int, float]): the power p, not zero.
        kernel_size (int): window.
        stride (int): step. Default ``None``: the window.
        ceil_mode (bool): round output sizes up. Default ``False``.
    """

    def construct(self, x):
        stride = self.kernel_size if self.stride is None else self.stride
        return self._power_mean(x.expand_dims(-2), (1, self.kernel_size), (1, stride)).squeeze(-2)


class LPPool2d(_LPPool):
    """Power-average pooling of [N, C, H, W]; arguments as `LPPool1d`."""

    def construct(self, x):
        kernel = _check.int_tuple(self.kernel_size, 2, "kernel_size", self.cls_name)
        stride = kernel if self.stride is None else _check.int_tuple(self.stride, 2, "stride", self.cls_name)
        return self._power_mean(x, kernel, stride)


class AvgPool1dExt(Cell):
    """`AvgPool1d` in the interface of ``mint``: `stride` defaults to the window, padding always applies."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def construct(self, input):
        kernel, stride, padding = (
            _check.int_tuple(value, 1, name, self.cls_name, least)
            for value, name, least in (
                (self.kernel_size, "kernel_size", 1),
                (self.stride, "stride", 1),
                (self.padding, "padding", 0),
            )
        )
        return ops.avg_pool2d(
            input.expand_dims(-2), (1, *kernel), (1, *stride), (0, *padding), self.ceil_mode, self.count_include_pad
        ).squeeze(-2)


class AvgPool2dExt(Cell):
    """`AvgPool2d` in the interface of ``mint``: `stride` defaults to the window, padding always applies."""

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def construct(self, input):
        return ops.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override or 0,
        )


class AvgPool3dExt(AvgPool2dExt):
    """`AvgPool3d` in the interface of ``mint``."""

    def construct(self, input):
        kernel, stride, padding = (
            _check.int_tuple(value, 3, name, self.cls_name, least)
            for value, name, least in (
                (self.kernel_size, "kernel_size", 1),
                (self.stride, "stride", 1),
                (self.padding, "padding", 0),
            )
        )
        _check.check_rank(input, (4, 5), self.cls_name)
        output = _window.avg_pool3d(
            input if input.ndim == 5 else input.expand_dims(0),
            kernel,
            stride,
            [(side, side) for side in padding],
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override or 0,
        )
        return output if input.ndim == 5 else output.squeeze(0)


class MaxPool2dExt(Cell):
    """`MaxPool2d` in the interface of ``mint``: `stride` defaults to the window, padding always applies."""

    def __init__(self, kernel_size=1, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def construct(self, input):
        return ops.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.return_indices, self.ceil_mode
        )
