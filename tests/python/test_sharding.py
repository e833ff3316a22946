"""Every sample of every operator with its operands laid out in many ways on simulated meshes, against the call on whole tensors."""

import numpy as np
import pytest
from morel.parallel import (
    DTensor,
    Layout,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
    shard_module,
    simulated_world,
)
from samples import all_samples
from test_operators import arrays_of, run, tensor_of

import morel as ms
from morel import Tensor, _core, nn, ops

SHAPES = ((2,), (4,), (2, 2), (2, 4))
# Layouts that are tried for each recorded call of a sample; tools/prove/sharding.py tries all.
LIMIT = 40


@pytest.fixture(autouse=True)
def world():
    with simulated_world(8):
        yield


def mesh_of(shape):
    return _core.dist.mesh(list(shape), list("xyz")[: len(shape)], [])


def calls_of(sample):
    """The calls of operators that a sample makes: of composites as such, and of what they and its gradient are made of."""
    dtype = sample.dtypes[0]
    tensors = [tensor_of(array, dtype) for array in arrays_of(sample, dtype)]
    calls = _core.dist.record_calls(lambda: run(sample, tensors))
    places = tuple(place for place, tensor in enumerate(tensors) if tensor.dtype in (ms.float32, ms.float64))
    if sample.grad and places:
        step = ms.grad(lambda *given: run(sample, given).sum(), places)
        calls += _core.dist.record_calls(lambda: step(*tensors), of_composites=True)
    return [call for call in calls if call.has_tensors]


@pytest.mark.parametrize("sample", all_samples(), ids=lambda sample: sample.label)
def test_samples(sample):
    for call in calls_of(sample):
        for shape in SHAPES:
            trial = _core.dist.try_shardings(call, mesh_of(shape), LIMIT)
            assert not trial.failures, trial.failures[0]


# -- random numbers --
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_random_numbers_are_the_same_for_every_layout(shape, dtype):
    mesh, size, dtype = mesh_of(shape), (5, 6), getattr(ms, dtype)
    makers = [("random_uniform", [0.0, 1.0, dtype]), ("random_normal", [0.0, 1.0, dtype])]
    makers += [("random_truncated_normal", [0.0, 1.0, -2.0, 2.0, dtype]), ("random_integers", [0, 100, ms.int32])]
    for name, rest in makers:
        whole = None
        for sharding in _core.dist.all_shardings(mesh, 2, False):
            ms.set_seed(3)
            got = _core.dist.full_tensor(_core.dist.create(name, [size, *rest], sharding)).asnumpy()
            whole = got if whole is None else whole
            np.testing.assert_array_equal(got, whole)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_dropout_is_the_same_for_every_layout_and_in_the_gradient(shape):
    x = Tensor(np.random.default_rng(0).standard_normal((7, 6)).astype(np.float32))
    step = ms.value_and_grad(lambda x: (ops.dropout(x, 0.4) * x).sum())
    ms.set_seed(5)
    wanted = ops.dropout(x, 0.4).asnumpy()
    wanted_gradient = step(x)[1].asnumpy()
    for sharding in _core.dist.all_shardings(mesh_of(shape), 2, False):
        given = _core.dist.distribute(x, sharding)
        ms.set_seed(5)
        np.testing.assert_array_equal(ops.dropout(given, 0.4).full_tensor().asnumpy(), wanted)
        np.testing.assert_array_equal(step(given)[1].full_tensor().asnumpy(), wanted_gradient)


# -- distributed tensors --
def numbers(*shape):
    return Tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


def test_a_distributed_tensor_is_a_tensor_of_the_whole_shape():
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "mp"))
    x = distribute_tensor(numbers(6, 5), mesh, [Shard(0), Shard(1)])
    assert isinstance(x, DTensor) and not isinstance(numbers(2), DTensor)
    assert x.shape == (6, 5) and x.placements == (Shard(0), Shard(1)) and x.device_mesh == mesh
    assert [part.shape for part in x.to_local()] == [(3, 2), (3, 2), (3, 1), (3, 0)] * 2
    np.testing.assert_array_equal(x.full_tensor().asnumpy(), numbers(6, 5).asnumpy())
    with pytest.raises(RuntimeError, match="full_tensor"):
        x.asnumpy()
    with pytest.raises(ValueError, match="not"):
        numbers(2).full_tensor()


def test_views_whose_pieces_were_moved_are_not_written():
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
    x = distribute_tensor(numbers(2, 3), mesh, [Shard(0)])
    for view in (x[0], x[0:1], x[0:1][0], x[0, 1], x.T[:, 0]):
        with pytest.raises(NotImplementedError, match="had to be moved"):
            view.fill_(7)
    x[:, 0] = 7
    np.testing.assert_array_equal(x.full_tensor().asnumpy(), [[7, 1, 2], [7, 4, 5]])


def test_a_distributed_tensor_is_shown_by_its_parts(capsys):
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "mp"))
    x = distribute_tensor(Tensor(np.arange(8.0).reshape(4, 2)), mesh, [Shard(0), Replicate()])
    print(f"{x}", repr(x.sum()))
    shown = capsys.readouterr().out
    assert shown.startswith("DTensor(shape=[4, 2], dtype=Float64, layout=") and "dp" in shown
    assert "rank 1:\n[[0. 1.]\n [2. 3.]]" in shown and "rank 4:\n[[4. 5.]\n [6. 7.]]" in shown
    assert "DTensor(shape=[], dtype=Float64" in shown and "rank 0:\n6.0" in shown


