"""Printing in graphs, assignments through masks, overflow checks and optimizers within compiled functions."""

import numpy as np
import pytest
from test_graph_control import check, same, tensor

import morel as ms
from morel import Parameter, Tensor, amp, mint, nn, ops

# --- print ---


def talks(x):
    print("x", x, 3, [x, "a{b}"], sep=" | ")
    y = x * 2
    print({"sum": y.sum()}, (y,), end="!\n")
    return y


def test_print_gives_what_pynative_gives(capsys):
    compiled, x = ms.jit(talks), tensor(1.0, 2.0)
    talks(x)
    wanted = capsys.readouterr().out
    for _ in range(2):  # whenever it runs
        compiled(x)
        assert capsys.readouterr().out == wanted
    assert "[1. 2.]" in wanted and "a{b}" in wanted
    longer = tensor(1.0, 2.0, 3.0)
    compiled(longer)
    assert "[1. 2. 3.]" in capsys.readouterr().out and compiled.__compiled__.compiled == 1


def test_print_of_texts_with_tensors(capsys):
    def run(x):
        print(f"sum {x.sum()} of {x.shape[0]}", f"{{v}}={x}", [f"in {x[0]}"])
        return x

    run(tensor(1.0, 2.0))
    wanted = capsys.readouterr().out
    ms.jit(run)(tensor(1.0, 2.0))
    assert capsys.readouterr().out == wanted and "sum 3.0 of 2 {v}=[1. 2.]" in wanted

    @ms.jit
    def rounded(x):
        print(f"{x.sum():.2f}")
        return x

    with pytest.raises(NotImplementedError, match="how a tensor is written"):
        rounded(tensor(1.0))


def test_print_stays_in_order_with_other_effects(capsys):
    state = Parameter(tensor(1.0, 2.0), name="state")

    @ms.jit
    def run(x):
        print("before", state * 1)
        state.add_(x)
        print("after", state * 1)
        print("unread", x * 0)
        return x

    run(tensor(1.0, 1.0))
    assert capsys.readouterr().out == "before [1. 2.]\nafter [2. 3.]\nunread [0. 0.]\n"


def test_print_under_conditions_and_in_loops(capsys):
    def run(x):
        if x.sum() > 0:
            print("positive", x)
        else:
            print("negative")
        i = 0
        while i < x.sum():
            print("turn", i)
            i += 1
        return x

    for values in ((1.0, 1.0), (-1.0, -2.0)):
        x = tensor(*values)
        run(x)
        wanted = capsys.readouterr().out
        ms.jit(run)(x)
        assert capsys.readouterr().out == wanted


def test_print_comes_once_where_a_gradient_is_taken(capsys):
    def run(x):
        print("run", x)
        if x.sum() > 0:
            print("branch", x)
            x = x * x
        return x.sum()

    x = tensor(1.0, 2.0)
    gradient = ms.jit(lambda x: ms.grad(run)(x))(x)
    assert capsys.readouterr().out == "run [1. 2.]\nbranch [1. 2.]\n"
    same(gradient, tensor(2.0, 4.0))
    same(ms.grad(ms.jit(run))(x), tensor(2.0, 4.0))
    assert capsys.readouterr().out == "run [1. 2.]\nbranch [1. 2.]\n"


def test_print_to_a_file_is_refused(tmp_path):
    with open(tmp_path / "out", "w") as file:

        @ms.jit
        def run(x):
            print(x, file=file)
            return x

        with pytest.raises(NotImplementedError, match="'print' to a file"):
            run(tensor(1.0, 2.0))


# --- masks ---


def number_by_mask(x):
    y = x * 1
    y[y > 1] = 5
    return y


def row_by_mask(x):
    y = ops.stack((x, x * 2, x - 1))
    y[y.sum(1) > 2] = x * 10
    y[(y > 3,)] = ops.zeros((1,))
    return y


def added_by_mask(x):
    y = x * 1
    y[y > 1] += 2
    y[y < 0] *= y.sum()
    return y


