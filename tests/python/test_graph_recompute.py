"""Training keeps less in graph mode: normalisations are written out, cheap values computed again; the bits stay."""

import itertools
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, _core, nn, ops

SHAPES = ((4, 40, 6, 7), (2, 3, 300, 250), (8, 64, 4, 4), (16, 33), (3, 5, 9))
DTYPES = (ms.float32, ms.float16, ms.bfloat16, ms.float64)


def check(shape, dtype, has_parameters):
    """Normalisation with what follows, and its gradient."""
    rng, channels = np.random.default_rng(0), shape[1]
    x = Tensor(rng.standard_normal(shape) * 3 + 1).astype(dtype)
    images = [x]
    if len(shape) == 4:  # channels last
        images.append(x.transpose(0, 2, 3, 1).contiguous().transpose(0, 3, 1, 2))
    numbers = rng.standard_normal((2, channels))
    weight, bias = (Tensor(row).astype(dtype) if has_parameters else None for row in numbers)
    mean, variance = (Parameter(Tensor(np.ones(channels, np.float32)), name=name) for name in ("mean", "variance"))

    def step(x):
        y = ops.relu(ops.batch_norm(x * 2, mean, variance, weight, bias, True))
        return y * 2 + x, y

    def slope(x):
        return (ms.grad(lambda x: (step(x)[0] ** 2).sum())(x),)

    for function in (step, slope):
        compiled = ms.jit(function)
        for image in images:
            for wanted, found in zip(function(image), compiled(image)):
                np.testing.assert_array_equal(
                    found.astype(ms.float64).asnumpy(), wanted.astype(ms.float64).asnumpy(), f"{shape} {dtype}"
                )
        # In a loop with what follows.
        assert re.search(r"\n {6}%.*centre_scale_shift", repr(compiled.__compiled__.graphs[0]))


def test_normalisation_of_a_batch_has_the_same_bits():
    environment = {**os.environ, "MOREL_JIT": "now", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


class ConvNet(nn.Cell):
    def __init__(self, depth):
        super().__init__()
        layers = []
        for i in range(depth):
            layers += [nn.Conv2d(16 if i else 3, 16, 3), nn.BatchNorm2d(16), nn.ReLU()]
        self.layers = nn.SequentialCell(layers)

    def construct(self, x):
        return self.layers(x).mean((2, 3))


class Transformer(nn.Cell):
    def __init__(self, depth):
        super().__init__()
        self.inside = nn.Dense(16 * 16, 128)
        self.layers = nn.CellList(
            [
                nn.SequentialCell([nn.LayerNorm((128,)), nn.Dense(128, 512), nn.GELU(), nn.Dense(512, 128)])
                for _ in range(depth)
            ]
        )
        self.head = nn.Dense(128, 16)

    def construct(self, x):
        x = self.inside(x[:, 0].reshape(-1, 16 * 16))
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


def training(cell_class, compiled):
    ms.set_seed(1)
    cell = cell_class(5)
    cell.set_train()
    optimizer = nn.Adam(cell.trainable_params(), 1e-2)
    slope = ms.value_and_grad(lambda x, y: ops.cross_entropy(cell(x), y), None, optimizer.parameters)

    def step(x, y):
        loss, gradients = slope(x, y)
        optimizer(gradients)
        return loss

    return cell, ms.jit(step) if compiled else step


@pytest.mark.parametrize("cell_class, part", [(ConvNet, 0.75), (Transformer, 0.9)])
def test_training_keeps_less_and_is_the_same(cell_class, part):
    rng = np.random.default_rng(0)
    x = Tensor(rng.standard_normal((256, 3, 16, 16)).astype(np.float32))
    y = Tensor(rng.integers(0, 16, 256).astype(np.int32))
    losses, weights = [], []
    for compiled in (False, True):
        cell, step = training(cell_class, compiled)
        losses.append([step(x, y).asnumpy() for _ in range(3)])
        weights.append([p.asnumpy().copy() for p in cell.get_parameters()])
        if not compiled:
            _core.reset_peak_memory_stats()
            before = _core.memory_stats()["in_use"]
            step(x, y)
            used = _core.memory_stats()["peak_in_use"] - before
    np.testing.assert_array_equal(*losses)
    for wanted, found in zip(*weights):
        np.testing.assert_array_equal(found, wanted)
    assert step.__compiled__.graphs[0].memory_plan()["arena_bytes"] < part * used


if __name__ == "__main__":
    for case in itertools.product(SHAPES, DTYPES, (True, False)):
        check(*case)
