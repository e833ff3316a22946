"""Layers that rearrange the channels and pixels of images, and PSNR."""

from morel import ops
from morel.nn import _check
from morel.nn.cell import Cell

__all__ = ["PixelShuffle", "PixelUnshuffle", "ChannelShuffle", "PSNR"]


class PixelShuffle(Cell):
    """Moves channels into space: [*, C * r^2, H, W] -> [*, C, H * r, W * r].

    Args:
        upscale_factor (int): r.

    Source: Shi et al., Real-Time Single Image and Video Super-Resolution, 2016.
    """

    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = _check.check_positive_int(upscale_factor, "upscale_factor", self.cls_name)

    def construct(self, input):
        factor = self.upscale_factor
        *batch, channels, height, width = input.shape
        if channels % factor**2:
            raise ValueError(f"For 'PixelShuffle', the channels {channels} must be divisible by {factor**2}.")
        split = input.reshape((-1, channels // factor**2, factor, factor, height, width))
        return split.transpose((0, 1, 4, 2, 5, 3)).reshape(
            (*batch, channels // factor**2, height * factor, width * factor)
        )


class PixelUnshuffle(Cell):
    """The inverse of `PixelShuffle`.

    Args:
        downscale_factor (int): r.
    """

    def __init__(self, downscale_factor):
        super().__init__()
        self.downscale_factor = _check.check_positive_int(downscale_factor, "downscale_factor", self.cls_name)

    def construct(self, input):
        factor = self.downscale_factor
        *batch, channels, height, width = input.shape
        if height % factor or width % factor:
            raise ValueError(f"For 'PixelUnshuffle', height {height} and width {width} must be divisible by {factor}.")
        split = input.reshape((-1, channels, height // factor, factor, width // factor, factor))
        return split.transpose((0, 1, 3, 5, 2, 4)).reshape(
            (*batch, channels * factor**2, height // factor, width // factor)
        )


class ChannelShuffle(Cell):
    """Deals the channels of [N, C, *] like cards into `groups` groups.

    Args:
        groups (int): number of groups; divides the channels.

    Source: Zhang et al., ShuffleNet, 2018, section 3.1.
    """

    def __init__(self, groups):
        super().__init__()
        self.groups = _check.check_positive_int(groups, "groups", self.cls_name)

    def construct(self, x):
        batch, channels, *space = x.shape
        if channels % self.groups:
            raise ValueError(f"For 'ChannelShuffle', the channels {channels} must be divisible by {self.groups}.")
        return x.reshape((batch, self.groups, channels // self.groups, -1)).swapaxes(1, 2).reshape(x.shape)


class PSNR(Cell):
    """Peak signal-to-noise ratio of two batches of images in dB: 10 log10(max_val^2 / mean squared error).

    Args:
        max_val (Union[int, float]): largest pixel value. Default ``1.0``.
    """

    def __init__(self, max_val=1.0):
        super().__init__()
        self.max_val = _check.check_float(max_val, "max_val", self.cls_name, 0, None, "()")

    def construct(self, img1, img2):
        _check.check_rank(img1, (4,), self.cls_name)
        error = ops.square(img1 - img2).mean((1, 2, 3))
        return ops.log(self.max_val**2 / error) * (10.0 / 2.302585092994046)