def by_mask_in_a_branch(x):
    y = x
    if x.sum() > 0:
        y = y * 1
        y[x > 1] = -1
    return y


MASKS = [number_by_mask, row_by_mask, added_by_mask, by_mask_in_a_branch]


@pytest.mark.parametrize("function", MASKS)
@pytest.mark.parametrize("values", [(0.5, 1.5, 2.5), (-1.0, -2.0, -3.0)])
def test_assignment_by_a_mask(function, values):
    check(function, tensor(*values), order=1)


def test_mask_from_outside():
    """A compiled function holds on to the mask, not to the places that it takes now."""
    mask, rows = Tensor([[True, False], [False, True], [True, True]]), Tensor([True, False, True])

    def function(x):
        y = x * 1
        y[mask] = 7.0
        y[rows] = x[1]
        y[mask] *= 2
        return y

    step, batch = ms.jit(function), Tensor(np.arange(12, dtype=np.float32).reshape(2, 3, 2))
    for _ in range(2):
        wanted = [function(x).asnumpy() for x in batch]
        np.testing.assert_array_equal([step(x).asnumpy() for x in batch], wanted)
        np.testing.assert_array_equal(ms.vmap(function)(batch).asnumpy(), wanted)
        ops.assign(mask, ops.logical_not(mask))


def test_what_masks_cannot_do():
    @ms.jit
    def reads(x):
        return x[x > 1]

    @ms.jit
    def many_values(x, values):
        x = x * 1
        x[x > 1] = values
        return x

    @ms.jit
    def adds_many_values(x, values):
        x = x * 1
        x[x > 1] += values
        return x

    x = tensor(0.5, 1.5, 2.5)
    with pytest.raises(NotImplementedError):
        reads(x)
    for function in (many_values, adds_many_values):
        with pytest.raises(NotImplementedError, match="the same for every place of the mask"):
            function(x, tensor(1.0, 2.0))


def test_a_mask_does_not_change_the_dtype():
    def run(x, value):
        x = x * 1
        x[x > 1] += value
        return x

    for x, value in ((tensor(1, 2, 3), 2), (tensor(1.0, 2.0).astype(ms.float16), tensor(0.5)), (tensor(1.0, 2.0), 3)):
        same(ms.jit(run)(x, value), run(x, value))
    for function in (run, ms.jit(run)):
        with pytest.raises(TypeError, match="does not fit into a tensor of Int"):
            function(tensor(1, 2, 3).astype(ms.int32), 2.7)


# --- overflow and loss scaling ---


def test_all_finite_in_both_modes():
    compiled = ms.jit(lambda *tensors: amp.all_finite(tensors))
    for dtype in (np.float32, np.float16, np.float64, np.int32):
        fine = [tensor(1.0, 2.0, dtype=dtype), tensor(3.0, dtype=dtype)]
        assert compiled(*fine).asnumpy() == amp.all_finite(fine).asnumpy() == True  # noqa: E712
        if dtype != np.int32:
            for bad in (np.inf, -np.inf, np.nan):
                broken = [fine[0], tensor(1.0, bad, dtype=dtype)]
                assert not compiled(*broken) and not amp.all_finite((broken,))
    assert not amp.all_finite(Tensor(np.array([1 + 1j * np.inf])))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_loss_scaling_in_both_modes(dtype):
    def run(scaler, gradients):
        scaled = scaler.scale(gradients)
        finite = amp.all_finite(scaled)
        scaler.adjust(finite)
        return scaler.unscale(scaled), finite

    rows = [(1.0, 2.0), (3.0, np.inf), (1.0, 1.0), (0.5, 0.25), (1.0, 3.0)]
    eager, compiled = (amp.DynamicLossScaler(12, 2, 2) for _ in range(2))
    step = ms.jit(lambda gradients: run(compiled, gradients))
    for row in rows:
        gradients = (tensor(*row, dtype=dtype), tensor(1.0, 1.0, dtype=dtype))
        same(step(gradients)[0], run(eager, gradients)[0])
        assert step.__compiled__.compiled == 1
        assert float(eager.scale_value) == float(compiled.scale_value)
        assert int(eager.counter) == int(compiled.counter)


