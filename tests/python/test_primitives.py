"""Primitive classes: attributes first, inputs at the call."""

import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, nn, ops

A = np.array([[3, 1, 2], [6, 5, 4]], np.float32)
X, Y, IDS, ONE = Tensor(A), Tensor(A * 0 + 2), Tensor(np.array([1, 0], np.int32)), Tensor(np.ones(3, np.float32))
IMAGE = Tensor(np.random.default_rng(0).normal(size=(2, 4, 4, 6)).astype(np.float32))
KERNEL = Tensor(np.random.default_rng(1).normal(size=(3, 4, 3, 3)).astype(np.float32))


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


FORMS = [
    ("ops.Argmax()(X)", np.array([0, 0], np.int32)),
    ("ops.Argmax(0, ms.int64)(X)", np.array([1, 1, 1])),
    ("ops.Argmin(axis=1)(X)", np.array([1, 2], np.int32)),
    ("ops.ArgMaxWithValue()(X)", (np.array([1, 1, 1]), A[1])),
    ("ops.ArgMinWithValue(1, True)(X)", (np.array([[1], [2]]), A.min(1, keepdims=True))),
    ("ops.BiasAdd()(X, ONE)", A + 1),
    ("ops.CumSum()(X, 1)", A.cumsum(1)),
    ("ops.CumSum(True, False)(X, 1)", np.array([[0, 3, 4], [0, 6, 11]], np.float32)),
    ("ops.CumSum(False, True)(X, 1)", A[:, ::-1].cumsum(1)[:, ::-1]),
    ("ops.CumSum(True, True)(X, 0)", np.stack([A[1], A[1] * 0])),
    ("ops.CumProd(True, True)(X, 1)", np.array([[2, 2, 1], [20, 4, 1]], np.float32)),
    ("ops.ReduceSum()(X, 1)", A.sum(1)),
    ("ops.ReduceSum(True)(X)", A.sum(keepdims=True)),
    ("ops.ReduceSum(skip_mode=True)(X)", A),
    ("ops.ReduceStd(1, True, True)(X)", (A.std(1, ddof=1, keepdims=True), A.mean(1, keepdims=True))),
    ("ops.ReduceStd(unbiased=False)(X)", (A.std(), A.mean())),
    ("ops.Unstack(1, 3)(X)", tuple(A.T)),
    ("ops.Split(1, 3)(X)", (A[:, :1], A[:, 1:2], A[:, 2:])),
    ("ops.Meshgrid()((ONE, ONE[:2]))", (np.ones((2, 3), np.float32), np.ones((2, 3), np.float32))),
    ("ops.OneHot()(IDS, 3, Tensor(1.0), Tensor(0.0))", np.eye(3, dtype=np.float32)[[1, 0]]),
    ("ops.Pad(((1, 0), (0, 2)))(X)", np.pad(A, [(1, 0), (0, 2)])),
    ("ops.MirrorPad()(X, Tensor([[1, 0], [0, 2]]))", np.pad(A, [(1, 0), (0, 2)], "reflect")),
    ("ops.MirrorPad('SYMMETRIC')(X, ((2, 0), (0, 2)))", np.pad(A, [(2, 0), (0, 2)], "symmetric")),
    ("ops.TensorShape()(X)", np.array([2, 3])),
    ("ops.Identity()(X)", A),
    ("ops.Depend()(X, Y)", A),
    ("ops.DivNoNan()(X, Tensor([0.0, 1, 2]))", A / [np.inf, 1, 2]),
    ("ops.MulNoNan()(X / 0, Tensor([0.0, 1, 2]))", np.array([[0, np.inf, np.inf]] * 2, np.float32)),
    ("ops.Cross(1)(X, Y)", np.cross(A, A * 0 + 2)),
    ("ops.Einsum('ij,kj->ik')((X, X))", A @ A.T),
    ("ops.L2Loss()(X)", np.float32(45.5)),
    ("ops.SoftmaxCrossEntropyWithLogits()(X, ops.softmax(X * 2))",
     (-(np.log(softmax(A)) * softmax(2 * A)).sum(1), softmax(A) - softmax(2 * A))),
    ("ops.SparseSoftmaxCrossEntropyWithLogits()(X, IDS)", -np.log(softmax(A))[[0, 1], [1, 0]].mean()),
    ("ops.SparseSoftmaxCrossEntropyWithLogits(True)(X, IDS)", (softmax(A) - np.eye(3)[[1, 0]]) / np.float32(2)),
    ("ops.SigmoidCrossEntropyWithLogits()(X, Y)", np.log1p(np.exp(A)) - A * 2),
    ("ops.NLLLoss()(ops.log_softmax(X), IDS, Tensor([1.0, 2, 4]))",
     (-(np.log(softmax(A))[[0, 1], [1, 0]] * [2, 1]).sum() / np.float32(3), np.float32(3))),
    ("ops.LayerNorm(1, 1)(X, ONE, ONE)",
     ((A - A.mean(1, keepdims=True)) / A.std(1, keepdims=True) + 1, A.mean(1, keepdims=True), A.var(1, keepdims=True))),
    ("ops.DepthToSpace(2)(Tensor(np.arange(8).reshape(1, 4, 1, 2)))", np.array([[[[0, 2, 1, 3], [4, 6, 5, 7]]]])),
    ("ops.SpaceToDepth(2)(Tensor(np.arange(8).reshape(1, 1, 2, 4)))", np.array([[[[0, 2]], [[1, 3]], [[4, 6]], [[5, 7]]]])),
    ("ops.GatherNd()(X, Tensor([[0, 1]]))", A[0, 1:2]),
    ("ops.TensorScatterUpdate()(X, Tensor([[0, 1]]), Tensor([9.0]))", np.array([[3, 9, 2], [6, 5, 4]], np.float32)),
    ("ops.ScatterNd()(Tensor([[0], [2]]), Tensor([1.0, 2]), (3,))", np.array([1, 0, 2], np.float32)),
    ("ops.ScatterAdd(use_locking=True)(Parameter(X * 1, name='p'), IDS, X)", A + A[::-1]),
    ("ops.ScatterNdUpdate()(Parameter(X * 1, name='p'), Tensor([[0, 1]]), Tensor([9.0]))", [[3, 9, 2], [6, 5, np.float32(4)]]),
    ("ops.UnsortedSegmentSum()(X, IDS, 2)", A[::-1]),
    ("ops.IndexAdd(0)(Parameter(X * 1, name='p'), IDS, X)", A + A[::-1]),
    ("ops.InplaceAdd((0,))(X, X[:1])", np.stack([A[0] * 2, A[1]])),
    ("ops.Select()(X > 2, X, Y)", np.maximum(A, 2)),
    ("ops.Slice()(X, (0, 1), (2, 1))", A[:, 1:2]),
    ("ops.Range()(Tensor(0), Tensor(6), Tensor(2))", np.array([0, 2, 4])),
    ("ops.ReverseSequence(1, 0)(X, Tensor([2, 3]))", np.array([[1, 3, 2], [4, 5, 6]], np.float32)),
    ("ops.ReverseV2([1])(X)", A[:, ::-1]),
    ("ops.LinSpace()(Tensor(0.0), Tensor(4.0), 5)", np.arange(5, dtype=np.float32)),
    ("ops.Ones()((2,), ms.float32)", np.ones(2, np.float32)),
    ("ops.Eye()(2, 3, ms.float32)", np.eye(2, 3, dtype=np.float32)),
    ("ops.LeftShift()(IDS, IDS)", np.array([2, 0], np.int32)),
    ("ops.Rint()(X / 4)", np.round(A / 4)),
    ("ops.Elu(2.0)(X - 3)", np.where(A > 3, A - 3, 2 * np.expm1(A - 3))),
    ("ops.HShrink(2.0)(X - 3)", np.where(abs(A - 3) > 2, A - 3, 0)),
    ("ops.TensorAdd()(X, Y)", A + 2),
    ("ops.Pack(1)([X, X])", np.stack([A, A], 1)),
    ("ops.Assign()(Parameter(X * 1, name='p'), Y)", A * 0 + 2),
    ("ops.L2Normalize(1)(X)", A / np.linalg.norm(A, axis=1, keepdims=True)),
    ("ops.MatrixBandPart()(X, 0, 1)", np.triu(np.tril(A, 1))),
    ("ops.Conv2D(3, 3, pad_mode='pad', pad=(1, 0, 1, 1), stride=2)(IMAGE, KERNEL)",
     lambda: ops.conv2d(IMAGE, KERNEL, None, 2, "pad", (1, 0, 1, 1))),
    ("ops.Conv2D(3, 3, pad_mode='same')(IMAGE, KERNEL)", lambda: ops.conv2d(IMAGE, KERNEL, None, 1, "same")),
    ("ops.Conv3D(3, (1, 3, 3))(IMAGE.expand_dims(2), KERNEL.expand_dims(2)).squeeze(2)", lambda: ops.conv2d(IMAGE, KERNEL)),
    ("ops.Conv2DTranspose(3, 3, stride=2)(ops.conv2d(IMAGE, KERNEL, None, 2), KERNEL, IMAGE.shape)",
     lambda: ms.grad(lambda x: (ops.conv2d(x, KERNEL, None, 2) * ops.conv2d(IMAGE, KERNEL, None, 2)).sum())(IMAGE * 0)),
    ("ops.Conv2DBackpropInput(3, 3, pad_mode='same')(ops.conv2d(IMAGE, KERNEL, None, 1, 'same'), KERNEL, IMAGE.shape)",
     lambda: ms.grad(lambda x: (ops.conv2d(x, KERNEL, None, 1, "same") * ops.conv2d(IMAGE, KERNEL, None, 1, "same")).sum())(
         IMAGE * 0)),
    ("ops.MaxPool(3, 2, 'same')(IMAGE)", lambda: nn.MaxPool2d(3, 2, "same")(IMAGE)),
    ("ops.AvgPool(2, 2)(IMAGE)", lambda: nn.AvgPool2d(2, 2)(IMAGE)),
    ("ops.ResizeNearestNeighbor((2, 3))(IMAGE)", lambda: ops.interpolate(IMAGE, (2, 3))),
    ("ops.ResizeBilinearV2(True)(IMAGE, (3, 3))", lambda: ops.interpolate(IMAGE, 3, mode="bilinear", align_corners=True)),
    ("ops.Im2Col(2)(IMAGE).reshape((2, 16, 15))", lambda: ops.unfold(IMAGE, 2)),
    ("ops.BatchNorm()(IMAGE, *[ONE[:1].tile((4,)) * k for k in (1, 2, 3, 4)])[0]", lambda: (IMAGE - 3) / (4 + 1e-5) ** 0.5 + 2),
]  # fmt: skip


