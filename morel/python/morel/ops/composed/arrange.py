"""Functions that make, join, cut and reorder tensors."""

import math

from morel import _core, ops
from morel.api import make_operator
from morel.common import dtype as mstype
from morel.ops.composed import _check

__all__ = [
    "argwhere",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "bartlett_window",
    "blackman_window",
    "block_diag",
    "bucketize",
    "cartesian_prod",
    "channel_shuffle",
    "column_stack",
    "combinations",
    "deepcopy",
    "diagflat",
    "diagonal_scatter",
    "dsplit",
    "dstack",
    "fill",
    "fills",
    "fliplr",
    "flipud",
    "hamming_window",
    "hann_window",
    "hsplit",
    "hstack",
    "matrix_band_part",
    "meshgrid",
    "msort",
    "nonzero",
    "padding",
    "pixel_shuffle",
    "pixel_unshuffle",
    "range",
    "repeat_elements",
    "reverse",
    "reverse_sequence",
    "rot90",
    "row_stack",
    "searchsorted",
    "select",
    "select_scatter",
    "sequence_mask",
    "slice",
    "slice_scatter",
    "t",
    "take",
    "tril_indices",
    "triu_indices",
    "unique",
    "unique_consecutive",
    "unique_with_pad",
    "unstack",
    "vander",
    "vsplit",
    "vstack",
]

_nonzero, _meshgrid, _flip, _unbind = (make_operator(name, name) for name in ("nonzero", "meshgrid", "flip", "unbind"))


def nonzero(input, *, as_tuple=False):
    """Positions of the elements that are not zero: int64 [count, rank], or with as_tuple one vector for each axis."""
    positions = _nonzero(input)
    return _unbind(positions, 1) if as_tuple else positions


def argwhere(input):
    """Positions of the elements that are not zero: int64 [count, rank]."""
    return _nonzero(input)


def select(condition, input, other):
    """Elements of input where condition holds, of other elsewhere."""
    if not isinstance(input, _core.Tensor) and not isinstance(other, _core.Tensor):
        raise TypeError("For 'select', one of 'input' and 'other' must be a Tensor.")
    return ops.where(_check.tensor(condition, "condition", "select"), input, other)


def meshgrid(*inputs, indexing="xy"):
    """Coordinate arrays of a grid from one vector for each axis.

    Args:
        inputs (Tensor): vectors, or one tuple or list of them.
        indexing (str): 'xy': the first vector runs along the second axis; 'ij': along the first.
    Returns:
        tuple[Tensor].
    """
    if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)):
        inputs = inputs[0]
    return _meshgrid(tuple(inputs), indexing)


def _each(inputs, function, name):
    if isinstance(inputs, _core.Tensor):
        return function(inputs)
    if not isinstance(inputs, (tuple, list)):
        raise TypeError(f"For '{name}', 'inputs' must be a Tensor, or a tuple or list of Tensors.")
    return tuple(function(_check.tensor(item, "inputs", name)) for item in inputs)


def atleast_1d(inputs):
    """Tensors without axes get one."""
    return _each(inputs, lambda x: x if x.ndim else x.reshape((1,)), "atleast_1d")


def atleast_2d(inputs):
    """Tensors of less than two axes get axes of size 1 in front."""
    return _each(inputs, lambda x: x if x.ndim > 1 else x.reshape((1, -1)), "atleast_2d")


def _three_axes(x):
    if x.ndim > 2:
        return x
    return x.expand_dims(-1) if x.ndim == 2 else x.reshape((1, -1, 1))


def atleast_3d(inputs):
    """Tensors of less than three axes get more: [N] becomes [1, N, 1], [M, N] becomes [M, N, 1]."""
    return _each(inputs, _three_axes, "atleast_3d")


def hstack(tensors):
    """Joins tensors along the second axis, vectors along the first."""
    tensors = atleast_1d(_check.tensors(tensors, "tensors", "hstack"))
    return ops.concat(tensors, 0 if tensors[0].ndim == 1 else 1)


