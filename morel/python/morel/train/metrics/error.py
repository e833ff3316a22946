"""Metrics of numbers: loss, mean errors, similarity."""

import numpy as np

from morel.train.metrics.metric import Metric, rearrange_inputs

__all__ = ["Loss", "MAE", "MSE", "CosineSimilarity"]


class Loss(Metric):
    """The mean of the losses of all batches."""

    def __init__(self):
        super().__init__()
        self.clear()

    def clear(self):
        self._sum_loss = 0.0
        self._total_num = 0

    @rearrange_inputs
    def update(self, *inputs):
        if len(inputs) != 1:
            raise ValueError(f"For 'Loss.update', it needs 1 input (loss), but got {len(inputs)}")
        loss = self._convert_data(inputs[0])
        if loss.ndim > 1:
            raise ValueError(f"For 'Loss.update', the dimension of the loss must be 0 or 1, but got {loss.ndim}")
        self._sum_loss += float(loss.mean())
        self._total_num += 1

    def eval(self):
        if not self._total_num:
            raise RuntimeError(
                "The 'Loss' can not be calculated, because the number of samples is 0, please check whether has "
                "called update method before calling eval method."
            )
        return self._sum_loss / self._total_num


class _MeanError(Metric):
    """Base of MAE and MSE."""

    def __init__(self):
        super().__init__()
        self.clear()

    def clear(self):
        self._error_sum = 0.0
        self._samples_num = 0

    @staticmethod
    def _error(difference):
        raise NotImplementedError

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._pair(inputs)
        difference = y.reshape(y_pred.shape) - y_pred
        self._error_sum += float(self._error(difference))
        self._samples_num += y.shape[0]

    def eval(self):
        self._check_samples(self._samples_num)
        return self._error_sum / self._samples_num


class MAE(_MeanError):
    """Mean absolute error: the sum of absolute differences / the number of samples."""

    @staticmethod
    def _error(difference):
        return np.abs(difference).sum()


class MSE(_MeanError):
    """Mean squared error: the sum of squared differences / the number of samples."""

    @staticmethod
    def _error(difference):
        return np.square(difference).sum()


class CosineSimilarity(Metric):
    """The similarity of each row of a matrix with each other row.

    Args:
        similarity (str): ``"cosine"`` or ``"dot"``.
        reduction (str): ``"none"``, ``"sum"`` or ``"mean"`` over the last axis.
        zero_diagonal (bool): set the diagonal to 0. Default ``True``.
    """

    def __init__(self, similarity="cosine", reduction="none", zero_diagonal=True):
        super().__init__()
        for value, choices, name in (
            (similarity, ["dot", "cosine"], "similarity"),
            (reduction, ["none", "sum", "mean"], "reduction"),
        ):
            if value not in choices:
                raise ValueError(f"The '{name}' must be str and must be in '{choices}', but got '{value}'.")
        if not isinstance(zero_diagonal, bool):
            raise TypeError(
                f"The type of 'zero_diagonal' should be 'bool', but got type '{type(zero_diagonal).__name__}'."
            )
        self.similarity, self.reduction, self.zero_diagonal = similarity, reduction, zero_diagonal
        self.clear()

    def clear(self):
        self._matrix = 0
        self._updated = False

    @rearrange_inputs
    def update(self, inputs):
        rows = self._convert_data(inputs)
        if self.similarity == "cosine":
            rows = rows / np.linalg.norm(rows, ord=2, axis=1, keepdims=True)
        self._matrix = rows @ rows.T
        self._updated = True

    def eval(self):
        if not self._updated:
            raise RuntimeError("Please call the 'update' method before calling 'eval' method.")
        matrix = self._matrix.copy()
        if self.zero_diagonal:
            np.fill_diagonal(matrix, 0)
        return matrix if self.reduction == "none" else getattr(matrix, self.reduction)(axis=-1)