def _check(found, expected):
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected)
        for one, other in zip(found, expected):
            _check(one, other)
        return
    array = found.asnumpy()
    expected = expected.asnumpy() if isinstance(expected, Tensor) else np.asarray(expected)
    assert array.shape == expected.shape and array.dtype.kind == expected.dtype.kind
    np.testing.assert_allclose(array, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("text", "expected"), FORMS, ids=[form[0] for form in FORMS])
def test_form(text, expected):
    _check(eval(text, globals()), expected() if callable(expected) else expected)


def test_every_class_of_a_function_can_be_made():
    from morel.api import load_table

    for name, spec in load_table("primitives")["functions"].items():
        required = [part for part in spec.split("(", 1)[1].rstrip(")").split(", ") if part and "=" not in part]
        made = getattr(ops, name)(*[1] * len(required))
        assert made.name == name and callable(getattr(ops, spec.partition("(")[0]))


def test_batch_norm_in_training_updates_its_statistics():
    scale, shift, mean, variance = (Parameter(ONE[:1].tile((4,)) * k, name=f"p{k}") for k in range(1, 5))
    output, batch_mean, batch_variance, *_ = ops.BatchNorm(True)(IMAGE, scale, shift, mean, variance)
    array = IMAGE.asnumpy()
    _check(batch_mean, array.mean((0, 2, 3))), _check(batch_variance, array.var((0, 2, 3)))
    _check(mean, 0.9 * 3 + 0.1 * array.mean((0, 2, 3)))
    _check(output.mean((0, 2, 3)), np.full(4, 2, np.float32))


