"""Fused loops give the bits of PyNative mode: random programs of row-wise operators, reductions and elementwise ones.

They run in a process of their own, in which every loop is compiled before its first call. The seeds are fixed;
MOREL_RANDOM_PROGRAMS=2000 runs more of them by hand.
"""

import linecache
import os
import random
import re
import subprocess
import sys

import numpy as np
import pytest

PROGRAMS = int(os.environ.get("MOREL_RANDOM_PROGRAMS", "60"))
SHAPES = ((1, 40), (3, 70), (64, 200), (2, 5, 130), (300, 33), (40, 7), (9, 1), (2, 70000), (4, 3, 2, 65))
UNARY = ("ops.tanh({})", "({} * 0.3 + 0.1)", "ops.relu({})", "ops.gelu({})", "ops.exp(-ops.abs({}))", "(1.0 - {})")
BINARY = ("({} + {})", "({} * {})", "ops.maximum({}, {})", "({} - {})")
ROWS = (
    "ops.softmax({}, -1)",
    "ops.log_softmax({}, -1)",
    "F.layer_norm({}, ({}.shape[-1],), w, b)",
    "ms.ops.rms_norm({}, w)[0]",
    "({0} - ops.mean({0}, -1, True))",
    "({0} / (ops.sum(ops.square({0}), -1, True) + 1.0))",
    "ops.amax({}, -1, True) * v0",
)
RESULTS = ("{}.sum()", "ops.mean({}, 0)", "{}.sum(-1)", "ops.mean({})", "ops.amax({}, -1)", "{}.sum((0, -1))")


def write_program(seed):
    r = random.Random(seed)
    lines, names = ["def program(x, y, w, b):", "    v0 = x * w + y"], ["x", "y", "v0"]
    for i in range(1, r.randint(4, 9)):
        form = r.choice(ROWS if r.random() < 0.3 else UNARY + BINARY)
        a, c = r.choice(names[-3:]), r.choice([*names, "w", "b"])
        text = form.format(a, a) if form in ROWS else form.format(a, c)
        lines.append(f"    v{i} = {text}")
        names.append(f"v{i}")
    results = [names[-1], r.choice(names), r.choice(RESULTS).format(names[-1]), r.choice(RESULTS).format(names[-2])]
    return "\n".join([*lines, f"    return {', '.join(results[: r.randint(1, 4)])}"]) + "\n"


def check(seed):
    import morel as ms
    from morel import Tensor, mint, ops

    text, file = write_program(seed), f"<fused program {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"ms": ms, "ops": ops, "F": mint.nn.functional}
    exec(compile(text, file, "exec"), scope)
    program = scope["program"]
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    dtype = (ms.float32, ms.float16, ms.bfloat16, ms.float32, ms.float64)[seed % 5]
    arguments = [Tensor(rng.standard_normal(s)).astype(dtype) for s in (shape, shape, shape[-1:], shape[-1:])]
    if seed % 7 == 0:  # rows that do not lie one after the other
        arguments[0] = Tensor(rng.standard_normal(shape[::-1])).astype(dtype).T if len(shape) == 2 else arguments[0]

    def first_sum(x, y, w, b):
        out = program(x, y, w, b)
        return (out[0] if isinstance(out, tuple) else out).sum()

    slope = ms.grad(first_sum, (0, 1, 2, 3))
    # Gradients of halves are rounded elsewhere where PyNative mode differentiates a composite as one operator.
    for function in (program, slope) if dtype in (ms.float32, ms.float64) else (program,):
        compiled = ms.jit(lambda x, y, w, b, function=function: function(x, y, w, b))
        wanted, found = function(*arguments), compiled(*arguments)
        pairs = zip(wanted, found) if isinstance(wanted, tuple) else [(wanted, found)]
        for i, (a, c) in enumerate(pairs):
            assert a.dtype == c.dtype and a.shape == c.shape, (seed, i, text)
            # The bits, but for which of the NaNs it is.
            np.testing.assert_array_equal(
                c.astype(ms.float64).asnumpy(), a.astype(ms.float64).asnumpy(), f"seed {seed}, result {i}\n{text}"
            )


def test_same_bits_in_both_modes():
    environment = {**os.environ, "MOREL_JIT": "now", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("optimizer", ["Adam", "Momentum", "RMSProp", "Adagrad"])
def test_one_update_for_all_parameters(optimizer):
    from morel import Tensor, jit, nn, value_and_grad

    cell = nn.SequentialCell([nn.Dense(4, 4) for _ in range(6)])
    arguments = {"learning_rate": 0.1, **({"momentum": 0.9} if optimizer == "Momentum" else {})}
    update = getattr(nn, optimizer)(cell.trainable_params(), **arguments)
    slope = value_and_grad(lambda x: cell(x).sum(), None, update.parameters)

    @jit
    def step(x):
        loss, gradients = slope(x)
        update(gradients)
        return loss

    step(Tensor(np.ones((2, 4), np.float32)))
    calls = re.findall(r"= (\w+_)\(", str(step.__compiled__.graphs[0]))
    assert [call for call in calls if call != "copy_"] == [
        {"Adam": "adam_", "Momentum": "sgd_", "RMSProp": "rmsprop_", "Adagrad": "adagrad_"}[optimizer]
    ]


if __name__ == "__main__":
    for number in range(PROGRAMS):
        check(number)
