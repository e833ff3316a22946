"""Resizing of images as a product with two small matrices, one per axis."""

import enum
import functools

import numpy as np

from morel.dataset._pipeline import pipeline_error


class Inter(enum.IntEnum):
    """Kinds of interpolation."""

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5

    @classmethod
    def checked(cls, value):
        """`value`, if it is one that works here."""
        if not isinstance(value, cls):
            raise TypeError(
                f"Argument interpolation with value {value} is not of type [<enum 'Inter'>], but got {type(value)}."
            )
        if value in (cls.ANTIALIAS, cls.PILCUBIC):
            raise NotImplementedError(
                f"Interpolation {value!r} is not supported yet; supported are NEAREST, BILINEAR, BICUBIC, AREA."
            )
        return value


def _area_matrix(size, new_size):
    """The matrix [new_size, size] that shrinks one axis: the mean over the area that a new pixel covers."""
    scale = size / new_size
    cells = np.arange(size)
    begin = np.arange(new_size)[:, None] * scale
    return np.clip(np.minimum(cells + 1, begin + scale) - np.maximum(cells, begin), 0, None) / scale


def _taps(size, new_size, kind):
    """(indices, weights), both [taps, new_size]. Pixels are areas: centre i lies at (i + 0.5) * scale - 0.5."""
    scale = size / new_size
    if kind is Inter.AREA:  # enlarging: linear within the last part of a pixel, constant before
        first = np.floor(np.arange(new_size) * scale).astype(int)
        fraction = np.arange(1, new_size + 1) - (first + 1) / scale
        fraction = np.where(fraction <= 0, 0, fraction - np.floor(fraction))
    else:
        position = (np.arange(new_size) + 0.5) * scale - 0.5
        first = np.floor(position).astype(int)
        fraction = position - first
    if kind is not Inter.BICUBIC:
        shifts, weights = (0, 1), [1 - fraction, fraction]
    else:  # Keys, Cubic Convolution Interpolation, 1981, eq. 4 with a = -0.75
        a = -0.75
        near = [((a + 2) * t - (a + 3)) * t * t + 1 for t in (fraction, 1 - fraction)]
        far = [((a * t - 5 * a) * t + 8 * a) * t - 4 * a for t in (1 + fraction, 2 - fraction)]
        shifts, weights = (-1, 0, 1, 2), [far[0], near[0], near[1], far[1]]
    return np.stack([np.clip(first + shift, 0, size - 1) for shift in shifts]), np.stack(weights)


@functools.lru_cache(64)
def _matrix(size, new_size, kind, fixed_point):
    """The matrix [new_size, size] that resizes one axis; `fixed_point`: in units of 1 / 2048."""
    indices, weights = _taps(size, new_size, kind)
    if fixed_point:
        weights = np.rint(weights * 2048).astype(np.int64)
    out = np.zeros((new_size, size), weights.dtype)
    for index, weight in zip(indices, weights):
        np.add.at(out, (np.arange(new_size), index), weight)
    return out


def _linear_bytes(planes, height, width, kind):
    """Linear resizing of uint8 planes [C, H, W] in fixed point, with the shifts of OpenCV's cv::resize, which MindSpore uses:
    results are the same to the last bit."""
    across = planes.astype(np.int64) @ _matrix(planes.shape[2], width, kind, True).T >> 4
    indices, weights = _taps(planes.shape[1], height, kind)
    weights = np.rint(weights * 2048).astype(np.int64)[..., None]
    return (sum(across[:, index] * weight >> 16 for index, weight in zip(indices, weights)) + 2) >> 2


def _resized_planes(planes, height, width, kind):
    sizes = list(zip(planes.shape[1:], (height, width)))
    is_byte = planes.dtype == np.uint8
    if kind is Inter.AREA and all(old >= new for old, new in sizes):
        down, across = (_area_matrix(*pair) for pair in sizes)
        return down @ planes.astype(np.float64) @ across.T
    if is_byte and kind is not Inter.BICUBIC:
        return _linear_bytes(planes, height, width, kind)
    down, across = (_matrix(*pair, kind, is_byte) for pair in sizes)
    out = down @ planes.astype(across.dtype) @ across.T
    return (out + (1 << 21)) >> 22 if is_byte else out


def resized(image, height, width, kind):
    """`image` [H, W] or [H, W, C] with a new height and width, in its type."""
    rows, columns = image.shape[:2]
    if rows == 0 or columns == 0:
        raise pipeline_error(f"Resize: the image is empty, shape {image.shape}")
    if (rows, columns) == (height, width):
        return image
    if kind is Inter.NEAREST:
        index = [
            np.minimum(np.arange(new) * (old / new), old - 1).astype(int)
            for new, old in ((height, rows), (width, columns))
        ]
        return np.ascontiguousarray(image[index[0]][:, index[1]])
    planes = np.ascontiguousarray(image.reshape(rows, columns, -1).transpose(2, 0, 1))
    out = _resized_planes(planes, height, width, kind).transpose(1, 2, 0).reshape(height, width, *image.shape[2:])
    if image.dtype.kind in "iu":
        limits = np.iinfo(image.dtype)
        out = np.clip(np.floor(out + 0.5) if out.dtype.kind == "f" else out, limits.min, limits.max)
    return np.ascontiguousarray(out.astype(image.dtype))
