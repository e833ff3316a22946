"""Graph mode as a language: what jit compiles gives what Python gives; what it cannot compile says where and why."""

import functools
import importlib

import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, nn, ops


def tensor(*values):
    return Tensor(np.array(values, np.float32))


def check(function, *args):
    """jit gives what the function itself gives."""
    wanted, actual = function(*args), ms.jit(function)(*args)

    def compare(a, b):
        if isinstance(b, (tuple, list)):
            assert type(a) is type(b) and len(a) == len(b)
            for x, y in zip(a, b):
                compare(x, y)
        elif isinstance(b, dict):
            assert list(a) == list(b)
            for key in b:
                compare(a[key], b[key])
        elif isinstance(b, Tensor):
            np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6)
        elif isinstance(a, Tensor):  # a number that depends on a tensor
            assert float(a.asnumpy()) == float(b)
        else:
            assert a == b

    compare(actual, wanted)


# --- functions of one vector that a graph must be able to hold ---


def arithmetic(x):
    y = -x + 2 * x**2 - x / 3
    y += 1
    return y @ x, y % 2, y > 1, (x < 0) & (y > 0)


def containers(x):
    pair = (x, x + 1)
    first, *rest = [*pair, x * 2]
    named = {"a": first, "b": rest[1], "n": len(rest)}
    named["c"] = named["a"][1:]
    return named, [value.shape for value in pair], f"{len(pair)} of {x.shape}"


def comprehensions(x):
    parts = [x[i] * i for i in range(3) if i != 1]
    table = {str(i): part for i, part in enumerate(parts)}
    return sum(value for value in table.values()), {k for k in (1, 2)} == {1, 2}


def nested_functions(x):
    scale = 3

    def inner(y, *more, power=2, **options):
        nonlocal scale
        scale = scale + 1
        return (y * scale) ** power + sum(more) + options.get("extra", 0)

    double = lambda v: inner(v, 1, 2, extra=x)  # noqa: E731
    return (lambda f, v: f(v))(double, x), scale


def loops(x):
    total = x * 0
    for i, (a, b) in enumerate(zip(range(4), "abcd")):
        if b == "b":
            continue
        if i == 3:
            break
        total = total + a * x
    else:
        total = total * 100
    n = 0
    while n < 3:
        n += 1
        total = total + n
    return total


def rows(x):
    out = []
    for value in x:
        out.append(value * 2)
    a, b, c = x
    return ops.stack(out), a + b + c


def branch(x):
    if x.sum() > 0:
        y, z = x * 2, 1
    else:
        y, z = x - 1, 2.5
    return y, z


def nested_branches(x):
    y = x
    if x[0] > 0:
        if x[1] > 0:
            y = y + 1
        else:
            y = y * 5
    elif not x[2] > 0:
        y = y - 3
    return y


def early_return(x):
    if x.sum() > 10:
        return x
    y = x + 1
    if y[0] > 0 and y[1] < 5:
        return y * 2
    for i in range(3):
        if x[0] > i:
            return y * i
        y = y + 1
    return y


def early_break(x):
    total = x * 0
    for _ in range(4):
        total = total + x
        if total.sum() > 3:
            break
        if x[0] < 0:
            continue
        total = total + 1
    return total


def conditional_expression(x):
    return (x if x[0] > 0 else -x) + (1 if x[1] > 0 else 2)


def tensor_loop(x):
    i, total = 0, x * 0.0
    while total.sum() < 20 and i < 50:
        if x[0] > 0:
            total = total + x * x
        else:
            total = total + 1
        i += 1
    return total, i


def jumps_in_tensor_loop(x):
    i, total = 0, x * 0.0
    while total.sum() < 50:
        i += 1
        if i > 20:
            break
        if x[0] < 0 and i < 5:
            continue
        total = total + ops.abs(x)
        if total[1] > 4:
            total = total * 2
            if total[2] > 6:
                break
        total = total + 0.5
    return total, i


