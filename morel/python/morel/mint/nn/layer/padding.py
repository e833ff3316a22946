"""Padding layers of `mint.nn`: those of `nn`, whose input is called ``input`` here."""

from morel.nn.layer import padding as _layers

__all__ = [
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _WithInput:
    def construct(self, input):
        return super().construct(input)


class ConstantPad1d(_WithInput, _layers.ConstantPad1d):
    """See `nn.ConstantPad1d`."""


class ConstantPad2d(_WithInput, _layers.ConstantPad2d):
    """See `nn.ConstantPad2d`."""


class ConstantPad3d(_WithInput, _layers.ConstantPad3d):
    """See `nn.ConstantPad3d`."""


class ReflectionPad1d(_WithInput, _layers.ReflectionPad1d):
    """See `nn.ReflectionPad1d`."""


class ReflectionPad2d(_WithInput, _layers.ReflectionPad2d):
    """See `nn.ReflectionPad2d`."""


class ReflectionPad3d(_WithInput, _layers.ReflectionPad3d):
    """See `nn.ReflectionPad3d`."""


class ReplicationPad1d(_WithInput, _layers.ReplicationPad1d):
    """See `nn.ReplicationPad1d`."""


class ReplicationPad2d(_WithInput, _layers.ReplicationPad2d):
    """See `nn.ReplicationPad2d`."""


class ReplicationPad3d(_WithInput, _layers.ReplicationPad3d):
    """See `nn.ReplicationPad3d`."""


class ZeroPad2d(_WithInput, _layers.ZeroPad2d):
    """See `nn.ZeroPad2d`."""


class ZeroPad1d(_WithInput, _layers._PadNd):
    """Pads the last dimension with zeros.

    Args:
        padding (Union[int, tuple]): both sides, or (before, after); negative numbers crop.
    """

    def __init__(self, padding):
        super().__init__(padding, 0)


class ZeroPad3d(_WithInput, _layers._PadNd):
    """Pads the last three dimensions with zeros.

    Args:
        padding (Union[int, tuple]): all sides, or (left, right, top, bottom, front, back); negative numbers crop.
    """

    _rank = 3

    def __init__(self, padding):
        super().__init__(padding, 0)
