"""Generators, recomputation, own gradients, and the small functions of scripts."""

import functools

import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, mint, nn, ops


def t(*values):
    return Tensor(np.array(values, np.float32))


# -- generators --


def test_a_generator_draws_numbers_of_its_own():
    first, second = ms.Generator().manual_seed(5), ms.Generator().manual_seed(5)
    ms.set_seed(1)
    expected = mint.rand(3).asnumpy().tolist()
    ms.set_seed(1)
    drawn = [mint.rand(3, generator=first).asnumpy().tolist() for _ in range(2)]
    assert drawn[0] != drawn[1]
    assert [mint.rand(3, generator=second).asnumpy().tolist() for _ in range(2)] == drawn
    assert mint.rand(3).asnumpy().tolist() == expected  # the default generator has not moved
    state = first.get_state()
    assert state.shape == (16,) and state.dtype == ms.uint8 and first.initial_seed() == 5
    again = mint.randn(2, generator=first).asnumpy().tolist()
    first.set_state(state)
    assert mint.randn(2, generator=first).asnumpy().tolist() == again
    assert first.seed() == first.initial_seed()
    for draw in (
        lambda: mint.randint(0, 9, (4,), generator=second),
        lambda: mint.randperm(5, generator=second),
        lambda: mint.normal(0.0, 1.0, (3,), generator=second),
        lambda: mint.bernoulli(t(0.5, 0.5), generator=second),
        lambda: mint.multinomial(t(1, 2, 3), 2, generator=second),
        lambda: t(0, 0).uniform_(generator=second),
        lambda: t(0, 0).normal_(generator=second),
        lambda: t(0, 0).bernoulli_(0.5, generator=second),
        lambda: t(0, 0).random_(0, 9, generator=second),
    ):
        second.manual_seed(3)
        found = draw().asnumpy().tolist()
        second.manual_seed(3)
        assert draw().asnumpy().tolist() == found
    with pytest.raises(TypeError, match="'generator' must be a Generator"):
        mint.rand(2, generator=3)
    with pytest.raises(TypeError, match="'seed' must be int"):
        first.manual_seed(1.5)
    with pytest.raises(ValueError, match=r"uint8 \[16\]"):
        first.set_state(t(1, 2))
    with pytest.raises(NotImplementedError, match="not supported in compiled functions"):
        ms.jit(lambda x: x + mint.rand(2, generator=second))(t(1, 2))


def test_the_default_generator():
    assert ms.manual_seed(7) is ms.default_generator and ms.initial_seed() == 7
    state = ms.get_rng_state()
    first = ops.rand(2).asnumpy().tolist()
    ms.set_rng_state(state)
    assert ops.rand(2).asnumpy().tolist() == first
    assert ms.seed() == ms.initial_seed() != 7


# -- recomputation --


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, 4)
        self.dropout = nn.Dropout(p=0.5)
        self.runs = []

    def construct(self, x, scale=1.0):
        self.runs.append(1)
        return self.dropout(ops.tanh(self.dense(x))) * scale


def test_recompute_gives_the_same_and_runs_twice():
    net, x = Block(), Tensor(np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32))
    net.set_train()
    results = []
    for call in (net, functools.partial(ms.recompute, net)):
        ms.set_seed(4)
        net.runs.clear()
        value, (dx, weights) = ms.value_and_grad(call, 0, net.trainable_params())(x, 2.0)
        results.append([array.asnumpy().tolist() for array in (value, dx, *weights)])
        results.append(len(net.runs))
        results.append(ops.rand(2).asnumpy().tolist())  # the generator is where it would be
    assert results[0] == results[3] and results[1] == 1 and results[4] == 2 and results[2] == results[5]
    net.runs.clear()
    ms.recompute(net, x)
    assert len(net.runs) == 1  # no gradient is asked for


def test_recompute_of_several_outputs_and_second_order():
    class Two(nn.Cell):
        def construct(self, x, y):
            return x * x * y, y, 3

    two = Two()
    x, y = t(2, 3), t(5, 7)
    output = ms.recompute(two, x, y)
    assert output[2] == 3 and output[0].asnumpy().tolist() == [20, 63]
    dx, dy = ms.grad(lambda x, y: ms.recompute(two, x, y)[:2], (0, 1))(x, y)
    assert dx.asnumpy().tolist() == [20, 42] and dy.asnumpy().tolist() == [5, 10]
    second = ms.grad(lambda x: ms.grad(lambda z: ms.recompute(two, z, y)[0].sum())(x).sum())(x)
    assert second.asnumpy().tolist() == [10, 14]
    with pytest.raises(TypeError, match="'block' must be a Cell"):
        ms.recompute(lambda x: x, x)
    with pytest.raises(TypeError, match="'use_reentrant' must be bool"):
        ms.recompute(two, x, y, use_reentrant=1)