def in_place(x):
    y = x * 1
    y[0] = 5
    y[1:] += 1
    z = y[1:]
    z.mul_(2.0)
    return y, z


def chained_comparison(x):
    return -1 < x.sum() < 3, 1 < 2 < 3, x is x


def gradients(x):
    def f(v):
        return (ops.sin(v) * x).sum()

    return ms.grad(f)(x), ms.value_and_grad(f)(x), ms.grad(lambda v: ms.grad(f)(v).sum())(x)


def gradient_of_branch(x):
    def f(v):
        y = v * 3
        if v.sum() > 0:
            y = y * v * x
            if v[0] > 2:
                y = y + v
        else:
            y = ops.sin(v)
        return y.sum()

    return ms.grad(f)(x), ms.grad(lambda v: (ms.grad(f)(v) * v).sum())(x)


def gradient_of_loop(x):
    def f(v, w):
        i, total = 0, v
        while total.sum() < 30 and i < 6:
            total = total * v * w + ops.sin(w)
            i += 1
        return total.sum()

    return ms.grad(f, (0, 1))(x, x + 0.5)


def third_order(x):
    return ms.grad(ms.grad(ms.grad(lambda v: (v**4).sum() * v[0])))(x)


CASES = [value for value in list(globals().values()) if callable(value) and getattr(value, "__code__", None)]
CASES = [f for f in CASES if f.__code__.co_varnames[:1] == ("x",) and f.__code__.co_argcount == 1]


@pytest.mark.parametrize("values", [(1.0, 2.0, 3.0), (-1.0, -2.0, 0.5), (0.25, -0.5, -4.0)], ids=str)
@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_language(function, values):
    check(function, tensor(*values))


def test_arguments():
    @ms.jit
    def f(a, b=2, *rest, scale=1.0, **named):
        return a * b * scale + sum(rest) + named.get("extra", 0)

    x = tensor(1, 2)
    np.testing.assert_allclose(f(x).asnumpy(), [2, 4])
    np.testing.assert_allclose(f(x, 3, x, x, scale=2.0, extra=1).asnumpy(), [9, 17])
    with pytest.raises(TypeError, match="missing the argument 'a'"):
        f()
    with pytest.raises(TypeError, match="unexpected keyword"):
        ms.jit(lambda v: v)(x, other=1)


def test_one_graph_for_each_kind_of_arguments():
    f = ms.jit(lambda x, n: x * n)
    for n, x in ((2, tensor(1, 2)), (2, tensor(3, 4)), (3, tensor(1, 2)), (2, tensor(1, 2, 3)), (2, tensor(1, 2))):
        np.testing.assert_allclose(f(x, n).asnumpy(), x.asnumpy() * n)
    assert f.__compiled__.compiled == 2  # a new size needs no graph, a new number does


_factor = 2.0


def test_python_values_are_read_again():
    global _factor

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.scale, self.twice = 1.0, False

        def construct(self, x):
            return x * self.scale * _factor * (2 if self.twice else 1)

    outer = 1.0

    def plus(x):
        return net(x) + outer

    net, x = Net(), tensor(1, 2)
    run = ms.jit(plus)
    for _ in range(2):
        np.testing.assert_allclose(run(x).asnumpy(), [3, 5])
    net.scale = 3.0
    np.testing.assert_allclose(run(x).asnumpy(), [7, 13])
    net.twice = True
    np.testing.assert_allclose(run(x).asnumpy(), [13, 25])
    outer = 2.0
    np.testing.assert_allclose(run(x).asnumpy(), [14, 26])
    try:
        _factor = 1.0
        np.testing.assert_allclose(run(x).asnumpy(), [8, 14])
    finally:
        _factor = 2.0


