"""Products with Jacobians and whole Jacobians against formulas, against each other, and in one another."""

import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, nn, ops


def t(*values):
    return Tensor(np.array(values, np.float32))


def listed(value):
    if isinstance(value, (tuple, list)):
        return type(value)(listed(item) for item in value)
    return value.asnumpy().tolist() if isinstance(value, Tensor) else value


def power(a, b):
    return a * a * b


def two(a, b):
    return a * a * b, a + b


def with_aux(a, b):
    return a * a * b, a + b, (a, 1)


X, Y, V, ONE = t(2, 3), t(5, 7), t(10, 20), t(1, 1)


def test_jvp():
    assert listed(ms.jvp(lambda a: a * a * a, X, V)) == ([8, 27], [120, 540])
    assert listed(ms.jvp(power, (X, Y), (V, ONE))) == listed(ms.jvp(power, [X, Y], [V, ONE])) == ([20, 63], [204, 849])
    assert listed(ms.jvp(two, (X, Y), (V, ONE))) == (([20, 63], [7, 10]), ([204, 849], [11, 21]))
    assert listed(ms.jvp(with_aux, (X, Y), (V, ONE), True)) == ([20, 63], [204, 849], ([7, 10], ([2, 3], 1)))
    assert listed(ms.jvp(two, (X, Y), (V, ONE), has_aux=True)) == ([20, 63], [204, 849], [7, 10])
    assert listed(ms.jvp(lambda a, b: a * 1, (X, Y), (V, ONE))[1]) == [10, 20]
    assert listed(ms.jvp(lambda a: Y, X, V)) == ([5, 7], [0, 0])
    assert listed(ms.jvp(lambda a: (a * a, a.argmax()), X, V)[1]) == ([40, 120], 0)


def test_vjp():
    output, product = ms.vjp(lambda a: a * a * a, X)
    assert listed(output) == [8, 27] and listed(product(V)) == ([120, 540],)
    output, product = ms.vjp(power, X, Y)
    assert listed(product(V)) == ([200, 840], [40, 180]) and listed(product(ONE)) == ([20, 42], [4, 9])
    for vectors in [(V, ONE), ((V, ONE),), ([V, ONE],)]:
        assert listed(ms.vjp(two, X, Y)[1](*vectors)) == ([201, 841], [41, 181])
    output, product, aux = ms.vjp(with_aux, X, Y, has_aux=True)
    assert listed(output) == [20, 63] and listed(product(V)) == ([200, 840], [40, 180])
    assert listed(aux) == ([7, 10], ([2, 3], 1))
    assert listed(ms.vjp(power, X, X)[1](V)) == ([120, 540], [120, 540])  # one object, one variable


def test_vjp_with_weights():
    net = nn.Dense(2, 2)
    net.weight.set_data(t(1, 2, 3, 4).reshape(2, 2))
    net.bias.set_data(t(1, 1))
    x, v = t(5, 6).reshape(1, 2), t(1, 10).reshape(1, 2)
    output, product = ms.vjp(net, x, weights=ms.ParameterTuple(net.trainable_params()))
    at_input, (at_weight, at_bias) = product(v)
    assert listed(output) == [[18, 40]] and listed(at_input) == ([[31, 42]],)
    assert listed(at_weight) == [[5, 6], [50, 60]] and listed(at_bias) == [1, 10]
    w = Parameter(t(2, 3), name="w")
    assert listed(ms.vjp(lambda a: a * w, X, weights=w)[1](V)) == (([20, 60],), [20, 60])
    assert listed(ms.vjp(lambda: w * w, weights=[w])[1](V)) == ((), ([40, 120],))
    # The run for the gradients draws the same random numbers, and leaves the generator where it was.
    ms.set_seed(3)
    ones = ops.ones((1000,), ms.float32)
    w = Parameter(ops.ones((1000,), ms.float32), name="w")
    output, product = ms.vjp(lambda: ops.dropout(ones * w, 0.5, True), weights=w)
    after = ops.dropout(ones, 0.5, True)
    ms.set_seed(3)
    ops.dropout(ones, 0.5, True)
    assert listed(after) == listed(ops.dropout(ones, 0.5, True))
    assert listed(product(ones)[1]) == listed(output)


