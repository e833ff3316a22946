"""Metrics over thresholds and pairs of classes."""

import collections

import numpy as np

from morel.train.metrics.metric import Metric, rearrange_inputs

__all__ = ["ConfusionMatrix", "ROC", "auc", "BleuScore"]


class ConfusionMatrix(Metric):
    """How often class i (rows: the true one) was predicted as class j.

    Args:
        num_classes (int): number of classes.
        normalize (str): ``"no_norm"`` (default), ``"target"`` (rows sum to 1), ``"prediction"`` (columns do), ``"all"``.
        threshold (float): predictions of one number per sample count as class 1 from here. Default ``0.5``.
    """

    def __init__(self, num_classes, normalize="no_norm", threshold=0.5):
        super().__init__()
        if not isinstance(num_classes, int) or isinstance(num_classes, bool):
            raise TypeError(f"The type of 'num_classes' should be int, but got {type(num_classes)}.")
        if num_classes < 2:
            raise ValueError(f"The 'num_classes' must be at least 2, but got {num_classes}.")
        if normalize not in ("no_norm", "target", "prediction", "all", None):
            raise ValueError(
                f"For 'ConfusionMatrix', the argument 'normalize' must be in ['all', 'prediction', 'label', "
                f"'no_norm'(None)], but got {normalize}."
            )
        if not isinstance(threshold, float):
            raise TypeError(f"The type of 'threshold' should be float, but got {type(threshold)}.")
        self.num_classes, self.normalize, self.threshold = num_classes, normalize, threshold
        self.clear()

    def clear(self):
        self.confusion_matrix = np.zeros((self.num_classes, self.num_classes))
        self._is_update = False

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._pair(inputs)
        if y_pred.ndim not in (y.ndim, y.ndim + 1):
            raise ValueError(
                f"For 'ConfusionMatrix.update', predicted value (input[0]) and true value (input[1]) should have "
                f"same dimensions, or the dimension of predicted value equal the dimension of true value add 1, "
                f"but got predicted value ndim: {y_pred.ndim}, true value ndim: {y.ndim}."
            )
        if y_pred.ndim == y.ndim + 1:
            y_pred = y_pred.argmax(axis=1)
        elif y_pred.dtype.kind == "f":
            y_pred = y_pred >= self.threshold
        pairs = y.reshape(-1).astype(np.int64) * self.num_classes + y_pred.reshape(-1).astype(np.int64)
        size = self.num_classes**2
        if pairs.size and (pairs.min() < 0 or pairs.max() >= size):
            raise ValueError(f"For 'ConfusionMatrix.update', a class is not in [0, {self.num_classes}).")
        self.confusion_matrix += np.bincount(pairs, minlength=size).reshape(self.num_classes, self.num_classes)
        self._is_update = True

    def eval(self):
        if not self._is_update:
            raise RuntimeError("Call the 'update' method before calling 'eval' method.")
        matrix = self.confusion_matrix.astype(float)
        if self.normalize in ("no_norm", None):
            return matrix
        axis = {"target": 1, "prediction": 0, "all": None}[self.normalize]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nan_to_num(matrix / matrix.sum(axis=axis, keepdims=True))


class ROC(Metric):
    """False and true positive rates over all thresholds.

    Args:
        class_num (int, optional): number of classes; for two, leave it ``None``.
        pos_label (int, optional): the positive class, if there are two. Default: 1.
    """

    def __init__(self, class_num=None, pos_label=None):
        super().__init__()
        for value, name in ((class_num, "class_num"), (pos_label, "pos_label")):
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                raise TypeError(f"The '{name}' must be int, but got '{type(value).__name__}'")
        self.class_num, self.pos_label = class_num, pos_label
        self.clear()

    def clear(self):
        self._preds, self._labels = [], []

    @rearrange_inputs
    def update(self, *inputs):
        y_pred, y = self._pair(inputs)
        if y_pred.ndim == y.ndim:
            y_pred, y = y_pred.reshape(-1), y.reshape(-1)
        elif y_pred.ndim == y.ndim + 1:
            if self.class_num != y_pred.shape[1]:
                raise ValueError(
                    f"For 'ROC', the 'class_num' must equal the number of classes from predicted value (input[0]), "
                    f"but got 'class_num' {self.class_num}, the number of classes from predicted value "
                    f"{y_pred.shape[1]}."
                )
            y_pred, y = np.moveaxis(y_pred, 1, -1).reshape(-1, y_pred.shape[1]), y.reshape(-1)
        else:
            raise ValueError(
                f"For 'ROC.update', predicted value (input[0]) and true value (input[1]) should have same "
                f"dimensions, or predicted value one more, but got {y_pred.ndim} and {y.ndim}."
            )
        self._preds.append(y_pred)
        self._labels.append(y)

    def eval(self):
        """(false positive rates, true positive rates, thresholds); for several classes lists of them."""
        if not self._preds:
            raise RuntimeError("Please call the 'update' method before calling 'eval' method.")
        preds, labels = np.concatenate(self._preds), np.concatenate(self._labels)
        if preds.ndim == 1:
            return _roc_curve(preds, labels, 1 if self.pos_label is None else self.pos_label)
        curves = [_roc_curve(preds[:, c], labels, c) for c in range(preds.shape[1])]
        return tuple(list(part) for part in zip(*curves))


