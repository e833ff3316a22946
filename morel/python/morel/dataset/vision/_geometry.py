"""Transforms that move pixels: flips, crops, frames, resizing."""

import math

import numpy as np

from morel.dataset._pipeline import pipeline_error
from morel.dataset._resize import resized
from morel.dataset._transform import Transform, check_int, check_probability, row_generator, size_pair
from morel.dataset.vision._values import ImageTransform
from morel.dataset.vision.utils import Border, Inter

__all__ = [
    "HorizontalFlip",
    "VerticalFlip",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "Resize",
    "Crop",
    "ResizedCrop",
    "Pad",
    "PadToSize",
    "CenterCrop",
    "RandomCrop",
    "RandomResizedCrop",
]


class PixelMover(ImageTransform):
    """Base of the transforms of this file."""

    _gives_image = True


class HorizontalFlip(PixelMover):
    """Mirrors left and right; images may also be those of a video, [..., H, W, C]."""

    _ranks = (2, math.inf)

    def _apply(self, value):
        return np.ascontiguousarray(value[:, ::-1] if value.ndim == 2 else value[..., ::-1, :])


class VerticalFlip(PixelMover):
    """Mirrors top and bottom; images may also be those of a video, [..., H, W, C]."""

    _ranks = (2, math.inf)

    def _apply(self, value):
        return np.ascontiguousarray(value[::-1] if value.ndim == 2 else value[..., ::-1, :, :])


class _RandomFlip(PixelMover):
    """Base of the random flips: all images of one call alike.

    Args:
        prob (float): probability. Default ``0.5``.
    """

    _ranks = (2, math.inf)
    _flip = None

    def __init__(self, prob=0.5):
        check_probability(prob)
        self.prob = prob

    def __call__(self, *inputs):
        if row_generator().random() < self.prob:
            return self._flip()(*inputs)
        return Transform.__call__(self, *inputs)

    def _apply(self, value):
        return value


class RandomHorizontalFlip(_RandomFlip):
    """Mirrors left and right with a probability.

    Args:
        prob (float): probability. Default ``0.5``.
    """

    _flip = HorizontalFlip


class RandomVerticalFlip(_RandomFlip):
    """Mirrors top and bottom with a probability.

    Args:
        prob (float): probability. Default ``0.5``.
    """

    _flip = VerticalFlip


class Resize(PixelMover):
    """Changes the size.

    Args:
        size (Union[int, Sequence[int]]): (height, width); one int is the length of the shorter edge.
        interpolation (Inter): ``Inter.BILINEAR`` (default), ``NEAREST``, ``BICUBIC`` or ``AREA``.
    """

    def __init__(self, size, interpolation=Inter.BILINEAR):
        self._pair = size_pair(size)
        self._shorter = not isinstance(size, (list, tuple))
        self.interpolation = Inter.checked(interpolation)

    def _apply(self, value):
        height, width = self._pair
        if self._shorter:
            have = value.shape[:2]
            scale = height / min(have)
            height, width = (height, int(have[1] * scale)) if have[0] < have[1] else (int(have[0] * scale), width)
        return resized(value, height, width, self.interpolation)


def _cropped(value, top, left, height, width):
    return np.ascontiguousarray(value[top : top + height, left : left + width])


class Crop(PixelMover):
    """Cuts a window out.

    Args:
        coordinates (Sequence): (top, left).
        size (Union[int, Sequence[int]]): (height, width), or one for both.
    """

    def __init__(self, coordinates, size):
        if not isinstance(coordinates, (list, tuple)) or len(coordinates) != 2:
            raise TypeError("Coordinates should be a list/tuple (y, x) of length 2.")
        for value in coordinates:
            check_int(value, "coordinates", 0)
        self.coordinates, self.size = coordinates, size_pair(size)

    def _apply(self, value):
        (top, left), (height, width) = self.coordinates, self.size
        if top + height > value.shape[0] or left + width > value.shape[1]:
            raise pipeline_error(
                f"Crop: the window at ({top}, {left}) of size ({height}, {width}) does not lie in the image "
                f"of shape {value.shape}."
            )
        return _cropped(value, top, left, height, width)


class ResizedCrop(PixelMover):
    """Cuts a window out and changes its size.

    Args:
        top, left, height, width (int): the window.
        size (Union[int, Sequence[int]]): the new (height, width).
        interpolation (Inter): as in Resize.
    """

    def __init__(self, top, left, height, width, size, interpolation=Inter.BILINEAR):
        self._crop = Crop((top, left), (height, width))
        self._size, self.interpolation = size_pair(size), Inter.checked(interpolation)

    def _apply(self, value):
        return resized(self._crop._apply(value), *self._size, self.interpolation)


