"""Models as C: compiled for this machine with all warnings as errors, and for Cortex-M under QEMU, against the runtime."""

import pathlib
import sys

import numpy as np
import pytest

import morel as ms
from morel import Tensor, lite, nn, ops

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
import mcu  # noqa: E402

needs_boards = pytest.mark.skipif(bool(mcu.missing_tools()), reason=f"not installed: {mcu.missing_tools()}")


def _array(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


def _made(tmp_path, net, *inputs, **options):
    """(the model for devices, the folder of its C)"""
    file = tmp_path / "model.ms"
    if isinstance(net, lite.Quantised):
        lite.convert(net, file=str(file))
    else:
        lite.convert(net, *map(Tensor, inputs), file=str(file), **options)
    made = lite.to_c(file, tmp_path / "c")
    model = lite.Model()
    model.build_from_file(str(file))
    return model, tmp_path / "c", made


def _runtime(model, inputs):
    return [tensor.get_data_to_numpy() for tensor in model.predict(list(inputs))]


def _masked_softmax(x, mask):
    return ops.softmax(ops.where(mask, x, -1e9), -1)


def _loop(x):
    i = ops.zeros((), ms.int32)
    while i < 5:
        if x.sum() > 3:
            x = x * 0.5
        else:
            x = x + 1
        i = i + 1
    return x


class Total(nn.Cell):
    def __init__(self):
        super().__init__()
        self.total = ms.Parameter(Tensor(np.ones((2, 3), np.float32)), requires_grad=False)

    def construct(self, x):
        self.total += x
        self.total[0, 1:] = 2 * x[1, :2]
        return self.total * 2


_INDEX = np.array([[0, 2], [1, 1], [2, 0]], np.int64)
CASES = {
    "add": (lambda x, y: x + y, _array(2, 3, 4), _array(3, 1)),
    "chain": (lambda x: ops.tanh(ops.exp(x) * 2 - ops.sigmoid(x)) / ops.sqrt(ops.abs(x) + 1), _array(5, 70)),
    "integers": (lambda x: (x * 7 // 3, x % 5, x > 2, x.astype(ms.float32) / 2), np.arange(-6, 6, dtype=np.int32)),
    "matmul": (ops.matmul, _array(3, 5), _array(5, 4)),
    "batches": (ops.matmul, _array(2, 1, 3, 5), _array(4, 5, 6)),
    "transposed": (lambda x, y: ops.matmul(x.swapaxes(0, 1), y), _array(5, 3), _array(5, 4)),
    "sum_rows": (lambda x: x.sum(-1), _array(3, 1500)),
    "sum_columns": (lambda x: x.sum(0, keepdims=True), _array(30, 7)),
    "sum_all": (lambda x: x.sum(), _array(4, 5, 6)),
    "sum_middle": (lambda x: x.sum((0, 2)), _array(4, 5, 6)),
    "extremes": (lambda x: (x.max(1), x.min(0), x.argmax(1), x.argmin(0)), _array(6, 9)),
    "softmax": (lambda x: ops.softmax(x, -1), _array(4, 100)),
    "softmax_across": (lambda x: ops.softmax(x, 1), _array(2, 5, 3)),
    "rows_of_one": (lambda x: (ops.softmax(x, 1), ops.log_softmax(x, 1), x.argmax(1), x.sum(1), x.std(1)), _array(4, 1, 3)),
    "masked": (_masked_softmax, _array(3, 8), _array(3, 8) > 0),
    "layer_norm": (nn.LayerNorm((65,)), _array(3, 65)),
    "gather": (lambda x, i: ops.gather_elements(x, 1, i), _array(3, 4), _INDEX),
    "index_select": (lambda x, i: ops.index_select(x, 0, i), _array(4, 3), np.array([3, 0, 0], np.int32)),
    "conv2d": (nn.Conv2d(3, 4, (3, 2), stride=(2, 1), pad_mode="pad", padding=(1, 0, 1, 2), has_bias=True), _array(2, 3, 7, 8)),
    "conv2d_groups": (nn.Conv2d(4, 6, 3, pad_mode="same", dilation=2, group=2), _array(1, 4, 9, 9)),
    "pools": (lambda x: (ops.max_pool2d(x, 3, 2, 1), ops.avg_pool2d(x, 2, 2), ops.adaptive_avg_pool2d(x, (3, 2))), _array(1, 2, 8, 9)),
    "concat": (lambda x, y: ops.cat((x, y, x), 1), _array(2, 3, 2), _array(2, 1, 2)),
    "split": (lambda x: [part * 2 for part in ops.split(x, 2, 1)], _array(3, 5)),
    "topk": (lambda x: ops.topk(x, 3), _array(4, 9)),
    "cumsum": (lambda x: ops.cumsum(x, 0), _array(6, 3)),
    "scatter_add": (lambda x, i, s: x.scatter_add(1, i, s), _array(3, 4), _INDEX, _array(3, 2)),
    "dropout": (nn.Dropout(p=0.5), _array(3, 4)),
    "dense": (nn.SequentialCell(nn.Dense(6, 5), nn.ReLU(), nn.Dense(5, 2)), _array(4, 6)),
    "loop": (_loop, _array(3)),
    "state": (Total(), _array(2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_c_equals_the_runtime(name, tmp_path):
    net, *inputs = CASES[name]
    model, folder, _ = _made(tmp_path, net, *inputs)
    other = [np.roll(array, 1, 0) for array in inputs]
    found = mcu.run_on_host(folder, [inputs, other])
    for results, given in zip(found, (inputs, other), strict=True):
        for result, wanted in zip(results, _runtime(model, given), strict=True):
            if wanted.dtype.kind == "f":  # fused multiply-adds depend on the processor
                np.testing.assert_allclose(result, wanted, rtol=2e-6, atol=2e-6)
            else:
                np.testing.assert_array_equal(result, wanted)


def test_what_has_no_c_is_named_all_at_once(tmp_path):
    def function(x):
        return ops.sort(x)[0], ops.flip(x, (0,)), ops.relu(x)

    with pytest.raises(NotImplementedError) as caught:
        _made(tmp_path, function, _array(4, 5))
    assert "2 steps" in str(caught.value) and "'sort'" in str(caught.value) and "'flip'" in str(caught.value)
    assert "test_lite_c.py" in str(caught.value)
    assert not (tmp_path / "c").exists()


def test_no_file_lies_where_one_of_morel_does(tmp_path):
    lite.convert(nn.Dense(3, 2), Tensor(_array(1, 3)), file=tmp_path / "model.ms")
    for name in ("dense_f32", "morel_tensor", "morel_scalar"):
        with pytest.raises(ValueError, match=f"'name' must not be '{name}'"):
            lite.to_c(tmp_path / "model.ms", tmp_path / "c", name=name)
    assert not (tmp_path / "c").exists()


def test_only_what_is_used_is_written(tmp_path):
    made = _made(tmp_path, ops.matmul, _array(2, 3), _array(3, 2))[2]
    assert made.files == [
        "matrix_product_f32.c", "model.c", "model.h", "model_weights.c", "model_weights.h", "morel_tensor.h",
    ]  # fmt: skip
    assert made.weight_bytes == 0 and made.arena_bytes == 3 * 64
    assert f"#define MODEL_ARENA_BYTES {made.arena_bytes}\n" in (tmp_path / "c" / "model.h").read_text()


class LeNet(nn.Cell):
    """Small, for images [1, 1, 28, 28]."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="pad", padding=2, has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1, self.fc2, self.fc3 = nn.Dense(400, 120), nn.Dense(120, 84), nn.Dense(84, 10)

    def construct(self, x):
        x = self.pool(ops.relu(self.conv1(x)))
        x = self.pool(ops.relu(self.conv2(x))).reshape(1, -1)
        return self.fc3(ops.relu(self.fc2(ops.relu(self.fc1(x)))))


def _int8_lenet(tmp_path):
    ms.set_seed(5)
    images = [_array(1, 1, 28, 28, seed=i) for i in range(20)]
    made = lite.quantise(
        LeNet(), Tensor(images[0]), calibration=images, input_data_type="INT8", output_data_type="INT8"
    )
    assert made.num_int8 == 5 and not made.in_float.keys() - {"max_pool2d_with_indices"}
    scale, zero = made.inputs[0]
    batches = [[np.clip(np.rint(image / scale) + zero, -128, 127).astype(np.int8)] for image in images[:10]]
    model, folder, sizes = _made(tmp_path, made)
    return model, folder, sizes, batches


def test_an_int8_network_needs_integers_only(tmp_path):
    model, folder, made, batches = _int8_lenet(tmp_path)
    text = "".join(file.read_text() for file in mcu.sources(folder))
    assert "float" not in text and "double" not in text and "malloc" not in text
    for results, given in zip(mcu.run_on_host(folder, batches), batches, strict=True):
        np.testing.assert_array_equal(results[0], _runtime(model, given)[0])
    # Weights as int8, 12 bytes a channel for bias and scale.
    assert made.weight_bytes < 61470 + 12 * 236 + 64
    assert made.arena_bytes < 8192


class Residual(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.dense = nn.Conv2d(2, 2, 3), nn.BatchNorm2d(2), nn.Dense(2 * 36, 4)

    def construct(self, x):
        return self.dense(ops.relu(self.norm(self.conv(x)) + x).reshape(1, -1))


def test_sums_of_int8(tmp_path):
    images = [_array(1, 2, 6, 6, seed=i) for i in range(8)]
    net = Residual().set_train(False)
    made = lite.quantise(net, Tensor(images[0]), calibration=images)
    model, folder, sizes = _made(tmp_path, made)
    assert "int8_add.c" in sizes.files
    batches = [[image] for image in images]
    for results, given in zip(mcu.run_on_host(folder, batches), batches, strict=True):
        np.testing.assert_array_equal(results[0], _runtime(model, given)[0])


@needs_boards
@pytest.mark.parametrize("board", mcu.BOARDS)
def test_int8_on_boards_has_the_same_bits(board, tmp_path):
    model, folder, made, batches = _int8_lenet(tmp_path)
    for results, given in zip(mcu.run_on_board(board, folder, batches), batches, strict=True):
        np.testing.assert_array_equal(results[0], _runtime(model, given)[0])
    flash, ram = mcu.size_on_board(board, folder)
    assert made.weight_bytes < flash < made.weight_bytes + 12000
    assert made.arena_bytes <= ram <= made.arena_bytes + 64


@needs_boards
@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an386"])
def test_float_on_boards(board, tmp_path):
    ms.set_seed(5)
    image = _array(1, 1, 28, 28)
    model, folder, _ = _made(tmp_path, LeNet(), image)
    found = mcu.run_on_board(board, folder, [[image]])
    np.testing.assert_allclose(found[0][0], _runtime(model, [image])[0], rtol=1e-4, atol=1e-5)