def test_functions_run_once():
    runs = []

    def function(a, b):
        runs.append(1)
        return a * a * b

    for use in (
        lambda: ms.jvp(function, (X, Y), (V, ONE)),
        lambda: [ms.vjp(function, X, Y)[1](V) for _ in range(1)],
        lambda: ms.jacfwd(function, (0, 1))(X, Y),
        lambda: ms.jacrev(function, (0, 1))(X, Y),
    ):
        runs.clear()
        use()
        assert len(runs) == 1
    output, product = ops.linearize(function, (X, Y))
    runs.clear()
    assert listed(product(V, ONE)) == listed(product((V, ONE))) == [204, 849] and not runs
    assert listed(output) == [20, 63]


def test_results_carry_no_tape():
    output, product = ms.vjp(power, X, Y)
    for found in (
        output,
        *product(V),
        *ms.jvp(power, (X, Y), (V, ONE)),
        ms.jacfwd(power)(X, Y),
        ms.jacrev(power)(X, Y),
    ):
        assert listed(ms.grad(lambda a, found: (a * found).sum())(ONE, found)) == listed(
            found.sum(0) if found.ndim > 1 else found
        )
        assert not ms._core.grad_enabled()


@pytest.mark.parametrize("jacobian", [ms.jacfwd, ms.jacrev])
def test_jacobians(jacobian):
    dx, dy, one = [[20, 0], [0, 42]], [[4, 0], [0, 9]], [[1, 0], [0, 1]]
    assert listed(jacobian(power)(X, Y)) == listed(jacobian(power, (0,))(X, Y)) == dx
    assert listed(jacobian(power, 1)(X, Y)) == dy
    assert listed(jacobian(power, (0, 1))(X, Y)) == (dx, dy)
    assert listed(jacobian(power, (1, 0))(X, Y)) == (dy, dx)
    assert listed(jacobian(power, (0, 1))(X, X)) == ([[8, 0], [0, 18]], [[4, 0], [0, 9]])
    assert listed(jacobian(two)(X, Y)) == (dx, one)
    assert listed(jacobian(two, (0, 1))(X, Y)) == ((dx, dy), (one, one))
    assert listed(jacobian(with_aux, (0, 1), True)(X, Y)) == ((dx, dy), ([7, 10], ([2, 3], 1)))
    assert listed(jacobian(two, 0, has_aux=True)(X, Y)) == (dx, [7, 10])
    assert listed(jacobian(power)(X, 3.0)) == [[12, 0], [0, 18]]
    assert listed(jacobian(lambda a: (a * a).sum())(X)) == [4, 6]
    assert listed(jacobian(lambda a: a * a)(Tensor(3.0))) == 6
    assert listed(jacobian(lambda a: Y)(X)) == [[0, 0], [0, 0]]
    empty = jacobian(lambda a: a * a)(Tensor(np.zeros((0, 2), np.float32)))
    assert empty.shape == (0, 2, 0, 2)


@pytest.mark.parametrize("jacobian", [ms.jacfwd, ms.jacrev])
def test_jacobian_of_a_product_of_matrices(jacobian):
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 3)), random.normal(size=(3, 4))
    at_a, at_b = jacobian(lambda a, b: ops.matmul(a, b), (0, 1))(Tensor(a), Tensor(b))
    assert at_a.dtype == ms.float64 and at_a.shape == (2, 4, 2, 3) and at_b.shape == (2, 4, 3, 4)
    np.testing.assert_allclose(at_a.asnumpy(), np.einsum("im,kn->inmk", np.eye(2), b), atol=1e-12)
    np.testing.assert_allclose(at_b.asnumpy(), np.einsum("ik,nm->inkm", a, np.eye(4)), atol=1e-12)


