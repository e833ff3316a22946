"""ONNX, for the operators of the proof: exported, run by ONNX Runtime, read back, and the node tests of onnx.backend.test."""

import tempfile

import numpy as np
import onnx_nodes

import morel as ms
from morel import Tensor, _core, ops


def _control(x):
    while x.abs().sum() < 100:
        x = x * 2
    return x + 1 if x.sum() > 0 else x - 1


# Operator: a function of it, its input's shape, the operators of ONNX whose node tests count.
CASES = {
    "add": (lambda x: x + x[:1], (4, 3), ("Add",)),
    "matmul": (lambda x: x @ x.T, (4, 3), ("MatMul",)),
    "sum": (lambda x: x.sum(1), (4, 3), ("ReduceSum",)),
    "softmax": (lambda x: ops.softmax(x, -1), (4, 3), ("Softmax",)),
    "layer_norm": (lambda x: ops.layer_norm(x, (3,), ops.ones(3), ops.zeros(3)), (4, 3), ("LayerNormalization",)),
    "gather": (
        lambda x: (ops.gather(x, Tensor([2, 0]), 1), ops.gather_elements(x, 0, Tensor([[1, 0, 1]]))),
        (4, 3),
        ("Gather", "GatherElements"),
    ),
    "conv2d": (
        lambda x: ops.conv2d(x, ops.ones((4, 1, 3, 2)), stride=2, pad_mode="pad", padding=1, groups=2),
        (4, 2, 7, 6),
        ("Conv",),
    ),
    "concat": (lambda x: ops.concat([x, x * 2, x], 1), (4, 3), ("Concat",)),
    "topk": (lambda x: ops.topk(x, 2), (4, 3), ("TopK",)),
    "cumsum": (lambda x: ops.cumsum(x, 1), (4, 3), ("CumSum",)),
    "dropout": (lambda x: ops.dropout(x, 0.5, training=False), (4, 3), ("Dropout",)),
    "while/if": (_control, (4, 3), ("Loop", "If")),
    "scatter_add_": (
        lambda x: (x * 1).scatter_add_(0, Tensor([[1, 0, 1]]), ops.ones((1, 3))),
        (4, 3),
        ("ScatterElements",),
    ),
    "split": (lambda x: ops.split(x, [1, 2], 1), (4, 3), ("Split",)),
}


def _agrees(function, shape, folder):
    """Whether ONNX Runtime and the file read back give what the function does, at each opset, for two sizes of the batch."""
    import onnx
    import onnxruntime

    for opset in range(_core.onnx_opsets[0], _core.onnx_opsets[1] + 1):
        path = f"{folder}/{opset}.onnx"
        x = ops.ones(shape)
        ms.export(
            function,
            x,
            file_name=path,
            file_format="ONNX",
            opset=opset,
            dynamic_axes={"x": {0: "n"}},
            input_names=["x"],
        )
        onnx.checker.check_model(path, full_check=True)
        cell, session = ms.onnx.load(path), onnxruntime.InferenceSession(path)
        for batch in (shape[0], shape[0] + 3):
            x = Tensor(np.random.default_rng(batch).standard_normal((batch, *shape[1:])).astype(np.float32))
            wanted = ms.jit(function)(x)
            for mine in (cell(x), session.run(None, {"x": x.asnumpy()})):
                mine = mine if isinstance(mine, (tuple, list)) else (mine,)
                for a, b in zip(mine, wanted if isinstance(wanted, (tuple, list)) else (wanted,)):
                    np.testing.assert_allclose(np.asarray(a), b.asnumpy(), rtol=1e-4, atol=1e-5)


def prove():
    """{"cells": {operator: what was checked}, "numbers": ...}"""
    nodes = onnx_nodes.Result()
    cells = {}
    for name, (function, shape, operators) in CASES.items():
        passed, all_of_them = (
            nodes.count("passed", operators),
            sum(op in operators for op, _, _ in nodes.outcome.values()),
        )
        with tempfile.TemporaryDirectory() as folder:
            _agrees(function, shape, folder)
        cells[name] = f"opsets 17-22 = ORT, open batch; {passed}/{all_of_them} node tests"
    numbers = {
        "onnx node tests": len(nodes.outcome),
        **{f"onnx node tests {kind}": nodes.count(kind) for kind in ("passed", "failed", "refused")},
    }
    return {"cells": cells, "numbers": numbers}
