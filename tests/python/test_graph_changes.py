"""Under a condition on a tensor: in-place changes of tensors and Parameters of outside, and errors."""

import numpy as np
import pytest
from morel.compiler.source import Unsupported
from test_graph_control import same, tensor

import morel as ms
from morel import Parameter, Tensor, nn, ops, value_and_grad


def items_and_methods(x):
    y = x * 2
    if x.sum() > 0:
        y[0] = 5.0
    else:
        y.add_(1).mul_(x)
    return y, y * 3


def views(x):
    y = x * 2
    tail, flat = y[1:], y.view(-1)
    if x.sum() > 0:
        tail.add_(10)
        inner = flat[:1]
        inner[0] = -1.0
        seen = y + tail.sum()
    else:
        seen = y
    return y, tail, flat, seen


def nested(x):
    y, z = x * 1, x * 2
    if x.sum() > 0:
        z.add_(1)
        if x[0] > 1:
            y.add_(z)
        else:
            z.sub_(y)
        y.mul_(2)
    return y, z


def leaves_early(x):
    y = x * 1
    if x[0] > 1:
        y.add_(1)
        return y * y
    y.sub_(1)
    return y


def a_loop(x):
    y, i = x * 1, x.sum() * 0
    while i < 4:
        y[0] += i
        y.mul_(2)
        i = i + 1
    return y, i


def a_loop_with_conditions(x):
    y, z = x * 1, x * 1
    while y.sum() < 100:
        if y[0] > 10:
            y[1:].add_(3)
        else:
            y[:1].add_(7)
            while z[0] < y[0]:
                z.add_(1)
    return y, z


def chosen_by_and(x):
    y = x * 1
    if x[0] > 0 and y.add_(1).sum() > 3:
        y.mul_(2)
    return y


def short_circuit(x):
    """What comes after a condition that decides already is not run."""
    y, i = x * 1, x.sum().astype(ms.int32) * 0
    while i < x.shape[0] and y[i] > 0:
        y[i] = -1.0
        i += 1
    if i >= 3 or y[i + 1] < -2:
        y.add_(100)
    return y, i


def assigned_elsewhere(x):
    """One branch changes in place what the other one assigns."""
    y, z = x * 1, x * 3
    tail = z[1:]
    if x.sum() > 0:
        y[1:] = y[0]
        tail.add_(1)
    else:
        if x[0] < -1:
            y = x * 2
        z = x * 4
        tail = z[:2] * 1
    return y, z, tail


def of_an_argument(x):
    if x.sum() > 0:
        x.mul_(2)
    return x + 1


VALUES = [tensor(1.0, 2.0, 3.0), tensor(-1.0, -2.0, -3.0), tensor(2.0, 0.5, 0.25)]
CASES = [
    items_and_methods,
    views,
    nested,
    leaves_early,
    a_loop,
    a_loop_with_conditions,
    chosen_by_and,
    short_circuit,
    assigned_elsewhere,
    of_an_argument,
]


@pytest.mark.parametrize("function", CASES, ids=lambda case: case.__name__)
def test_changes_are_those_of_pynative(function):
    compiled = ms.jit(function)
    for value in VALUES:
        mine, other = value.copy(), value.copy()
        same(compiled(mine), function(other))
        same(mine, other)  # changes of an argument reach it


@pytest.mark.parametrize("function", [items_and_methods, views, nested, leaves_early], ids=lambda case: case.__name__)
def test_gradients_through_changes(function):
    def loss(x):
        results = function(x)
        return sum((part * part).sum() for part in (results if isinstance(results, tuple) else (results,)))

    for value in VALUES:
        same(ms.jit(ms.grad(loss))(value), ms.grad(loss)(value))
        same(ms.jit(ms.grad(lambda x: ms.grad(loss)(x).sum()))(value), ms.grad(lambda x: ms.grad(loss)(x).sum())(value))


