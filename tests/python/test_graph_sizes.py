"""Graphs that serve many shapes: a new batch size or sequence length compiles nothing, and what does not fit compiles anew."""

import math

import nn_models
import numpy as np
import pytest
from test_graph_operators import DATA_DEPENDENT, differentiable, same_bits
from test_operators import Fixed, _every_sample, arrays_of, run, tensor_of

import morel as ms
from morel import Parameter, Tensor, mint, nn, ops


def random(*shape):
    return Tensor(np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32))


def check(function, calls, compiled):
    """Every call gives what PyNative gives, and so many graphs were built for all of them."""
    jitted = ms.jit(function)
    for args in calls:
        wanted, actual = function(*args), jitted(*args)
        if isinstance(wanted, Tensor):
            wanted, actual = (wanted,), (actual,)
        for a, b in zip(actual, wanted, strict=True):
            if isinstance(b, Tensor):
                assert a.shape == b.shape and a.dtype == b.dtype
                np.testing.assert_array_equal(a.asnumpy(), b.asnumpy())
            else:
                assert type(a) is type(b) and a == b
    assert jitted.__compiled__.compiled == compiled, [graph.assumptions for graph in jitted.__compiled__.graphs]


WEIGHT = random(8, 5)
SHAPES = [(3, 4), (5, 9), (7, 5), (16, 16), (4, 100)]


def reshapes(x):
    batch, length = x.shape[0], x.shape[1]
    y = x.reshape(batch * length, -1) @ WEIGHT
    return ops.relu(y).reshape(batch, length, 5), y.reshape(-1), x.view(batch, -1, 2), x.flatten(start_dim=1)


