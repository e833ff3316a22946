"""vmap gives what a loop over the examples gives: every sample of every operator, its gradients, control flow."""

import functools

import numpy as np
import pytest
from samples import Fixed
from test_operators import SAMPLES, _differentiable, _every_sample, _scalar_function, arrays_of, run, tensor_of

import morel as ms
from morel import Tensor, mint, nn, ops

EXAMPLES = 3
DATA_DEPENDENT = {"ops.masked_select"}


def batch_of(array):
    """Other examples hold the numbers of the sample in another order, so they stay in the operator's domain."""
    plain = array.array if isinstance(array, Fixed) else array
    batch = np.stack([np.roll(plain.reshape(-1), i).reshape(plain.shape) for i in range(EXAMPLES)])
    return Fixed(batch) if isinstance(array, Fixed) else batch


def loop(function, operands, axes):
    count = next(operand.shape[0] for operand, axis in zip(operands, axes) if axis is not None)
    return ops.stack(
        [function(*(o if axis is None else o[i] for o, axis in zip(operands, axes))) for i in range(count)]
    )


def close(actual, wanted, rtol=1e-5, atol=1e-6):
    assert actual.dtype == wanted.dtype and tuple(actual.shape) == tuple(wanted.shape)
    np.testing.assert_allclose(actual.asnumpy(), wanted.asnumpy(), rtol=rtol, atol=atol)


def in_axes_of(count):
    """All operands are batches; each of them alone."""
    return [(0,) * count] + [tuple(0 if i == k else None for i in range(count)) for k in range(count) if count > 1]


CASES = [
    pytest.param(sample, dtype, axes, id=f"{sample.label}-{dtype}-{axes}-{number}".replace(" ", ""))
    for number, sample in enumerate(SAMPLES)
    if sample.name not in DATA_DEPENDENT
    for dtype in sample.dtypes
    if dtype in ("float32", "int32", "bool", "complex64")
    for axes in in_axes_of(len(sample.inputs))
    if dtype == "float32" or axes[0] == 0
]


@pytest.mark.parametrize("sample,dtype,axes", CASES)
def test_result(sample, dtype, axes):
    arrays = arrays_of(sample, dtype)
    operands = [tensor_of(batch_of(a) if axis == 0 else a, dtype) for a, axis in zip(arrays, axes)]

    def function(*given):
        return run(sample, given)

    close(ms.vmap(function, axes)(*operands), loop(function, operands, axes))


def differentiable(sample):
    return _differentiable(sample) and sample.name not in DATA_DEPENDENT


@pytest.mark.parametrize("sample", _every_sample(differentiable))
def test_gradient_of_each_example(sample):
    function, arrays = _scalar_function(sample, arrays_of(sample, "float64"))
    gradients = ms.grad(function, tuple(range(len(arrays))))
    operands = [Tensor(batch_of(array)) for array in arrays]
    found = ms.vmap(lambda *given: gradients(*given))(*operands)
    for k, actual in enumerate(found if isinstance(found, tuple) else (found,)):

        def one(*given, k=k):
            gradient = gradients(*given)
            return gradient[k] if isinstance(gradient, tuple) else gradient

        close(actual, loop(one, operands, (0,) * len(operands)), 1e-10, 1e-11)


@pytest.mark.parametrize("sample", _every_sample(differentiable))
def test_gradient_of_the_batch(sample):
    function, arrays = _scalar_function(sample, arrays_of(sample, "float64"))
    operands = [Tensor(batch_of(array)) for array in arrays]
    axes, places = (0,) * len(operands), tuple(range(len(operands)))

    def gradients(mapped):
        found = ms.grad(lambda *given: (mapped(*given) ** 2).sum(), places)(*operands)
        return found if isinstance(found, tuple) else (found,)

    wanted = gradients(lambda *given: loop(function, given, axes))
    for actual, value in zip(gradients(ms.vmap(function)), wanted):
        close(actual, value, 1e-9, 1e-10)


X = Tensor(np.random.default_rng(0).standard_normal((4, 3, 2)).astype(np.float32))


