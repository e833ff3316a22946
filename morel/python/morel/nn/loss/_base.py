"""The base class of the losses and the reduction that all share."""

from morel import ops
from morel._core import Tensor
from morel.common import dtype as mstype
from morel.nn.cell import Cell

REDUCTIONS = ("mean", "sum", "none")


def reduce_loss(loss, reduction):
    """The mean or sum of the element losses, or the losses themselves."""
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def check_tensors(cls, **inputs):
    """Every input is a Tensor."""
    for name, value in inputs.items():
        if not isinstance(value, Tensor):
            raise TypeError(f"For '{cls}', the '{name}' must be a Tensor, but got {type(value).__name__}.")


def check_same_shape(cls, **inputs):
    """Both inputs are tensors of one shape."""
    check_tensors(cls, **inputs)
    (first_name, first), (second_name, second) = inputs.items()
    if tuple(first.shape) != tuple(second.shape):
        raise ValueError(
            f"For '{cls}', '{first_name}' and '{second_name}' must have the same shape, but got "
            f"{tuple(first.shape)} and {tuple(second.shape)}."
        )


class LossBase(Cell):
    """Base class of losses: a subclass computes the loss of every element and hands it to `get_loss`.

    Args:
        reduction (str): ``"mean"``, ``"sum"`` or ``"none"``. Default ``"mean"``.

    Raises:
        ValueError: another reduction.

    Example:
        >>> from morel import nn, ops, Tensor
        >>> class Squared(nn.LossBase):
        ...     def construct(self, logits, labels):
        ...         return self.get_loss(ops.square(logits - labels))
        >>> float(Squared("sum")(Tensor([1.0, 3.0]), Tensor([0.0, 0.0])).asnumpy())
        10.0
    """

    def __init__(self, reduction="mean"):
        super().__init__()
        if reduction not in REDUCTIONS:
            raise ValueError(
                f"For '{self.cls_name}', the 'reduction' must be in {list(REDUCTIONS)}, but got {reduction}."
            )
        self.reduction = reduction
        self.reduce = reduction != "none"
        self.average = reduction != "sum"

    def get_axis(self, x):
        """All dimensions of `x`."""
        return tuple(range(x.ndim))

    def get_loss(self, x, weights=1.0):
        """Weights the element losses and reduces them; half types are summed in float32.

        Args:
            x (Tensor): element losses.
            weights (Union[float, Tensor]): factors, broadcast to `x`. Default ``1.0``.
        """
        dtype = x.dtype
        wide = x.astype(mstype.float32) if dtype in (mstype.float16, mstype.bfloat16) else x
        if isinstance(weights, Tensor) or weights != 1.0:
            wide = ops.mul(wide, weights)
        wide = reduce_loss(wide, self.reduction if not self.reduce else "mean" if self.average else "sum")
        return wide.astype(dtype) if wide.dtype != dtype else wide

    def construct(self, logits, labels):
        raise NotImplementedError(f"For '{self.cls_name}', 'construct' must be defined.")