# --- optimizers ---


OPTIMIZERS = [
    lambda p: mint.optim.Adam(p, lr=0.1, weight_decay=0.01),
    lambda p: mint.optim.Adam(p, lr=0.1, amsgrad=True, maximize=True),
    lambda p: mint.optim.AdamW(p, lr=0.1),
    lambda p: mint.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.1),
    lambda p: mint.optim.SGD([{"params": p[:1], "lr": 0.5}, {"params": p[1:]}], lr=0.1, momentum=0.9, nesterov=True),
    lambda p: nn.Lamb(p, learning_rate=0.1),
    lambda p: nn.Rprop(p, learning_rate=0.1),
    lambda p: nn.ASGD(p, learning_rate=0.1, t0=2.0, weight_decay=0.1),
]


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_optimizers_in_compiled_steps(make):
    rng = np.random.default_rng(3)
    first = [rng.standard_normal((3, 2)).astype(np.float32), rng.standard_normal(2).astype(np.float32)]
    inputs = [tensor(*rng.standard_normal((4, 3)).astype(np.float32)) for _ in range(5)]

    def train(compile):
        weights = [Parameter(Tensor(value), name=f"w{i}") for i, value in enumerate(first)]
        optimizer = make(weights)

        def step(x):
            def loss(x):
                return ((x @ weights[0] + weights[1]) ** 2).mean()

            value, gradients = ms.value_and_grad(loss, None, weights)(x)
            optimizer(gradients)
            return value

        run = compile(step)
        return [run(x) for x in inputs], weights, run

    eager_losses, eager, _ = train(lambda step: step)
    losses, compiled, run = train(ms.jit)
    same(losses, eager_losses, rtol=1e-5)
    same([w.asnumpy() for w in compiled], [w.asnumpy() for w in eager], rtol=1e-5, atol=1e-6)
    assert run.__compiled__.compiled == 1


# --- the same tensor at two places ---


def test_gradients_where_one_tensor_is_two_arguments():
    """As in MindSpore: in PyNative mode a tensor is known by what it is, in a graph each argument is one of its own."""

    def function(a, b):
        return (a * a * b).sum()

    x = tensor(2.0, 3.0)
    both = tensor(12.0, 27.0)
    same(ms.grad(function, (0, 1))(x, x), (both, both))
    same(ms.grad(ms.jit(function), (0, 1))(x, x), (both, both))
    same(ms.jit(lambda x: ms.grad(function, (0, 1))(x, x))(x), (tensor(8.0, 18.0), tensor(4.0, 9.0)))


def test_changes_of_a_tensor_that_is_two_arguments():
    @ms.jit
    def compiled(a, b, c):
        ops.assign_add(a, c)
        return a * b

    one = tensor(10.0)
    for _ in range(2):  # the graphs do not stand for one another
        x, y = (Parameter(tensor(2.0), name=name) for name in "xy")
        same(compiled(x, y, one), tensor(24.0))
        same((x, y), (tensor(12.0), tensor(2.0)))
        same(compiled(x, x, one), tensor(22.0 * 22.0))
        same(x, tensor(22.0))
    assert compiled.__compiled__.compiled == 2


def test_changes_of_a_tensor_that_is_an_argument_and_a_free_variable():
    weight, one = Parameter(tensor(2.0), name="weight"), tensor(1.0)

    def changes_argument(a):
        ops.assign_add(a, one)
        return a + weight

    def changes_weight(a):
        before = a * 1
        ops.assign_add(weight, one)
        return a, before, a + weight

    for function in (changes_argument, changes_weight):
        compiled, other = ms.jit(function), Parameter(tensor(5.0), name="other")
        for argument in (weight, other, weight, other):
            weight[...], other[...] = 2, 5
            wanted = function(argument), weight * 1, other * 1
            weight[...], other[...] = 2, 5
            same((compiled(argument), weight, other), wanted)
        assert compiled.__compiled__.compiled <= 3
    same(ms.jit(lambda a: a + weight)(weight), weight * 2)
