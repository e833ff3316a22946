"""Losses that ask for a margin between right and wrong."""

from morel import ops
from morel.common import dtype as mstype
from morel.nn import _check
from morel.nn.loss._base import LossBase, check_same_shape, check_tensors, reduce_loss

__all__ = [
    "CosineEmbeddingLoss",
    "HingeEmbeddingLoss",
    "MarginRankingLoss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
    "MultiMarginLoss",
    "MultilabelMarginLoss",
    "MultiLabelSoftMarginLoss",
]


class CosineEmbeddingLoss(LossBase):
    """1 - cos(x1, x2) where the label is 1, max(0, cos(x1, x2) - margin) where it is -1.

    Args:
        margin (float): in [-1, 1]. Default ``0.0``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.

    Inputs:
        - **logits_x1**, **logits_x2** (Tensor) - shape [N, D].
        - **labels** (Tensor) - 1 or -1, shape [N].
    """

    def __init__(self, margin=0.0, reduction="mean"):
        super().__init__(reduction)
        self.margin = _check.check_float(margin, "margin", self.cls_name, -1, 1)

    def construct(self, logits_x1, logits_x2, labels):
        check_same_shape(self.cls_name, logits_x1=logits_x1, logits_x2=logits_x2)
        return ops.cosine_embedding_loss(logits_x1, logits_x2, labels, self.margin, self.reduction)


class HingeEmbeddingLoss(LossBase):
    """x where the label is 1, max(0, margin - x) where it is -1.

    Args:
        margin (Union[int, float]): the margin. Default ``1.0``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
    """

    def __init__(self, margin=1.0, reduction="mean"):
        super().__init__(reduction)
        self.margin = _check.check_type(margin, (int, float), "margin", self.cls_name)

    def construct(self, logits, labels):
        check_tensors(self.cls_name, logits=logits, labels=labels)
        return ops.hinge_embedding_loss(logits, labels, self.margin, self.reduction)


class MarginRankingLoss(LossBase):
    """max(0, -target * (input1 - input2) + margin).

    Args:
        margin (float): the margin. Default ``0.0``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
    """

    def __init__(self, margin=0.0, reduction="mean"):
        super().__init__(reduction)
        self.margin = _check.check_type(margin, float, "margin", self.cls_name)

    def construct(self, input1, input2, target):
        check_tensors(self.cls_name, input1=input1, input2=input2, target=target)
        return ops.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class SoftMarginLoss(LossBase):
    """log(1 + exp(-labels * logits)).

    Args:
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
    """

    def construct(self, logits, labels):
        check_tensors(self.cls_name, logits=logits, labels=labels)
        return ops.soft_margin_loss(logits, labels, self.reduction)


class TripletMarginLoss(LossBase):
    """max(0, d(x, positive) - d(x, negative) + margin) with the p-norm distance d.

    Args:
        p (int): the norm. Default ``2``.
        swap (bool): use the smaller of d(x, negative) and d(positive, negative). Default ``False``.
        eps (float): added to the differences. Default ``1e-6``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
        margin (Union[float, Tensor]): the margin. Default ``1.0``.

    Source: Balntas et al., Learning local feature descriptors with triplets, 2016.
    """

    def __init__(self, p=2, swap=False, eps=1e-06, reduction="mean", margin=1.0):
        super().__init__(reduction)
        self.p = _check.check_type(p, int, "p", self.cls_name)
        self.swap = _check.check_bool(swap, "swap", self.cls_name)
        self.eps = eps
        self.margin = margin

    def construct(self, x, positive, negative, margin=1.0):
        check_tensors(self.cls_name, x=x, positive=positive, negative=negative)
        margin = self.margin if not isinstance(self.margin, float) or self.margin != 1.0 else margin
        return ops.triplet_margin_loss(x, positive, negative, margin, self.p, self.eps, self.swap, self.reduction)


