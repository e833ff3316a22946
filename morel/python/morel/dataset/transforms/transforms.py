"""Transforms of any kind of data."""

import enum

import numpy as np

from morel.dataset._pipeline import pipeline_error, to_array
from morel.dataset._transform import Transform, check_int, check_number, check_probability, numpy_dtype, row_generator

__all__ = [
    "Compose",
    "Concatenate",
    "Duplicate",
    "Fill",
    "Mask",
    "OneHot",
    "PadEnd",
    "RandomApply",
    "RandomChoice",
    "RandomOrder",
    "Relational",
    "Slice",
    "TypeCast",
    "Unique",
    "not_random",
]


class Relational(enum.IntEnum):
    """Comparisons of `Mask`."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


def not_random(function):
    """Marks a user's function as one that gives the same output for the same input."""
    function.random = False
    return function


def _check_list(transforms):
    if not isinstance(transforms, (list, tuple)):
        raise TypeError(
            f"Argument transforms with value {transforms} is not of type [<class 'list'>, <class 'tuple'>], but "
            f"got {type(transforms)}."
        )
    if not transforms:
        raise ValueError("transforms list can not be empty.")
    for i, transform in enumerate(transforms):
        if not callable(transform):
            raise TypeError(f"transforms[{i}] is neither a transforms op (TensorOperation) nor a callable pyfunc.")
    return list(transforms)


class Compose:
    """Transforms one after the other, as one.

    Args:
        transforms (list): transforms or functions.
    """

    def __init__(self, transforms):
        self.transforms = self._parts = _check_list(transforms)

    def __call__(self, *values):
        for transform in self.transforms:
            result = transform(*values)
            values = result if isinstance(result, tuple) else (result,)
        return values if len(values) > 1 else values[0]


class _Choosing:
    """Base of the transforms that apply some of a list, chosen at random."""

    def __init__(self, transforms):
        self.transforms = _check_list(transforms)

    def _chosen(self):
        raise NotImplementedError

    def __call__(self, *values):
        for transform in self._chosen():
            result = transform(*values)
            values = result if isinstance(result, tuple) else (result,)
        return values if len(values) > 1 else values[0]


class RandomApply(_Choosing):
    """All transforms of a list or none.

    Args:
        transforms (list): transforms or functions.
        prob (float): probability of applying them. Default ``0.5``.
    """

    def __init__(self, transforms, prob=0.5):
        super().__init__(transforms)
        check_probability(prob)
        self.prob = prob

    def _chosen(self):
        return self.transforms if row_generator().random() < self.prob else []


class RandomChoice(_Choosing):
    """One transform of a list."""

    def _chosen(self):
        return [self.transforms[row_generator().integers(len(self.transforms))]]


class RandomOrder(_Choosing):
    """The transforms of a list in random order."""

    def _chosen(self):
        return [self.transforms[i] for i in row_generator().permutation(len(self.transforms))]


class TypeCast(Transform):
    """Converts to another type.

    Args:
        data_type (Union[mindspore.dtype, numpy.dtype]): the new type.
    """

    def __init__(self, data_type):
        self.data_type = data_type
        self._dtype = numpy_dtype(data_type)

    def _apply(self, value):
        return value.astype(self._dtype)

    _apply_batch = _apply


class OneHot(Transform):
    """Class numbers as one-hot rows.

    Args:
        num_classes (int): number of classes.
        smoothing_rate (float): s: the row is (1 - s) * onehot + s / num_classes. Default ``0.0``.
    """

    def __init__(self, num_classes, smoothing_rate=0.0):
        check_int(num_classes, "num_classes", 1)
        check_number(smoothing_rate, "smoothing_rate")
        if not 0 <= smoothing_rate <= 1:
            raise ValueError("Input smoothing_rate is not within the required interval of [0.0, 1.0].")
        self.num_classes, self.smoothing_rate = num_classes, smoothing_rate

    def _apply(self, value):
        if value.dtype.kind not in "iu":
            raise pipeline_error(f"OneHot: Only support input of int type, but got: {value.dtype}")
        if value.size and (value.max() >= self.num_classes or value.min() < 0):
            raise pipeline_error(
                f"OneHot: index values should not bigger than num classes: {self.num_classes}, but got: "
                f"{value.max()} (or be negative)"
            )
        hot = np.arange(self.num_classes) == value[..., None]
        if self.smoothing_rate == 0:
            return hot.astype(value.dtype)
        return np.where(
            hot,
            1 - self.smoothing_rate + self.smoothing_rate / self.num_classes,
            self.smoothing_rate / self.num_classes,
        )

    _apply_batch = _apply