def slices(x):
    length = x.shape[1]
    half = x[:, : length // 2]
    return half, x[:, 1:], x[:, -2:], x[0], x[-1, 1], x[..., 2], x[:, length - 1], ops.concat((x[:, 1:], x[:, :1]), 1)


def statistics(x):
    return x.mean(), x.mean(1), x.var(0), x.std(1), x.sum() / x.shape[0], ops.softmax(x, 1), ops.layer_norm(x, (8,))


def positions(x):
    batch, length = x.shape[:2]
    place = ops.arange(length)
    mask = mint.triu(ops.ones((length, length), ms.bool_), 1)
    scores = ops.bmm(x, x.swapaxes(1, 2)) / math.sqrt(8)
    return (
        place,
        mask,
        ops.softmax(ops.masked_fill(scores, mask, -1e9), -1),
        ops.zeros((batch, length)),
        ops.full_like(x, 2),
    )


def broadcasts(x):
    ones = ops.ones(x.shape[1:], x.dtype)
    return (
        x + ones,
        x * x.shape[0],
        x.expand_dims(1) - x.expand_dims(2),
        ops.tile(x, (2, 1, 1)),
        ops.broadcast_to(ones, x.shape),
    )


def numbers(x):
    batch, length = x.shape[0], len(x[0])
    size = int(batch) * length
    if not isinstance(size, int):
        raise TypeError
    return x.reshape(size, 8), x.size, size + 1, max(batch, 1)


@pytest.mark.parametrize("function", [reshapes, slices, statistics, positions, broadcasts])
def test_new_sizes_compile_nothing(function):
    check(function, [(random(*shape, 8),) for shape in SHAPES], 1)


def test_sizes_that_are_returned_are_numbers():
    check(numbers, [(random(*shape, 8),) for shape in ((3, 4), (3, 4), (5, 4))], 2)


def test_gradients_serve_many_sizes():
    def loss(x, w):
        y = ops.gelu(x.reshape(-1, x.shape[2]) @ w)
        return (y.reshape(x.shape[0], -1).mean(1) ** 2).sum() + ops.softmax(x, -1)[:, :-1].max()

    check(lambda x, w: ms.grad(loss, (0, 1))(x, w), [(random(*shape, 8), WEIGHT) for shape in SHAPES], 1)
    check(
        lambda x: ms.grad(lambda y: ms.grad(lambda z: (z**3).mean())(y).sum())(x),
        [(random(*shape),) for shape in SHAPES],
        1,
    )


def test_control_flow_serves_many_sizes():
    def function(x):
        y = x
        while y.sum() < 100.0:
            y = y + x * x + x.shape[0]
        if y.max() > 0:
            z = y[:, 1:].sum(1) / x.shape[1]
        else:
            z = y[:, 0]
        return y, z

    check(function, [(random(*shape),) for shape in SHAPES], 1)


def test_what_depends_on_a_number_compiles_again():
    def unrolled(x):
        total = x[0]
        for i in range(1, x.shape[0]):
            total = total * 0.5 + x[i]
        return total

    check(unrolled, [(random(n, m),) for n, m in ((2, 3), (2, 9), (5, 3), (5, 4), (2, 2))], 2)

    def branch(x):
        return x * 2 if x.shape[0] > 10 else x * 3

    check(branch, [(random(n),) for n in (4, 5, 10, 11, 300, 2)], 2)

    def parity(x):
        return x.reshape(2, -1).sum(0) if x.shape[0] % 2 == 0 else x

    check(parity, [(random(n),) for n in (4, 6, 5, 9, 100, 7)], 2)


def test_sizes_of_zero_and_one_are_graphs_of_their_own():
    def add(x, y):
        return x + y, (x * y).sum(0)

    check(
        add,
        [(random(n, 4), random(m, 4)) for n, m in ((3, 3), (1, 3), (3, 1), (1, 1), (5, 5), (1, 7), (0, 0), (0, 1))],
        6,
    )


def test_sizes_that_had_to_be_equal_are_checked():
    jitted = ms.jit(lambda x, y: x + y)
    assert jitted(random(3, 4), random(3, 4)).shape == (3, 4)
    assert jitted(random(6, 2), random(6, 2)).shape == (6, 2)
    assert jitted.__compiled__.compiled == 1
    with pytest.raises(ValueError, match="cannot be broadcast"):
        jitted(random(3, 4), random(5, 4))
    with pytest.raises(ValueError, match=r"\[s0,s1\] of 25088 elements(.|\n)*with the sizes s0=32, s1=784"):
        ms.jit(lambda x: x.reshape(-1, 5, 784))(random(32, 784))


# The GPT of these models names its batch in reshape.
@pytest.mark.parametrize("name", sorted(set(nn_models.NAMES) - {"gpt"}))
def test_a_training_step_serves_every_batch(name):
    network, x, y = nn_models.build(name, nn, ops, Tensor, Parameter)
    network.set_train()
    optimizer = nn.Adam(network.trainable_params(), 1e-3)

    def loss_of(x, y):
        out = network(x)
        return ops.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))

    value_and_grad = ms.value_and_grad(loss_of, None, optimizer.parameters)

    def step(x, y):
        loss, gradients = value_and_grad(x, y)
        optimizer(gradients)
        return loss

    initial = {p.name: p.asnumpy().copy() for p in network.get_parameters()}
    labels = y.shape[0] // x.shape[0]  # of each sample
    batches = [(x[:n], y[: n * labels]) for n in (x.shape[0], 2, 3, x.shape[0] - 1)]
    wanted = [float(step(*batch).asnumpy()) for batch in batches]
    for parameter in network.get_parameters():
        parameter.set_data(Tensor(initial[parameter.name]))
    optimizer = nn.Adam(network.trainable_params(), 1e-3)
    compiled = ms.jit(step)
    actual = [float(compiled(*batch).asnumpy()) for batch in batches]
    np.testing.assert_allclose(actual, wanted, rtol=1e-5)
    assert compiled.__compiled__.compiled == 1, [graph.assumptions for graph in compiled.__compiled__.graphs]


def test_assumptions_are_shown():
    jitted = ms.jit(lambda x: x @ WEIGHT)
    jitted(random(3, 8))
    assert jitted.__compiled__.graphs[0].assumptions == ["s1-8 == 0"]
    assert "f32[s0,s1]" in repr(jitted.__compiled__.graphs[0])


# --- every operator at sizes that its graph was not built with ---


