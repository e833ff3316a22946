"""ONNX files: every operator's sample exported and run by ONNX Runtime at each opset and read back; networks with open sizes
and control flow; damaged files."""

import os

import numpy as np
import pytest
from samples import all_samples
from test_operators import arrays_of, run, tensor_of

import morel as ms
from morel import Tensor, _core, nn, ops

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

OPSETS = range(_core.onnx_opsets[0], _core.onnx_opsets[1] + 1)
# What no operator of ONNX says, by the names of samples.
WITHOUT_FORM = {"ops.complex", "ops.cummax", "ops.cummin", "ops.cumprod", "ops.masked_select"}


def exported(net, inputs, path, **options):
    """The path of the file, which onnx's checker has found right."""
    ms.export(net, *inputs, file_name=str(path), file_format="ONNX", **options)
    onnx.checker.check_model(str(path), full_check=True)
    return str(path)


def run_reference(path, arrays):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {given.name: array for given, array in zip(session.get_inputs(), arrays)})


def as_tuple(result):
    return result if isinstance(result, (tuple, list)) else (result,)


def same(actual, wanted, tolerance=1e-4):
    assert len(actual) == len(wanted)
    for mine, other in zip(actual, wanted):
        mine = mine.asnumpy() if isinstance(mine, Tensor) else mine
        other = other.asnumpy() if isinstance(other, Tensor) else other
        assert mine.dtype == other.dtype and mine.shape == other.shape
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


def check(net, inputs, path, **options):
    """Written, checked, run by ONNX Runtime and read back: always what the network itself gives."""
    wanted = as_tuple(net(*inputs))
    exported(net, inputs, path, **options)
    same(run_reference(str(path), [tensor.asnumpy() for tensor in inputs]), wanted)
    same(as_tuple(ms.onnx.load(path)(*inputs)), wanted)
    return onnx.load(str(path))


def _samples():
    for number, sample in enumerate(all_samples()):
        dtype = "float32" if "float32" in sample.dtypes else sample.dtypes[0]
        if dtype in ("float32", "int64", "int32", "bool") and not sample.name.startswith("Tensor.item"):
            yield pytest.param(sample, dtype, id=f"{sample.label}-{number}")


@pytest.mark.parametrize("sample,dtype", list(_samples()))
def test_samples(sample, dtype, tmp_path):
    tensors = [tensor_of(array, dtype) for array in arrays_of(sample, dtype)]
    wanted = as_tuple(run(sample, tensors))
    seen = set()
    for opset in OPSETS:
        path = tmp_path / f"{opset}.onnx"
        try:
            exported(lambda *given: run(sample, given), tensors, path, opset=opset)
        except NotImplementedError:
            assert sample.name in WITHOUT_FORM
            return
        nodes = str(onnx.load(str(path)).graph)
        if nodes in seen:  # as at an opset before, which has been run
            continue
        seen.add(nodes)
        assert sample.name not in WITHOUT_FORM
        same(run_reference(str(path), [tensor.asnumpy() for tensor in tensors]), wanted)
        same(as_tuple(ms.onnx.load(path)(*tensors)), wanted)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, pad_mode="pad", padding=(1, 0, 2, 1), group=1, has_bias=True)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(2, 2)
        self.dropout = nn.Dropout(p=0.3)
        self.fc = nn.Dense(8 * 9, 5)
        self.last = nn.LayerNorm((5,))

    def construct(self, x):
        y = self.pool(ops.relu(self.norm(self.conv(x))))
        y = self.dropout(y.reshape(x.shape[0], -1))
        return ops.softmax(self.last(self.fc(y)), -1)


def images(batch):
    return Tensor(np.random.default_rng(batch).standard_normal((batch, 3, 13, 12)).astype(np.float32))


@pytest.mark.parametrize("opset", [17, 22])
def test_network(opset, tmp_path):
    net = Net()
    net.norm.moving_mean.set_data(Tensor(np.linspace(-1, 1, 8).astype(np.float32)))
    net.set_train(False)
    model = check(net, [images(4)], tmp_path / "net.onnx", opset=opset)
    types = [node.op_type for node in model.graph.node]
    assert {"Conv", "BatchNormalization", "MaxPool", "Gemm", "LayerNormalization", "Softmax"} <= set(types)
    names = {tensor.name for tensor in model.graph.initializer}
    assert {"conv.weight", "norm.moving_mean", "fc.bias", "last.gamma"} <= names
    assert [value.name for value in model.graph.input] == ["x"]


