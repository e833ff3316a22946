"""Cell: registration, names, calls, hooks, custom gradients, state, copies, printed form, errors."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import morel as ms
from morel import Parameter, ParameterTuple, Tensor, nn, ops


def ones(*shape):
    return Tensor(np.ones(shape, np.float32))


def names(cell):
    return [param.name for param in cell.get_parameters()]


class Inner(nn.Cell):
    def __init__(self):
        super().__init__()
        self.unnamed = Parameter(ones(1))
        self.named = Parameter(ones(1), name="own")
        self.pair = ParameterTuple([Parameter(ones(1)), Parameter(ones(1), name="u")])
        self.layers = nn.CellList([nn.Dense(2, 2), nn.Dense(2, 2)])
        self.register_buffer("buffer", ones(3))
        self.register_buffer("transient", ones(1), persistent=False)

    def construct(self, x):
        return self.layers[1](self.layers[0](x))


class Outer(nn.Cell):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.first = nn.Dense(2, 2)
        self.second = self.first


LAYER_NAMES = ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]


def test_parameter_names_are_attribute_paths():
    inner = Inner()
    assert [name for name, _ in inner.parameters_and_names()] == ["unnamed", "named", "Parameter$1", "u", *LAYER_NAMES]
    assert names(inner) == ["unnamed", "own", "Parameter$1", "u", *LAYER_NAMES]
    assert list(inner.parameters_dict()) == names(inner)
    outer = Outer()
    paths = [name for name, _ in outer.parameters_and_names()]
    assert paths[:4] == ["inner.unnamed", "inner.named", "inner.Parameter$1", "inner.u"]
    # A cell under two names: found under the first, named after the last.
    assert paths[-2:] == ["first.weight", "first.bias"] and names(outer)[-2:] == ["second.weight", "second.bias"]
    assert [path for path, _ in outer.cells_and_names()] == [
        "",
        "inner",
        "inner.layers",
        "inner.layers.0",
        "inner.layers.1",
        "first",
    ]
    assert list(outer.name_cells()) == ["inner", "first"]


def test_equal_names_are_refreshed_at_the_first_call():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__(auto_prefix=False)
            self.a = nn.Dense(2, 2)
            self.b = nn.Dense(2, 2)

        def construct(self, x):
            return self.b(self.a(x))

    net = Net()
    assert names(net) == ["weight", "bias", "weight", "bias"]
    net(ones(1, 2))
    assert names(net) == ["a.weight", "a.bias", "b.weight", "b.bias"]


def test_update_cell_prefix():
    outer = Outer()
    outer.update_cell_prefix()
    assert outer.inner.layers[1].param_prefix == "inner.layers.1" and outer.param_prefix == ""


def test_assignments():
    cell = nn.Dense(2, 3)
    weight = cell.weight
    cell.weight = Tensor(np.full((3, 2), 7, np.float32))  # a tensor sets the parameter's data
    assert cell.weight is weight and (weight.asnumpy() == 7).all()
    cell.weight = Parameter(ones(3, 2), name="other")
    assert names(cell) == ["other", "bias"]
    cell.bias = None
    assert cell.bias is None and names(cell) == ["other"]
    with pytest.raises(TypeError, match="weight"):
        cell.weight = 3
    cell.plain = 3
    cell.plain = nn.ReLU()
    assert list(cell.name_cells()) == ["plain"]
    with pytest.raises(TypeError, match="plain"):
        cell.plain = 4
    del cell.plain
    assert not list(cell.cells()) and not hasattr(cell, "plain")
    cell._params["added"] = Parameter(ones(1), name="added")
    assert cell.added.name == "added"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cell.nothing  # noqa: B018


@pytest.mark.parametrize(
    "action, error",
    [
        (lambda cell: cell.insert_param_to_cell("a.b", None), KeyError),
        (lambda cell: cell.insert_param_to_cell("", None), KeyError),
        (lambda cell: cell.insert_param_to_cell("x", 1), TypeError),
        (lambda cell: cell.insert_param_to_cell("construct", None), KeyError),
        (lambda cell: cell.insert_child_to_cell("a.b", None), KeyError),
        (lambda cell: cell.insert_child_to_cell(1, None), TypeError),
        (lambda cell: cell.insert_child_to_cell("x", 1), TypeError),
        (lambda cell: cell.register_buffer("a.b", None), KeyError),
        (lambda cell: cell.register_buffer("weight", None), KeyError),
        (lambda cell: cell.register_buffer("x", 1), TypeError),
        (lambda cell: cell.to_float(ms.int32), ValueError),
        (lambda cell: cell.register_forward_hook(3), TypeError),
        (lambda cell: cell.set_boost("x"), ValueError),
        (lambda cell: cell.get_sub_cell("x.y"), AttributeError),
        (lambda cell: nn.Cell()(1), AttributeError),
        (lambda cell: cell.recompute(unknown=True), ValueError),
        (lambda cell: setattr(cell, "phase", 1), TypeError),
    ],
)
def test_misuse(action, error):
    with pytest.raises(error):
        action(nn.Dense(2, 2))


def test_forgotten_super_init():
    class Net(nn.Cell):
        def __init__(self):
            self.layer = nn.Dense(2, 2)

    with pytest.raises(AttributeError, match="__init__"):
        Net()


def test_modes_and_flags():
    net = Outer()
    assert not net.training
    net.set_train()
    assert net.training and net.inner.layers[0].training and net.phase == "train"
    net.set_train(False)
    assert not net.inner.layers[0].training and net.phase == "predict"
    net.add_flags_recursive(special=3)
    assert net.inner.special == 3 and net.inner.get_flags()["special"] == 3
    seen = []
    net.apply(lambda cell: seen.append(type(cell).__name__))
    assert seen == ["Dense", "Dense", "CellList", "Inner", "Dense", "Outer"]


def test_forward_hooks():
    cell = nn.Dense(2, 2)
    seen = []
    pre = cell.register_forward_pre_hook(lambda c, args: seen.append(("pre", c is cell, len(args))) or args[0] * 2)
    post = cell.register_forward_hook(lambda c, args, output: seen.append(("post", args[0].shape)) or output + 1)
    x = ones(1, 2)
    plain = cell.construct(x * 2).asnumpy() + 1
    np.testing.assert_allclose(cell(x).asnumpy(), plain, rtol=1e-6)
    assert seen == [("pre", True, 1), ("post", (1, 2))]
    pre.remove()
    post.remove()
    post.remove()
    np.testing.assert_allclose(cell(x).asnumpy(), cell.construct(x).asnumpy())
    assert len(seen) == 2

    class Scaled(nn.Cell):
        def construct(self, x, factor=1.0):
            return x * factor

    scaled = Scaled()
    scaled.register_forward_pre_hook(lambda c, args, kwargs: (args, {"factor": 5.0}), with_kwargs=True)
    scaled.register_forward_hook(lambda c, args, kwargs, output: output + kwargs["factor"], with_kwargs=True)
    assert (scaled(x, factor=2.0).asnumpy() == 10).all()


def test_backward_hooks_see_and_replace_gradients():
    class Product(nn.Cell):
        def construct(self, x, y):
            return x * y, x + y

    cell = Product()
    seen = []

    def hook(c, grad_input, grad_output):
        seen.append([gradient.asnumpy().tolist() for gradient in (*grad_input, *grad_output)])
        return grad_input[0] * 2, grad_input[1] * 3

    cell.register_backward_pre_hook(lambda c, grad_output: (grad_output[0] * 10, grad_output[1]))
    cell.register_backward_hook(hook)
    dx, dy = ms.grad(lambda a, b: cell(a, b)[0], (0, 1))(Tensor([1.0]), Tensor([2.0]))
    assert seen == [[[20.0], [10.0], [10.0], [0.0]]]
    assert dx.asnumpy().tolist() == [40.0] and dy.asnumpy().tolist() == [30.0]


def test_backward_hook_when_only_weights_are_trained():
    net = nn.SequentialCell(nn.Dense(2, 3), nn.Dense(3, 1))
    seen = []
    for number, cell in enumerate(net):
        cell.register_backward_hook(
            lambda c, gi, go, n=number: seen.append(
                (n, [None if g is None else g.shape for g in gi], [g.shape for g in go])
            )
        )
    ms.grad(net, None, net.trainable_params())(ones(4, 2))
    assert sorted(seen) == [(0, [None], [(4, 3)]), (1, [(4, 3)], [(4, 1)])]
    seen.clear()
    net(ones(4, 2))
    assert not seen


def test_custom_bprop():
    class Straight(nn.Cell):
        def construct(self, x, y=2.0):
            return ops.sign(x) * y

        def bprop(self, x, y, output, grad_output):
            assert output.shape == x.shape
            return grad_output * 5, None

    cell = Straight()
    x = Tensor([1.0, -3.0])
    assert cell(x).asnumpy().tolist() == [2.0, -2.0]
    assert ms.grad(cell)(x).asnumpy().tolist() == [5.0, 5.0]
    value, gradient = ms.value_and_grad(lambda t: (cell(t * 2) * 3).sum())(x)
    assert float(value.asnumpy()) == 0 and gradient.asnumpy().tolist() == [30.0, 30.0]

    class Wrong(Straight):
        def bprop(self, x, y, output, grad_output):
            return (grad_output,) * 3

    with pytest.raises(TypeError, match="bprop"):
        ms.grad(Wrong())(x)


def test_to_float_computes_in_half_and_trains_in_float():
    net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2)).to_float(ms.float16)
    x = Tensor(np.random.RandomState(0).rand(3, 4).astype(np.float32))
    assert net(x).dtype == ms.float16 and net[0].weight.dtype == ms.float32
    gradients = ms.grad(lambda t: net(t).astype(ms.float32).sum(), None, net.trainable_params())(x)
    assert {str(gradient.dtype) for gradient in gradients} == {"Float32"}
    assert net[0].weight is net.get_sub_cell("0").weight


def test_state_dict_round_trip():
    source, target = Outer(), Outer()
    state = source.state_dict()
    keys = [
        "inner.unnamed",
        "inner.named",
        "inner.Parameter$1",
        "inner.u",
        "inner.buffer",
        *(f"inner.{name}" for name in LAYER_NAMES),
        "first.weight",
        "first.bias",
        "second.weight",
        "second.bias",
    ]
    assert list(state) == keys
    source.inner.buffer.fill_(4)
    assert target.load_state_dict(source.state_dict()) == ([], [])
    for key, value in target.state_dict().items():
        np.testing.assert_array_equal(value.asnumpy(), state[key].asnumpy())
    assert target.first.weight is not source.first.weight


def test_buffers():
    from morel.common.parameter import _Buffer

    net = nn.SequentialCell(nn.ReLU())
    net.mean = _Buffer(Tensor([1.0, 2.0]))
    net.scratch = _Buffer(Tensor([3.0]), persistent=False)
    assert [name for name, _ in net.named_buffers()] == ["mean", "scratch"] and list(net.state_dict()) == ["mean"]
    net.mean = Tensor([5.0, 6.0])  # replaces the buffer's value
    assert net.get_buffer("mean").asnumpy().tolist() == [5, 6] and not list(net.get_parameters())
    net.mean = None
    assert list(net.state_dict()) == [] and len(list(net.buffers())) == 1
    outer = nn.CellList([net])
    assert [name for name, _ in outer.named_buffers("root")] == ["root.0.scratch"]
    with pytest.raises(AttributeError):
        net.get_buffer("0.missing")


def test_load_state_dict_reports_everything():
    net = nn.Dense(2, 3)
    state = dict(nn.Dense(2, 3).state_dict())
    state["extra"] = state.pop("bias")
    state["weight"] = ones(2, 2)
    with pytest.raises(RuntimeError) as info:
        net.load_state_dict(state)
    text = str(info.value)
    assert "Missing key(s)" in text and "bias" in text and "extra" in text and "(2, 2)" in text
    del state["weight"]
    missing, unexpected = net.load_state_dict(state, strict=False)
    assert sorted(missing) == ["bias", "weight"] and unexpected == ["extra"]
    with pytest.raises(TypeError):
        net.load_state_dict(3)


def test_state_dict_hooks_and_extra_state():
    class Counter(nn.Cell):
        def __init__(self):
            super().__init__()
            self.count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    counter = Counter()
    counter.count = 5
    counter.register_state_dict_post_hook(lambda cell, state, prefix, metadata: state.update(note="x") or None)
    state = counter.state_dict()
    assert state == {"_extra_state": {"count": 5}, "note": "x"}
    other = Counter()
    other.register_load_state_dict_pre_hook(lambda cell, entries, *rest: entries.pop("note", None) and None)
    other.load_state_dict(state)
    assert other.count == 5


def test_copies_are_independent():
    net = Outer()
    twin = copy.deepcopy(net)
    assert names(twin) == names(net) and twin.second is twin.first
    twin.first.weight.fill_(9)
    assert not (net.first.weight.asnumpy() == 9).any()
    assert twin.inner.layers[0].weight is twin.get_sub_cell("inner.layers.0")._params["weight"]
    shallow = copy.copy(net)
    shallow.extra = nn.ReLU()
    assert "extra" not in net.name_cells() and shallow.first is net.first
    again = pickle.loads(pickle.dumps(nn.Dense(2, 3).set_train()))
    assert again.training and [p.name for p in again.trainable_params()] == ["weight", "bias"]


def test_a_cell_is_freed_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        net = nn.SequentialCell(nn.Dense(3, 3), nn.BatchNorm1d(3))
        net.register_forward_hook(lambda cell, args, output: None)
        ms.grad(net, None, net.trainable_params())(ones(2, 3))
        dead = [weakref.ref(net), weakref.ref(net[0].weight), weakref.ref(net[1])]
        del net
        assert [reference() for reference in dead] == [None] * 3
    finally:
        gc.enable()


def test_parameters():
    assert str(Parameter(3).dtype) == "Int32" and str(Parameter(3.0).dtype) == "Float32"
    assert str(Parameter(np.ones(2)).dtype) == "Float64" and Parameter([1, 2]).shape == (2,)
    data = ones(2)
    param = Parameter(data, name=" w ")
    data.fill_(5)
    assert param.name == "w" and param.asnumpy().tolist() == [1, 1]  # owns its storage
    assert repr(param) == "Parameter (name=w, shape=(2,), dtype=Float32, requires_grad=True)"
    assert param.set_data(Tensor([7, 8])) is param and param.asnumpy().tolist() == [7, 8]
    assert param.dtype == ms.float32
    assert param.set_data(Tensor([[1, 2, 3]])).shape == (1, 3) and param.dtype == ms.float32  # another shape
    param.set_dtype(ms.float16).set_data(Tensor([7.0, 8.0]))
    assert param.dtype == ms.float16 and param.asnumpy().tolist() == [7, 8]
    param.set_dtype(ms.float32)
    gradient = ms.grad(lambda: (param * 3).sum(), None, param)()
    assert gradient.dtype == ms.float32 and gradient.asnumpy().tolist() == [3, 3]
    twin = param.clone("zeros")
    assert twin.name == "w" and twin.asnumpy().tolist() == [0, 0] and param.asnumpy().tolist() == [7, 8]
    twin.name = "other"
    assert param.name == "w"
    assert {param: 1}[param] == 1 and isinstance(param.value(), Tensor) and not isinstance(param.value(), Parameter)
    unpickled = pickle.loads(pickle.dumps(Parameter(Tensor([1.5], ms.bfloat16), "p", False)))
    assert unpickled.name == "p" and not unpickled.requires_grad and unpickled.dtype == ms.bfloat16
    assert [p.name for p in ParameterTuple([param, twin]).clone("m")] == ["m.w", "m.other"]


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: Parameter(True), ValueError),
        (lambda: Parameter("a"), TypeError),
        (lambda: Parameter(1.0, name=3), ValueError),
        (lambda: Parameter(1.0, requires_grad=1), TypeError),
        (lambda: Parameter(1.0, layerwise_parallel=1), TypeError),
        (lambda: Parameter(1, "a").set_data(1.5), TypeError),
        (lambda: Parameter(1.0).set_data("a"), TypeError),
        (lambda: ParameterTuple([1]), TypeError),
        (lambda: ParameterTuple([Parameter(1.0, name="a"), Parameter(1.0, name="a")]), ValueError),
    ],
)
def test_parameter_errors(make, error):
    with pytest.raises(error):
        make()


def test_containers():
    net = nn.SequentialCell(nn.Dense(2, 2), nn.ReLU())
    assert net.append(nn.Dense(2, 2)) is net and names(net)[2:] == ["2.weight", "2.bias"]
    assert names(net[1:]) == ["2.weight", "2.bias"] and len(net) == 3 and isinstance(net[-2], nn.ReLU)
    net[1] = nn.Tanh()
    assert isinstance(list(net)[1], nn.Tanh)
    x = ones(1, 2)
    np.testing.assert_allclose(net(x).asnumpy(), net[2](ops.tanh(net[0](x))).asnumpy())
    del net[0]
    assert names(net) == ["1.weight", "1.bias"]
    np.testing.assert_allclose(net(x).asnumpy(), net[1](ops.tanh(x)).asnumpy())

    cells = nn.CellList([nn.Dense(2, 2)])
    cells.insert(0, nn.Dense(2, 3))
    cells += [nn.Dense(2, 4)]
    assert names(cells) == [f"{n}.{kind}" for n in range(3) for kind in ("weight", "bias")]
    assert [cell.out_channels for cell in cells] == [3, 2, 4] and cells[-1].out_channels == 4
    del cells[1]
    assert names(cells)[2:] == ["1.weight", "1.bias"] and len(cells[:1]) == 1
    assert nn.CellList() and len(nn.CellList()) == 0

    table = nn.CellDict({"a": nn.Dense(2, 2)})
    table["b"] = nn.ReLU()
    table.update([("c", nn.Dense(2, 2))])
    assert list(table.keys()) == ["a", "b", "c"] and "b" in table and names(table)[2:] == ["c.weight", "c.bias"]
    assert isinstance(table.pop("b"), nn.ReLU) and len(table) == 2
    table.clear()
    assert not list(table.values()) and repr(table) == "CellDict()"


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: nn.SequentialCell(1), TypeError),
        (lambda: nn.SequentialCell(nn.ReLU())[3], IndexError),
        (lambda: nn.SequentialCell(nn.ReLU())["a"], TypeError),
        (lambda: nn.SequentialCell(nn.ReLU()).append(1), TypeError),
        (lambda: nn.CellList([1]), TypeError),
        (lambda: nn.CellList([nn.ReLU()])[7], IndexError),
        (lambda: nn.CellList([nn.ReLU()]).insert(9, nn.ReLU()), IndexError),
        (lambda: nn.CellList(3), TypeError),
        (lambda: nn.CellList([nn.ReLU()])(1), NotImplementedError),
        (lambda: nn.CellDict({"a": 1}), TypeError),
        (lambda: nn.CellDict({"a.b": nn.ReLU()}), KeyError),
        (lambda: nn.CellDict({"keys": nn.ReLU()}), KeyError),
        (lambda: nn.CellDict({1: nn.ReLU()}), TypeError),
        (lambda: nn.CellDict()["z"], KeyError),
    ],
)
def test_container_errors(make, error):
    with pytest.raises(error):
        make()


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: nn.Dense(-1, 2), ValueError, "in_channels"),
        (lambda: nn.Dense("a", 2), TypeError, "in_channels"),
        (lambda: nn.Dense(2, 2, has_bias=1), TypeError, "has_bias"),
        (lambda: nn.Dense(2, 2, "foo"), ValueError, "foo"),
        (lambda: nn.Dense(2, 2, ones(3, 3)), ValueError, "weight_init"),
        (lambda: nn.Dense(2, 2, activation=ops.relu), TypeError, "activation"),
        (lambda: nn.Dense(2, 2, activation="zz"), KeyError, "name"),
        (lambda: nn.Conv2d(3, 4, 3, pad_mode="x"), ValueError, "pad_mode"),
        (lambda: nn.Conv2d(3, 4, 0), ValueError, "kernel_size"),
        (lambda: nn.Conv2d(3, 4, 3, group=2), ValueError, "group"),
        (lambda: nn.Conv2d(3, 4, 3, padding=1), ValueError, "padding"),
        (lambda: nn.Conv2d(3, 4, (3, 3, 3)), ValueError, "kernel_size"),
        (lambda: nn.Dropout(p=1.0), ValueError, "'p'"),
        (lambda: nn.Dropout(1.2), ValueError, "keep_prob"),
        (lambda: nn.BatchNorm2d(0), ValueError, "num_features"),
        (lambda: nn.BatchNorm2d(3, momentum=2), ValueError, "momentum"),
        (lambda: nn.BatchNorm2d(3)(ones(2, 3)), ValueError, "BatchNorm2d"),
        (lambda: nn.LayerNorm(4), TypeError, "normalized_shape"),
        (lambda: nn.GroupNorm(3, 4), ValueError, "num_groups"),
        (lambda: nn.Embedding(3, 2, padding_idx=5), ValueError, "padding_idx"),
        (lambda: nn.MaxPool2d(0), ValueError, "kernel_size"),
        (lambda: nn.MaxPool2d(2, pad_mode="z"), ValueError, "pad_mode"),
        (lambda: nn.MaxPool2d(2, padding=1), ValueError, "padding"),
        (lambda: nn.Softmax("a"), TypeError, "axis"),
        (lambda: nn.MSELoss("x"), ValueError, "reduction"),
        (lambda: nn.MSELoss()(1, 2), TypeError, "logits"),
        (lambda: nn.CrossEntropyLoss()(ones(2, 3), ones(3, 2)), ValueError, "labels"),
        (lambda: nn.MultiheadAttention(10, 3), ValueError, "num_heads"),
        (lambda: nn.TransformerEncoderLayer(8, 2, activation="tanh"), ValueError, "activation"),
        (lambda: nn.Flatten(5)(ones(2, 2)), ValueError, "start_dim"),
        (lambda: nn.GLU()(ones(3)), ValueError, "GLU"),
        (lambda: nn.Dense(3, 2)(ones(2, 2)), ValueError, "dense|Dense"),
        (lambda: nn.Conv2d(3, 4, 3)(ones(1, 2, 8, 8)), ValueError, "channels"),
        (lambda: nn.get_activation("nope", "Net"), KeyError, "Net"),
    ],
)
def test_layer_errors(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_dropout():
    ms.set_seed(3)
    x = ones(200, 100)
    layer = nn.Dropout(p=0.25)
    assert layer(x) is x
    layer.set_train()
    out = layer(x).asnumpy()
    assert abs((out == 0).mean() - 0.25) < 0.01 and np.allclose(out[out != 0], 4 / 3)
    channels = nn.Dropout2d(p=0.5).set_train()(ones(40, 50, 2, 3)).asnumpy().reshape(2000, 6)
    assert (channels == channels[:, :1]).all() and abs((channels[:, 0] == 0).mean() - 0.5) < 0.05
    assert set(np.unique(channels)) == {0.0, 2.0}
    half = nn.Dropout(0.9).set_train()  # the old meaning: keep_prob
    assert abs((half(x).asnumpy() == 0).mean() - 0.1) < 0.01


def test_attention_masks():
    ms.set_seed(1)
    layer = nn.MultiheadAttention(8, 2)
    rng = np.random.RandomState(0)
    x = Tensor(rng.rand(5, 3, 8).astype(np.float32))
    causal = np.triu(np.ones((5, 5), bool), 1)
    padding = np.zeros((3, 5), bool)
    padding[1, 3:] = True
    out, weights = layer(
        x, x, x, attn_mask=Tensor(causal), key_padding_mask=Tensor(padding), average_attn_weights=False
    )
    weights = weights.asnumpy()
    assert weights.shape == (3, 2, 5, 5) and np.allclose(weights.sum(-1), 1, atol=1e-5)
    assert (weights[:, :, causal] == 0).all() and (weights[1, :, :, 3:] == 0).all()
    additive = Tensor(np.where(causal, -np.inf, 0).astype(np.float32))
    same, _ = layer(x, x, x, attn_mask=additive, key_padding_mask=Tensor(padding))
    np.testing.assert_allclose(out.asnumpy(), same.asnumpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="attn_mask"):
        layer(x, x, x, attn_mask=Tensor(np.zeros((4, 4), bool)))
    with pytest.raises(ValueError, match="key_padding_mask"):
        layer(x, x, x, key_padding_mask=Tensor(np.zeros((3, 5), np.int32)))
