"""Resizing and sampling of images."""

import math

from morel import _core, ops
from morel.common import dtype as mstype
from morel.ops.composed import _check

__all__ = ["affine_grid", "grid_sample", "interpolate", "upsample"]

# Modes: number of spatial axes they are for.
_RANKS = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2),
    "linear": (1,),
    "bilinear": (2,),
    "bicubic": (2,),
    "trilinear": (3,),
    "area": (1, 2, 3),
}
_WITH_CORNERS = ("linear", "bilinear", "bicubic", "trilinear")


def _sizes_and_scales(input, size, scale_factor, recompute):
    """Output size, and for each axis input elements per output element where a factor says so (None: from the sizes)."""
    given = input.shape[2:]
    if (size is None) == (scale_factor is None):
        raise ValueError("For 'interpolate', exactly one of 'size' and 'scale_factor' must be given.")
    what, name = (size, "size") if scale_factor is None else (scale_factor, "scale_factor")
    kinds = int if scale_factor is None else (int, float)
    each = tuple(what) if isinstance(what, (tuple, list)) else (what,) * len(given)
    for value in each:
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise TypeError(f"For 'interpolate', '{name}' must be a number or a tuple of numbers, but got {what!r}.")
        if value <= 0:
            raise ValueError(f"For 'interpolate', '{name}' must be positive, but got {what}.")
    if len(each) != len(given):
        raise ValueError(f"For 'interpolate', '{name}' must have {len(given)} elements, but got {what}.")
    if scale_factor is None:
        if recompute:
            raise ValueError("For 'interpolate', 'recompute_scale_factor' needs 'scale_factor'.")
        return each, (None,) * len(given)
    sizes = tuple(math.floor(extent * factor) for extent, factor in zip(given, each))
    return sizes, (None,) * len(given) if recompute else tuple(1 / factor for factor in each)


def _places(extent, count, scale, align_corners):
    """Where the centres of `count` output elements lie among `extent` input elements, an array."""
    import numpy

    place = numpy.arange(count, dtype=numpy.float64)
    if align_corners:
        return place * ((extent - 1) / (count - 1) if count > 1 else 0.0)
    return (place + 0.5) * (extent / count if scale is None else scale) - 0.5


def _take(x, axis, index):
    return ops.index_select(x, axis, _core.Tensor(index, mstype.int64))


def _nearest(x, axis, count, scale, centred):
    import numpy

    extent = x.shape[axis]
    if scale is None and not centred:
        index = numpy.arange(count) * extent // count  # exact, whatever the sizes
    else:
        step = extent / count if scale is None else scale
        index = numpy.floor((numpy.arange(count) + (0.5 if centred else 0.0)) * step).astype(numpy.int64)
    return _take(x, axis, numpy.minimum(index, extent - 1))


def _weighted(x, axis, index_and_weight):
    shape = [1] * x.ndim
    shape[axis] = -1
    total = None
    for index, weight in index_and_weight:
        part = _take(x, axis, index) * _core.Tensor(weight, x.dtype).reshape(tuple(shape))
        total = part if total is None else total + part
    return total


def _linear(x, axis, count, scale, align_corners):
    import numpy

    extent = x.shape[axis]
    place = numpy.maximum(_places(extent, count, scale, align_corners), 0)
    low = numpy.minimum(place.astype(numpy.int64), extent - 1)
    weight = numpy.minimum(place - low, 1)
    return _weighted(x, axis, [(low, 1 - weight), (numpy.minimum(low + 1, extent - 1), weight)])


def _cubic(x, axis, count, scale, align_corners, edge_repeats):
    """Keys, Cubic Convolution Interpolation, 1981: with a = -0.75 where the edge repeats, a = -0.5 where nothing outside counts."""
    import numpy

    a, extent = -0.75 if edge_repeats else -0.5, x.shape[axis]
    place = _places(extent, count, scale, align_corners)
    low = numpy.floor(place).astype(numpy.int64)
    t = place - low

    def near(d):
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d):
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    index = numpy.stack([low + shift for shift in (-1, 0, 1, 2)])
    weight = numpy.stack([far(t + 1), near(t), near(1 - t), far(2 - t)])
    inside = numpy.clip(index, 0, extent - 1)
    if not edge_repeats:
        weight = numpy.where(index == inside, weight, 0)
        weight /= weight.sum(0)
    return _weighted(x, axis, [*zip(inside, weight)])