class Fill(Transform):
    """An array of one value, with the shape and type of the input.

    Args:
        fill_value (Union[str, bytes, int, float, bool]): the value.
    """

    def __init__(self, fill_value):
        self.fill_value = fill_value

    def _apply(self, value):
        is_text = value.dtype.kind in "SU"
        if is_text != isinstance(self.fill_value, (str, bytes)):
            raise pipeline_error("Fill: fill_value and the input tensor must be of the same data type.")
        return np.full(value.shape, self.fill_value, None if is_text else value.dtype)

    _apply_batch = _apply


class Mask(Transform):
    """Compares with a constant.

    Args:
        operator (Relational): which comparison.
        constant (Union[str, int, float, bool]): the constant.
        dtype (mindspore.dtype): type of the result. Default: bool.
    """

    _compare = {
        Relational.EQ: np.equal,
        Relational.NE: np.not_equal,
        Relational.GT: np.greater,
        Relational.GE: np.greater_equal,
        Relational.LT: np.less,
        Relational.LE: np.less_equal,
    }

    def __init__(self, operator, constant, dtype=bool):
        if not isinstance(operator, Relational):
            raise TypeError(
                f"Argument operator with value {operator} is not of type [<enum 'Relational'>], but got "
                f"{type(operator)}."
            )
        self.operator, self.constant, self._dtype = operator, constant, numpy_dtype(dtype)

    def _apply(self, value):
        return self._compare[self.operator](value, self.constant).astype(self._dtype)

    _apply_batch = _apply


class Slice:
    """Part of an array.

    Args:
        slices (Union[int, list[int], slice, None, Ellipsis]): one for each axis; a list picks, ``None`` takes all.
    """

    def __init__(self, *slices):
        if not slices:
            raise ValueError("slices can not be empty.")
        self.slices = slices

    def __call__(self, value):
        value = np.asarray(value)
        if Ellipsis in [s for s in self.slices if not isinstance(s, list)] and len(self.slices) == 1:
            return value
        for axis, choice in enumerate(self.slices):
            if choice is None or choice is Ellipsis:
                continue
            choice = [choice] if isinstance(choice, int) else choice
            index = (slice(None),) * axis + (choice,)
            value = value[index]
        return value


class Concatenate:
    """Joins arrays along an axis.

    Args:
        axis (int): the axis. Default ``0``.
        prepend (numpy.ndarray, optional): put in front.
        append (numpy.ndarray, optional): put behind.
    """

    def __init__(self, axis=0, prepend=None, append=None):
        check_int(axis, "axis")
        self.axis, self.prepend, self.append = axis, prepend, append

    def __call__(self, *values):
        parts = [to_array(part) for part in (self.prepend, *values, self.append) if part is not None]
        return np.concatenate(parts, self.axis)


class Duplicate:
    """The input twice, as two columns."""

    def __call__(self, value):
        return np.asarray(value), np.array(value)


class PadEnd(Transform):
    """Fills up (or cuts) to a shape.

    Args:
        pad_shape (list[Union[int, None]]): the new sizes; ``None`` leaves an axis.
        pad_value (Union[str, int, float, bool], optional): the filling. Default: 0 or "".
    """

    def __init__(self, pad_shape, pad_value=None):
        if not isinstance(pad_shape, (list, tuple)):
            raise TypeError(
                f"Argument pad_shape with value {pad_shape} is not of type [<class 'list'>], but got {type(pad_shape)}."
            )
        self.pad_shape, self.pad_value = list(pad_shape), pad_value

    def _apply(self, value):
        from morel.dataset._pipeline import pad_to

        shape = [have if want is None else want for have, want in zip(value.shape, self.pad_shape)]
        if len(self.pad_shape) != value.ndim:
            shape = self.pad_shape
        fill = self.pad_value if self.pad_value is not None else ("" if value.dtype.kind in "SU" else 0)
        return pad_to(value, shape, fill)


class Unique:
    """The different values of a batch: (values, index of each input in them, number of each)."""

    def __call__(self, value):
        value = np.asarray(value)
        if value.ndim < 2:
            raise pipeline_error(f"Unique: input must be at least 2-D in order to do unique op, got rank: {value.ndim}")
        values, places, counts = np.unique(value, return_inverse=True, return_counts=True)
        return values, places.reshape(-1).astype(np.int32), counts.astype(np.int32)


class Plugin:
    """Not supported."""

    def __init__(self, lib_path, func_name, user_args=None):
        raise NotImplementedError("'Plugin' is not supported; write the transform as a Python function.")
