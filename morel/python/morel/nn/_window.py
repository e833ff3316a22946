"""Convolutions, transposed convolutions and pooling beyond the operators' two dimensions, composed of those.

Padding is given as (before, after) for each spatial axis, first axis first.
"""

from morel import ops
from morel.api import make_operator

_input_grad = None


def output_count(size, kernel, stride, before, after, dilation=1):
    """Number of windows along one axis."""
    return (size + before + after - dilation * (kernel - 1) - 1) // stride + 1


def conv_transpose2d(x, weight, bias, stride, sides, extra, groups, dilation):
    """The transpose of a convolution is its gradient at the input; `extra` rows and columns are added at the end."""
    global _input_grad
    if _input_grad is None:
        _input_grad = make_operator("conv_transpose2d", "convolution_input_grad")
    sizes = []
    for axis in (0, 1):
        reach = dilation[axis] * (weight.shape[2 + axis] - 1) + 1
        sizes.append((x.shape[2 + axis] - 1) * stride[axis] + reach - sum(sides[axis]) + extra[axis])
    if min(sizes) < 1:
        raise ValueError(f"For 'Conv2dTranspose', the output would be empty: input {tuple(x.shape)}, padding {sides}.")
    size = (x.shape[0], weight.shape[1] * groups, *sizes)
    output = _input_grad(x, weight, size, stride, (*sides[0], *sides[1]), dilation, groups)
    return output if bias is None else output + bias.reshape((1, -1, 1, 1))


def _depth_slices(x, kernel, stride, dilation, count):
    """[N, C, D, H, W] -> `kernel` tensors [N, C, count, H, W]: the planes that each kernel element sees."""
    last = (count - 1) * stride + 1
    return [x[:, :, place * dilation : place * dilation + last : stride] for place in range(kernel)]


