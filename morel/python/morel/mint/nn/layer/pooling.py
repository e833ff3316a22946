"""Pooling layers of `mint.nn`."""

from morel import ops
from morel.nn.cell import Cell
from morel.nn.layer.pooling import AdaptiveAvgPool1d as _AdaptiveAvgPool1d
from morel.nn.layer.pooling import AdaptiveAvgPool2d as _AdaptiveAvgPool2d
from morel.nn.layer.pooling import AdaptiveAvgPool3d as _AdaptiveAvgPool3d
from morel.nn.layer.pooling import AdaptiveMaxPool1d as _AdaptiveMaxPool1d
from morel.nn.layer.pooling import AdaptiveMaxPool2d
from morel.nn.layer.pooling import AvgPool1dExt as AvgPool1d
from morel.nn.layer.pooling import AvgPool2dExt as AvgPool2d
from morel.nn.layer.pooling import AvgPool3dExt as AvgPool3d
from morel.nn.layer.pooling import MaxPool2dExt as MaxPool2d

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "MaxPool2d",
    "MaxUnpool2d",
]


class _ShowsSize:
    def extend_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_ShowsSize, _AdaptiveAvgPool1d):
    """Mean with output length `output_size`; see `nn.AdaptiveAvgPool1d`."""


class AdaptiveAvgPool2d(_ShowsSize, _AdaptiveAvgPool2d):
    """Mean with output size `output_size`; see `nn.AdaptiveAvgPool2d`."""


class AdaptiveAvgPool3d(_ShowsSize, _AdaptiveAvgPool3d):
    """Mean with output size `output_size`; see `nn.AdaptiveAvgPool3d`."""


class AdaptiveMaxPool1d(_ShowsSize, _AdaptiveMaxPool1d):
    """Maximum with output length `output_size`; see `nn.AdaptiveMaxPool1d`.

    Args:
        output_size (int): length of the output.
        return_indices (bool): also return where the maxima are. Default ``False``.
    """

    def __init__(self, output_size, return_indices=False):
        super().__init__(output_size)
        self.return_indices = return_indices

    def construct(self, input):
        if not self.return_indices:
            return super().construct(input)
        size = self.output_size[0] if isinstance(self.output_size, (tuple, list)) else self.output_size
        output = AdaptiveMaxPool2d((1, size), True)(input.expand_dims(-2))
        return tuple(part.squeeze(-2) for part in output)


class MaxUnpool2d(Cell):
    """Zeros with the values of the input where `MaxPool2d` with ``return_indices`` found them.

    Args:
        kernel_size (Union[int, tuple[int]]): window of the pooling.
        stride (Union[int, tuple[int]]): its steps. Default ``None``: the window.
        padding (Union[int, tuple[int]]): its padding. Default ``0``.
    """

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def construct(self, input, indices, output_size=None):
        return ops.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)
