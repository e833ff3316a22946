"""mint.nn and mint.nn.functional: against numpy, and against the layers of nn that test_nn_reference.py checks."""

import numpy as np
import pytest

import morel as ms
from morel import Tensor, mint, nn, ops

F = mint.nn.functional
RNG = np.random.RandomState(3)


def array(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def copy_values(source, target):
    for one, other in zip(source.get_parameters(), target.get_parameters()):
        other.set_data(one.reshape(other.shape))


def close(mine, wanted, rtol=1e-5, atol=1e-5):
    wanted = wanted.asnumpy() if isinstance(wanted, Tensor) else wanted
    assert mine.shape == wanted.shape
    np.testing.assert_allclose(mine.asnumpy(), wanted, rtol=rtol, atol=atol)


@pytest.mark.parametrize(
    "mine, same, shape",
    [
        (lambda: mint.nn.Conv2d(4, 6, 3, 2, 1), lambda: nn.Conv2d(4, 6, 3, 2, "pad", 1, has_bias=True), (2, 4, 7, 6)),
        (
            lambda: mint.nn.Conv2d(4, 6, (3, 2), padding=(1, 0), groups=2, bias=False),
            lambda: nn.Conv2d(4, 6, (3, 2), pad_mode="pad", padding=(1, 1, 0, 0), group=2),
            (2, 4, 7, 6),
        ),
        (lambda: mint.nn.Conv2d(4, 6, 4, padding="same"), lambda: nn.Conv2d(4, 6, 4, has_bias=True), (2, 4, 7, 6)),
        (
            lambda: mint.nn.Conv2d(4, 6, 3, padding="valid"),
            lambda: nn.Conv2d(4, 6, 3, pad_mode="valid", has_bias=True),
            (2, 4, 7, 6),
        ),
        (lambda: mint.nn.Conv1d(4, 6, 3, 2, 1), lambda: nn.Conv1d(4, 6, 3, 2, "pad", 1, has_bias=True), (2, 4, 9)),
        (
            lambda: mint.nn.Conv3d(4, 6, 2, 2, 1),
            lambda: nn.Conv3d(4, 6, 2, 2, "pad", 1, has_bias=True),
            (1, 4, 3, 4, 5),
        ),
        (
            lambda: mint.nn.ConvTranspose2d(4, 6, 3, 2, 1),
            lambda: nn.Conv2dTranspose(4, 6, 3, 2, "pad", 1, has_bias=True),
            (2, 4, 5, 5),
        ),
        (lambda: mint.nn.Linear(4, 3), lambda: nn.Dense(4, 3), (2, 5, 4)),
        (lambda: mint.nn.LayerNorm((3, 4)), lambda: nn.LayerNorm((3, 4), 1, 1, epsilon=1e-5), (2, 3, 4)),
        (lambda: mint.nn.GroupNorm(2, 4), lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
        (lambda: mint.nn.BatchNorm2d(4).set_train(), lambda: nn.BatchNorm2d(4).set_train(), (2, 4, 3, 3)),
        (lambda: mint.nn.MaxPool2d(3, 2, 1), lambda: nn.MaxPool2d(3, 2, "pad", 1), (2, 4, 7, 6)),
        (lambda: mint.nn.AvgPool2d(3, 2, 1), lambda: nn.AvgPool2d(3, 2, "pad", 1), (2, 4, 7, 6)),
        (lambda: mint.nn.AvgPool1d(3, 2, 1), lambda: nn.AvgPool1d(3, 2, "pad", 1), (2, 4, 7)),
        (lambda: mint.nn.AvgPool3d(2, None, 1), lambda: nn.AvgPool3d(2, 2, "pad", 1), (2, 4, 4, 5, 6)),
        (lambda: mint.nn.GELU(), lambda: nn.GELU(False), (3, 4)),
        (lambda: mint.nn.SELU(), lambda: nn.SeLU(), (3, 4)),
        (lambda: mint.nn.Hardshrink(0.3), lambda: nn.HShrink(0.3), (3, 4)),
        (lambda: mint.nn.Mish(), lambda: nn.Mish(), (3, 4)),
        (lambda: mint.nn.Softmax(), lambda: nn.Softmax(0), (2, 3, 4)),
        (lambda: mint.nn.Softmax(), lambda: nn.Softmax(1), (3, 4)),
        (lambda: mint.nn.PReLU(4, 0.1), lambda: nn.PReLU(4, 0.1), (2, 4, 3)),
        (lambda: mint.nn.GLU(1), lambda: nn.GLU(1), (2, 4, 3)),
    ],
)
def test_same_as_nn(mine, same, shape):
    first, second = mine(), same()
    if isinstance(first, mint.nn.BatchNorm2d):
        assert [p.name for p in first.get_parameters()] == [
            "weight",
            "bias",
            "running_mean",
            "running_var",
            "num_batches_tracked",
        ]
    else:
        copy_values(first, second)
    x = Tensor(array(*shape))
    close(first(x), second(x))
    one, other = ms.grad(lambda t: (first(t) ** 2).sum())(x), ms.grad(lambda t: (second(t) ** 2).sum())(x)
    close(one, other, atol=1e-4)


@pytest.mark.parametrize("mode, numpy_mode", [("reflect", "reflect"), ("replicate", "edge")])
def test_conv_padding_modes(mode, numpy_mode):
    layer = mint.nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode=mode)
    plain = mint.nn.Conv2d(2, 3, 3)
    copy_values(layer, plain)
    x = array(1, 2, 5, 6)
    close(layer(Tensor(x)), plain(Tensor(np.pad(x, ((0, 0), (0, 0), (1, 1), (2, 2)), numpy_mode))))


def test_unbatched_inputs():
    layer = mint.nn.Conv2d(2, 3, 3, padding=1)
    x = array(2, 5, 6)
    close(layer(Tensor(x)), layer(Tensor(x[None]))[0])
    transposed = mint.nn.ConvTranspose2d(2, 3, 3, 2)
    close(transposed(Tensor(x)), transposed(Tensor(x[None]))[0])
    assert transposed(Tensor(x), (12, 13)).shape == (3, 12, 13)
    with pytest.raises(ValueError, match="output_size"):
        transposed(Tensor(x), (20, 20))


def test_batch_norm_averages_all_batches_without_momentum():
    layer = mint.nn.BatchNorm1d(2, momentum=None).set_train()
    batches = [array(6, 2) + 3 for _ in range(4)]
    for batch in batches:
        layer(Tensor(batch))
    close(layer.running_mean, np.mean([batch.mean(0) for batch in batches], 0))
    close(layer.running_var, np.mean([batch.var(0, ddof=1) for batch in batches], 0))
    assert int(layer.num_batches_tracked.asnumpy()) == 4
    layer.reset_running_stats()
    assert layer.running_var.asnumpy().tolist() == [1, 1]
    free = mint.nn.BatchNorm1d(2, affine=False, track_running_stats=False)
    x = array(50, 2) * 3 + 1
    close(free(Tensor(x)), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), rtol=1e-4)


