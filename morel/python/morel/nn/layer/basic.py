"""Dense layers, dropout, and small layers that reshape, pad or select."""

import math

from morel import ops
from morel._core import Tensor
from morel.common import dtype as mstype
from morel.common.initializer import HeUniform, Uniform, initializer
from morel.common.parameter import Parameter
from morel.nn import _check
from morel.nn.cell import Cell
from morel.nn.layer.activation import get_activation

__all__ = [
    "Dropout",
    "DropoutExt",
    "Dropout1d",
    "Dropout2d",
    "Dropout2dExt",
    "Dropout3d",
    "Flatten",
    "Unflatten",
    "Identity",
    "Dense",
    "Linear",
    "BiDense",
    "Pad",
    "Upsample",
    "UpsampleExt",
    "Norm",
    "OneHot",
    "ClipByNorm",
    "L1Regularizer",
    "Tril",
    "Triu",
    "Roll",
]


def _check_init_shape(init, shape, name, cls):
    if isinstance(init, Tensor) and tuple(init.shape) != tuple(shape):
        raise ValueError(f"For '{cls}', the shape of '{name}' must be {tuple(shape)}, but got {tuple(init.shape)}.")


def _is_primitive(value):
    from morel.ops.primitive import Primitive

    return isinstance(value, Primitive)


def _affine_parameters(cell, shape, fan_in, weight_init, bias_init, has_bias, dtype):
    """Creates `weight` of `shape` and `bias` of shape [shape[0]]; both uniform within 1/sqrt(fan_in) by default."""
    _check_init_shape(weight_init, shape, "weight_init", cell.cls_name)
    weight_init = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
    cell.weight = Parameter(initializer(weight_init, shape, dtype), name="weight")
    cell.bias = None
    if has_bias:
        _check_init_shape(bias_init, shape[:1], "bias_init", cell.cls_name)
        bias_init = Uniform(1 / math.sqrt(fan_in)) if bias_init is None else bias_init
        cell.bias = Parameter(initializer(bias_init, shape[:1], dtype), name="bias")


