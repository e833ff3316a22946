"""Training: the same losses as MindSpore 2.8 step by step, the training cells, and loss scales."""

import json
import os
import threading

import nn_models
import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, nn, ops

with np.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "nn_reference.npz")) as file:
    REFERENCE = json.loads(str(file["training"]))


@pytest.mark.parametrize("name", nn_models.NAMES)
def test_training_follows_mindspore(name):
    names, losses, norms = nn_models.train(name, ms, nn, ops, Tensor, Parameter)
    wanted_names, wanted_losses, wanted_norms = REFERENCE[name]
    assert names == wanted_names
    np.testing.assert_allclose(losses, wanted_losses, rtol=2e-3)
    np.testing.assert_allclose(norms, wanted_norms, rtol=2e-2, atol=1e-3)
    assert losses[-1] < losses[0]


def regression(seed=0):
    rng = np.random.RandomState(seed)
    x = rng.rand(32, 4).astype(np.float32)
    y = x @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32) + 0.3
    return Tensor(x), Tensor(y)


def network():
    ms.set_seed(5)
    return nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 1))


def test_train_one_step_cell():
    x, y = regression()
    net, twin = network(), network()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    step.set_train()
    optimizer = nn.Momentum(twin.trainable_params(), 0.1, 0.9)
    function = ms.value_and_grad(lambda a, b: nn.MSELoss()(twin(a), b), None, twin.trainable_params())
    losses = []
    for _ in range(20):
        losses.append(float(step(x, y).asnumpy()))
        loss, gradients = function(x, y)
        optimizer(gradients)
        assert float(loss.asnumpy()) == losses[-1]
    assert losses[-1] < 0.2 * losses[0]
    assert [param.name for param in net.get_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_train_one_step_cell_options():
    x, y = regression()
    plain, scaled = network(), network()
    first = nn.TrainOneStepCell(nn.WithLossCell(plain, nn.MSELoss()), nn.SGD(plain.trainable_params(), 0.1))
    second = nn.TrainOneStepCell(
        nn.WithLossCell(scaled, nn.MSELoss()),
        nn.SGD(scaled.trainable_params(), 0.1, loss_scale=128.0),
        sens=128.0,
        return_grad=True,
    )
    first_loss = first(x, y)
    second_loss, gradients = second(x, y)
    assert float(first_loss.asnumpy()) == float(second_loss.asnumpy())
    assert list(gradients) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    for one, other in zip(plain.trainable_params(), scaled.trainable_params()):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-5, atol=1e-7)
    with pytest.raises(ValueError, match="sens"):
        nn.TrainOneStepCell(plain, nn.SGD(plain.trainable_params()), sens=0)


def test_other_cells_around_a_network():
    x, y = regression()
    net = network()
    loss_fn = nn.MSELoss()
    loss, output, label = nn.WithEvalCell(net, loss_fn)(x, y)
    np.testing.assert_array_equal(output.asnumpy(), net(x).asnumpy())
    assert label is y and float(loss.asnumpy()) == float(loss_fn(net(x), y).asnumpy())
    weights = ms.ParameterTuple(net.trainable_params())
    expected = ms.grad(lambda a, b: loss_fn(net(a), b), None, weights)(x, y)
    for found in (
        nn.WithGradCell(net, loss_fn)(x, y),
        nn.ForwardValueAndGrad(nn.WithLossCell(net, loss_fn), weights, get_by_list=True)(x, y)[1],
    ):
        for gradient, wanted in zip(found, expected):
            np.testing.assert_allclose(gradient.asnumpy(), wanted.asnumpy(), rtol=1e-6)
    value, gradient = nn.ForwardValueAndGrad(net, sens_param=True)(x, ops.ones_like(y) * 2)
    np.testing.assert_allclose(gradient.asnumpy(), 2 * ms.grad(net)(x).asnumpy(), rtol=1e-6)
    np.testing.assert_array_equal(value.asnumpy(), net(x).asnumpy())
    parts = nn.GradAccumulationCell(nn.WithLossCell(net, nn.MSELoss("sum")), 4)
    np.testing.assert_allclose(parts(x, y).asnumpy(), nn.MSELoss("sum")(net(x), y).asnumpy(), rtol=1e-5)
    with pytest.raises(ValueError, match="divisible"):
        nn.GradAccumulationCell(net, 5)(x)
    with pytest.raises(TypeError, match="weights"):
        nn.ForwardValueAndGrad(net, get_by_list=True)


def test_loss_scale_skips_overflowing_steps():
    class Explosive(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(Tensor([1.0]), name="weight")

        def construct(self, x):
            return (self.weight * x).sum()

    net = Explosive()
    manager = nn.DynamicLossScaleUpdateCell(loss_scale_value=2.0**10, scale_factor=2, scale_window=3)
    step = nn.TrainOneStepWithLossScaleCell(net, nn.SGD(net.trainable_params(), 1.0), manager)
    history = []
    for value in (1.0, np.inf, 1.0, 1.0, 1.0, 1.0):
        loss, overflow, scale = step(Tensor([value], ms.float32))
        history.append((bool(overflow), float(scale.asnumpy()), float(net.weight.asnumpy()[0])))
    assert [row[0] for row in history] == [False, True, False, False, False, False]
    assert [row[1] for row in history] == [1024, 1024, 512, 512, 512, 1024]
    assert [row[2] for row in history] == [0, 0, -1, -2, -3, -4]
    fixed = nn.TrainOneStepWithLossScaleCell(net, nn.SGD(net.trainable_params(), 1.0), Tensor(8.0))
    fixed(Tensor([1.0]))
    assert float(net.weight.asnumpy()[0]) == -5
    with pytest.raises(TypeError, match="scale_sense"):
        nn.TrainOneStepWithLossScaleCell(net, nn.SGD(net.trainable_params(), 1.0), 8.0)


def test_batch_norm_in_evaluation_uses_what_training_saw():
    ms.set_seed(0)
    rng = np.random.RandomState(0)
    norm = nn.BatchNorm1d(3, momentum=0.5)
    norm.set_train()
    for _ in range(30):
        norm(Tensor((rng.randn(400, 3) * [1, 2, 3] + [3, 2, 1]).astype(np.float32)))
    norm.set_train(False)
    np.testing.assert_allclose(norm.moving_mean.asnumpy(), [3, 2, 1], atol=0.2)
    np.testing.assert_allclose(np.sqrt(norm.moving_variance.asnumpy()), [1, 2, 3], rtol=0.1)
    out = norm(Tensor([[3.0, 2.0, 1.0]])).asnumpy()
    assert abs(out).max() < 0.2 and norm(Tensor([[4.0, 2.0, 1.0]])).asnumpy()[0, 0] > 0.7


def test_two_threads_train_at_once():
    x, y = regression()

    def train(net, result):
        optimizer = nn.Adam(net.trainable_params(), 0.01)
        function = ms.value_and_grad(lambda a, b: nn.MSELoss()(net(a), b), None, optimizer.parameters)
        for _ in range(30):
            loss, gradients = function(x, y)
            optimizer(gradients)
        result.append(float(loss.asnumpy()))

    alone = []
    train(network(), alone)
    results, threads = [[], []], []
    for net, result in zip((network(), network()), results):
        threads.append(threading.Thread(target=train, args=(net, result)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [alone, alone]
