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
    with pytest.raises(IndexError, match="called with 2 positional"):
        ms.value_and_grad(function, 2)(x, y)
    with pytest.raises(TypeError, match="cannot be differentiated"):
        ms.grad(lambda a: a.sum())(Tensor([True, False]))


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def mode(request):
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_integers_are_differentiated_with_integers(mode):
    x, y = Tensor([2, 3]), Tensor([0.5, 0.25])
    assert ms.grad(lambda a: a * a + 4 * a)(x).asnumpy().tolist() == [8, 10]
    at_x, at_y = ms.grad(lambda a, b: (a * b * 4).sum(), (0, 1))(x, y)
    assert at_x.dtype == ms.int64 and at_x.asnumpy().tolist() == [2, 1]
    assert at_y.dtype == ms.float32 and at_y.asnumpy().tolist() == [8, 12]
    # What a float is rounded to is constant.
    assert ms.grad(lambda b: b.astype(ms.int32).astype(ms.float32) * b)(y).asnumpy().tolist() == [0, 0]
    assert ms.grad(lambda a, b: a + b)(1, 2) == ()  # numbers of Python: nothing to differentiate at


def test_gradient_operation_keeps_its_structure(mode):
    x, everything = t(2, 3), ops.GradOperation(get_all=True, get_by_list=True)
    (dx,), none = everything(lambda a: 3 * a, ())(x)
    assert dx.asnumpy().tolist() == [3, 3] and none == ()
    w = Parameter(t(5, 6), name="w")
    assert everything(lambda: 2 * w, w)()[0] == ()
    assert ops.GradOperation()(lambda: 2 * w)() == ()


def listed(value):
    """Nested tuples of tensors as lists of numbers."""
    if isinstance(value, tuple):
        return tuple(listed(item) for item in value)
    return value.asnumpy().tolist() if isinstance(value, Tensor) else value


def test_one_object_in_several_places_is_one_variable():
    x, y = t(2, 3), t(5, 7)

    def function(a, b, c=None):
        return (a * a * b).sum() if c is None else (a * b * b * c).sum()

    both = [12, 27]  # of x^3
    assert listed(ms.grad(function, (0, 1))(x, x)) == (both, both)
    assert listed(ms.grad(function, 0)(x, x)) == listed(ms.grad(function, 1)(x, x)) == both
    assert listed(ms.grad(function, (0, 1))(x, b=x)) == (both, both)
    assert listed(ms.grad(function, (0, 1, 2))(x, x, y)) == ([60, 189], [60, 189], [8, 27])
    assert listed(ms.value_and_grad(function, (0, 1))(x, x)) == (35, (both, both))
    assert listed(ops.GradOperation(get_all=True)(function)(x, x)) == (both, both)
    # Another tensor with the same values, and a view of the same memory, are other variables.
    assert listed(ms.grad(function, (0, 1))(x, t(2, 3))) == ([8, 18], [4, 9])
    assert listed(ms.grad(function, (0, 1))(x, x.view(2))) == ([8, 18], [4, 9])
    assert listed(ms.grad(lambda a, b: (a, b), (0, 1))(x, x)) == ([2, 2], [2, 2])
    # Numbers and None may repeat.
    assert listed(ms.grad(lambda a, b, c: (a * b + c).sum())(x, 1, 1)) == [1, 1]
    second = ms.grad(lambda a: ms.grad(function, (0, 1))(a, a)[0].sum())
    assert listed(second(x)) == [12, 18]

    @ms.jit
    def in_graph(a):
        return ms.grad(function, (0, 1))(a, a)

    assert listed(in_graph(x)) == ([8, 18], [4, 9])  # there each place is a variable of its own


def test_a_parameter_that_is_an_argument_and_a_weight_is_one_variable():
    w, x = Parameter(t(2, 3), name="w"), t(5, 7)

    def function(a, b):
        return (a * a * w * b).sum()

    assert listed(ms.grad(lambda a: (a * a * w).sum(), 0, w)(w)) == ([12, 27], [12, 27])
    at_inputs, at_weights = ms.grad(function, (0, 1), ms.ParameterTuple([w]))(w, x)
    assert listed(at_inputs) == ([60, 189], [8, 27]) and listed(at_weights) == ([60, 189],)


def test_positions_and_weights_together():
    x, y, w, v = t(2, 3), t(5, 7), Parameter(t(2, 3), name="w"), Parameter(t(1, 1), name="v")
    weights = ms.ParameterTuple([w, v])

    def function(a, b):
        return (a * b * w + v).sum()

    dx, dy, dw, dv = [10, 21], [4, 9], [10, 21], [1, 1]
    assert listed(ms.value_and_grad(function, (0, 1), weights)(x, y)) == (85, ((dx, dy), (dw, dv)))
    assert listed(ms.value_and_grad(function, 0, weights)(x, y)) == (85, (dx, (dw, dv)))
    assert listed(ms.grad(function, (1, 0), w)(x, y)) == ((dy, dx), dw)
    assert listed(ms.grad(function, (0,))(x, y)) == dx  # one position gives one gradient, tuple or not
    assert listed(ms.grad(function, (0,), [w])(x, y)) == (dx, (dw,))
    assert listed(ms.grad(function, None, [v])(x, y)) == (dv,)
    assert listed(ms.grad(function, (0, 1))(a=x, b=y)) == (dx, dy)
    assert listed(ms.grad(function)(b=y, a=x)) == dy  # in the order of the call
    w.requires_grad = False
    assert listed(ms.grad(function, 0, weights)(x, y)) == (dx, ([0, 0], dv))