class Dense(Cell):
    """Fully connected layer: ``activation(x @ weight.T + bias)``.

    Args:
        in_channels (int): features of the input.
        out_channels (int): features of the output.
        weight_init (Union[Tensor, str, Initializer, Number]): values of `weight`, shape [out_channels, in_channels].
            Default ``None``: uniform within 1/sqrt(in_channels).
        bias_init (Union[Tensor, str, Initializer, Number]): values of `bias`, shape [out_channels]. Default ``None``:
            uniform within 1/sqrt(in_channels).
        has_bias (bool): whether to add `bias`. Default ``True``.
        activation (Union[str, Cell, Primitive, None]): applied to the result. Default ``None``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``float32``.

    Inputs:
        - **x** (Tensor) - shape [*, in_channels].

    Outputs:
        Tensor of shape [*, out_channels].

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a size is not positive, or a given weight or bias has the wrong shape.

    Example:
        >>> import numpy as np
        >>> from morel import nn, Tensor
        >>> nn.Dense(3, 4)(Tensor(np.ones((2, 3), np.float32))).shape
        (2, 4)
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        weight_init=None,
        bias_init=None,
        has_bias=True,
        activation=None,
        dtype=mstype.float32,
    ):
        super().__init__()
        self.in_channels = _check.check_positive_int(in_channels, "in_channels", self.cls_name)
        self.out_channels = _check.check_positive_int(out_channels, "out_channels", self.cls_name)
        self.has_bias = _check.check_bool(has_bias, "has_bias", self.cls_name)
        _affine_parameters(self, (out_channels, in_channels), in_channels, weight_init, bias_init, has_bias, dtype)
        self.activation = get_activation(activation) if isinstance(activation, str) else activation
        self.activation_flag = self.activation is not None
        if self.activation_flag and not isinstance(self.activation, Cell) and not _is_primitive(self.activation):
            raise TypeError(
                f"For 'Dense', the 'activation' must be str or Cell or Primitive, but got {type(activation).__name__}."
            )

    def construct(self, x):
        x = ops.dense(x, self.weight, self.bias)
        return self.activation(x) if self.activation_flag else x

    def extend_repr(self):
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        if self.has_bias:
            text += f", has_bias={self.has_bias}"
        if self.activation_flag:
            text += f", activation={self.activation}"
        return text


class Linear(Cell):
    """Fully connected layer: ``x @ weight.T + bias``.

    Args:
        in_features (int): features of the input.
        out_features (int): features of the output.
        bias (bool): whether to add a bias. Default ``True``.
        weight_init (Union[Tensor, str, Initializer, Number]): values of `weight`. Default ``None``: uniform within
            1/sqrt(in_features).
        bias_init (Union[Tensor, str, Initializer, Number]): values of `bias`. Default ``None``: as the weight.
        dtype (mindspore.dtype): dtype of the parameters. Default ``None``: float32.

    Inputs:
        - **x** (Tensor) - shape [*, in_features].

    Outputs:
        Tensor of shape [*, out_features].
    """

    def __init__(self, in_features, out_features, bias=True, weight_init=None, bias_init=None, dtype=None):
        super().__init__()
        self.in_features = _check.check_positive_int(in_features, "in_features", self.cls_name)
        self.out_features = _check.check_positive_int(out_features, "out_features", self.cls_name)
        self.has_bias = _check.check_bool(bias, "has_bias", self.cls_name)
        _affine_parameters(
            self,
            (out_features, in_features),
            in_features,
            weight_init,
            bias_init,
            bias,
            mstype.float32 if dtype is None else dtype,
        )

    def construct(self, x):
        return ops.dense(x, self.weight, self.bias)

    def extend_repr(self):
        text = f"input_features={self.in_features}, output_features={self.out_features}"
        return text + f", has_bias={self.has_bias}" if self.has_bias else text


class BiDense(Cell):
    """Bilinear layer: ``y[k] = x1 @ weight[k] @ x2 + bias[k]``.

    Args:
        in1_channels (int): features of the first input.
        in2_channels (int): features of the second input.
        out_channels (int): features of the output.
        weight_init (Union[Tensor, str, Initializer, Number]): values of `weight`, shape [out, in1, in2]. Default
            ``None``: uniform within 1/sqrt(in1_channels).
        bias_init (Union[Tensor, str, Initializer, Number]): values of `bias`. Default ``None``: as the weight.
        has_bias (bool): whether to add a bias. Default ``True``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``float32``.

    Inputs:
        - **input1** (Tensor) - shape [*, in1_channels].
        - **input2** (Tensor) - shape [*, in2_channels].

    Outputs:
        Tensor of shape [*, out_channels].
    """

    def __init__(
        self,
        in1_channels,
        in2_channels,
        out_channels,
        weight_init=None,
        bias_init=None,
        has_bias=True,
        dtype=mstype.float32,
    ):
        super().__init__()
        self.in1_channels = _check.check_positive_int(in1_channels, "in1_channels", self.cls_name)
        self.in2_channels = _check.check_positive_int(in2_channels, "in2_channels", self.cls_name)
        self.out_channels = _check.check_positive_int(out_channels, "out_channels", self.cls_name)
        self.has_bias = _check.check_bool(has_bias, "has_bias", self.cls_name)
        bound = Uniform(1 / math.sqrt(in1_channels))
        _affine_parameters(
            self,
            (out_channels, in1_channels, in2_channels),
            in1_channels,
            bound if weight_init is None else weight_init,
            bias_init,
            has_bias,
            dtype,
        )

    def construct(self, input1, input2):
        batch = input1.shape[:-1]
        left = input1.reshape((-1, self.in1_channels))
        right = input2.reshape((-1, self.in2_channels))
        flat_weight = self.weight.transpose((1, 0, 2)).reshape((self.in1_channels, -1))
        partial = ops.matmul(left, flat_weight).reshape((-1, self.out_channels, self.in2_channels))
        output = ops.matmul(partial, right.expand_dims(-1)).squeeze(-1)
        if self.has_bias:
            output = output + self.bias
        return output.reshape((*batch, self.out_channels))

    def extend_repr(self):
        text = (
            f"in1_channels={self.in1_channels}, in2_channels={self.in2_channels}, output_channels={self.out_channels}"
        )
        return text + f", has_bias={self.has_bias}" if self.has_bias else text


class Dropout(Cell):
    """In training sets each element to zero with probability `p` and scales the rest by 1/(1-p).

    Args:
        keep_prob (float): the old way to give 1-p, in (0, 1]; used only while `p` is ``None``. Default ``0.5``.
        p (Union[float, int, None]): probability of zeroing, in [0, 1). Default ``None``.
        dtype (mindspore.dtype): kept for compatibility; the output has the input's dtype.

    Inputs:
        - **x** (Tensor) - any shape.

    Outputs:
        Tensor like `x`.

    Raises:
        TypeError: `p` or `keep_prob` is not a number.
        ValueError: the probability is out of range.
    """

    def __init__(self, keep_prob=0.5, p=None, dtype=mstype.float32):
        super().__init__()
        if p is None:
            _check.check_type(keep_prob, float, "keep_prob", self.cls_name)
            _check.check_float(keep_prob, "keep_prob", self.cls_name, 0, 1, "(]")
        else:
            _check.check_type(p, (float, int), "p", self.cls_name)
            _check.check_float(p, "p", self.cls_name, 0, 1, "[)")
        self.p = p
        self.keep_prob = keep_prob
        self._rate = float(1.0 - keep_prob if p is None else p)

    def construct(self, x):
        if not self.training or self._rate == 0.0:
            return x
        return ops.dropout(x, self._rate, True)

    def extend_repr(self):
        return f"keep_prob={self.keep_prob}" if self.p is None else f"p={self.p}"


class DropoutExt(Cell):
    """`Dropout` in the interface of ``mint``.

    Args:
        p (float): probability of zeroing, in [0, 1]. Default ``0.5``.
        inplace (bool): write the result into the input. Default ``False``.
    """

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        self.p = p
        self.inplace = inplace

    def construct(self, input):
        if not self.training or self.p == 0:
            return input
        output = ops.dropout(input, float(self.p), True)
        return input.copy_(output) if self.inplace else output


def _drop_channels(x, p, ranks, cls):
    """`x` of [N, C, *] or [C, *], whole channels set to zero with probability `p`, the rest scaled by 1/(1-p)."""
    _check.check_rank(x, ranks, cls)
    if p >= 1.0:
        return ops.zeros_like(x)
    leading = x.ndim - ranks[0] + 1  # batch, if any, and channels
    kept = ops.ones(tuple(x.shape[:leading]) + (1,) * (x.ndim - leading), x.dtype)
    return x * ops.dropout(kept, p, True)


class _ChannelDropout(Cell):
    """Zeroes whole channels in training; the subclasses differ in the rank of the input."""

    _ranks = ()

    def __init__(self, p=0.5):
        super().__init__()
        _check.check_type(p, float, "p", self.cls_name)
        self.prob = _check.check_float(p, "p", self.cls_name, 0, 1)
        self.keep_prob = 1.0 - self.prob

    def construct(self, x):
        if not self.training or self.prob == 0.0:
            return x
        return _drop_channels(x, self.prob, self._ranks, self.cls_name)


class Dropout1d(_ChannelDropout):
    """Zeroes whole channels of [N, C, L] or [C, L] with probability `p` in training.

    Args:
        p (float): probability, in [0, 1]. Default ``0.5``.
    """

    _ranks = (2, 3)


class Dropout2d(_ChannelDropout):
    """Zeroes whole channels of [N, C, H, W] with probability `p` in training.

    Args:
        p (float): probability, in [0, 1]. Default ``0.5``.
    """

    _ranks = (3, 4)

    def extend_repr(self):
        return f"p={self.keep_prob}"


class Dropout3d(_ChannelDropout):
    """Zeroes whole channels of [N, C, D, H, W] with probability `p` in training.

    Args:
        p (float): probability, in [0, 1]. Default ``0.5``.
    """

    _ranks = (4, 5)

    def extend_repr(self):
        return f"p={self.keep_prob}"


class Dropout2dExt(Cell):
    """`Dropout2d` in the interface of ``mint``.

    Args:
        p (float): probability. Default ``0.5``.
        inplace (bool): write the result into the input. Default ``False``.
    """

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        self.p = p
        self.inplace = inplace

    def construct(self, input):
        if not self.training or self.p == 0:
            return input
        output = _drop_channels(input, float(self.p), (3, 4), self.cls_name)
        return input.copy_(output) if self.inplace else output


class Flatten(Cell):
    """Merges the dimensions `start_dim` to `end_dim` into one.

    Args:
        start_dim (int): first dimension. Default ``1``.
        end_dim (int): last dimension. Default ``-1``.

    Inputs:
        - **x** (Tensor) - any shape.

    Outputs:
        Tensor with the same elements.

    Raises:
        ValueError: a dimension is out of range.
    """

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def construct(self, x):
        rank = x.ndim or 1
        if not (-rank <= self.start_dim < rank and -rank <= self.end_dim < rank):
            raise ValueError(
                f"For 'Flatten', 'start_dim' and 'end_dim' must be in [{-rank}, {rank}), but got "
                f"{self.start_dim} and {self.end_dim}."
            )
        return ops.flatten(x, start_dim=self.start_dim, end_dim=self.end_dim)


class Unflatten(Cell):
    """Splits dimension `axis` into the sizes `unflattened_size`.

    Args:
        axis (int): the dimension.
        unflattened_size (Union[tuple[int], list[int]]): the sizes; one may be -1.
    """

    def __init__(self, axis, unflattened_size):
        super().__init__()
        self.axis = _check.check_int(axis, "axis", self.cls_name)
        _check.check_type(unflattened_size, (tuple, list), "unflattened_size", self.cls_name)
        self.unflattened_size = tuple(unflattened_size)

    def construct(self, input_x):
        axis = self.axis + input_x.ndim if self.axis < 0 else self.axis
        return input_x.reshape((*input_x.shape[:axis], *self.unflattened_size, *input_x.shape[axis + 1 :]))


class Identity(Cell):
    """Returns its input."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def construct(self, input):
        return input


