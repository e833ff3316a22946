"""Graph mode gives what PyNative mode gives, bit for bit, for every sample: results, gradients, second gradients."""

import numpy as np
import pytest
from test_operators import SAMPLES, _differentiable, _every_sample, _scalar_function, arrays_of, run, tensor_of

import morel as ms
from morel import Tensor


def same_bits(actual, wanted):
    assert actual.dtype == wanted.dtype and tuple(actual.shape) == tuple(wanted.shape)
    if actual.dtype in (ms.bfloat16,):
        actual, wanted = actual.astype(ms.float32), wanted.astype(ms.float32)
    np.testing.assert_array_equal(actual.asnumpy(), wanted.asnumpy())


# The shape of their result depends on values: not in a graph.
DATA_DEPENDENT = {"ops.masked_select"}

CASES = [
    pytest.param(sample, dtype, id=f"{sample.label}-{dtype}-{number}")
    for number, sample in enumerate(SAMPLES)
    if sample.name not in DATA_DEPENDENT
    for dtype in sample.dtypes
    if dtype in ("float32", "int32", "bool", "bfloat16", "complex64")
]


@pytest.mark.parametrize("sample,dtype", CASES)
def test_result(sample, dtype):
    tensors = [tensor_of(array, dtype) for array in arrays_of(sample, dtype)]
    same_bits(ms.jit(lambda *given: run(sample, given))(*tensors), run(sample, tensors))


def differentiable(sample):
    return _differentiable(sample) and sample.name not in DATA_DEPENDENT


@pytest.mark.parametrize("sample", _every_sample(differentiable))
def test_gradient(sample):
    function, arrays = _scalar_function(sample, arrays_of(sample, "float64"))
    gradients = ms.grad(function, tuple(range(len(arrays))))
    tensors = [Tensor(array) for array in arrays]
    for actual, wanted in zip(ms.jit(lambda *given: gradients(*given))(*tensors), gradients(*tensors)):
        np.testing.assert_allclose(actual.asnumpy(), wanted.asnumpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("sample", _every_sample(lambda sample: differentiable(sample) and sample.second))
def test_second_gradient(sample):
    function, arrays = _scalar_function(sample, arrays_of(sample, "float64"))
    places = tuple(range(len(arrays)))

    def slope(*tensors):
        return sum((gradient * gradient).sum() for gradient in ms.grad(function, places)(*tensors))

    gradients = ms.grad(slope, places)
    tensors = [Tensor(array) for array in arrays]
    for actual, wanted in zip(ms.jit(lambda *given: gradients(*given))(*tensors), gradients(*tensors)):
        np.testing.assert_allclose(actual.asnumpy(), wanted.asnumpy(), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("sample", _every_sample(lambda sample: sample.name in DATA_DEPENDENT))
def test_shapes_that_depend_on_values(sample):
    tensors = [tensor_of(array, "float32") for array in arrays_of(sample, "float32")]
    with pytest.raises(NotImplementedError, match="shape of the result depends on values"):
        ms.jit(lambda *given: run(sample, given))(*tensors)