def resize(input, size, scale_factor, mode, align_corners, recompute_scale_factor, cubic_edge_repeats):
    """`interpolate`; of its two forms of 'bicubic' mint has the one whose edge repeats, whatever align_corners is."""
    _check.tensor(input, "input", "interpolate")
    if not isinstance(mode, str):
        raise TypeError(f"For 'interpolate', 'mode' must be str, but got {type(mode).__name__}.")
    _check.one_of(mode, tuple(_RANKS), "mode", "interpolate")
    if input.ndim - 2 not in _RANKS[mode]:
        raise ValueError(f"For 'interpolate', the mode '{mode}' does not support an input of shape {input.shape}.")
    if align_corners is not None and mode not in _WITH_CORNERS:
        raise ValueError(f"For 'interpolate', 'align_corners' must be None for the mode '{mode}'.")
    sizes, scales = _sizes_and_scales(input, size, scale_factor, recompute_scale_factor)
    if min(sizes) < 1 or 0 in input.shape[2:]:
        raise ValueError(f"For 'interpolate', the output size {sizes} of an input of shape {input.shape} is empty.")
    if mode == "area":
        from morel.nn import _window

        return _window.adaptive_pool(input, len(sizes), sizes, lambda x, axis: x.mean(axis), "interpolate")
    for axis, (count, scale) in enumerate(zip(sizes, scales), 2):
        if mode.startswith("nearest"):
            input = _nearest(input, axis, count, scale, mode == "nearest-exact")
        elif mode == "bicubic":
            repeats = cubic_edge_repeats or bool(align_corners)
            input = _cubic(
                _check.floating(input, "input", "interpolate"), axis, count, scale, bool(align_corners), repeats
            )
        else:
            input = _linear(_check.floating(input, "input", "interpolate"), axis, count, scale, bool(align_corners))
    return input


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
    """Resizes the axes after the first two.

    Args:
        input (Tensor): [N, C, L], [N, C, H, W] or [N, C, D, H, W], floating.
        size (int, tuple[int], list[int], optional): output size.
        scale_factor (float, tuple[float], list[float], optional): output size by input size, instead of size.
        mode (str): 'nearest', 'nearest-exact', 'linear' ([N, C, L]), 'bilinear', 'bicubic' (images), 'trilinear' (volumes) or
            'area' (mean of the elements that an output element covers).
        align_corners (bool, optional): the centres of the outermost elements stay where they are; only for the linear modes
            and 'bicubic'. None: False.
        recompute_scale_factor (bool, optional): the distance of output elements follows from the rounded sizes, not from
            scale_factor itself.
    Raises:
        TypeError: arguments of wrong types. ValueError: both or none of size and scale_factor, or a mode that does not go with
        the number of axes.
    Example:
        >>> ops.interpolate(ops.ones((1, 1, 4, 4)), scale_factor=2.0, mode="bilinear").shape
        (1, 1, 8, 8)
    """
    return resize(input, size, scale_factor, mode, align_corners, recompute_scale_factor, False)


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
    """`interpolate` under another name."""
    return interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


def affine_grid(theta, size, align_corners=False):
    """Sampling positions for `grid_sample` of an affine map.

    Args:
        theta (Tensor): [N, 2, 3], or [N, 3, 4] for volumes.
        size (tuple[int]): (N, C, H, W), or (N, C, D, H, W): of the output image.
        align_corners (bool): -1 and 1 are the centres of the corner elements, not their outer edges.
    Returns:
        Tensor: [N, H, W, 2], or [N, D, H, W, 3].
    """
    _check.floating(theta, "theta", "affine_grid")
    if not isinstance(size, tuple):
        raise TypeError(f"For 'affine_grid', 'size' must be a tuple, but got {type(size).__name__}.")
    rank = len(size) - 2
    if rank not in (2, 3) or theta.shape != (size[0], rank, rank + 1):
        raise ValueError(f"For 'affine_grid', 'theta' of shape {theta.shape} does not go with 'size' {size}.")
    import numpy

    lines = []
    for extent in size[2:]:
        edge = 1.0 if align_corners else 1 - 1 / extent
        lines.append(
            numpy.linspace(-edge, edge, extent) if extent > 1 else numpy.array([-1.0 if align_corners else 0.0])
        )
    axes = numpy.meshgrid(*lines, indexing="ij")[::-1]  # x first
    base = numpy.stack([*axes, numpy.ones(size[2:])], -1).reshape(1, -1, rank + 1)
    grid = ops.matmul(_core.Tensor(base, theta.dtype), theta.swapaxes(1, 2))
    return grid.reshape((size[0], *size[2:], rank))