def _padded(value, left, top, right, bottom, fill, mode):
    widths = [(top, bottom), (left, right), (0, 0)][: value.ndim]
    if mode is not Border.CONSTANT:
        return np.pad(value, widths, mode.value)
    channels = value.shape[2] if value.ndim == 3 else 1
    if not isinstance(fill, (list, tuple)) or channels == 1:
        return np.pad(value, widths, constant_values=fill[0] if isinstance(fill, (list, tuple)) else fill)
    out = np.empty((value.shape[0] + top + bottom, value.shape[1] + left + right, channels), value.dtype)
    out[...] = np.array(fill[:channels], value.dtype)
    out[top : top + value.shape[0], left : left + value.shape[1]] = value
    return out


def _check_padding(padding):
    """(left, top, right, bottom) of a padding argument."""
    if isinstance(padding, (int, np.integer)) and not isinstance(padding, bool):
        padding = (padding,) * 4
    if not isinstance(padding, (list, tuple)):
        raise TypeError(
            f"Argument padding with value {padding} is not of type [<class 'tuple'>, <class 'list'>, <class "
            f"'numbers.Number'>], but got {type(padding)}."
        )
    if len(padding) == 2:
        padding = (padding[0], padding[1]) * 2
    if len(padding) != 4:
        raise ValueError("The size of the padding list or tuple should be 2 or 4.")
    for value in padding:
        check_int(value, "padding", 0)
    return tuple(padding)


def _check_fill(fill):
    for value in fill if isinstance(fill, (list, tuple)) else [fill]:
        check_int(value, "fill_value")
        if not 0 <= value <= 255:
            raise ValueError("Input fill_value is not within the required interval of [0, 255].")
    if isinstance(fill, (list, tuple)) and len(fill) != 3:
        raise TypeError("fill_value should be a single integer or a 3-tuple.")
    return fill


def _check_border(mode):
    if not isinstance(mode, Border):
        raise TypeError(
            f"Argument padding_mode with value {mode} is not of type [<enum 'Border'>], but got {type(mode)}."
        )
    return mode


class Pad(PixelMover):
    """Adds a frame.

    Args:
        padding (Union[int, Sequence]): pixels for all sides, (left and right, top and bottom), or (left, top, right, bottom).
        fill_value (Union[int, tuple[int]]): value of a constant frame. Default ``0``.
        padding_mode (Border): Default ``Border.CONSTANT``.
    """

    def __init__(self, padding, fill_value=0, padding_mode=Border.CONSTANT):
        self.padding = _check_padding(padding)
        self.fill_value, self.padding_mode = _check_fill(fill_value), _check_border(padding_mode)

    def _apply(self, value):
        return _padded(value, *self.padding, self.fill_value, self.padding_mode)


