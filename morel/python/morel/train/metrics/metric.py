"""Base of the metrics."""

import abc
import functools

import numpy as np

__all__ = ["Metric", "rearrange_inputs"]


def rearrange_inputs(func):
    """Decorates ``update``: the inputs come in the order that `set_indexes` has set."""

    @functools.wraps(func)
    def wrapper(self, *inputs):
        indexes = self.indexes
        return func(self, *([inputs[i] for i in indexes] if indexes else inputs))

    return wrapper


class Metric(metaclass=abc.ABCMeta):
    """Base class: `clear` starts anew, `update` takes a batch, `eval` gives the value."""

    _indexes = None

    def __init__(self):
        self._indexes = None

    def _convert_data(self, data):
        """A Tensor, list or array as an array."""
        if hasattr(data, "asnumpy"):
            return (data.float() if str(data.dtype) == "BFloat16" else data).asnumpy()
        if isinstance(data, (list, np.ndarray)):
            return np.array(data)
        raise TypeError(
            f"For 'Metric' and its derived classes, the input data type must be tensor, list or numpy.ndarray, but "
            f"got {type(data)}."
        )

    @property
    def indexes(self):
        """The order of the inputs of `update` that was set, ``None`` if none was."""
        return self._indexes

    def set_indexes(self, indexes):
        """Sets which inputs of `update`, in which order, are used.

        Args:
            indexes (list[int]): their positions.

        Returns:
            The metric itself.
        """
        if not isinstance(indexes, list) or not all(isinstance(i, int) for i in indexes):
            raise ValueError(
                "For 'set_indexes', the argument 'indexes' must be a list and all its elements must be int, please "
                "check whether it is correct."
            )
        self._indexes = indexes
        return self

    def __call__(self, *inputs):
        """The value for one batch alone: `clear`, `update` and `eval`."""
        self.clear()
        self.update(*inputs)
        return self.eval()

    @abc.abstractmethod
    def clear(self):
        """Forgets all batches."""

    @abc.abstractmethod
    def eval(self):
        """The value over all batches since `clear`."""

    @abc.abstractmethod
    def update(self, *inputs):
        """Takes a batch."""

    def _pair(self, inputs, names="predicted value, true value"):
        """The two inputs of `update` as arrays."""
        if len(inputs) != 2:
            raise ValueError(f"For '{type(self).__name__}.update', it needs 2 inputs ({names}), but got {len(inputs)}")
        return self._convert_data(inputs[0]), self._convert_data(inputs[1])

    def _check_samples(self, count, name=None):
        if not count:
            raise RuntimeError(
                f"The '{name or type(self).__name__}' can not be calculated, because the number of samples is 0, "
                f"please check whether your inputs (predicted value, true value) are empty, or has called "
                f"update method before calling eval method."
            )


class EvaluationBase(Metric):
    """Base of the metrics that compare predicted classes with true ones.

    Args:
        eval_type (str): ``"classification"`` (a sample has one class) or ``"multilabel"`` (any number).
    """

    def __init__(self, eval_type):
        super().__init__()
        if eval_type not in ("classification", "multilabel"):
            raise TypeError(
                f"The argument 'eval_type' must be in {{'classification', 'multilabel'}}, but got {eval_type}"
            )
        self._type = eval_type

    def _check_shape(self, y_pred, y):
        if self._type == "multilabel":
            if y_pred.shape != y.shape:
                raise ValueError(
                    f"For {type(self).__name__}.update, in multilabel case, the shape of y_pred (predicted value) "
                    f"and y (true value) must be same, but got y_pred shape: {y_pred.shape} and y shape: "
                    f"{y.shape}."
                )
            return
        if y_pred.ndim != y.ndim + 1:
            raise ValueError(
                f"In classification case, the dimension of y_pred (predicted value) should equal to the dimension "
                f"of y (true value) add 1, but got y_pred dimension: {y_pred.ndim} and y dimension: {y.ndim}."
            )
        if y.shape != (y_pred.shape[0], *y_pred.shape[2:]):
            raise ValueError(
                f"In classification case, y_pred (predicted value) shape and y (true value) shape can not match, y "
                f"shape should be equal to y_pred shape that the value at index 1 is deleted. Such as y_pred shape "
                f"(1, 2, 3), then y shape should be (1, 3). But got y_pred shape {y_pred.shape} and y shape "
                f"{y.shape}"
            )

    def _prepared(self, inputs):
        """(predictions, labels as class numbers or as 0 and 1), checked."""
        y_pred, y = self._pair(inputs)
        if self._type == "classification" and y_pred.ndim == y.ndim and y_pred.shape == y.shape:
            y = y.argmax(axis=1)  # one-hot
        self._check_shape(y_pred, y)
        if self._type == "multilabel":
            if y_pred.size and not (np.isin(y_pred, (0, 1)).all() and np.isin(y, (0, 1)).all()):
                raise ValueError("For multilabel case, input value must be 1 or 0.")
        elif self._class_num == 0:
            self._class_num = y_pred.shape[1]
        elif y_pred.shape[1] != self._class_num:
            raise ValueError(
                f"For '{type(self).__name__}.update', class number not match, last input predicted data contain "
                f"{self._class_num} classes, but current predicted data contain {y_pred.shape[1]} classes, please "
                f"check your predicted value(inputs[0])."
            )
        return y_pred, y

    def _counts(self, inputs):
        """(true positives, predicted, actual) of a batch: for each class, or for each sample of the multilabel case."""
        y_pred, y = self._prepared(inputs)
        if self._type == "multilabel":
            axis = tuple(range(1, y.ndim))
            return (y_pred * y == 1).sum(axis=axis), y_pred.sum(axis=axis), y.sum(axis=axis)
        predicted, actual = y_pred.argmax(axis=1).reshape(-1), y.reshape(-1).astype(np.int64)
        classes = self._class_num
        hits = np.bincount(actual[predicted == actual], minlength=classes)
        return hits, np.bincount(predicted, minlength=classes), np.bincount(actual, minlength=classes)