@pytest.mark.parametrize("dtype", [ms.float16, ms.bfloat16, ms.float64, ms.int32, ms.bool_])
def test_conversions(dtype, tmp_path):
    x = Tensor(np.array([-1.5, 0.0, 2.5], np.float32))
    ms.export(lambda x: x.astype(dtype), x, file_name=str(tmp_path / "net.onnx"), file_format="ONNX")
    found = ms.onnx.load(str(tmp_path / "net.onnx"))(x)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.float().asnumpy(), x.astype(dtype).float().asnumpy())


def test_training_flags_come_back(tmp_path):
    net = Net().set_train()
    exported(net, [images(2)], tmp_path / "net.onnx")
    assert net.training and net.norm.training


def test_open_sizes(tmp_path):
    net = Net().set_train(False)
    path = exported(net, [images(4)], tmp_path / "net.onnx", dynamic_axes={"x": {0: "batch"}})
    cell = ms.onnx.load(path)
    for batch in (2, 3, 7):
        wanted = [net(images(batch))]
        same(run_reference(path, [images(batch).asnumpy()]), wanted)
        same(as_tuple(cell(images(batch))), wanted)
    shape = onnx.load(path).graph.input[0].type.tensor_type.shape
    assert [dim.dim_param or dim.dim_value for dim in shape.dim] == ["batch", 3, 13, 12]


def attend(x, scale):
    scores = ops.softmax(x @ x.swapaxes(1, 2) / x.shape[2] * scale, -1)
    parts = ops.split(scores @ x, 4, -1)
    return ops.concat([parts[1], parts[0]], -1).reshape(x.shape[0], -1), x[:, -1, ::2].sum(0) * x.shape[1]


def test_arithmetic_of_sizes(tmp_path):
    def data(batch, length):
        return Tensor(np.random.default_rng(7).standard_normal((batch, length, 8)).astype(np.float32))

    scale = Tensor(np.float32(0.3))
    axes = {"x": {0: "batch", 1: "length"}}
    path = exported(attend, [data(2, 3), scale], tmp_path / "attend.onnx", dynamic_axes=axes, output_names=["y", "z"])
    for sizes in ((2, 3), (5, 4)):
        wanted = attend(data(*sizes), scale)
        same(run_reference(path, [data(*sizes).asnumpy(), scale.asnumpy()]), wanted)
        same(ms.onnx.load(path)(data(*sizes), scale), wanted)


def test_fixed_size_is_told(tmp_path):
    def f(x):
        return x + 1 if x.shape[0] == 4 else x

    with pytest.raises(ValueError, match="fixes sizes that were to be open"):
        exported(f, [ops.ones((4, 2))], tmp_path / "f.onnx", dynamic_axes={"x": {0: "n"}})


def branches(x, y):
    if x.sum() > 0:
        z = x * y
        y = y + 1
    else:
        z = x - y
    return z, y


