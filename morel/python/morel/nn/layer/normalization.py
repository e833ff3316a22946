"""Normalisation layers."""

from morel import ops
from morel.common import dtype as mstype
from morel.common.initializer import initializer
from morel.common.parameter import Parameter
from morel.nn import _check
from morel.nn.cell import Cell

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LayerNorm",
    "LayerNormExt",
    "GroupNorm",
    "SyncBatchNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
]


def _scale_and_offset(cell, shape, gamma_init, beta_init, dtype, requires_grad=True):
    cell.gamma = Parameter(initializer(gamma_init, shape, dtype), name="gamma", requires_grad=requires_grad)
    cell.beta = Parameter(initializer(beta_init, shape, dtype), name="beta", requires_grad=requires_grad)


class _ChannelNorm(Cell):
    """Arguments and parameters of the layers that keep moving statistics per channel."""

    _ranks = (4,)

    def __init__(
        self, num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init, dtype
    ):
        super().__init__()
        cls = self.cls_name
        _check.check_type(num_features, int, "num_features", cls)
        if num_features < 1:
            raise ValueError(f"For '{cls}', the 'num_features' must be at least 1, but got {num_features}.")
        if not 0 <= momentum <= 1:
            raise ValueError(f"For '{cls}', the 'momentum' must be a number in range [0, 1], but got {momentum}.")
        self.num_features = num_features
        self.eps = eps
        self.moving_mean = Parameter(
            initializer(moving_mean_init, num_features, dtype), name="mean", requires_grad=False
        )
        self.moving_variance = Parameter(
            initializer(moving_var_init, num_features, dtype), name="variance", requires_grad=False
        )
        _scale_and_offset(self, num_features, gamma_init, beta_init, dtype, _check.check_bool(affine, "affine", cls))
        self.momentum = 1.0 - momentum

    def extend_repr(self):
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self._shown_momentum()}, "
            f"gamma={self.gamma}, beta={self.beta}, moving_mean={self.moving_mean}, "
            f"moving_variance={self.moving_variance}"
        )

    def _shown_momentum(self):
        return round(1.0 - self.momentum, 12)


