"""Questions about tensors, and types."""

from morel import _core, ops
from morel.api import make_operator
from morel.common import dtype as mstype
from morel.common.marks import DynamicList, DynamicTuple
from morel.ops.composed import _check

__all__ = [
    "allclose",
    "depend",
    "dtype",
    "identity",
    "is_complex",
    "is_floating_point",
    "is_nonzero",
    "is_sequence_shape_unknown",
    "is_sequence_value_unknown",
    "is_tensor",
    "isconstant",
    "iou",
    "intopk",
    "mixed_precision_cast",
    "move_to",
    "numel",
    "population_count",
    "print_",
    "rank",
    "scalar_cast",
    "scalar_to_tensor",
    "shape",
    "size",
    "type_as",
    "typeof",
]


_allclose = make_operator("allclose", "allclose")


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether abs(input - other) <= atol + rtol * abs(other) for all elements; a bool."""
    return bool(_allclose(input, other, rtol, atol, equal_nan))


def is_tensor(obj):
    """Whether it is a tensor."""
    return isinstance(obj, _core.Tensor)


def isconstant(x):
    """Whether a value is known while a function is compiled: everything but tensors, and what contains them."""
    if isinstance(x, (tuple, list)):
        return all(map(isconstant, x))
    if isinstance(x, dict):
        return all(map(isconstant, x.values()))
    return not (isinstance(x, _core.Tensor) and _core.is_symbolic(x))


def is_sequence_shape_unknown(sequence):
    """Whether its length may differ from call to call: ``mutable(..., dynamic_len=True)``."""
    return isinstance(sequence, (DynamicList, DynamicTuple))


def is_sequence_value_unknown(sequence):
    """Whether its length or items may differ from call to call."""
    return is_sequence_shape_unknown(sequence) or not isconstant(sequence)


def typeof(x):
    """The type of a value: ``mstype.TensorType`` with the dtype of its elements, that of a number, or another one."""
    if isinstance(x, _core.Tensor):
        return mstype.TensorType(x.dtype)
    kinds = {str: mstype.string, type(None): mstype.type_none, list: mstype.list_, tuple: mstype.tuple_}
    for kind, found in kinds.items():
        if isinstance(x, kind):
            return found
    return _core.as_dtype(type(x))


def mixed_precision_cast(dst_type, x):
    """Floating-point tensors, also within tuples and lists, in another dtype; everything else as it is."""
    from morel.nn._mixed_precision import cast_float

    return cast_float(x, dst_type, ops.cast)


def is_complex(input):
    """Whether its elements are complex."""
    return _check.tensor(input, "input", "is_complex").dtype.is_complex


def is_floating_point(input):
    """Whether its elements are floating-point numbers."""
    return _check.tensor(input, "input", "is_floating_point").dtype.is_floating_point


def move_to(input, to="CPU", blocking=True):
    """The values of a tensor on another device, "CPU" or "OpenCL"; see :meth:`morel.Tensor.to`."""
    return _check.tensor(input, "input", "move_to").move_to(to, blocking)


def is_nonzero(input):
    """Whether its one element is not 0."""
    if _check.tensor(input, "input", "is_nonzero").size != 1:
        raise ValueError(f"For 'is_nonzero', 'input' must have one element, but has shape {input.shape}.")
    return bool(input.item())


def numel(input):
    """Number of elements."""
    return _check.tensor(input, "input", "numel").size


def size(input_x):
    """Number of elements."""
    return _check.tensor(input_x, "input_x", "size").size


def rank(input_x):
    """Number of axes."""
    return _check.tensor(input_x, "input_x", "rank").ndim


def shape(input_x):
    """Sizes along the axes, a tuple."""
    return _check.tensor(input_x, "input_x", "shape").shape


def type_as(input, other):
    """input in the dtype of other."""
    return _check.tensor(input, "input", "type_as").astype(_check.tensor(other, "other", "type_as").dtype)


def intopk(x1, x2, k):
    """Whether each target x2[i] is among the k largest of the row x1[i]; targets as large as the k-th count.

    Args:
        x1 (Tensor): [N, C] predictions, float16 or float32.
        x2 (Tensor): [N] classes, int32.
        k (int): how many count.
    Returns:
        Tensor: bool [N].
    """
    _check.floating(x1, "x1", "intopk"), _check.integral(x2, "x2", "intopk")
    _check.integer(k, "k", "intopk")
    if x1.ndim != 2 or x2.shape != x1.shape[:1]:
        raise ValueError(f"For 'intopk', shapes [N, C] and [N] are needed, but got {x1.shape} and {x2.shape}.")
    own = ops.gather_elements(x1, 1, x2.expand_dims(1))
    better = ops.sum(x1 > own, 1)
    finite = ops.isfinite(own).squeeze(1)
    return ops.logical_and(better < k, finite)


def iou(anchor_boxes, gt_boxes, mode="iou"):
    """Overlap of boxes (x0, y0, x1, y1): 'iou' of their union, 'iof' of gt_boxes.

    Args:
        anchor_boxes (Tensor): [N, 4].
        gt_boxes (Tensor): [M, 4].
        mode (str): what the intersection is divided by.
    Returns:
        Tensor: [M, N].
    """
    _check.floating(anchor_boxes, "anchor_boxes", "iou"), _check.floating(gt_boxes, "gt_boxes", "iou")
    _check.one_of(mode, ("iou", "iof"), "mode", "iou")
    for boxes in (anchor_boxes, gt_boxes):
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise ValueError(f"For 'iou', boxes must have shape [N, 4], but got {boxes.shape}.")
    first, second = anchor_boxes.expand_dims(0), gt_boxes.expand_dims(1)

    def area(low, high):
        return ops.clamp(high[..., 0] - low[..., 0] + 1, 0, None) * ops.clamp(high[..., 1] - low[..., 1] + 1, 0, None)

    common = area(ops.maximum(first[..., :2], second[..., :2]), ops.minimum(first[..., 2:], second[..., 2:]))
    whole = area(second[..., :2], second[..., 2:])
    if mode == "iou":
        whole = whole + area(first[..., :2], first[..., 2:]) - common
    return common / whole


def population_count(input_x):
    """Number of bits that are set in each integer; uint8."""
    from morel.common import dtype as mstype

    _check.integral(input_x, "input_x", "population_count")
    bits = input_x.itemsize * 8
    ones = sum(ops.bitwise_and(ops.bitwise_right_shift(input_x, place), 1) for place in range(bits))
    return ones.astype(mstype.uint8)


def dtype(input_x):
    """The element type."""
    return _check.tensor(input_x, "input_x", "dtype").dtype


def identity(x):
    """The value itself."""
    return x


def depend(value, expr):
    """value, after expr has been computed."""
    return value


def print_(*input_x):
    """Prints tensors, numbers and strings."""
    for item in input_x:
        print(repr(item) if isinstance(item, _core.Tensor) else item)


def scalar_to_tensor(input_x, dtype=None):
    """A number as a tensor without axes, float32 by default."""
    from morel.common import dtype as mstype

    if not isinstance(input_x, (bool, int, float)):
        raise TypeError(f"For 'scalar_to_tensor', 'input_x' must be a number, but got {type(input_x).__name__}.")
    return ops.full((), input_x, dtype=mstype.float32 if dtype is None else dtype)


def scalar_cast(input_x, input_y):
    """A number as the Python number of a dtype: int, float or bool."""
    if not isinstance(input_x, (bool, int, float)):
        raise TypeError(f"For 'scalar_cast', 'input_x' must be a number, but got {type(input_x).__name__}.")
    if input_y.is_floating_point:
        return float(input_x)
    return bool(input_x) if str(input_y) == "Bool" else int(input_x)