def collatz(n):
    turns = 0
    while n > 1:
        n = ops.where(n % 2 == 0, n // 2, 3 * n + 1)
        turns = turns + 1
    return n, turns


@pytest.mark.parametrize("sign", [1, -1])
def test_if(sign, tmp_path):
    inputs = [Tensor(np.full((2, 3), sign, np.float32)), Tensor(np.arange(3, dtype=np.float32))]
    model = check(branches, inputs, tmp_path / "if.onnx")
    assert "If" in [node.op_type for node in model.graph.node]


@pytest.mark.parametrize("start", [1, 27])
def test_while(start, tmp_path):
    tensor = Tensor(np.int64(start))
    path = exported(collatz, [Tensor(np.int64(5))], tmp_path / "loop.onnx")
    wanted = ms.jit(collatz)(tensor)
    same(run_reference(path, [tensor.asnumpy()]), wanted)
    for jit in (True, False):
        same(ms.onnx.load(path, jit=jit)(tensor), wanted)


def test_weights_in_another_file(tmp_path):
    net = nn.Dense(40, 30)
    path = exported(net, [ops.ones((2, 40))], tmp_path / "net.onnx", data_limit=1000)
    assert os.path.getsize(path + ".data") >= 40 * 30 * 4 > os.path.getsize(path)
    same([ms.onnx.load(path)(ops.ones((2, 40)))], [net(ops.ones((2, 40)))])
    os.truncate(path + ".data", 4000)
    with pytest.raises(ValueError, match=r"net\.onnx: byte \d+: the data of 'weight' has 4800 bytes"):
        ms.onnx.load(path)


def test_imported_network_is_a_cell(tmp_path):
    """It is compiled with what is around it, and its weights can be trained."""
    net = nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 1))
    x = Tensor(np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32))
    cell = ms.onnx.load(exported(net, [x], tmp_path / "net.onnx"), jit=False)

    def loss(x):
        return (cell(x) ** 2).sum()

    gradients = ms.grad(loss, None, cell.trainable_params())(x)
    wanted = ms.grad(lambda x: (net(x) ** 2).sum(), None, net.trainable_params())(x)
    by_name = dict(zip([parameter.name for parameter in net.trainable_params()], wanted))
    assert len(gradients) == 4
    for parameter, gradient in zip(cell.trainable_params(), gradients):
        same([gradient], [by_name[parameter.name]])
    same([ms.jit(lambda x: cell(x) + 1)(x)], [net(x) + 1])


def test_numbers_and_statistics_are_not_trained(tmp_path):
    net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).set_train(False)
    x = Tensor(np.ones((2, 1, 4, 4), np.float32))
    cell = ms.onnx.load(exported(lambda x: net(x) * 0.3 + 2.0, [x], tmp_path / "net.onnx"), jit=False)
    assert len(cell.trainable_params()) == len(net.trainable_params())


def test_all_refusals_at_once(tmp_path):
    def f(x):
        return ops.cumprod(x, 0) + ops.cummax(x, 0)[0]

    with pytest.raises(NotImplementedError, match=r"(?s)'cumprod'.*test_onnx\.py.*'cummax'"):
        exported(f, [ops.ones((2, 3))], tmp_path / "f.onnx")


def made(nodes, path, shape=(2, 3), opset=20):
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(nodes, "g", [value("x", 1, shape)], [value("y", 1, None)])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)]), str(path))
    return path


def test_unknown_nodes_at_once(tmp_path):
    node = onnx.helper.make_node
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Bernoulli", ["a"], ["b"], name="coin"),
        node("Mine", ["b"], ["y"], domain="my.domain"),
    ]
    path = made(nodes, tmp_path / "x.onnx")
    with pytest.raises(
        NotImplementedError, match=r"(?s)Bernoulli 'coin' \(byte \d+\): there is no operator.*my\.domain"
    ):
        ms.onnx.load(path)


def test_unknown_attribute_is_refused(tmp_path):
    path = made([onnx.helper.make_node("Elu", ["x"], ["y"], beta=3.0)], tmp_path / "x.onnx")
    with pytest.raises(NotImplementedError, match=r"'beta' is not known(?s:.)*node: Elu '', byte \d+ of .*x\.onnx"):
        ms.onnx.load(path)(ops.ones((2, 3)))


def test_sizes_in_other_integers(tmp_path):
    """Sizes go through int32, slices and joins before a shape is made of them: one graph serves all."""
    node, constant = onnx.helper.make_node, onnx.numpy_helper.from_array
    nodes = [
        node("Shape", ["x"], ["sizes"]),
        node("Cast", ["sizes"], ["small"], to=onnx.TensorProto.INT32),
        node("Constant", [], ["zero"], value=constant(np.array([0], np.int32))),
        node("Constant", [], ["one"], value=constant(np.array([1], np.int32))),
        node("Constant", [], ["rest"], value=constant(np.array([-1], np.int32))),
        node("Slice", ["small", "zero", "one"], ["first"]),
        node("Concat", ["rest", "first"], ["wanted"], axis=0),
        node("Cast", ["wanted"], ["shape"], to=onnx.TensorProto.INT64),
        node("Reshape", ["x", "shape"], ["y"]),
    ]
    cell = ms.onnx.load(made(nodes, tmp_path / "x.onnx"))
    for rows in (2, 3, 5):
        x = ops.ones((rows, 4))
        assert cell(x).shape == (4, rows)