def test_embedding():
    layer = mint.nn.Embedding(5, 3, padding_idx=-1)
    assert layer.padding_idx == 4 and (layer.weight.asnumpy()[4] == 0).all()
    ids = Tensor([[1, 4], [1, 2]])
    close(layer(ids), layer.weight.asnumpy()[[[1, 4], [1, 2]]])
    gradient = ms.grad(lambda: layer(ids).sum(), None, layer.trainable_params())()[0].asnumpy()
    assert gradient[:, 0].tolist() == [0, 2, 1, 0, 0]  # the padding row gets nothing
    given = mint.nn.Embedding(2, 2, _weight=Tensor([[1.0, 2.0], [3.0, 4.0]]), _freeze=True)
    assert not given.weight.requires_grad and given(Tensor([1])).asnumpy().tolist() == [[3, 4]]


def test_losses():
    x, y = Tensor(array(3, 4)), Tensor(np.abs(array(3, 4)) + 0.1)
    close(mint.nn.SmoothL1Loss(beta=0.5)(x, y), nn.SmoothL1Loss(0.5, "mean")(x, y))
    weight, positive = Tensor(np.abs(array(4))), Tensor(np.abs(array(4)))
    close(mint.nn.BCEWithLogitsLoss(weight, "sum", positive)(x, y), nn.BCEWithLogitsLoss("sum", weight, positive)(x, y))
    close(mint.nn.KLDivLoss("sum")(x, y), nn.KLDivLoss("sum")(x, y))
    close(mint.nn.KLDivLoss("sum", True)(x, ops.log(y)), nn.KLDivLoss("sum")(x, y), rtol=1e-4)
    for cls in ("MSELoss", "L1Loss"):
        close(getattr(mint.nn, cls)()(x, y), getattr(nn, cls)()(x, y))
    close(
        mint.nn.CrossEntropyLoss(label_smoothing=0.2)(x, Tensor([1, 3, 0])),
        nn.CrossEntropyLoss(label_smoothing=0.2)(x, Tensor([1, 3, 0])),
    )