def _mirror_index(size, before, after, repeat_edge):
    """Source positions along one axis padded by mirroring, with the edge element doubled or not."""
    positions = []
    for place in range(-before, size + after):
        if place < 0:
            place = -place - 1 if repeat_edge else -place
        elif place >= size:
            place = 2 * size - place - 1 if repeat_edge else 2 * size - place - 2
        positions.append(place)
    return positions


class Pad(Cell):
    """Pads every dimension.

    Args:
        paddings (tuple): one pair (before, after) per dimension of the input.
        mode (str): ``"CONSTANT"`` (zeros), ``"REFLECT"`` (mirror without the edge), ``"SYMMETRIC"`` (mirror with it).

    Raises:
        TypeError: `paddings` is not a tuple.
        ValueError: it does not hold 1 to 4 pairs, or the mode is unknown.
    """

    def __init__(self, paddings, mode="CONSTANT"):
        super().__init__()
        self.mode = _check.check_string(mode, ["CONSTANT", "REFLECT", "SYMMETRIC"], "mode", self.cls_name)
        self.paddings = _check.check_type(paddings, tuple, "paddings", self.cls_name)
        if not 1 <= len(paddings) <= 4 or any(len(pair) != 2 for pair in paddings):
            raise ValueError(f"For 'Pad', 'paddings' must hold 1 to 4 pairs, but got {paddings}.")

    def construct(self, x):
        if x.ndim != len(self.paddings):
            raise ValueError(f"For 'Pad', 'paddings' has {len(self.paddings)} pairs, the input {x.ndim} dims.")
        if self.mode == "CONSTANT":
            return ops.pad(x, [side for pair in reversed(self.paddings) for side in pair])
        for axis, (before, after) in enumerate(self.paddings):
            if before or after:
                symmetric = self.mode == "SYMMETRIC"
                if max(before, after) > x.shape[axis] - (not symmetric):
                    raise ValueError(
                        f"For 'Pad', a {self.mode} padding of {max(before, after)} needs a larger "
                        f"dimension than {x.shape[axis]}."
                    )
                index = Tensor(_mirror_index(x.shape[axis], before, after, symmetric), mstype.int32)
                x = ops.gather(x, index, axis)
        return x


