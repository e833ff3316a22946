"""Batches, derived from the entries: against loops over the examples, in front of and behind gradients, nested."""

import numpy as np

import morel as ms
from morel import Tensor, ops
from prove.cases import CASES, close, inputs_of

EXAMPLES = 3


def looped(function, count):
    return lambda *given: ops.stack([function(*(x[i] for x in given)) for i in range(count)])


def compare(operator, function, batches):
    """How many comparisons were made."""
    mapped, loop = ms.vmap(function), looped(function, EXAMPLES)
    close(mapped(*batches).asnumpy(), loop(*batches).asnumpy(), 1e-10)
    close(
        ms.jit(lambda *given: ms.vmap(function, -1)(*given))(*(x.moveaxis(0, -1) for x in batches)).asnumpy(),
        mapped(*batches).asnumpy(),
        1e-10,
    )
    one = tuple(0 if place == 0 else None for place in range(len(batches)))
    rest = [x[0] for x in batches[1:]]
    shared = looped(lambda x: function(x, *rest), EXAMPLES)
    close(ms.vmap(function, one)(batches[0], *rest).asnumpy(), shared(batches[0]).asnumpy(), 1e-10)

    def total(f):
        return lambda x: (f(x, *batches[1:]) ** 2).sum()

    wanted = ms.grad(total(loop))(batches[0]).asnumpy()
    close(ms.grad(total(mapped))(batches[0]).asnumpy(), wanted, 1e-8)
    if operator == "while/if":  # the gradient within needs loops of one length
        return 4
    within = ms.vmap(ms.grad(lambda *given: (function(*given) ** 2).sum()))(*batches)
    close(within.asnumpy(), wanted, 1e-8)
    return 5


def prove():
    cells, compared = {}, 0
    for operator, cases in CASES.items():
        if operator == "dropout":
            ones = ops.ones((EXAMPLES, 4000))
            kept = ms.vmap(lambda x: ops.dropout(x, 0.5, True))(ones).asnumpy() > 0
            assert np.all(np.abs(kept.mean(1) - 0.5) < 0.05) and len(np.unique(kept, axis=0)) == EXAMPLES
            cells[operator] = "every example draws its own numbers"
            continue
        for function, shapes in cases:
            batches = [
                np.stack([inputs_of(shapes)[0][k] * (1 + 0.3 * i) for i in range(EXAMPLES)]) for k in range(len(shapes))
            ]
            compared += compare(operator, function, [Tensor(batch) for batch in batches])
        cells[operator] = "= loop; one shared operand; gradient behind" + (
            "" if operator == "while/if" else " and within"
        )
    return {"cells": cells, "numbers": {"vmap_comparisons": compared}}
