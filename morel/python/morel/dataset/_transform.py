"""Base of the transforms, and small checks that they share.

A transform is called with one or several arrays. Where it can work on all rows of a batch at once it has `_apply_batch(column)`,
which must give the same values as row by row.
"""

import numpy as np

from morel.dataset import _random

row_generator = _random.row_generator


def numpy_dtype(dtype, name="data_type"):
    """The NumPy dtype that a Morel dtype, NumPy dtype, Python type or name means."""
    text = dtype if isinstance(dtype, (np.dtype, type, str)) else str(dtype).rsplit(".", 1)[-1].lower().rstrip("_")
    if text == "bfloat16":
        raise TypeError("NumPy has no bfloat16; convert with Tensor.astype in the network.")
    try:
        return np.dtype("str" if text == "string" else text)
    except TypeError:
        raise TypeError(
            f"Argument {name} with value {dtype} is not of type [a dtype, <class "
            f"'numpy.dtype'>], but got {type(dtype)}."
        ) from None


def check_probability(prob, name="prob"):
    """A number in [0, 1]."""
    check_number(prob, name)
    if not 0 <= prob <= 1:
        raise ValueError(f"Input {name} is not within the required interval of [0.0, 1.0].")


def check_number(value, name):
    """An int or float."""
    if not isinstance(value, (int, float, np.number)) or isinstance(value, bool):
        raise TypeError(
            f"Argument {name} with value {value} is not of type [<class 'int'>, <class 'float'>], but got "
            f"{type(value)}."
        )


def check_int(value, name, low=None):
    """An int, at least `low`."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"Argument {name} with value {value} is not of type [<class 'int'>], but got {type(value)}.")
    if low is not None and value < low:
        raise ValueError(f"Input {name} is not within the required interval of [{low}, 2147483647].")


def size_pair(size):
    """(height, width) of a size argument: one int for both, or a pair."""
    if isinstance(size, (int, np.integer)) and not isinstance(size, bool):
        size = (size, size)
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise TypeError("Size should be a single integer or a list/tuple (h, w) of length 2.")
    for value in size:
        check_int(value, "size")
        if not 1 <= value <= 16777216:
            raise ValueError("Input is not within the required interval of [1, 16777216].")
    return int(size[0]), int(size[1])


class Transform:
    """Base class: checks the inputs, then `_apply`."""

    def __call__(self, *inputs):
        if not inputs:
            raise ValueError(f"For '{type(self).__name__}', at least one input is needed.")
        outputs = tuple(self._apply(self._check(value)) for value in inputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def _check(self, value):
        return np.asarray(value)

    def _apply(self, value):
        raise NotImplementedError
