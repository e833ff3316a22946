"""Forward mode of every differentiable sample, derived from the gradient rules: against finite differences in float64, against
the gradient it is the transpose of, in both modes, and in one another."""

import numpy as np
import pytest
from samples import Fixed
from test_operators import _differentiable, _every_sample, _scalar_function, arrays_of, run, tensor_of

import morel as ms
from morel import Tensor

# The shape of their result depends on values: not in a graph.
DATA_DEPENDENT = {"ops.masked_select"}


def not_data_dependent(sample):
    return _differentiable(sample) and sample.name not in DATA_DEPENDENT


def second_order(sample):
    return not_data_dependent(sample) and sample.second


def directions(arrays):
    return [np.random.default_rng(5 + place).standard_normal(np.shape(array)) for place, array in enumerate(arrays)]


def function_of(sample, dtype="float64"):
    """(the operator as a function of its floating inputs, these as arrays)"""
    arrays = arrays_of(sample, dtype)
    places = [place for place, array in enumerate(arrays) if not isinstance(array, Fixed)]
    fixed = {place: tensor_of(array, dtype) for place, array in enumerate(arrays) if isinstance(array, Fixed)}

    def function(*tensors):
        given = dict(zip(places, tensors)) | fixed
        return run(sample, [given[place] for place in range(len(arrays))])

    return function, [arrays[place] for place in places]


def tensors_of(arrays):
    return tuple(Tensor(array) for array in arrays)


def close(actual, wanted, rtol, atol):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(wanted), rtol=rtol, atol=atol)


@pytest.mark.parametrize("sample", _every_sample(_differentiable))
def test_tangent(sample):
    function, arrays = function_of(sample)
    along = directions(arrays)
    output, tangent = ms.jvp(function, tensors_of(arrays), tensors_of(along))
    ahead, behind = (
        function(*tensors_of([array + step * v for array, v in zip(arrays, along)])).asnumpy() for step in (1e-6, -1e-6)
    )
    assert tangent.dtype == output.dtype and tangent.shape == output.shape
    close(tangent.asnumpy(), (ahead - behind) / 2e-6, 2e-5, 5e-6)
    # <jvp(v), c> = <v, vjp(c)>
    cotangent = np.random.default_rng(3).standard_normal(output.shape)
    gradients = ms.vjp(function, *tensors_of(arrays))[1](Tensor(cotangent))
    close(
        np.vdot(tangent.asnumpy(), cotangent),
        sum(np.vdot(g.asnumpy(), v) for g, v in zip(gradients, along)),
        1e-9,
        1e-9,
    )


@pytest.mark.parametrize("sample", _every_sample(not_data_dependent))
def test_graph_tangent(sample):
    function, arrays = function_of(sample)
    inputs, along = tensors_of(arrays), tensors_of(directions(arrays))
    count = len(inputs)
    compiled = ms.jit(lambda *given: ms.jvp(function, given[:count], given[count:]))
    for actual, wanted in zip(compiled(*inputs, *along), ms.jvp(function, inputs, along)):
        close(actual.asnumpy(), wanted.asnumpy(), 1e-12, 1e-13)


@pytest.mark.parametrize("mode", ["pynative", "graph"])
@pytest.mark.parametrize("sample", _every_sample(second_order))
def test_second_order(sample, mode):
    """The gradient of jvp, jvp of the gradient, and v^T H v by jvp of jvp, of a sum of the results."""
    function, arrays = _scalar_function(sample, arrays_of(sample, "float64"))
    inputs, along = tensors_of(arrays), tensors_of(directions(arrays))
    places, count = tuple(range(len(arrays))), len(arrays)

    def gradients(*given):
        found = ms.grad(function, places)(*given)
        return found if count > 1 else (found,)

    def all_three(*given):
        x, v = given[:count], given[count:]
        of_jvp = ms.grad(lambda *x: ms.jvp(function, x, v)[1], places)(*x)
        of_grad = ms.jvp(gradients, x, v)[1]
        twice = ms.jvp(lambda *x: ms.jvp(function, x, v)[1], x, v)[1]
        return of_jvp if count > 1 else (of_jvp,), of_grad, twice

    of_jvp, of_grad, twice = (ms.jit(all_three) if mode == "graph" else all_three)(*inputs, *along)
    step = 1e-5
    for place in range(count):
        moved = [
            gradients(*tensors_of([a + s * v.asnumpy() for a, v in zip(arrays, along)]))[place].asnumpy()
            for s in (step, -step)
        ]
        close(of_grad[place].asnumpy(), (moved[0] - moved[1]) / (2 * step), 2e-4, 5e-5)
        close(of_jvp[place].asnumpy(), of_grad[place].asnumpy(), 1e-8, 1e-9)
    close(twice.asnumpy(), sum(np.vdot(g.asnumpy(), v.asnumpy()) for g, v in zip(of_grad, along)), 1e-8, 1e-9)