def test_in_place_activations():
    for layer in (
        mint.nn.ReLU6(True),
        mint.nn.ELU(0.5, True),
        mint.nn.SiLU(True),
        mint.nn.Hardtanh(-0.5, 0.5, True),
        mint.nn.Threshold(0.2, 3.0, True),
    ):
        x = Tensor(array(3, 4) * 4)
        layer.inplace = False
        wanted = layer(x.clone())
        layer.inplace = True
        assert layer(x) is x
        close(x, wanted)


def test_functional_agrees_with_layers():
    x = Tensor(array(2, 4, 6, 6))
    conv = mint.nn.Conv2d(4, 3, 3, 2, 1)
    close(F.conv2d(x, conv.weight, conv.bias, 2, 1), conv(x))
    transposed = mint.nn.ConvTranspose2d(4, 3, 3, 2, 1, 1)
    close(F.conv_transpose2d(x, transposed.weight, transposed.bias, 2, 1, 1), transposed(x))
    volume = Tensor(array(1, 2, 3, 4, 4))
    conv3d = mint.nn.Conv3d(2, 3, 2, padding=1)
    close(F.conv3d(volume, conv3d.weight, conv3d.bias, padding=1), conv3d(volume))
    close(F.leaky_relu(x, 0.3), nn.LeakyReLU(0.3)(x))
    close(F.softmax(x, 1), nn.Softmax(1)(x))
    close(F.layer_norm(x, (6,)), mint.nn.LayerNorm(6, elementwise_affine=False)(x))
    close(F.max_pool2d(x, 2), nn.MaxPool2d(2, 2)(x))
    close(F.adaptive_avg_pool2d(x, (2, None)), nn.AdaptiveAvgPool2d((2, None))(x))
    close(F.pad(x, (1, 2), value=0.5), nn.ConstantPad1d((1, 2), 0.5)(x))
    assert F.flatten(x).shape == (288,) and F.dropout(x, 0.5, False) is x
    y = x.clone()
    assert F.relu_(y) is y
    close(y, nn.ReLU()(x))
    with pytest.raises(AttributeError, match="nothing"):
        F.nothing  # noqa: B018


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: mint.nn.Conv2d(3, 4, 3, groups=2), ValueError),
        (lambda: mint.nn.Conv2d(3, 4, 3, padding="x"), ValueError),
        (lambda: mint.nn.Conv2d(3, 4, 3, 2, "same"), ValueError),
        (lambda: mint.nn.Conv2d(3, 4, 3, padding_mode="x"), ValueError),
        (lambda: mint.nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect"), ValueError),
        (lambda: mint.nn.BatchNorm2d(3)(Tensor(array(2, 3))), ValueError),
        (lambda: mint.nn.GroupNorm(3, 4), ValueError),
        (lambda: mint.nn.Embedding(3, 2, 7), ValueError),
        (lambda: mint.nn.Embedding(3, 2, sparse=True), ValueError),
        (lambda: mint.nn.Linear(0, 2), ValueError),
        (lambda: mint.nn.ZeroPad2d((1, 2, 3)), ValueError),
    ],
)
def test_errors(make, error):
    with pytest.raises(error):
        make()
