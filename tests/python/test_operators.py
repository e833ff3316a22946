"""Every property of every sample: values against NumPy for all dtypes, strided and empty inputs, the gradient against finite
differences in float64, the second gradient, in-place changes of inputs detected, errors with their text."""

import functools

import numpy as np
import pytest
from samples import Fixed, all_errors, all_samples

import morel as ms
from morel import Tensor, _core

# Relative to the largest magnitude of the result; times the sample's factor.
TOLERANCE = {
    "float16": 3e-3,
    "bfloat16": 2.5e-2,
    "float32": 2e-6,
    "float64": 1e-12,
    "complex64": 4e-6,
    "complex128": 1e-11,
}
SAMPLES = all_samples()


def find(path):
    """The callable "ops.add", "mint.nn.functional.pad"."""
    return functools.reduce(getattr, path.split("."), ms)


def seeded(sample):
    return np.random.default_rng(sum(map(ord, sample.label)))


def arrays_of(sample, dtype, rng=None):
    """NumPy inputs in the dtype of the test; halves as the float32 numbers that the half type can hold."""
    rng = rng or seeded(sample)
    out = []
    for maker in sample.inputs:
        made = maker(rng)
        if isinstance(made, Fixed):
            out.append(made)
        elif dtype == "bool":
            out.append(made > 0)
        elif dtype.startswith("complex"):
            out.append((made + 0.5j * np.sin(made)).astype(dtype))
        elif dtype in ("float16", "bfloat16"):
            out.append(Tensor(made.astype(np.float32)).astype(getattr(ms, dtype)).astype(ms.float32).asnumpy())
        elif dtype.startswith(("int", "uint")):
            out.append(np.abs(np.round(3 * made)).astype(dtype))
        else:
            out.append(made.astype(dtype))
    return out


def tensor_of(array, dtype):
    if isinstance(array, Fixed):
        return Tensor(array.array)
    return Tensor(array, getattr(ms, "bool_" if dtype == "bool" else dtype))


def run(sample, tensors, options=None):
    """The operator's result on tensors; of several outputs the sample's."""
    options = {
        key: Tensor(value) if isinstance(value, np.ndarray) else value
        for key, value in (options or sample.options).items()
    }
    if sample.names:
        result = find(sample.name)(**dict(zip(sample.names, tensors)), **options)
    else:
        result = find(sample.name)(*([tuple(tensors)] if sample.as_list else tensors), **options)
    return result if sample.output is None else result[sample.output]


def expected(sample, arrays):
    plain = [array.array if isinstance(array, Fixed) else array for array in arrays]
    if sample.names:
        result = sample.reference(**dict(zip(sample.names, plain)), **sample.options)
    else:
        result = sample.reference(*plain, **sample.options)
    return np.asarray(result if sample.output is None else result[sample.output])


