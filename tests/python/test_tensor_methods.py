"""Methods of Tensor in all their forms, against NumPy."""

import numpy as np
import pytest

import morel as ms
from morel import Tensor

A = np.array([[3, 1, 2], [6, 5, 4]], np.float32)
X, INT, T3 = Tensor(A), Tensor(A.astype(np.int32)), Tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
MASK = A > 2
NAN = np.array([[3, np.nan, 2], [6, 5, 4]], np.float32)
S1, K1 = A.sum(1), A.sum(1, keepdims=True)
BEST, BEST_AT, BEST_K = A.max(1), A.argmax(1), A.max(1, keepdims=True)
ORDER = np.argsort(A, 1)

# expression, what it gives
FORMS = [
    ("X.sum()", np.float32(21)),
    ("X.sum(1)", S1),
    ("X.sum((0, 1))", np.float32(21)),
    ("X.sum(1, True)", K1),
    ("X.sum(1, ms.float64)", S1.astype(np.float64)),
    ("X.sum(1, None, True)", K1),
    ("X.sum(1, ms.float64, True, 2)", K1.astype(np.float64) + 2),
    ("X.sum(axis=1, keepdims=True)", K1),
    ("X.sum(axis=1, dtype=ms.float64, keepdims=True)", K1.astype(np.float64)),
    ("X.sum(dim=1, keepdim=True, dtype=ms.float64)", K1.astype(np.float64)),
    ("X.sum(1, keepdim=True)", K1),
    ("X.sum(initial=2)", np.float32(23)),
    ("INT.sum()", np.int64(21)),
    ("X.mean()", np.float32(3.5)),
    ("X.mean(1, True)", K1 / 3),
    ("X.mean(dim=1, keepdim=True)", K1 / 3),
    ("X.mean(axis=1, keep_dims=True)", K1 / 3),
    ("X.prod(dim=1, keepdim=True, dtype=ms.float64)", A.astype(np.float64).prod(1, keepdims=True)),
    ("X.prod(1, True)", A.prod(1, keepdims=True)),
    ("X.std()", A.std()),
    ("X.std(0)", A.std(0)),
    ("X.std(0, 1)", A.std(0, ddof=1)),
    ("X.std(0, 1, True)", A.std(0, ddof=1, keepdims=True)),
    ("X.std(axis=0, ddof=1, keepdims=True)", A.std(0, ddof=1, keepdims=True)),
    ("X.std(dim=0)", A.std(0, ddof=1)),
    ("X.std(dim=0, correction=0, keepdim=True)", A.std(0, keepdims=True)),
    ("X.var((0, 1))", A.var()),
    ("X.var(dim=0, keepdim=True)", A.var(0, ddof=1, keepdims=True)),
    ("X.max()", np.float32(6)),
    ("X.max(1)", (BEST, BEST_AT)),
    ("X.max(1, True)", (BEST_K, BEST_AT[:, None])),
    ("X.max(dim=1, keepdim=True)", (BEST_K, BEST_AT[:, None])),
    ("X.max(axis=1)", BEST),
    ("X.max(axis=1, keepdims=True)", BEST_K),
    ("X.max(axis=1, return_indices=True)", (BEST, BEST_AT)),
    ("X.max(axis=None, return_indices=True)", (np.float32(6), np.int64(0))),
    ("X.max(initial=9.0)", np.float32(9)),
    ("X.max(axis=1, initial=4.0)", np.maximum(BEST, 4)),
    ("X.max(axis=0, initial=2.0, where=Tensor(MASK))", np.where(MASK, A, 2).max(0)),
    ("X.min()", np.float32(1)),
    ("X.min(1)", (A.min(1), A.argmin(1))),
    ("X.min(axis=1)", A.min(1)),
    ("X.min(dim=0)", (A.min(0), A.argmin(0))),
    ("X.amax()", np.float32(6)),
    ("X.amax(1, True)", BEST_K),
    ("X.amin(axis=0, initial=5.0, where=Tensor(MASK))", np.where(MASK, A, 5).min(0)),
    ("X.argmax()", np.int64(3)),
    ("X.argmax(axis=1, keepdims=True)", BEST_AT[:, None]),
    ("X.argmax(dim=1, keepdim=True)", BEST_AT[:, None]),
    ("X.argmin(1)", A.argmin(1)),
    ("X.argsort()", ORDER),
    ("X.argsort(dim=1, descending=True, stable=True)", ORDER[:, ::-1]),
    ("X.sort()", (np.sort(A), ORDER)),
    ("X.sort(axis=0, descending=True)", (A[::-1], [[1, 1, 1], [0, 0, 0]])),
    ("X.topk(1)", (BEST_K, BEST_AT[:, None])),
    ("X.topk(1, dim=0, largest=False)", (A[:1], np.zeros((1, 3), np.int64))),
    ("X.all(1)", A.all(1)),
    ("Tensor(MASK).all(axis=1, keep_dims=True)", MASK.all(1, keepdims=True)),
    ("Tensor(MASK).any(dim=1, keepdim=True)", MASK.any(1, keepdims=True)),
    ("X.cumsum(0)", A.cumsum(0)),
    ("X.cumsum(dim=1, dtype=ms.float64)", A.cumsum(1).astype(np.float64)),
    ("X.cumsum(axis=1)", A.cumsum(1)),
    ("X.cumsum()", A.cumsum()),
    ("X.cumprod(1)", A.cumprod(1)),
    ("X.logsumexp(dim=1, keepdim=True)", np.log(np.exp(A).sum(1, keepdims=True))),
    ("X.count_nonzero(axis=1)", np.array([3, 3], np.int32)),
    ("X.flatten()", A.ravel()),
    ("X.flatten('F')", A.ravel("F")),
    ("X.flatten(order='C')", A.ravel()),
    ("T3.flatten(1)", T3.asnumpy().reshape(2, 12)),
    ("T3.flatten(0, 1)", T3.asnumpy().reshape(6, 4)),
    ("T3.flatten(start_dim=1, end_dim=2)", T3.asnumpy().reshape(2, 12)),
    ("Tensor(3.0).flatten()", np.array([3], np.float32)),
    ("X.split(2, 1)", (A[:, :2], A[:, 2:])),
    ("X.split((1, 2), 1)", (A[:, :1], A[:, 1:])),
    ("X.split(split_size=2, dim=1)", (A[:, :2], A[:, 2:])),
    ("X.split(split_size_or_sections=2, axis=1)", (A[:, :2], A[:, 2:])),
    ("X.chunk(2, dim=1)", (A[:, :2], A[:, 2:])),
    ("X.repeat(2, 1)", np.tile(A, (2, 1))),
    ("X.repeat((2, 1, 1))", np.tile(A, (2, 1, 1))),
    ("X.tile(2, 1)", np.tile(A, (2, 1))),
    ("X.tile((2, 1))", np.tile(A, (2, 1))),
    ("X.repeat_interleave(2)", A.repeat(2)),
    ("X.repeat_interleave(2, dim=1, output_size=6)", A.repeat(2, 1)),
    ("X.gather(Tensor([1, 0]), 0)", A[::-1]),
    ("X.gather(input_indices=Tensor([1, 0]), axis=1)", A[:, [1, 0]]),
    ("X.gather(1, Tensor([[1], [0]]))", np.array([[1], [6]], np.float32)),
    ("X.gather(dim=1, index=Tensor([[1], [0]]))", np.array([[1], [6]], np.float32)),
    ("X.select(0, 1)", A[1]),
    ("X.select(Tensor(MASK), 0.0)", np.where(MASK, A, 0)),
    ("X.select(condition=Tensor(MASK), y=X * 0)", np.where(MASK, A, 0)),
    ("X.where(Tensor(MASK), 0)", np.where(MASK, A, 0)),
    ("X.nonzero()", np.argwhere(A)),
    ("Tensor(MASK).nonzero(as_tuple=True)", np.nonzero(MASK)),
    ("X.median()", (np.median(A, 1), [2, 1])),
    ("X.median(axis=1, keepdims=True)", (np.median(A, 1, keepdims=True), [[2], [1]])),
    ("X.median(dim=1, keepdim=True)", (np.median(A, 1, keepdims=True), [[2], [1]])),
    ("X.norm()", np.linalg.norm(A)),
    ("X.norm(ord=2, dim=1, keepdim=True)", np.linalg.norm(A, axis=1, keepdims=True)),
    ("X.take(Tensor([0, 9]))", np.array([3, 4], np.float32)),
    ("X.take(Tensor([0, 4]), axis=1, mode='wrap')", A[:, [0, 1]]),
    ("X.take(Tensor([0, -1]), mode='raise')", np.array([3, 4], np.float32)),
    ("Tensor([3, 1, 3]).unique()", np.array([1, 3])),
    ("Tensor([3, 1, 3]).unique(return_inverse=True, return_counts=True)", (np.array([1, 3]), [1, 0, 1], [1, 2])),
    ("Tensor([[1, 2], [0, 3], [1, 2]]).unique(dim=0)", np.array([[0, 3], [1, 2]])),
    ("X.clamp(2, 4)", np.clip(A, 2, 4)),
    ("X.clip(min=2)", np.clip(A, 2, None)),
    ("X.round(decimals=0)", A),
    ("(X / 7).round(decimals=2)", np.round(A / 7, 2)),
    ("round(X / 7, 2)", np.round(A / 7, 2)),
    ("+X", A),
    ("X.new_ones((2,))", np.ones(2, np.float32)),
    ("X.new_zeros((2,), dtype=ms.int32)", np.zeros(2, np.int32)),
    ("INT.new_full((2,), 3)", np.full(2, 3, np.int32)),
    ("X.new_empty((2,)) * 0", np.zeros(2, np.float32)),
    ("X.masked_select(Tensor(MASK))", A[MASK]),
    ("X.masked_scatter(Tensor(MASK), -X)", np.array([[-3, 1, 2], [-1, -2, -6]], np.float32)),
    ("X[:1].squeeze(0)", A[0]),
    ("X[:1].squeeze()", A[0]),
    ("X.diag()", np.diag(A)),
    ("Tensor([1, 2]).diag(1)", np.diag([1, 2], 1)),
    ("X.diagonal(1)", np.diagonal(A, 1)),
    ("X.dot(X.T)", A @ A.T),
    ("Tensor([1.0, 2.0]).outer(Tensor([3.0]))", np.array([[3], [6]], np.float32)),
    ("X.softmax(-1)", np.exp(A) / np.exp(A).sum(-1, keepdims=True)),
    ("X.index_select(dim=0, index=Tensor([1]))", A[1:]),
    ("X.index_fill(0, Tensor([0]), 9.0)", np.stack([A[0] * 0 + 9, A[1]])),
    ("X.index_add(Tensor([0]), X[:1], 0)", np.stack([A[0] * 2, A[1]])),
    ("X.index_add(0, Tensor([0]), X[:1], alpha=2)", np.stack([A[0] * 3, A[1]])),
    ("X.scatter(0, Tensor([[1, 0, 0]]), X[:1])", np.array([[3, 1, 2], [3, 5, 4]], np.float32)),
    ("X.scatter(axis=0, index=Tensor([[1, 0, 0]]), src=7.0)", np.array([[3, 7, 7], [7, 5, 4]], np.float32)),
    ("X.scatter_add(0, Tensor([[1, 0, 0]]), X[:1])", np.array([[3, 2, 4], [9, 5, 4]], np.float32)),
    ("X.scatter_add(Tensor([[0, 0], [1, 1]]), Tensor([1.0, 2.0]))", np.array([[4, 1, 2], [6, 7, 4]], np.float32)),
    ("X.scatter_max(Tensor([[0, 0], [1, 1]]), Tensor([1.0, 9.0]))", np.array([[3, 1, 2], [6, 9, 4]], np.float32)),
    ("X.ptp()", np.float32(5)),
    ("X.ptp(axis=1, keepdims=True)", np.ptp(A, 1, keepdims=True)),
    ("Tensor([0, 1]).choose([[1, 2], [3, 4]])", np.array([1, 4])),
    ("Tensor([0, 5]).choose([[1, 2], [3, 4]])", np.array([1, 4])),
    ("Tensor([0, 4]).choose([[1, 2], [3, 4]], mode='wrap')", np.array([1, 2])),
    ("X.resize(3, 2)", A.reshape(3, 2)),
    ("X.resize((2, 2))", np.array([[3, 1], [2, 6]], np.float32)),
    ("X.resize(8)", np.append(A, [0, 0]).astype(np.float32)),
    ("X.view(-1)", A.ravel()),
    ("X.view((3, 2))", A.reshape(3, 2)),
    ("X.view(ms.int32)", A.view(np.int32)),
    ("X.reshape_as(X.T)", A.reshape(3, 2)),
    ("X.sum_to_size((1, 3))", A.sum(0, keepdims=True)),
    ("X.fill(3)", np.full_like(A, 3)),
    ("X.fill_diagonal(9.0)", np.array([[9, 1, 2], [6, 9, 4]], np.float32)),
    ("Tensor(np.zeros((5, 2))).fill_diagonal_(1.0, True)", [[1, 0], [0, 1], [0, 0], [1, 0], [0, 1.0]]),
    ("X.sub(X, alpha=2)", -A),
    ("X.add(X, 2)", A * 3),
    ("X.data", A),
    ("X.t()", A.T),
    ("X.trace()", np.trace(A)),
    ("X.cross(X + 1, 1)", np.cross(A, A + 1)),
    ("X.diff()", np.diff(A)),
    ("X.rot90(1, (0, 1))", np.rot90(A)),
    ("X.hypot(X)", np.hypot(A, A)),
    ("X.inv()", 1 / A),
    ("INT.invert()", ~A.astype(np.int32)),
    ("X.moveaxis(0, 1)", A.T),
    ("X.inner(X)", A @ A.T),
    ("Tensor(NAN).nansum(1)", np.nansum(NAN, 1)),
    ("Tensor(NAN).nan_to_num(1.0)", np.nan_to_num(NAN, nan=1)),
]  # fmt: skip