def vstack(inputs):
    """Joins tensors along the first axis; vectors are rows."""
    return ops.concat(atleast_2d(_check.tensors(inputs, "inputs", "vstack")), 0)


def row_stack(tensors):
    """Joins tensors along the first axis; vectors are rows."""
    return ops.concat(atleast_2d(_check.tensors(tensors, "tensors", "row_stack")), 0)


def dstack(tensors):
    """Joins tensors along the third axis."""
    return ops.concat(atleast_3d(_check.tensors(tensors, "tensors", "dstack")), 2)


def column_stack(tensors):
    """Joins tensors along the second axis; vectors are columns."""
    tensors = _check.tensors(tensors, "tensors", "column_stack")
    return ops.concat([x if x.ndim > 1 else x.reshape((-1, 1)) for x in tensors], 1)


def _split(input, indices_or_sections, axis, least, name):
    if _check.tensor(input, "input", name).ndim < least:
        raise ValueError(f"For '{name}', 'input' must have at least {least} axes, but got shape {input.shape}.")
    return ops.tensor_split(input, indices_or_sections, axis)


def hsplit(input, indices_or_sections):
    """Splits along the second axis, vectors along the first: into equal parts, or at positions."""
    return _split(input, indices_or_sections, 1 if getattr(input, "ndim", 2) > 1 else 0, 1, "hsplit")


def vsplit(input, indices_or_sections):
    """Splits along the first axis: into equal parts, or at positions."""
    return _split(input, indices_or_sections, 0, 1, "vsplit")


def dsplit(input, indices_or_sections):
    """Splits along the third axis: into equal parts, or at positions."""
    return _split(input, indices_or_sections, 2, 3, "dsplit")


def block_diag(*inputs):
    """A matrix with the inputs as blocks on its diagonal; vectors are rows."""
    blocks = atleast_2d(_check.tensors(inputs, "inputs", "block_diag"))
    if any(block.ndim > 2 for block in blocks):
        raise ValueError("For 'block_diag', the inputs must have at most 2 axes.")
    width, before, rows = sum(block.shape[1] for block in blocks), 0, []
    for block in blocks:
        rows.append(ops.pad(block, [before, width - before - block.shape[1]]))
        before += block.shape[1]
    return ops.concat(rows, 0)


def cartesian_prod(*inputs):
    """All combinations of one element of each vector, as rows; of one vector: itself."""
    vectors = _check.tensors(inputs, "inputs", "cartesian_prod")
    if any(vector.ndim != 1 for vector in vectors):
        raise ValueError("For 'cartesian_prod', the inputs must be vectors.")
    if len(vectors) == 1:
        return vectors[0]
    return ops.stack([grid.reshape((-1,)) for grid in _meshgrid(vectors, "ij")], 1)


def combinations(input, r=2, with_replacement=False):
    """All combinations of r elements of a vector, as rows."""
    import itertools

    if _check.tensor(input, "input", "combinations").ndim != 1:
        raise ValueError(f"For 'combinations', 'input' must be a vector, but got shape {input.shape}.")
    _check.integer(r, "r", "combinations", 0)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(builtin_range(input.size), r))
    if not rows or not r:
        return ops.zeros((0,), input.dtype)
    return input[_core.Tensor(rows, mstype.int64)]


def deepcopy(input_x):
    """A copy with its own memory."""
    return ops.clone(_check.tensor(input_x, "input_x", "deepcopy"))


def _channels(input, count, name):
    if _check.tensor(input, "input", name).ndim < 3:
        raise ValueError(f"For '{name}', 'input' must have at least 3 axes, but got shape {input.shape}.")
    if input.shape[-3] % count:
        raise ValueError(f"For '{name}', the number of channels, {input.shape[-3]}, must be a multiple of {count}.")