class Upsample(Cell):
    """Resizes the spatial dimensions; see `ops.interpolate`.

    Args:
        size (Union[int, tuple, None]): target size. Default ``None``.
        scale_factor (Union[float, tuple, None]): factor, instead of `size`. Default ``None``.
        mode (str): ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"bicubic"``, ``"trilinear"``, ``"area"``.
        align_corners (bool): keep the corner values. Default ``None``.
        recompute_scale_factor (bool): compute the factor from the sizes. Default ``None``.
    """

    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
        super().__init__()
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def construct(self, x):
        return ops.interpolate(
            x, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )


class UpsampleExt(Upsample):
    """`Upsample` in the interface of ``mint``."""

    def construct(self, input):
        return super().construct(input)


class Norm(Cell):
    """Euclidean norm over `axis`: sqrt(sum(x^2)).

    Args:
        axis (Union[int, tuple]): dimensions to reduce; ``()`` means all. Default ``()``.
        keep_dims (bool): keep them with size 1. Default ``False``.
    """

    def __init__(self, axis=(), keep_dims=False):
        super().__init__()
        self.axis = axis
        self.keep_dims = _check.check_bool(keep_dims, "keep_dims", self.cls_name)

    def construct(self, x):
        axis = None if isinstance(self.axis, (tuple, list)) and not self.axis else self.axis
        return ops.sqrt(ops.sum(ops.square(x), axis, self.keep_dims))

    def extend_repr(self):
        return f"axis={self.axis}, keep_dims={self.keep_dims}"


