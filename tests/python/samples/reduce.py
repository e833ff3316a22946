"""Reductions and running sums."""

import numpy as np

from samples import FLOATS, HALVES, Sample, distinct, flags, normal, positive


def _over(function):
    def reference(x, axis=None, keep_dims=False, dim=None, keepdim=False, keepdims=False):
        chosen = axis if axis is not None else dim
        chosen = tuple(chosen) if isinstance(chosen, (list, tuple)) else chosen
        return function(x, axis=chosen, keepdims=keep_dims or keepdim or keepdims)

    return reference


_AXES = [{}, {"dim": 0}, {"dim": -1}, {"dim": (0, 2)}, {"dim": 1, "keepdim": True}]


def _reductions(name, function, maker=normal, axes=_AXES, **more):
    return [Sample(f"mint.{name}", (maker(3, 4, 5),), _over(function), options, **more) for options in axes]


_ONE_AXIS = [{}, {"dim": 0}, {"dim": -1}, {"dim": 1, "keepdim": True}]

SAMPLES = [
    *_reductions("sum", np.sum, dtypes=FLOATS + HALVES + ("complex64",), tolerance=4),
    *_reductions("mean", np.mean, tolerance=4),
    *_reductions("prod", np.prod, positive, _ONE_AXIS, tolerance=8, dtypes=FLOATS),
    *_reductions("amax", np.max, distinct),
    *_reductions("amin", np.min, distinct),
    *_reductions("argmax", np.argmax, distinct, _ONE_AXIS, grad=False),
    *_reductions("argmin", np.argmin, distinct, _ONE_AXIS, grad=False),
    *[
        Sample("mint.all", (flags(3, 4, 5),), _over(np.all), options, dtypes=("float32",), grad=False)
        for options in _ONE_AXIS
    ],
    *[
        Sample("mint.any", (flags(3, 4, 5),), _over(np.any), options, dtypes=("float32",), grad=False)
        for options in _ONE_AXIS[:1]
    ],
    *[
        Sample(
            "mint.var",
            (normal(3, 4, 5),),
            lambda x, dim=None, keepdim=False: np.var(x, axis=dim, ddof=1, keepdims=keepdim),
            options,
            tolerance=8,
        )
        for options in _ONE_AXIS
    ],
    *[
        Sample(
            "mint.std",
            (normal(3, 4, 5),),
            lambda x, dim=None, keepdim=False: np.std(x, axis=dim, ddof=1, keepdims=keepdim),
            options,
            tolerance=8,
        )
        for options in _ONE_AXIS
    ],
    Sample("mint.logsumexp", (normal(3, 4, 5),), lambda x, dim: np.log(np.exp(x).sum(dim)), {"dim": 1}, tolerance=4),
    Sample("mint.count_nonzero", (distinct(3, 4),), lambda x: np.count_nonzero(x), grad=False, dtypes=FLOATS),
]
