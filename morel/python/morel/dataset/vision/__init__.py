"""Transforms of images: NumPy arrays [height, width, channels] or [height, width], or PIL images."""

from morel.dataset.transforms import not_random
from morel.dataset.vision import _augment, _geometry, _values, utils
from morel.dataset.vision._augment import *  # noqa: F401,F403
from morel.dataset.vision._geometry import *  # noqa: F401,F403
from morel.dataset.vision._values import *  # noqa: F401,F403
from morel.dataset.vision.utils import *  # noqa: F401,F403

__all__ = ["not_random", *_augment.__all__, *_geometry.__all__, *_values.__all__, *utils.__all__]

_LATER = frozenset(
    """
AdjustBrightness AdjustContrast AdjustGamma AdjustHue AdjustSaturation AdjustSharpness Affine AutoAugment AutoAugmentPolicy
AutoContrast BoundingBoxAugment ConvertColor ConvertMode DecodeVideo Equalize FiveCrop GaussianBlur HsvToRgb ImageReadMode
LinearTransformation MixUp Perspective Posterize RandAugment RandomAdjustSharpness RandomAffine RandomAutoContrast
RandomColor RandomCropDecodeResize RandomCropWithBBox RandomEqualize RandomGrayscale RandomHorizontalFlipWithBBox
RandomInvert RandomLighting RandomPerspective RandomPosterize RandomResize RandomResizeWithBBox
RandomResizedCropWithBBox RandomRotation RandomSelectSubpolicy RandomSharpness RandomSolarize
RandomVerticalFlipWithBBox ResizeWithBBox RgbToHsv Rotate SliceMode SlicePatches Solarize TenCrop TrivialAugmentWide
UniformAugment VideoDecoder encode_jpeg encode_png get_image_num_channels get_image_size read_file read_image read_video
read_video_timestamps write_file write_jpeg write_png""".split()
)


def __getattr__(name):
    if name in _LATER:

        def later(*args, **kwargs):
            raise NotImplementedError(f"'vision.{name}' is not supported yet; supported are {', '.join(__all__)}.")

        later.__name__ = name
        return later
    raise AttributeError(f"module 'morel.dataset.vision' has no attribute '{name}'")
