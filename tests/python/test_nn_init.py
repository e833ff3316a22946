"""Initializers: distributions, structure, seeds, user-defined ones, deferred filling."""

import math

import numpy as np
import pytest
from morel.common.initializer import (
    Constant,
    Dirac,
    HeNormal,
    HeUniform,
    Identity,
    Initializer,
    Normal,
    One,
    Orthogonal,
    Sparse,
    TruncatedNormal,
    Uniform,
    VarianceScaling,
    XavierNormal,
    XavierUniform,
    Zero,
    initializer,
)

import morel as ms
from morel import Parameter, Tensor, nn

SHAPE = (200, 30, 3, 3)
FAN_IN, FAN_OUT = 30 * 9, 200 * 9


@pytest.fixture(autouse=True)
def fixed_seed():
    ms.set_seed(7)


def values(init, shape=SHAPE, dtype=ms.float32):
    return initializer(init, shape, dtype).asnumpy()


@pytest.mark.parametrize(
    "init, bound",
    [
        (Uniform(), 0.07),
        (Uniform(0.5), 0.5),
        ("uniform", 0.07),
        (XavierUniform(), math.sqrt(6 / (FAN_IN + FAN_OUT))),
        (XavierUniform(2), 2 * math.sqrt(6 / (FAN_IN + FAN_OUT))),
        (HeUniform(), math.sqrt(6 / FAN_IN)),
        (HeUniform(math.sqrt(5)), math.sqrt(1 / FAN_IN)),
        (HeUniform(mode="fan_out", nonlinearity="tanh"), 5 / 3 * math.sqrt(3 / FAN_OUT)),
        (VarianceScaling(2.0, "fan_avg", "uniform"), math.sqrt(3 * 2 / ((FAN_IN + FAN_OUT) / 2))),
    ],
)
def test_uniform_bounds(init, bound):
    array = values(init)
    assert abs(array).max() <= bound and abs(array).max() > 0.999 * bound
    assert abs(array.mean()) < 0.01 * bound
    # Evenly spread: each tenth of the range holds a tenth of the values.
    counts, _ = np.histogram(array, 10, (-bound, bound))
    assert abs(counts / array.size - 0.1).max() < 0.005


@pytest.mark.parametrize(
    "init, mean, deviation",
    [
        (Normal(), 0, 0.01),
        ("normal", 0, 0.01),
        (Normal(0.5, 2.0), 2.0, 0.5),
        (XavierNormal(), 0, math.sqrt(2 / (FAN_IN + FAN_OUT))),
        (HeNormal(), 0, math.sqrt(2 / FAN_IN)),
        (HeNormal(mode="fan_out", nonlinearity="relu"), 0, math.sqrt(2 / FAN_OUT)),
        (VarianceScaling(1.5, "fan_out", "untruncated_normal"), 0, math.sqrt(1.5 / FAN_OUT)),
    ],
)
def test_normal_moments(init, mean, deviation):
    array = (values(init).astype(np.float64) - mean) / deviation
    assert abs(array.mean()) < 0.02 and abs(array.std() - 1) < 0.02
    assert abs((array**4).mean() - 3) < 0.2  # kurtosis of a normal distribution
    assert 3.5 < abs(array).max() < 6.5


def test_truncated_normal():
    array = values(TruncatedNormal(0.5, 1.0, -1.0, 0.5))
    assert array.min() >= -1 and array.max() <= 0.5
    # Mean of a normal distribution between a and b (Johnson et al., Continuous Univariate Distributions, 13.10).
    a, b = (-1 - 1) / 0.5, (0.5 - 1) / 0.5
    density = [math.exp(-x * x / 2) / math.sqrt(2 * math.pi) for x in (a, b)]
    mass = 0.5 * (math.erf(b / math.sqrt(2)) - math.erf(a / math.sqrt(2)))
    assert abs(array.mean() - (1 + 0.5 * (density[0] - density[1]) / mass)) < 0.005
    wide = values(TruncatedNormal(0.01))  # the default bounds are absolute
    assert abs(wide).max() > 0.035 and abs(wide.std() - 0.01) < 2e-4
    scaled = values(VarianceScaling(1.0, "fan_in"))
    deviation = math.sqrt(1 / FAN_IN)
    assert abs(scaled.std() / deviation - 1) < 0.02 and abs(scaled).max() <= 2 * deviation / 0.879625


def test_constants():
    assert (values(Zero()) == 0).all() and (values("zeros") == 0).all() and (values(One()) == 1).all()
    assert (values(Constant(2.5), (2, 2)) == 2.5).all() and (values(-3, (2,), ms.int32) == -3).all()
    assert values(Constant(np.arange(3)), (2, 3)).tolist() == [[0, 1, 2], [0, 1, 2]]
    assert (values(Identity(), (2, 3)) == np.eye(2, 3)).all()
    tensor = Tensor([1.0, 2.0])
    assert initializer(tensor, (2,)) is tensor


@pytest.mark.parametrize("shape", [(5, 8), (8, 5), (6, 2, 2, 2)])
def test_orthogonal(shape):
    matrix = values(Orthogonal(2.0), shape).reshape(shape[0], -1) / 2
    small = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-5)


