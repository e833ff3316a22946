"""Models for devices: what a converted model gives is what PyNative mode gives, bit for bit, for every sample of the registry."""

import importlib.util
import subprocess
from pathlib import Path

import numpy as np
import pytest
from test_operators import SAMPLES, _every_sample, arrays_of, run, tensor_of

import morel as ms
from morel import Tensor, _core, lite, nn, ops

ROOT = Path(__file__).parents[2]
PROGRAM = Path(_core.__file__).resolve().parents[2] / "lite_predict"  # of the build folder; links libmorel_lite alone
# The shape of their result depends on values: not in a model.
DATA_DEPENDENT = {"ops.masked_select"}


def convert_and_build(path, function, *inputs, **options):
    lite.convert(function, *inputs, file=path, **options)
    model = lite.Model()
    model.build_from_file(str(path))
    return model


def same_bits(actual, wanted):
    assert actual.dtype == wanted.dtype and tuple(actual.shape) == tuple(wanted.shape)
    wanted = wanted.float() if wanted.dtype == ms.bfloat16 else wanted  # NumPy has no bfloat16
    np.testing.assert_array_equal(actual.get_data_to_numpy(), wanted.asnumpy())


CASES = [
    pytest.param(sample, dtype, id=f"{sample.label}-{dtype}-{number}")
    for number, sample in enumerate(SAMPLES)
    if sample.name not in DATA_DEPENDENT
    for dtype in sample.dtypes
    if dtype in ("float32", "int32", "bool", "bfloat16", "complex64")
]


@pytest.mark.parametrize("sample,dtype", CASES)
def test_sample(sample, dtype, tmp_path):
    tensors = [tensor_of(array, dtype) for array in arrays_of(sample, dtype)]
    ms.set_seed(1)
    wanted = run(sample, tensors)
    model = convert_and_build(tmp_path / "sample.ms", lambda *given: run(sample, given), *tensors)
    ms.set_seed(1)
    (actual,) = model.predict(tensors)
    same_bits(actual, wanted)


def test_bfloat16_goes_in_and_out_as_float32(tmp_path):
    model = convert_and_build(tmp_path / "twice.ms", lambda x: x * 2, Tensor([1.5, 2.0], ms.bfloat16))
    (given,) = model.get_inputs()
    given.set_data_from_numpy(np.array([3.0, 1 / 3], np.float32))
    (found,) = model.predict([given])
    assert found.dtype == ms.bfloat16
    np.testing.assert_array_equal(found.get_data_to_numpy(), np.array([6.0, 0.66796875], np.float32))
    with pytest.raises(ValueError, match="BFloat16"):
        given.set_data_from_numpy(np.array([3.0, 1.0]))


@pytest.mark.parametrize("sample", _every_sample(lambda sample: sample.name in DATA_DEPENDENT))
def test_shapes_that_depend_on_values(sample, tmp_path):
    tensors = [tensor_of(array, "float32") for array in arrays_of(sample, "float32")]
    with pytest.raises(NotImplementedError, match="shape of the result depends on values"):
        lite.convert(lambda *given: run(sample, given), *tensors, file=tmp_path / "sample.ms")
    assert not (tmp_path / "sample.ms").exists()


