"""Small mathematical layers."""

from morel import ops
from morel.nn.cell import Cell

__all__ = ["MatMul", "Moments", "ReduceLogSumExp", "Range"]


class MatMul(Cell):
    """Matrix product with optional transposition of the last two dimensions.

    Args:
        transpose_x1 (bool): transpose the first input. Default ``False``.
        transpose_x2 (bool): transpose the second input. Default ``False``.
    """

    def __init__(self, transpose_x1=False, transpose_x2=False):
        super().__init__()
        self.transpose_x1 = transpose_x1
        self.transpose_x2 = transpose_x2

    def construct(self, x1, x2):
        x1 = x1.swapaxes(-1, -2) if self.transpose_x1 else x1
        x2 = x2.swapaxes(-1, -2) if self.transpose_x2 else x2
        return ops.matmul(x1, x2)


class Moments(Cell):
    """Mean and (biased) variance.

    Args:
        axis (Union[int, tuple[int], None]): dimensions to reduce; ``None`` means all. Default ``None``.
        keep_dims (bool): keep them with size 1. Default ``None``: no.
    """

    def __init__(self, axis=None, keep_dims=None):
        super().__init__()
        self.axis = axis if axis is None or isinstance(axis, int) or axis else None
        self.keep_dims = bool(keep_dims)

    def construct(self, x):
        mean = ops.mean(x, self.axis, True)
        variance = ops.mean(ops.square(x - mean), self.axis, self.keep_dims)
        return (mean if self.keep_dims else x.mean(self.axis)), variance


class ReduceLogSumExp(Cell):
    """log(sum(exp(x))) over `axis`, without overflow.

    Args:
        axis (Union[int, tuple[int], list[int]]): dimensions to reduce; ``()`` means all.
        keep_dims (bool): keep them with size 1. Default ``False``.
    """

    def __init__(self, axis, keep_dims=False):
        super().__init__()
        self.axis = axis
        self.keep_dims = keep_dims

    def construct(self, x):
        axis = tuple(range(x.ndim)) if isinstance(self.axis, (tuple, list)) and not self.axis else self.axis
        return ops.logsumexp(x, axis, self.keep_dims)


class Range(Cell):
    """The numbers start, start + delta, ... below limit.

    Args:
        start (Union[int, float]): first number; the limit if `limit` is ``None``, counting from 0.
        limit (Union[int, float]): where to stop. Default ``None``.
        delta (Union[int, float]): step. Default ``1``.
    """

    def __init__(self, start, limit=None, delta=1):
        super().__init__()
        self.start, self.limit = (0, start) if limit is None else (start, limit)
        self.delta = delta
        if delta == 0:
            raise ValueError("For 'Range', the 'delta' must not be 0.")

    def construct(self):
        return ops.arange(self.start, self.limit, self.delta)
