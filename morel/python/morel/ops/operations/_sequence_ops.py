"""Primitive classes of tuples and lists."""

import operator

from morel import Tensor, ops
from morel.ops.primitive import class_with

__all__ = []


def _to_tensor(sequence, dtype=None):
    return Tensor(list(sequence), dtype)


def _position(sequence, target, *_bounds):
    return sequence.index(target)


def _slice_set(sequence, value, begin, end, step):
    changed = list(sequence)
    changed[begin:end:step] = value
    return type(sequence)(changed)


def _offset(sequences):
    starts, at = [], 0
    for sequence in sequences:
        starts.append(at)
        at += len(sequence)
    return tuple(starts)


_COMPUTE = {
    "InSequence": lambda target, sequence: target in sequence,
    "ListAppend": lambda sequence, item: [*sequence, item],
    "ListInsert": lambda sequence, at, item: [*sequence[:at], item, *sequence[at:]],
    "ListToTensor": _to_tensor,
    "SequenceAdd": lambda x, y: x + y,
    "SequenceAddN": lambda sequence: ops.add_n(list(sequence)),
    "SequenceAddOffset": lambda x, y: _offset((x, y)),
    "SequenceCount": lambda sequence, target: sequence.count(target),
    "SequenceIndex": _position,
    "SequenceMax": lambda sequence: max(sequence),
    "SequenceMin": lambda sequence: min(sequence),
    "SequenceMul": lambda sequence, times: sequence * times,
    "SequenceSlice": lambda sequence, begin, end, step: sequence[begin:end:step],
    "SequenceSliceSetItem": _slice_set,
    "SequenceZerosLike": lambda sequence: type(sequence)(
        ops.zeros_like(x) if isinstance(x, Tensor) else 0 for x in sequence
    ),
    "TensorToList": lambda x: x.asnumpy().tolist(),
    "TensorToScalar": lambda x: x.item(),
    "TensorToTuple": lambda x: tuple(x.asnumpy().tolist()),
    "TupleToTensor": _to_tensor,
    "make_range": lambda *bounds: tuple(range(*bounds)),
    "sequence_len": len,
}
for _kind in ("list", "tuple"):
    for _relation, _compare in (
        ("equal", operator.eq),
        ("greater_equal", operator.ge),
        ("greater_than", operator.gt),
        ("le", operator.le),
        ("lt", operator.lt),
    ):
        _COMPUTE[f"{_kind}_{_relation}"] = _compare
for _name, _compute in _COMPUTE.items():
    globals()[_name] = class_with(
        _name, (), lambda _given, inputs, compute=_compute: compute(*inputs), f"{_name} of tuples and lists."
    )
    __all__.append(_name)
for _name in ("SequenceStack", "SequenceUnstack"):
    _rows = [("axis", True, 0), *([("num", True, None)] if _name == "SequenceUnstack" else [])]
    _function = ops.stack if _name == "SequenceStack" else ops.unstack
    globals()[_name] = class_with(
        _name,
        _rows,
        lambda given, inputs, function=_function: function(*inputs, given.get("axis", 0)),
        f"{_name} of tuples and lists.",
    )
    __all__.append(_name)