# -- own gradients --


class Scaled(ms._Function):
    @staticmethod
    def forward(ctx, x, y, n):
        ctx.save_for_backward(x, y)
        ctx.n = n
        return x * y * n, x + y

    @staticmethod
    def backward(ctx, da, db):
        x, y = ctx.saved_tensors
        return da * y * ctx.n * 100 + db, da * x * ctx.n + db, None


def test_functions_with_gradients_of_their_own():
    x, y = t(2, 3), t(5, 7)
    a, b = Scaled.apply(x, y, 2)
    assert a.asnumpy().tolist() == [20, 42] and b.asnumpy().tolist() == [7, 10]
    dx, dy = ms.grad(lambda x, y: Scaled.apply(x, y, 2)[0], (0, 1))(x, y)
    assert dx.asnumpy().tolist() == [1000, 1400] and dy.asnumpy().tolist() == [4, 6]
    w = Parameter(x, name="w")
    assert ms.grad(lambda: Scaled.apply(w, y, 2)[1], None, w)().asnumpy().tolist() == [1, 1]

    class Flags(ms._Function):
        @staticmethod
        def forward(ctx, x, y):
            assert ctx.needs_input_grad == (True, False)
            constant = x * 2
            ctx.mark_non_differentiable(constant)
            return constant, x * 3

        @staticmethod
        def backward(ctx, da, db):
            assert not da.asnumpy().any()
            return db * 7, None

    assert ms.grad(lambda x: Flags.apply(x, y))(x).asnumpy().tolist() == [7, 7]

    class Many(ms._Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    class Misplaced(ms._Function):
        @staticmethod
        def forward(ctx, x, n):
            return x * n

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    class Bare(ms._Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(ValueError, match="must return 1 gradients"):
        ms.grad(lambda x: Many.apply(x))(x)
    with pytest.raises(RuntimeError, match="a gradient for argument 1, which is no Tensor"):
        ms.grad(lambda x: Misplaced.apply(x, 2))(x)
    with pytest.raises(NotImplementedError, match="'backward' must be defined"):
        ms.grad(lambda x: Bare.apply(x))(x)
    with pytest.raises(TypeError, match="takes Tensors"):
        ms._Function().save_for_backward(3)
    for refused in (lambda f: f.mark_dirty(x), lambda f: f.set_materialize_grads(False)):
        with pytest.raises(NotImplementedError):
            refused(ms._Function())


def test_saved_tensors_hooks_say_what_to_use():
    for make in (ms.saved_tensors_hooks, ms.register_saved_tensors_hooks):
        with pytest.raises(TypeError, match="'pack_hook' must be callable"):
            make(None, lambda x: x)
        with pytest.raises(NotImplementedError, match="recompute"):
            make(lambda x: x, lambda x: x)


# -- small functions --


def test_types_beside_those_of_tensors():
    assert str(ms.string) == "String" and ms.common.dtype.string is ms.string
    assert (ms.long, ms.cfloat, ms.cdouble) == (ms.int64, ms.complex64, ms.complex128)
    assert (ms.float, ms.int, ms.bool) == (ms.float32, ms.int32, ms.bool_)
    from morel.dataset import transforms

    assert transforms.TypeCast(ms.string)(np.array([1, 2])).dtype.kind == "U"


def test_mutable_and_marks():
    x = t(1)
    for value in (x, 3, 1.5, True, (1, x), [x, (2, x)], {"a": x}):
        assert ms.mutable(value) is value
    with pytest.raises(TypeError, match="str: a"):
        ms.mutable((1, "a"))

    @ms.lazy_inline
    def one():
        return 1

    @ms.lazy_inline(policy="front")
    def two():
        return 2

    assert (one(), two(), ms.no_inline(one)()) == (1, 2, 1)
    with pytest.raises(ValueError, match="'policy'"):
        ms.lazy_inline(one, policy="back")
    assert ms.constexpr(one)() == 1 and ms.ops.constexpr(get_instance=False, name="One")(one)()() == 1
    config = ms.JitConfig(jit_level="O1", more=3)
    assert config.jit_config_dict["jit_level"] == "O1" and config.jit_config_dict["more"] == 3
    with pytest.raises(ValueError, match="'exc_mode' must be one of"):
        ms.JitConfig(exc_mode="no")


def test_tensors_over_foreign_memory():
    array = np.arange(6, dtype=np.float32)
    tensor = ms.from_numpy(array)
    array[0] = 9
    assert tensor[0].item() == 9 and ms.is_tensor(tensor) and not ms.is_tensor(array)
    with pytest.raises(TypeError, match="must be a numpy.ndarray"):
        ms.from_numpy([1])
    buffer = bytearray(array.tobytes())
    assert ms.frombuffer(buffer, ms.float32, 2, 4).asnumpy().tolist() == [1, 2]
    shared = ms.frombuffer(buffer, ms.float32)
    shared.fill_(0)
    assert not any(buffer)
    with pytest.raises(ValueError):
        ms.frombuffer(buffer, ms.float32, 99)


# -- mint --


def test_functions_of_mint():
    array = np.array([[3, 1, 2], [6, 5, 4]], np.float32)
    x = Tensor(array)

    def check(found, expected):
        if isinstance(expected, tuple):
            assert isinstance(found, tuple) and len(found) == len(expected)
            return [check(one, other) for one, other in zip(found, expected)]
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)
        assert found.asnumpy().dtype.kind == np.asarray(expected).dtype.kind

    order = np.argsort(array, 1)
    check(mint.sort(x, dim=1), (np.sort(array, 1), order))
    check(mint.argsort(x, 1, True, stable=True), order[:, ::-1])
    check(mint.topk(x, 1), (array.max(1, keepdims=True), array.argmax(1)[:, None]))
    check(mint.kthvalue(x, 2), (np.median(array, 1), np.array([2, 1])))
    check(mint.kthvalue(x, 1, 0, True), (array[:1], np.zeros((1, 3), np.int64)))
    check(mint.median(x), np.float32(3))
    check(mint.median(x, 1), (np.median(array, 1), np.array([2, 1])))
    check(mint.bincount(Tensor([2, 0, 2])), np.array([1, 0, 2]))
    check(mint.count_nonzero(x, 1), np.array([3, 3]))
    check(mint.norm(x), np.linalg.norm(array))
    check(mint.norm(x, 1, 1), np.abs(array).sum(1))
    check(mint.diff(x, dim=0), np.diff(array, axis=0))
    check(mint.histc(x, 3), np.array([2.0, 2, 2]))
    check(mint.cdist(x, x + 1, 1), np.abs(array[:, None] - array - 1).sum(-1))
    check(mint.nansum(x, 1, True), array.sum(1, keepdims=True))
    check(mint.index_add(x, 0, Tensor([0]), x[:1], alpha=2), np.stack([array[0] * 3, array[1]]))
    check(mint.scatter(x, 0, Tensor([[1, 0, 0]]), 7.0), np.array([[3, 7, 7], [7, 5, 4.0]]))
    check(mint.scatter_add(x, 0, Tensor([[1, 0, 0]]), x[:1]), np.array([[3, 2, 4], [9, 5, 4.0]]))
    check(mint.unique(Tensor([3, 1, 3]), return_inverse=True), (np.array([1, 3]), np.array([1, 0, 1])))
    check(mint.round(x / 7, decimals=2), np.round(array / 7, 2))
    check(mint.repeat_interleave(x, 2, 1, output_size=6), array.repeat(2, 1))
    check(mint.einsum("ij,kj->ik", x, x), array @ array.T)
    check(mint.special.log_softmax(x, 1), array - np.log(np.exp(array).sum(1, keepdims=True)))
    check(mint.special.sinc(x), np.sinc(array) + 0)
    check(mint.linalg.vector_norm(x, 1), np.abs(array).sum())
    check(mint.linalg.matrix_norm(x, 1), np.linalg.norm(array, 1))
    check(mint.linalg.norm(x), np.linalg.norm(array))
    assert mint.empty(2, 3).shape == mint.empty((2, 3)).shape == mint.rand(2, 3).shape == (2, 3)
    assert mint.equal(x, x) is True and mint.equal(x, x[:1]) is False and mint.allclose(x, x) is True
    assert mint.randint_like(x, 2, 5).dtype == ms.float32 and mint.randint(5, (2,)).dtype == ms.int64
    assert mint.multinomial(t(1, 2, 3), 2).dtype == ms.int64
    image = Tensor(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4))
    pooled, places = mint.nn.functional.max_pool2d(image, 2, 2, return_indices=True)
    restored = mint.nn.MaxUnpool2d(2)(pooled, places)
    assert restored.sum().item() == pooled.sum().item() and restored[0, 0, 3, 3].item() == 15
    check(mint.nn.functional.sigmoid_(t(0)), np.float32([0.5]))


def test_functions_that_mint_lacks():
    x = t(1, 2)
    for function in (mint.erfinv, mint.inverse, mint.triangular_solve, mint.linalg.inv, mint.linalg.qr):
        with pytest.raises(NotImplementedError, match=f"mint.{function.__name__} is not supported yet"):
            function(x)
    with pytest.raises(ValueError, match="there is no device 'Ascend'"):
        mint.rand(2, device="Ascend")
    with pytest.raises(ValueError, match=r"'k' must be in \[1, 2\]"):
        mint.kthvalue(x, 3)
    with pytest.raises(ValueError, match="'compute_mode' must be one of"):
        mint.cdist(x, x, compute_mode="no")