def _roc_curve(scores, labels, positive):
    order = np.argsort(-scores, kind="stable")
    scores, hits = scores[order], (labels[order] == positive).astype(np.int64)
    last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)  # the last sample of each threshold
    true = np.cumsum(hits)[last]
    false = 1 + last - true
    if false[-1] <= 0:
        raise ValueError(
            "For 'ROC.eval', there is no negative samples in true value, false positive value is meaningless."
        )
    if true[-1] <= 0:
        raise ValueError(
            "For 'ROC.eval', there is no positive samples in true value, true positive value is meaningless."
        )
    thresholds = np.append(scores[0] + 1, scores[last])
    return np.append(0, false) / false[-1], np.append(0, true) / true[-1], thresholds


def auc(x, y, reorder=False):
    """The area under a curve, by the trapezoidal rule.

    Args:
        x (Union[numpy.ndarray, list]): false positive rates (a list of them for several classes).
        y (Union[numpy.ndarray, list]): true positive rates.
        reorder (bool): sort by `x` first. Default ``False``: `x` must rise or fall.

    Returns:
        float, or a list of them.
    """
    if not isinstance(x, (np.ndarray, list)) or not isinstance(y, (np.ndarray, list)):
        raise TypeError(
            f"For 'auc', the inputs must be np.ndarray or list, but got type of x: {type(x)}, type of y: {type(y)}."
        )
    if isinstance(x, list) and x and np.ndim(x[0]):
        return [auc(np.asarray(a), np.asarray(b), reorder) for a, b in zip(x, y)]
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape or x.ndim != 1 or len(x) < 2:
        raise ValueError(
            f"For 'auc', 'x' and 'y' must be of one length, at least 2, but got shapes {x.shape} and {y.shape}."
        )
    sign = 1
    if reorder:
        order = np.lexsort((y, x))
        x, y = x[order], y[order]
    elif (np.diff(x) < 0).any():
        if not (np.diff(x) <= 0).all():
            raise ValueError(
                f"For 'auc', if the argument is False, the argument 'x' array must be increasing or decreasing, but "
                f"got 'x': {x}"
            )
        sign = -1
    return float(sign * ((x[1:] - x[:-1]) * (y[1:] + y[:-1])).sum() / 2)


class BleuScore(Metric):
    """How much machine translations agree with reference translations.

    Args:
        n_gram (int): longest n-gram, 1 to 4. Default ``4``.
        smooth (bool): add one to the counts. Default ``False``.

    Source: Papineni et al., BLEU: a Method for Automatic Evaluation of Machine Translation, 2002, section 2.3.
    """

    def __init__(self, n_gram=4, smooth=False):
        super().__init__()
        if not isinstance(n_gram, int) or isinstance(n_gram, bool):
            raise TypeError(f"The 'n_gram' must be int, but got '{type(n_gram).__name__}'")
        if not 1 <= n_gram <= 4:
            raise ValueError(f"For 'BleuScore', the argument 'n_gram' should range from 1 to 4, but got {n_gram}.")
        if not isinstance(smooth, bool):
            raise TypeError(f"The type of 'smooth' should be 'bool', but got type '{type(smooth).__name__}'.")
        self.n_gram, self.smooth = n_gram, smooth
        self.clear()

    def clear(self):
        self._matched = np.zeros(self.n_gram)
        self._possible = np.zeros(self.n_gram)
        self._length = self._reference_length = 0
        self._is_update = False

    def _n_grams(self, words):
        return collections.Counter(
            tuple(words[i : i + n]) for n in range(1, self.n_gram + 1) for i in range(len(words) - n + 1)
        )

    @rearrange_inputs
    def update(self, *inputs):
        """`inputs`: a list of translations (lists of words), and for each a list of references."""
        if len(inputs) != 2:
            raise ValueError(
                f"For 'BleuScore.update', it needs 2 inputs (candidate_corpus, reference_corpus), but got "
                f"{len(inputs)}."
            )
        candidates, references = inputs
        if len(candidates) != len(references):
            raise ValueError(
                f"For 'BleuScore.update', 'translate_corpus' (inputs[0]) and 'reference_corpus' (inputs[1]) should "
                f"be equal in length, but got {len(candidates)}, {len(references)}"
            )
        for words, options in zip(candidates, references):
            self._length += len(words)
            self._reference_length += min((len(option) for option in options), key=lambda size: abs(size - len(words)))
            best = collections.Counter()
            for option in options:
                best |= self._n_grams(option)
            own = self._n_grams(words)
            for gram, count in own.items():
                self._possible[len(gram) - 1] += count
                self._matched[len(gram) - 1] += min(count, best[gram])
        self._is_update = True

    def eval(self):
        if not self._is_update:
            raise RuntimeError("Call the 'update' method before calling 'eval' method.")
        if self._matched.min() == 0:
            return np.array(0.0)
        extra = 1 if self.smooth else 0
        precision = (self._matched + extra) / (self._possible + extra)
        brevity = 1.0 if self._length > self._reference_length else np.exp(1 - self._reference_length / self._length)
        return float(brevity * np.exp(np.log(precision).mean()))
