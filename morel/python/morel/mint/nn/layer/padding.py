"""Padding layers of `mint.nn`."""
from morel.nn.layer.padding import (ConstantPad1d, ConstantPad2d, ConstantPad3d, ReflectionPad1d, ReflectionPad2d,
                                    ReflectionPad3d, ReplicationPad1d, ReplicationPad2d, ReplicationPad3d, ZeroPad2d,
                                    _PadNd)

__all__ = ["ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d",
           "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d"]


class ZeroPad1d(_PadNd):
    """Pads the last dimension with zeros.

    Args:
        padding (Union[int, tuple]): both sides, or (before, after); negative numbers crop.
    """

    def __init__(self, padding):
        super().__init__(padding, 0)


class ZeroPad3d(_PadNd):
    """Pads the last three dimensions with zeros.

    Args:
        padding (Union[int, tuple]): all sides, or (left, right, top, bottom, front, back); negative numbers crop.
    """
    _rank = 3

    def __init__(self, padding):
        super().__init__(padding, 0)