@pytest.mark.parametrize("in_axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("out_axis", [0, 1, 2, -1])
def test_places_of_the_axis(in_axis, out_axis):
    wanted = np.stack([np.exp(part).T for part in np.moveaxis(X.asnumpy(), in_axis, 0)])
    found = ms.vmap(lambda x: ops.exp(x).swapaxes(0, 1), in_axis, out_axis)(X)
    np.testing.assert_allclose(found.asnumpy(), np.moveaxis(wanted, 0, out_axis), rtol=1e-6)


def test_structures():
    def function(pair, scale, number):
        a, b = pair
        return {"sum": a + b, "rest": (a * scale, number)}

    found = ms.vmap(function, in_axes=((0, 1), None, None))((X, X.swapaxes(0, 1)), Tensor(2.0), 5)
    np.testing.assert_allclose(found["sum"].asnumpy(), 2 * X.asnumpy())
    np.testing.assert_allclose(found["rest"][0].asnumpy(), 2 * X.asnumpy())
    assert found["rest"][1] == 5


def test_results_that_are_the_same_for_all():
    assert tuple(ms.vmap(lambda x: Tensor([1.0, 2.0]) * 2)(X).shape) == (4, 2)
    assert tuple(ms.vmap(lambda x: Tensor([1.0, 2.0]) * 2, 0, None)(X).shape) == (2,)


def test_nested():
    a, b = X[:, 0], X[:, 1]
    outer = ms.vmap(ms.vmap(lambda p, q: (p * q).sum(), (None, 0)), (0, None))(a, b)
    np.testing.assert_allclose(outer.asnumpy(), a.asnumpy() @ b.asnumpy().T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("depth", [1, 2])
def test_gradients_around_it(depth):
    """The second one runs operator by operator."""

    def function(x):
        return (ms.vmap(lambda row: ops.softmax(row, -1) * row)(x) ** 2).sum()

    def looped(x):
        return sum(((ops.softmax(row, -1) * row) ** 2).sum() for row in (x[i] for i in range(4)))

    found, wanted = function, looped
    for _ in range(depth):
        found = ms.grad(lambda x, f=found: f(x).sum())
        wanted = ms.grad(lambda x, f=wanted: f(x).sum())
    close(found(X), wanted(X), 1e-4, 1e-5)


def test_one_graph_for_all_numbers_of_examples():
    mapped = ms.jit(lambda x: ms.vmap(lambda row: ops.cumsum(row, 0) @ row.swapaxes(0, 1))(x))
    for count in (2, 5, 9):
        assert tuple(mapped(ops.ones((count, 3, 2))).shape) == (count, 3, 3)
    assert mapped.__compiled__.compiled == 1


def test_condition_that_differs():
    def function(x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = -x
        return y

    close(ms.vmap(function)(X), loop(function, [X], (0,)))
    gradient = ms.grad(lambda x: (function(x) ** 2).sum())
    close(ms.vmap(gradient)(X), loop(gradient, [X], (0,)))


def test_condition_that_is_the_same_for_all():
    def function(x, flag):
        if flag > 0:
            return x * 2
        return x.sum() + x * 0

    for flag in (1.0, -1.0):
        close(ms.vmap(function, (0, None))(X, Tensor(flag)), loop(function, [X, Tensor(flag)], (0, None)))


def test_loop_whose_length_differs():
    def function(x):
        turns = 0
        while (x * x).sum() < 30:
            x = x * 1.5
            turns = turns + 1
        return x, turns

    found = ms.vmap(lambda x: function(x))(X)
    wanted = [function(X[i]) for i in range(4)]
    np.testing.assert_allclose(found[0].asnumpy(), np.stack([x.asnumpy() for x, _ in wanted]), rtol=1e-6)
    assert found[1].asnumpy().tolist() == [turns for _, turns in wanted]
    outer = ms.grad(lambda x: ms.vmap(lambda row: function(row)[0])(x).sum())(X)
    np.testing.assert_allclose(
        outer.asnumpy(), np.stack([np.full((3, 2), 1.5**turns) for _, turns in wanted]), rtol=1e-5
    )
    with pytest.raises(NotImplementedError, match="gradient of the vmap instead"):
        ms.vmap(ms.grad(lambda x: function(x)[0].sum()))(X)


def test_gradient_within_of_a_loop_of_one_length():
    def function(x):
        count = Tensor(0)
        while count < 3:
            x = ops.sin(x) * x
            count = count + 1
        return x.sum()

    close(ms.vmap(ms.grad(function))(X), loop(ms.grad(function), [X], (0,)))


def test_in_place_changes():
    def function(x, row):
        y = x * 1
        y[0] = row
        y += 1
        return y

    close(ms.vmap(function, (0, None))(X, X[0, 0]), loop(function, [X, X[0, 0]], (0, None)))
    close(ms.vmap(function, (None, 0))(X[0], X[:, 0]), loop(function, [X[0], X[:, 0]], (None, 0)))


def test_views_of_what_changes():
    def function(x):
        y = x * 1
        first, last = y[0], y[::2, 1:]
        y.add_(1)
        last.mul_(3)
        return first, last, y

    found = ms.vmap(lambda x: function(x))(X)
    for k, actual in enumerate(found):
        close(actual, loop(lambda x, k=k: function(x)[k], [X], (0,)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ops.strided_slice(x, (0, 0), (3, 1), (2, 1)),
        lambda x: x[::2],
        lambda x: x[1:, None, ::1],
        lambda x: x[..., 0],
        lambda x: x[-1, 1:],
        lambda x: x[Tensor([0, 2, 0])],
        lambda x: x[:, Tensor([1, 0, 1])],
        lambda x: x[None, Tensor([[0, 1]]), :, None],
        lambda x: ops.as_strided(x, (2, 2), (1, 2), 1),
    ],
)
def test_indexing(function):
    close(ms.vmap(function)(X), loop(function, [X], (0,)))
    gradient = ms.grad(lambda x: (function(x) ** 2).sum())
    close(ms.vmap(gradient)(X), loop(gradient, [X], (0,)))
    close(ms.grad(lambda x: (ms.vmap(function)(x) ** 2).sum())(X), loop(gradient, [X], (0,)))


def changed(index, x, values):
    y = x * 1
    y[index] = values
    return y


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize(
    "index,shape",
    [
        ((Tensor([0, 2]), 1), (2,)),
        ((Tensor([0, 2]), 1), ()),
        ((slice(None), Tensor([1, 0])), (3, 2)),
        ((slice(None), Tensor([1, 0])), (2,)),
        ((slice(None), Tensor([[1], [0]])), (2, 1)),
    ],
)
def test_values_put_by_index(index, shape, axes):
    """Values with fewer axes than the place, into what is a batch or the same for all."""
    examples = 2  # as many as there are indices: a batch that lands on their axis is wrong, not an error
    x = X[:examples] if axes[0] == 0 else X[0]
    values = Tensor(np.arange(np.prod((examples, *shape)), dtype=np.float32).reshape(examples, *shape))
    operands = [x, values if axes[1] == 0 else values[0]]

    def function(x, values):
        return changed(index, x, values)

    close(ms.vmap(function, axes)(*operands), loop(function, operands, axes))


def test_shared_memory_that_changes_apart():
    """Made the same for all examples and read before and after it differs, through views as well."""

    def function(x):
        y = ops.zeros((3, 2), ms.float32)
        row, before = y[0], y + 1
        y[1:] += x[1:]
        row.add_(x[0])
        return y + before, row * 1

    found = ms.vmap(function)(X)
    for k, actual in enumerate(found):
        close(actual, loop(lambda x, k=k: function(x)[k], [X], (0,)))
    slope = ms.grad(lambda x: (ms.vmap(lambda x: function(x)[0] ** 2)(x)).sum())(X)
    np.testing.assert_allclose(slope.asnumpy(), 2 * (X.asnumpy() + 1), rtol=1e-6)


@pytest.mark.parametrize(
    "function,shape",
    [
        (lambda x, w: mint.nn.functional.conv2d(x, w), (2, 2, 4, 4)),
        (lambda x, w: mint.nn.functional.conv_transpose2d(x, w), (2, 2, 4, 4)),
        (lambda x, w: (x * w).reshape(-1, 2), (3, 4)),
        (lambda x, w: ops.matmul(x, w), (3, 2, 2)),
        (lambda x, w: changed((Tensor([0, 1]), 0), x, w[:2, 1]), (3, 4)),
        (lambda x, w: mint.topk(x + w, 2)[1], (3, 4)),
    ],
)
def test_no_examples(function, shape):
    one, none = Tensor(np.ones(shape, np.float32)), Tensor(np.ones((0, *shape), np.float32))
    wanted = function(one, one)
    for mapped in (ms.vmap(function), ms.jit(ms.vmap(function))):
        found = mapped(none, none)
        assert found.dtype == wanted.dtype and tuple(found.shape) == (0, *wanted.shape)


def test_scatter_add_in_place():
    index = Tensor(np.array([[0, 1], [1, 1], [2, 0], [0, 0]]))

    def function(x, at):
        y = x * 1
        y.index_add_(0, at, ops.ones((2, 2)))
        return y

    close(ms.vmap(function)(X, index), loop(function, [X, index], (0, 0)))


def test_random_operators_draw_for_every_example():
    ms.set_seed(3)
    mask = ms.vmap(lambda x: ops.dropout(x, p=0.5))(ops.ones((6, 1000)))
    kept = (mask.asnumpy() > 0).mean(1)
    assert np.all(np.abs(kept - 0.5) < 0.1) and len(np.unique(mask.asnumpy(), axis=0)) == 6
    noise = ms.vmap(lambda x: x + ops.randn(100))(ops.zeros((5, 100)))
    assert len(np.unique(noise.asnumpy())) > 450
    orders = ms.vmap(lambda x: x + ops.randperm(50))(ops.zeros((4, 50)))
    assert len(np.unique(orders.asnumpy(), axis=0)) == 4


def test_gradients_of_each_example_of_a_network():
    ms.set_seed(1)
    net = nn.SequentialCell(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(36, 5), nn.LayerNorm((5,))
    )
    images = Tensor(np.random.default_rng(2).standard_normal((3, 1, 1, 6, 6)).astype(np.float32))
    labels = Tensor(np.array([[0], [3], [4]], np.int32))
    weights = net.trainable_params()

    def loss(image, label):
        return ops.cross_entropy(net(image), label)

    gradients = ms.grad(loss, None, weights)
    found = ms.vmap(lambda image, label: gradients(image, label))(images, labels)
    for k, actual in enumerate(found):
        wanted = np.stack([gradients(images[i], labels[i])[k].asnumpy() for i in range(3)])
        np.testing.assert_allclose(actual.asnumpy(), wanted, rtol=1e-4, atol=1e-5)


def test_cells_of_an_ensemble():
    cells = nn.CellList([nn.Dense(2, 3) for _ in range(4)])
    found = ms.vmap(cells, 0, 1)(X)
    assert tuple(found.shape) == (3, 4, 3)
    np.testing.assert_allclose(found[:, 2].asnumpy(), cells[2](X[2]).asnumpy(), rtol=1e-6)


SORTED = Tensor(np.sort(np.random.default_rng(2).integers(0, 9, (3, 7)), -1).astype(np.float32))
SOUGHT = Tensor(np.random.default_rng(3).integers(-1, 11, (3, 2, 4)).astype(np.float32))


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(axes, right):
    given = [value if axis == 0 else value[0] for value, axis in zip((SORTED, SOUGHT), axes)]
    sought = functools.partial(ops.searchsorted, right=right)
    close(ms.vmap(sought, axes)(*given), loop(sought, given, axes))


def test_bucketize_and_reverse_sequence():
    edges, lengths = [0.5, 2.0, 4.0], Tensor(np.array([[0, 2], [3, 4], [1, 4]]))
    close(ms.vmap(lambda x: ops.bucketize(x, edges))(SOUGHT), loop(lambda x: ops.bucketize(x, edges), [SOUGHT], (0,)))
    for axes in ((0, 0), (0, None), (None, 0)):
        given = [value if axis == 0 else value[0] for value, axis in zip((SOUGHT, lengths), axes)]
        close(
            ms.vmap(lambda x, n: ops.reverse_sequence(x, n, 1), axes)(*given),
            loop(lambda x, n: ops.reverse_sequence(x, n, 1), given, axes),
        )


@pytest.mark.parametrize(
    "call,error,text",
    [
        (lambda: ms.vmap(nn.BatchNorm1d(2).set_train())(X), NotImplementedError, r"normalisation.*set_train\(False\)"),
        (lambda: ms.vmap(lambda x: x, None), RuntimeError, "all are None"),
        (lambda: ms.vmap(lambda x: x, 1.5), RuntimeError, "must hold integers"),
        (lambda: ms.vmap(3), TypeError, "must be a function"),
        (lambda: ms.vmap(lambda x: x, 3)(X), RuntimeError, "axis 3 for a tensor of 3"),
        (lambda: ms.vmap(lambda x: x, 0, 4)(X), RuntimeError, "axis 4 for a result"),
        (lambda: ms.vmap(lambda x, y: x, (0,))(X, X), RuntimeError, "1 entries for 2 values"),
        (lambda: ms.vmap(lambda x, y: x, (0, 1))(X, X), RuntimeError, "must have one size"),
        (lambda: ms.vmap(lambda x, y: x)(X, 2), RuntimeError, "value of type int"),
        (lambda: ms.vmap(lambda x: x, 0, None)(X), RuntimeError, "differs between the examples"),
        (lambda: ms.vmap(lambda x: ops.masked_select(x, x > 0))(X), NotImplementedError, "values"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