def test_hessian_in_four_ways():
    def function(x):
        return (ops.sin(x) * x.prod()).sum()

    x = np.array([0.5, -1.0, 2.0])
    found = [
        outer(inner(function))(Tensor(x)).asnumpy()
        for outer in (ms.jacfwd, ms.jacrev)
        for inner in (ms.jacfwd, ms.jacrev, ms.grad)
    ]
    step = 1e-5
    expected = [
        (ms.grad(function)(Tensor(x + step * e)) - ms.grad(function)(Tensor(x - step * e))).asnumpy() / (2 * step)
        for e in np.eye(3)
    ]
    for matrix in found:
        np.testing.assert_allclose(matrix, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("compiles", [lambda function: function, ms.jit], ids=["pynative", "jit"])
def test_hessian(compiles):
    hessian = ms.mint.func.hessian
    x = Tensor(np.array([0.5, -1.0, 2.0]))
    found = compiles(lambda x: hessian(lambda x: (ops.sin(x) * x.prod()).sum())(x))(x)
    wanted = [  # as PyTorch gives it
        [-3.03090471, 0.89148191, -0.15374959],
        [0.89148191, 0.23913363, -0.412672],
        [-0.15374959, -0.412672, 1.32544426],
    ]
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-7)
    (xx, xy), (yx, yy) = compiles(lambda x, y: hessian(lambda x, y: (x * x * y).sum(), (0, 1))(x, y))(X, Y)
    assert listed(xx) == [[10, 0], [0, 14]] and listed(xy) == listed(yx) == [[4, 0], [0, 6]]
    assert listed(yy) == [[0, 0], [0, 0]]
    both = hessian(lambda x, y: ((x * x * y).sum(), (x * y).sum()), (0, 1))(X, Y)
    assert listed(both[0][0][0]) == [[10, 0], [0, 14]] and listed(both[1][0][1]) == [[1, 0], [0, 1]]
    assert listed(hessian(lambda x: ((x**3).sum(), x, 7), has_aux=True)(X)) == ([[12, 0], [0, 18]], ([2, 3], 7))


def test_grad_through_products():
    # d/dx of d/dv-products: v * 3 x^2, and its derivative v * 6 x.
    cube = lambda a: a * a * a  # noqa: E731
    assert listed(ms.grad(lambda x: ms.jvp(cube, x, V)[1].sum())(X)) == [120, 360]
    assert listed(ms.grad(lambda x: ms.vjp(cube, x)[1](V)[0].sum())(X)) == [120, 360]
    assert listed(ms.grad(lambda v: ms.jvp(cube, X, v)[1].sum())(V)) == [12, 27]
    assert listed(ms.grad(lambda x: ms.vjp(cube, x)[0].sum())(X)) == [12, 27]
    output, product = ms.vjp(cube, X)  # made outside, used inside
    assert listed(ms.grad(lambda v: product(v)[0].sum())(V)) == [12, 27]


# Products at Z along W, and with the cotangent 1 + 0.5j (1 for real results), as PyTorch 2.15 gives them: for functions that are
# not holomorphic they are those of the real and imaginary parts.
Z, W = np.array([1 + 2j, 3 - 1j]), np.array([1j, 2 + 1j])
COMPLEX = {
    "square": (lambda z: z * z, [-4 + 2j, 14 + 2j], [4 - 3j, 5 + 5j]),
    "exp": (
        ops.exp,
        [-2.471726672 - 1.1312043838j, 38.6059203635 - 22.9505311561j],
        [0.1046589522 - 3.0373288639j, 2.4015636466 + 22.3275274922j],
    ),
    "abs": (ops.abs, [0.894427191, 1.5811388301], [0.4472135955 + 0.894427191j, 0.9486832981 - 0.316227766j]),
    "conj": (lambda z: ops.conj(z) * z, [4, 10], [2 + 4j, 6 - 2j]),
    "real": (ops.real, [0, 2], [1, 1]),
    "reciprocal": (lambda z: 1 / z, [-0.16 + 0.12j, -0.1 - 0.2j], [0.2 - 0.1j, -0.11 + 0.02j]),
    "angle": (ops.angle, [0.2, 0.5], [-0.4 + 0.2j, 0.1 + 0.3j]),
    "matmul": (lambda z: ops.matmul(z, z), 10 + 4j, [4 - 3j, 5 + 5j]),
    "sqrt": (
        ops.sqrt,
        [0.1757887921 + 0.2844322405j, 0.5100415216 + 0.3676171293j],
        [0.1965378444 + 0.3180049124j, 0.3000593082 + 0.0937314698j],
    ),
    "tanh": (
        ops.tanh,
        [-0.5681030209 - 0.3020015982j, -0.0172404298 + 0.0140118848j],
        [-0.0179500878 - 0.71910382j, 0.000432625 - 0.0110997374j],
    ),
}


