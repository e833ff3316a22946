"""Losses of regression and classification."""

from morel import ops
from morel.common import dtype as mstype
from morel.common.parameter import Parameter
from morel.nn import _check
from morel.nn.layer.activation import LogSoftmax, get_activation
from morel.nn.loss._base import LossBase, check_same_shape, check_tensors

__all__ = [
    "L1Loss",
    "L1LossExt",
    "MSELoss",
    "RMSELoss",
    "MAELoss",
    "SmoothL1Loss",
    "HuberLoss",
    "SoftmaxCrossEntropyWithLogits",
    "CrossEntropyLoss",
    "NLLLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "KLDivLoss",
    "FocalLoss",
    "DiceLoss",
    "MultiClassDiceLoss",
    "CTCLoss",
    "GaussianNLLLoss",
    "PoissonNLLLoss",
]


class L1Loss(LossBase):
    """|logits - labels|.

    Args:
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.

    Inputs:
        - **logits** (Tensor) - any shape.
        - **labels** (Tensor) - the same shape.

    Outputs:
        Scalar, or a tensor like `logits` without reduction.
    """

    def construct(self, logits, labels):
        check_tensors(self.cls_name, logits=logits, labels=labels)
        return ops.l1_loss(logits, labels, self.reduction)


class L1LossExt(L1Loss):
    """`L1Loss` in the interface of ``mint``."""


class MAELoss(LossBase):
    """Mean absolute error: |logits - label|.

    Args:
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
    """

    def construct(self, logits, label):
        check_tensors(self.cls_name, logits=logits, label=label)
        return ops.l1_loss(logits, label, self.reduction)


class MSELoss(LossBase):
    """(logits - labels)^2.

    Args:
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.

    Inputs:
        - **logits** (Tensor) - any shape.
        - **labels** (Tensor) - the same shape, or one that broadcasts.

    Outputs:
        Scalar, or a tensor like `logits` without reduction.

    Example:
        >>> from morel import nn, Tensor
        >>> float(nn.MSELoss()(Tensor([1.0, 2.0]), Tensor([1.0, 4.0])).asnumpy())
        2.0
    """

    def __init__(self, reduction="mean"):
        super().__init__(reduction)

    def construct(self, logits, labels):
        check_tensors(self.cls_name, logits=logits, labels=labels)
        return ops.mse_loss(logits, labels, self.reduction)


class RMSELoss(LossBase):
    """Square root of the mean squared error."""

    def __init__(self):
        super().__init__()
        self.MSELoss = MSELoss()

    def construct(self, logits, label):
        return ops.sqrt(self.MSELoss(logits, label))


class SmoothL1Loss(LossBase):
    """0.5 d^2 / beta where |d| < beta, |d| - 0.5 beta elsewhere, with d = logits - labels.

    Args:
        beta (float): where the two parts meet; positive. Default ``1.0``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"none"``.

    Source: Girshick, Fast R-CNN, 2015, eq. 3.
    """

    def __init__(self, beta=1.0, reduction="none"):
        super().__init__(reduction)
        self.beta = _check.check_float(beta, "beta", self.cls_name, 0, None, "()")

    def construct(self, logits, labels):
        check_same_shape(self.cls_name, logits=logits, labels=labels)
        return ops.smooth_l1_loss(logits, labels, self.beta, self.reduction)


class HuberLoss(LossBase):
    """0.5 d^2 where |d| <= delta, delta (|d| - 0.5 delta) elsewhere, with d = logits - labels.

    Args:
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
        delta (Union[int, float]): where the two parts meet; positive. Default ``1.0``.

    Source: Huber, Robust Estimation of a Location Parameter, 1964.
    """

    def __init__(self, reduction="mean", delta=1.0):
        super().__init__(reduction)
        self.delta = _check.check_float(delta, "delta", self.cls_name, 0, None, "()")

    def construct(self, logits, labels):
        check_tensors(self.cls_name, logits=logits, labels=labels)
        return ops.huber_loss(logits, labels, self.reduction, self.delta)