def compare(actual, wanted, dtype, factor):
    assert tuple(actual.shape) == wanted.shape
    if actual.dtype in (ms.float16, ms.bfloat16):
        actual = actual.astype(ms.float32)
    values = actual.asnumpy()
    if values.dtype.kind in "fc" and dtype in TOLERANCE:
        scale = max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)))
        np.testing.assert_allclose(values, wanted, rtol=0, atol=TOLERANCE[dtype] * factor * scale * 4)
    elif values.dtype.kind in "fc":  # integers that compute in float32
        np.testing.assert_allclose(values, wanted, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(values, wanted)


CASES = [
    pytest.param(sample, dtype, id=f"{sample.label}-{dtype}-{number}")
    for number, sample in enumerate(SAMPLES)
    if sample.reference
    for dtype in sample.dtypes
]


@pytest.mark.parametrize("sample,dtype", CASES)
def test_reference(sample, dtype):
    arrays = arrays_of(sample, dtype)
    with np.errstate(all="ignore"):
        wanted = expected(sample, arrays)
    compare(run(sample, [tensor_of(array, dtype) for array in arrays]), wanted, dtype, sample.tolerance)


def _every_sample(condition=lambda sample: True):
    return [
        pytest.param(sample, id=f"{sample.label}-{number}")
        for number, sample in enumerate(SAMPLES)
        if condition(sample)
    ]


@pytest.mark.parametrize("sample", _every_sample())
def test_strided_inputs(sample):
    """A view of every second element of a larger tensor gives what its contiguous copy gives."""
    dtype = sample.dtypes[0]
    dense, strided = [], []
    for array in arrays_of(sample, dtype):
        tensor = tensor_of(array, dtype)
        dense.append(tensor)
        if tensor.ndim == 0:
            strided.append(tensor)
            continue
        spread = ms.ops.stack((tensor, tensor), tensor.ndim)
        strided.append(spread[..., 0])
        assert not strided[-1].is_contiguous() or tensor.size <= 1
    wanted, actual = run(sample, dense), run(sample, strided)
    kind = (lambda x: x.astype(ms.float32)) if wanted.dtype == ms.bfloat16 else (lambda x: x)
    np.testing.assert_allclose(kind(actual).asnumpy(), kind(wanted).asnumpy(), rtol=1e-6, atol=1e-6)


def _differentiable(sample):
    return sample.grad and "float64" in sample.dtypes


def _scalar_function(sample, arrays):
    """(function of the floating inputs -> weighted sum of the result, those inputs as float64 arrays)."""
    places = [place for place, array in enumerate(arrays) if not isinstance(array, Fixed)]
    fixed = {place: Tensor(array.array) for place, array in enumerate(arrays) if isinstance(array, Fixed)}
    shape = tuple(run(sample, [tensor_of(array, "float64") for array in arrays]).shape)
    weights = Tensor(np.random.default_rng(7).standard_normal(shape))

    def function(*tensors):
        given = dict(zip(places, tensors)) | fixed
        return (run(sample, [given[place] for place in range(len(arrays))]) * weights).sum()

    return function, [arrays[place] for place in places]


def _numeric(function, arrays, which, step):
    """Central differences of a function of NumPy arrays at arrays[which]."""
    out = np.zeros_like(arrays[which])
    for place in np.ndindex(out.shape):
        values = []
        for sign in (step, -step):
            moved = [array.copy() for array in arrays]
            moved[which][place] += sign
            values.append(function(*[Tensor(array) for array in moved]).item())
        out[place] = (values[0] - values[1]) / (2 * step)
    return out


def _all_gradients(function, tensors):
    found = ms.grad(function, tuple(range(len(tensors))))(*tensors)
    return found if len(tensors) > 1 else (found,)


@pytest.mark.parametrize("sample", _every_sample(_differentiable))
def test_gradient(sample):
    function, arrays = _scalar_function(sample, arrays_of(sample, "float64"))
    found = _all_gradients(function, [Tensor(array) for array in arrays])
    for which, gradient in enumerate(found):
        np.testing.assert_allclose(gradient.asnumpy(), _numeric(function, arrays, which, 1e-6), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("sample", _every_sample(lambda sample: _differentiable(sample) and sample.second))
def test_second_gradient(sample):
    function, arrays = _scalar_function(sample, arrays_of(sample, "float64"))
    directions = [
        Tensor(np.random.default_rng(11 + which).standard_normal(array.shape)) for which, array in enumerate(arrays)
    ]

    def slope(*tensors):
        gradients = _all_gradients(function, tensors)
        return sum((gradient * direction).sum() for gradient, direction in zip(gradients, directions))

    found = _all_gradients(slope, [Tensor(array) for array in arrays])
    for which, gradient in enumerate(found):
        np.testing.assert_allclose(gradient.asnumpy(), _numeric(slope, arrays, which, 1e-5), rtol=2e-4, atol=2e-5)


def _elementwise(sample):
    operator = getattr(find(sample.name), "op", None)
    is_loop = operator is not None and _core.describe_operator(operator)["kind"] == "loop"
    return is_loop and len(sample.inputs) == 1 and not sample.options


@pytest.mark.parametrize("sample", _every_sample(_elementwise))
def test_empty_input(sample):
    dtype = sample.dtypes[0]
    result = run(sample, [Tensor(np.zeros((0, 3), np.float32)).astype(getattr(ms, dtype))])
    assert tuple(result.shape) == (0, 3)


@pytest.mark.parametrize("sample", _every_sample(lambda sample: "float32" in sample.dtypes))
def test_same_bits_for_any_number_of_threads(sample):
    tensors = [tensor_of(array, "float32") for array in arrays_of(sample, "float32")]
    before = _core.num_threads()
    results = []
    try:
        for count in (1, 2, 3):
            _core.set_num_threads(count)
            results.append(run(sample, tensors).asnumpy())
    finally:
        _core.set_num_threads(before)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param(sample, id=f"{sample.name}-{sample.error.__name__}-{number}")
        for number, sample in enumerate(all_errors())
    ],
)
def test_errors(sample):
    args, kwargs = sample.arguments()
    with pytest.raises(sample.error, match=sample.match) as caught:
        find(sample.name)(*args, **kwargs)
    assert type(caught.value) is sample.error


def test_every_loop_operator_has_a_sample():
    """Elementwise operators that users can call are all in the table."""
    covered = {getattr(find(sample.name), "op", sample.name) for sample in SAMPLES}
    missing = [
        name
        for name in _core.public_operator_names()
        if _core.describe_operator(name)["kind"] == "loop" and name not in covered
    ]
    # These stand behind a public composite of another name, whose sample covers them.
    assert set(missing) <= {
        "true_divide",
        "bitwise_not",
        "bitwise_left_shift",
        "bitwise_right_shift",
        "squared_difference",
    }, missing
