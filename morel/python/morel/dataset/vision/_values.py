"""Transforms of the values and the layout of images."""

import numpy as np

from morel.dataset._pipeline import pipeline_error
from morel.dataset._transform import Transform, check_int, check_number, numpy_dtype

__all__ = [
    "Rescale",
    "Normalize",
    "NormalizePad",
    "HWC2CHW",
    "ToTensor",
    "ToType",
    "ToNumpy",
    "ToPIL",
    "Decode",
    "Invert",
    "Grayscale",
]


class ImageTransform(Transform):
    """Base of the transforms of one image. Those that give an image again give a PIL image for a PIL image."""

    _ranks = (2, 3)
    _gives_image = False

    def __call__(self, *inputs):
        out = super().__call__(*inputs)
        if not self._gives_image or not any(_is_pil(value) for value in inputs):
            return out
        outputs = out if isinstance(out, tuple) else (out,)
        outputs = tuple(_to_pil(new) if _is_pil(old) else new for old, new in zip(inputs, outputs))
        return outputs if len(outputs) > 1 else outputs[0]

    def _check(self, value):
        if not isinstance(value, np.ndarray):
            if not _is_pil(value):
                raise TypeError(f"Input should be NumPy or PIL image, got {type(value)}.")
            value = np.asarray(value)
        if value.ndim < 2:
            raise pipeline_error(
                f"{type(self).__name__}: the image tensor should have at least two dimensions. You may need to perform "
                f"Decode first. Got rank: {value.ndim}"
            )
        if value.ndim > self._ranks[-1]:
            raise pipeline_error(
                f"{type(self).__name__}: image shape should be <H,W> or <H,W,C>, but got rank: {value.ndim}"
            )
        return value


def _is_pil(value):
    return not isinstance(value, np.ndarray) and hasattr(value, "getbands")


def _to_pil(value):
    from PIL import Image

    return Image.fromarray(value[..., 0] if value.ndim == 3 and value.shape[-1] == 1 else value)


def _scaled(value, factor):
    """value * factor as float32; 8 and 24 bits have an exact product in float64, so rounding once gives the same."""
    if value.dtype == np.uint8:
        out = value.astype(np.float32)
        out *= np.float32(factor)
        return out
    return (value.astype(np.float64) * np.float64(np.float32(factor))).astype(np.float32)


class Rescale(ImageTransform):
    """image * rescale + shift, as float32.

    Args:
        rescale (float): factor.
        shift (float): summand.
    """

    def __init__(self, rescale, shift):
        check_number(rescale, "rescale")
        check_number(shift, "shift")
        self.rescale, self.shift = rescale, shift

    def _apply(self, value):
        if self.shift == 0:
            return _scaled(value, self.rescale)
        # In float64 and rounded once; the two numbers are float32.
        out = value.astype(np.float64)
        out *= np.float64(np.float32(self.rescale))
        out += np.float64(np.float32(self.shift))
        return out.astype(np.float32)

    _apply_batch = _apply


class Normalize(ImageTransform):
    """(image - mean) / std for each channel, as float32.

    Args:
        mean (Union[list, tuple]): mean of each channel, in [0, 255].
        std (Union[list, tuple]): standard deviation of each channel, in (0, 255].
        is_hwc (bool): whether channels are the last axis (else the first). Default ``True``.
    """

    _dtype = np.float32

    def __init__(self, mean, std, is_hwc=True):
        for values, name in ((mean, "mean"), (std, "std")):
            if not isinstance(values, (list, tuple)):
                raise TypeError(
                    f"Argument {name} with value {values} is not of type [<class 'list'>, <class 'tuple'>], but "
                    f"got {type(values)}."
                )
        if len(mean) != len(std):
            raise ValueError("Length of mean and std must be equal.")
        for i, (center, deviation) in enumerate(zip(mean, std)):
            check_number(center, f"mean[{i}]")
            check_number(deviation, f"std[{i}]")
            if not 0 <= center <= 255:
                raise ValueError(f"Input mean[{i}] is not within the required interval of [0, 255].")
            if not 0 < deviation <= 255:
                raise ValueError(f"Input std[{i}] is not within the required interval of (0, 255].")
        if not isinstance(is_hwc, bool):
            raise TypeError(
                f"Argument is_hwc with value {is_hwc} is not of type [<class 'bool'>], but got {type(is_hwc)}."
            )
        self.mean, self.std, self.is_hwc = np.array(mean, np.float32), np.array(std, np.float32), is_hwc

    def _compute(self, value, rank):
        """`value` has `rank` axes per image; axes before them are those of a batch."""
        channels = 1 if rank == 2 else value.shape[-1 if self.is_hwc else -3]
        if len(self.mean) not in (1, channels):
            raise pipeline_error(
                f"Normalize: number of channels does not match the size of mean and std vectors, got "
                f"channels: {channels}, size of mean: {len(self.mean)}."
            )
        mean, std = self.mean, self.std
        if not self.is_hwc and rank == 3:
            mean, std = mean[:, None, None], std[:, None, None]
        out = value.astype(np.float32)
        out -= mean
        out /= std
        return out.astype(self._dtype, copy=False)

    def _apply(self, value):
        return self._compute(value, value.ndim)

    def _apply_batch(self, column):
        return self._compute(column, column.ndim - 1)