def _check(found, expected):
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected)
        for one, other in zip(found, expected):
            _check(one, other)
        return
    array, expected = found.asnumpy(), np.asarray(expected)
    assert array.shape == expected.shape and array.dtype.kind == expected.dtype.kind
    if expected.dtype.itemsize < 8 and expected.dtype.kind == "f":
        assert array.dtype == expected.dtype
    np.testing.assert_allclose(array, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(("text", "expected"), FORMS, ids=[form[0] for form in FORMS])
def test_form(text, expected):
    before = A.copy()
    _check(eval(text, globals()), expected)
    assert (X.asnumpy() == before).all()  # nothing wrote into it


def test_forms_in_place():
    for text, expected in [
        ("x.log_()", np.log(A)),
        ("x.floor_()", np.floor(A)),
        ("x.tanh_()", np.tanh(A)),
        ("x.sigmoid_()", 1 / (1 + np.exp(-A))),
        ("x.remainder_(2)", A % 2),
        ("x.floor_divide_(2)", A // 2),
        ("x.sign_()", np.sign(A)),
        ("x.masked_fill_(Tensor(MASK), 0)", np.where(MASK, 0, A)),
        ("x.index_fill_(0, Tensor([0]), 9.0)", np.stack([A[0] * 0 + 9, A[1]])),
        ("x.index_add_(0, Tensor([0]), x[:1] * 1)", np.stack([A[0] * 2, A[1]])),
        ("x.scatter_(0, Tensor([[1, 0, 0]]), 7.0)", np.array([[3, 7, 7], [7, 5, 4]], np.float32)),
        ("x.masked_scatter_(Tensor(MASK), -x)", np.array([[-3, 1, 2], [-1, -2, -6]], np.float32)),
        ("x.fill_diagonal_(9.0)", np.array([[9, 1, 2], [6, 9, 4]], np.float32)),
    ]:
        x = Tensor(A)
        assert eval(text, {**globals(), "x": x}) is x
        _check(x, expected)
    ms.set_seed(1)
    x = Tensor(np.zeros(4000, np.float32))
    assert x.uniform_(2, 4) is x and 2 <= x.min().item() < x.max().item() < 4
    assert x.normal_(1, 2).mean().item() == pytest.approx(1, abs=0.2) and x.std().item() == pytest.approx(2, rel=0.1)
    assert ms.grad(lambda y: (y * 1).sigmoid_().sum())(Tensor([0.0])).item() == 0.25


def test_numbers_and_flags():
    assert X.allclose(X) is True and X.allclose(X + 1) is False and X.ndimension() == 2
    assert X.numel() == 6 and X.isclose(X, rtol=1e-3).all() and X.isclose(x2=X).all()


@pytest.mark.parametrize(
    ("error", "text", "match"),
    [
        (TypeError, "X.sum(axis=1, dim=1)", "two names"),
        (TypeError, "X.sum(1, keepdims=True, keepdim=True)", "two names"),
        (TypeError, "X.sum(1, True, 3)", "too many"),
        (TypeError, "X.mean(axis=1, dim=1)", "two names"),
        (TypeError, "X.flatten(3.0)", "'order' must be str"),
        (ValueError, "X.flatten('A')", "'C' or 'F'"),
        (ValueError, "X.repeat(2)", "2 or more repeats"),
        (ValueError, "X.take(Tensor([0]), mode='no')", "'mode' must be"),
        (IndexError, "X.take(Tensor([9]), mode='raise')", "9"),
        (ValueError, "X.choose([X], mode='no')", "'mode' must be"),
        (IndexError, "Tensor([3]).choose([X[0]], mode='raise')", "must be in"),
        (ValueError, "X.repeat_interleave(2, 0, output_size=3)", "'output_size' is 3"),
        (TypeError, "X.sort(stable=1)", "'stable' must be bool"),
        (ValueError, "X.masked_scatter(Tensor(MASK), X[0])", "4 elements are needed"),
        (TypeError, "X.new_ones((2,), wrong=1)", "unexpected"),
        (ValueError, "X.new_ones((2,), device='GPU')", "there is no device 'GPU'"),
        (NotImplementedError, "X.view(ms.bfloat16)", "bfloat16"),
        (TypeError, "X.index_add(0, Tensor([0]), X[:1], wrong=1)", "unexpected"),
    ],
)
def test_wrong_arguments(error, text, match):
    with pytest.raises(error, match=match):
        eval(text, globals())