def test_gradient_taps():
    seen = []
    hook = ops.HookBackward(lambda grads: seen.append(grads) or None)
    assert ms.grad(lambda x: hook(x * 2) * 3)(Tensor([1.0])).item() == 6
    assert isinstance(seen[0], tuple) and seen[0][0].item() == 3
    assert ms.grad(lambda x: ops.HookBackward(lambda grads: grads[0] * 5)(x * 2) * 3)(Tensor([1.0])).item() == 30
    assert ms.grad(lambda x: ops.InsertGradientOf(lambda grad: grad * 7)(x * 2) * 3)(Tensor([1.0])).item() == 42


def test_random_classes():
    ms.set_seed(1)
    output, mask = ops.Dropout(0.75)(ops.ones((4000,), ms.float32))
    kept = mask.asnumpy()
    assert kept.mean() == pytest.approx(0.75, abs=0.03) and np.allclose(output.asnumpy(), kept / 0.75)
    assert ops.StandardNormal()((2, 3)).shape == ops.UniformReal(seed=2)((2, 3)).shape == (2, 3)
    assert ops.StandardLaplace()((2,)).dtype == ms.float32
    assert sorted(ops.RandomShuffle()(Tensor([3, 1, 2])).asnumpy().tolist()) == [1, 2, 3]
    assert ops.Bernoulli()(X, 1.0).asnumpy().all()