def test_tensors_of_outside_are_replaced():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(tensor(1, 2), name="weight")

        def construct(self, x):
            return x * self.weight + outer

    net, outer, x = Net(), tensor(0, 0), tensor(1, 1)
    run = ms.jit(lambda x: net(x))
    for _ in range(2):
        np.testing.assert_allclose(run(x).asnumpy(), [1, 2])
    first = net.weight
    net.weight = Parameter(tensor(3, 4), name="weight")
    np.testing.assert_allclose(run(x).asnumpy(), [3, 4])
    for i in range(5):
        outer = tensor(i, 10)
        np.testing.assert_allclose(run(x).asnumpy(), [3 + i, 14])
    net.weight = first
    np.testing.assert_allclose(run(x).asnumpy(), [5, 12])
    assert len(run.__compiled__.graphs) < 4  # those of tensors that are gone are not kept


def test_arguments_change_in_place():
    def change(x, y):
        before = x * 2
        x.add_(y)
        x[1:] = before[1:]
        part = y[:1]
        part.mul_(3.0)
        return x + y, before

    results = []
    for run in (change, ms.jit(change), ms.jit(change)):
        x, y = tensor(1, 2, 3), tensor(4, 5, 6)
        results.append([value.asnumpy().tolist() for value in (*run(x, y), x, y)])
    assert results[0] == results[1] == results[2] == [[17, 9, 12], [2, 4, 6], [5, 4, 6], [12, 5, 6]]
    with pytest.raises(NotImplementedError, match="'change' changes an argument in place"):
        ms.grad(lambda v: ms.jit(change)(v * 1, v * 1)[0].sum())(tensor(1, 2, 3))


def test_objects_as_arguments():
    f = ms.jit(lambda x, a: x * a.sum())
    for i in range(20):
        assert float(f(tensor(1), a=np.full(3, float(i))).asnumpy()[0]) == 3 * i
    g = ms.jit(lambda x, n: x / n)
    assert g(tensor(1), 0.0).asnumpy()[0] == np.inf and g(tensor(1), -0.0).asnumpy()[0] == -np.inf
    for _ in range(3):
        g(tensor(1), float("nan"))
    assert g.__compiled__.compiled == 3


def test_a_tensor_of_a_graph_is_not_used_outside():
    kept = []

    @ms.jit
    def f(x):
        kept.append(x * 2)
        return kept[0]

    f(tensor(1, 2))
    for use in (lambda t: t + 1, ms.grad(lambda t: t.sum()), lambda t: t.asnumpy(), str):
        with pytest.raises(RuntimeError, match="graph(.|\\n)*used outside of it"):
            use(kept[0])


def test_long_chains_compile_in_linear_time():
    def chain(x):
        for _ in range(3000):
            x = ops.tanh(x) + 0.01
        return x

    check(chain, tensor(1, 2))


def test_lambdas_within_lambdas():
    x = tensor(1, 2)
    choose = (lambda t: (lambda t: t * 10) if t is None else t + 1)(None)
    np.testing.assert_allclose(ms.jit(choose)(x).asnumpy(), [10, 20])
    np.testing.assert_allclose(ms.jit((lambda k: lambda t: t + k)(7))(x).asnumpy(), [8, 9])


def test_partial_and_bound_methods():
    class Scaler:
        def __init__(self, factor):
            self.factor = factor

        @ms.jit
        def scale(self, x):
            return x * self.factor

        def plain(self, x):
            return x + self.factor

    x = tensor(1, 2)
    np.testing.assert_allclose(Scaler(3).scale(x).asnumpy(), [3, 6])
    np.testing.assert_allclose(Scaler(4).scale(x).asnumpy(), [4, 8])
    np.testing.assert_allclose(ms.jit(Scaler(4).plain)(x).asnumpy(), [5, 6])
    np.testing.assert_allclose(ms.jit(lambda v: functools.partial(Scaler(1).plain)(v))(x).asnumpy(), [2, 3])