def test_ids_of_gradients():
    x, y, w, v = t(2, 3), t(5, 7), Parameter(t(2, 3), name="w"), Parameter(t(1, 1), name="v")

    def function(a, b):
        return (a * b * w + v).sum()

    found = ms.grad(function, (0, 1), ms.ParameterTuple([w, v]), return_ids=True)(x, y)
    assert listed(found) == (((0, [10, 21]), (1, [4, 9])), (("w", [10, 21]), ("v", [1, 1])))
    assert ms.get_grad(found, 1).asnumpy().tolist() == [4, 9] and ms.get_grad(found, v).asnumpy().tolist() == [1, 1]
    assert listed(ms.grad(function, 0, None, False, True)(x, y)) == (0, [10, 21])
    assert listed(ms.grad(function, None, w, False, True)(x, y)) == ("w", [10, 21])
    assert ms.get_grad(ms.grad(function, 1, return_ids=True)(x, y), 1).asnumpy().tolist() == [4, 9]
    with pytest.raises(RuntimeError, match="no gradient is there for 7"):
        ms.get_grad(found, 7)
    with pytest.raises(TypeError, match="must be an int or a Parameter"):
        ms.get_grad(found, "w")


def test_sensitivities():
    x, y, s, w = t(2, 3), t(5, 7), t(10, 20), Parameter(t(2, 3), name="w")

    def product(a, b):
        return a * b * w

    assert listed(ms.grad(product, (0, 1), sens_param=True)(x, y, s)) == ([100, 420], [40, 180])
    assert listed(ms.grad(product, sens_param=True)(x, y, sens=s)) == [100, 420]
    value, found = ms.value_and_grad(product, 0, ms.ParameterTuple([w]), sens_param=True)(x, y, s)
    assert listed(value) == [20, 63] and listed(found) == ([100, 420], ([100, 420],))
    assert listed(ms.grad(lambda a, b: (a * b, a + b), sens_param=True)(x, y, (s, s))) == [60, 160]
    with pytest.raises(ValueError, match="1 sensitivities are given for 2 outputs"):
        ms.grad(lambda a, b: (a * b, a + b), sens_param=True)(x, y, s)
    with pytest.raises(ValueError, match="shape"):
        ms.grad(product, sens_param=True)(x, y, t(1, 2, 3))
    with pytest.raises(TypeError, match="the last argument must be the sensitivity"):
        ms.grad(lambda: w, None, w, sens_param=True)()


def test_wrong_arguments_of_grad():
    for error, arguments in [
        (TypeError, dict(grad_position=True)),
        (TypeError, dict(grad_position=[0, 1])),
        (TypeError, dict(grad_position="0")),
        (TypeError, dict(grad_position=(0, 1.0))),
        (ValueError, dict(grad_position=-1)),
        (ValueError, dict(grad_position=(0, 0))),
        (RuntimeError, dict(grad_position=())),
        (ValueError, dict(grad_position=None)),
        (TypeError, dict(weights=3)),
    ]:
        for make in (ms.grad, ms.value_and_grad):
            with pytest.raises(error, match=f"For '{make.__name__}'"):
                make(lambda x: x, **arguments)
    with pytest.raises(TypeError, match="must be a function or a Cell"):
        ms.grad(3)
    with pytest.raises(TypeError, match="argument 1, which must be a Tensor but is float"):
        ms.grad(lambda x, y: x * y, (0, 1))(t(1), 2.0)
    with pytest.raises(TypeError, match="argument 1, which must be a Tensor but is float"):
        ms.grad(lambda x, y: x * y, (0, 1))(t(1), y=2.0)
    with pytest.raises(ValueError, match="must return a tuple"):
        ms.grad(lambda x: x, has_aux=True)(t(1))


