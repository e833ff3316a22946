"""Compiled functions give what PyNative mode gives: the same bits, and gradients."""

import numpy as np

import morel as ms
from prove.cases import CASES, close, inputs_of, tensors


def prove():
    cells = {}
    for operator, cases in CASES.items():
        for function, shapes in cases:
            x = tensors(inputs_of(shapes, "float32")[0])
            places = tuple(range(len(x)))
            ms.set_seed(3)
            found = ms.jit(function)(*x)
            np.testing.assert_array_equal(found.asnumpy(), function(*x).asnumpy())

            def total(*given, function=function):
                return (function(*given) ** 2).sum()

            gradients = ms.grad(total, places)
            ms.set_seed(3)
            compiled = ms.jit(lambda *given, gradients=gradients: gradients(*given))(*x)
            plain = gradients(*x)
            for a, b in zip((compiled,) if len(x) == 1 else compiled, (plain,) if len(x) == 1 else plain):
                close(a.asnumpy(), b.asnumpy(), 1e-6)
        cells[operator] = "same bits, same gradients"
    return {"cells": cells, "numbers": {"graph_cases": 2 * sum(map(len, CASES.values()))}}