class NormalizePad(Normalize):
    """Normalize, then one more channel of zeros.

    Args:
        mean, std, is_hwc: as in Normalize.
        dtype (str): "float32" or "float16".
    """

    def __init__(self, mean, std, dtype="float32", is_hwc=True):
        super().__init__(mean, std, is_hwc)
        if dtype not in ("float32", "float16"):
            raise ValueError("dtype can only be 'float32' or 'float16'.")
        self._dtype = np.dtype(dtype)

    def _compute(self, value, rank):
        out = super()._compute(value, rank)
        axis = -1 if self.is_hwc else -3
        zeros = np.zeros_like(out.take([0], axis))
        return np.concatenate([out, zeros], axis)


class HWC2CHW(ImageTransform):
    """Channels first: [H, W, C] -> [C, H, W]."""

    def _apply(self, value):
        return np.ascontiguousarray(value.transpose(2, 0, 1)) if value.ndim == 3 else value

    def _apply_batch(self, column):
        if column.ndim != 4:
            return column
        count, height, width, channels = column.shape
        if channels == 1:
            return column.reshape(count, 1, height, width)
        return np.ascontiguousarray(column.transpose(0, 3, 1, 2))


class ToTensor(ImageTransform):
    """Values in [0, 1] and channels first: [H, W, C] uint8 -> [C, H, W].

    Args:
        output_type (Union[mindspore.dtype, numpy.dtype]): type of the result. Default: float32.
    """

    def __init__(self, output_type=np.float32):
        self._dtype = numpy_dtype(output_type, "output_type")

    def _scaled(self, value):
        return _scaled(value, 1 / 255.0).astype(self._dtype, copy=False)

    def _apply(self, value):
        value = self._scaled(value)
        return np.ascontiguousarray(value.transpose(2, 0, 1)) if value.ndim == 3 else value[None]

    def _apply_batch(self, column):
        column = self._scaled(column)
        return HWC2CHW()._apply_batch(column) if column.ndim == 4 else column[:, None]


class ToType(ImageTransform):
    """Converts to another type.

    Args:
        data_type (Union[mindspore.dtype, numpy.dtype]): the new type.
    """

    def __init__(self, data_type):
        self._dtype = numpy_dtype(data_type)

    def _apply(self, value):
        return value.astype(self._dtype)

    _apply_batch = _apply


class ToNumpy(ImageTransform):
    """A PIL image as an array."""

    def _apply(self, value):
        return value


class ToPIL(ImageTransform):
    """An array [H, W, C] or [H, W] as a PIL image."""

    def _apply(self, value):
        return _to_pil(value)


class Decode:
    """Decodes the bytes of an image file (JPEG, PNG ...) with Pillow, which must be installed.

    Args:
        to_pil (bool): give a PIL image instead of an array. Default ``False``.
    """

    def __init__(self, to_pil=False):
        if not isinstance(to_pil, bool):
            raise TypeError(
                f"Argument to_pil with value {to_pil} is not of type [<class 'bool'>], but got {type(to_pil)}."
            )
        self.to_pil = to_pil

    def __call__(self, data):
        if not isinstance(data, np.ndarray) or data.ndim != 1 or data.dtype.type not in (np.uint8, np.bytes_):
            raise TypeError(
                "Input should be an encoded image in 1-D NumPy format, got "
                f"{type(data) if not isinstance(data, np.ndarray) else (data.dtype, data.shape)}."
            )
        import io

        try:
            from PIL import Image
        except ImportError as error:
            raise NotImplementedError("'Decode' needs the package 'pillow'.") from error
        try:
            image = Image.open(io.BytesIO(data.tobytes())).convert("RGB")
        except Exception as error:
            raise pipeline_error(f"Decode: the image cannot be decoded: {error}") from error
        return image if self.to_pil else np.asarray(image)


class Invert(ImageTransform):
    """255 - image."""

    _gives_image = True

    def _apply(self, value):
        return (255 - value).astype(value.dtype)

    _apply_batch = _apply


class Grayscale(ImageTransform):
    """Luma 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601).

    Args:
        num_output_channels (int): 1 or 3. Default ``1``.
    """

    def __init__(self, num_output_channels=1):
        check_int(num_output_channels, "num_output_channels")
        if num_output_channels not in (1, 3):
            raise ValueError(
                f"Number of channels of the output grayscale image should be either 1 or 3, but got "
                f"{num_output_channels}."
            )
        self.num_output_channels = num_output_channels

    def _apply(self, value):
        gray = _luma(value) if value.ndim == 3 and value.shape[-1] == 3 else value.reshape(value.shape[:2])
        return gray if self.num_output_channels == 1 else np.repeat(gray[..., None], 3, -1)


def _luma(image):
    gray = image[..., :3].astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    return _like(gray, image)


def _like(value, image):
    """Float results in the type of `image`: rounded and kept in range for integers."""
    if image.dtype.kind not in "iu":
        return value.astype(image.dtype)
    limits = np.iinfo(image.dtype)
    return np.clip(np.rint(value), limits.min, limits.max).astype(image.dtype)
