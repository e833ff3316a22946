"""Views, joining, copying."""

import numpy as np

from samples import COMPLEX, FLOATS, HALVES, INTEGERS, Sample, normal

_ALL = FLOATS + HALVES + INTEGERS + COMPLEX + ("bool",)


def _one(name, reference, options, shape=(2, 3, 4), **more):
    return Sample(f"ops.{name}", (normal(*shape),), reference, options, dtypes=_ALL, **more)


SAMPLES = [
    _one("reshape", lambda x, shape: x.reshape(shape), {"shape": (4, -1)}),
    _one("permute", lambda x, axis: x.transpose(axis), {"axis": (2, 0, 1)}),
    _one("swapaxes", lambda x, axis0, axis1: x.swapaxes(axis0, axis1), {"axis0": 0, "axis1": -1}),
    _one("expand_dims", lambda x, axis: np.expand_dims(x, axis), {"axis": 1}),
    _one("squeeze", lambda x, axis: x.squeeze(axis), {"axis": 1}, (2, 1, 4)),
    _one("broadcast_to", lambda x, shape: np.broadcast_to(x, shape), {"shape": (5, 2, 3, 4)}),
    _one("flatten", lambda x: x.reshape(2, 12), {}),
    _one("narrow", lambda x, axis, start, length: x[:, 1:3], {"axis": 1, "start": 1, "length": 2}),
    _one("flip", lambda x, dims: np.flip(x, dims), {"dims": (0, 2)}),
    _one("roll", lambda x, shifts, dims: np.roll(x, shifts, dims), {"shifts": 2, "dims": 1}),
    _one("tile", lambda x, dims: np.tile(x, dims), {"dims": (2, 1, 3)}),
    _one("repeat_interleave", lambda x, repeats, axis: np.repeat(x, repeats, axis), {"repeats": 2, "axis": 1}),
    _one("tril", np.tril, {}, (4, 5)),
    _one("triu", np.triu, {}, (4, 5)),
    _one(
        "movedim", lambda x, source, destination: np.moveaxis(x, source, destination), {"source": 0, "destination": 2}
    ),
    Sample(
        "ops.concat",
        (normal(2, 3), normal(4, 3)),
        lambda *x, axis: np.concatenate(x, axis),
        {"axis": 0},
        dtypes=_ALL,
        as_list=True,
    ),
    Sample(
        "ops.concat", (normal(2, 3), normal(2, 1)), lambda *x, axis: np.concatenate(x, axis), {"axis": 1}, as_list=True
    ),
    Sample(
        "ops.stack",
        (normal(2, 3), normal(2, 3)),
        lambda *x, axis: np.stack(x, axis),
        {"axis": 1},
        dtypes=_ALL,
        as_list=True,
    ),
    Sample(
        "ops.split",
        (normal(6, 3),),
        lambda x, split_size_or_sections, axis: np.split(x, 3, axis),
        {"split_size_or_sections": 2, "axis": 0},
        output=1,
    ),
    Sample("ops.unbind", (normal(3, 4),), lambda x, dim: list(np.moveaxis(x, dim, 0)), {"dim": 1}, output=2),
    Sample(
        "ops.chunk",
        (normal(6, 3),),
        lambda x, chunks, axis: np.split(x, chunks, axis),
        {"chunks": 2, "axis": 0},
        output=0,
    ),
    Sample("ops.clone", (normal(3, 4),), lambda x: x, dtypes=_ALL),
    Sample("ops.zeros_like", (normal(3, 4),), np.zeros_like, dtypes=_ALL, grad=False),
    Sample("ops.ones_like", (normal(3, 4),), np.ones_like, dtypes=_ALL, grad=False),
]