def grown(arrays, size):
    """All axes of `size` elements get one more, so that what fitted together still does."""

    def grow(array):
        if isinstance(array, Fixed):
            return Fixed(grow(array.array))
        return np.pad(array, [(0, int(axis == size)) for axis in array.shape], mode="edge") if array.ndim else array

    return [grow(array) for array in arrays]


def sizes_of(arrays):
    shapes = [array.array.shape if isinstance(array, Fixed) else array.shape for array in arrays]
    return sorted({size for shape in shapes for size in shape if size > 1})


# The number of their results depends on a size, or a number is computed from one (the root of the head size).
OF_A_NUMBER = {"ops.split", "ops.unbind", "ops.chunk", "ops.scaled_dot_product_attention"}


def at_other_sizes(sample, dtype, function, same):
    """A graph built with the sample's sizes gives what PyNative gives at others that the operator takes."""
    arrays = arrays_of(sample, dtype)
    jitted = ms.jit(lambda *given: function(*given))
    jitted(*(tensor_of(array, dtype) for array in arrays))
    for size in sizes_of(arrays):
        tensors = [tensor_of(array, dtype) for array in grown(arrays, size)]
        try:
            wanted = function(*tensors)
        except (ValueError, TypeError, IndexError):
            continue  # the sample's numbers do not go with this size
        wanted, actual = (x if isinstance(x, (tuple, list)) else (x,) for x in (wanted, jitted(*tensors)))
        for a, b in zip(actual, wanted, strict=True):
            same(a, b)
    assert jitted.__compiled__.compiled == 1 or sample.name in OF_A_NUMBER


@pytest.mark.parametrize("sample", _every_sample(lambda sample: sample.name not in DATA_DEPENDENT))
def test_an_operator_at_other_sizes(sample):
    at_other_sizes(sample, sample.dtypes[0], lambda *given: run(sample, given), same_bits)


@pytest.mark.parametrize("sample", _every_sample(differentiable))
def test_a_gradient_at_other_sizes(sample):
    places = tuple(place for place, array in enumerate(arrays_of(sample, "float64")) if not isinstance(array, Fixed))

    def close(actual, wanted):
        np.testing.assert_allclose(actual.asnumpy(), wanted.asnumpy(), rtol=1e-12, atol=1e-13)

    at_other_sizes(sample, "float64", ms.grad(lambda *given: (run(sample, given) ** 2).sum(), places), close)


def test_sizes_compute_like_integers():
    def function(x):
        a, b = x.shape
        parts = [divmod(a, 3)[0], a << 1, a & 3, a ^ 1, ~a, round(a), a >> 1, 1 << a, a | 1, abs(-a), a**2, -(-a // 4)]
        return Tensor([a, b]), Tensor((a, b), ms.float32), Tensor(np.array([b, a])), Tensor(parts)

    check(function, [(random(5, 6),), (random(5, 6),)], 1)


def test_sizes_as_keys_are_numbers():
    def function(x):
        return {x.shape[0]: x + 1}

    found = ms.jit(function)(random(5, 6))
    assert list(found) == [5]


def test_what_is_kept_of_a_size_cannot_be_used_outside():
    kept = []

    def function(x):
        kept.append(x.shape[0])
        return x + 1

    ms.jit(function)(random(5, 6))
    with pytest.raises(RuntimeError, match="a size of one, of a compiled graph was kept"):
        print(kept[0])


def test_changes_of_slices_at_sizes_that_depend_on_one_another():
    def function(x, y):
        a, b = x.shape
        z = y + 0
        z[b:] *= a
        z[:, : a // 2] *= 2
        v = x[: -(b // 2)] + 0
        v[b // 2 :] = 2
        v[:, : max(a, b) - 1] *= 2
        return z, v

    jitted = ms.jit(function)
    for shape in ((3, 2), (3, 4), (4, 4), (5, 2), (2, 2), (7, 6)):
        for actual, wanted in zip(jitted(random(*shape), random(*shape)), function(random(*shape), random(*shape))):
            np.testing.assert_array_equal(actual.asnumpy(), wanted.asnumpy())


def test_regions_that_are_empty():
    def function(x):
        z = x + 0
        z[8:] = 0.0
        z[:0] = 1.0
        return z

    check(function, [(random(4, 6),), (random(5, 3),)], 1)
