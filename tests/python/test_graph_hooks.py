"""Hooks of tensors within compiled functions and of Parameters outside of them."""

import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, nn, ops


def vector(*values):
    return Tensor(np.array(values, np.float32))


def twice(gradient):
    return gradient * 2


def thrice(gradient):
    return gradient * 3


def by_value(gradient):
    if gradient[0] > 100:
        return gradient
    return twice(gradient)


class Net(nn.Cell):
    """(x * weight) * scale, with hooks on the product."""

    def __init__(self, hooks):
        super().__init__()
        self.weight = Parameter(vector(1, 2, 3), name="weight")
        self.scale = Parameter(vector(4, 5, 6), name="scale")
        self.hooks = hooks

    def construct(self, x):
        y = x * self.weight
        for hook in self.hooks:
            y.register_hook(hook)
        return y * self.scale


def gradients(net, x):
    (at_x,), weights = ops.GradOperation(get_all=True, get_by_list=True)(net, net.trainable_params())(x)
    return [tensor.asnumpy().tolist() for tensor in (at_x, *weights)]


@pytest.fixture(params=[ms.GRAPH_MODE, ms.PYNATIVE_MODE], ids=["graph", "pynative"])
def mode(request):
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize(
    "hooks, factor",
    [([twice], 2), ([twice, thrice], 6), ([lambda gradient: None], 1), ([by_value], 2), ([by_value, by_value], 4)],
)
def test_hooks_change_what_comes_before_them(mode, hooks, factor):
    x = vector(7, 8, 9)
    at_x, weight, scale = gradients(Net(hooks), x)
    assert at_x == [factor * v for v in (4, 10, 18)]
    assert weight == [factor * v for v in (28, 40, 54)]
    assert scale == [7, 16, 27]


def test_a_hook_of_a_value_that_was_used_before_sees_its_whole_gradient(mode):
    class Late(nn.Cell):
        def construct(self, x):
            y = x * 2
            z = y * 3 + y
            y.register_hook(thrice)
            return z

    assert ms.grad(Late())(vector(1)).asnumpy().tolist() == [24]


def test_hooks_of_arguments(mode):
    class Scaled(nn.Cell):
        def construct(self, x):
            x.register_hook(twice)
            return x * 3

    assert ms.grad(Scaled())(vector(1)).asnumpy().tolist() == [6]


def test_a_compiled_part_of_a_function():
    @ms.jit
    def hooked(x):
        assert x.register_hook(by_value) is x
        return x

    assert ms.grad(lambda x: (hooked(x * 3) * 5).sum())(vector(1, 2)).asnumpy().tolist() == [30, 30]
    assert hooked(vector(1)).asnumpy().tolist() == [1]


def test_gradients_within_a_compiled_function():
    def inner(x):
        y = x * x
        y.register_hook(twice)
        return y.sum()

    @ms.jit
    def both(x):
        return ms.grad(inner)(x), ms.grad(lambda x: ms.grad(inner)(x).sum())(x)

    first, second = both(vector(3))
    assert first.asnumpy().tolist() == [12] and second.asnumpy().tolist() == [4]


def test_a_hook_prints_when_the_graph_runs(capfd):
    def show(gradient):
        print("gradient", gradient)

    @ms.jit
    def slope(x):
        def inner(x):
            y = x * 2
            y.register_hook(show)
            return y.sum()

        return ms.grad(inner)(x)

    assert slope(vector(1, 2)).asnumpy().tolist() == [2, 2]
    slope(vector(1, 2))
    assert capfd.readouterr().out == "gradient [1. 1.]\ngradient [1. 1.]\n"


def test_a_graph_sees_what_its_hooks_read():
    factor = 2

    def scaled(gradient):
        return gradient * factor

    @ms.jit
    def function(x):
        y = x * 3
        y.register_hook(scaled)
        return y.sum()

    slope = ms.grad(function)
    assert slope(vector(1)).asnumpy().tolist() == [6]
    factor = 5
    assert slope(vector(1)).asnumpy().tolist() == [15]


def test_hooks_of_parameters():
    weight = Parameter(vector(1, 2), name="weight")

    @ms.jit
    def slope(x):
        return ms.grad(lambda x: (x * weight).sum(), None, weight)(x)

    x = vector(3, 4)
    assert slope(x).asnumpy().tolist() == [3, 4]
    handle = weight.register_hook(by_value)
    assert slope(x).asnumpy().tolist() == [6, 8]
    handle.remove()
    assert slope(x).asnumpy().tolist() == [3, 4]


def test_where_hooks_cannot_be_registered():
    weight = Parameter(vector(1), name="weight")

    @ms.jit
    def on_parameter(x):
        weight.register_hook(twice)
        return x * weight

    @ms.jit
    def under_condition(x):
        if x.sum() > 0:
            y = x * 2
            y.register_hook(twice)
        else:
            y = x
        return y

    with pytest.raises(ValueError, match="takes no hook within"):
        on_parameter(vector(1))
    with pytest.raises(NotImplementedError, match="'register_hook' within an 'if'"):
        under_condition(vector(1))
    with pytest.raises(TypeError, match="'hook' must be a function"):
        vector(1).register_hook(3)
    with pytest.raises(TypeError, match="'hook' must be a function"):
        ms.jit(lambda x: x.register_hook(3))(vector(1))


def test_a_hook_gives_a_gradient_of_the_same_shape(mode):
    with pytest.raises(ValueError, match="a hook of a gradient of shape"):
        gradients(Net([lambda gradient: gradient.sum()]), vector(1, 2, 3))
