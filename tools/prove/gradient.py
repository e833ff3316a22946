"""Gradients, and gradients of gradients, against finite differences."""

import numpy as np

import morel as ms
from prove.cases import CASES, close, inputs_of, slope, tensors


def prove():
    cells = {}
    for operator, cases in CASES.items():
        for function, shapes in cases:
            arrays, along = inputs_of(shapes)
            places = tuple(range(len(arrays)))

            def total(*given, function=function):
                return (function(*given) ** 2).sum()

            def along_v(*given, total=total, along=along, places=places):
                found = ms.grad(total, places)(*given)
                return sum((g * v).sum() for g, v in zip(found if len(places) > 1 else (found,), tensors(along)))

            close(along_v(*tensors(arrays)), slope(total, arrays, along))
            second = ms.grad(along_v, places)(*tensors(arrays))
            second = second if len(places) > 1 else (second,)
            close(sum(np.vdot(g.asnumpy(), v) for g, v in zip(second, along)), slope(along_v, arrays, along))
        cells[operator] = f"1st and 2nd order, {len(cases)} call{'s' * (len(cases) > 1)}"
    return {"cells": cells, "numbers": {"gradient_cases": 2 * sum(map(len, CASES.values()))}}
