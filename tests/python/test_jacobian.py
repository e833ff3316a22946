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


def test_grad_through_products():
    # d/dx of d/dv-products: v * 3 x^2, and its derivative v * 6 x.
    cube = lambda a: a * a * a  # noqa: E731
    assert listed(ms.grad(lambda x: ms.jvp(cube, x, V)[1].sum())(X)) == [120, 360]
    assert listed(ms.grad(lambda x: ms.vjp(cube, x)[1](V)[0].sum())(X)) == [120, 360]
    assert listed(ms.grad(lambda v: ms.jvp(cube, X, v)[1].sum())(V)) == [12, 27]
    assert listed(ms.grad(lambda x: ms.vjp(cube, x)[0].sum())(X)) == [12, 27]
    output, product = ms.vjp(cube, X)  # made outside, used inside
    assert listed(ms.grad(lambda v: product(v)[0].sum())(V)) == [12, 27]


def test_complex_products():
    z = Tensor(np.array([1 + 2j, 3 - 1j], np.complex64))
    v = Tensor(np.array([1j, 2 + 1j], np.complex64))
    expected = 2 * z.asnumpy() * v.asnumpy()
    np.testing.assert_allclose(ms.jvp(lambda z: z * z, z, v)[1].asnumpy(), expected, rtol=1e-6)


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


def test_within_jit():
    with pytest.raises(NotImplementedError, match="'jvp' is not supported within jit yet"):
        ms.jit(lambda x: ms.jvp(power, (x, Y), (V, ONE)))(X)


def test_transforms_that_are_not_there_say_what_to_use():
    for function in (ms.vmap, ops.vmap, ops.jet, ops.derivative):
        with pytest.raises(NotImplementedError, match=f"ops.{function.__name__} is not supported yet; "):
            function(power, X)