@pytest.mark.parametrize("compiles", [lambda function: function, ms.jit], ids=["pynative", "jit"])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_products(name, compiles):
    function, pushed, pulled = COMPLEX[name]
    output, product = compiles(lambda z, w: ms.jvp(function, z, w))(Tensor(Z), Tensor(W))
    np.testing.assert_allclose(product.asnumpy(), pushed, rtol=1e-9, atol=1e-9)
    cotangent = Tensor(np.full(output.shape, 1 + 0.5j) if output.is_complex() else np.ones(output.shape))
    found = compiles(lambda z, c: ms.vjp(function, z)[1](c)[0])(Tensor(Z), cotangent)
    np.testing.assert_allclose(found.asnumpy(), pulled, rtol=1e-9, atol=1e-9)


def test_complex_jacobians_are_refused():
    for jacobian in (ms.jacfwd, ms.jacrev):
        with pytest.raises(TypeError, match="argument 0 must be real"):
            jacobian(lambda z: z * z)(Tensor(Z))
        with pytest.raises(TypeError, match="the output must be real"):
            jacobian(lambda x: ops.complex(x, x))(X)


def control(x, y):
    while x.sum() < 50:
        x = x * x + y if x[0] < 5 else x * y
    return x * y


def recursive(x, n):
    return x * recursive(ops.sin(x), n - 1) if n > 0 else x


def with_dropout(x):
    return ops.dropout(x, 0.5, True) * x


class Doubled(nn.Cell):
    def construct(self, x):
        return x * x

    def bprop(self, x, out, dout):
        return (dout * x * 4,)  # not the derivative: it must be asked


@pytest.mark.parametrize(
    "function",
    [power, lambda x, y: ops.stack((x, y)).softmax(-1), control, lambda x, y: recursive(x * y, Tensor(3))],
    ids=["power", "softmax", "control", "recursive"],
)
def test_within_jit(function):
    random = np.random.default_rng(0)
    x, y, v, w = (Tensor(random.uniform(1, 2, 2)) for _ in range(4))

    def everything(x, y, v, w):
        output, pull = ms.vjp(function, x, y)
        return (
            ms.jvp(function, (x, y), (v, w)),
            pull(output),
            ops.linearize(function, (x, y))[1](v, w),
            ms.jacfwd(function, (0, 1))(x, y),
            ms.jacrev(function, (0, 1))(x, y),
            ms.jvp(lambda *a: ms.jvp(function, a, (v, w))[1], (x, y), (w, v))[1],
            ms.jvp(lambda *a: ms.grad(lambda *b: function(*b).sum(), (0, 1))(*a), (x, y), (v, w))[1],
            ms.grad(lambda *a: ms.jvp(function, a, (v, w))[1].sum(), (0, 1))(x, y),
            ms.jacfwd(ms.jacrev(function))(x, y),
        )

    def flat(value):
        return sum(map(flat, value), []) if isinstance(value, (tuple, list)) else [value.asnumpy()]

    wanted, found = flat(everything(x, y, v, w)), flat(ms.jit(everything)(x, y, v, w))
    assert len(wanted) == len(found) == 15
    for actual, expected in zip(found, wanted):
        np.testing.assert_allclose(actual, expected, rtol=1e-10)
    step = 1e-6
    ahead, behind = (function(x + s * v, y + s * w).asnumpy() for s in (step, -step))
    np.testing.assert_allclose(wanted[1], (ahead - behind) / (2 * step), rtol=1e-6)


def test_a_compiled_function_can_be_pushed_through():
    compiled = ms.jit(power)
    assert listed(ms.jvp(compiled, (X, Y), (V, ONE))) == ([20, 63], [204, 849])
    assert listed(ms.jacfwd(compiled)(X, Y)) == listed(ms.jacrev(compiled)(X, Y)) == [[20, 0], [0, 42]]


@pytest.mark.parametrize("compiles", [lambda function: function, ms.jit], ids=["pynative", "jit"])
def test_random_numbers_are_those_of_the_output(compiles):
    x = ops.ones((100,), ms.float32)
    for _ in range(2):
        output, product = compiles(lambda x: ms.jvp(with_dropout, x, x))(x)
        assert listed(product) == listed(2 * output) and 0 < output.sum() < 200


