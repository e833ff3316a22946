"""Convolutions, pooling, dropout and losses of networks, beyond the registry's operators."""

from morel import _core, ops
from morel.api import make_operator
from morel.common import dtype as mstype
from morel.ops.composed import _check

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool3d",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose2d",
    "ctc_loss",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "lp_pool1d",
    "lp_pool2d",
    "lrn",
    "max_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "pad",
]

_pad = make_operator("pad", "pad")


def pad(input_x, padding, mode="constant", value=None):
    """Extends the last axes.

    Args:
        input_x (Tensor): the values.
        padding (tuple[int], list[int], Tensor): (before, after) for each axis, from the last one to the front; negative: cut
            off, where mode is 'constant'.
        mode (str): 'constant' (value), 'reflect' (mirrored without the edge), 'replicate' (the edge repeated) or 'circular'
            (from the other end).
        value (int, float, optional): for 'constant'; 0 by default.
    """
    if isinstance(padding, _core.Tensor):
        padding = padding.asnumpy().tolist()
    if mode != "circular":
        return _pad(input_x, padding, mode, value)
    _check.tensor(input_x, "input_x", "pad")
    if value is not None:
        raise ValueError(f"For 'pad', 'value' must be None where 'mode' is 'circular', but got {value}.")
    if len(padding) % 2 or len(padding) // 2 > input_x.ndim:
        raise ValueError(f"For 'pad', 'padding' must hold pairs for at most {input_x.ndim} axes, but got {padding}.")
    for pair in range(len(padding) // 2):
        axis, (before, after) = input_x.ndim - 1 - pair, padding[2 * pair : 2 * pair + 2]
        size = input_x.shape[axis]
        if not (0 <= before <= size and 0 <= after <= size):
            raise ValueError(
                f"For 'pad' in mode 'circular', 'padding' {padding} must be in [0, {size}] on axis {axis}."
            )
        parts = [(size - before, before), (0, size), (0, after)]
        input_x = ops.concat([ops.narrow(input_x, axis, *part) for part in parts if part[1]], axis)
    return input_x


def _tuple(value, count, name, function, least=0):
    from morel.nn._check import int_tuple

    return int_tuple(value, count, name, function, least)


def _batched(function, input, rank, name):
    """Applies `function` to [N, C, ...]; the first axis may be left out."""
    if _check.tensor(input, "input", name).ndim == rank + 2:
        return function(input)
    if input.ndim != rank + 1:
        raise ValueError(f"For '{name}', 'input' must have {rank + 1} or {rank + 2} axes, but got shape {input.shape}.")
    output = function(input.expand_dims(0))
    return tuple(part.squeeze(0) for part in output) if isinstance(output, tuple) else output.squeeze(0)


def _sides(padding, rank, name):
    """(before, after) of each axis from an int, one for each axis, or one for each side."""
    if isinstance(padding, (tuple, list)) and len(padding) == 2 * rank:
        padding = _tuple(tuple(padding), 2 * rank, "padding", name)
        return [*zip(padding[::2], padding[1::2])]
    padding = tuple(padding) if isinstance(padding, list) else padding
    return [(side, side) for side in _tuple(padding, rank, "padding", name)]


def conv3d(input, weight, bias=None, stride=1, pad_mode="valid", padding=0, dilation=1, groups=1):
    """3-D convolution.

    Args:
        input (Tensor): [N, C, D, H, W], or [C, D, H, W].
        weight (Tensor): [O, C / groups, kD, kH, kW].
        bias (Tensor, optional): [O].
        stride (int, tuple[int]): steps.
        pad_mode (str): 'valid' (none), 'same' (output size ceil(size / stride)) or 'pad'.
        padding (int, tuple[int], list[int]): zeros on both sides, for 'pad'.
        dilation (int, tuple[int]): spacing of the kernel's elements.
        groups (int): number of independent groups of channels.
    """
    from morel.nn import _window

    _check.one_of(pad_mode, ("valid", "same", "pad"), "pad_mode", "conv3d")
    stride, dilation = _tuple(stride, 3, "stride", "conv3d", 1), _tuple(dilation, 3, "dilation", "conv3d", 1)
    sides = _sides(padding, 3, "conv3d")
    if pad_mode != "pad" and any(map(any, sides)):
        raise ValueError(f"For 'conv3d', 'padding' must be 0 where 'pad_mode' is {pad_mode!r}, but got {padding}.")

    def run(x):
        used = _window.same_sides(x.shape[2:], weight.shape[2:], stride, dilation) if pad_mode == "same" else sides
        return _window.conv3d(x, weight, bias, stride, used, dilation, groups)

    return _batched(run, input, 3, "conv3d")


def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Transpose of a 2-D convolution.

    Args:
        input (Tensor): [N, C, H, W], or [C, H, W].
        weight (Tensor): [C, O / groups, kH, kW].
        bias (Tensor, optional): [O].
        stride (int, tuple[int]): steps of the convolution.
        padding (int, tuple[int]): what is cut off on both sides.
        output_padding (int, tuple[int]): rows and columns that are added at the end.
        groups (int): number of independent groups of channels.
        dilation (int, tuple[int]): spacing of the kernel's elements.
    """
    from morel.nn import _window

    name = "conv_transpose2d"
    stride, dilation = _tuple(stride, 2, "stride", name, 1), _tuple(dilation, 2, "dilation", name, 1)
    extra, sides = _tuple(output_padding, 2, "output_padding", name), _sides(padding, 2, name)
    return _batched(
        lambda x: _window.conv_transpose2d(x, weight, bias, stride, sides, extra, groups, dilation), input, 2, name
    )


def conv3d_transpose(inputs, weight, pad_mode="valid", padding=0, stride=1, dilation=1, group=1, output_padding=0):
    """Transpose of a 3-D convolution; arguments as `conv3d`, and output_padding: planes that are added at the end."""
    from morel.nn import _window

    name = "conv3d_transpose"
    _check.one_of(pad_mode, ("valid", "same", "pad"), "pad_mode", name)
    stride, dilation = _tuple(stride, 3, "stride", name, 1), _tuple(dilation, 3, "dilation", name, 1)
    extra, sides = _tuple(output_padding, 3, "output_padding", name), _sides(padding, 3, name)
    if pad_mode != "pad" and (any(map(any, sides)) or any(extra)):
        raise ValueError(f"For '{name}', padding must be 0 where 'pad_mode' is {pad_mode!r}.")
    if pad_mode == "same":  # output size = size * stride
        spans = [spread * (kernel - 1) + 1 for spread, kernel in zip(dilation, weight.shape[2:])]
        totals = [span - step for span, step in zip(spans, stride)]
        sides = [(max(total, 0) // 2, max(total, 0) - max(total, 0) // 2) for total in totals]
        extra = tuple(max(-total, 0) for total in totals)
    return _batched(
        lambda x: _window.conv_transpose3d(x, weight, None, stride, sides, extra, group, dilation), inputs, 3, name
    )


def avg_pool1d(input_x, kernel_size=1, stride=1, padding=0, ceil_mode=False, count_include_pad=True):
    """Mean over windows of [N, C, L] or [C, L]; padding are zeros on both sides."""
    name = "avg_pool1d"
    kernel, step = _tuple(kernel_size, 1, "kernel_size", name, 1), _tuple(stride, 1, "stride", name, 1)
    ((before, after),) = _sides(padding, 1, name)
    return _batched(
        lambda x: ops.avg_pool2d(
            x.expand_dims(2), (1, *kernel), (1, *step), (0, 0, before, after), ceil_mode, count_include_pad
        ).squeeze(2),
        input_x,
        1,
        name,
    )


def avg_pool3d(
    input_x, kernel_size=1, stride=1, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=0
):
    """Mean over windows of [N, C, D, H, W]; padding are zeros, an int or one for each axis or side."""
    from morel.nn import _window

    name = "avg_pool3d"
    kernel, step = _tuple(kernel_size, 3, "kernel_size", name, 1), _tuple(stride, 3, "stride", name, 1)
    sides = _sides(padding, 3, name)
    return _batched(
        lambda x: _window.avg_pool3d(x, kernel, step, sides, ceil_mode, count_include_pad, divisor_override),
        input_x,
        3,
        name,
    )


def max_pool3d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Maximum over windows of [N, C, D, H, W]; padding is never the maximum."""
    from morel.nn import _window

    name = "max_pool3d"
    if return_indices:
        raise NotImplementedError("For 'max_pool3d', 'return_indices' is not supported; max_pool2d supports it.")
    kernel, dilation = _tuple(kernel_size, 3, "kernel_size", name, 1), _tuple(dilation, 3, "dilation", name, 1)
    step = kernel if stride is None else _tuple(stride, 3, "stride", name, 1)
    sides = _sides(padding, 3, name)
    return _batched(lambda y: _window.max_pool3d(y, kernel, step, sides, dilation, ceil_mode), x, 3, name)


def _adaptive(input, rank, output_size, reduce, name):
    from morel.nn import _window

    return _window.adaptive_pool(_check.tensor(input, "input", name), rank, output_size, reduce, name)


def adaptive_avg_pool1d(input, output_size):
    """Mean of [N, C, L] with output length output_size."""
    return _adaptive(input, 1, output_size, lambda x, axis: x.mean(axis), "adaptive_avg_pool1d")


def adaptive_avg_pool3d(input, output_size):
    """Mean of [N, C, D, H, W] with output size output_size: an int or three; None keeps the input's size."""
    return _adaptive(input, 3, output_size, lambda x, axis: x.mean(axis), "adaptive_avg_pool3d")


def adaptive_max_pool1d(input, output_size):
    """Maximum of [N, C, L] with output length output_size."""
    return _adaptive(input, 1, output_size, ops.amax, "adaptive_max_pool1d")


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """Maximum of [N, C, D, H, W] with output size output_size: an int or three; None keeps the input's size."""
    if return_indices:
        raise NotImplementedError("For 'adaptive_max_pool3d', 'return_indices' is not supported.")
    return _adaptive(input, 3, output_size, ops.amax, "adaptive_max_pool3d")


def lp_pool1d(x, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(sum of x^norm_type over windows of [N, C, L])^(1 / norm_type)."""
    from morel import nn

    return nn.LPPool1d(norm_type, kernel_size, stride, ceil_mode)(_check.tensor(x, "x", "lp_pool1d"))


def lp_pool2d(x, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(sum of x^norm_type over windows of [N, C, H, W])^(1 / norm_type)."""
    from morel import nn

    return nn.LPPool2d(norm_type, kernel_size, stride, ceil_mode)(_check.tensor(x, "x", "lp_pool2d"))


def _unpool(x, indices, kernel_size, stride, padding, output_size, rank, name):
    _check.tensor(x, "x", name), _check.integral(indices, "indices", name)
    if x.shape != indices.shape:
        raise ValueError(f"For '{name}', 'indices' must have the shape {x.shape} of 'x', but got {indices.shape}.")
    kernel = _tuple(kernel_size, rank, "kernel_size", name, 1)
    step = kernel if stride is None else _tuple(stride, rank, "stride", name, 1)
    edge = _tuple(padding, rank, "padding", name)
    if output_size is None:
        size = [(n - 1) * s - 2 * p + k for n, s, p, k in zip(x.shape[-rank:], step, edge, kernel)]
    else:
        size = list(output_size)[-rank:]
    outer = x.shape[: x.ndim - rank]
    count = 1
    for extent in size:
        count *= extent
    flat_shape = (*outer, x.size // max(1, _product(outer)))
    flat = indices.reshape(flat_shape).astype(mstype.int64)
    if flat.size and not 0 <= int(flat.min().item()) <= int(flat.max().item()) < count:
        raise ValueError(f"For '{name}', 'indices' must be in [0, {count}) for the output size {tuple(size)}.")
    zeros = ops.zeros((*outer, count), x.dtype)
    found = make_operator("scatter_elements", "scatter_elements")(zeros, -1, flat, x.reshape(flat_shape))
    return found.reshape((*outer, *size))


def _product(sizes):
    count = 1
    for size in sizes:
        count *= size
    return count


def max_unpool1d(x, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros with the values of x where `max_pool1d` found them: [N, C, L] or [C, L]."""
    return _unpool(x, indices, kernel_size, stride, padding, output_size, 1, "max_unpool1d")


def max_unpool2d(x, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros with the values of x where `max_pool2d` with return_indices found them: [N, C, H, W] or [C, H, W]."""
    return _unpool(x, indices, kernel_size, stride, padding, output_size, 2, "max_unpool2d")


def max_unpool3d(x, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros with the values of x where `max_pool3d` found them: [N, C, D, H, W] or [C, D, H, W]."""
    return _unpool(x, indices, kernel_size, stride, padding, output_size, 3, "max_unpool3d")


def _dropout_channels(input, p, training, ranks, name):
    from morel.nn.layer.basic import _drop_channels

    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise TypeError(f"For '{name}', 'p' must be float, but got {type(p).__name__}.")
    if not 0 <= p <= 1:
        raise ValueError(f"For '{name}', 'p' must be in [0, 1], but got {p}.")
    _check.tensor(input, "input", name)
    if input.ndim not in ranks:
        raise ValueError(f"For '{name}', 'input' must have {ranks[0]} or {ranks[1]} axes, but got shape {input.shape}.")
    return _drop_channels(input, float(p), ranks, name) if training and p else input


def dropout1d(input, p=0.5, training=True):
    """Zeroes whole channels of [N, C, L] or [C, L] with probability p in training, and scales the others."""
    return _dropout_channels(input, p, training, (2, 3), "dropout1d")


def dropout2d(input, p=0.5, training=True):
    """Zeroes whole channels of [N, C, H, W] or [C, H, W] with probability p in training, and scales the others."""
    return _dropout_channels(input, p, training, (3, 4), "dropout2d")


def dropout3d(input, p=0.5, training=True):
    """Zeroes whole channels of [N, C, D, H, W] or [C, D, H, W] with probability p in training, and scales the others."""
    return _dropout_channels(input, p, training, (4, 5), "dropout3d")


def lrn(x, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS"):
    """x / (bias + alpha * the sum of x^2 over 2 * depth_radius + 1 channels around)^beta for [N, C, H, W]."""
    _check.floating(x, "x", "lrn"), _check.integer(depth_radius, "depth_radius", "lrn", 0)
    _check.one_of(norm_region, ("ACROSS_CHANNELS",), "norm_region", "lrn")
    if x.ndim != 4:
        raise ValueError(f"For 'lrn', 'x' must have shape [N, C, H, W], but got {x.shape}.")
    channels = x.shape[1]
    padded = _pad(ops.square(x), [0, 0, 0, 0, depth_radius, depth_radius])
    total = sum(ops.narrow(padded, 1, shift, channels) for shift in range(2 * depth_radius + 1))
    return x / (bias + alpha * total) ** beta


_IMPOSSIBLE = -1e30  # log of a probability of 0; no infinity, whose differences are NaN


def _alignment_scores(log_probs, extended, skip, input_lengths):
    """log of the summed probability of all alignments up to each place, after each sequence's last step: [N, 2 S + 1]."""
    picked = ops.gather_elements(log_probs, 2, ops.broadcast_to(extended, (log_probs.shape[0], *extended.shape)))
    count = extended.shape[1]
    first = ops.arange(0, count, 1, dtype=mstype.int64) < 2
    alpha = ops.where(first, picked[0], _IMPOSSIBLE)
    history = [alpha]
    for step in range(1, log_probs.shape[0]):
        stay_or_next = ops.logaddexp(alpha, _pad(alpha, [1, 0], "constant", _IMPOSSIBLE)[:, :count])
        jump = _pad(alpha, [2, 0], "constant", _IMPOSSIBLE)[:, :count]
        reached = ops.logaddexp(stay_or_next, ops.where(skip, jump, _IMPOSSIBLE)) + picked[step]
        alpha = ops.where(input_lengths.reshape((-1, 1)) > step, ops.clamp(reached, _IMPOSSIBLE, None), alpha)
        history.append(alpha)
    return alpha, ops.stack(history, 1)


def _padded_targets(targets, target_lengths, blank):
    """[N, S] from concatenated targets."""
    if targets.ndim == 2:
        return targets
    width = int(target_lengths.max().item()) if target_lengths.size else 0
    starts = ops.cumsum(target_lengths, 0) - target_lengths
    place = ops.arange(0, width, 1, dtype=mstype.int64)
    inside = place < target_lengths.expand_dims(1)
    flat = ops.where(inside, starts.expand_dims(1) + place, 0)
    return ops.where(inside, targets[flat], blank)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Loss of connectionist temporal classification: -log of the probability of all alignments with the targets.

    Args:
        log_probs (Tensor): [T, N, C] logarithms of probabilities.
        targets (Tensor): [N, S], or all targets after one another: classes without the blank.
        input_lengths (Tensor, tuple[int]): [N] steps that count.
        target_lengths (Tensor, tuple[int]): [N] targets that count.
        blank (int): number of the blank class.
        reduction (str): 'mean' (each loss divided by its target length, then the mean), 'sum' or 'none'.
        zero_infinity (bool): losses of impossible alignments are 0 instead of infinite.
    Returns:
        tuple: loss; scores of all places [N, T, 2 S + 1].
    Source:
        Graves et al., Connectionist Temporal Classification, 2006, section 4.1.
    """
    _check.floating(log_probs, "log_probs", "ctc_loss")
    _check.one_of(reduction, ("mean", "sum", "none"), "reduction", "ctc_loss")
    if log_probs.ndim != 3:
        raise ValueError(f"For 'ctc_loss', 'log_probs' must have shape [T, N, C], but got {log_probs.shape}.")
    steps, batch, classes = log_probs.shape
    _check.integer(blank, "blank", "ctc_loss", 0)
    if blank >= classes:
        raise ValueError(f"For 'ctc_loss', 'blank' must be in [0, {classes}), but got {blank}.")
    input_lengths, target_lengths = (
        (value if isinstance(value, _core.Tensor) else _core.Tensor(list(value))).astype(mstype.int64)
        for value in (input_lengths, target_lengths)
    )
    if input_lengths.shape != (batch,) or target_lengths.shape != (batch,):
        raise ValueError(f"For 'ctc_loss', the lengths must have shape {(batch,)}.")
    if batch and int(input_lengths.max().item()) > steps:
        raise ValueError(f"For 'ctc_loss', 'input_lengths' must not be above {steps}.")
    targets = _padded_targets(
        _check.integral(targets, "targets", "ctc_loss").astype(mstype.int64), target_lengths, blank
    )
    blanks = ops.full_like(targets, blank)
    extended = ops.stack((blanks, targets), 2).reshape((batch, -1))
    extended = ops.concat((extended, ops.full((batch, 1), blank, dtype=mstype.int64)), 1)  # blank between and around
    differs = ops.concat((ops.zeros((batch, 2), mstype.bool_), extended[:, 2:] != extended[:, :-2]), 1)
    skip = ops.logical_and(differs, extended != blank)
    alpha, history = _alignment_scores(log_probs, extended, skip, input_lengths)
    last = (target_lengths * 2).expand_dims(1)
    at_end = ops.gather_elements(alpha, 1, last).squeeze(1)
    before = ops.gather_elements(alpha, 1, ops.clamp(last - 1, 0, None)).squeeze(1)
    score = ops.where(target_lengths > 0, ops.logaddexp(at_end, before), at_end)
    impossible = score < _IMPOSSIBLE / 2
    loss = ops.where(impossible, 0.0 if zero_infinity else float("inf"), -score)
    history = ops.where(history < _IMPOSSIBLE / 2, float("-inf"), history)
    if reduction == "mean":
        loss = (loss / ops.clamp(target_lengths, 1, None).astype(loss.dtype)).mean()
    return (loss.sum() if reduction == "sum" else loss), history
