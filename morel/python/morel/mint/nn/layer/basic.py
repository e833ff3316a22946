"""Linear, dropout, shape and upsampling layers of `mint.nn`."""

from morel import ops
from morel.nn.cell import Cell
from morel.nn.layer.basic import Dropout2dExt as Dropout2d
from morel.nn.layer.basic import DropoutExt as Dropout
from morel.nn.layer.basic import Flatten as _Flatten
from morel.nn.layer.basic import Identity, Linear
from morel.nn.layer.basic import UpsampleExt as Upsample
from morel.nn.layer.embedding import EmbeddingExt as Embedding
from morel.nn.layer.image import PixelShuffle

__all__ = [
    "Dropout",
    "Dropout2d",
    "Embedding",
    "Flatten",
    "Identity",
    "Linear",
    "PixelShuffle",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
    "Unfold",
    "Fold",
]


class Flatten(_Flatten):
    """Merges the dimensions `start_dim` to `end_dim` into one; see `nn.Flatten`."""

    def construct(self, input):
        return super().construct(input)


class UpsamplingNearest2d(Upsample):
    """Resizes [N, C, H, W] by repeating pixels.

    Args:
        size (Union[int, tuple]): target size. Default ``None``.
        scale_factor (Union[float, tuple]): factor, instead of `size`. Default ``None``.
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizes [N, C, H, W] bilinearly, keeping the corner pixels.

    Args:
        size (Union[int, tuple]): target size. Default ``None``.
        scale_factor (Union[float, tuple]): factor, instead of `size`. Default ``None``.
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, "bilinear", True)


class Unfold(Cell):
    """Collects the sliding windows of [N, C, H, W] as columns.

    Args:
        kernel_size (Union[int, tuple]): the window.
        dilation (Union[int, tuple]): spacing of its elements. Default ``1``.
        padding (Union[int, tuple]): zeros on both sides. Default ``0``.
        stride (Union[int, tuple]): steps. Default ``1``.
    """

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def construct(self, input):
        return ops.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def _get_name(self):
        return "UnfoldExt"


class Fold(Cell):
    """Adds the columns of `Unfold` back into an image of `output_size`.

    Args:
        output_size (Union[int, tuple]): height and width.
        kernel_size (Union[int, tuple]): the window.
        dilation (Union[int, tuple]): spacing of its elements. Default ``1``.
        padding (Union[int, tuple]): zeros on both sides. Default ``0``.
        stride (Union[int, tuple]): steps. Default ``1``.
    """

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def construct(self, input):
        return ops.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
