"""Forward mode, derived from the gradient rules: against finite differences, in both modes, over and under the gradient."""

import numpy as np

import morel as ms
from prove.cases import CASES, close, inputs_of, slope, tensors


def prove():
    cells, compared = {}, 0
    for operator, cases in CASES.items():
        for function, shapes in cases:
            arrays, along = inputs_of(shapes)
            x, v = tensors(arrays), tensors(along)
            count, places = len(x), tuple(range(len(x)))

            def product(*given, function=function, count=count):
                return ms.jvp(function, given[:count], given[count:])[1]

            tangent = product(*x, *v)
            if operator == "dropout":  # linear: the same draws scale the direction
                ms.set_seed(3)
                compiled = ms.jit(
                    lambda *given, function=function, count=count: ms.jvp(function, given[:count], given[count:])
                )
                output, moved = (found.asnumpy() for found in compiled(*x, *v))
                close(moved, np.where(output == 0, 0, output / arrays[0] * along[0]))
            else:
                close(ms.jit(product)(*x, *v).asnumpy(), tangent.asnumpy(), 1e-10)
            close(tangent.asnumpy(), slope(function, arrays, along))
            weights = np.random.default_rng(1).standard_normal(tangent.shape)
            pulled = ms.vjp(function, *x)[1](ms.Tensor(weights))
            close(
                np.vdot(tangent.asnumpy(), weights), sum(np.vdot(g.asnumpy(), d) for g, d in zip(pulled, along)), 1e-9
            )

            def total(*given, function=function):
                return (function(*given) ** 2).sum()

            over = ms.grad(lambda *given, v=v, total=total: ms.jvp(total, given, v)[1], places)(*x)
            under = ms.jvp(lambda *given, total=total, places=places: ms.grad(total, places)(*given), x, v)[1]
            for a, b in zip((over,) if count == 1 else over, (under,) if count == 1 else under):
                close(a.asnumpy(), b.asnumpy(), 1e-8)
            compared += 5
        cells[operator] = "both modes, = differences, = vjp transposed, grad of jvp = jvp of grad"
    return {"cells": cells, "numbers": {"jvp_comparisons": compared}}