class Counter(nn.Cell):
    def __init__(self):
        super().__init__()
        self.count = Parameter(Tensor(0.0, ms.float32), name="count", requires_grad=False)
        self.dense = nn.Dense(3, 2)

    def construct(self, x):
        self.count += 1
        y = self.dense(x)
        if self.count > 2:
            y = y * 0
        return y


def test_parameters_change_in_the_order_of_the_source():
    cell = Counter()
    step = ms.jit(cell)
    x = Tensor(np.ones((2, 3), np.float32))
    results = [np.abs(step(x).asnumpy()).sum() for _ in range(3)]
    assert float(cell.count.asnumpy()) == 3
    assert results[0] == results[1] > 0 and results[2] == 0
    cell.dense.bias.set_data(Tensor(np.array([7, 7], np.float32)))
    cell.count.set_data(Tensor(0.0, ms.float32))
    assert np.abs(step(x).asnumpy()).sum() > results[0]  # parameters are read at every call


def test_training_flag():
    cell = nn.Dropout(p=0.5)
    run = ms.jit(lambda x: cell(x))
    x = Tensor(np.ones((4, 64), np.float32))
    cell.set_train(False)
    first = run(x)
    assert (first.asnumpy() == 1).all()

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(p=0.5)

        def construct(self, x):
            return self.drop(x)

    net = ms.jit(Net())
    net.set_train(True)
    a, b = net(x).asnumpy(), net(x).asnumpy()
    assert (a == 0).any() and (a != b).any()  # new random numbers at every call
    net.set_train(False)
    assert (net(x).asnumpy() == 1).all()


def test_random_numbers_are_those_of_pynative():
    drop = nn.Dropout(p=0.3)
    drop.set_train()
    x = Tensor(np.ones((8, 16), np.float32))
    gradient = ms.grad(lambda v: (drop(v) * v).sum())
    ms.set_seed(5)
    wanted = gradient(x).asnumpy()
    ms.set_seed(5)
    np.testing.assert_array_equal(ms.jit(lambda v: gradient(v))(x).asnumpy(), wanted)


def test_custom_bprop():
    class Double(nn.Cell):
        def construct(self, x):
            return x * 2

        def bprop(self, x, out, dout):
            return (dout * 10,)

    cell = Double()
    gradient = ms.jit(lambda x: ms.grad(lambda v: cell(v).sum())(x))(tensor(1, 2))
    np.testing.assert_allclose(gradient.asnumpy(), [10, 10])


def test_stop_gradient_and_aux():
    def f(x):
        return (x * ops.stop_gradient(x)).sum(), x + 1

    def g(x):
        return ms.value_and_grad(f, 0, None, has_aux=True)(x)

    check(g, tensor(1, 2))


