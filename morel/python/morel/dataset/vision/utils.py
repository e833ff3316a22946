"""Enumerations of the image transforms."""

import enum

from morel.dataset._resize import Inter

__all__ = ["Border", "ImageBatchFormat", "Inter"]


class Border(str, enum.Enum):
    """How the frame of a padded image is filled: a value, the edge, mirrored without or with the edge."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class ImageBatchFormat(enum.IntEnum):
    """Order of the axes of a batch of images."""

    NHWC = 0
    NCHW = 1
