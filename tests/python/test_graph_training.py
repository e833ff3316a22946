"""Compiled functions within gradients of PyNative mode, and recomputation in graph mode."""

import copy
import functools

import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, nn, ops


def sample(*shape, seed=0):
    return Tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def equal(actual, wanted, rtol=0.0, atol=0.0):
    if isinstance(wanted, (tuple, list)):
        assert len(actual) == len(wanted)
        for a, b in zip(actual, wanted):
            equal(a, b, rtol, atol)
    else:
        np.testing.assert_allclose(actual.asnumpy(), wanted.asnumpy(), rtol, atol)


# --- compiled functions within gradients ---


def several_results(x, w):
    return ops.sin(x) * w, x.sum(), w > 0, 3


def loop(x, w):
    i = 0
    while i < 3:
        x = ops.sin(x) * w
        i += 1
    return x, x[:1]


def recursion(x, w):
    return x if x.sum() > 3 else recursion(x * x + 1, w) * w


@pytest.mark.parametrize("function", [several_results, loop, recursion], ids=lambda f: f.__name__)
def test_gradients_of_compiled_functions(function):
    compiled = ms.jit(function)

    def use(inner, x, w):
        found = inner(x, w)
        parts = found if isinstance(found, tuple) else (found,)
        return sum((part * x).sum() for part in parts if isinstance(part, Tensor) and part.dtype == ms.float32)

    x, w = sample(4, 3), sample(4, 3, seed=1)
    for size in (4, 2, 4):
        args = x[:size], w[:size]
        slopes = [ms.grad(functools.partial(use, f), (0, 1)) for f in (compiled, function)]
        equal(slopes[0](*args), slopes[1](*args), 1e-5, 1e-6)  # sums are taken in another order
        seconds = [ms.grad(lambda a, b, f=f: sum(part.sum() for part in f(a, b)), (0, 1)) for f in slopes]
        equal(seconds[0](*args), seconds[1](*args))
    assert compiled.__compiled__.compiled == 1  # for all sizes; gradients of gradients run in PyNative mode


def make_training(compiles):
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(8, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(p=0.2), nn.Dense(16, 3))
    net.set_train()
    loss, optimizer = nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 0.01)
    forward = compiles(lambda a, b: loss(net(a), b))
    gradients = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(x, y):
        value, found = gradients(x, y)
        optimizer(found)
        return value

    ms.set_seed(2)
    return net, step, forward


def test_training_loop_with_a_compiled_forward():
    x, y = sample(16, 8), Tensor(np.arange(16, dtype=np.int32) % 3)
    results = []
    for compiles in (lambda f: f, ms.jit):
        net, step, forward = make_training(compiles)
        results.append([[step(x, y) for _ in range(3)], list(net.get_parameters()), forward])
    equal(results[1][0], results[0][0])
    equal(results[1][1], results[0][1], 1e-5, 1e-6)
    assert results[1][2].__compiled__.compiled == 1


def test_weights_that_are_wanted_may_change():
    first, second = Parameter(sample(3), name="first"), Parameter(sample(3, seed=1), name="second")
    compiled = ms.jit(lambda x: (x * first * second).sum())
    x = sample(3, seed=2)
    for weights in ([first], [second], [first, second], [first]):
        found = ms.value_and_grad(compiled, None, weights)(x)[1]
        wanted = {id(first): x * second, id(second): x * first}
        equal(list(found), [wanted[id(weight)] for weight in weights])
    same = ms.grad(lambda v: (v * v).sum())(x)
    equal(ms.grad(lambda v: (v * v).sum() + compiled(x))(x), same)  # nothing flows through the call


def test_what_the_gradient_needs_must_not_change():
    weight = Parameter(sample(3), name="weight")
    compiled = ms.jit(lambda x: (ops.sin(x) * weight).sum())

    def f(x):
        y = compiled(x)
        weight.mul_(2.0)
        return y

    with pytest.raises(RuntimeError, match="changed in place after the call"):
        ms.grad(f)(sample(3))


def test_what_jit_accepts():
    x = sample(3)
    product = functools.partial(lambda a, b: a * b, b=2)
    for function, args in ((product, (x,)), (ms.jit(product), (x,)), (ops.relu, (x,)), (ops.add, (x, x))):
        equal(ms.jit(function)(*args), function(*args))
    with pytest.raises(TypeError, match="must be a function or a Cell"):
        ms.jit(3)


def test_cells_of_graph_mode_within_a_gradient():
    net = nn.SequentialCell(nn.Dense(8, 16), nn.Tanh(), nn.Dense(16, 3))
    x, weights = sample(4, 8), net.trainable_params()

    def value(f):  # the same net in a function that PyNative mode differentiates
        return ms._core.value_and_grad(f, [0], weights, False, (x,), {})

    wanted = value(lambda v: net(v).sum())
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        equal(value(lambda v: net(v).sum()), wanted)
        assert net._compiled_call.compiled == 1
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


# --- recomputation ---