def test_arguments(tmp_path):
    net, x = nn.Dense(2, 2), ops.ones((1, 2))
    with pytest.raises(NotImplementedError, match="MINDIR"):
        ms.export(net, x, file_name=str(tmp_path / "a"))
    with pytest.raises(ValueError, match="'opset' must be from 17 to 22"):
        exported(net, [x], tmp_path / "a.onnx", opset=16)
    with pytest.raises(ValueError, match="'dynamic_axes' names 'y'"):
        exported(net, [x], tmp_path / "a.onnx", dynamic_axes={"y": {0: "n"}})
    with pytest.raises(TypeError, match="must be Float32"):
        ms.onnx.load(exported(net, [x], tmp_path / "a.onnx"))(ops.ones((1, 2), ms.int32))


def test_damaged_files(tmp_path):
    """Every prefix, and thousands of changed bytes: an error or a model, never anything else."""
    whole = open(exported(branches, [ops.ones((2, 3)), ops.ones((3,))], tmp_path / "whole.onnx"), "rb").read()
    path = str(tmp_path / "damaged.onnx")
    rng = np.random.default_rng(3)
    damaged = [whole[:size] for size in range(len(whole))]
    for _ in range(3000):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), rng.integers(1, 4)):
            data[place] ^= 1 << rng.integers(0, 8)
        damaged.append(bytes(data))
    errors = 0
    for data in damaged:
        with open(path, "wb") as file:
            file.write(data)
        try:
            _core.open_onnx(path)
        except (ValueError, NotImplementedError) as error:
            errors += 1
            assert path in str(error)
    assert errors > len(whole) // 2


def test_names_do_not_meet(tmp_path):
    """Parameters called as inputs and outputs are get other names; two inputs or outputs of one name are refused."""
    net, x = nn.Dense(2, 2), ops.ones((1, 2))
    path = exported(net, [x], tmp_path / "a.onnx", input_names=["weight"], output_names=["bias"])
    (found,) = onnxruntime.InferenceSession(path).run(None, {"weight": x.asnumpy()})
    np.testing.assert_allclose(found, net(x).asnumpy(), rtol=1e-5, atol=1e-6)
    for inputs, outputs in ((["x"], ["x"]), ([""], ["y"])):
        with pytest.raises(ValueError, match="need names of their own"):
            exported(net, [x], tmp_path / "b.onnx", input_names=inputs, output_names=outputs)
    assert not (tmp_path / "b.onnx").exists()


@pytest.mark.parametrize("opset", [17, 22])
def test_bits_of_bool(opset, tmp_path):
    """ONNX has its operators on bits for integers only."""
    a, b = np.array([True, True, False]), np.array([True, False, False])
    path = exported(lambda a, b: (a & b, a | b, a ^ b, ~a), [Tensor(a), Tensor(b)], tmp_path / "a.onnx", opset=opset)
    found = onnxruntime.InferenceSession(path).run(None, {"a": a, "b": b})
    read = ms.onnx.load(path)(Tensor(a), Tensor(b))
    for one, other, wanted in zip(found, read, (a & b, a | b, a ^ b, ~a)):
        np.testing.assert_array_equal(one, wanted)
        np.testing.assert_array_equal(other.asnumpy(), wanted)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i, j: x[i],
        lambda x, i, j: x[:, i],
        lambda x, i, j: x[j, i],
        lambda x, i, j: x[:, i, j],
        lambda x, i, j: x[i, :, j],
        lambda x, i, j: x[[0, -1]],
    ],
)
def test_tensors_as_indices(function, tmp_path):
    """Several index tensors, negative ones, with other axes between; for all sizes of the axes."""
    x, i, j = ops.randn(3, 4, 5), Tensor([1, -1, 2]), Tensor([[0], [-2]], ms.int32)
    path = exported(
        function,
        [x, i, j],
        tmp_path / "x.onnx",
        input_names=["x", "i", "j"],
        dynamic_axes={"x": {0: "a", 1: "b", 2: "c"}},
    )
    session = onnxruntime.InferenceSession(path)
    names = [entry.name for entry in session.get_inputs()]
    for given in (x, ops.randn(6, 3, 4)):
        arrays = dict(zip(("x", "i", "j"), (given.asnumpy(), i.asnumpy(), j.asnumpy())))
        same(session.run(None, {name: arrays[name] for name in names}), [function(given, i, j)])
    same([ms.onnx.load(path)(x, i, j)], [function(x, i, j)])


