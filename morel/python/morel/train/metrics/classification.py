"""Metrics of classes: accuracy, precision, recall, F."""

import numpy as np

from morel.train.metrics.metric import EvaluationBase, Metric, rearrange_inputs

__all__ = [
    "Accuracy",
    "Precision",
    "Recall",
    "Fbeta",
    "F1",
    "TopKCategoricalAccuracy",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "Perplexity",
    "Dice",
]


class Accuracy(EvaluationBase):
    """Correct samples / all samples.

    Args:
        eval_type (str): ``"classification"`` or ``"multilabel"``.

    Inputs of `update`:
        - predictions [N, C] (multilabel: 0 and 1 of any shape [N, L]).
        - true classes [N], or one-hot [N, C].

    Example:
        >>> import numpy as np
        >>> from morel import Tensor
        >>> from morel.train import Accuracy
        >>> metric = Accuracy()
        >>> metric.clear()
        >>> metric.update(Tensor(np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]])), Tensor(np.array([1, 0, 1])))
        >>> round(float(metric.eval()), 4)
        0.6667
    """

    def __init__(self, eval_type="classification"):
        super().__init__(eval_type)
        self.clear()

    def clear(self):
        self._correct_num = 0
        self._total_num = 0
        self._class_num = 0

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._prepared(inputs)
        if self._type == "classification":
            correct = y_pred.argmax(axis=1) == y
        else:
            correct = (y_pred == y).reshape(len(y), -1).all(axis=1)
        self._correct_num += int(correct.sum())
        self._total_num += correct.size

    def eval(self):
        self._check_samples(self._total_num)
        return self._correct_num / self._total_num


class _Ratio(EvaluationBase):
    """Base of precision and recall: true positives / `_denominator`."""

    def __init__(self, eval_type="classification"):
        super().__init__(eval_type)
        self.clear()

    def clear(self):
        self._class_num = 0
        self._samples = False
        self._hits = self._predicted = self._actual = np.empty(0)

    @rearrange_inputs
    def update(self, *inputs):
        counts = self._counts(inputs)
        held = self._hits, self._predicted, self._actual
        if self._type == "multilabel":  # one figure per sample
            held = [np.concatenate(pair) for pair in zip(held, counts)]
        else:
            held = [new if not self._samples else old + new for old, new in zip(held, counts)]
        self._hits, self._predicted, self._actual = held
        self._samples = True

    def _denominator(self):
        raise NotImplementedError

    def eval(self, average=False):
        """The value of each class (sample, if multilabel), or with `average` their mean."""
        if not isinstance(average, bool):
            raise TypeError(f"The 'average' must be bool, but got {type(average)}.")
        self._check_samples(self._samples)
        denominator = self._denominator()
        result = self._hits / np.where(denominator == 0, 1, denominator)
        return float(result.mean()) if average else result


class Precision(_Ratio):
    """True positives / (true positives + false positives), for each class.

    Args:
        eval_type (str): ``"classification"`` or ``"multilabel"``.
    """

    def _denominator(self):
        return self._predicted


class Recall(_Ratio):
    """True positives / (true positives + false negatives), for each class.

    Args:
        eval_type (str): ``"classification"`` or ``"multilabel"``.
    """

    def _denominator(self):
        return self._actual


class Fbeta(EvaluationBase):
    """(1 + beta^2) * precision * recall / (beta^2 * precision + recall), for each class.

    Args:
        beta (Union[int, float]): weight of recall, above 0.
    """

    def __init__(self, beta):
        super().__init__("classification")
        if not beta > 0:
            raise ValueError(f"For 'Fbeta', the argument 'beta' must be greater than 0, but got {beta}.")
        self.beta = beta
        self.clear()

    def clear(self):
        self._class_num = 0
        self._held = None

    @rearrange_inputs
    def update(self, *inputs):
        counts = self._counts(inputs)
        self._held = counts if self._held is None else [old + new for old, new in zip(self._held, counts)]

    def eval(self, average=False):
        """The value of each class, or with `average` their mean."""
        if not isinstance(average, bool):
            raise TypeError(f"The 'average' must be bool, but got {type(average)}.")
        self._check_samples(self._held is not None, "Fbeta")
        hits, predicted, actual = self._held
        square = self.beta**2
        denominator = square * actual + predicted
        result = (1 + square) * hits / np.where(denominator == 0, 1, denominator)
        return float(result.mean()) if average else result


class F1(Fbeta):
    """The harmonic mean of precision and recall, for each class."""

    def __init__(self):
        super().__init__(1.0)


