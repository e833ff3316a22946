"""Control flow on tensors in graph mode beside what Python does: recursion, gradients of any order, jumps out of loops."""

import os

import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, nn, ops


def tensor(*values, dtype=np.float32):
    return Tensor(np.array(values if len(values) > 1 else values[0], dtype))


def same(actual, wanted, **tolerance):
    if isinstance(wanted, (tuple, list)):
        assert len(actual) == len(wanted)
        for a, b in zip(actual, wanted):
            same(a, b, **tolerance)
        return
    if isinstance(wanted, Tensor):
        assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape)
        wanted = wanted.asnumpy()
    actual = actual.asnumpy() if isinstance(actual, Tensor) else np.array(actual)
    (np.testing.assert_allclose if tolerance else np.testing.assert_array_equal)(actual, wanted, **tolerance)


def check(function, *args, order=2, rtol=1e-5):
    """Values are bitwise those of PyNative mode; gradients up to the order in which sums are taken."""
    same(ms.jit(lambda *a: function(*a))(*args), function(*args))
    places = tuple(i for i, arg in enumerate(args) if arg.dtype.is_floating_point)

    def total(result):
        return sum(total(part) for part in result) if isinstance(result, tuple) else ops.sum(result)

    slope = function
    for _ in range(order):
        slope = ms.grad(lambda *a, inner=slope: total(inner(*a)), places)
        same(ms.jit(lambda *a, outer=slope: outer(*a))(*args), slope(*args), rtol=rtol, atol=1e-6)


# --- gradients of loops ---


def newton(x):
    y = x
    while ops.abs(y * y - x).sum() > 1e-3:
        y = 0.5 * (y + x / y)
    return y


def with_operands(x, w):
    i, total = 0, x
    while i < 4:
        total = ops.sin(total * w) + x * w
        i += 1
    return total * i


def no_turns(x, w):
    while x.sum() > 1e6:
        x = x * w
    return x * w


def nested_loops(x, w):
    i, total = 0, x
    while i < 3:
        j = 0
        while j < 2:
            total = ops.tanh(total + w * x)
            j += 1
        if total.sum() > 0.5:
            total = total * total
        i += 1
    return total


def gradient_within(x, w):
    i = 0
    while i < 3:
        x = x - 0.1 * ms.grad(lambda v: (v * v * v * w).sum())(x)
        i += 1
    return x


LOOPS = [
    (newton, tensor(2.0, 3.0)),
    (with_operands, tensor(0.5, 0.75), tensor(1.5, -0.5)),
    (no_turns, tensor(0.5, 0.75), tensor(1.5, -0.5)),
    (nested_loops, tensor(0.5, 0.75), tensor(1.5, -0.5)),
    (gradient_within, tensor(0.5, 0.75), tensor(1.5, -0.5)),
]


@pytest.mark.parametrize("function,args", [(f, args) for f, *args in LOOPS], ids=lambda v: getattr(v, "__name__", ""))
def test_gradients_of_loops(function, args):
    args = [arg.astype(ms.float64) for arg in args]
    check(function, *args, order=3, rtol=1e-9)


# --- jumps out of loops ---


def first_above(x, w):
    i = 0
    while i < 10:
        x = x * w + 1
        if x.sum() > 6:
            return x * x
        i += 1
    return x


def two_returns(x, w):
    total, i = x * 0, 0
    while total.sum() < 8:
        i += 1
        if i > 6:
            return total, x[0] * i
        if x[0] < 0:
            x = -x
            continue
        if total[1] > 3:
            total = total + w
            if total[0] > 2:
                return w * total, x[1]
            break
        total = total + x * w
    return total * 2, total[0] * i


def nested_return(x, w):
    i = 0
    while i < 4:
        for k in range(3):
            if x[1] > 3 + k:
                return x * k
        j = 0
        while j < 3:
            x = x + w * 0.5
            if x[0] > 4:
                return x * w
            if x[1] < -2:
                break
            j += 1
        else:
            x = x * 1.25
        i += 1
    return x + 1


