"""Reading and writing by index."""

import numpy as np

from samples import COMPLEX, FLOATS, HALVES, INTEGERS, Sample, distinct, flags, indices, normal, positive

_ALL = FLOATS + HALVES + INTEGERS + COMPLEX + ("bool",)
SAMPLES = [
    Sample(
        "ops.gather", (normal(4, 3), indices(4, 2, 5)), lambda x, i, axis: np.take(x, i, axis), {"axis": 0}, dtypes=_ALL
    ),
    Sample("ops.gather", (normal(2, 4, 3), indices(4, 5)), lambda x, i, axis: np.take(x, i, axis), {"axis": 1}),
    Sample(
        "mint.index_select",
        (normal(4, 3),),
        lambda x, dim, index: np.take(x, [2, 0, 2], dim),
        {"dim": 0, "index": np.array([2, 0, 2])},
    ),
    Sample("ops.masked_fill", (normal(3, 4), flags(3, 4)), lambda x, m, value: np.where(m, value, x), {"value": 2.5}),
    Sample("ops.embedding", (indices(5, 2, 3), normal(5, 4)), lambda i, w: w[i]),
    Sample("ops.masked_select", (normal(3, 4), flags(3, 4)), lambda x, m: x[m], dtypes=_ALL),
    Sample(
        "ops.sort",
        (distinct(3, 5),),
        lambda x, axis: (np.sort(x, axis), None),
        {"axis": 0},
        dtypes=FLOATS + ("int32", "int64"),
        output=0,
    ),
    Sample(
        "ops.argsort",
        (distinct(3, 5),),
        lambda x, axis: np.argsort(x, axis, kind="stable"),
        {"axis": -1},
        dtypes=FLOATS,
        grad=False,
    ),
    Sample(
        "ops.topk", (distinct(3, 5),), lambda x, k: (-np.sort(-x, -1)[:, :k], None), {"k": 2}, dtypes=FLOATS, output=0
    ),
    Sample(
        "ops.cumsum",
        (normal(3, 5),),
        lambda x, axis: np.cumsum(x, axis),
        {"axis": 1},
        dtypes=FLOATS + HALVES + ("int32", "int64"),
        tolerance=4,
    ),
    Sample("ops.cumprod", (positive(3, 5),), lambda x, dim: np.cumprod(x, dim), {"dim": 0}, dtypes=FLOATS, tolerance=8),
    Sample(
        "ops.cummax",
        (distinct(3, 5),),
        lambda x, axis: (np.maximum.accumulate(x, axis), None),
        {"axis": 1},
        dtypes=FLOATS,
        output=0,
    ),
    Sample(
        "ops.cummin",
        (distinct(3, 5),),
        lambda x, axis: (np.minimum.accumulate(x, axis), None),
        {"axis": 0},
        dtypes=FLOATS,
        output=0,
    ),
]