def _unnormalise(place, extent, align_corners):
    return (place + 1) * ((extent - 1) / 2) if align_corners else ((place + 1) * extent - 1) / 2


def _reflect(place, low, high):
    """Mirrors positions at low and high until they lie between them."""
    span = high - low
    if span <= 0:
        return place * 0
    distance = ops.abs(place - low)
    folded = distance - ops.stop_gradient(ops.floor(distance / (2 * span))) * (2 * span)
    return ops.where(folded > span, 2 * span - folded, folded) + low


def _within(place, extent, padding_mode, align_corners):
    if padding_mode == "reflection":
        low, high = (0.0, extent - 1.0) if align_corners else (-0.5, extent - 0.5)
        place = _reflect(place, low, high)
    return place if padding_mode == "zeros" else ops.clamp(place, 0.0, extent - 1.0)


def _pick(flat, sizes, corner):
    """What lies at integral positions, zero outside: flat [N, C, all], corner (positions [N, P] for each axis)."""
    inside, index = None, 0
    for place, extent in zip(corner, sizes):
        ok = ops.logical_and(place >= 0, place <= extent - 1)
        inside = ok if inside is None else ops.logical_and(inside, ok)
        index = index * extent + ops.clamp(place, 0, extent - 1).astype(mstype.int64)
    shape = (flat.shape[0], flat.shape[1], index.shape[1])
    found = ops.gather_elements(flat, 2, ops.broadcast_to(index.expand_dims(1), shape))
    return ops.where(inside.expand_dims(1), found, 0)


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Values of images at given positions.

    Args:
        input (Tensor): [N, C, H, W], or [N, C, D, H, W].
        grid (Tensor): [N, Ho, Wo, 2] positions (x, y), or [N, Do, Ho, Wo, 3] positions (x, y, z); from -1 to 1.
        mode (str): 'bilinear' or 'nearest'.
        padding_mode (str): outside: 'zeros', 'border' (the nearest element) or 'reflection' (mirrored).
        align_corners (bool, optional): -1 and 1 are the centres of the corner elements, not their outer edges. None: False.
    Returns:
        Tensor: [N, C, Ho, Wo], or [N, C, Do, Ho, Wo].
    """
    _check.floating(input, "input", "grid_sample"), _check.floating(grid, "grid", "grid_sample")
    if mode == "bicubic":
        raise NotImplementedError("For 'grid_sample', the mode 'bicubic' is not supported.")
    _check.one_of(mode, ("bilinear", "nearest"), "mode", "grid_sample")
    _check.one_of(padding_mode, ("zeros", "border", "reflection"), "padding_mode", "grid_sample")
    rank = input.ndim - 2
    if rank not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != rank or grid.shape[0] != input.shape[0]:
        raise ValueError(f"For 'grid_sample', 'grid' of shape {grid.shape} does not go with an input {input.shape}.")
    batch, sizes = input.shape[0], input.shape[2:]
    flat = input.reshape((batch, input.shape[1], -1))
    places = [
        _within(_unnormalise(place, extent, bool(align_corners)), extent, padding_mode, bool(align_corners))
        for place, extent in zip(ops.unbind(grid.reshape((batch, -1, rank)), 2)[::-1], sizes)
    ]
    if mode == "nearest":
        output = _pick(flat, sizes, [_nearest_integer(place) for place in places])
    else:
        lows = [ops.stop_gradient(ops.floor(place)) for place in places]
        output = None
        for corner in range(2**rank):
            weight, at = None, []
            for axis, (place, low) in enumerate(zip(places, lows)):
                high = corner >> axis & 1
                at.append(low + high)
                factor = place - low if high else 1 - (place - low)
                weight = factor if weight is None else weight * factor
            part = _pick(flat, sizes, at) * weight.expand_dims(1)
            output = part if output is None else output + part
    return output.reshape((batch, input.shape[1], *grid.shape[1:-1]))


def _nearest_integer(place):
    """Nearest integers, halves to even, without gradient."""
    return ops.stop_gradient(ops.round(place))