@pytest.mark.parametrize("compiles", [lambda function: function, ms.jit], ids=["pynative", "jit"])
def test_random_numbers_in_branches_and_loops(compiles):
    def function(x):
        while x.sum() < 1000:
            x = ops.dropout(x, 0.5, True) + x if x[0] > 0 else x
        return x

    x = ops.ones((100,), ms.float32)
    output, product = compiles(lambda x: ms.jvp(function, x, x))(x)
    assert listed(product) == listed(output)


@pytest.mark.parametrize("compiles", [lambda function: function, ms.jit], ids=["pynative", "jit"])
def test_custom_gradients_count(compiles):
    cell = Doubled()
    found = compiles(lambda x, v: ms.jvp(lambda x: cell(x) + x, x, v))(X, V)
    assert listed(found) == ([6, 12], [4 * 2 * 10 + 10, 4 * 3 * 20 + 20])


def test_products_stay_in_the_graph_of_their_function():
    def function(x):
        _, pull = ms.vjp(lambda x: x * x, x)
        y = x
        if x.sum() > 0:
            y = pull(x)[0]
        return y

    with pytest.raises(NotImplementedError, match="'vjp', the product is taken in another 'if'"):
        ms.jit(function)(X)


def test_what_a_product_costs():
    """Forward mode is the function and its linear part: of the gradient rules nothing stays."""

    def function(x):
        return ops.tanh(ops.matmul(x, x))

    x = Tensor(np.ones((3, 3)))
    compiled = ms.jit(lambda x, v: ms.jvp(function, x, v))
    compiled(x, x)
    assert repr(compiled.__compiled__.graphs[0]).count("matrix_product(") == 3  # x x, v x and x v
    for jacobian, products in ((ms.jacfwd, 3), (ms.jacrev, 3)):  # of all unit vectors at once
        compiled = ms.jit(jacobian(function))
        compiled(x)
        assert repr(compiled.__compiled__.graphs[0]).count("matrix_product(") == products


def test_sizes_stay_open_in_graphs():
    compiled = ms.jit(lambda x, v: ms.jvp(lambda x: ops.softmax(x * x, -1), x, v)[1])
    for size in (3, 5, 8):
        x = Tensor(np.arange(size, dtype=np.float64) / size)
        assert compiled(x, x).shape == (size,)
    assert compiled.__compiled__.compiled == 1
    for jacobian in (ms.jacfwd, ms.jacrev):
        compiled = ms.jit(lambda x, jacobian=jacobian: jacobian(lambda x: ops.softmax(x * x, -1))(x))
        for size in (3, 5, 8):
            assert compiled(Tensor(np.arange(size, dtype=np.float64))).shape == (size, size)
        assert compiled.__compiled__.compiled == 1


@pytest.mark.parametrize("compiles", [lambda function: function, ms.jit], ids=["pynative", "jit"])
def test_derivatives_of_any_order(compiles):
    x = Tensor(np.array([0.5, -1.0, 2.0]))
    wanted = [  # of exp(sin x), as PyTorch gives them
        [1.41742422, 0.23291133, -1.03311687],
        [0.4695644, 0.48858043, -1.82747322],
        [-2.36444144, 0.42304606, 3.67243509],
        [-5.70773404, 0.72168604, 4.42449445],
    ]
    function = lambda x: ops.exp(ops.sin(x))  # noqa: E731
    for order in (1, 2, 3, 4):
        output, found = compiles(lambda x, order=order: ops.derivative(function, x, order))(x)
        np.testing.assert_allclose(found.asnumpy(), wanted[order - 1], rtol=1e-6)
        np.testing.assert_allclose(output.asnumpy(), function(x).asnumpy(), rtol=1e-12)
    series = Tensor(np.stack([np.ones(3), *np.zeros((3, 3))]))
    output, found = compiles(lambda x, s: ops.jet(function, x, s))(x, series)
    np.testing.assert_allclose(found.asnumpy(), wanted, rtol=1e-6)