def conv3d(x, weight, bias, stride, sides, dilation, groups):
    """One 2-D convolution over depth * channels: the planes a kernel covers become channels of one image."""
    if any(sides[0]):
        x = ops.pad(x, [0, 0, 0, 0, *sides[0]])
    batch, channels, depth, height, width = x.shape
    kernel = weight.shape[2]
    count = output_count(depth, kernel, stride[0], 0, 0, dilation[0])
    if count < 1:
        raise ValueError(f"For 'Conv3d', the kernel does not fit into the padded input of depth {depth}.")
    planes = ops.stack(_depth_slices(x, kernel, stride[0], dilation[0], count), 1)
    # [N, kD, g, C/g, D', H, W] -> [N, D', g, kD, C/g, H, W]: each group's channels stay together
    planes = planes.reshape((batch, kernel, groups, channels // groups, count, height, width))
    planes = planes.permute((0, 4, 2, 1, 3, 5, 6)).reshape((batch * count, kernel * channels, height, width))
    flat_weight = weight.permute((0, 2, 1, 3, 4)).reshape((weight.shape[0], -1, *weight.shape[3:]))
    output = ops.conv2d(planes, flat_weight, bias, stride[1:], "pad", (*sides[1], *sides[2]), dilation[1:], groups)
    return output.reshape((batch, count, *output.shape[1:])).permute((0, 2, 1, 3, 4))


def same_sides(sizes, kernel, stride, dilation):
    """(before, after) per axis so that the output has ceil(size / stride) elements."""
    sides = []
    for size, span, step, spread in zip(sizes, kernel, stride, dilation):
        total = max((-(-size // step) - 1) * step + spread * (span - 1) + 1 - size, 0)
        sides.append((total // 2, total - total // 2))
    return sides


def _spread_depth(x, stride, before, after):
    """[N, C, D, H, W] with stride - 1 zero planes between the planes and zeros around."""
    batch, channels, depth, height, width = x.shape
    if stride > 1:
        x = ops.pad(x.expand_dims(3), [0, 0, 0, 0, 0, stride - 1])
        x = x.reshape((batch, channels, depth * stride, height, width))[:, :, : (depth - 1) * stride + 1]
    return ops.pad(x, [0, 0, 0, 0, before, after]) if before or after else x


def conv_transpose3d(x, weight, bias, stride, sides, extra, groups, dilation):
    """2-D transposes of all planes, whose results for each depth of the kernel are added up at their places."""
    batch, channels, depth, height, width = x.shape
    kernel = weight.shape[2]
    planes = x.permute((0, 2, 1, 3, 4)).reshape((batch * depth, channels, height, width))
    full = (depth - 1) * stride[0] + dilation[0] * (kernel - 1) + 1
    total = None
    for place in range(kernel):
        part = conv_transpose2d(
            planes, weight[:, :, place], None, stride[1:], sides[1:], extra[1:], groups, dilation[1:]
        )
        part = part.reshape((batch, depth, *part.shape[1:])).permute((0, 2, 1, 3, 4))
        before = place * dilation[0]
        part = _spread_depth(part, stride[0], before, full - before - (depth - 1) * stride[0] - 1 + extra[0])
        total = part if total is None else total + part
    total = total[:, :, sides[0][0] : total.shape[2] - sides[0][1]]
    return total if bias is None else total + bias.reshape((1, -1, 1, 1, 1))


def _pool_depth(pool, x):
    """Applies `pool`, which works on the last two axes, to [N, C, D, H*W] and restores [N, C, D', H, W]."""
    batch, channels, depth, height, width = x.shape
    output = pool(x.reshape((batch, channels, depth, height * width)))
    return output.reshape((batch, channels, output.shape[2], height, width))


def _pool_planes(pool, x):
    """Applies `pool` to the planes of [N, C, D, H, W]."""
    batch, channels, depth, height, width = x.shape
    output = pool(x.reshape((batch, channels * depth, height, width)))
    return output.reshape((batch, channels, depth, *output.shape[2:]))


def max_pool3d(x, kernel, stride, sides, dilation, ceil_mode):
    """The maximum is separable: planes first, then depth."""
    x = _pool_planes(
        lambda y: ops.max_pool2d(y, kernel[1:], stride[1:], (*sides[1], *sides[2]), dilation[1:], False, ceil_mode), x
    )
    return _pool_depth(
        lambda y: ops.max_pool2d(
            y, (kernel[0], 1), (stride[0], 1), (*sides[0], 0, 0), (dilation[0], 1), False, ceil_mode
        ),
        x,
    )


def avg_pool3d(x, kernel, stride, sides, ceil_mode, count_include_pad, divisor):
    """So is the mean: the number of elements that count is a product over the axes."""
    planes, depth = (1, 1) if divisor else (0, 0)
    x = _pool_planes(
        lambda y: ops.avg_pool2d(
            y, kernel[1:], stride[1:], (*sides[1], *sides[2]), ceil_mode, count_include_pad, planes
        ),
        x,
    )
    x = _pool_depth(
        lambda y: ops.avg_pool2d(
            y, (kernel[0], 1), (stride[0], 1), (*sides[0], 0, 0), ceil_mode, count_include_pad, depth
        ),
        x,
    )
    return x / float(divisor) if divisor else x


def _segments(size, count):
    """[first, last) of each of `count` almost equal, possibly overlapping parts."""
    return [(place * size // count, -(-(place + 1) * size // count)) for place in range(count)]


def adaptive_sizes(sizes, output_size, cls):
    """The output size as one positive int per axis; None keeps the input's size."""
    wanted = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * len(sizes)
    if len(wanted) != len(sizes):
        raise ValueError(f"For '{cls}', 'output_size' must be an int or {len(sizes)} ints, but got {output_size}.")
    found = []
    for size, own in zip(wanted, sizes):
        if size is not None and (isinstance(size, bool) or not isinstance(size, int)):
            raise TypeError(f"For '{cls}', 'output_size' must be int, None or a tuple of these, but got {output_size}.")
        if size is not None and size < 1:
            raise ValueError(f"For '{cls}', 'output_size' must be positive, but got {output_size}.")
        found.append(own if size is None else size)
    return found


def adaptive_pool(x, rank, output_size, reduce, cls):
    """Pools the last `rank` axes one after the other; mean and maximum are both separable.

    Axes that divide evenly are split and reduced; the others are reduced segment by segment.
    """
    if x.ndim not in (rank + 1, rank + 2):
        raise ValueError(f"For '{cls}', the input must have {rank + 1} or {rank + 2} dims, but got {x.ndim}.")
    first = x.ndim - rank
    for axis, count in enumerate(adaptive_sizes(x.shape[first:], output_size, cls), first):
        size = x.shape[axis]
        if count == size:
            continue
        if size % count == 0:
            x = reduce(x.reshape((*x.shape[:axis], count, size // count, *x.shape[axis + 1 :])), axis + 1)
        else:
            x = ops.stack(
                [reduce(ops.narrow(x, axis, low, high - low), axis) for low, high in _segments(size, count)], axis
            )
    return x