def test_what_is_not_a_tensor(capsys):
    assert ops.Shape()(X) == (2, 3) and ops.Size()(X) == 6 and ops.Rank()(X) == 2 and ops.DType()(X) == ms.float32
    assert ops.Print()("text", Tensor(3)) is None
    assert capsys.readouterr().out == "text\nTensor(shape=[], dtype=Int64, value= 3)\n"
    assert repr(ops.Conv2D(3, 2)).startswith("Prim[Conv2D]<out_channel=3, kernel_size=2")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (TypeError, "ops.Conv2D(3)"),
        (TypeError, "ops.Argmax(0, ms.int32, 3)"),
        (TypeError, "ops.Argmax(wrong=3)"),
        (TypeError, "ops.HookBackward(3)"),
        (ValueError, "ops.Conv2D(3, 2, pad_mode='none')"),
        (ValueError, "ops.Conv2D(3, 2, pad=1)"),
        (ValueError, "ops.Conv2D(3, 2, mode=0)"),
        (ValueError, "ops.Conv2D(5, 3)(IMAGE, KERNEL)"),
        (ValueError, "ops.MaxPool(2, 2, 'full')"),
        (ValueError, "ops.Split(1, 2)(X)"),
        (ValueError, "ops.Unstack(1, 2)(X)"),
        (ValueError, "ops.MirrorPad('EDGE')"),
        (ValueError, "ops.MirrorPad()(X, ((2, 0), (0, 0)))"),
        (ValueError, "ops.Dropout(0.0)"),
        (ValueError, "ops.DepthToSpace(3)(IMAGE)"),
        (ValueError, "ops.SpaceToDepth(5)(IMAGE)"),
        (ValueError, "ops.ResizeBilinearV2(True, True)(IMAGE, (2, 2))"),
        (NotImplementedError, "ops.ResizeBilinearV2()(IMAGE, (2, 2))"),
        (NotImplementedError, "ops.ResizeNearestNeighbor((2, 2), True)(IMAGE)"),
        (ValueError, "ops.BiasAdd('NHWC')"),
        (ValueError, "ops.Range()(0, 5, 0)"),
        (ValueError, "ops.range(0, 5, 1, 3)"),
        (TypeError, "ops.range('a', 5, 1)"),
    ],
)
def test_wrong_arguments(error, text):
    with pytest.raises(error, match=r"For '|missing"):
        eval(text, globals())


def test_boxes_that_overlap_are_masked():
    boxes = Tensor(
        np.array([[0, 0, 10, 10, 0.9], [1, 1, 10, 10, 0.8], [20, 20, 30, 30, 0.95], [0, 0, 6, 6, 0.1]], np.float32)
    )
    for call in (ops.NMSWithMask(), ms.jit(lambda boxes: ops.NMSWithMask()(boxes))):
        ordered, places, kept = call(boxes)
        assert places.asnumpy().tolist() == [2, 0, 1, 3] and kept.asnumpy().tolist() == [True, True, False, True]
        np.testing.assert_array_equal(ordered.asnumpy(), boxes.asnumpy()[[2, 0, 1, 3]])
    assert ops.NMSWithMask(0.3)(boxes)[2].asnumpy().tolist() == [True, True, False, False]
    with pytest.raises(ValueError, match=r"\(N, 5\)"):
        ops.NMSWithMask()(boxes[:, :4])
    with pytest.raises(TypeError, match="float16 or float32"):
        ops.NMSWithMask()(boxes.astype(ms.int32))


def test_what_exists_on_other_devices_says_so():
    from morel.api import load_table

    for name, devices in load_table("elsewhere")["ops"].items():
        found = getattr(ops, name)
        call = found if name[0].islower() else found("any", attributes=1)
        with pytest.raises(NotImplementedError, match=f"'{name}' exists on {devices} only"):
            call(Tensor([1.0]))
    assert isinstance(ops.NPUGetFloatStatus(), ops.Primitive)


def test_mixed_precision_cast():
    single, integer = Tensor([1.5]), Tensor([2])
    found = ops.mixed_precision_cast(ms.float16, (single, integer, [single, 3]))
    assert [found[0].dtype, found[1].dtype, found[2][0].dtype, found[2][1]] == [ms.float16, ms.int64, ms.float16, 3]


def test_inplace_index_add():
    weight = Parameter(Tensor(A), name="weight")
    found = ops.InplaceIndexAdd(axis=0)(weight, IDS, Tensor(np.ones((2, 3), np.float32)))
    np.testing.assert_array_equal(weight.asnumpy(), A + 1)
    assert found is weight
