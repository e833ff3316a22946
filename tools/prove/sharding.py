"""Calls and whole functions on distributed tensors in a simulated world, with every layout of their operands, give what plain ones
give: the same bits where nothing that sums is cut."""

import itertools
import time

import morel as ms
from morel import _core
from prove.cases import CASES, close, inputs_of, tensors

dist = _core.dist
MESHES = ((2,), (4,), (2, 2), (2, 4))
LIMIT = 4000  # layouts of one call on one mesh; more are chosen at random
GRADIENTS = 60  # layouts of one function on one mesh whose gradients are compared


class Count:
    def __init__(self):
        self.cases = self.exact = self.gathering = self.functions = 0
        self.seconds = 0.0


def try_calls(function, given, count):
    """Every call of a function by itself."""
    for call in dist.record_calls(lambda: function(*given)):
        for shape in MESHES if call.has_tensors else ():
            begin = time.perf_counter()
            trial = dist.try_shardings(call, dist.mesh(list(shape), list("xy")[: len(shape)], []), LIMIT)
            count.seconds += time.perf_counter() - begin
            if trial.failures:
                raise AssertionError(trial.failures[0])
            count.cases += trial.cases
            count.exact += trial.exact
            count.gathering += trial.gathering


def try_function(function, given, count):
    """The function and its gradients, with distributed arguments."""
    places = tuple(range(len(given)))
    differentiated = ms.value_and_grad(lambda *x: (function(*x) ** 2).sum(), places)

    def step(*x):
        ms.set_seed(3)
        value, gradients = differentiated(*x)
        return value, (gradients,) if len(x) == 1 else gradients

    value, gradients = step(*given)
    for shape in MESHES:
        mesh = dist.mesh(list(shape), list("xy")[: len(shape)], [])
        layouts = list(itertools.product(*(dist.all_shardings(mesh, one.ndim, False) for one in given)))
        for chosen in layouts[:: max(1, len(layouts) // GRADIENTS)]:
            got, slopes = step(*(dist.distribute(one, layout) for one, layout in zip(given, chosen)))
            close(dist.full_tensor(got).asnumpy(), value.asnumpy())
            for one, other in zip(slopes, gradients):
                close(dist.full_tensor(one).asnumpy(), other.asnumpy())
            count.functions += 1


def prove():
    cells, total, seconds = {}, 0, 0.0
    dist.simulate(8)
    for operator, cases in CASES.items():
        count = Count()
        for function, shapes in cases:
            given = tensors(inputs_of(shapes)[0])
            try_calls(function, given, count)
            try_function(function, given, count)
        cells[operator] = (
            f"{count.cases} calls with other layouts, {count.exact} of them without a cut sum, equal bit for bit; "
            f"{count.gathering} had to put pieces together; {count.functions} gradients"
        )
        total, seconds = total + count.cases, seconds + count.seconds
    operators = [name for name in _core.operator_names() if is_cut(name)]
    derived = [name for name in operators if dist.has_axes(name)]
    numbers = {
        "fake_world_cases": total,
        "cases_per_second": round(total / seconds),
        "sharding_derived_share": round(len(derived) / len(operators), 3),
        "sharding_written": 0,
    }
    return {"cells": cells, "numbers": numbers}


def is_cut(name):
    """Whether calls of the operator are cut as such: composites are cut call by call, and some have no tensors."""
    about = _core.describe_operator(name)
    return about["kind"] != "compose" and "Tensor" in about["args"]