class PadToSize(PixelMover):
    """Adds a frame up to a size.

    Args:
        size (Union[int, Sequence[int]]): the new (height, width).
        offset (Union[int, Sequence[int]], optional): (top, left) of the image in it. Default ``None``: centred.
        fill_value, padding_mode: as in Pad.
    """

    def __init__(self, size, offset=None, fill_value=0, padding_mode=Border.CONSTANT):
        self.size = size_pair(size)
        self.offset = (offset, offset) if isinstance(offset, int) else offset
        self.fill_value, self.padding_mode = _check_fill(fill_value), _check_border(padding_mode)

    def _apply(self, value):
        height, width = self.size[0] - value.shape[0], self.size[1] - value.shape[1]
        if height < 0 or width < 0:
            raise pipeline_error(
                f"PadToSize: the target size {self.size} is smaller than the image of shape {value.shape}."
            )
        top, left = self.offset if self.offset else (height // 2, width // 2)
        return _padded(value, left, top, width - left, height - top, self.fill_value, self.padding_mode)


class CenterCrop(PixelMover):
    """Cuts the middle out; smaller images get a black frame.

    Args:
        size (Union[int, Sequence[int]]): (height, width), or one for both.
    """

    def __init__(self, size):
        self.size = size_pair(size)

    def _apply(self, value):
        height, width = self.size
        more_rows, more_columns = max(height - value.shape[0], 0), max(width - value.shape[1], 0)
        if more_rows or more_columns:
            value = _padded(
                value,
                more_columns // 2,
                more_rows // 2,
                more_columns - more_columns // 2,
                more_rows - more_rows // 2,
                0,
                Border.CONSTANT,
            )
        return _cropped(value, (value.shape[0] - height) // 2, (value.shape[1] - width) // 2, height, width)


class RandomCrop(PixelMover):
    """Cuts a window out at a random place.

    Args:
        size (Union[int, Sequence[int]]): (height, width), or one for both.
        padding (Union[int, Sequence[int]], optional): a frame to add first, as in Pad.
        pad_if_needed (bool): enlarge images that are smaller than the window. Default ``False``.
        fill_value, padding_mode: as in Pad.
    """

    def __init__(self, size, padding=None, pad_if_needed=False, fill_value=0, padding_mode=Border.CONSTANT):
        self.size = size_pair(size)
        self.padding = (0, 0, 0, 0) if padding is None else _check_padding(padding)
        if not isinstance(pad_if_needed, bool):
            raise TypeError(
                f"Argument pad_if_needed with value {pad_if_needed} is not of type [<class 'bool'>], but got "
                f"{type(pad_if_needed)}."
            )
        self.pad_if_needed = pad_if_needed
        self.fill_value, self.padding_mode = _check_fill(fill_value), _check_border(padding_mode)

    def _apply(self, value):
        height, width = self.size
        left, top, right, bottom = self.padding
        if self.pad_if_needed:
            rows, columns = value.shape[0] + top + bottom, value.shape[1] + left + right
            top, bottom = top + max(height - rows, 0), bottom + max(height - rows, 0)
            left, right = left + max(width - columns, 0), right + max(width - columns, 0)
        if left or top or right or bottom:
            value = _padded(value, left, top, right, bottom, self.fill_value, self.padding_mode)
        if height > value.shape[0] or width > value.shape[1]:
            raise pipeline_error(
                f"RandomCrop: invalid crop size, crop size is bigger than the image dimensions, got crop "
                f"height: {height}, crop width: {width}, image shape: {value.shape}"
            )
        draw = row_generator()
        top, left = draw.integers(value.shape[0] - height + 1), draw.integers(value.shape[1] - width + 1)
        return _cropped(value, top, left, height, width)


class RandomResizedCrop(PixelMover):
    """Cuts a window of random area and aspect ratio out and changes its size.

    Args:
        size (Union[int, Sequence[int]]): the new (height, width).
        scale (Union[list, tuple]): range of the window's area, relative to the image. Default ``(0.08, 1.0)``.
        ratio (Union[list, tuple]): range of width / height. Default ``(3/4, 4/3)``.
        interpolation (Inter): as in Resize.
        max_attempts (int): after so many windows that do not fit, the middle is taken. Default ``10``.

    Source: Szegedy et al., Going Deeper with Convolutions, 2015, section 6.
    """

    def __init__(
        self, size, scale=(0.08, 1.0), ratio=(3.0 / 4.0, 4.0 / 3.0), interpolation=Inter.BILINEAR, max_attempts=10
    ):
        self.size, self.interpolation = size_pair(size), Inter.checked(interpolation)
        for values, name in ((scale, "scale"), (ratio, "ratio")):
            if not isinstance(values, (list, tuple)) or len(values) != 2:
                raise ValueError(f"{name} should be a list/tuple (min, max) of length 2.")
            if values[0] > values[1]:
                raise ValueError(f"{name} should be in (min, max) format. Got (max, min).")
        check_int(max_attempts, "max_attempts", 1)
        self.scale, self.ratio, self.max_attempts = scale, ratio, max_attempts

    def _window(self, rows, columns):
        draw = row_generator()
        for _ in range(self.max_attempts):
            area = rows * columns * draw.uniform(*self.scale)
            aspect = math.exp(draw.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            height, width = round(math.sqrt(area / aspect)), round(math.sqrt(area * aspect))
            if 0 < height <= rows and 0 < width <= columns:
                return draw.integers(rows - height + 1), draw.integers(columns - width + 1), height, width
        aspect = min(max(columns / rows, self.ratio[0]), self.ratio[1])
        height, width = min(rows, round(columns / aspect)), min(columns, round(rows * aspect))
        return (rows - height) // 2, (columns - width) // 2, height, width

    def _apply(self, value):
        return resized(_cropped(value, *self._window(*value.shape[:2])), *self.size, self.interpolation)