class SoftmaxCrossEntropyWithLogits(LossBase):
    """Cross entropy of softmax(logits): -sum(labels * log_softmax(logits)).

    Args:
        sparse (bool): labels are class numbers instead of distributions. Default ``False``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"none"``.

    Inputs:
        - **logits** (Tensor) - shape [N, C].
        - **labels** (Tensor) - shape [N] of int32 or int64 with `sparse`, else [N, C].

    Outputs:
        Scalar, or shape [N] without reduction.

    Raises:
        TypeError: `sparse` is not a bool.

    Example:
        >>> from morel import nn, Tensor
        >>> loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        >>> round(float(loss(Tensor([[0.0, 0.0]]), Tensor([1])).asnumpy()), 4)
        0.6931
    """

    def __init__(self, sparse=False, reduction="none"):
        super().__init__(reduction)
        self.sparse = _check.check_bool(sparse, "sparse", self.cls_name)

    def construct(self, logits, labels):
        check_tensors(self.cls_name, logits=logits, labels=labels)
        if self.sparse:
            return ops.cross_entropy(logits, labels, reduction=self.reduction)
        check_same_shape(self.cls_name, logits=logits, labels=labels)
        return self.get_loss(-(labels * ops.log_softmax(logits, -1)).sum(-1))


def _check_weight(weight, cls):
    if weight is not None:
        check_tensors(cls, weight=weight)
        if not weight.dtype.is_floating_point:
            raise TypeError(f"For '{cls}', the dtype of 'weight' must be floating, but got {weight.dtype}.")
    return weight


