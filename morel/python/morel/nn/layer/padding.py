"""Layers that pad the last dimensions: constant, zero, mirrored and repeated values."""

from morel import ops
from morel.nn import _check
from morel.nn.cell import Cell

__all__ = [
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ZeroPad2d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
]


class _PadNd(Cell):
    """Pads up to `_rank` trailing dimensions; the numbers go from the last dimension to the front, before and after."""

    _rank = 1
    _mode = "constant"

    def __init__(self, padding, value=None):
        super().__init__()
        cls = self.cls_name
        if isinstance(padding, int) and not isinstance(padding, bool):
            padding = (padding,) * (2 * self._rank)
        elif not isinstance(padding, (tuple, list)):
            raise TypeError(f"For '{cls}', the 'padding' must be int or tuple, but got {type(padding).__name__}.")
        if not padding or len(padding) % 2 or len(padding) > 2 * self._rank:
            raise ValueError(
                f"For '{cls}', the length of 'padding' must be even and at most {2 * self._rank}, "
                f"but got {len(padding)}."
            )
        for item in padding:
            _check.check_int(item, "padding item", cls, None if self._mode == "constant" else 0)
        self.padding = tuple(padding)
        self.value = value

    def construct(self, x):
        if self._mode == "constant":
            return ops.pad(x, self.padding, "constant", self.value)
        if x.ndim not in (self._rank + 1, self._rank + 2):
            raise ValueError(
                f"For '{self.cls_name}', the input must have {self._rank + 1} or {self._rank + 2} dims, "
                f"but got {x.ndim}."
            )
        return ops.pad(x, self.padding, self._mode)


class _ConstantPadNd(_PadNd):
    def __init__(self, padding, value):
        super().__init__(padding, _check.check_type(value, (int, float, bool), "value", self.cls_name))


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with `value`.

    Args:
        padding (Union[int, tuple]): both sides, or (before, after); negative numbers crop.
        value (Union[int, float]): the value.
    """


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with `value`.

    Args:
        padding (Union[int, tuple]): all sides, or (left, right, top, bottom); negative numbers crop.
        value (Union[int, float]): the value.
    """

    _rank = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with `value`.

    Args:
        padding (Union[int, tuple]): all sides, or (left, right, top, bottom, front, back); negative numbers crop.
        value (Union[int, float]): the value.
    """

    _rank = 3


class ZeroPad2d(_PadNd):
    """Pads the last two dimensions with zeros.

    Args:
        padding (Union[int, tuple]): all sides, or (left, right, top, bottom); negative numbers crop.
    """

    _rank = 2

    def __init__(self, padding):
        super().__init__(padding, 0)


class _EdgePadNd(_PadNd):
    def __init__(self, padding):
        super().__init__(padding)


class ReflectionPad1d(_EdgePadNd):
    """Mirrors the last dimension at its ends, without repeating the edge.

    Args:
        padding (Union[int, tuple]): both sides, or (before, after).
    """

    _mode = "reflect"


class ReflectionPad2d(_EdgePadNd):
    """Mirrors the last two dimensions, without repeating the edge.

    Args:
        padding (Union[int, tuple]): all sides, or (left, right, top, bottom).
    """

    _rank = 2
    _mode = "reflect"


class ReflectionPad3d(_EdgePadNd):
    """Mirrors the last three dimensions, without repeating the edge.

    Args:
        padding (Union[int, tuple]): all sides, or (left, right, top, bottom, front, back).
    """

    _rank = 3
    _mode = "reflect"


class ReplicationPad1d(_EdgePadNd):
    """Repeats the edge of the last dimension.

    Args:
        padding (Union[int, tuple]): both sides, or (before, after).
    """

    _mode = "replicate"


class ReplicationPad2d(_EdgePadNd):
    """Repeats the edges of the last two dimensions.

    Args:
        padding (Union[int, tuple]): all sides, or (left, right, top, bottom).
    """

    _rank = 2
    _mode = "replicate"


class ReplicationPad3d(_EdgePadNd):
    """Repeats the edges of the last three dimensions.

    Args:
        padding (Union[int, tuple]): all sides, or (left, right, top, bottom, front, back).
    """

    _rank = 3
    _mode = "replicate"