def plain_return(x, w):
    """One path returns nothing but tensors, the loop is left by return alone."""
    while x.sum() < 100:
        if x[0] > 2:
            if x[1] > 1:
                return ops.sin(x)
            return x
        x = x + ops.abs(w) + 0.25
    else:
        return x * w
    return x


def loop_with_else(x, w):
    while x.sum() < 10:
        x = x + 1
        if x[0] > w[0] * 4:
            break
    else:
        x = x * 100
    return x


def return_in_branch_of_loop_in_branch(x, w):
    if x[0] > 0:
        while x.sum() < 5:
            x = x + 1
            if w[0] > x[1]:
                return w
        x = x * 2
    return x + w


def constants_in_loops(x, w):
    mode, pair = "sum", None
    while x.sum() < 3:
        mode, pair = "sum", None
        x = x + 1
    return x if mode == "sum" and pair is None else w


def in_a_function(x, w):
    def find(v):
        while v.sum() < 20:
            v = v * 1.5 + 1
            if v[0] > w[0] * 2:
                return v * w
        return v

    return find(x) + find(x + 1)


JUMPS = [
    first_above,
    two_returns,
    nested_return,
    plain_return,
    loop_with_else,
    return_in_branch_of_loop_in_branch,
    constants_in_loops,
    in_a_function,
]


@pytest.mark.parametrize("values", [(0.5, 0.75, 1.5, -0.5), (-1.0, 2.0, 0.5, 0.25), (1.0, -3.0, 2.5, 1.0)], ids=str)
@pytest.mark.parametrize("function", JUMPS, ids=lambda f: f.__name__)
def test_jumps(function, values):
    check(function, tensor(*values[:2], dtype=np.float64), tensor(*values[2:], dtype=np.float64), rtol=1e-9)


# --- recursion ---


def factorial(n):
    if n <= 1:
        return ops.ones_like(n)
    return n * factorial(n - 1)


