"""Memory of compiled functions: results stay what they are, nothing is allocated but them, the plan is tight."""

import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, _core, nn, ops


def normal(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def same(a, b):
    np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def only_graph(function):
    (graph,) = function.__compiled__.graphs
    return graph


def test_results_of_two_calls_are_independent():
    @ms.jit
    def f(x):
        y = ops.exp(x) @ x
        return y, y.T, y[1:]

    x, other = normal(8, 8), normal(8, 8, seed=1)
    first = f(x)
    kept = [part.asnumpy().copy() for part in first]
    second = f(other)
    for part, values in zip(first, kept):
        np.testing.assert_array_equal(part.asnumpy(), values)
    second[0].copy_(first[0])
    same(f(other)[0], ms.jit(lambda x: ops.exp(x) @ x)(other))


def test_arguments_may_be_returned_and_changed_later():
    @ms.jit
    def f(x):
        return x, x.T, ops.relu(x).T

    x = normal(3, 4)
    a, b, c = f(x)
    x += 1
    same(a, x)
    same(b, x.T)
    assert not np.array_equal(c.asnumpy(), ops.relu(x).T.asnumpy())


def test_parameters_change_in_place():
    total = Parameter(Tensor(np.zeros((4, 4), np.float32)), name="total")

    @ms.jit
    def f(x):
        before = total * 1
        total.copy_(total + ops.exp(x) * 2)
        return before, total * 1

    x = normal(4, 4)
    added = (ops.exp(x) * 2).asnumpy()
    for step in range(3):
        before, after = f(x)
        np.testing.assert_allclose(before.asnumpy(), step * added, rtol=1e-6)
        np.testing.assert_allclose(after.asnumpy(), (step + 1) * added, rtol=1e-6)
    total.set_data(Tensor(np.ones((4, 4), np.float32)))
    same(f(x)[0], Tensor(np.ones((4, 4), np.float32)))


def loops_of_views(x):
    y = ops.exp(x)
    i = x.sum() * 0
    while i < 3:
        y, x = x.T, y + 1
        i = i + 1
    return x, y.T


def branches_that_give_an_operand(x):
    y = ops.exp(x)
    z = ops.tanh(y) if x.sum() > 0 else y.T
    return z + y, z


def gradient_of_a_loop(x):
    def total(x):
        y = ops.tanh(x)
        i = x.sum() * 0
        while i < 4:
            y = ops.sin(y) * x
            i = i + 1
        return y.sum()

    return ms.grad(total)(x), x @ x


@pytest.mark.parametrize("function", [loops_of_views, branches_that_give_an_operand, gradient_of_a_loop])
def test_states_of_control_flow(function):
    compiled = ms.jit(function)
    for seed in range(4):
        x = normal(5, 5, seed=seed)
        for found, wanted in zip(compiled(x), function(x)):
            np.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-6)


def test_shapes_may_alternate():
    @ms.jit
    def f(x):
        return ops.softmax(ops.tanh(x @ x.T)) @ x

    inputs = [normal(n, 7, seed=n) for n in range(2, 22)]
    wanted = [ops.softmax(ops.tanh(x @ x.T)) @ x for x in inputs]
    for _ in range(2):
        for x, values in zip(inputs, wanted):
            np.testing.assert_allclose(f(x).asnumpy(), values.asnumpy(), rtol=1e-5, atol=1e-6)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell([nn.Dense(600, 600), nn.ReLU(), nn.LayerNorm((600,)), nn.Dense(600, 600)])

    def construct(self, x):
        return self.layers(x) + x


def training(compiled):
    ms.set_seed(3)
    net = Net()
    optimizer = nn.Adam(net.trainable_params(), 1e-3)
    value_and_grad = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, optimizer.parameters)

    def step(x):
        loss, gradients = value_and_grad(x)
        optimizer(gradients)
        return loss

    return net, ms.jit(step) if compiled else step


def test_training_is_the_same_and_its_plan_tight():
    (eager_net, eager_step), (net, step) = training(False), training(True)
    x = normal(64, 600)
    for _ in range(4):
        np.testing.assert_allclose(step(x).asnumpy(), eager_step(x).asnumpy(), rtol=1e-6)
    for a, b in zip(net.get_parameters(), eager_net.get_parameters()):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5, atol=1e-6)
    graph = only_graph(step)
    plan = graph.memory_plan()
    assert plan["lower_bound_bytes"] <= plan["arena_bytes"] <= 1.1 * plan["lower_bound_bytes"]
    # The gradient of one layer is gone when that of the next is made.
    assert repr(graph).count("adam_(") >= 2
    assert plan["arena_bytes"] < 2 * 600 * 600 * 4


def test_a_call_allocates_its_arena_and_results_only():
    @ms.jit
    def f(x):
        for _ in range(5):
            x = ops.tanh(x @ x)
        return x

    x = normal(64, 64)
    for _ in range(2):
        f(x)
    plan = only_graph(f).memory_plan()
    for _ in range(3):
        _core.reset_peak_memory_stats()
        before = _core.memory_stats()
        result = f(x)
        after = _core.memory_stats()
        assert after["peak_in_use"] - before["in_use"] == plan["arena_bytes"] + plan["own_bytes"]
        assert after["in_use"] - before["in_use"] == result.nbytes
        assert after["reserved"] == before["reserved"]
        del result
