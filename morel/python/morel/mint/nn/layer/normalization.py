"""Normalisation layers of `mint.nn`."""

from morel import ops
from morel._core import Tensor
from morel.common import dtype as mstype
from morel.common.initializer import initializer
from morel.common.parameter import Parameter
from morel.nn import _check
from morel.nn.cell import Cell
from morel.nn.layer.normalization import LayerNormExt as LayerNorm

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "GroupNorm", "LayerNorm"]


class _BatchNorm(Cell):
    """(x - mean) / sqrt(variance + eps) * weight + bias, statistics over everything but the channels.

    Args:
        num_features (int): channels C.
        eps (float): added to the variance. Default ``1e-5``.
        momentum (Union[float, None]): weight of new statistics; ``None``: the mean of all batches. Default ``0.1``.
        affine (bool): learn `weight` and `bias`. Default ``True``.
        track_running_stats (bool): keep moving statistics for evaluation. Default ``True``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``None``: float32.
    """

    _ranks = ()

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, dtype=None):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.dtype = mstype.float32 if dtype is None else dtype
        self.weight = self.bias = None
        self.running_mean = self.running_var = self.num_batches_tracked = None
        if affine:
            self.weight = self._new("weight", "ones")
            self.bias = self._new("bias", "zeros")
        if track_running_stats:
            self.running_mean = self._new("running_mean", "zeros", False)
            self.running_var = self._new("running_var", "ones", False)
            self.num_batches_tracked = Parameter(
                Tensor(0, mstype.int64), name="num_batches_tracked", requires_grad=False
            )

    def _new(self, name, init, requires_grad=True):
        return Parameter(initializer(init, self.num_features, self.dtype), name=name, requires_grad=requires_grad)

    def reset_running_stats(self):
        """Starts the moving statistics again."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Sets everything to its first value."""
        self.reset_running_stats()
        if self.affine:
            self.weight.fill_(1)
            self.bias.zero_()

    def construct(self, input):
        _check.check_rank(input, self._ranks, self.cls_name)
        share = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                share = 1.0 / float(self.num_batches_tracked.item())
        use_batch = self.training or not self.track_running_stats
        return self._normalize(input, use_batch, share)

    def _normalize(self, x, use_batch, share):
        return ops.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, use_batch, share, self.eps
        )

    def extend_repr(self):
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    __doc__ = "Batch normalisation of [N, C] or [N, C, L]: " + _BatchNorm.__doc__
    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    __doc__ = "Batch normalisation of [N, C, H, W]: " + _BatchNorm.__doc__
    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    __doc__ = "Batch normalisation of [N, C, D, H, W]: " + _BatchNorm.__doc__
    _ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation with statistics over a process group; on one device over the batch."""

    _ranks = (2, 3, 4, 5)

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        dtype=None,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)
        self.process_group = process_group


class GroupNorm(Cell):
    """Normalises groups of channels of each sample of [N, C, *].

    Args:
        num_groups (int): number of groups; divides `num_channels`.
        num_channels (int): channels C.
        eps (float): added to the variance. Default ``1e-5``.
        affine (bool): learn `weight` and `bias`. Default ``True``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``None``: float32.
    """

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, dtype=None):
        super().__init__()
        self.num_groups = _check.check_positive_int(num_groups, "num_groups", self.cls_name)
        self.num_channels = _check.check_positive_int(num_channels, "num_channels", self.cls_name)
        if num_channels % num_groups:
            raise ValueError(
                f"For 'GroupNorm', 'num_channels' must be divisible by 'num_groups', but got "
                f"{num_channels} and {num_groups}."
            )
        self.eps = eps
        self.affine = affine
        dtype = mstype.float32 if dtype is None else dtype
        self.weight = self.bias = None
        if affine:
            self.weight = Parameter(initializer("ones", num_channels, dtype), name="weight")
            self.bias = Parameter(initializer("zeros", num_channels, dtype), name="bias")

    def construct(self, input):
        return ops.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extend_repr(self):
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}, eps={self.eps}, affine={self.affine}"
