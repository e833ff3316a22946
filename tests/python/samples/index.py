"""Reading and writing by index."""
import numpy as np
from samples import COMPLEX, FLOATS, HALVES, INTEGERS, Sample, flags, indices, normal

_ALL = FLOATS + HALVES + INTEGERS + COMPLEX + ("bool",)
SAMPLES = [
    Sample("ops.gather", (normal(4, 3), indices(4, 2, 5)), lambda x, i, axis: np.take(x, i, axis), {"axis": 0}, dtypes=_ALL),
    Sample("ops.gather", (normal(2, 4, 3), indices(4, 5)), lambda x, i, axis: np.take(x, i, axis), {"axis": 1}),
    Sample("mint.index_select", (normal(4, 3),), lambda x, dim, index: np.take(x, [2, 0, 2], dim), {"dim": 0, "index": np.array([2, 0, 2])}),
    Sample("ops.masked_fill", (normal(3, 4), flags(3, 4)), lambda x, m, value: np.where(m, value, x), {"value": 2.5}),
    Sample("ops.embedding", (indices(5, 2, 3), normal(5, 4)), lambda i, w: w[i]),
    Sample("ops.masked_select", (normal(3, 4), flags(3, 4)), lambda x, m: x[m], dtypes=_ALL),
]