class _BatchNorm(_ChannelNorm):
    """y = gamma * (x - mean) / sqrt(variance + eps) + beta, with statistics over everything but the channels."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.9,
        affine=True,
        gamma_init="ones",
        beta_init="zeros",
        moving_mean_init="zeros",
        moving_var_init="ones",
        use_batch_statistics=None,
        data_format="NCHW",
        dtype=mstype.float32,
    ):
        super().__init__(
            num_features, eps, momentum, affine, gamma_init, beta_init, moving_mean_init, moving_var_init, dtype
        )
        self.format = _check.check_string(data_format, ["NCHW", "NCDHW"], "format", self.cls_name)
        self.use_batch_statistics = use_batch_statistics
        if use_batch_statistics is not None:
            _check.check_bool(use_batch_statistics, "use_batch_statistics", self.cls_name)

    def construct(self, x):
        if x.ndim not in self._ranks:
            _check.check_rank(x, self._ranks, self.cls_name)
        batch = self.use_batch_statistics
        return ops.batch_norm(
            x,
            self.moving_mean,
            self.moving_variance,
            self.gamma,
            self.beta,
            self.training if batch is None else batch,
            self.momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of [N, C] or [N, C, L].

    In training the batch's mean and variance are used and the moving ones updated,
    ``moving = momentum * moving + (1 - momentum) * batch``; otherwise the moving ones are used.

    Args:
        num_features (int): channels C.
        eps (float): added to the variance. Default ``1e-5``.
        momentum (float): weight of the old moving statistics, in [0, 1]. Default ``0.9``.
        affine (bool): train `gamma` and `beta`. Default ``True``.
        gamma_init (Union[Tensor, str, Initializer, Number]): first scale. Default ``"ones"``.
        beta_init (Union[Tensor, str, Initializer, Number]): first offset. Default ``"zeros"``.
        moving_mean_init (Union[Tensor, str, Initializer, Number]): first moving mean. Default ``"zeros"``.
        moving_var_init (Union[Tensor, str, Initializer, Number]): first moving variance. Default ``"ones"``.
        use_batch_statistics (bool): ``True``: always the batch's statistics, ``False``: always the moving ones.
            Default ``None``: by training mode.
        data_format (str): ``"NCHW"``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``float32``.

    Raises:
        TypeError: `num_features` is not an int.
        ValueError: `num_features` < 1, `momentum` is out of range, or the input has the wrong rank.

    Source: Ioffe and Szegedy, Batch Normalization, 2015, algorithms 1 and 2.
    """

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of [N, C, H, W]; arguments as `BatchNorm1d`.

    Example:
        >>> import numpy as np
        >>> from morel import nn, Tensor
        >>> nn.BatchNorm2d(3)(Tensor(np.ones((1, 3, 2, 2), np.float32))).shape
        (1, 3, 2, 2)
    """


class BatchNorm3d(Cell):
    """Batch normalisation of [N, C, D, H, W]; arguments as `BatchNorm1d`. Its parameters are in the cell `bn2d`."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.9,
        affine=True,
        gamma_init="ones",
        beta_init="zeros",
        moving_mean_init="zeros",
        moving_var_init="ones",
        use_batch_statistics=None,
        dtype=mstype.float32,
    ):
        super().__init__()
        self.bn2d = BatchNorm2d(
            num_features,
            eps,
            momentum,
            affine,
            gamma_init,
            beta_init,
            moving_mean_init,
            moving_var_init,
            use_batch_statistics,
            dtype=dtype,
        )

    def construct(self, x):
        _check.check_rank(x, (5,), self.cls_name)
        batch, channels, depth, height, width = x.shape
        return self.bn2d(x.reshape((batch, channels, depth * height, width))).reshape(x.shape)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation with statistics over all devices of a group; on one device the same as `BatchNorm2d`."""

    _ranks = (2, 4)

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.9,
        affine=True,
        gamma_init="ones",
        beta_init="zeros",
        moving_mean_init="zeros",
        moving_var_init="ones",
        use_batch_statistics=None,
        process_groups=None,
        dtype=mstype.float32,
    ):
        super().__init__(
            num_features,
            eps,
            momentum,
            affine,
            gamma_init,
            beta_init,
            moving_mean_init,
            moving_var_init,
            use_batch_statistics,
            dtype=dtype,
        )
        self.process_groups = process_groups


class _InstanceNorm(_ChannelNorm):
    """Normalises each channel of each sample by itself; moving statistics are kept but not used."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        gamma_init="ones",
        beta_init="zeros",
        dtype=mstype.float32,
    ):
        super().__init__(num_features, eps, momentum, affine, gamma_init, beta_init, "zeros", "ones", dtype)
        self.momentum = momentum

    def _shown_momentum(self):
        return self.momentum

    def construct(self, x):
        _check.check_rank(x, self._ranks, self.cls_name)
        if x.shape[1] != self.num_features:
            raise ValueError(
                f"For '{self.cls_name}', the input must have {self.num_features} channels, but got {x.shape[1]}."
            )
        return ops.group_norm(x, self.num_features, self.gamma, self.beta, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sample of [N, C, L].

    Args:
        num_features (int): channels C.
        eps (float): added to the variance. Default ``1e-5``.
        momentum (float): weight of new statistics, in [0, 1]. Default ``0.1``.
        affine (bool): train `gamma` and `beta`. Default ``True``.
        gamma_init (Union[Tensor, str, Initializer, Number]): first scale. Default ``"ones"``.
        beta_init (Union[Tensor, str, Initializer, Number]): first offset. Default ``"zeros"``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``float32``.

    Source: Ulyanov et al., Instance Normalization, 2016.
    """

    _ranks = (3,)


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each sample of [N, C, H, W]; arguments as `InstanceNorm1d`."""


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each sample of [N, C, D, H, W]; arguments as `InstanceNorm1d`."""

    _ranks = (5,)


class LayerNorm(Cell):
    """y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, statistics over the axes from `begin_norm_axis` on.

    Args:
        normalized_shape (Union[tuple[int], list[int]]): shape of `gamma` and `beta`.
        begin_norm_axis (int): first axis of the statistics. Default ``-1``.
        begin_params_axis (int): first axis that `gamma` and `beta` cover. Default ``-1``.
        gamma_init (Union[Tensor, str, Initializer, Number]): first scale. Default ``"ones"``.
        beta_init (Union[Tensor, str, Initializer, Number]): first offset. Default ``"zeros"``.
        epsilon (float): added to the variance. Default ``1e-7``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``float32``.

    Inputs:
        - **input_x** (Tensor) - its shape from `begin_params_axis` on is `normalized_shape`.

    Outputs:
        Tensor like `input_x`.

    Raises:
        TypeError: `normalized_shape` is neither tuple nor list.

    Source: Ba et al., Layer Normalization, 2016.

    Example:
        >>> import numpy as np
        >>> from morel import nn, Tensor
        >>> nn.LayerNorm((4,))(Tensor(np.ones((2, 4), np.float32))).shape
        (2, 4)
    """

    def __init__(
        self,
        normalized_shape,
        begin_norm_axis=-1,
        begin_params_axis=-1,
        gamma_init="ones",
        beta_init="zeros",
        epsilon=1e-7,
        dtype=mstype.float32,
    ):
        super().__init__()
        if not isinstance(normalized_shape, (tuple, list)):
            raise TypeError(
                f"For 'LayerNorm', the type of 'normalized_shape' must be tuple[int] or list[int], but got "
                f"{normalized_shape} and the type is {type(normalized_shape)}."
            )
        if not normalized_shape:
            raise ValueError("For 'LayerNorm', 'normalized_shape' must have at least one dimension.")
        self.normalized_shape = normalized_shape
        self.begin_norm_axis = begin_norm_axis
        self.begin_params_axis = begin_params_axis
        self.epsilon = epsilon
        _scale_and_offset(self, tuple(normalized_shape), gamma_init, beta_init, dtype)

    def construct(self, input_x):
        rank = input_x.ndim
        norm_axis, params_axis = self.begin_norm_axis, self.begin_params_axis
        shape = input_x.shape
        if norm_axis == params_axis or norm_axis % rank == params_axis % rank:
            return ops.layer_norm(input_x, shape[norm_axis:], self.gamma, self.beta, self.epsilon)
        return ops.layer_norm(input_x, shape[norm_axis:], None, None, self.epsilon) * self.gamma + self.beta

    def extend_repr(self):
        return (
            f"normalized_shape={self.normalized_shape}, begin_norm_axis={self.begin_norm_axis}, "
            f"begin_params_axis={self.begin_params_axis}, gamma{self.gamma}, beta={self.beta}"
        )


class LayerNormExt(Cell):
    """`LayerNorm` in the interface of ``mint``: statistics over the last ``len(normalized_shape)`` axes.

    Args:
        normalized_shape (Union[int, tuple[int], list[int]]): the trailing shape.
        eps (float): added to the variance. Default ``1e-5``.
        elementwise_affine (bool): learn scale and offset. Default ``True``.
        bias (bool): learn an offset. Default ``True``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``None``: float32.
    """

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, dtype=None):
        super().__init__()
        if isinstance(normalized_shape, int) and not isinstance(normalized_shape, bool):
            normalized_shape = (normalized_shape,)
        if not isinstance(normalized_shape, (tuple, list)):
            raise TypeError(
                f"For 'LayerNormExt', the 'normalized_shape' must be int, tuple or list, "
                f"but got {type(normalized_shape).__name__}."
            )
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        dtype = mstype.float32 if dtype is None else dtype
        self.weight = self.bias = None
        if elementwise_affine:
            self.weight = Parameter(initializer("ones", self.normalized_shape, dtype), name="weight")
            if bias:
                self.bias = Parameter(initializer("zeros", self.normalized_shape, dtype), name="bias")

    def construct(self, input):
        return ops.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extend_repr(self):
        return f"normalized_shape={self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Cell):
    """Normalises groups of channels of each sample of [N, C, *].

    Args:
        num_groups (int): number of groups; divides `num_channels`.
        num_channels (int): channels C.
        eps (float): added to the variance. Default ``1e-5``.
        affine (bool): train `gamma` and `beta`. Default ``True``.
        gamma_init (Union[Tensor, str, Initializer, Number]): first scale. Default ``"ones"``.
        beta_init (Union[Tensor, str, Initializer, Number]): first offset. Default ``"zeros"``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``float32``.

    Source: Wu and He, Group Normalization, 2018.
    """

    def __init__(
        self,
        num_groups,
        num_channels,
        eps=1e-5,
        affine=True,
        gamma_init="ones",
        beta_init="zeros",
        dtype=mstype.float32,
    ):
        super().__init__()
        self.num_groups = _check.check_positive_int(num_groups, "num_groups", self.cls_name)
        self.num_channels = _check.check_positive_int(num_channels, "num_channels", self.cls_name)
        if num_channels % num_groups:
            raise ValueError(
                f"For 'GroupNorm', the 'num_channels' must be divided by 'num_groups', but got "
                f"'num_channels': {num_channels}, 'num_groups': {num_groups}."
            )
        self.eps = _check.check_type(eps, float, "eps", self.cls_name)
        _scale_and_offset(
            self, num_channels, gamma_init, beta_init, dtype, _check.check_bool(affine, "affine", self.cls_name)
        )

    def construct(self, x):
        return ops.group_norm(x, self.num_groups, self.gamma, self.beta, self.eps)

    def extend_repr(self):
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}"
