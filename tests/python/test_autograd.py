"""The tape: orders, scopes, closures, hooks, custom backward functions, in-place changes and views."""

import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, nn, ops


def t(*values):
    return Tensor(np.array(values, np.float32))


def test_value_and_grad_forms():
    x, y, w = t(1, 2), t(3, 4), Parameter(t(5, 6), name="w")

    def function(x, y):
        return (x * y * w).sum()

    value, gradient = ms.value_and_grad(function)(x, y)
    assert value.item() == 63 and gradient.asnumpy().tolist() == [15, 24]
    _, (dx, dy) = ms.value_and_grad(function, (0, 1))(x, y)
    assert dx.asnumpy().tolist() == [15, 24] and dy.asnumpy().tolist() == [5, 12]
    _, dw = ms.value_and_grad(function, None, w)(x, y)
    assert dw.asnumpy().tolist() == [3, 8]
    _, (dx, (dw,)) = ms.value_and_grad(function, 0, [w])(x, y)
    assert dx.asnumpy().tolist() == [15, 24] and dw.asnumpy().tolist() == [3, 8]
    assert ms.grad(function, None, [w], return_ids=True)(x, y)[0][0] == "w"
    with pytest.raises(ValueError, match="cannot both be None"):
        ms.value_and_grad(function, None, None)
    with pytest.raises(ValueError, match="called with 2 positional"):
        ms.value_and_grad(function, 2)(x, y)
    with pytest.raises(TypeError, match="cannot be differentiated"):
        ms.grad(lambda a: a.sum())(Tensor([1, 2]))


def test_auxiliary_outputs_and_several_outputs():
    value, gradient = ms.value_and_grad(lambda x: ((x * x).sum(), x * 100), has_aux=True)(t(1, 2))
    assert gradient.asnumpy().tolist() == [2, 4] and value[1].asnumpy().tolist() == [100, 200]
    assert ms.grad(lambda x: (x * x, 3 * x))(t(1, 2)).asnumpy().tolist() == [5, 7]


def test_orders_up_to_four():
    function = lambda x: (x**4).sum()  # noqa: E731
    for expected in (4 * 8.0, 12 * 4.0, 24 * 2.0, 24.0):
        function = (lambda inner: lambda x: ms.grad(inner)(x).sum())(function)
        assert function(t(2)).item() == pytest.approx(expected)


def test_inner_scope_does_not_see_the_outer_variable():
    # d/dx [ x * d/dy (x * y) at y = x ] = d/dx x^2
    assert ms.grad(lambda x: (x * ms.grad(lambda y: (x * y).sum())(x)).sum())(t(3)).item() == 6


def test_closure_and_control_flow():
    def function(x):
        def inner(y):
            return y * x if x.sum() > 0 else y - x

        total = x
        for _ in range(3):
            total = inner(total)
        return total.sum()

    assert ms.grad(function)(t(2)).item() == pytest.approx(4 * 8)
    assert ms.grad(function)(t(-2)).item() == pytest.approx(-2)


def test_stop_gradient_and_unused_input():
    assert ms.grad(lambda x: (ops.stop_gradient(x) * x).sum())(t(3)).item() == 3
    assert ms.grad(lambda x, y: x.sum(), (0, 1))(t(3), t(4))[1].item() == 0


def test_grad_operation():
    def function(x, y):
        return x * x * y

    assert ops.GradOperation()(function)(t(3), t(2)).item() == 12
    assert [g.item() for g in ops.GradOperation(get_all=True)(function)(t(3), t(2))] == [12, 9]
    assert ops.GradOperation(sens_param=True)(function)(t(3), t(2), t(10)).item() == 120
    net = nn.Dense(2, 1)
    found = ops.GradOperation(get_by_list=True)(net, net.trainable_params())(t(1, 2).reshape(1, 2))
    assert [tuple(g.shape) for g in found] == [(1, 2), (1,)]


def test_in_place_operators():
    def function(x):
        y = x * 1
        y.mul_(x)
        y.add_(1)
        return (y * y).sum()

    # (x^2 + 1)^2
    assert ms.grad(function)(t(2)).item() == pytest.approx(2 * 5 * 4)


def test_in_place_on_a_view_reaches_its_base():
    def function(x):
        y = x * 1
        y[0] = y[1] * 3
        view = y[1:]
        view.mul_(2)
        return (y * t(1, 10, 100)).sum()

    # y = [3 x1, 2 x1, 2 x2]
    assert ms.grad(function)(t(1, 2, 3)).asnumpy().tolist() == [0, 23, 200]


def test_overwritten_saved_tensor_is_an_error():
    def function(x):
        y = ops.exp(x)
        y.add_(1)
        return y.sum()

    with pytest.raises(RuntimeError, match="changed in place"):
        ms.grad(function)(t(1))


def test_set_item_gradients():
    def function(x, v):
        y = x * 2
        y[Tensor([0, 2])] = v
        return (y * y).sum()

    dx, dv = ms.grad(function, (0, 1))(t(1, 2, 3), t(5, 6))
    assert dx.asnumpy().tolist() == [0, 16, 0] and dv.asnumpy().tolist() == [10, 12]


def test_tensor_hooks():
    seen = []
    weight = Parameter(t(2, 3), name="weight")
    handle = weight.register_hook(lambda grad: seen.append(grad.asnumpy().tolist()) or grad * 10)
    function = ms.grad(lambda x: (x * weight).sum(), None, weight)
    assert function(t(4, 5)).asnumpy().tolist() == [40, 50] and seen == [[4, 5]]
    handle.remove()
    assert function(t(4, 5)).asnumpy().tolist() == [4, 5]

    def inner(x):
        y = x * x
        y.register_hook(lambda grad: grad * 2)
        return y.sum()

    assert ms.grad(inner)(t(3)).item() == 12


def test_custom_bprop():
    class Cube(nn.Cell):
        def construct(self, x):
            return x * x * x

        def bprop(self, x, out, dout):
            return (dout * x * 100,)

    cube = Cube()
    assert ms.grad(lambda x: cube(x).sum())(t(2)).item() == 200
    assert ms.grad(lambda x: ms.grad(lambda y: cube(y).sum())(x).sum())(t(2)).item() == 100


def test_complex_gradient_follows_the_conjugate():
    z = Tensor(np.array([1 + 2j], np.complex64))
    gradient = ms.grad(lambda z: ops.real(z * z).sum())(z)
    assert gradient.asnumpy()[0] == pytest.approx(np.conj(2 * (1 + 2j)))


def test_mixed_dtypes_come_back_in_the_inputs_dtype():
    half, single = Tensor(np.array([2], np.float16)), t(3)
    dh, ds = ms.grad(lambda h, s: (h * s).sum(), (0, 1))(half, single)
    assert dh.dtype == ms.float16 and dh.item() == 3 and ds.dtype == ms.float32 and ds.item() == 2