class CrossEntropyLoss(LossBase):
    """Cross entropy of softmax(logits) over dimension 1.

    Args:
        weight (Tensor): factor per class, shape [C]. Default ``None``.
        ignore_index (int): class number that does not count. Default ``-100``.
        reduction (str): ``"mean"`` (weighted), ``"sum"`` or ``"none"``. Default ``"mean"``.
        label_smoothing (float): share of the label spread evenly over the classes, in [0, 1]. Default ``0.0``.

    Inputs:
        - **logits** (Tensor) - shape [N, C] or [N, C, d1, ...] or [C].
        - **labels** (Tensor) - class numbers of shape [N] or [N, d1, ...], or distributions like `logits`.

    Outputs:
        Scalar, or a tensor of the shape of the class numbers without reduction.

    Raises:
        ValueError: the shapes do not fit or `label_smoothing` is out of range.
    """

    def __init__(self, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
        super().__init__(reduction)
        self.weight = _check_weight(weight, self.cls_name)
        self.ignore_index = ignore_index
        self.label_smoothing = _check.check_float(label_smoothing, "label_smoothing", self.cls_name, 0, 1)

    def construct(self, logits, labels):
        check_tensors(self.cls_name, logits=logits, labels=labels)
        shape = tuple(logits.shape)
        wanted = shape if labels.ndim == logits.ndim else shape[:1] + shape[2:] if logits.ndim > 1 else ()
        if tuple(labels.shape) != wanted:
            raise ValueError(
                f"For '{self.cls_name}', 'labels' must have the shape of 'logits' or class numbers of "
                f"shape (N, d_0, d_1, ...), but got 'logits' shape: {shape} and 'labels' shape: "
                f"{tuple(labels.shape)}."
            )
        return ops.cross_entropy(logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class NLLLoss(LossBase):
    """Negative log likelihood: -weight[label] * logits[label], where logits are log probabilities.

    Args:
        weight (Tensor): factor per class, shape [C]. Default ``None``.
        ignore_index (int): class number that does not count. Default ``-100``.
        reduction (str): ``"mean"`` (weighted), ``"sum"`` or ``"none"``. Default ``"mean"``.

    Inputs:
        - **logits** (Tensor) - shape [N, C] or [N, C, d1, ...].
        - **labels** (Tensor) - class numbers, shape [N] or [N, d1, ...].
    """

    def __init__(self, weight=None, ignore_index=-100, reduction="mean"):
        super().__init__(reduction)
        self.weight = _check_weight(weight, self.cls_name)
        self.ignore_index = ignore_index

    def construct(self, logits, labels):
        check_tensors(self.cls_name, logits=logits, labels=labels)
        return ops.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)


class BCELoss(LossBase):
    """Binary cross entropy of probabilities: -weight * (y log x + (1 - y) log(1 - x)), logarithms not below -100.

    Args:
        weight (Tensor): factors that broadcast to the input. Default ``None``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
    """

    def __init__(self, weight=None, reduction="mean"):
        super().__init__(reduction)
        self.weight = weight

    def construct(self, logits, labels):
        check_same_shape(self.cls_name, logits=logits, labels=labels)
        return ops.binary_cross_entropy(logits, labels, self.weight, self.reduction)


class BCEWithLogitsLoss(LossBase):
    """Binary cross entropy of sigmoid(input), computed without overflow.

    ``weight * ((1 - y) x + (1 + (pos_weight - 1) y) * log(1 + exp(-x)))``

    Args:
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
        weight (Tensor): factors that broadcast to the input. Default ``None``.
        pos_weight (Tensor): factors of the positive labels. Default ``None``.

    Raises:
        TypeError: a weight is a Parameter.
    """

    def __init__(self, reduction="mean", weight=None, pos_weight=None):
        super().__init__(reduction)
        for name, value in (("weight", weight), ("pos_weight", pos_weight)):
            if isinstance(value, Parameter):
                raise TypeError(f"For '{self.cls_name}', the '{name}' can not be a Parameter.")
        self.weight = weight
        self.pos_weight = pos_weight

    def construct(self, input, target):
        check_tensors(self.cls_name, input=input, target=target)
        return ops.binary_cross_entropy_with_logits(input, target, self.weight, self.pos_weight, self.reduction)


class KLDivLoss(LossBase):
    """Kullback-Leibler divergence: labels * (log(labels) - logits), where logits are log probabilities.

    Args:
        reduction (str): ``"mean"``, ``"batchmean"`` (sum / N), ``"sum"`` or ``"none"``. Default ``"mean"``.
    """

    def __init__(self, reduction="mean"):
        super().__init__()
        self.reduction = _check.check_string(
            reduction, ["none", "mean", "batchmean", "sum"], "reduction", self.cls_name
        )

    def construct(self, logits, labels):
        check_tensors(self.cls_name, logits=logits, labels=labels)
        return ops.kl_div(logits, labels, self.reduction)


class FocalLoss(LossBase):
    """-(1 - p)^gamma * weight * log p, p being the softmax probability of the label.

    Args:
        weight (Tensor): factor per class, shape [C]. Default ``None``.
        gamma (float): focusing exponent. Default ``2.0``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.

    Inputs:
        - **logits** (Tensor) - shape [N, C], [N, C, L] or [N, C, H, W], C > 1.
        - **labels** (Tensor) - class numbers with one channel, or one-hot with C channels.

    Source: Lin et al., Focal Loss for Dense Object Detection, 2017, eq. 4.
    """

    def __init__(self, weight=None, gamma=2.0, reduction="mean"):
        super().__init__(reduction)
        self.gamma = _check.check_type(gamma, (int, float), "gamma", self.cls_name)
        if weight is not None:
            check_tensors(self.cls_name, weight=weight)
            if weight.ndim != 1:
                raise ValueError(f"For '{self.cls_name}', the dimension of 'weight' must be 1, but got {weight.ndim}.")
        self.weight = weight
        self.logsoftmax = LogSoftmax(1)

    def construct(self, logits, labels):
        check_tensors(self.cls_name, logits=logits, labels=labels)
        if not 2 <= logits.ndim <= 4 or labels.ndim != logits.ndim:
            raise ValueError(
                f"For '{self.cls_name}', 'logits' and 'labels' must both have 2 to 4 dims, but got "
                f"{logits.ndim} and {labels.ndim}."
            )
        channels = logits.shape[1]
        if channels == 1 or labels.shape[1] not in (1, channels):
            raise ValueError(
                f"For '{self.cls_name}', 'logits' must have more than one channel and 'labels' one or as "
                f"many, but got {channels} and {labels.shape[1]}."
            )
        logits = logits.reshape((logits.shape[0], channels, -1))
        labels = labels.reshape((labels.shape[0], labels.shape[1], -1))
        log_probability = self.logsoftmax(logits)
        weight = None if self.weight is None else self.weight.reshape((1, -1, 1)).broadcast_to(logits.shape)
        by_number = labels.shape[1] == 1
        if by_number:
            index = labels.astype(mstype.int32)
            log_probability = ops.gather_elements(log_probability, 1, index).squeeze(1)
            weight = None if weight is None else ops.gather_elements(weight, 1, index).squeeze(1)
        focus = (1.0 - ops.exp(log_probability)) ** self.gamma
        loss = -focus * (log_probability if weight is None else log_probability * weight)
        return self.get_loss(loss.mean(1) if by_number else (loss * labels).mean(-1))


class DiceLoss(LossBase):
    """1 - 2 sum(x y) / (sum(x^2) + sum(y^2) + smooth).

    Args:
        smooth (float): keeps the quotient finite; positive. Default ``1e-5``.

    Source: Milletari et al., V-Net, 2016, section 3.
    """

    def __init__(self, smooth=1e-5):
        super().__init__()
        self.smooth = _check.check_float(smooth, "smooth", self.cls_name, 0, None, "()")

    def construct(self, logits, label):
        check_same_shape(self.cls_name, logits=logits, label=label)
        common = (logits * label).sum()
        total = ops.square(logits).sum() + ops.square(label).sum()
        return 1.0 - 2.0 * common / (total + self.smooth)


class MultiClassDiceLoss(LossBase):
    """Mean of the `DiceLoss` of every channel.

    Args:
        weights (Union[Tensor, None]): factor per channel, two dimensions. Default ``None``.
        ignore_indiex (Union[int, None]): channel that does not count. Default ``None``.
        activation (Union[str, Cell, None]): applied to the logits. Default ``"softmax"``.
    """

    def __init__(self, weights=None, ignore_indiex=None, activation="softmax"):
        super().__init__()
        self.binarydiceloss = DiceLoss(smooth=1e-5)
        if weights is not None:
            check_tensors(self.cls_name, weights=weights)
            if weights.ndim != 2:
                raise ValueError(f"For '{self.cls_name}', 'weights' must have 2 dims, but got {weights.ndim}.")
        self.weights = weights
        self.ignore_indiex = ignore_indiex
        if isinstance(activation, str):
            _check.check_string(
                activation, ["softmax", "logsoftmax", "relu", "relu6", "tanh", "sigmoid"], "activation", self.cls_name
            )
        self.activation = get_activation(activation) if isinstance(activation, str) else activation

    def construct(self, logits, label):
        check_same_shape(self.cls_name, logits=logits, label=label)
        if logits.ndim < 2:
            raise ValueError(f"For '{self.cls_name}', 'logits' must have at least 2 dims, but got {logits.ndim}.")
        if self.weights is not None and self.weights.shape[0] != label.shape[1]:
            raise ValueError(
                f"For '{self.cls_name}', 'weights' must have one row per channel, but got "
                f"{self.weights.shape[0]} and {label.shape[1]}."
            )
        logits = logits if self.activation is None else self.activation(logits)
        total = 0.0
        for channel in range(label.shape[1]):
            if channel != self.ignore_indiex:
                dice = self.binarydiceloss(logits[:, channel], label[:, channel])
                total = total + (dice if self.weights is None else dice * self.weights[channel])
        return total / label.shape[1]


class CTCLoss(LossBase):
    """Connectionist temporal classification; see `ops.ctc_loss`.

    Args:
        blank (int): number of the blank class. Default ``0``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
        zero_infinity (bool): infinite losses and their gradients become zero. Default ``False``.
    """

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__(reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def construct(self, log_probs, targets, input_lengths, target_lengths):
        check_tensors(self.cls_name, log_probs=log_probs, targets=targets)
        single = log_probs.ndim == 2
        if single:
            log_probs = log_probs.expand_dims(1)
            targets = targets.expand_dims(0) if targets.ndim == 1 else targets
        loss = ops.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )[0]
        return loss.squeeze(0) if single and loss.ndim else loss


class GaussianNLLLoss(LossBase):
    """0.5 * (log(v) + (logits - labels)^2 / v) with v = max(var, eps).

    Args:
        full (bool): add the constant 0.5 log(2 pi). Default ``False``.
        eps (float): smallest variance; positive. Default ``1e-6``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
    """

    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__(reduction)
        self.full = _check.check_bool(full, "full", self.cls_name)
        self.eps = _check.check_float(eps, "eps", self.cls_name, 0, None, "()")

    def construct(self, logits, labels, var):
        check_tensors(self.cls_name, logits=logits, labels=labels, var=var)
        return ops.gaussian_nll_loss(logits, labels, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(LossBase):
    """exp(x) - target * x, or x - target * log(x + eps) without `log_input`.

    Args:
        log_input (bool): the input is the logarithm of the rate. Default ``True``.
        full (bool): add Stirling's approximation of log(target!) where target > 1. Default ``False``.
        eps (float): keeps the logarithm finite. Default ``1e-8``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
    """

    def __init__(self, log_input=True, full=False, eps=1e-08, reduction="mean"):
        super().__init__(reduction)
        self.log_input = _check.check_bool(log_input, "log_input", self.cls_name)
        self.full = _check.check_bool(full, "full", self.cls_name)
        self.eps = eps

    def construct(self, input, target):
        check_tensors(self.cls_name, input=input, target=target)
        if self.log_input:
            loss = ops.exp(input) - target * input
        else:
            loss = input - target * ops.log(input + self.eps)
        if self.full:
            large = target > 1
            safe = ops.where(large, target, ops.ones_like(target))
            stirling = safe * ops.log(safe) - safe + 0.5 * ops.log(safe * 6.283185307179586)
            loss = loss + ops.where(large, stirling, ops.zeros_like(target))
        return self.get_loss(loss)
