"""Transforms that change images at random: occlusion, colour, mixing."""

import math

import numpy as np

from morel.dataset._pipeline import pipeline_error
from morel.dataset._transform import check_int, check_number, check_probability, row_generator
from morel.dataset.vision._values import ImageTransform, _like
from morel.dataset.vision.utils import ImageBatchFormat

__all__ = ["Erase", "CutOut", "RandomErasing", "RandomColorAdjust", "MixUpBatch", "CutMixBatch"]


class Erase(ImageTransform):
    """Overwrites a window.

    Args:
        top, left, height, width (int): the window.
        value (Union[float, Sequence[float]]): the new value, one per channel or for all. Default ``0.0``.
        inplace (bool): kept for scripts. Default ``False``.
    """

    _gives_image = True

    def __init__(self, top, left, height, width, value=0.0, inplace=False):
        for number, name in ((top, "top"), (left, "left")):
            check_int(number, name, 0)
        for number, name in ((height, "height"), (width, "width")):
            check_int(number, name, 1)
        self._window, self.value = (top, left, height, width), value

    def _apply(self, value):
        top, left, height, width = self._window
        out = value.copy()
        out[top : top + height, left : left + width] = np.asarray(self.value)
        return out


class CutOut(ImageTransform):
    """Sets random squares to 0.

    Args:
        length (int): edge of a square.
        num_patches (int): number of squares. Default ``1``.
        is_hwc (bool): whether channels are the last axis. Default ``True``.

    Source: DeVries and Taylor, Improved Regularization of Convolutional Neural Networks with Cutout, 2017.
    """

    _gives_image = True

    def __init__(self, length, num_patches=1, is_hwc=True):
        check_int(length, "length", 1)
        check_int(num_patches, "num_patches", 1)
        self.length, self.num_patches, self.is_hwc = length, num_patches, is_hwc

    def _apply(self, value):
        out = value.copy()
        rows, columns = value.shape[:2] if self.is_hwc else value.shape[-2:]
        if self.length > rows or self.length > columns:
            raise pipeline_error(
                f"CutOut: box size is too large for image, got box length: {self.length}, image shape: {value.shape}"
            )
        draw = row_generator()
        for _ in range(self.num_patches):
            top, left = draw.integers(rows - self.length + 1), draw.integers(columns - self.length + 1)
            window = slice(top, top + self.length), slice(left, left + self.length)
            out[window if self.is_hwc else (..., *window)] = 0
        return out