def test_jet_along_a_curve():
    # x(t) = 2 + 3t + t^2, y(t) = 1 - t: x y = 2 + t - 2t^2 - t^3
    primals = (Tensor([2.0]), Tensor([1.0]))
    series = (Tensor([[3.0], [2.0], [0.0]]), Tensor([[-1.0], [0.0], [0.0]]))
    output, found = ops.jet(lambda x, y: (x * y, x + y), primals, series)
    assert listed(output) == ([2], [3]) and listed(found) == ([[1], [-4], [-6]], [[2], [2], [0]])
    assert listed(ops.jet(lambda x: x * x, Tensor([3]), Tensor([[1], [0]]))) == ([9], [[6], [2]])
    for order, message in ((0, "at least 1"), (-1, "at least 1")):
        with pytest.raises(ValueError, match=message):
            ops.derivative(ops.sin, X, order)
    with pytest.raises(TypeError, match="'order' must be an int"):
        ops.derivative(ops.sin, X, 2.0)
    with pytest.raises(ValueError, match="must have the shape"):
        ops.jet(ops.sin, X, X)
    with pytest.raises(ValueError, match="must hold 2 tensors"):
        ops.jet(power, (X, Y), X)
    with pytest.raises(TypeError, match="must be real numbers"):
        ops.jet(ops.sin, Tensor(Z), Tensor(Z[None]))


def test_wrong_arguments():
    with pytest.raises(ValueError, match="must hold 2 tensors"):
        ms.jvp(power, (X, Y), (V,))
    with pytest.raises(ValueError, match="a vector of shape"):
        ms.jvp(lambda a: a, X, t(1, 2, 3))
    with pytest.raises(TypeError, match="a vector of dtype Float16"):
        ms.jvp(lambda a: a, X, V.half())
    with pytest.raises(TypeError, match="'inputs' must be a Tensor"):
        ms.jvp(lambda a: a, 2.0, 1.0)
    with pytest.raises(TypeError, match="cannot be differentiated"):
        ms.jvp(lambda a: a, Tensor([True]), Tensor([True]))
    with pytest.raises(ValueError, match="two outputs or more"):
        ms.jvp(lambda a: a, X, V, True)
    with pytest.raises(TypeError, match="each input must be a Tensor"):
        ms.vjp(power, X, 3.0)
    with pytest.raises(ValueError, match="2 vectors are needed, but got 1"):
        ms.vjp(two, X, Y)[1](V)
    with pytest.raises(ValueError, match="shape"):
        ms.vjp(power, X, Y)[1](t(1, 2, 3))
    for make in (ms.jvp, ms.vjp, ops.linearize):
        with pytest.raises(TypeError, match=f"For '{make.__name__}', 'fn' must be a function"):
            make(3, X, *([V] if make is ms.jvp else []))
    for make in (ms.jacfwd, ms.jacrev):
        with pytest.raises(TypeError, match="'fn' must be a function"):
            make(3)
        with pytest.raises(TypeError, match="int or a tuple of ints"):
            make(power, [0, 1])
        with pytest.raises(ValueError, match=r"must be in \[0, 2\)"):
            make(power, 4)(X, Y)
        with pytest.raises(TypeError, match="argument 1 must be a Tensor"):
            make(power, 1)(X, 3.0)


@pytest.mark.parametrize("compiles", [lambda function: function, ms.jit], ids=["pynative", "jit"])
def test_batches_of_products(compiles):
    def function(x):
        return ops.softmax(x * x, -1)

    batch, v = (Tensor(np.random.default_rng(place).standard_normal((4, 3))) for place in range(2))
    found = compiles(lambda x, v: ms.vmap(lambda x, v: ms.jvp(function, x, v)[1])(x, v))(batch, v)
    around = compiles(lambda x, v: ms.jvp(ms.vmap(function), x, v)[1])(batch, v)
    jacobians = compiles(lambda x: ms.vmap(ms.jacfwd(function))(x))(batch)
    for row in range(4):
        wanted = ms.jvp(function, batch[row], v[row])[1].asnumpy()
        for products in (found, around):
            np.testing.assert_allclose(products[row].asnumpy(), wanted, rtol=1e-10)
        np.testing.assert_allclose(jacobians[row].asnumpy(), ms.jacrev(function)(batch[row]).asnumpy(), rtol=1e-10)
