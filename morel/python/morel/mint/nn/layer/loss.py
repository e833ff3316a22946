"""Losses of `mint.nn`."""

from morel.mint.nn import functional
from morel.nn import loss as _losses
from morel.nn.loss import L1LossExt as L1Loss
from morel.nn.loss import SoftMarginLoss
from morel.nn.loss._base import check_tensors

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "NLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
]


class _WithTarget:
    """Names the inputs as ``mint`` does."""

    def construct(self, input, target):
        return super().construct(input, target)


class BCELoss(_WithTarget, _losses.BCELoss):
    """See `nn.BCELoss`."""


class CrossEntropyLoss(_WithTarget, _losses.CrossEntropyLoss):
    """See `nn.CrossEntropyLoss`."""


class MSELoss(_WithTarget, _losses.MSELoss):
    """See `nn.MSELoss`."""


class NLLLoss(_WithTarget, _losses.NLLLoss):
    """See `nn.NLLLoss`."""


class CosineEmbeddingLoss(_losses.CosineEmbeddingLoss):
    """See `nn.CosineEmbeddingLoss`."""

    def construct(self, input1, input2, target):
        return super().construct(input1, input2, target)


class BCEWithLogitsLoss(_losses.BCEWithLogitsLoss):
    """Binary cross entropy of sigmoid(input); see `nn.BCEWithLogitsLoss`, with another order of arguments.

    Args:
        weight (Tensor): factors. Default ``None``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
        pos_weight (Tensor): factors of the positive labels. Default ``None``.
    """

    def __init__(self, weight=None, reduction="mean", pos_weight=None):
        super().__init__(reduction, weight, pos_weight)


class SmoothL1Loss(_WithTarget, _losses.SmoothL1Loss):
    """See `nn.SmoothL1Loss`, with another order of arguments and the mean by default.

    Args:
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
        beta (float): where the two parts meet. Default ``1.0``.
    """

    def __init__(self, reduction="mean", beta=1.0):
        super().__init__(float(beta), reduction)


class KLDivLoss(_losses.KLDivLoss):
    """Kullback-Leibler divergence; see `nn.KLDivLoss`.

    Args:
        reduction (str): ``"mean"``, ``"batchmean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
        log_target (bool): the labels are log probabilities. Default ``False``.
    """

    def __init__(self, reduction="mean", log_target=False):
        super().__init__(reduction)
        self.log_target = log_target

    def construct(self, input, target):
        check_tensors(self.cls_name, input=input, target=target)
        return functional.kl_div(input, target, self.reduction, self.log_target)