class RandomErasing(ImageTransform):
    """Overwrites a random window of an image [C, H, W] with a probability.

    Args:
        prob (float): probability. Default ``0.5``.
        scale (Sequence): range of the window's area, relative to the image. Default ``(0.02, 0.33)``.
        ratio (Sequence): range of height / width. Default ``(0.3, 3.3)``.
        value (Union[int, str, Sequence]): the new value, one per channel, or ``"random"``. Default ``0``.
        inplace (bool): kept for scripts. Default ``False``.
        max_attempts (int): number of windows to try. Default ``10``.

    Source: Zhong et al., Random Erasing Data Augmentation, 2017, algorithm 1.
    """

    def __init__(self, prob=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False, max_attempts=10):
        check_probability(prob)
        self.prob, self.scale, self.ratio, self.value, self.max_attempts = prob, scale, ratio, value, max_attempts

    def _apply(self, value):
        draw = row_generator()
        if draw.random() >= self.prob:
            return value
        rows, columns = value.shape[-2:]
        for _ in range(self.max_attempts):
            area = rows * columns * draw.uniform(*self.scale)
            aspect = math.exp(draw.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            height, width = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < height < rows and 0 < width < columns:
                top, left = draw.integers(rows - height + 1), draw.integers(columns - width + 1)
                out = value.copy()
                shape = (*value.shape[:-2], height, width)
                new = draw.standard_normal(shape) if isinstance(self.value, str) else np.asarray(self.value)
                out[..., top : top + height, left : left + width] = new.reshape(-1, 1, 1) if new.ndim == 1 else new
                return out
        return value


def _range_pair(value, name, low, high, center):
    if isinstance(value, (int, float)):
        value = (center - value, center + value) if center == 0 else (max(0.0, center - value), center + value)
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(f"{name} needs to be a single number or a (min, max) range of length 2.")
    if value[0] > value[1]:
        raise ValueError(f"{name} value should be in (min, max) format. Got (max, min).")
    if value[0] < low or value[1] > high:
        raise ValueError(f"Input {name} is not within the required interval of [{low}, {high}].")
    return tuple(value)


class RandomColorAdjust(ImageTransform):
    """Changes brightness, contrast, saturation and hue of an image [H, W, 3] by random amounts, in random order.

    Args:
        brightness, contrast, saturation (Union[float, Sequence[float]]): range of the factor (a number v: [1-v, 1+v]).
        hue (Union[float, Sequence[float]]): range of the shift in turns of the colour circle, within [-0.5, 0.5].
    """

    _gives_image = True

    def __init__(self, brightness=(1, 1), contrast=(1, 1), saturation=(1, 1), hue=(0, 0)):
        self._ranges = [
            _range_pair(brightness, "brightness", 0, math.inf, 1),
            _range_pair(contrast, "contrast", 0, math.inf, 1),
            _range_pair(saturation, "saturation", 0, math.inf, 1),
            _range_pair(hue, "hue", -0.5, 0.5, 0),
        ]

    def _apply(self, value):
        if value.ndim != 3 or value.shape[-1] != 3:
            raise pipeline_error(f"RandomColorAdjust: image shape should be <H,W,3>, but got {value.shape}")
        draw = row_generator()
        steps = [_brightness, _contrast, _saturation, _hue]
        out = value.astype(np.float32)
        for i in draw.permutation(4):
            low, high = self._ranges[i]
            amount = draw.uniform(low, high)
            if amount != (0 if i == 3 else 1):
                out = np.clip(steps[i](out, amount), 0, 255)
        return _like(out, value)


def _brightness(image, factor):
    return image * factor


def _contrast(image, factor):
    mean = (image @ np.array([0.299, 0.587, 0.114], np.float32)).mean()
    return image * factor + mean * (1 - factor)


def _saturation(image, factor):
    gray = image @ np.array([0.299, 0.587, 0.114], np.float32)
    return image * factor + gray[..., None] * (1 - factor)


def _hue(image, shift):
    """Turns the hue of HSV (Smith, 1978), keeping value and saturation."""
    high, low = image.max(-1), image.min(-1)
    spread = high - low
    safe = np.where(spread == 0, 1, spread)
    red, green, blue = image[..., 0], image[..., 1], image[..., 2]
    sector = np.select(
        [high == red, high == green], [(green - blue) / safe, 2 + (blue - red) / safe], 4 + (red - green) / safe
    )
    sector = (sector + 6 * shift) % 6
    # channel n of [5, 3, 1]: high - spread * clamp(min(k, 4 - k), 0, 1) with k = (n + sector) mod 6
    k = (np.array([5, 3, 1], np.float32) + sector[..., None]) % 6
    return high[..., None] - spread[..., None] * np.clip(np.minimum(k, 4 - k), 0, 1)


class _MixBatch:
    """Base of the transforms that mix the images of a batch: they take (images, one-hot labels)."""

    @staticmethod
    def _checked(images, labels):
        if images.ndim != 4 or labels.ndim not in (2, 3) or len(images) != len(labels):
            raise pipeline_error(
                f"images of shape <N,H,W,C> or <N,C,H,W> and one-hot labels of shape <N,K> are needed (apply "
                f"OneHot and batch before), but got {images.shape} and {labels.shape}."
            )
        return labels.astype(np.float32)


class MixUpBatch(_MixBatch):
    """Blends each image of a batch with another: w * a + (1 - w) * b, with w from Beta(alpha, alpha), labels likewise.

    Args:
        alpha (float): parameter of the Beta distribution. Default ``1.0``.

    Source: Zhang et al., mixup: Beyond Empirical Risk Minimization, 2018, section 2.
    """

    def __init__(self, alpha=1.0):
        check_number(alpha, "alpha")
        if alpha <= 0:
            raise ValueError("Input alpha is not within the required interval of (0, 16777216].")
        self.alpha = alpha

    def __call__(self, images, labels):
        labels = self._checked(images, labels)
        draw = row_generator()
        weight = draw.beta(self.alpha, self.alpha)
        partner = draw.permutation(len(images))
        mixed = weight * images.astype(np.float32) + (1 - weight) * images[partner].astype(np.float32)
        return _like(mixed, images), (weight * labels + (1 - weight) * labels[partner]).astype(np.float32)


class CutMixBatch(_MixBatch):
    """Replaces a random window of each image of a batch by that of another; labels are mixed by area.

    Args:
        image_batch_format (ImageBatchFormat): order of the axes.
        alpha (float): parameter of the Beta distribution of the area. Default ``1.0``.
        prob (float): probability. Default ``1.0``.

    Source: Yun et al., CutMix: Regularization Strategy to Train Strong Classifiers, 2019, section 3.1.
    """

    def __init__(self, image_batch_format, alpha=1.0, prob=1.0):
        if not isinstance(image_batch_format, ImageBatchFormat):
            raise TypeError(
                f"Argument image_batch_format with value {image_batch_format} is not of type [<enum "
                f"'ImageBatchFormat'>], but got {type(image_batch_format)}."
            )
        check_probability(prob)
        check_number(alpha, "alpha")
        self.image_batch_format, self.alpha, self.prob = image_batch_format, alpha, prob

    def __call__(self, images, labels):
        labels = self._checked(images, labels)
        draw = row_generator()
        if draw.random() >= self.prob:
            return images, labels
        last = self.image_batch_format is ImageBatchFormat.NHWC
        rows, columns = images.shape[1:3] if last else images.shape[2:]
        side = math.sqrt(1 - draw.beta(self.alpha, self.alpha))
        middle_row, middle_column = draw.integers(rows), draw.integers(columns)
        top, bottom = (int(np.clip(middle_row + sign * rows * side / 2, 0, rows)) for sign in (-1, 1))
        left, right = (int(np.clip(middle_column + sign * columns * side / 2, 0, columns)) for sign in (-1, 1))
        window = (
            (slice(None), slice(top, bottom), slice(left, right))
            if last
            else (..., slice(top, bottom), slice(left, right))
        )
        partner = draw.permutation(len(images))
        out = images.copy()
        out[window] = images[partner][window]
        weight = 1 - (bottom - top) * (right - left) / (rows * columns)
        return out, (weight * labels + (1 - weight) * labels[partner]).astype(np.float32)