def test_auxiliary_outputs_and_several_outputs():
    value, gradient = ms.value_and_grad(lambda x: ((x * x).sum(), x * 100), has_aux=True)(t(1, 2))
    assert gradient.asnumpy().tolist() == [2, 4] and value[1].asnumpy().tolist() == [100, 200]
    assert ms.grad(lambda x: (x * x, 3 * x))(t(1, 2)).asnumpy().tolist() == [5, 7]
    found = ms.grad(lambda x: ((x * x).sum(), x * 2, (x, 3)), has_aux=True, return_ids=True)(t(1, 2))
    assert listed(found) == ((0, [2, 4]), ([2, 4], ([1, 2], 3)))
    assert ms.value_and_grad(lambda x: {"loss": x * x, "more": 3 * x})(t(1, 2))[1].asnumpy().tolist() == [5, 7]


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
    x, y, s = t(2, 3), t(5, 7), t(10, 20)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w, self.v = Parameter(t(2, 3), name="w"), Parameter(t(1, 1), name="v")

        def construct(self, a, b):
            return a * b * self.w + self.v

    net = Net()
    dx, dy, dw, dv = [10, 21], [4, 9], [10, 21], [1, 1]
    make = ops.GradOperation
    assert listed(make()(net)(x, y)) == dx
    assert listed(make(get_all=True)(net)(x, y)) == (dx, dy)
    assert listed(make(get_all=True)(net)(x, b=y)) == (dx, dy)
    assert listed(make(get_all=True)(lambda a: a * a)(x)) == ([4, 6],)
    assert listed(make(get_all=True)(lambda a, b, c: a * b * c)(x, 2, y)) == ([10, 14], [4, 6])
    assert listed(make(get_by_list=True)(net)(x, y)) == (dw, dv)
    assert listed(make(get_by_list=True)(net, net.w)(x, y)) == dw
    assert listed(make(get_by_list=True)(net, [net.v, net.w])(x, y)) == (dv, dw)
    assert listed(make(get_all=True, get_by_list=True)(net, net.trainable_params())(x, y)) == ((dx, dy), (dw, dv))
    assert listed(make(sens_param=True)(net)(x, y, s)) == [100, 420]
    assert listed(make(sens_param=True)(net)(x, y, sens=s)) == [100, 420]
    assert listed(make(True, True, True)(net)(x, y, s)) == (([100, 420], [40, 180]), ([100, 420], [10, 20]))
    with pytest.raises(TypeError, match="'get_all' must be bool"):
        make(get_all=1)
    with pytest.raises(TypeError, match="give the weights"):
        make(get_by_list=True)(lambda a: a)


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


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 0, 1), (0, 2, 1), (0, 1, 2)])
@pytest.mark.parametrize(
    "change",
    [
        lambda z: z[1:].mul_(2.0),
        lambda z: z[:, 1:].add_(z[:, :-1] * 3),
        lambda z: z[::2].mul_(z[::2] + 0),
        lambda z: z.__setitem__(1, z[0] * 4),
        lambda z: z.__setitem__((slice(None), 1), 2.0),
        lambda z: z.transpose(2, 1, 0)[1:].mul_(5.0),
        lambda z: z[1, 1:].mul_(7.0),
    ],
)
def test_in_place_on_a_slice_of_what_is_not_in_c_order(axes, change):
    x = Tensor(np.random.default_rng(5).standard_normal((3, 4, 5))).transpose(*axes)
    weights = Tensor(np.random.default_rng(6).standard_normal(x.shape))

    def function(x):
        z = x + 0  # keeps the order in memory
        change(z)
        return (z * z * weights).sum()

    dense = Tensor(np.ascontiguousarray(x.asnumpy()))
    np.testing.assert_allclose(ms.grad(function)(x).asnumpy(), ms.grad(function)(dense).asnumpy(), rtol=1e-12)


def test_a_parameter_that_was_changed_in_a_gradient_is_given_in_the_next():
    state, x = Parameter(Tensor([1.0, 2.0]), name="state"), Tensor([1.0, 2.0])

    def whole(x):
        state.add_(x)
        return (state * x).sum()

    def item(x):
        state[0] = x[1]
        return (state * x).sum()

    for expected in ([3, 6], [4, 8], [5, 10]):  # the state before, and 2 x
        assert ms.grad(whole)(x).asnumpy().tolist() == expected
    assert ms.grad(lambda x: (state * x).sum())(x).asnumpy().tolist() == [4, 8]
    for _ in range(2):
        assert ms.grad(item)(x).asnumpy().tolist() == [2, 8 + 1]
    assert ms.grad(lambda x: ms.grad(whole)(x).sum())(x).asnumpy().tolist() == [2, 2]


@pytest.mark.parametrize(
    "change",
    [
        lambda v, x: v.div_(x + 2),
        lambda v, x: v.div_(v + 1),
        lambda v, x: v.mul_(v),
        lambda v, x: v[:2].mul_(v[1:]),
        lambda v, x: v.add_(v),
        lambda v, x: v[1:].div_(v[:1]),
    ],
)
def test_in_place_operators_of_tensors_that_share_memory(change):
    def function(x):
        v = x * 1.0
        change(v, x)
        return (v * Tensor([1.0, 2.0, 3.0])).sum()

    x, step = np.array([0.3, 0.7, 1.1]), 1e-6
    differences = [
        float(function(Tensor(x + unit)) - function(Tensor(x - unit))) / (2 * step) for unit in np.eye(3) * step
    ]
    np.testing.assert_allclose(ms.grad(function)(Tensor(x)).asnumpy(), differences, rtol=1e-6)
