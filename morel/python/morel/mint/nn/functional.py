"""Functions in the interface of ``mint.nn.functional``.

A row gives the operator and how its parameters differ (see morel/api); what needs more than that is a function below.
"""

from morel import ops
from morel.api import load_table, make_operator

_CONV = "input, weight, bias = None, stride = 1, padding = 0, dilation = 1, groups = 1"
_ROWS = {
    "celu": "celu(input: x, alpha = 1.0)",
    "conv1d": f"conv1d({_CONV}) pad_mode = 'pad'",
    "conv2d": f"conv2d({_CONV}) pad_mode = 'pad'",
    "gelu": "gelu(input, *, approximate = 'none')",
    "mish": "mish(input: x)",
    "selu": "selu(input: input_x)",
    "smooth_l1_loss": "smooth_l1_loss(input, target, reduction = 'mean', beta = 1.0)",
    "softsign": "softsign(input: x)",
}
# Operators with the same name and parameters.
_SAME = (
    "cosine_embedding_loss",
    "cross_entropy",
    "group_norm",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "l1_loss",
    "layer_norm",
    "mse_loss",
    "normalize",
    "prelu",
    "scaled_dot_product_attention",
    "sigmoid",
    "soft_margin_loss",
    "softplus",
    "softshrink",
    "tanh",
)
_table = None
_avg_pool2d = make_operator("avg_pool2d", "avg_pool2d")


def _rows():
    global _table
    if _table is None:
        _table = {**load_table("mint").get("nn.functional", {}), **{name: name for name in _SAME}, **_ROWS}
    return _table


def __getattr__(name):
    if name.startswith("__") or name not in _rows():
        raise AttributeError(f"module 'morel.mint.nn.functional' has no attribute '{name}'")
    function = make_operator(name, _rows()[name])
    globals()[name] = function
    return function


def __dir__():
    return sorted({*globals(), *_rows()})


def _result(input, output, inplace):
    return input.copy_(output) if inplace else output


def relu(input, inplace=False):
    """max(input, 0)."""
    return _result(input, ops.relu(input), inplace) if inplace else ops.relu(input)


def relu_(input):
    """`relu` in place."""
    return relu(input, True)


def relu6(input, inplace=False):
    """min(max(input, 0), 6)."""
    return _result(input, ops.relu6(input), inplace)


def elu(input, alpha=1.0, inplace=False):
    """input where it is positive, alpha * (exp(input) - 1) elsewhere."""
    return _result(input, ops.elu(input, alpha), inplace)


def elu_(input, alpha=1.0):
    """`elu` in place."""
    return elu(input, alpha, True)


def silu(input, inplace=False):
    """input * sigmoid(input)."""
    return _result(input, ops.silu(input), inplace)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """input limited to [min_val, max_val]."""
    return _result(input, ops.hardtanh(input, min_val, max_val), inplace)


def hardtanh_(input, min_val=-1.0, max_val=1.0):
    """`hardtanh` in place."""
    return hardtanh(input, min_val, max_val, True)


def threshold(input, threshold, value, inplace=False):
    """input where it is above the threshold, `value` elsewhere."""
    return _result(input, ops.where(input > threshold, input, ops.full_like(input, value)), inplace)


def threshold_(input, threshold, value):
    """`threshold` in place."""
    output = ops.where(input > threshold, input, ops.full_like(input, value))
    return input.copy_(output)


def glu(input, dim=-1):
    """a * sigmoid(b) for the halves a and b of the input along `dim`."""
    first, second = ops.chunk(input, 2, dim)
    return first * ops.sigmoid(second)


def _implicit_dim(input, dim):
    if dim is not None:
        return dim
    return 0 if input.ndim in (0, 1, 3) else 1


def softmax(input, dim=None, dtype=None):
    """exp(input) / sum(exp(input)) along `dim`; ``None``: 0 for 0, 1 and 3 dimensions, otherwise 1."""
    return ops.softmax(input if dtype is None else input.astype(dtype), _implicit_dim(input, dim))


def log_softmax(input, dim=None, *, dtype=None):
    """log(softmax(input)) along `dim`."""
    return ops.log_softmax(input if dtype is None else input.astype(dtype), _implicit_dim(input, dim))