class TopKCategoricalAccuracy(Metric):
    """Samples whose true class is among the `k` largest predictions / all samples.

    Args:
        k (int): how many predictions count, at least 1.
    """

    def __init__(self, k):
        super().__init__()
        if not isinstance(k, int) or isinstance(k, bool):
            raise TypeError(
                f"For 'TopKCategoricalAccuracy', the type of the argument 'k' should be int, but got 'k' type: "
                f"{type(k)}."
            )
        if k < 1:
            raise ValueError(
                f"For 'TopKCategoricalAccuracy', the argument 'k' must be at least 1, but got 'k' value: {k}."
            )
        self.k = k
        self.clear()

    def clear(self):
        self._correct_num = 0
        self._samples_num = 0

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._pair(inputs)
        if y_pred.ndim == y.ndim:
            y = y.argmax(axis=1)  # one-hot
        if self.k > y_pred.shape[1]:
            raise ValueError(
                f"For 'TopKCategoricalAccuracy', 'k' is {self.k}, but there are {y_pred.shape[1]} classes."
            )
        largest = np.argsort(-y_pred, axis=1)[:, : self.k]
        self._correct_num += int((largest == y.reshape(-1, 1)).any(axis=1).sum())
        self._samples_num += len(y_pred)

    def eval(self):
        self._check_samples(self._samples_num, "TopKCategoricalAccuracy")
        return self._correct_num / self._samples_num


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """TopKCategoricalAccuracy with k = 1."""

    def __init__(self):
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """TopKCategoricalAccuracy with k = 5."""

    def __init__(self):
        super().__init__(5)


class Perplexity(Metric):
    """exp of the mean of -log(probability of the true class).

    Args:
        ignore_label (int, optional): samples with this label are left out.
    """

    def __init__(self, ignore_label=None):
        super().__init__()
        if ignore_label is not None and not isinstance(ignore_label, int):
            raise TypeError(
                f"The type of 'ignore_label' should be 'int', but got type '{type(ignore_label).__name__}'."
            )
        self.ignore_label = ignore_label
        self.clear()

    def clear(self):
        self._sum_metric = 0.0
        self._num_inst = 0

    @rearrange_inputs
    def update(self, *inputs):
        preds, labels = self._pair(inputs, "predicted value, label")
        if labels.size != preds.size // preds.shape[-1]:
            raise RuntimeError(
                f"For 'Perplexity.update', predicted value (input[0]) and label (input[1]) should have the same "
                f"shape, but got predicted value shape {preds.shape}, label shape {labels.shape}."
            )
        labels = labels.reshape(-1).astype(np.int64)
        probability = preds.reshape(-1, preds.shape[-1])[np.arange(labels.size), labels]
        if self.ignore_label is not None:
            probability = probability[labels != self.ignore_label]
        self._sum_metric -= float(np.log(np.maximum(probability, 1e-10)).sum())
        self._num_inst += probability.size

    def eval(self):
        self._check_samples(self._num_inst)
        return float(np.exp(self._sum_metric / self._num_inst))


class Dice(Metric):
    """2 * |prediction * label| / (|prediction|^2 + |label|^2), summed over batches and divided by the number of samples.

    Args:
        smooth (float): added to the denominator. Default ``1e-5``.
    """

    def __init__(self, smooth=1e-5):
        super().__init__()
        if not isinstance(smooth, float):
            raise TypeError(f"The 'smooth' must be float, but got '{type(smooth).__name__}'")
        if smooth <= 0:
            raise ValueError(f"The 'smooth' must be > 0, but got {smooth}.")
        self.smooth = smooth
        self.clear()

    def clear(self):
        self._dice_coeff_sum = 0.0
        self._samples_num = 0

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._pair(inputs)
        if y_pred.shape != y.shape:
            raise ValueError(
                f"For 'Dice.update', predicted value (input[0]) and true value (input[1]) should have same shape, "
                f"but got predicted value shape: {y_pred.shape}, true value shape: {y.shape}."
            )
        y_pred, y = y_pred.astype(np.float64).ravel(), y.astype(np.float64)
        self._samples_num += len(y)
        y = y.ravel()
        self._dice_coeff_sum += 2 * float(y_pred @ y) / (float(y_pred @ y_pred) + float(y @ y) + self.smooth)

    def eval(self):
        self._check_samples(self._samples_num, "Dice coefficient")
        return self._dice_coeff_sum / self._samples_num
