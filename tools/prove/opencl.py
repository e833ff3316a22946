"""OpenCL as second device: the operators of the proof give there what they give on the CPU, forward and backward."""

import os
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("POCL_CACHE_DIR", str(Path(__file__).parents[2] / "build" / "pocl-cache"))
Path(os.environ["POCL_CACHE_DIR"]).mkdir(parents=True, exist_ok=True)

import morel as ms  # noqa: E402
from morel import Tensor, _core, ops  # noqa: E402


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _while(x):
    while (x * x).sum() < 100:
        x = x * 1.5
    return x if x.sum() > 0 else -x


INDEX = np.array([[0, 2], [3, 1], [2, 2]])
# operator -> (function of floating tensors, their arrays, whether all bits of the result must agree)
CASES = {
    "add": (lambda x, y: x + y, (normal(8, 33), normal(33)), True),
    "matmul": (ops.matmul, (normal(3, 17, 40), normal(40, 21)), False),
    "sum": (lambda x: x.sum(1), (normal(5, 70, 9),), False),
    "softmax": (lambda x: ops.softmax(x, -1), (normal(6, 100),), False),
    "layer_norm": (lambda x, w, b: ops.layer_norm(x, (64,), w, b), (normal(7, 64), normal(64), normal(64)), False),
    "gather": (lambda x: ops.gather(x, Tensor(INDEX), 0), (normal(4, 5),), True),
    "gather_elements": (lambda x: ops.gather_elements(x, 0, Tensor(INDEX)), (normal(4, 2),), True),
    "index_select": (lambda x: x.index_select(1, Tensor(INDEX[0])), (normal(3, 4, 5),), True),
    "conv2d": (
        lambda x, w: ops.conv2d(x, w, stride=2, pad_mode="pad", padding=1, groups=2),
        (normal(2, 4, 9, 8), normal(6, 2, 3, 3)),
        False,
    ),
    "concat": (lambda x, y: ops.concat((x, y), 1), (normal(3, 4), normal(3, 2)), True),
    "topk": (lambda x: ops.topk(x, 5)[0], (normal(4, 50),), True),
    "cumsum": (lambda x: ops.cumsum(x, 1), (normal(4, 50),), False),
    "dropout": (lambda x: ops.dropout(x, 0.4), (normal(30, 31),), True),
    "while/if": (_while, (normal(5, 5),), False),
    "scatter_add_": (
        lambda x, y: x.copy().scatter_add_(0, Tensor(INDEX), y),
        (normal(4, 2), normal(3, 2)),
        False,
    ),
    "split": (lambda x: ops.split(x, 3)[1] * 2, (normal(9, 4),), True),
}


def run(function, arrays, device):
    """The result and the gradients of its weighted sum, as arrays, and where the result was."""
    ms.set_device(device)
    try:
        ms.set_seed(11)
        tensors = [Tensor(array) for array in arrays]
        result = function(*tensors)
        ms.set_seed(11)
        weighted = lambda *given: (function(*given) * 0.75).sum()  # noqa: E731
        found = ms.grad(weighted, tuple(range(len(tensors))))(*tensors)
        found = found if isinstance(found, tuple) else (found,)
        return [result.asnumpy()] + [gradient.asnumpy() for gradient in found], result.device
    finally:
        ms.set_device("CPU")


def check(operator):
    """Compares both devices; what agrees, in a few words."""
    function, arrays, exact = CASES[operator]
    wanted, _ = run(function, arrays, "CPU")
    found, device = run(function, arrays, "OpenCL")
    assert device == "OpenCL:0", device
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    same = [np.array_equal(one, other) for one, other in zip(found, wanted)]
    assert same[0] or not exact
    bits = "same bits as" if all(same) else f"{sum(same)} of {len(same)} with the same bits as, all within 1e-5 of,"
    return f"result and {len(arrays)} gradient{'s' * (len(arrays) > 1)}: {bits} the CPU"


def prove():
    """Runs every case on both devices; the table's cells and the figures of the runs."""
    if _core.device_count("OpenCL") == 0:
        return {"cells": dict.fromkeys(CASES, "- no OpenCL driver on this system"), "numbers": {}}
    begin = time.perf_counter()
    cells = {operator: check(operator) for operator in CASES}
    return {
        "cells": cells,
        "numbers": {
            "opencl operators equal to the CPU": len(cells),
            "opencl operators with all bits equal": sum(" same bits as the CPU" in text for text in cells.values()),
            "opencl seconds": round(time.perf_counter() - begin, 2),
        },
    }