OPTIMIZERS = {
    "adam": lambda p: nn.Adam(p, 0.01, weight_decay=0.1),
    "momentum": lambda p: nn.Momentum(p, 0.1, 0.9),
    "sgd": lambda p: nn.SGD(p, 0.1),
    "adamw": lambda p: nn.AdamWeightDecay(p, 0.01),
    "rmsprop": lambda p: nn.RMSProp(p, 0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_step(name):
    x = Tensor(np.random.default_rng(0).standard_normal((16, 5)).astype(np.float32))
    y = Tensor(np.random.default_rng(1).integers(0, 3, 16).astype(np.int32))

    def make():
        ms.set_seed(3)
        net = nn.SequentialCell(nn.Dense(5, 8), nn.Tanh(), nn.BatchNorm1d(8), nn.Dense(8, 3))
        net.set_train()
        loss, optimizer = nn.CrossEntropyLoss(), OPTIMIZERS[name](net.trainable_params())
        gradients = ms.value_and_grad(lambda a, b: loss(net(a), b), None, optimizer.parameters)

        def step(a, b):
            value, found = gradients(a, b)
            optimizer(found)
            return value

        return net, step

    (plain, eager), (compiled, step) = make(), make()
    graph = ms.jit(step)
    for _ in range(4):
        np.testing.assert_allclose(graph(x, y).asnumpy(), eager(x, y).asnumpy(), rtol=1e-5)
    for a, b in zip(compiled.get_parameters(), plain.get_parameters()):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=2e-5, atol=1e-6)


# --- errors ---


def test_error_shows_the_line():
    def f(x):
        y = x + 1
        return y.reshape(7)

    with pytest.raises(ValueError) as caught:
        ms.jit(f)(tensor(1, 2))
    text = str(caught.value)
    assert "test_graph.py" in text and "return y.reshape(7)" in text and "^" in text


def _try(x):
    try:
        return x
    except ValueError:
        return x


def _value_of_tensor(x):
    return float(x[0])


def _different_shapes(x):
    if x.sum() > 0:
        y = x
    else:
        y = x[:1]
    return y


def _one_branch_only(x):
    if x.sum() > 0:
        y = x
    return y


def _text_from_branch(x):
    name = "a" if x.sum() > 0 else "b"
    return name


def _shape_changes_in_loop(x):
    while x.sum() < 10:
        x = ops.concat((x, x))
    return x


def _unknown_name(x):
    return x + missing  # noqa: F821


ERRORS = [
    (_try, NotImplementedError, "'try' is not supported in a compiled function; call"),
    (_value_of_tensor, RuntimeError, "only its shape and dtype are known"),
    (_different_shapes, TypeError, "different shapes"),
    (_one_branch_only, UnboundLocalError, "is not defined in false branch"),
    (_text_from_branch, NotImplementedError, "only tensors and numbers can"),
    (_shape_changes_in_loop, TypeError, "changes the shape of 'x'"),
    (_unknown_name, NameError, "name 'missing' is not defined"),
]


@pytest.mark.parametrize("function,kind,text", ERRORS, ids=[case[0].__name__ for case in ERRORS])
def test_errors(function, kind, text):
    with pytest.raises(kind, match=text) as caught:
        ms.jit(function)(tensor(1, 2))
    assert "test_graph.py" in str(caught.value)
    assert not ms._core.graph_active()  # the thread can go on
    check(arithmetic, tensor(1, 2, 3))


def test_a_parameter_is_not_read_while_compiling():
    weight = Parameter(tensor(1, 2), name="weight")
    scale = Parameter(Tensor(2.0, ms.float32), name="scale")
    for function in (lambda x: x * weight.asnumpy(), lambda x: x * scale.item(), lambda x: x * float(scale)):
        with pytest.raises(RuntimeError, match="while a graph is compiled"):
            ms.jit(function)(tensor(1, 2))


def test_arrays_of_numpy_are_operands():
    array, x = np.array([3, 4], np.float32), tensor(1, 2)
    cases = (
        (lambda x: x + array, [4, 6]),
        (lambda x: array - x, [2, 2]),
        (lambda x: np.sqrt(4) * x, [2, 4]),
        (lambda x: x / np.float32(2), [0.5, 1]),
        (lambda x: array @ x, 11),
        (lambda x: array > x * 2.5, [True, False]),
    )
    for function, wanted in cases:
        for result in (function(x), ms.jit(lambda x, f=function: f(x))(x)):
            assert isinstance(result, Tensor) and result.tolist() == wanted
            assert result.dtype in (ms.float32, ms.bool_)
    assert (x + np.ones(2)).dtype == ms.float64  # as Tensor(array) has it
    assert np.negative(x).tolist() == [-1, -2]


def test_module_that_is_loaded_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "loaded_again.py"
    module = None
    for offset in ("", " + 100"):
        file.write_text(f"import morel as ms\n\n\n@ms.jit\ndef f(x):\n    return x * 2{offset}\n")
        importlib.invalidate_caches()
        module = importlib.reload(module) if offset else importlib.import_module("loaded_again")
        assert module.f(Tensor(1.0)).item() == (102 if offset else 2)