def lenet():
    spec = importlib.util.spec_from_file_location("lenet", ROOT / "examples/lenet_fashion_mnist.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("", ".dataset", ".nn", ".ops"):
            patch.setitem(__import__("sys").modules, "mindspore" + name, importlib.import_module("morel" + name))
        spec.loader.exec_module(module)
    ms.set_seed(3)
    return module.LeNet()


def images(count):
    return np.random.default_rng(count).standard_normal((count, 1, 28, 28)).astype(np.float32)


class TestLeNet:
    def test_every_batch_size_from_one_file(self, tmp_path):
        net = lenet()
        model = convert_and_build(tmp_path / "lenet.ms", net, Tensor(images(2)))
        assert [tensor.name for tensor in model.get_inputs()] == ["x"]
        sizes = []
        for count in (2, 7, 64, 3):
            model.resize(model.get_inputs(), [[count, 1, 28, 28]])
            (scores,) = model.predict([images(count)])
            assert scores.shape == [count, 10] and scores.name == "output0"
            np.testing.assert_allclose(
                scores.get_data_to_numpy(), net(Tensor(images(count))).asnumpy(), rtol=1e-5, atol=1e-6
            )
            sizes.append(model.arena_bytes)
        assert sizes[2] > 10 * sizes[3] > 0

    def test_of_one_size(self, tmp_path):
        net = lenet()
        model = convert_and_build(tmp_path / "lenet.ms", net, Tensor(images(1)), fixed_sizes=True)
        (scores,) = model.predict([images(1)])
        np.testing.assert_allclose(scores.get_data_to_numpy(), net(Tensor(images(1))).asnumpy(), rtol=1e-5, atol=1e-6)
        weights = sum(parameter.nbytes for parameter in net.get_parameters())
        assert weights <= model.weight_bytes <= weights + 10 * 4096
        with pytest.raises(ValueError, match="another size of a fixed axis"):
            model.resize(model.get_inputs(), [[2, 1, 28, 28]])

    @pytest.mark.skipif(not PROGRAM.exists(), reason="lite_predict is not built")
    def test_by_a_program_in_cpp(self, tmp_path):
        path = tmp_path / "lenet.ms"
        model = convert_and_build(path, lenet(), Tensor(images(2)))
        (tmp_path / "x.bin").write_bytes(images(5).tobytes())
        command = [PROGRAM, path, tmp_path / "x.bin", "--shape", "5,1,28,28", "--threads", "1"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        model.resize(model.get_inputs(), [[5, 1, 28, 28]])
        wanted = model.predict([images(5)])[0].get_data_to_numpy()
        np.testing.assert_array_equal(np.array(done.stdout.split(), np.float32).reshape(5, 10), wanted)
        assert f"arena {model.arena_bytes} bytes" in done.stderr
        linked = subprocess.run(["ldd", PROGRAM], check=True, capture_output=True, text=True).stdout
        assert "libmorel_lite" in linked and not any(
            name in linked for name in ("dnnl", "LLVM", "libmorel.so", "python")
        )
        path.write_bytes(path.read_bytes()[:500])
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 1 and "it is incomplete" in done.stderr


class TestControlFlow:
    def test_if(self, tmp_path):
        def choose(x):
            if x.sum() > 0:
                return x * 2, x.T
            return x - 1, x.T + 1

        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        model = convert_and_build(tmp_path / "if.ms", choose, Tensor(x))
        for given in (x, -x, x - 2.5):
            for actual, wanted in zip(model.predict([given]), choose(Tensor(given))):
                same_bits(actual, wanted)

    def test_while_within_if(self, tmp_path):
        def halve(x, limit):
            if limit > 0:
                while (x * x).sum() > limit:
                    x = x / 2 + 0.01
            return x

        x = np.linspace(-4, 4, 10, dtype=np.float32)
        model = convert_and_build(tmp_path / "while.ms", halve, Tensor(x), Tensor(1.0))
        for limit in (0.5, 3.0, 100.0, -1.0):
            (actual,) = model.predict([x, np.array(limit, np.float32)])
            same_bits(actual, halve(Tensor(x), Tensor(limit)))

    def test_a_state_whose_parts_change_places(self, tmp_path):
        def fibonacci(n):
            a, b, i = Tensor(0), Tensor(1), Tensor(0)
            while i < n:
                a, b, i = b, a + b, i + 1
            return a

        model = convert_and_build(tmp_path / "swap.ms", fibonacci, Tensor(5))
        for n, wanted in ((0, 0), (1, 1), (10, 55), (30, 832040)):
            assert model.predict([np.array(n)])[0].get_data_to_numpy() == wanted

    def test_recursion_is_refused(self, tmp_path):
        def factorial(n):
            if n < 2:
                return n
            return n * factorial(n - 1)

        with pytest.raises(NotImplementedError, match="no such control flow"):
            lite.convert(factorial, Tensor(5), file=tmp_path / "x.ms")


class Counter(nn.Cell):
    def __init__(self):
        super().__init__()
        self.total = ms.Parameter(Tensor(np.zeros(3, np.float32)), name="total", requires_grad=False)

    def construct(self, index, x):
        self.total.scatter_add_(0, index, x)
        return self.total * 1


def test_inputs_in_another_order(tmp_path):
    model = convert_and_build(tmp_path / "difference.ms", lambda x, y: x - y, Tensor([0.0, 0.0]), Tensor([0.0, 0.0]))
    first, second = model.get_inputs()
    first.set_data_from_numpy(np.array([1, 2], np.float32))
    second.set_data_from_numpy(np.array([5, 7], np.float32))
    (found,) = model.predict([second, first])
    np.testing.assert_array_equal(found.get_data_to_numpy(), [4, 5])


def test_state_is_kept_between_calls(tmp_path):
    net = Counter()
    index, x = np.array([0, 2, 0]), np.array([1, 2, 3], np.float32)
    model = convert_and_build(tmp_path / "state.ms", net, Tensor(index), Tensor(x))
    for calls in (1, 2, 3):
        (total,) = model.predict([index, x])
        np.testing.assert_array_equal(total.get_data_to_numpy(), np.array([4, 0, 2], np.float32) * calls)
    np.testing.assert_array_equal(net.total.asnumpy(), 0)


def test_several_results_and_shared_inputs(tmp_path):
    def function(x):
        left, right = ops.split(x, 3, 1)
        values, indices = ops.topk(x, 3)
        return x, x, left, right.sum(0), values, indices

    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    names = ["same", "again", "left", "right", "values", "indices"]
    model = convert_and_build(tmp_path / "x.ms", function, Tensor(x), output_names=names)
    outputs = model.predict([x])
    assert [output.name for output in outputs] == names
    for actual, wanted in zip(outputs, function(Tensor(x))):
        same_bits(actual, wanted)


def test_dropout_is_gone_in_models(tmp_path):
    net = nn.SequentialCell(nn.Dense(4, 4), nn.Dropout(p=0.9))
    net.set_train(True)
    x = np.ones((3, 4), np.float32)
    model = convert_and_build(tmp_path / "x.ms", net, Tensor(x))
    assert net.training and net[1].training
    net.set_train(False)
    same_bits(model.predict([x])[0], net(Tensor(x)))


def test_dropout_that_stays_gives_other_numbers_every_time(tmp_path):
    x = np.ones((50, 50), np.float32)
    model = convert_and_build(tmp_path / "x.ms", lambda x: ops.dropout(x, 0.5, True), Tensor(x))
    ms.set_seed(5)
    first, second = (model.predict([x])[0].get_data_to_numpy() for _ in range(2))
    ms.set_seed(5)
    np.testing.assert_array_equal(first, ops.dropout(Tensor(x), 0.5, True).asnumpy())
    assert (first != second).any()


class Normed(nn.Cell):
    """Batch norms behind convolutions of several layouts and a dense layer; one whose convolution has another reader."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1)
        self.wide = nn.Conv2d(8, 48, 3, stride=2, pad_mode="same", has_bias=True)
        self.grouped = nn.Conv2d(48, 32, 1, group=4)
        self.norms = nn.CellList([nn.BatchNorm2d(8), nn.BatchNorm2d(48), nn.BatchNorm2d(32)])
        self.dense, self.last = nn.Dense(32, 6), nn.BatchNorm1d(6)

    def construct(self, x):
        x = ops.relu(self.norms[0](self.first(x)))
        x = ops.max_pool2d(ops.relu(self.norms[1](self.wide(x))), 2, 2)
        x = self.grouped(x)
        return self.last(self.dense(ops.mean(x + self.norms[2](x), (2, 3))))


def test_batch_norm_goes_into_weights(tmp_path):
    ms.set_seed(6)
    net, rng = Normed().set_train(False), np.random.default_rng(6)
    for parameter in net.get_parameters():
        if "norms" in parameter.name or "last" in parameter.name:
            parameter.set_data(Tensor(rng.uniform(0.5, 2, parameter.shape).astype(np.float32)))
    x = rng.standard_normal((2, 3, 13, 11)).astype(np.float32)
    path = tmp_path / "x.ms"
    model = convert_and_build(path, net, Tensor(x))
    for count in (2, 5):
        x = rng.standard_normal((count, 3, 13, 11)).astype(np.float32)
        model.resize(model.get_inputs(), [list(x.shape)])
        (actual,) = model.predict([x])
        np.testing.assert_allclose(actual.get_data_to_numpy(), net(Tensor(x)).asnumpy(), rtol=1e-4, atol=1e-5)
    _, loops, _ = _core.LiteModel.build_from_file(str(path)).requirements()
    assert any("scale_shift" in name for name in loops)  # of the one with another reader
    assert not any("rsqrt" in name for name in loops)


@pytest.mark.parametrize("with_places", [True, False])
def test_places_of_maxima_are_there_if_they_are_read(with_places, tmp_path):
    def function(x):
        values, places = ops.max_pool2d(x, 3, 2, 1, return_indices=True)
        return (values, places) if with_places else values + 1

    x = np.random.default_rng(0).standard_normal((2, 3, 9, 8)).astype(np.float32)
    wanted = function(Tensor(x))
    model = convert_and_build(tmp_path / "x.ms", function, Tensor(x))
    for actual, one in zip(model.predict([x]), wanted if with_places else [wanted], strict=True):
        same_bits(actual, one)


def test_the_file_may_change_while_it_is_used(tmp_path):
    path, x = tmp_path / "x.ms", np.ones((2, 3000), np.float32)
    lite.convert(nn.Dense(3000, 4), Tensor(x), file=path)
    mapped, read = lite.Model(), lite.Model()
    mapped.build_from_file(path, context=lite.Context(map_file=True))
    read.build_from_file(path)
    wanted = mapped.predict([x])[0].get_data_to_numpy()
    path.write_bytes(b"")
    np.testing.assert_array_equal(read.predict([x])[0].get_data_to_numpy(), wanted)


class TestErrors:
    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "x.ms"
        lite.convert(lambda x: x.reshape(-1, 6) + 1, Tensor(np.ones((4, 3), np.float32)), file=path)
        return path

    def test_damaged_file(self, path):
        data = bytearray(path.read_bytes())
        data[100] ^= 4
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"x\.ms: byte 96: the section is damaged"):
            lite.Model().build_from_file(path)

    def test_other_files(self, path):
        path.write_bytes(b"\x20\x00\x00\x00MSL2" + bytes(100))
        with pytest.raises(NotImplementedError, match="model of MindSpore Lite"):
            lite.Model().build_from_file(path)
        with pytest.raises(OSError):
            lite.Model().build_from_file(path.with_name("missing.ms"))

    def test_inputs(self, path):
        model = lite.Model()
        with pytest.raises(RuntimeError, match="not built yet"):
            model.get_inputs()
        model.build_from_file(path)
        with pytest.raises(ValueError, match="needs? resize"):
            model.predict([np.ones((2, 3), np.float32)])
        with pytest.raises(ValueError, match="has 1 inputs"):
            model.predict([])

    def test_sizes_that_the_code_excludes(self, path):
        model = lite.Model()
        model.build_from_file(path)
        model.resize(model.get_inputs(), [[8, 3]])
        assert model.predict([np.ones((8, 3), np.float32)])[0].shape == [4, 6]
        for shape in ([5, 3], [1, 3]):
            with pytest.raises(ValueError, match="cannot be resized"):
                model.resize(model.get_inputs(), [shape])


def test_names_of_inputs_differ(tmp_path):
    with pytest.raises(ValueError, match="'input_names' must differ"):
        lite.convert(ops.add, ops.ones(2), ops.ones(2), file=tmp_path / "a.ms", input_names=["x", "x"])
    assert not (tmp_path / "a.ms").exists()


def test_what_a_library_for_one_device_must_have(tmp_path):
    # Kernels with the dtypes of their operands: products are a part that selects its dtypes by itself.
    path = tmp_path / "model.ms"
    x, index = Tensor(np.ones((3, 4), np.float32)), Tensor(np.zeros((3, 4), np.int64))
    lite.convert(lambda x, index: ops.gather_elements(ops.matmul(x, x.T) @ x, 1, index).sum(), x, index, file=path)
    kernels, loops, dtypes = _core.LiteModel.build_from_file(str(path)).requirements()
    float32, int64 = 1 << 11, 1 << 4  # of DType
    assert kernels == {"matrix_product": float32, "gemm": float32, "gather_elements": float32 | int64}
    assert {"sum.f32.f32.rows", "sum.f32.f32.columns"} == set(loops) and dtypes == float32 | int64


def test_prints_and_errors(tmp_path, capfd):
    def function(x):
        print("runs")
        if x.sum() < 0:
            raise ValueError(f"negative {x}")
        print("sum", x.sum())
        return x * 2

    path = tmp_path / "x.ms"
    model = convert_and_build(path, function, Tensor(np.ones(2, np.float32)))
    (result,) = model.predict([np.float32([1, 2])])
    assert result.get_data_to_numpy().tolist() == [2, 4] and capfd.readouterr().out == "runs\nsum 3.0\n"
    with pytest.raises(ValueError, match=r"negative \[-4.  2.\]"):
        model.predict([np.float32([-4, 2])])
