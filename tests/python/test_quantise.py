"""Quantisation to int8: the operators against exact integer arithmetic, and what becomes of networks."""

import numpy as np
import pytest

import morel as ms
from morel import Tensor, _core, lite, nn, ops


def _operator(name):
    return _core.make_operator(name, name)


def _requantised(sums, multipliers, shifts, zero):
    """Of integers as Python has them: nothing overflows, nothing is rounded but here."""
    out = np.empty(sums.shape, np.int8)
    for place in np.ndindex(sums.shape):
        channel = place[1]
        left, right = max(int(shifts[channel]), 0), max(-int(shifts[channel]), 0)
        high = (int(sums[place]) * 2**left * int(multipliers[channel]) + 2**30) // 2**31  # ties up
        magnitude = (2 * abs(high) + 2**right) // 2 ** (right + 1)  # ties away from zero
        out[place] = min(max((magnitude if high >= 0 else -magnitude) + zero, -128), 127)
    return out


def _constants(rng, channels):
    multipliers = rng.integers(2**30, 2**31, channels)
    shifts = rng.integers(-9, 2, channels)
    return multipliers.astype(np.int32), shifts.astype(np.int32)


def _int8(rng, *shape, least=-128):
    return rng.integers(least, 128, shape).astype(np.int8)


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("rows,k,n", [(3, 7, 5), (1, 800, 33), (70, 64, 4), (2, 1, 1)])
def test_int8_dense(rows, k, n, with_bias):
    rng = np.random.default_rng(rows + k)
    x, w = _int8(rng, rows, k), _int8(rng, n, k, least=-127)
    bias = rng.integers(-20000, 20000, n).astype(np.int32) if with_bias else None
    multipliers, shifts = _constants(rng, n)
    sums = (x.astype(np.int64) + 3) @ w.T.astype(np.int64) + (bias if with_bias else 0)
    found = _operator("int8_dense")(
        Tensor(x), Tensor(w), Tensor(bias) if with_bias else None, Tensor(multipliers), Tensor(shifts), -3, 11
    )
    np.testing.assert_array_equal(found.asnumpy(), _requantised(sums, multipliers, shifts, 11))


