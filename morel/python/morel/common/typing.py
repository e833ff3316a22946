"""Types of values under their names in MindSpore's native module, and the numbers that they have there."""

from morel.common import dtype as mstype
from morel.common.dtype import DType, OtherType

__all__ = ["Number", "TensorType", "Type", "str_to_type", "type_id_to_type", "type_to_type_id"]

Type = Number = DType
TensorType = OtherType
_IDS = {
    30: mstype.bool_,
    32: mstype.int8,
    33: mstype.int16,
    34: mstype.int32,
    35: mstype.int64,
    37: mstype.uint8,
    38: mstype.uint16,
    39: mstype.uint32,
    40: mstype.uint64,
    42: mstype.float16,
    43: mstype.float32,
    44: mstype.float64,
    45: mstype.bfloat16,
    51: mstype.complex64,
    52: mstype.complex128,
}


def type_id_to_type(number):
    """The dtype with this number."""
    if number not in _IDS:
        raise TypeError(f"There is no element type of number {number}.")
    return _IDS[number]


def type_to_type_id(type_):
    """The number of a dtype."""
    return next(number for number, known in _IDS.items() if known == type_)


def str_to_type(name):
    """The dtype of a name."""
    return mstype.named(name)
