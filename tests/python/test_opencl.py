"""OpenCL as a device: every sample of the operators' table gives there what it gives on the CPU, forward and backward, or says
that there is no kernel; what moves between devices; error texts; training."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# Where PoCL keeps compiled kernels; it reads this when the first device is opened.
os.environ.setdefault("POCL_CACHE_DIR", str(Path(__file__).parents[2] / "build" / "pocl-cache"))
Path(os.environ["POCL_CACHE_DIR"]).mkdir(parents=True, exist_ok=True)

from samples import Fixed, all_errors, all_samples  # noqa: E402
from test_operators import arrays_of, compare, find, run, tensor_of  # noqa: E402

import morel as ms  # noqa: E402
from morel import Parameter, Tensor, _core, nn, ops  # noqa: E402

SAMPLES = all_samples()
OPERATORS = set(_core.operator_names())
# What must have a kernel: the others that are no loops, views or compositions may lack one.
WITH_KERNEL = {
    "add", "matmul", "sum", "softmax", "layer_norm", "gather", "gather_elements", "index_select", "conv2d", "concat", "topk",
    "cumsum", "dropout", "scatter_add_elements", "split", "sort", "dense", "max_pool2d", "index_put", "one_hot", "pad",
}  # fmt: skip


@pytest.fixture
def opencl():
    """New tensors lie on the device."""
    ms.set_device("OpenCL")
    yield
    ms.set_device("CPU")


def operator_of(sample):
    return getattr(find(sample.name), "op", sample.name.split(".")[-1])


def kind_of(sample):
    operator = operator_of(sample)
    return _core.describe_operator(operator)["kind"] if operator in OPERATORS else "python"


def on_device(sample, function):
    """function() with new tensors on OpenCL; None where it is refused, which must name the device and may be."""
    ms.set_device("OpenCL")
    try:
        return function()
    except NotImplementedError as error:
        assert "OpenCL:0" in str(error) and '.to("CPU")' in str(error) or "dimensions" in str(error), str(error)
        is_complex = "complex numbers" in str(error)
        assert is_complex or kind_of(sample) not in ("loop", "rows", "reduce", "view"), str(error)
        assert is_complex or operator_of(sample) not in WITH_KERNEL, str(error)
        return None
    finally:
        ms.set_device("CPU")


def results(sample, dtype):
    arrays = arrays_of(sample, dtype)
    forward = lambda: run(sample, [tensor_of(array, dtype) for array in arrays])  # noqa: E731
    return forward(), on_device(sample, forward)


def same(actual, wanted, dtype, sample):
    if actual is None:
        return
    assert actual.device == "OpenCL:0" and actual.dtype == wanted.dtype
    actual = actual.to("CPU")
    if wanted.dtype == ms.bfloat16:
        actual, wanted = actual.astype(ms.float32), wanted.astype(ms.float32)
    if kind_of(sample) in ("loop", "view") and dtype in ("float32", "int32", "bool"):
        np.testing.assert_array_equal(actual.asnumpy(), wanted.asnumpy())
    else:
        compare(actual, wanted.asnumpy(), dtype, sample.tolerance)


def cases(samples, dtype):
    return [
        pytest.param(sample, dtype, id=f"{sample.label}-{dtype}-{number}")
        for number, sample in enumerate(samples)
        if dtype in sample.dtypes
    ]


@pytest.mark.parametrize("sample,dtype", cases(SAMPLES, "float32"))
def test_float32(sample, dtype):
    wanted, actual = results(sample, dtype)
    same(actual, wanted, dtype, sample)


# Every seventh sample: a kernel is compiled for each dtype.
@pytest.mark.parametrize(
    "sample,dtype", [case for dtype in ("int32", "bool", "float16", "float64") for case in cases(SAMPLES[::7], dtype)]
)
def test_other_dtypes(sample, dtype):
    wanted, actual = results(sample, dtype)
    same(actual, wanted, dtype, sample)


@pytest.mark.parametrize("sample,dtype", cases(SAMPLES[::9], "float32"))
def test_strided_inputs(sample, dtype):
    arrays = arrays_of(sample, dtype)

    def strided():
        tensors = [tensor_of(array, dtype) for array in arrays]
        return run(sample, [ops.stack((x, x), x.ndim)[..., 0] if x.ndim else x for x in tensors])

    same(on_device(sample, strided), run(sample, [tensor_of(array, dtype) for array in arrays]), dtype, sample)


def gradient_cases():
    return [case for case in cases([s for s in SAMPLES if s.grad and s.output is None], "float32")][::3]


@pytest.mark.parametrize("sample,dtype", gradient_cases())
def test_gradients(sample, dtype):
    arrays = arrays_of(sample, dtype)
    places = [place for place, array in enumerate(arrays) if not isinstance(array, Fixed)]

    def gradients():
        tensors = [tensor_of(array, dtype) for array in arrays]

        def total(*given):
            inputs = dict(enumerate(tensors)) | dict(zip(places, given))
            return (run(sample, [inputs[place] for place in range(len(arrays))]) * 0.5).sum()

        return ms.grad(total, tuple(range(len(places))))(*[tensors[place] for place in places])

    wanted = gradients()
    actual = on_device(sample, gradients)
    if actual is None:
        return
    for one, other in zip(*[found if isinstance(found, tuple) else (found,) for found in (actual, wanted)]):
        assert one.device == "OpenCL:0"
        compare(one.to("CPU"), other.asnumpy(), dtype, 8 * sample.tolerance)


# -- life of a tensor --


def test_moves():
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert x.device == "CPU"
    y = x.to("opencl")
    assert y.device == "OpenCL:0" and y.to("OpenCL:0") is y and y.to("CPU").device == "CPU"
    np.testing.assert_array_equal(y.asnumpy(), x.asnumpy())
    assert x.move_to("OpenCL").device == "OpenCL:0" and x.to(y).device == "OpenCL:0"
    assert x.to(device="OpenCL", dtype=ms.int32).dtype == ms.int32 and x.to("CPU", copy=True) is not x
    assert y[1, 2].item() == 5 and float(y.sum()) == 15 and "5." in str(y) and y.tolist() == x.tolist()
    assert Tensor([1, 2], device="OpenCL").device == Parameter(x, device="OpenCL").device == "OpenCL:0"
    assert y.new_zeros((2,)).device == ops.zeros_like(y).device == "OpenCL:0" and x.to_("OpenCL").device == "OpenCL:0"


def test_views_share_memory():
    base = Tensor(np.zeros((4, 6), np.float32), device="OpenCL")
    base[1:3, ::2] = 5.0
    base.transpose()[0].add_(1.0)
    first, second = base.split(2)
    wanted = np.zeros((4, 6), np.float32)
    wanted[1:3, ::2] = 5
    wanted[:, 0] += 1
    np.testing.assert_array_equal(base.asnumpy(), wanted)
    np.testing.assert_array_equal((first + second.flip((0, 1))).asnumpy(), wanted[:2] + wanted[2:][::-1, ::-1])
    base[Tensor([0, 3], device="OpenCL")] = 7
    assert base[3].asnumpy().tolist() == [7] * 6


def test_empty_and_strided(opencl):
    x = Tensor(np.random.default_rng(1).standard_normal((6, 4, 5)).astype(np.float32))
    y = x[::2, :, 1:4].transpose(2, 0, 1)
    numbers = x.asnumpy()[::2, :, 1:4].transpose(2, 0, 1)
    np.testing.assert_allclose(ops.softmax(y, 1).sum(1).asnumpy(), np.ones((3, 4)), rtol=1e-6)
    for axes in (0, 1, 2, (0, 2), (1, 2), None):
        np.testing.assert_allclose(y.sum(axes).asnumpy(), numbers.sum(axes), rtol=1e-5, atol=1e-5)
    assert y.argmax(1).asnumpy().tolist() == numbers.argmax(1).tolist()
    empty = ops.zeros((0, 3))
    assert (empty + 1).shape == (0, 3) and empty.sum(0).asnumpy().tolist() == [0, 0, 0]
    assert ops.matmul(ops.ones((2, 0)), empty).asnumpy().tolist() == [[0] * 3] * 2


def test_long_sums_have_the_bits_of_the_cpu():
    x = Tensor(np.random.default_rng(2).standard_normal(100_003).astype(np.float32))
    assert x.sum().item() == x.to("OpenCL").sum().item() and x.max().item() == x.to("OpenCL").max().item()


def test_dropout_has_the_bits_of_the_cpu():
    found = []
    for device in ("CPU", "OpenCL"):
        ms.set_seed(5)
        x = Tensor(np.ones((37, 11), np.float32), device=device)
        found.append((ops.dropout(x, 0.3).asnumpy(), ms.mint.nn.functional.dropout(x, 0.5, True).asnumpy()))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_random_numbers_are_those_of_the_cpu(dtype):
    found = []
    for device in ("CPU", "OpenCL"):
        ms.set_seed(6)
        kind = getattr(ms, dtype)
        uniform, normal = [draw(41, 3, dtype=kind, device=device) for draw in (ms.mint.rand, ms.mint.randn)]
        whole = ms.mint.randint(-5, 9, (43,), device=device)
        assert uniform.device == normal.device == whole.device == ("CPU" if device == "CPU" else "OpenCL:0")
        found.append([tensor.asnumpy() for tensor in (uniform, whole, normal)])
    for one, other in list(zip(*found))[:2]:
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(found[0][2], found[1][2], rtol=2e-3 if dtype == "float16" else 2e-6, atol=1e-6)


IN_PLACE = {
    "uniform_": lambda x: x.uniform_(-1, 2),
    "random_": lambda x: x.random_(0, 10),
    "bernoulli_": lambda x: x.bernoulli_(0.3),
    "normal_": lambda x: x.normal_(1, 2),
    "fill_diagonal_": lambda x: x.fill_diagonal_(3.0),
    "mask": lambda x: x.__setitem__(x > 0.5, -1.0) or x,
    "mask_of_rows": lambda x: x.__setitem__(x[:, 0] > 0.5, x[0] * 2) or x,
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_changes_make_what_they_need_where_the_tensor_is(name):
    results = []
    for device in ("CPU", "OpenCL"):
        ms.set_seed(3)
        x = ms.ops.ones((5, 4)).to(device)
        assert IN_PLACE[name](x) is x and x.device.startswith(device)
        results.append(x.asnumpy())
    tolerance = 1e-5 if name == "normal_" else 0  # whose sine and logarithm come from the driver
    np.testing.assert_allclose(*results, rtol=tolerance, atol=tolerance)


def test_jacobians_are_made_where_the_tensor_is():
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    for jacobian in (ms.jacrev, ms.jacfwd):
        of_rows = jacobian(lambda x: (x * x).sum(1))
        result = of_rows(x.to("OpenCL"))
        assert result.device == "OpenCL:0"
        np.testing.assert_array_equal(result.asnumpy(), of_rows(x).asnumpy())


def test_gradient_follows_a_move():
    x = Tensor([1.0, 2.0, 3.0])
    gradient = ms.grad(lambda x: (x.to("OpenCL") ** 2).sum().to("CPU") * 2)(x)
    assert gradient.device == "CPU" and gradient.asnumpy().tolist() == [4, 8, 12]


# -- errors --

ERRORS = [
    (
        ValueError,
        "For 'Add', all tensors must be on one device, but 'input' is on CPU and 'other' on OpenCL:0; move one with "
        '.to("OpenCL:0")',
        lambda x: x + x.to("OpenCL"),
    ),
    (ValueError, r"'tensors\[0\]' is on OpenCL:0 and 'tensors\[1\]' on CPU", lambda x: ops.concat((x.to("OpenCL"), x))),
    (
        NotImplementedError,
        'For \'Nonzero\', there is no kernel for OpenCL:0; move the tensors with .to("CPU")',
        lambda x: ops.nonzero(x.to("OpenCL")),
    ),
    (NotImplementedError, "complex numbers are not supported on OpenCL:0", lambda x: x.to("OpenCL").astype(ms.complex64)),
    (NotImplementedError, "compiled functions run on the CPU only", lambda x: ms.jit(lambda y: y + 1)(x.to("OpenCL"))),
    (ValueError, "there is no device 'abacus'", lambda x: x.to("abacus")),
    (ValueError, "there is no device OpenCL:9", lambda x: x.to("OpenCL:9")),
    (IndexError, r"index 3 at position \[1\] is out of bounds for axis 0 with size 3", lambda x: ops.gather(
        x.to("OpenCL"), Tensor([0, 3], device="OpenCL"), 0)),
]  # fmt: skip


@pytest.mark.parametrize("error,text,call", ERRORS)
def test_error_texts(error, text, call):
    with pytest.raises(error, match=text.replace("(", r"\(").replace(")", r"\)") if "\\" not in text else text):
        call(Tensor([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("sample", all_errors()[::5])
def test_errors_are_those_of_the_cpu(sample, opencl):
    args, kwargs = sample.arguments()
    with pytest.raises((sample.error, NotImplementedError)):
        find(sample.name)(*args, **kwargs)


# -- training --


def train(device, optimizer):
    ms.set_device(device)
    try:
        rng = np.random.default_rng(3)
        net = nn.SequentialCell(
            nn.Conv2d(1, 4, 3, pad_mode="same"), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(64, 10)
        )
        for parameter in net.get_parameters():
            parameter.set_data(Tensor(0.1 * rng.standard_normal(parameter.shape).astype(np.float32)))
            assert parameter.device.startswith(device)
        images = Tensor(rng.standard_normal((5, 1, 8, 8)).astype(np.float32))
        labels = Tensor(rng.integers(0, 10, 5).astype(np.int32))
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        step = optimizer(net.trainable_params())
        gradient = ms.value_and_grad(lambda x, y: loss(net(x), y), None, step.parameters)
        losses = []
        for _ in range(3):
            value, gradients = gradient(images, labels)
            step(gradients)
            losses.append(value.item())
        return losses, [parameter.asnumpy() for parameter in net.get_parameters()]
    finally:
        ms.set_device("CPU")


@pytest.mark.parametrize(
    "optimizer",
    [lambda p: nn.Momentum(p, 0.1, 0.9), lambda p: nn.Adam(p, 0.01)],
    ids=["momentum", "adam"],
)
def test_training_is_that_of_the_cpu(optimizer):
    losses, weights = train("CPU", optimizer)
    found_losses, found_weights = train("OpenCL", optimizer)
    assert losses[-1] < losses[0]
    np.testing.assert_allclose(found_losses, losses, rtol=1e-5)
    for one, other in zip(found_weights, weights):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_states_lie_where_the_parameters_are():
    net = nn.Dense(3, 2)
    for parameter in net.get_parameters():
        parameter.to_("OpenCL")
    optimizer = nn.Adam(net.trainable_params(), 0.1)
    before = net.weight.asnumpy()
    _, gradients = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)(ops.ones((1, 3)).to("OpenCL"))
    optimizer(gradients)
    np.testing.assert_allclose(net.weight.asnumpy(), before - 0.1, rtol=1e-4, atol=1e-5)


def test_checkpoints_go_through_the_host(tmp_path):
    net = nn.Dense(3, 2)
    for parameter in net.get_parameters():
        parameter.to_("OpenCL")
    ms.save_checkpoint(net, str(tmp_path / "net.ckpt"))
    other = nn.Dense(3, 2)
    ms.load_checkpoint(str(tmp_path / "net.ckpt"), other)
    np.testing.assert_array_equal(other.weight.asnumpy(), net.weight.asnumpy())
    ms.load_param_into_net(net, ms.load_checkpoint(str(tmp_path / "net.ckpt")))
    assert net.weight.device == "OpenCL:0"


def test_facts(opencl):
    assert ms.get_current_device() == ("OpenCL", 0) and ms.get_context("device_target") == "OpenCL"
    assert ms.hal.is_available("OpenCL") and ms.hal.device_count("OpenCL") >= 1
    assert "OpenCL" in ms.hal.get_device_name(0, "OpenCL")
    ms.set_context(device_target="CPU")
    assert ops.ones((2,)).device == "CPU"


def python(script, **environment):
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **environment}
    )


def test_import_opens_no_driver():
    """Neither the import nor work on the CPU loads the driver of a device."""
    found = python(
        "import morel; (morel.ops.ones((2,)) + 1).asnumpy(); print('pocl' in open('/proc/self/maps').read())"
    )
    assert found.stdout.strip() == "False", found.stderr


def test_no_driver(tmp_path):
    found = python("import morel; morel.set_device('OpenCL')", OCL_ICD_VENDORS=str(tmp_path))
    assert "RuntimeError: OpenCL finds no device on this system; install a driver" in found.stderr
    found = python("import morel; print(morel.hal.is_available('OpenCL'))", OCL_ICD_VENDORS=str(tmp_path))
    assert found.stdout.strip() == "False", found.stderr
