"""Matrix products."""

import numpy as np

from samples import COMPLEX, FLOATS, HALVES, Sample, normal


def _dense(x, w, b=0):
    return x @ w.T + b


_FLOATING = FLOATS + HALVES
SAMPLES = [
    *[
        Sample("ops.matmul", (normal(*a), normal(*b)), np.matmul, dtypes=_FLOATING + COMPLEX, tolerance=8)
        for a, b in (
            ((3, 4), (4, 5)),
            ((4,), (4, 5)),
            ((3, 4), (4,)),
            ((4,), (4,)),
            ((2, 3, 4), (4, 5)),
            ((2, 3, 4), (2, 4, 5)),
            ((2, 1, 3, 4), (3, 4, 5)),
        )
    ],
    Sample("ops.bmm", (normal(2, 3, 4), normal(2, 4, 5)), np.matmul, tolerance=8),
    Sample("ops.mm", (normal(3, 4), normal(4, 5)), np.matmul, tolerance=8),
    Sample("ops.mv", (normal(3, 4), normal(4)), np.matmul, tolerance=8),
    Sample("ops.dot", (normal(4), normal(4)), np.dot, tolerance=8),
    Sample("ops.outer", (normal(3), normal(4)), np.outer),
    Sample(
        "ops.addmm",
        (normal(3, 5), normal(3, 4), normal(4, 5)),
        lambda c, a, b, beta, alpha: beta * c + alpha * (a @ b),
        {"beta": 0.5, "alpha": 2.0},
        tolerance=8,
    ),
    Sample("ops.dense", (normal(3, 4), normal(5, 4)), _dense, tolerance=8),
    Sample("ops.dense", (normal(2, 3, 4), normal(5, 4), normal(5)), _dense, tolerance=8),
]