@pytest.mark.parametrize("name", ["Identity", "HardSigmoid", "LpNormalization", "ReduceL2", "GatherND", "Conv", "LSTM"])
def test_nodes_without_inputs(name, tmp_path):
    helper = pytest.importorskip("onnx.helper")
    result = helper.make_tensor_value_info("y", 1, None)
    model = helper.make_model(helper.make_graph([helper.make_node(name, [], ["y"])], "g", [], [result]))
    (tmp_path / "a.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match=f"its input 0 is missing\nnode: {name}"):
        ms.onnx.load(tmp_path / "a.onnx", jit=False)()


@pytest.mark.parametrize("name", ["Concat", "Sum", "Mean", "Max", "Min"])
@pytest.mark.parametrize("inputs", [[""], ["x", ""], ["", "x"], ["x", "x", ""]])
def test_nodes_with_empty_inputs(name, inputs, tmp_path):
    """Operators of any number of operands."""
    node = onnx.helper.make_node(name, inputs, ["y"], **({"axis": 0} if name == "Concat" else {}))
    path = made([node], tmp_path / "x.onnx")
    with pytest.raises(ValueError, match=rf"its input {inputs.index('')} is missing\nnode: {name}"):
        ms.onnx.load(path, jit=False)(ops.ones((2, 3)))


def test_choices_among_sizes(tmp_path):
    """A shape in which -1 stands for the size that is there, as exporters write it: one graph serves all."""
    node, constant = onnx.helper.make_node, onnx.numpy_helper.from_array
    nodes = [
        node("Shape", ["x"], ["sizes"]),
        node("Constant", [], ["wanted"], value=constant(np.array([4, -1, -1]))),
        node("Constant", [], ["left"], value=constant(np.array([-1]))),
        node("Equal", ["wanted", "left"], ["is_left"]),
        node("Constant", [], ["one"], value=constant(np.array([1]))),
        node("Concat", ["one", "sizes"], ["all"], axis=0),
        node("Where", ["is_left", "all", "wanted"], ["shape"]),
        node("Expand", ["x", "shape"], ["y"]),
    ]
    cell = ms.onnx.load(made(nodes, tmp_path / "x.onnx"), jit=False)
    call = ms.jit(lambda x: cell(x))
    for rows in (2, 3, 5):
        assert call(ops.ones((rows, 7))).shape == (4, rows, 7)
    assert call.__compiled__.compiled == 1


def test_branch_by_size(tmp_path):
    """Which branch runs follows from a size: the other one is not built, and may not fit."""
    helper = onnx.helper

    def branch(name, sizes):
        result = helper.make_tensor_value_info(name, 1, None)
        node = helper.make_node("Split", ["x"], [name, *[f"{name}{i}" for i in range(sizes - 1)]], num_outputs=sizes)
        return helper.make_graph([node], name, [], [result])

    nodes = [
        helper.make_node("Size", ["x"], ["size"]),
        helper.make_node("Constant", [], ["four"], value_int=4),
        helper.make_node("Equal", ["size", "four"], ["is_four"]),
        helper.make_node("If", ["is_four"], ["y"], then_branch=branch("a", 4), else_branch=branch("b", 5)),
    ]
    cell = ms.onnx.load(made(nodes, tmp_path / "x.onnx", (4,)))
    assert cell(ops.ones((4,))).shape == cell(ops.ones((5,))).shape == (1,)


@pytest.mark.parametrize(
    "equation,shapes",
    [
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("...ij,...kj->...ki", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("i,j->ji", [(2,), (3,)]),
        ("ba,bc", [(2, 3), (2, 4)]),
        ("iij->j", [(3, 3, 2)]),
    ],
)
def test_einsum(equation, shapes, tmp_path):
    value = onnx.helper.make_tensor_value_info
    names = [f"x{i}" for i in range(len(shapes))]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Einsum", names, ["y"], equation=equation)],
        "g",
        [value(name, 1, shape) for name, shape in zip(names, shapes)],
        [value("y", 1, None)],
    )
    path = tmp_path / "x.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)]), str(path))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    same([ms.onnx.load(path)(*map(Tensor, arrays))], [np.einsum(equation, *arrays)])


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", [(9, 4), (3, 8)])
def test_resize(mode, sizes, tmp_path):
    """Along both axes, up and down; its gradient is that of a sum of weighted elements."""
    node, constant = onnx.helper.make_node, onnx.numpy_helper.from_array
    nodes = [
        node("Constant", [], ["sizes"], value=constant(np.array([1, 2, *sizes]))),
        node("Resize", ["x", "", "", "sizes"], ["y"], mode=mode, coordinate_transformation_mode="pytorch_half_pixel"),
    ]
    path = made(nodes, tmp_path / "x.onnx", (1, 2, 5, 7))
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)
    cell = ms.onnx.load(path)
    same([cell(Tensor(x))], run_reference(str(path), [x]))
    gradient = ms.grad(lambda x: cell(x).sum())(Tensor(x))
    np.testing.assert_allclose(gradient.sum(), 2 * sizes[0] * sizes[1], rtol=1e-5)