class Block(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.first, self.second, self.drop = nn.Dense(width, width), nn.Dense(width, width), nn.Dropout(p=0.3)

    def construct(self, x):
        y = ops.tanh(self.first(x))
        y = self.drop(ops.sin(y) * y)
        if y.sum() > 1e9:
            y = self.drop(y)
        return x + ops.tanh(self.second(ops.exp(y) * 0.1))


class Blocks(nn.Cell):
    def __init__(self, way, depth, width):
        super().__init__()
        self.blocks, self.way = nn.CellList([Block(width) for _ in range(depth)]), way
        if way == "cell":
            for block in self.blocks:
                block.recompute()

    def construct(self, x):
        for block in self.blocks:
            x = ms.recompute(block, x) if self.way == "function" else block(x)
        return (x * x).sum()


def make_blocks(way, depth=6, width=32):
    ms.set_seed(1)
    net = Blocks(way, depth, width)
    net.set_train()
    return net, ms.value_and_grad(net, 0, net.trainable_params())


def test_recomputation_needs_less_memory():
    x = sample(2048, 32)
    peaks, results = {}, {}
    for way in ("", "function", "cell"):
        gradients = make_blocks(way)[1]
        run = ms.jit(lambda v, f=gradients: f(v))
        run(x)
        ms.set_seed(2)
        before = ms.runtime.memory_allocated()
        ms.runtime.reset_peak_memory_stats()
        value, (at_input, at_weights) = run(x)
        peaks[way] = ms.runtime.max_memory_allocated() - before
        results[way] = [value, at_input, *at_weights]
    for way in ("function", "cell"):
        equal(results[way], results[""])
        assert peaks[way] < 0.5 * peaks[""]


def test_recomputation_in_both_modes():
    x = sample(8, 4)
    for way in ("function", "cell"):
        gradients = make_blocks(way, 3, 4)[1]
        second = ms.grad(lambda v, f=gradients: (f(v)[1][0] * v).sum())
        for function in (gradients, second):
            results = []
            for run in (function, ms.jit(lambda v, f=function: f(v))):
                ms.set_seed(2)
                results.append((run(x), ms.ops.uniform((3,), Tensor(0.0), Tensor(1.0))))
            equal(results[1], results[0], 2e-4, 1e-5)


def test_a_cell_that_changes_after_it_was_compiled():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.body, self.head = nn.Dense(3, 2), nn.Dense(2, 4)
            self.tail = nn.SequentialCell(nn.Dense(4, 4), nn.ReLU())

        def construct(self, x):
            return self.tail(self.head(self.body(x)))

    net, x = Net(), Tensor(np.random.default_rng(3).random((4, 3)).astype(np.float32))

    def same_in_both_modes():
        wanted = net(x)
        ms.set_context(mode=ms.GRAPH_MODE)
        try:
            actual = net(x)
        finally:
            ms.set_context(mode=ms.PYNATIVE_MODE)
        assert actual.dtype == wanted.dtype and actual.shape == wanted.shape
        np.testing.assert_allclose(actual.asnumpy(), wanted.asnumpy(), rtol=2e-3, atol=1e-4)
        return net._compiled_call.compiled

    assert same_in_both_modes() == same_in_both_modes() == 1
    net.head = nn.Dense(2, 4)
    assert same_in_both_modes() == 2
    net.tail[0] = nn.Dense(4, 5)
    assert same_in_both_modes() == 3
    net.tail.append(nn.Dense(5, 7))
    assert same_in_both_modes() == 4
    handle = net.register_forward_hook(lambda cell, inputs, output: output * 2)
    assert same_in_both_modes() == 5
    handle.remove()
    assert same_in_both_modes() == 6
    Net().head = nn.Dense(2, 9)  # of a cell that no graph knows
    assert same_in_both_modes() == 6
    copied = copy.deepcopy(net)
    copied.head = nn.Dense(2, 4)
    assert copied(x).shape == net(x).shape and same_in_both_modes() == 6
    net.to_float(ms.float16)
    assert same_in_both_modes() == 7


def test_a_parameter_that_is_frozen_after_compiling():
    net, x = nn.Dense(3, 2), Tensor(np.ones((4, 3), np.float32))
    slopes = ms.jit(lambda x: ms.value_and_grad(lambda x: net(x).sum(), None, [net.weight, net.bias])(x)[1])
    np.testing.assert_array_equal(slopes(x)[0].asnumpy(), np.full((2, 3), 4))
    net.weight.requires_grad = False
    weight, bias = slopes(x)
    np.testing.assert_array_equal(weight.asnumpy(), np.zeros((2, 3)))
    np.testing.assert_array_equal(bias.asnumpy(), np.full(2, 4))
    net.weight.requires_grad = True
    np.testing.assert_array_equal(slopes(x)[0].asnumpy(), np.full((2, 3), 4))


def test_a_branch_that_only_changes_statistics():
    x = sample(8, 3)

    def statistics(mode):
        norm = nn.BatchNorm1d(3)
        norm.set_train()

        def function(x):
            if x.sum() > -1e9:
                norm(x)
            if x.sum() > 1e9:
                norm(x * 100)
            return x * 2

        ms.jit(function)(x) if mode == "graph" else function(x)
        return norm.moving_mean.asnumpy(), norm.moving_variance.asnumpy()

    for actual, wanted in zip(statistics("graph"), statistics("pynative")):
        np.testing.assert_array_equal(actual, wanted)
        assert np.abs(actual).max() > 0