class Counts(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(tensor(1.0, 2.0), name="weight")
        self.steps = Parameter(Tensor(0, ms.int32), name="steps")

    def construct(self, x):
        before = self.weight * 2
        if x.sum() > 0:
            self.weight.add_(x)
            self.steps += 1
            self.weight[0] = 9.0
        between = self.weight * 2
        while self.steps < 5:
            self.steps += 1
            self.weight = self.weight + x
        return before, between, self.weight * 1, self.steps * 1


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_parameters_change(sign):
    compiled, plain = Counts(), Counts()
    run = ms.jit(compiled.construct)
    for _ in range(2):
        same(run(tensor(sign, sign)), plain(tensor(sign, sign)))
        same((compiled.weight, compiled.steps), (plain.weight, plain.steps))


def test_a_step_that_is_skipped_after_an_overflow():
    """Optimiser, counters and scale under one condition, as in training with a loss scale of one's own."""

    def make():
        net = nn.Dense(3, 2, weight_init="ones", bias_init="zeros")
        optimiser = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        scale, good = Parameter(tensor(8.0), name="scale"), Parameter(Tensor(0, ms.int32), name="good")
        gradients = value_and_grad(lambda x: (net(x) * scale).sum(), None, net.trainable_params())

        def step(x):
            loss, grads = gradients(x)
            overflow = ops.isfinite(grads[0]).all().logical_not()
            if overflow:
                scale.mul_(0.5)
                good.zero_()
            else:
                optimiser(tuple(grad / scale for grad in grads))
                good.add_(1)
                if good == 2:
                    scale.mul_(2.0)
                    good.zero_()
            return loss

        return step, (*net.trainable_params(), *optimiser.moments, scale, good)

    (plain, expected), (step, state) = make(), make()
    step = ms.jit(step)
    for value in (1.0, np.inf, 0.5, 0.25, -1.0, -0.5):
        x = Tensor(np.full((4, 3), value, np.float32))
        same(step(x), plain(x))
        same(state, expected)
    assert float(state[-2].asnumpy()) == 16.0


def test_a_name_of_a_loop_has_one_tensor():
    @ms.jit
    def run(x):
        y = x * 1
        tail = y[1:]
        while y.sum() < 10:
            tail.add_(1)
            y = y * 2
        return y

    with pytest.raises(Unsupported, match="assigns a name, and changes the tensor that it had before in place"):
        run(tensor(1.0, 2.0))


def test_changes_within_functions_that_call_themselves_are_refused():
    total = Parameter(tensor(0.0), name="total")

    @ms.jit
    def count(x):
        total.add_(x)
        if x > 0:
            return count(x - 1)
        return x

    with pytest.raises(NotImplementedError, match="calls itself(.|\n)*changes in place a tensor"):
        count(tensor(3.0))


def asserts(x):
    assert x[0] > 0.5, f"small {x[0]}"
    return x


def refuses(x):
    if x.sum() < 0:
        raise ValueError(f"negative {x} {{}}")
    if x[1] > 3:
        if x[2] > 3:
            raise IndexError
        else:
            raise RuntimeError("r", x)
    i = x.sum() * 0
    while i < 3:
        if x[2] < i:
            raise ZeroDivisionError("loop")
        i = i + 1
    return x + i


@pytest.mark.parametrize("value", [(1, 2, 3), (-1, -2, -3), (1, 4, 4), (1, 4, 0), (1, 2, 1.5)], ids=str)
def test_errors_are_raised_when_they_happen(value):
    x, compiled = tensor(*map(float, value)), ms.jit(refuses)
    try:
        expected = refuses(x)
    except Exception as error:
        with pytest.raises(type(error)) as caught:
            compiled(x)
        assert str(caught.value).startswith(f"{error}\nin a compiled function, ")
        assert "test_graph_changes.py:" in str(caught.value) and str(caught.value).endswith("^")
    else:
        same(compiled(x), expected)


def test_assertions():
    compiled = ms.jit(asserts)
    same(compiled(tensor(1.0, 2.0)), tensor(1.0, 2.0))
    with pytest.raises(AssertionError, match="small 0.25\nin a compiled function"):
        compiled(tensor(0.25, 2.0))


def test_what_happens_before_an_error_has_happened(capsys):
    state = Parameter(tensor(0.0), name="state")

    @ms.jit
    def run(x):
        state.add_(1)
        if x.sum() > 1:
            print("large")
            raise ValueError("too large")
        state.add_(1)
        return x

    run(tensor(1.0))
    with pytest.raises(ValueError, match="too large"):
        run(tensor(2.0))
    assert capsys.readouterr().out == "large\n" and float(state.asnumpy()) == 3


def test_errors_beside_gradients():
    def positive(x):
        if x.sum() < 0:
            raise ValueError("negative")
        return (x * x).sum()

    gradient = ms.jit(ms.grad(positive))
    same(gradient(tensor(1.0, 2.0)), tensor(2.0, 4.0))
    with pytest.raises(ValueError, match="negative"):
        gradient(tensor(-1.0, -2.0))


class Mine(Exception):
    pass


def test_errors_that_cannot_be_raised_by_a_graph():
    @ms.jit
    def own_class(x):
        if x.sum() > 0:
            raise Mine("mine")
        return x

    with pytest.raises(Unsupported, match="raising Mine under a condition on a tensor"):
        own_class(tensor(1.0))

    @ms.jit
    def always(x):  # no condition on a tensor: raised while it is compiled
        raise Mine("mine")

    with pytest.raises(Mine):
        always(tensor(1.0))


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_one_of_two_errors_is_raised(value, capsys):
    def either(x):
        if x.sum() > 0:
            raise ValueError("first")
        else:
            raise TypeError("second")

    def one_after_the_other(x):
        print("before")
        if x.sum() > 0:
            raise ValueError("first")
        raise TypeError("second")

    for function in (either, one_after_the_other):
        kind, text = (ValueError, "first") if value > 0 else (TypeError, "second")
        for run in (function, ms.jit(function), ms.jit(lambda x, function=function: ms.grad(function)(x))):
            with pytest.raises(kind, match=text):
                run(tensor(value))
    assert capsys.readouterr().out == "before\n" * 3


def leaves_by_return(x):
    with ms._no_grad():
        if x.sum() > 0:
            return x * x
        y = x * 2
    return x * y


def leaves_by_return_twice(x):
    with ms._no_grad():
        with ms._no_grad():
            if x.sum() > 0:
                if x[0] > 1:
                    return x * x
                y = x * 3
            else:
                y = x * 2
    return x * y


def leaves_by_break(x):
    y, n = x * 1, 0
    while n < 3:
        n += 1
        y = y * x
        with ms._no_grad():
            if y.sum() > 4:
                break
            z = y * 2
        y = y + z * x
    return y


def leaves_by_continue(x):
    y = x * 1
    for _ in range(3):
        y = y * x
        with ms._no_grad():
            if y.sum() > 4:
                continue
            z = y * 2
        y = y + z * x
    return y


@pytest.mark.parametrize(
    "function",
    [leaves_by_return, leaves_by_return_twice, leaves_by_break, leaves_by_continue],
    ids=lambda f: f.__name__,
)
def test_leaving_a_part_without_gradients_ends_it(function):
    slope = ms.grad(lambda x: (x * x + function(x) * x).sum())
    compiled = ms.jit(lambda x: slope(x))
    for x in (tensor(1.0, 2.0), tensor(-1.0, -2.0), tensor(2.0, 3.0), tensor(0.5, 0.25)):
        np.testing.assert_allclose(compiled(x).asnumpy(), slope(x).asnumpy(), rtol=1e-6)


def test_gradients_read_what_was_there_before_a_change():
    scale = Parameter(tensor(4.0, 5.0), name="scale", requires_grad=False)

    def in_branch(x):
        y = x * x
        if y.sum() > 0:
            scale.add_(1)
            y = y * scale
        return (y * y).sum()

    def in_loop(x):
        n = 0
        while n < 2:
            x = x * scale
            scale[1:].add_(1)
            n += 1
        return (x * x).sum()

    def in_loop_on_a_tensor(x):
        scale.add_(x)
        n = x.sum() * 0
        while n < 1:
            n = n + 1
            scale.mul_(scale.sum())
        return scale.sum()

    def straight(x):
        y = x * scale
        scale.mul_(2)
        tail = x[1:] * scale[1:]
        scale[0] = 1.0
        return (y * y * scale).sum() + (tail * tail).sum()

    start, x = np.array([4.0, 5.0], np.float32), np.array([1.0, 2.0], np.float32)
    wanted = {
        in_branch: 4 * x**3 * (start + 1) ** 2,
        in_loop: 2 * x * (start * (start + [0, 1])) ** 2,
        in_loop_on_a_tensor: 2 * (start + x).sum() + 0 * x,
        straight: 2 * x * (start**2 * [1, 10] + [0, 100]),
    }
    for function, slope in wanted.items():
        for run in (ms.jit(lambda x, function=function: ms.grad(function)(x)), ms.grad(ms.jit(function))):
            scale.set_data(tensor(4.0, 5.0))
            np.testing.assert_allclose(run(Tensor(x)).asnumpy(), slope, rtol=1e-6)


def test_a_string_has_the_values_of_when_it_was_made():
    def run(x):
        before = f"{x}"
        y = x * 1
        text = str(y)
        y.add_(1)
        x.mul_(2)
        return before + f"{x}", text + f", {y}"

    results = [function(tensor(1.0, 2.0)) for function in (run, ms.jit(run))]
    assert results[0] == results[1] == ("[1. 2.][2. 4.]", "[1. 2.], [2. 3.]")


def test_gradients_go_through_a_changed_parameter():
    weight = Parameter(tensor(1.0, 2.0, 3.0), name="weight")

    def whole(x):
        weight.add_(x)
        return (weight * weight).sum()

    def part(x):
        weight[0] = x[1]
        return (weight * x).sum()

    def in_branch(x):
        if x[1] > 1:
            weight[1:].mul_(x[:2])
        return (weight * weight).sum()

    def in_loop(x):
        n = 0
        while n < 2:
            weight.add_(x)
            n += 1
        return (weight * weight).sum()

    for function in (whole, part, in_branch, in_loop):
        slope = ms.grad(function, 0, [weight])
        results = []
        for run in (slope, ms.jit(lambda x, slope=slope: slope(x))):
            weight.set_data(tensor(1.0, 2.0, 3.0))
            at_x, at_weights = run(tensor(1.0, 2.0, 3.0))
            results.append((at_x.asnumpy(), at_weights[0].asnumpy(), weight.asnumpy().copy()))
        np.testing.assert_array_equal(results[1], results[0], function.__name__)


def test_a_loop_refuses_what_it_would_lose():
    def of_a_function(x):
        c, i = x * 0, x * 0

        def count():
            nonlocal c
            c = c + 1

        while i < 3:
            count()
            i = i + 1
        return c

    def in_the_condition(x):
        while (x := x + 1) < 5:
            pass
        return x

    def ended_by_a_tensor(x):
        while True:
            x = x * 2
            if x > 100:
                break
        return x

    for function, text in (
        (of_a_function, "'c' is changed within 'while'"),
        (in_the_condition, "':=' in the condition"),
        (ended_by_a_tensor, "nested too deeply"),
    ):
        with pytest.raises(Unsupported, match=text):
            ms.jit(function)(tensor(1.0))


@pytest.mark.parametrize("kind", ["number", "fixed", "dynamic"])
def test_training_with_a_loss_scale_of_mindspore(kind):
    def losses(mode):
        ms.set_context(mode=mode)
        try:
            ms.set_seed(1)
            net = nn.Dense(4, 3, weight_init="ones")
            scale = {
                "number": lambda: Tensor(1024.0),
                "fixed": lambda: nn.FixedLossScaleUpdateCell(128.0),
                "dynamic": lambda: nn.DynamicLossScaleUpdateCell(2.0**12, 2, 2),
            }[kind]()
            optimiser = nn.Momentum(net.trainable_params(), 0.1, 0.9)
            step = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimiser, scale)
            labels = Tensor([0, 1, 2, 1, 0], ms.int32)
            inputs = [np.full((5, 4), value, np.float32) for value in (1, np.inf, 2, 3, 4, 0.5)]
            return [[part.asnumpy() for part in step(Tensor(x), labels)] for x in inputs]
        finally:
            ms.set_context(mode=ms.PYNATIVE_MODE)

    compiled, plain = losses(ms.GRAPH_MODE), losses(ms.PYNATIVE_MODE)
    for (loss, *rest), (expected, *wanted) in zip(compiled, plain):
        np.testing.assert_allclose(loss, expected, rtol=1e-6)
        np.testing.assert_array_equal(rest, wanted)  # overflow, scale
    if kind == "dynamic":
        assert [float(scale) for _, _, scale in plain] == [4096, 4096, 2048, 2048, 4096, 4096]