def test_layouts_have_the_names_of_mindspore():
    layout = Layout((2, 2, 2), ("dp", "sp", "mp"))
    assert layout("dp", ("sp", "mp"), "None").tensor_map == (2, (1, 0), -1)
    assert layout("None", "mp").to_dict() == {
        "device_matrix": (2, 2, 2),
        "tensor_map": (-1, 0),
        "interleaved_parallel": False,
        "alias_name": ("dp", "sp", "mp"),
        "rank_list": (0, 1, 2, 3, 4, 5, 6, 7),
    }
    x = distribute_tensor(numbers(8, 3), layout(("mp", "dp"), "None"))
    assert x.layout == layout(("mp", "dp"), "None") and x.local_shape == (2, 3)
    assert ms.Layout is Layout and ms.reshard(x, layout("sp", "None")).layout == layout("sp", "None")
    assert x.redistribute(layout("None", "sp")).placements == (Replicate(), Shard(1), Replicate())


@pytest.mark.parametrize(
    "make,error",
    [
        (lambda: Layout([2, 2], ("a", "b")), TypeError),
        (lambda: Layout((2, 2), ("a",)), ValueError),
        (lambda: Layout((2, 2), ("a", "a")), ValueError),
        (lambda: Layout((2, -2), ("a", "b")), ValueError),
        (lambda: Layout((2, 2), ("a", "b"), [0, 1, 1, 2]), ValueError),
        (lambda: Layout((2, 2), ("a", "b"))("c"), ValueError),
        (lambda: Layout((2, 2), ("a", "b"))("a", "a"), ValueError),
        (lambda: Layout((2, 2), ("a", "b"))(None), ValueError),
        (lambda: distribute_tensor(numbers(2), init_device_mesh("cpu", (2,)), [Shard(1)]), ValueError),
        (lambda: distribute_tensor(numbers(2), init_device_mesh("cpu", (2,)), [Shard(0), Shard(0)]), ValueError),
        (lambda: distribute_tensor(numbers(2), Layout((16,), ("a",))("a")), ValueError),
        (lambda: init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))["c"], KeyError),
    ],
)
def test_layouts_that_are_none_are_refused(make, error):
    with pytest.raises(error):
        make()


def test_local_parts_become_a_tensor_and_are_differentiated():
    mesh = init_device_mesh("cpu", (4,))
    parts = [numbers(2, 3) + 10 * i for i in range(4)]
    np.testing.assert_array_equal(
        DTensor.from_local(parts, mesh, [Shard(0)]).full_tensor().asnumpy(),
        np.concatenate([part.asnumpy() for part in parts]),
    )
    np.testing.assert_array_equal(
        DTensor.from_local(parts, mesh, [Partial()]).full_tensor().asnumpy(), sum(part.asnumpy() for part in parts)
    )
    with pytest.raises(ValueError, match="position 3"):
        DTensor.from_local(parts, mesh, [Shard(0)], shape=(7, 3))

    def loss(x):
        return sum(((i + 1) * part * part).sum() for i, part in enumerate((x * 2).to_local()))

    x = distribute_tensor(numbers(4, 3), mesh, [Shard(0)])
    wanted = 8 * numbers(4, 3).asnumpy() * np.arange(1, 5)[:, None]
    np.testing.assert_allclose(ms.grad(loss)(x).full_tensor().asnumpy(), wanted)


class Mlp(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(6, 12, activation="tanh")
        self.second = nn.Dense(12, 4)

    def construct(self, x):
        return self.second(self.first(x))


PLANS = {
    "data": {},
    "tensor": {
        "first.weight": [Replicate(), Shard(0)],
        "first.bias": [Replicate(), Shard(0)],
        "second.weight": [Replicate(), Shard(1)],
    },
    "all": {"first.weight": [Shard(1), Shard(0)], "second.weight": [Shard(0), Shard(1)]},
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("optimizer", ["Momentum", "Adam"])
def test_training_steps_are_those_of_one_process(plan, optimizer):
    rng = np.random.default_rng(1)
    x, y = (Tensor(rng.standard_normal(shape).astype(np.float32)) for shape in ((8, 6), (8, 4)))

    def trained(mesh):
        ms.set_seed(2)
        net = Mlp()
        given = (x, y)
        if mesh:
            shard_module(net, mesh, PLANS[plan])
            given = [distribute_tensor(one, mesh, [Shard(0), Replicate()]) for one in given]
        rest = (0.1, 0.9) if optimizer == "Momentum" else (0.01,)
        update = getattr(nn, optimizer)(net.trainable_params(), *rest)
        step = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, net.trainable_params())
        for _ in range(3):
            loss, gradients = step(*given)
            update(gradients)
        return [one.full_tensor() if mesh else one for one in (loss, *net.get_parameters())]

    wanted = trained(None)
    got = trained(init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "mp")))
    for one, other in zip(got, wanted):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=2e-5, atol=2e-6)