class OneHot(Cell):
    """One-hot encoding of class numbers.

    Args:
        axis (int): where the new dimension goes. Default ``-1``.
        depth (int): its size. Default ``1``.
        on_value (float): value at the class. Default ``1.0``.
        off_value (float): value elsewhere. Default ``0.0``.
        dtype (mindspore.dtype): dtype of the output. Default ``float32``.
    """

    def __init__(self, axis=-1, depth=1, on_value=1.0, off_value=0.0, dtype=mstype.float32):
        super().__init__()
        self.axis = axis
        self.depth = depth
        self.dtype = dtype
        self.on_value = on_value
        self.off_value = off_value

    def construct(self, indices):
        return ops.one_hot(
            indices, self.depth, Tensor(self.on_value, self.dtype), Tensor(self.off_value, self.dtype), self.axis
        )


class ClipByNorm(Cell):
    """Scales the input down to the norm `clip_norm` where its Euclidean norm over `axis` is larger.

    Args:
        axis (Union[None, int, tuple]): dimensions of the norm; ``None`` means all. Default ``None``.
    """

    def __init__(self, axis=None):
        super().__init__()
        self.axis = axis

    def construct(self, x, clip_norm):
        norm = ops.sqrt(ops.sum(ops.square(x), self.axis, True))
        return x * clip_norm / ops.maximum(norm, clip_norm)


class L1Regularizer(Cell):
    """``scale * sum(|weights|)``.

    Args:
        scale (Union[int, float]): positive, finite factor.
    """

    def __init__(self, scale):
        super().__init__()
        _check.check_type(scale, (int, float), "scale", self.cls_name)
        if not 0 < scale < math.inf:
            raise ValueError(f"For 'L1Regularizer', the 'scale' must be positive and finite, but got {scale}.")
        self.scale = scale

    def construct(self, weights):
        return ops.abs(weights).sum() * self.scale


class Tril(Cell):
    """The lower triangle of the last two dimensions; the rest becomes zero."""

    def __init__(self):
        super().__init__()

    def construct(self, x, k=0):
        return ops.tril(x, k)


class Triu(Cell):
    """The upper triangle of the last two dimensions; the rest becomes zero."""

    def __init__(self):
        super().__init__()

    def construct(self, x, k=0):
        return ops.triu(x, k)


class Roll(Cell):
    """Shifts elements along dimensions; what leaves at one end enters at the other.

    Args:
        shift (Union[int, tuple, list]): number of places.
        axis (Union[int, tuple, list]): the dimensions.
    """

    def __init__(self, shift, axis):
        super().__init__()
        self.shift = (shift,) if isinstance(shift, int) else tuple(shift)
        self.axis = (axis,) if isinstance(axis, int) else tuple(axis)
        if len(self.shift) != len(self.axis):
            raise ValueError(f"For 'Roll', 'shift' and 'axis' must have the same length, but got {shift} and {axis}.")

    def construct(self, input_x):
        return ops.roll(input_x, self.shift, self.axis)