def fibonacci(n):
    return n * 1.5 if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def power(x, n):
    if n == 0:
        return ops.ones_like(x)
    if n % 2 == 0:
        return power(x * x, n // 2)
    return x * power(x, n - 1)


def even(n, x):
    return x if n == 0 else odd(n - 1, x * 2)


def odd(n, x):
    return x * x if n == 0 else even(n - 1, ops.sin(x))


def two_functions(n, x):
    if n <= 0:
        return x
    return helper(n - 1, x) + two_functions(n - 2, x * x)


def helper(n, x):
    if n <= 0:
        return x * 3
    return helper(n - 1, x) * two_functions(n - 1, x)


def pair(n, x):
    """A structure, and names that are merged before the end."""
    if n > 0:
        a, b = pair(n - 1, x * 0.5)
        a = a + b * x
    else:
        a, b = x, ops.exp(x)
    return a, b


def closure(x, w):
    def halve(y):
        if y.sum() > 1:
            return halve(y * 0.5) * w
        return y + x

    return halve(x)


def in_a_loop(x, n):
    while x.sum() < 30:
        x = x + power(x, n)
    return x


def loop_inside(n, x):
    if n <= 0:
        return x
    i = 0
    while i < 2:
        x = x * ops.cos(x)
        i += 1
    return loop_inside(n - 1, x) + x


RECURSIVE = [
    (factorial, tensor(5.0)),
    (factorial, tensor(1.0)),
    (factorial, tensor(5, dtype=np.int32)),
    (fibonacci, tensor(7.0)),
    (power, tensor(1.5, 2.0), tensor(11, dtype=np.int64)),
    (even, tensor(5, dtype=np.int32), tensor(0.5, 0.25)),
    (two_functions, tensor(4, dtype=np.int32), tensor(0.5, 1.25)),
    (pair, tensor(3, dtype=np.int32), tensor(0.5, 1.25)),
    (closure, tensor(3.0, 4.0), tensor(2.0, 0.5)),
    (in_a_loop, tensor(1.5, 2.0), tensor(2, dtype=np.int64)),
    (loop_inside, tensor(2, dtype=np.int32), tensor(0.5, 1.25)),
]


@pytest.mark.parametrize(
    "function,args", [(f, args) for f, *args in RECURSIVE], ids=lambda v: getattr(v, "__name__", "")
)
def test_recursion(function, args):
    check(function, *args, order=2 if any(arg.dtype.is_floating_point for arg in args) else 0)


def test_numbers_that_a_recursion_returns():
    def count(n):
        return 0 if n <= 0 else 1 + count(n - 2)

    for n in (0, 1, 6):
        for dtype in (np.int32, np.float32):
            assert int(ms.jit(count)(tensor(n, dtype=dtype)).asnumpy()) == count(tensor(n, dtype=dtype))

    def product(n):
        return 1 if n <= 1 else n * product(n - 1)

    weak = ms.jit(product)

    assert weak(tensor(5, dtype=np.int32)).dtype == ms.int32  # the number 1 has no dtype of its own
    assert int(weak(tensor(5, dtype=np.int32)).asnumpy()) == 120


def test_recursion_of_cells():
    class Tree(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(tensor(0.5, 0.75), name="weight")

        def construct(self, x, n):
            if n <= 0:
                return x
            return ops.tanh(self(x, n - 1) * self.weight) + self(x * self.weight, n - 2)

    net, x, n = Tree(), tensor(1.0, 2.0), tensor(4, dtype=np.int32)
    gradients = ms.value_and_grad(lambda a, b: net(a, b).sum(), 0, net.trainable_params())
    same(ms.jit(lambda a, b: gradients(a, b))(x, n), gradients(x, n), rtol=1e-5)
    wanted = net(x, n)
    same(ms.jit(net)(x, n), wanted)


def test_recursion_deeper_than_python_allows():
    def count(n, total):
        return total if n == 0 else count(n - 1, total + n)

    depth = 300 if "MOREL_TEST_SANITIZER" in os.environ else 3000  # a sanitizer's frames on the stack are larger
    assert int(ms.jit(count)(tensor(depth), tensor(0)).asnumpy()) == depth * (depth + 1) // 2
    with pytest.raises(RuntimeError, match="'count' calls itself too deeply"):
        ms.jit(count)(tensor(10**8), tensor(0))


# --- random numbers ---


drop = nn.Dropout(p=0.4)
drop.set_train()


def random_branch(x):
    x = drop(x)
    if x.sum() > -100:
        y = drop(x) * drop(x)
    else:
        y = x
    return y * drop(x)


def random_choice(x):
    y = drop(x) * ops.rand_like(x) if x.sum() > -100 else x
    return drop(y) * ops.randn_like(x) if x.sum() < -100 else y * drop(x)


def random_loop(x):
    i = 0
    while i < 3:
        if x[0] > -100:
            x = drop(ops.sin(x)) * x
        i += 1
    return x * drop(x)


def random_recursion(x, n=None):
    if n is None:
        return random_recursion(x, x.sum() * 0 + 2)
    if n <= 0:
        return drop(x)
    y = drop(x)
    return (random_recursion(y * x, n - 1) + random_recursion(y * x, n - 1)) * drop(y)


@pytest.mark.parametrize(
    "function", [random_branch, random_choice, random_loop, random_recursion], ids=lambda f: f.__name__
)
def test_gradients_of_what_draws_random_numbers(function):
    x = Tensor(np.random.default_rng(0).standard_normal(8))
    slope = function
    for _ in range(3):
        results = []
        for run in (slope, ms.jit(lambda v, f=slope: f(v))):
            ms.set_seed(3)
            results.append((run(x), ops.uniform((3,), Tensor(0.0), Tensor(1.0))))
        same(results[1], results[0], rtol=1e-9, atol=1e-12)
        slope = ms.grad(lambda v, f=slope: (f(v) * v).sum())


# --- what the gradient computes again ---


class Normalized(nn.Cell):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.set_train()


class NormalizedBranch(Normalized):
    def construct(self, x):
        if x.sum() > 0:
            x = self.norm(x) * x
        return (x**3).sum()


class NormalizedLoop(Normalized):
    def construct(self, x):
        i = 0
        while i < x.sum() * 0 + 3:
            if i > 0:
                x = self.norm(x) * x + 1
            i += 1
        return (x**2).sum()


def _recursion_of(norm, x):
    if x.sum() > 1000:
        return x
    return _recursion_of(norm, norm(x) + x * 2)


@pytest.mark.parametrize("net", [NormalizedBranch, NormalizedLoop])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("way", ["gradient compiled", "compiled in gradient"])
def test_running_statistics_change_once(net, order, way):
    x = Tensor(np.random.default_rng(0).normal(1, 1, (8, 2)))
    results = []
    for is_compiled in (False, True):
        cell = net()
        function = slope = lambda v, cell=cell: cell(v)
        if is_compiled and way == "compiled in gradient":
            slope = ms.jit(function) if order == 1 else ms.jit(lambda v, f=function: (ms.grad(f)(v) * v).sum())
        elif order == 2:
            slope = lambda v, f=function: (ms.grad(f)(v) * v).sum()  # noqa: E731
        slope = ms.grad(slope)
        if is_compiled and way == "gradient compiled":
            slope = ms.jit(lambda v, f=slope: f(v))
        results.append((slope(x), cell.norm.moving_mean + 0, cell.norm.moving_variance + 0))
    same(results[1], results[0], rtol=1e-5, atol=1e-6)


def test_a_recursion_that_changes_running_statistics_has_no_gradient():
    norm = nn.BatchNorm1d(2)
    norm.set_train()
    with pytest.raises(
        NotImplementedError, match=r"running statistics, is not supported \(test_graph_control.py:\d+\)"
    ):
        ms.jit(ms.grad(lambda v: _recursion_of(norm, v).sum()))(ops.ones((4, 2)))


dense = nn.SequentialCell(nn.Dense(2, 2, weight_init=0.5), nn.Tanh())


def recomputed_branch(x):
    if x.sum() > -100:
        x = x + ms.recompute(dense, x)
    return x.sum()


def recomputed_loop(x):
    i = 0
    while i < 3:
        x = ms.recompute(dense, x)
        i += 1
    return x.sum()


def recomputed_recursion(x):
    if x.sum() > 5:
        return x.sum()
    return recomputed_recursion(ms.recompute(dense, x) + 1)


@pytest.mark.parametrize("function", [recomputed_branch, recomputed_loop, recomputed_recursion])
def test_recomputation_inside(function):
    x = tensor([0.1, 0.2], [0.3, -0.4])
    slope = ms.grad(function, 0, dense.trainable_params())
    wanted = slope(x)
    assert all(abs(weight).sum() > 0 for weight in wanted[1])
    same(ms.jit(lambda v: slope(v))(x), wanted, rtol=1e-5)
    same(ms.grad(ms.jit(function), 0, dense.trainable_params())(x), wanted, rtol=1e-5)


class Backward(nn.Cell):
    def construct(self, x):
        return x * x

    def bprop(self, x, _out, dout):
        return (dout * x * 100,)


def test_bprop_in_branches():
    cell, x = Backward(), tensor(1.0, 2.0)

    def inside(x):
        if x.sum() > 0:
            x = ms.grad(lambda v: cell(v).sum())(x)
        return x

    def outside(x):
        if x.sum() > 0:
            x = ops.sin(cell(x).reshape(1, 2).reshape(2))
        return x.sum()

    same(ms.jit(inside)(x), tensor(100.0, 200.0))
    same(ms.jit(outside)(x), outside(x))
    for slope in (ms.jit(ms.grad(outside)), ms.grad(ms.jit(outside))):
        with pytest.raises(NotImplementedError, match="a Cell with bprop or hooks within an 'if'"):
            slope(x)


# --- and, or ---


def either(x):
    return x[0] or x[1]


def both(x):
    return x[0] and x[1] and x[0] + x[1]


def either_condition(x):
    if (x.sum() > 0) or x[0]:
        return x
    return -x * (0 if not (x[0] or x[1]) else 1)


def lazy(x):
    y = x[0] and 1 / x[0]
    return y * x


@pytest.mark.parametrize("function", [either, both, either_condition, lazy])
@pytest.mark.parametrize("values", [(1, 2), (-1, -2), (0, 2), (-1, 0), (0, 0)])
def test_operands_of_and_and_or(function, values):
    check(function, tensor(*values), order=1)


def _operands_of_two_dtypes(x):
    return (x.sum() > 0) or x[0]


def _number_or_tensor(x):
    y = 0
    if x.sum() > 0:
        y = x
    return y


# --- errors ---


def _never_ends(n):
    if n > 3:
        return _never_ends(n - 1)
    return _never_ends(n + 1)


def _grows(x):
    if x.sum() > 100:
        return x
    return _grows(ops.concat((x, x[:1])))


def _unsettled_text(x):
    if x.sum() > 100:
        return x
    return (_unsettled_text(x * 2),)


def _changes_argument(x):
    x.add_(1)
    if x.sum() > 100:
        return x
    return _changes_argument(x * 2)


def _no_condition(x):
    return _no_condition(x + 1)


ERRORS = [
    (_never_ends, NotImplementedError, "'_never_ends' calls itself on every path"),
    (_grows, NotImplementedError, "with arguments of the same types"),
    (_unsettled_text, NotImplementedError, "different structure"),
    (_changes_argument, NotImplementedError, "changes an argument in place"),
    (_operands_of_two_dtypes, TypeError, r"'or' .* they have \(\) of Bool and \(\) of Float32"),
    (_number_or_tensor, TypeError, r"the number 0 and a tensor of shape \(2,\); make the number a tensor"),
    (_no_condition, NotImplementedError, "only under an 'if' on a tensor"),
]


@pytest.mark.parametrize("function,kind,text", ERRORS, ids=[case[0].__name__ for case in ERRORS])
def test_errors(function, kind, text):
    with pytest.raises(kind, match=text) as caught:
        ms.jit(function)(tensor(1.0, 2.0) if function is not _never_ends else tensor(1.0))
    assert "test_graph_control.py" in str(caught.value) and "^" in str(caught.value)
    assert not ms._core.graph_active()  # the thread can go on


def _listed(value):
    if isinstance(value, (tuple, list)):
        return type(value)(map(_listed, value))
    return value.asnumpy().tolist() if isinstance(value, Tensor) else value


def test_functions_of_python_in_graphs():
    @ms.jit
    def run(x):
        rows = [row for row in zip(x, (1, 2))]
        return (
            map(lambda a, b: a * b, x, (1, 2)),
            map(abs, [-2]),
            filter(lambda a: a > 1, (1, 2)),
            sum(x),
            rows,
        )

    x = tensor([1, 2], [3, 4])
    assert _listed(run(x)) == (([1, 2], [6, 8]), [2], [2], [4, 6], [([1, 2], 1), ([3, 4], 2)])

    @ms.jit
    def wrong(x):
        return isinstance(x, [int, float])

    with pytest.raises(TypeError, match="must be a type or tuple of types"):
        wrong(x)


def test_a_function_is_chosen_by_a_tensor():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layers = nn.CellList([nn.ReLU(), nn.Tanh()])

        def construct(self, x, index):
            own = (lambda a: a * 2, lambda a: a + 1, lambda a: a - 5)
            return self.layers[index](x), own[index](x), ms.ops.switch_layer(index, own)(x), (1.0, 2.0)[index]

    net = Net()
    net.construct = ms.jit(net.construct)
    x = tensor(-1.0, 3.0)
    for index in (0, 1, -1):
        own = (x * 2, x + 1, x - 5)[index]
        wanted = ((nn.ReLU(), nn.Tanh())[index](x), own, own, Tensor((1.0, 2.0)[index]))
        for found, value in zip(net(x, tensor(index, dtype=np.int32).reshape(())), wanted):
            np.testing.assert_allclose(found.asnumpy(), value.asnumpy(), rtol=1e-5)


def test_errors_with_several_arguments_keep_them():
    @ms.jit
    def run(x):
        raise ValueError("a", 3, x.ndim)

    with pytest.raises(ValueError, match=r"\('a', 3, 1\)"):
        run(tensor(1.0, 2.0))