def dropout(input, p=0.5, training=True, inplace=False):
    """Zeroes elements with probability `p` in training and scales the rest by 1 / (1 - p)."""
    if not training or p == 0:
        return input
    return _result(input, ops.dropout(input, float(p), True), inplace)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Zeroes whole channels with probability `p` in training."""
    if not training or p == 0:
        return input
    from morel.nn.layer.basic import _drop_channels

    return _result(input, _drop_channels(input, float(p), (3, 4), "dropout2d"), inplace)


def flatten(input, start_dim=0, end_dim=-1):
    """Merges the dimensions `start_dim` to `end_dim` into one."""
    return ops.flatten(input, start_dim=start_dim, end_dim=end_dim)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False):
    """The rows of weight at the positions `input`; see :func:`morel.ops.embedding`."""
    return ops.embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq)


def one_hot(tensor, num_classes=-1):
    """Integers as rows of zeros with a one; ``-1``: as many classes as the largest integer needs."""
    from morel.common import dtype as mstype

    count = int(tensor.max().item()) + 1 if num_classes == -1 else num_classes
    return ops.one_hot(tensor, count, 1, 0, -1).astype(mstype.int64)


def pad(input, pad, mode="constant", value=None):
    """Pads the last dimensions: (before, after) from the last to the front."""
    return ops.pad(input, pad, mode, 0 if value is None and mode == "constant" else value)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """3-D convolution of [N, C, D, H, W] or [C, D, H, W]."""
    from morel.nn import _check, _window

    stride, padding, dilation = (
        _check.int_tuple(value, 3, name, "conv3d", least)
        for value, name, least in ((stride, "stride", 1), (padding, "padding", 0), (dilation, "dilation", 1))
    )
    single = input.ndim == 4
    output = _window.conv3d(
        input.expand_dims(0) if single else input,
        weight,
        bias,
        stride,
        [(side, side) for side in padding],
        dilation,
        groups,
    )
    return output.squeeze(0) if single else output


def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Transpose of a 2-D convolution."""
    from morel.nn import _check, _window

    stride, padding, extra, dilation = (
        _check.int_tuple(value, 2, name, "conv_transpose2d", least)
        for value, name, least in (
            (stride, "stride", 1),
            (padding, "padding", 0),
            (output_padding, "output_padding", 0),
            (dilation, "dilation", 1),
        )
    )
    single = input.ndim == 3
    output = _window.conv_transpose2d(
        input.expand_dims(0) if single else input,
        weight,
        bias,
        stride,
        [(side, side) for side in padding],
        extra,
        groups,
        dilation,
    )
    return output.squeeze(0) if single else output


def _layer(name, *args, **kwargs):
    from morel.mint import nn

    return getattr(nn, name)(*args, **kwargs)


def avg_pool2d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """Mean of windows of [N, C, H, W]."""
    return _avg_pool2d(
        input, kernel_size, stride or kernel_size, padding, ceil_mode, count_include_pad, divisor_override or 0
    )


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """Mean of windows of [N, C, L]."""
    return _layer("AvgPool1d", kernel_size, stride, padding, ceil_mode, count_include_pad)(input)


def avg_pool3d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """Mean of windows of [N, C, D, H, W]."""
    return _layer("AvgPool3d", kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)(input)


def adaptive_avg_pool1d(input, output_size):
    """Mean with output length `output_size`."""
    return _layer("AdaptiveAvgPool1d", output_size)(input)


def adaptive_avg_pool2d(input, output_size):
    """Mean with output size `output_size`."""
    return _layer("AdaptiveAvgPool2d", output_size)(input)


def adaptive_avg_pool3d(input, output_size):
    """Mean with output size `output_size`."""
    return _layer("AdaptiveAvgPool3d", output_size)(input)


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Maximum with output length `output_size`."""
    return _layer("AdaptiveMaxPool1d", output_size, return_indices)(input)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Maximum with output size `output_size`."""
    return _layer("AdaptiveMaxPool2d", output_size, return_indices)(input)


def pixel_shuffle(input, upscale_factor):
    """Moves channels into space."""
    return _layer("PixelShuffle", upscale_factor)(input)


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
    """Resizes the axes after the first two; see :func:`morel.ops.interpolate`, from which only 'bicubic' differs: a = -0.75."""
    from morel.ops.composed.image import resize

    return resize(input, size, scale_factor, mode, align_corners, recompute_scale_factor, True)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """`interpolate` under another name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Collects sliding windows as columns."""
    return ops.unfold(input, kernel_size, dilation, padding, stride)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Adds columns of windows back into an image."""
    return ops.fold(input, output_size, kernel_size, dilation, padding, stride)


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Values of images at given positions; see :func:`morel.ops.grid_sample`."""
    return ops.grid_sample(input, grid, mode, padding_mode, align_corners)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros with the values of input where `max_pool2d` found them."""
    return ops.max_unpool2d(input, indices, kernel_size, stride, padding, output_size)


def sigmoid_(input):
    """`sigmoid` in place."""
    return input.sigmoid_()