class TripletMarginWithDistanceLoss(LossBase):
    """`TripletMarginLoss` with a distance function of your own.

    Args:
        distance_function (callable): of two tensors. Default ``None``: the Euclidean distance over dimension 1.
        swap (bool): use the smaller of d(x, negative) and d(positive, negative). Default ``False``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
        margin (float): the margin. Default ``1.0``.
    """

    def __init__(self, distance_function=None, swap=False, reduction="mean", margin=1.0):
        super().__init__(reduction)
        self.margin = _check.check_type(margin, float, "margin", self.cls_name)
        self.swap = _check.check_bool(swap, "swap", self.cls_name)
        self.distance_function = distance_function or (lambda x, y: ops.sqrt(ops.square(x - y).sum(1)))

    def construct(self, x, positive, negative):
        check_tensors(self.cls_name, x=x, positive=positive, negative=negative)
        near, far = self.distance_function(x, positive), self.distance_function(x, negative)
        if self.swap:
            far = ops.minimum(far, self.distance_function(positive, negative))
        return self.get_loss(ops.relu(near - far + self.margin))


class MultiMarginLoss(LossBase):
    """sum over the wrong classes j of max(0, margin - x[y] + x[j])^p, divided by the number of classes.

    Args:
        p (int): 1 or 2. Default ``1``.
        margin (float): the margin. Default ``1.0``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
        weight (Tensor): factor per class. Default ``None``.

    Inputs:
        - **x** (Tensor) - shape [N, C].
        - **target** (Tensor) - class numbers, shape [N].
    """

    def __init__(self, p=1, margin=1.0, reduction="mean", weight=None):
        super().__init__(reduction)
        if p not in (1, 2):
            raise ValueError(f"For '{self.cls_name}', the 'p' must be 1 or 2, but got {p}.")
        self.p = p
        self.margin = margin
        self.weight = weight

    def construct(self, x, target, weight=None):
        check_tensors(self.cls_name, x=x, target=target)
        weight = self.weight if weight is None else weight
        return ops.multi_margin_loss(x, target, self.p, self.margin, weight, self.reduction)


class MultilabelMarginLoss(LossBase):
    """sum over right classes y and wrong classes j of max(0, 1 - (x[y] - x[j])), divided by the number of classes.

    Args:
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.

    Inputs:
        - **x** (Tensor) - shape [N, C] or [C].
        - **target** (Tensor) - class numbers, the same shape; the first -1 ends a row's list.
    """

    def construct(self, x, target):
        check_same_shape(self.cls_name, x=x, target=target)
        single = x.ndim == 1
        if single:
            x, target = x.expand_dims(0), target.expand_dims(0)
        classes = x.shape[1]
        target = target.astype(mstype.int32)
        listed = ops.cumprod((target >= 0).astype(mstype.float32), 1)  # ones before the first -1
        index = ops.maximum(target, 0)
        numbers = ops.arange(classes).astype(mstype.int32).reshape((1, 1, classes))
        right = ((index.expand_dims(2) == numbers).astype(mstype.float32) * listed.expand_dims(2)).sum(1) > 0
        scores = ops.gather_elements(x, 1, index).expand_dims(2)
        hinge = ops.relu(1.0 - (scores - x.expand_dims(1))) * listed.expand_dims(2).astype(x.dtype)
        wrong = (1.0 - right.astype(x.dtype)).expand_dims(1)
        loss = (hinge * wrong).sum((1, 2)) / classes
        return reduce_loss(loss.squeeze(0) if single else loss, self.reduction)


class MultiLabelSoftMarginLoss(LossBase):
    """Mean over the classes of -weight * (y log sigmoid(x) + (1 - y) log sigmoid(-x)).

    Args:
        weight (Tensor): factor per class. Default ``None``.
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.
    """

    def __init__(self, weight=None, reduction="mean"):
        super().__init__(reduction)
        self.weight = weight

    def construct(self, x, target):
        check_same_shape(self.cls_name, x=x, target=target)
        return ops.multilabel_soft_margin_loss(x, target, self.weight, self.reduction)