def channel_shuffle(x, groups):
    """Channels [g * n + i] of [N, C, L, ...] moved to [i * groups + g]."""
    _check.integer(groups, "groups", "channel_shuffle", 1)
    if _check.tensor(x, "x", "channel_shuffle").ndim < 3 or x.shape[1] % groups:
        raise ValueError(
            f"For 'channel_shuffle', 'x' must be [N, C, L, ...] with C a multiple of {groups}, but got shape {x.shape}."
        )
    split = x.reshape((x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
    return split.swapaxes(1, 2).reshape(x.shape)


def pixel_shuffle(input, upscale_factor):
    """[..., C * r * r, H, W] -> [..., C, H * r, W * r] with r = upscale_factor."""
    r = _check.integer(upscale_factor, "upscale_factor", "pixel_shuffle", 1)
    _channels(input, r * r, "pixel_shuffle")
    *outer, channels, height, width = input.shape
    split = input.reshape((-1, channels // (r * r), r, r, height, width)).permute((0, 1, 4, 2, 5, 3))
    return split.reshape((*outer, channels // (r * r), height * r, width * r))


def pixel_unshuffle(input, downscale_factor):
    """[..., C, H * r, W * r] -> [..., C * r * r, H, W] with r = downscale_factor."""
    r = _check.integer(downscale_factor, "downscale_factor", "pixel_unshuffle", 1)
    _channels(input, 1, "pixel_unshuffle")
    *outer, channels, height, width = input.shape
    if height % r or width % r:
        raise ValueError(
            f"For 'pixel_unshuffle', height and width must be multiples of {r}, but got shape {input.shape}."
        )
    split = input.reshape((-1, channels, height // r, r, width // r, r)).permute((0, 1, 3, 5, 2, 4))
    return split.reshape((*outer, channels * r * r, height // r, width // r))


def diagflat(input, offset=0):
    """A matrix with the elements of input on its diagonal number `offset`."""
    return ops.diag_embed(
        _check.tensor(input, "input", "diagflat").reshape((-1,)), _check.integer(offset, "offset", "diagflat")
    )


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """input with its diagonal number `offset` of axes dim1 and dim2 replaced by src."""
    _check.tensor(input, "input", "diagonal_scatter"), _check.tensor(src, "src", "diagonal_scatter")
    output = ops.clone(input)
    place = ops.diagonal(output, offset, dim1, dim2)
    if place.shape != src.shape:
        raise ValueError(f"For 'diagonal_scatter', 'src' must have shape {place.shape}, but got {src.shape}.")
    place.copy_(src)
    return output


def _slices(axis, part):
    return (*(builtin_slice(None),) * axis, part)


builtin_slice = slice


def select_scatter(input, src, axis, index):
    """input with what lies at `index` along axis replaced by src."""
    _check.tensor(input, "input", "select_scatter"), _check.tensor(src, "src", "select_scatter")
    axis = _check.axis(axis, input.ndim, "axis", "select_scatter")
    index = _check.axis(index, input.shape[axis], "index", "select_scatter")
    expected = (*input.shape[:axis], *input.shape[axis + 1 :])
    if src.shape != expected:
        raise ValueError(f"For 'select_scatter', 'src' must have shape {expected}, but got {src.shape}.")
    output = ops.clone(input)
    output[_slices(axis, index)] = src
    return output


def slice_scatter(input, src, axis=0, start=None, end=None, step=1):
    """input with its slice start:end:step along axis replaced by src."""
    _check.tensor(input, "input", "slice_scatter"), _check.tensor(src, "src", "slice_scatter")
    axis = _check.axis(axis, input.ndim, "axis", "slice_scatter")
    _check.integer(step, "step", "slice_scatter", 1)
    output = ops.clone(input)
    place = _slices(axis, builtin_slice(start, end, step))
    if output[place].shape != src.shape:
        raise ValueError(f"For 'slice_scatter', 'src' must have shape {output[place].shape}, but got {src.shape}.")
    output[place] = src
    return output


def fill(type, shape, value):
    """A tensor of dtype `type` with all elements `value`."""
    return ops.full(shape, value, dtype=type)


def fills(x, value):
    """A tensor like x with all elements `value`, a number or a tensor of one element."""
    value = value.item() if isinstance(value, _core.Tensor) else value
    return ops.full_like(_check.tensor(x, "x", "fills"), value)


def fliplr(input):
    """Reverses the second axis."""
    if _check.tensor(input, "input", "fliplr").ndim < 2:
        raise ValueError(f"For 'fliplr', 'input' must have at least 2 axes, but got shape {input.shape}.")
    return _flip(input, 1)


def flipud(input):
    """Reverses the first axis."""
    if _check.tensor(input, "input", "flipud").ndim < 1:
        raise ValueError("For 'flipud', 'input' must have an axis.")
    return _flip(input, 0)


def reverse(x, axis):
    """Reverses the given axes."""
    return _flip(x, axis)


def rot90(input, k, dims):
    """Turns the plane of the two axes `dims` k times by 90 degrees, from the first towards the second."""
    _check.tensor(input, "input", "rot90"), _check.integer(k, "k", "rot90")
    if len(dims) != 2:
        raise ValueError(f"For 'rot90', 'dims' must name two axes, but got {dims}.")
    first, second = (_check.axis(dim, input.ndim, "dims", "rot90") for dim in dims)
    if first == second:
        raise ValueError(f"For 'rot90', 'dims' must name two different axes, but got {dims}.")
    k %= 4
    if k == 2:
        return _flip(input, (first, second))
    if k == 1:
        return _flip(input, second).swapaxes(first, second)
    return _flip(input, first).swapaxes(first, second) if k else input


def _window(window_length, periodic, dtype, name, of):
    """`of` (an array of positions, the distance over which it repeats) -> the window."""
    if isinstance(window_length, _core.Tensor):
        window_length = window_length.item()
    count = _check.integer(window_length, "window_length", name, 0)
    if not isinstance(periodic, bool):
        raise TypeError(f"For '{name}', 'periodic' must be bool, but got {type(periodic).__name__}.")
    dtype = dtype or mstype.float32
    if not dtype.is_floating_point:
        raise TypeError(f"For '{name}', 'dtype' must be a floating dtype, but got {dtype}.")
    if count < 2:
        return ops.ones((count,), dtype)
    place = ops.arange(0, count, 1, dtype=mstype.float64)
    return of(place, count if periodic else count - 1).astype(dtype)


def bartlett_window(window_length, periodic=True, *, dtype=None):
    """Triangle: 1 - abs(2 n / N - 1)."""
    return _window(window_length, periodic, dtype, "bartlett_window", lambda n, size: 1 - ops.abs(n * (2 / size) - 1))


def _cosines(weights):
    return lambda n, size: sum(
        (-1) ** order * weight * ops.cos(n * (2 * math.pi * order / size)) for order, weight in enumerate(weights)
    )


def blackman_window(window_length, periodic=True, *, dtype=None):
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)."""
    return _window(window_length, periodic, dtype, "blackman_window", _cosines((0.42, 0.5, 0.08)))


def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None):
    """alpha - beta cos(2 pi n / N)."""
    return _window(window_length, periodic, dtype, "hamming_window", _cosines((alpha, beta)))


def hann_window(window_length, periodic=True, *, dtype=None):
    """(1 - cos(2 pi n / N)) / 2; float64 by default, as in MindSpore."""
    return _window(window_length, periodic, dtype or mstype.float64, "hann_window", _cosines((0.5, 0.5)))


def matrix_band_part(x, lower, upper):
    """Matrices with zeros outside of `lower` diagonals below the main one and `upper` above it; negative: all of them."""
    _check.tensor(x, "x", "matrix_band_part")
    if x.ndim < 2:
        raise ValueError(f"For 'matrix_band_part', 'x' must have at least 2 axes, but got shape {x.shape}.")
    lower, upper = (int(side.item()) if isinstance(side, _core.Tensor) else side for side in (lower, upper))
    _check.integer(lower, "lower", "matrix_band_part"), _check.integer(upper, "upper", "matrix_band_part")
    if lower >= 0:
        x = ops.triu(x, -lower)
    return ops.tril(x, upper) if upper >= 0 else x


def msort(input):
    """Sorted along the first axis."""
    return ops.sort(_check.tensor(input, "input", "msort"), 0)[0]


def padding(x, pad_dim_size=8):
    """The last axis, of size 1, extended by zeros to pad_dim_size."""
    _check.integer(pad_dim_size, "pad_dim_size", "padding", 1)
    if _check.tensor(x, "x", "padding").ndim < 2 or x.shape[-1] != 1:
        raise ValueError(f"For 'padding', 'x' must have 2 axes or more, the last of size 1, but got shape {x.shape}.")
    return ops.pad(x, [0, pad_dim_size - 1])


builtin_range = range


def range(start, end, step, maxlen=1000000):
    """start, start + step, ... below end: numbers or tensors of one element; int64 for integers.

    More than maxlen numbers are an error.
    """
    values = [value.item() if isinstance(value, _core.Tensor) else value for value in (start, end, step)]
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in values):
        raise TypeError(f"For 'range', 'start', 'end' and 'step' must be numbers, but got {start}, {end} and {step}.")
    if values[2] == 0:
        raise ValueError("For 'range', 'step' must not be 0.")
    given = next((value.dtype for value in (start, end, step) if isinstance(value, _core.Tensor)), None)
    if all(isinstance(value, int) for value in values):
        given = mstype.int64
    output = ops.arange(*values, dtype=given or mstype.float32)
    if output.size > maxlen:
        raise ValueError(f"For 'range', there are {output.size} numbers, more than 'maxlen', {maxlen}.")
    return output


def repeat_elements(x, rep, axis=0):
    """Each slice along axis `rep` times in turn."""
    _check.tensor(x, "x", "repeat_elements")
    return ops.repeat_interleave(x, _check.integer(rep, "rep", "repeat_elements", 1), axis)


def reverse_sequence(x, seq_lengths, seq_dim, batch_dim=0):
    """The first seq_lengths[b] elements along seq_dim reversed, for each b along batch_dim."""
    _check.tensor(x, "x", "reverse_sequence"), _check.integral(seq_lengths, "seq_lengths", "reverse_sequence")
    seq_dim = _check.axis(seq_dim, x.ndim, "seq_dim", "reverse_sequence")
    batch_dim = _check.axis(batch_dim, x.ndim, "batch_dim", "reverse_sequence")
    if seq_dim == batch_dim:
        raise ValueError("For 'reverse_sequence', 'seq_dim' and 'batch_dim' must differ.")
    if seq_lengths.shape != (x.shape[batch_dim],):
        raise ValueError(
            f"For 'reverse_sequence', 'seq_lengths' must have shape {(x.shape[batch_dim],)}, but got {seq_lengths.shape}."
        )
    if (
        _check.values_known()
        and seq_lengths.size
        and not 0 <= int(seq_lengths.min().item()) <= int(seq_lengths.max().item()) <= x.shape[seq_dim]
    ):
        raise ValueError(f"For 'reverse_sequence', 'seq_lengths' must be in [0, {x.shape[seq_dim]}].")
    along = [1] * x.ndim
    along[seq_dim] = x.shape[seq_dim]
    place = ops.arange(0, x.shape[seq_dim], 1, dtype=mstype.int64).reshape(tuple(along))
    across = [1] * x.ndim
    across[batch_dim] = x.shape[batch_dim]
    length = seq_lengths.astype(mstype.int64).reshape(tuple(across))
    source = ops.where(place < length, length - 1 - place, place)
    return ops.gather_elements(x, seq_dim, ops.broadcast_to(source, x.shape))


def searchsorted(sorted_sequence, values, *, out_int32=False, right=False, side=None, sorter=None):
    """Where each value would be inserted into a sorted sequence.

    Args:
        sorted_sequence (Tensor): sorted along its last axis; a vector, or of the shape of values but for that axis.
        values (Tensor): what to insert.
        out_int32 (bool): int32 instead of int64.
        right (bool): behind elements of the same value instead of before them.
        side (str, optional): 'left' or 'right', instead of `right`.
        sorter (Tensor, optional): indices that sort an unsorted sequence.
    """
    sequence = _check.tensor(sorted_sequence, "sorted_sequence", "searchsorted")
    if not isinstance(values, _core.Tensor):
        values = _core.Tensor(values, sequence.dtype)
    if side is not None:
        _check.one_of(side, ("left", "right"), "side", "searchsorted")
        if right and side == "left":
            raise ValueError("For 'searchsorted', 'right' and 'side' contradict each other.")
    if sorter is not None:
        sequence = ops.gather_elements(sequence, -1, sorter)
    if sequence.ndim > 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise ValueError(
            f"For 'searchsorted', the shapes {sequence.shape} and {values.shape} must agree but for the last axis."
        )
    found = ops.zeros(values.shape, mstype.int64)
    size = int(sequence.shape[-1])
    step = (1 << size.bit_length()) >> 1
    while step:  # the largest number of elements that are passed, bit by bit
        probe = found + step
        last = ops.minimum(probe, size) - 1
        here = ops.gather(sequence, last, 0) if sequence.ndim == 1 else ops.gather_elements(sequence, -1, last)
        passed = ~_is_before(values, here) if right or side == "right" else _is_before(here, values)
        found = ops.where((probe <= size) & passed, probe, found)
        step >>= 1
    return found.astype(mstype.int32) if out_int32 else found


def _is_before(a, b):
    """Whether a stands before b in the order in which NaN are the last."""
    if not b.dtype.is_floating_point:
        return a < b
    return (a < b) | (ops.isnan(b) & ~ops.isnan(a))


def bucketize(input, boundaries, *, right=False):
    """The number of the bucket between sorted boundaries that each element is in; int32."""
    if not isinstance(boundaries, (list, tuple)):
        raise TypeError(f"For 'bucketize', 'boundaries' must be a list, but got {type(boundaries).__name__}.")
    _check.tensor(input, "input", "bucketize")
    if not boundaries:
        return ops.zeros(input.shape, mstype.int32)
    edges = _core.Tensor([float(edge) for edge in boundaries], mstype.float64)
    return searchsorted(edges, input.astype(mstype.float64), out_int32=True, right=right)


def sequence_mask(lengths, maxlen=None):
    """For each length a row of maxlen (the largest length) booleans, the first `length` of which are true."""
    _check.integral(lengths, "lengths", "sequence_mask")
    if maxlen is None:
        maxlen = int(lengths.max().item()) if lengths.size else 0
    _check.integer(maxlen, "maxlen", "sequence_mask", 0)
    return ops.arange(0, maxlen, 1, dtype=mstype.int64) < lengths.expand_dims(-1)


def slice(input_x, begin, size):
    """The part that starts at `begin` and has `size` elements along each axis; -1: up to the end."""
    _check.tensor(input_x, "input_x", "slice")
    begin, size = (
        tuple(item.asnumpy().tolist()) if isinstance(item, _core.Tensor) else tuple(item) for item in (begin, size)
    )
    if not len(begin) == len(size) == input_x.ndim:
        raise ValueError(
            f"For 'slice', 'begin' and 'size' must have {input_x.ndim} elements, but got {begin} and {size}."
        )
    for start, count, extent in zip(begin, size, input_x.shape):
        if start < 0 or count < -1 or start + max(count, 0) > extent:
            raise ValueError(f"For 'slice', begin {begin} and size {size} do not lie within shape {input_x.shape}.")
    return input_x[
        tuple(builtin_slice(start, None if count == -1 else start + count) for start, count in zip(begin, size))
    ]


def t(input):
    """A matrix with its axes swapped; tensors of less than two axes as they are."""
    if _check.tensor(input, "input", "t").ndim > 2:
        raise ValueError(f"For 't', 'input' must have at most 2 axes, but got shape {input.shape}.")
    return input.swapaxes(0, 1) if input.ndim == 2 else input


def take(input, index):
    """The elements at positions `index` of the flattened input; negative ones count from the end."""
    _check.integral(index, "index", "take")
    return _check.tensor(input, "input", "take").reshape((-1,))[index]


def _triangle_indices(keep, row, col, offset, dtype, name):
    _check.integer(row, "row", name, 0), _check.integer(col, "col", name, 0), _check.integer(offset, "offset", name)
    return _nonzero(keep(ops.ones((row, col), mstype.uint8), offset)).swapaxes(0, 1).astype(dtype)


def tril_indices(row, col, offset=0, *, dtype=mstype.int64):
    """[2, count]: positions on and below the diagonal number `offset` of a row x col matrix."""
    return _triangle_indices(ops.tril, row, col, offset, dtype, "tril_indices")


def triu_indices(row, col, offset=0, *, dtype=mstype.int64):
    """[2, count]: positions on and above the diagonal number `offset` of a row x col matrix."""
    return _triangle_indices(ops.triu, row, col, offset, dtype, "triu_indices")


def _starts(rows):
    """Whether each row differs from the one before it; the first one does."""
    later, earlier = rows[1:], rows[:-1]
    differs = (later != earlier).reshape((later.shape[0], -1)).any(1)
    return ops.concat((ops.ones((1,), mstype.bool_), differs), 0)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The elements, or slices along dim, that differ from the one before them.

    Args:
        input (Tensor): where to look.
        return_inverse (bool): also where each element of input is in the result.
        return_counts (bool): also how often each element of the result comes in a row.
        dim (int, optional): axis of the slices. None: elements of the flattened input.
    Returns:
        Tensor, or a tuple (elements, inverse, counts) of those that are asked for.
    """
    _check.tensor(input, "input", "unique_consecutive")
    if dim is None:
        rows = input.reshape((-1,))
    else:
        rows = ops.movedim(input, _check.axis(dim, input.ndim, "dim", "unique_consecutive"), 0)
    if rows.shape[0]:
        start = _starts(rows)
        first = _nonzero(start).reshape((-1,))
        inverse = ops.cumsum(start.astype(mstype.int64), 0) - 1
        ends = ops.concat((first[1:], ops.full((1,), rows.shape[0], dtype=mstype.int64)), 0)
    else:
        first = inverse = ends = ops.zeros((0,), mstype.int64)
    found = rows[first]
    found = found if dim is None else ops.movedim(found, 0, dim)
    extra = []
    if return_inverse:
        extra.append(inverse.reshape(input.shape) if dim is None else inverse)
    if return_counts:
        extra.append(ends - first)
    return (found, *extra) if extra else found


def unique(input):
    """(the different elements of input in the order in which they first occur, where each element is among them, int32)."""
    import numpy

    flat = _check.tensor(input, "input", "unique").reshape((-1,))
    _, first, inverse = numpy.unique(flat.__array__(), return_index=True, return_inverse=True)
    order = numpy.argsort(first)
    place = numpy.empty_like(order)
    place[order] = numpy.arange(order.size)
    found = flat[_core.Tensor(first[order].astype(numpy.int64))]
    kind = numpy.int64 if input.dtype == mstype.int64 else numpy.int32
    return found, _core.Tensor(place[inverse].astype(kind)).reshape(input.shape)


def unique_with_pad(x, pad_num):
    """`unique` of a vector, the elements filled up with pad_num to the size of x."""
    found, inverse = unique(_check.tensor(x, "x", "unique_with_pad"))
    return ops.concat((found, ops.full((x.size - found.size,), pad_num, dtype=x.dtype)), 0), inverse


def unstack(input_x, axis=0):
    """The slices along axis, a tuple."""
    return _unbind(input_x, axis)


def vander(x, N=None):
    """Rows x[i] ** (N - 1), ..., x[i], 1; N columns, as many as x has elements by default."""
    if _check.tensor(x, "x", "vander").ndim != 1:
        raise ValueError(f"For 'vander', 'x' must be a vector, but got shape {x.shape}.")
    count = x.size if N is None else _check.integer(N, "N", "vander", 0)
    power = ops.arange(count - 1, -1, -1, dtype=mstype.int64) if count else ops.zeros((0,), mstype.int64)
    return ops.pow(x.expand_dims(-1), power.astype(x.dtype))