def test_sparse_and_dirac():
    array = values(Sparse(0.3, 0.5), (10, 40))
    assert ((array == 0).sum(0) == 3).all() and abs(array[array != 0].std() - 0.5) < 0.1
    weight = values(Dirac(2), (4, 2, 3, 3))
    x = np.random.RandomState(0).rand(1, 4, 5, 5).astype(np.float32)
    conv = nn.Conv2d(4, 4, 3, group=2, weight_init=Tensor(weight))
    np.testing.assert_array_equal(conv(Tensor(x)).asnumpy(), x)


def test_layer_defaults():
    """Dense, convolutions and Linear start uniform within 1/sqrt(fan_in), weights and biases; embeddings normal."""
    for layer, fan in (
        (nn.Dense(400, 300), 400),
        (nn.Conv2d(40, 60, 3, has_bias=True), 360),
        (nn.Conv2d(40, 60, 3, group=4, has_bias=True), 90),
        (nn.Conv1d(40, 300, 3, has_bias=True), 120),
        (nn.Conv3d(20, 40, 2, has_bias=True), 160),
        (nn.Conv2dTranspose(40, 60, 3, has_bias=True), 540),
    ):
        for param in (layer.weight, layer.bias):
            array = param.asnumpy() * math.sqrt(fan)
            assert 0.9 < abs(array).max() <= 1.0 and (array.size < 300 or abs(array.std() - 1 / math.sqrt(3)) < 0.05)
    assert abs(nn.Embedding(300, 100).embedding_table.asnumpy().std() - 0.01) < 5e-4
    padded = nn.Embedding(5, 3, padding_idx=2).embedding_table.asnumpy()
    assert (padded[2] == 0).all() and (padded[[0, 1, 3, 4]] != 0).all()
    assert abs(nn.MultiheadAttention(64, 4).in_proj_weight.asnumpy()).max() <= math.sqrt(6 / 256)


def test_seed():
    def draw():
        ms.set_seed(11)
        return [values(Normal(), (4, 5)), nn.Dense(3, 2).weight.asnumpy(), values("he_uniform", (3, 3))]

    for first, second in zip(draw(), draw()):
        np.testing.assert_array_equal(first, second)
    assert not np.array_equal(values(Normal(), (4, 5)), values(Normal(), (4, 5)))


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float64])
def test_dtypes(dtype):
    tensor = initializer("he_normal", (50, 40), dtype)
    assert tensor.dtype == dtype
    assert abs(tensor.astype(ms.float32).asnumpy().std() / math.sqrt(2 / 40) - 1) < 0.1


def test_user_defined():
    class Ramp(Initializer):
        def _initialize(self, arr):
            arr[...] = np.arange(arr.size).reshape(arr.shape)

    class Shifted(Normal):
        def _initialize(self, arr):
            super()._initialize(arr)
            arr += 100

    assert nn.Dense(2, 2, weight_init=Ramp()).weight.asnumpy().tolist() == [[0, 1], [2, 3]]
    assert abs(values(Shifted(), (10,)) - 100).max() < 1
    array = np.empty((3, 3), np.float32)
    XavierUniform()(array)
    assert 0 < abs(array).max() <= 1


def test_deferred_filling():
    with nn.utils.no_init_parameters():
        net = nn.SequentialCell(nn.Dense(3, 4, bias_init="ones"), nn.ReLU())
    assert net[0].weight.has_init and (net[0].weight.asnumpy() == 0).all()
    net(Tensor(np.ones((1, 3), np.float32)))
    assert not net[0].weight.has_init and (net[0].bias.asnumpy() == 1).all() and (net[0].weight.asnumpy() != 0).all()
    with nn.utils.no_init_parameters():
        net = nn.Dense(3, 4)
    net.weight.set_data(Tensor(np.full((4, 3), 2, np.float32)))
    net.init_parameters_data()
    assert (net.weight.asnumpy() == 2).all() and not net.bias.has_init and (net.bias.asnumpy() != 0).any()


def test_one_initial_tensor_for_two_parameters():
    tensor = initializer("ones", (2,))
    first, second = Parameter(tensor, "a"), Parameter(tensor, "b")
    first.fill_(5)
    assert second.asnumpy().tolist() == [1, 1] and tensor.init_data().shape == (2,) and tensor.has_init


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: initializer("foo", (1,)), ValueError),
        (lambda: initializer("ones", (0,)), ValueError),
        (lambda: initializer("ones", (1.5,)), ValueError),
        (lambda: initializer(None, (1,)), TypeError),
        (lambda: initializer("ones"), ValueError),
        (lambda: initializer(Tensor([1.0]), (2,)), ValueError),
        (lambda: values("xavier_uniform", (3,)), ValueError),
        (lambda: values(Identity(), (2, 2, 2)), ValueError),
        (lambda: values(Dirac(3), (4, 2, 3)), ValueError),
        (lambda: values(Normal(-1.0), (2,)), ValueError),
        (lambda: VarianceScaling(0), ValueError),
        (lambda: VarianceScaling(1, "x"), ValueError),
        (lambda: values(HeUniform(nonlinearity="x"), (2, 2)), ValueError),
        (lambda: Initializer()(np.zeros(2)), NotImplementedError),
    ],
)
def test_errors(make, error):
    with pytest.raises(error):
        make()