# All but cubic with "border", where ONNX Runtime differs from the reference.
WINDOWS = [(mode, padding) for mode in ("nearest", "linear", "cubic") for padding in ("zeros", "reflection")]
WINDOWS += [("nearest", "border"), ("linear", "border")]


@pytest.mark.parametrize("mode,padding_mode", WINDOWS)
@pytest.mark.parametrize("align_corners", [0, 1])
def test_grid_sample_of_one_row(mode, padding_mode, align_corners, tmp_path):
    rng = np.random.default_rng(0)
    x, grid = rng.random((1, 2, 1, 3), np.float32), rng.random((1, 4, 5, 2), np.float32) * 3 - 1.5
    value = onnx.helper.make_tensor_value_info
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    node = onnx.helper.make_node("GridSample", ["x", "grid"], ["y"], **options)
    inputs = [value("x", 1, x.shape), value("grid", 1, grid.shape)]
    graph = onnx.helper.make_graph([node], "g", inputs, [value("y", 1, None)])
    path = tmp_path / "x.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10), str(path))
    same([ms.onnx.load(path)(Tensor(x), Tensor(grid))], run_reference(str(path), [x, grid]))


def test_attention_of_a_cache(tmp_path):
    """Compiled once for all lengths of the cache, and the same as all positions at once."""
    node = onnx.helper.make_node(
        "Attention", ["x", "k", "v", "", "past_k", "past_v"], ["y", "all_k", "all_v"], is_causal=1
    )
    value = onnx.helper.make_tensor_value_info
    inputs = [value(name, 1, ["b", "h", name, 4]) for name in ("x", "k", "v", "past_k", "past_v")]
    graph = onnx.helper.make_graph([node], "g", inputs, [value(name, 1, None) for name in ("y", "all_k", "all_v")])
    path = tmp_path / "x.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)]), str(path))
    cell = ms.onnx.load(path)
    rng = np.random.default_rng(0)
    q, k, v = (Tensor(rng.standard_normal((1, heads, 9, 4)).astype(np.float32)) for heads in (4, 2, 2))
    whole = ops.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    for first in (3, 5, 6):
        y, all_k, all_v = cell(q[:, :, first:], k[:, :, first:], v[:, :, first:], k[:, :, :first], v[:, :, :first])
        same([y, all_k, all_v], [whole[:, :, first:], k, v])
