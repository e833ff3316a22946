"""A call or several of each operator of the proof, as functions of floating tensors, for the consumers that take functions."""

import numpy as np

import morel as ms
from morel import Tensor, ops

INDEX = Tensor(np.array([[0, 2, 1], [1, 0, 0]]))
ROWS = Tensor(np.array([2, 0, 2]))


def control(x, y):
    """A loop whose number of turns and whose branch depend on values."""
    while x.abs().sum() < 20:
        x = x * 2 + y if x.sum() > 0 else x * 3 - y
    return x


def dropout(x):
    ms.set_seed(3) if not ms._core.graph_active() else None
    return ops.dropout(x, 0.5, True)


def scatter_add(x, y):
    z = x * 1
    z.scatter_add_(1, INDEX, y)
    return z * x


# operator -> ((function, shapes of its inputs), ...)
CASES = {
    "add": (
        (lambda x, y: ops.add(x, y), ((2, 3), (2, 3))),
        (lambda x, y: ops.add(x, y), ((2, 1, 3), (4, 1))),
    ),
    "matmul": (
        (lambda x, y: ops.matmul(x, y), ((2, 3), (3, 4))),
        (lambda x, y: ops.matmul(x, y), ((5, 2, 3), (3,))),
    ),
    "sum": ((lambda x: ops.sum(x, 1), ((2, 3, 4),)), (lambda x: ops.sum(x), ((2, 3),))),
    "softmax": ((lambda x: ops.softmax(x, -1), ((2, 5),)), (lambda x: ops.softmax(x, 0), ((3, 2),))),
    "layer_norm": ((lambda x, g, b: ops.layer_norm(x, (4,), g, b), ((3, 4), (4,), (4,))),),
    "gather": (
        (lambda x: ops.gather_elements(x, 1, INDEX), ((2, 3),)),
        (lambda x: ops.index_select(x, 0, ROWS), ((3, 2),)),
    ),
    "conv2d": (
        (lambda x, w: ops.conv2d(x, w, None, 1, "pad", 1), ((1, 2, 4, 4), (3, 2, 3, 3))),
        (lambda x, w: ops.conv2d(x, w, None, 2, "valid", 0, 1, 2), ((2, 4, 5, 5), (2, 2, 3, 3))),
    ),
    "concat": ((lambda x, y: ops.cat((x, y, x), 1), ((2, 3), (2, 1))),),
    "topk": ((lambda x: ops.topk(x, 2)[0], ((3, 4),)),),
    "cumsum": ((lambda x: ops.cumsum(x, 1), ((2, 4),)),),
    "dropout": ((dropout, ((8,),)),),
    "while/if": ((control, ((3,), (3,))),),
    "scatter_add_": ((scatter_add, ((2, 3), (2, 3))),),
    "split": ((lambda x: sum(part * place for place, part in enumerate(ops.split(x, 2, 1), 1)), ((2, 6),)),),
}


def inputs_of(shapes, dtype="float64"):
    """Inputs and directions for them."""
    random = np.random.default_rng(7)
    return [[random.standard_normal(shape).astype(dtype) for shape in shapes] for _ in range(2)]


def tensors(arrays):
    return tuple(Tensor(array) for array in arrays)


def slope(function, arrays, along, step=1e-6):
    """The central difference of a function along a direction."""
    ahead, behind = (
        function(*tensors([array + sign * step * v for array, v in zip(arrays, along)])).asnumpy() for sign in (1, -1)
    )
    return (ahead - behind) / (2 * step)


def close(actual, wanted, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(wanted), rtol=tolerance, atol=tolerance)
