"""Elementwise work on the result of a product or convolution runs in its kernel, part by part: with PyNative's bits.

The comparisons run in a process of their own, in which every loop is compiled before its first call.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import morel as ms
from morel import Tensor, mint, nn, ops

F = mint.nn.functional
rng = np.random.default_rng(5)


def normal(*shape, dtype=ms.float32):
    return Tensor(rng.standard_normal(shape).astype(np.float32)).astype(dtype)


def same(function, *arguments, gradients=True):
    """One step for the product and what follows; the bits of PyNative mode, forward and backward."""
    compiled = ms.jit(function)
    pairs = [(function(*arguments), compiled(*arguments))]
    graph = str(compiled.__compiled__.graphs[-1])
    if gradients:
        slope = ms.grad(lambda *x: (function(*x) * 0.5).sum(), tuple(range(len(arguments))))
        pairs.append((slope(*arguments), ms.jit(lambda *x: slope(*x))(*arguments)))
    for wanted, found in pairs:
        wanted, found = (x if isinstance(x, tuple) else (x,) for x in (wanted, found))
        for a, c in zip(wanted, found, strict=True):
            assert a.dtype == c.dtype and a.shape == c.shape
            np.testing.assert_array_equal(c.astype(ms.float64).asnumpy(), a.astype(ms.float64).asnumpy())
    return graph


def check_products():
    # Thin, one task, tiles of both axes, a product that only the loop cuts into tasks (k = 2).
    for m, k, n in ((1, 7, 5), (5, 300, 700), (33, 20, 17), (200, 300, 250), (513, 200, 777), (600, 2, 600)):
        for dtype in (ms.float32, ms.float64, ms.float16, ms.bfloat16):
            x, w, b = normal(m, k, dtype=dtype), normal(n, k, dtype=dtype), normal(n, dtype=dtype)
            y, column = normal(m, n, dtype=dtype), normal(m, 1, dtype=dtype)
            exact = dtype in (ms.float32, ms.float64)
            for program, inputs in (
                (lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh"), (x, w, b)),
                (lambda x, w, y, b: ops.relu(ops.matmul(x, w.T) * 0.3 + b) + y, (x, w, y, b)),
                (lambda x, w, column, b: ops.tanh(x @ w.T + column) * b, (x, w, column, b)),
                (lambda x, w, y: ops.silu(ops.matmul(x, w.T)) * y.T.copy().T, (x, w, y)),
            ):
                graph = same(program, *inputs, gradients=exact)
                assert graph.count("fused(") == 1 and graph.count("return") == 2, graph
            # To another type, with the product itself as a result, and one product added to another.
            same(lambda x, w: ops.cast(F.linear(x, w), ms.float32) + 1.0, x, w, gradients=exact)
            same(lambda x, w: (F.linear(x, w) > 0.5) * 2, x, w, gradients=False)
            same(lambda x, w, y: ops.sigmoid((x @ w.T) * y) + x @ w.T, x, w, y, gradients=exact)
            same(lambda x, w, y: ops.relu(x @ w.T + F.linear(x, w) * y), x, w, y, gradients=exact)


def check_batches():
    x, y, mask = normal(3, 4, 70, 30), normal(4, 30, 50), normal(70, 50)
    same(lambda x, y, mask: ops.exp(ops.matmul(x, y) * 0.1 + mask) * 2.0, x, y, mask)
    same(lambda x, y: ops.tanh(ops.matmul(x, y) * 0.1) + 1.0, normal(300, 5, 6), normal(300, 6, 7))
    w, b = normal(30, 64), normal(64)
    graph = same(lambda x, w, b: ops.relu(ops.matmul(x, w) + b) * 0.5, normal(4, 9, 30), w, b)
    assert "reshape" in graph.split("fused(")[1]
    x = normal(2, 3, 30)
    same(lambda x, w: (ops.matmul(x, w) * 2.0).sum() + ops.matmul(x, w).sum(0), x, w)


def check_convolutions():
    for shape, channels, kernel, groups in (
        ((1, 3, 40, 40), 8, 3, 1),  # rows of one image
        ((8, 16, 12, 12), 32, 3, 1),
        ((9, 64, 7, 7), 512, 3, 1),  # a large weight: by channels
        ((2, 8, 9, 9), 8, 3, 8),
        ((1, 2, 3, 3), 4, 1, 1),
    ):
        for dtype in (ms.float32, ms.float64, ms.float16):
            x, w = normal(*shape, dtype=dtype), normal(channels, shape[1] // groups, kernel, kernel, dtype=dtype)
            b, scale = normal(channels, dtype=dtype), normal(1, channels, 1, 1, dtype=dtype)
            other = normal(shape[0], channels, *(size - kernel + 1 for size in shape[2:]), dtype=dtype)

            def program(x, w, b, scale, other, groups=groups):
                return ops.relu(F.conv2d(x, w, b, groups=groups) * scale + other)

            graph = same(program, x, w, b, scale, other, gradients=dtype == ms.float32)
            assert "convolution" in graph.split("fused(")[1], graph


def test_bits_of_both_modes():
    environment = {**os.environ, "MOREL_JIT": "now", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_another_batch_builds_nothing():
    w, b = normal(24, 16), normal(24)
    step = ms.jit(lambda x: ops.relu(F.linear(x, w) + b) * 2.0)
    for rows in (2, 5, 100, 3):
        x = normal(rows, 16)
        np.testing.assert_allclose(
            step(x).asnumpy(), np.maximum(x.asnumpy() @ w.asnumpy().T + b.asnumpy(), 0) * 2, rtol=1e-4, atol=1e-5
        )
    assert step.__compiled__.compiled == 1


def test_product_needs_no_memory_of_its_own():
    w = normal(200, 200)
    step = ms.jit(lambda x: ops.tanh(x @ w + 1.0) @ w)
    step(normal(100, 200))
    plan = step.__compiled__.graphs[0].memory_plan()
    assert plan["lower_bound_bytes"] == plan["arena_bytes"] == 100 * 200 * 4


@pytest.mark.parametrize("reader", ["before", "after"])
def test_what_changes_in_between_is_read_before(reader):
    state = ms.Parameter(np.ones((4, 4), np.float32))

    def f(x):
        product = x @ state
        if reader == "before":
            product = product * state
        ops.assign_add(state, x)
        return product * 2.0 + (state if reader == "after" else 1.0)

    x = normal(4, 4)
    wanted = f(x).asnumpy()
    ops.assign(state, Tensor(np.ones((4, 4), np.float32)))
    np.testing.assert_array_equal(ms.jit(f)(x).asnumpy(), wanted)


def test_training_of_a_network():
    def losses(compiled):
        ms.set_seed(1)
        net = nn.SequentialCell(
            nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Flatten(), nn.Dense(8 * 64, 10), nn.Tanh()
        )
        update = nn.Momentum(net.trainable_params(), 0.05, 0.9)
        slope = ms.value_and_grad(lambda x: (net(x) ** 2).mean(), None, update.parameters)

        def step(x):
            loss, gradients = slope(x)
            update(gradients)
            return loss

        step = ms.jit(step) if compiled else step
        return [float(step(images)) for _ in range(5)]

    images = normal(4, 3, 8, 8)
    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-6)


if __name__ == "__main__":
    check_products()
    check_batches()
    check_convolutions()