@pytest.mark.parametrize(
    "shape,outputs,kernel,stride,padding,dilation,groups",
    [
        ((2, 3, 8, 9), 4, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
        ((1, 4, 9, 7), 6, (3, 2), (2, 1), (0, 1, 2, 0), (1, 2), 2),
        ((1, 4, 6, 6), 4, (5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 4),
    ],
)
def test_int8_convolution(shape, outputs, kernel, stride, padding, dilation, groups):
    rng = np.random.default_rng(outputs)
    x, w = _int8(rng, *shape), _int8(rng, outputs, shape[1] // groups, *kernel, least=-127)
    bias = rng.integers(-5000, 5000, outputs).astype(np.int32)
    multipliers, shifts = _constants(rng, outputs)
    window = (stride, padding, dilation, groups)
    exact = _operator("convolution")(  # of float64, which holds the sums exactly
        Tensor(x.astype(np.float64) - 5), Tensor(w.astype(np.float64)), Tensor(bias.astype(np.float64)), *window
    ).asnumpy()
    found = _operator("int8_convolution")(
        Tensor(x), Tensor(w), Tensor(bias), *window, Tensor(multipliers), Tensor(shifts), 5, -7
    )
    np.testing.assert_array_equal(found.asnumpy(), _requantised(exact.astype(np.int64), multipliers, shifts, -7))


def test_int8_max_pool_and_its_places():
    rng = np.random.default_rng(3)
    x = _int8(rng, 2, 3, 7, 8)
    window = ((3, 2), (2, 2), (1, 1, 0, 1), (1, 1), False)
    values, places = _operator("max_pool2d_with_indices")(Tensor(x), *window)
    wanted, wanted_places = _operator("max_pool2d_with_indices")(Tensor(x.astype(np.float32)), *window)
    np.testing.assert_array_equal(values.asnumpy(), wanted.asnumpy())
    np.testing.assert_array_equal(places.asnumpy(), wanted_places.asnumpy())


def test_quantize_and_dequantize():
    x = np.array([-1e9, -1.0, -0.25, 0.0, 0.26, 0.75, 1e9], np.float32)
    found = _operator("quantize_linear")(Tensor(x), 0.5, -3)
    np.testing.assert_array_equal(found.asnumpy(), np.array([-128, -5, -3, -3, -2, -1, 127], np.int8))
    back = _operator("dequantize_linear")(found, 0.5, -3)
    np.testing.assert_array_equal(back.asnumpy(), (found.asnumpy().astype(np.float32) + 3) * np.float32(0.5))


class _Net(nn.Cell):
    """Two branches that are joined, with all that keeps int8 as it is."""

    def __init__(self):
        super().__init__()
        self.left = nn.Conv2d(1, 4, 3, pad_mode="same", has_bias=True)
        self.right = nn.Conv2d(1, 4, 5, pad_mode="same", has_bias=False)
        self.pool = nn.MaxPool2d(2, 2)
        self.dense = nn.Dense(8 * 16, 10)

    def construct(self, x):
        both = ops.cat((ops.relu(self.left(x)), ops.relu6(self.right(x))), 1)
        return self.dense(self.pool(both).reshape(x.shape[0], -1))


def _examples(count, seed=0):
    rng = np.random.default_rng(seed)
    return [Tensor(rng.standard_normal((4, 1, 8, 8)).astype(np.float32)) for _ in range(count)]


def _cosine(a, b):
    a, b = a.ravel().astype(np.float64), b.ravel().astype(np.float64)
    return a @ b / np.sqrt((a @ a) * (b @ b))


@pytest.mark.parametrize("method", ["MAX_MIN", "KL", "REMOVAL_OUTLIER"])
@pytest.mark.parametrize("per_channel", [True, False])
def test_a_network_in_int8(method, per_channel):
    ms.set_seed(1)
    net, examples = _Net(), _examples(8)
    made = lite.quantise(
        net, examples[0], calibration=examples, activation_quant_method=method, per_channel=per_channel
    )
    x = _examples(1, seed=9)[0]
    assert _cosine(made(x).asnumpy(), net(x).asnumpy()) > 0.99
    assert made.num_int8 == 3
    # Activations lost nothing but limits, and all between the convolutions and the result stays int8.
    assert set(made.in_float) == {"quantize_linear", "dequantize_linear"} or not made.in_float


def test_int8_inputs_and_outputs():
    ms.set_seed(1)
    net, examples = _Net(), _examples(8)
    made = lite.quantise(net, examples[0], calibration=examples, input_data_type="INT8", output_data_type="INT8")
    (scale, zero), (out_scale, out_zero) = made.inputs[0], made.outputs[0]
    x = examples[3].asnumpy()
    found = made(Tensor(np.clip(np.rint(x / scale) + zero, -128, 127).astype(np.int8)))
    assert found.dtype == ms.int8
    in_float = lite.quantise(net, examples[0], calibration=examples)
    np.testing.assert_allclose(
        (found.asnumpy().astype(np.float32) - out_zero) * np.float32(out_scale),
        in_float(Tensor(x)).asnumpy(),
        rtol=1e-6,
        atol=1e-6,
    )


def test_int8_add():
    rng = np.random.default_rng(1)
    x, y = _int8(rng, 2, 300), _int8(rng, 2, 300)
    multiplier, shift = 2**30 + 12345, -17
    found = _operator("int8_add")(Tensor(x), Tensor(y), 2**20, 700000, -3, 5, multiplier, shift, 9)
    sums = (x.astype(np.int64) + 3) * 2**20 + (y.astype(np.int64) - 5) * 700000
    np.testing.assert_array_equal(found.asnumpy(), _requantised(sums, [multiplier] * 300, [shift] * 300, 9))


class _Residual(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, pad_mode="same")
        self.second = nn.Conv2d(8, 8, 3, pad_mode="same")
        self.norms = nn.CellList([nn.BatchNorm2d(8), nn.BatchNorm2d(8)])
        self.dense = nn.Dense(8 * 64, 10)
        self.last = nn.BatchNorm1d(10)

    def construct(self, x):
        x = ops.relu(self.norms[0](self.first(x)))
        x = ops.relu(self.norms[1](self.second(x)) + x)
        return self.last(self.dense(x.reshape(x.shape[0], -1)))


def test_batch_norms_and_residuals_are_int8():
    ms.set_seed(2)
    net, examples, rng = _Residual(), _examples(8), np.random.default_rng(4)
    for parameter in net.get_parameters():
        if "norms" in parameter.name or "last" in parameter.name:
            parameter.set_data(Tensor(rng.uniform(0.5, 2, parameter.shape).astype(np.float32)))
    net.set_train(False)
    made = lite.quantise(net, examples[0], calibration=examples)
    assert made.num_int8 == 4 and not made.in_float  # two convolutions, the sum, the dense layer
    x = _examples(1, seed=9)[0]
    assert _cosine(made(x).asnumpy(), net(x).asnumpy()) > 0.99


def test_calibration_with_nan_is_refused():
    net, x = nn.Dense(3, 3), np.zeros((2, 3), np.float32)
    x[1, 2] = np.nan
    with pytest.raises(ValueError, match="an input is NaN for the examples"):
        lite.quantise(net, Tensor(x))


def test_nodes_that_are_skipped_stay_float():
    net, examples = _Net(), _examples(2)
    with pytest.raises(ValueError, match="names 'dens', but the network has no such operator.* 'dense'"):
        lite.quantise(net, examples[0], skip_quant_node=["dense", "dens"])
    made = lite.quantise(net, examples[0], calibration=examples, skip_quant_node=["dense"])
    assert made.num_int8 == 2 and made.in_float["dense"] == 1


def test_operators_between_run_in_float():
    layer = nn.Dense(6, 6)

    def function(x):
        return layer(ops.softmax(layer(x) + 1.5, -1))

    x = Tensor(np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32))
    made = lite.quantise(function, x)
    assert made.num_int8 == 2 and "softmax" in " ".join(made.in_float)
    assert _cosine(made(x).asnumpy(), function(x).asnumpy()) > 0.99


def test_what_is_not_supported_is_said():
    net, x = nn.Dense(3, 3), Tensor(np.zeros((1, 3), np.float32))
    with pytest.raises(NotImplementedError, match="bit_num"):
        lite.quantise(net, x, bit_num=4)
    with pytest.raises(ValueError, match="activation_quant_method"):
        lite.quantise(net, x, activation_quant_method="MEAN")
    with pytest.raises(ValueError, match="no examples"):
        lite.quantise(net, x, calibration=[])


def test_other_arguments_are_refused():
    net, x = nn.Dense(4, 2), ops.ones((1, 4))
    for wrong in (ops.ones((1, 5)), ops.ones(4), ops.ones((1, 4), ms.float64), (x, x), ()):
        with pytest.raises(ValueError, match=r"example 1 of 'calibration' .* but must be Float32\[1, 4\];"):
            lite.quantise(net, x, calibration=[x, wrong])
    int8 = lite.quantise(net, x, input_data_type="INT8")
    assert int8(ops.ones((1, 4), ms.int8)).shape == (1, 2)
    for wrong in ((x,), (), (ops.ones((1, 4), ms.int8),) * 2):
        with pytest.raises(ValueError, match=r"the arguments of a call .* but must be Int8\[1, 4\];"):
            int8(*wrong)
