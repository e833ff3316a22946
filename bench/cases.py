"""The benchmark's cases: inputs, size formulas and tolerances, described once for all frameworks.

A case says what is computed by its inputs; `frameworks/*.py` say how, each with one method per case of the same name.
Inputs come from a seeded numpy generator per case, so every framework gets the same bits whichever cases are selected.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from zlib import crc32

import models
import numpy as np

SEED = 20250
FLOAT_BYTES = 4

ELEMENTS = 16 << 20
ROWS, COLUMNS = 4096, 1024
BATCH, HEADS, SEQUENCE, HEAD_SIZE = 2, 12, 512, 64
IMAGES, CHANNELS, SIDE, KERNEL = 8, 64, 56, 3
MLP_BATCH, MLP_WIDTH, MLP_CLASSES = 32, 64, 10

# Losses of this many training steps are compared before timing: they see the forward pass, the gradients with one step
# of Adam, and a step from moments that are not zero.
CHECKED_STEPS = 3


@dataclass(frozen=True)
class Inputs:
    data: dict[str, np.ndarray]
    weights: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """`flops` and `traffic` (bytes) are the least work any implementation has to do; None where overhead is measured.

    `working_set` is what `traffic` goes to: the bandwidth of the limit is measured at that size, because caches may
    hold it. `window` calls are timed together; `tolerance` is the largest difference allowed between a framework's
    result and the reference, relative to the largest reference value.
    """

    name: str
    unit: str
    inputs: Callable[[np.random.Generator], Inputs]
    tolerance: float
    window: int = 1
    flops: int | None = None
    traffic: int | None = None
    working_set: int | None = None
    training: bool = False

    def make_inputs(self) -> Inputs:
        # The forward and the forward+backward case of one operator share their data.
        return self.inputs(np.random.default_rng([SEED, crc32(self.name.removesuffix("bwd").encode())]))


def normal(generator: np.random.Generator, *shape: int) -> np.ndarray:
    return generator.standard_normal(shape, dtype=np.float32)


def pair(*shape: int) -> Callable[[np.random.Generator], Inputs]:
    # Values below 1 keep a chain of ten products and sums in range.
    return lambda g: Inputs({name: g.random(shape, dtype=np.float32) * np.float32(0.5) for name in ("a", "b")})


def mlp_inputs(generator: np.random.Generator) -> Inputs:
    width, classes = MLP_WIDTH, MLP_CLASSES
    weights = {
        "w1": normal(generator, width, width) / np.float32(width**0.5),
        "b1": normal(generator, width),
        "w2": normal(generator, width, classes) / np.float32(width**0.5),
        "b2": normal(generator, classes),
    }
    labels = generator.integers(0, classes, MLP_BATCH).astype(np.int32)
    return Inputs({"x": normal(generator, MLP_BATCH, width), "y": labels}, weights)


def elemwise_inputs(generator: np.random.Generator) -> Inputs:
    return Inputs({name: generator.random(ELEMENTS, dtype=np.float32) - np.float32(0.5) for name in "abc"})


def row_inputs(generator: np.random.Generator) -> Inputs:
    data = {"x": normal(generator, ROWS, COLUMNS)}
    data |= {"weight": normal(generator, COLUMNS), "bias": normal(generator, COLUMNS)}
    return Inputs(data)


def attention_inputs(generator: np.random.Generator) -> Inputs:
    return Inputs({name: normal(generator, BATCH, HEADS, SEQUENCE, HEAD_SIZE) for name in ("q", "k", "v")})


def conv_inputs(generator: np.random.Generator) -> Inputs:
    weight = normal(generator, CHANNELS, CHANNELS, KERNEL, KERNEL) / np.float32((CHANNELS * KERNEL**2) ** 0.5)
    return Inputs({"x": normal(generator, IMAGES, CHANNELS, SIDE, SIDE), "weight": weight})


def bandwidth_case(name: str, inputs: Callable, arrays: int, elements: int) -> Case:
    """Every array is read or written once, and together they are the working set."""
    traffic = arrays * elements * FLOAT_BYTES
    return Case(name, "ms", inputs, tolerance=2e-5, traffic=traffic, working_set=traffic)


def train_case(name: str, model: models.Model) -> Case:
    """Matrix work of a step against Adam's traffic: weight, gradient, moments read; all but the gradient written."""
    return Case(
        name,
        "ms",
        lambda generator: Inputs(model.data(generator), model.weights(generator)),
        # MindSpore's Adam adds epsilon before it corrects the bias, the others after: 2e-4 in train_gpt.
        tolerance=5e-4,
        flops=model.step_flops(),
        traffic=7 * FLOAT_BYTES * model.weight_count(),
        working_set=4 * FLOAT_BYTES * model.weight_count(),
        training=True,
    )


def all_cases() -> list[Case]:
    # Two matrix products forward (Q K^T, P V), four backward (dV, dP, dQ, dK) when P is kept.
    attention_flops = 2 * (2 * BATCH * HEADS * SEQUENCE * SEQUENCE * HEAD_SIZE)
    # Direct convolution; Winograd's algorithm needs fewer and may pass this limit.
    conv_flops = 2 * IMAGES * CHANNELS * CHANNELS * SIDE * SIDE * KERNEL * KERNEL
    return [
        Case("add_small", "us", pair(4, 4), tolerance=1e-6, window=200),
        Case("chain10_small", "us", pair(64), tolerance=1e-6, window=50),
        Case("mlp_fwdbwd", "us", mlp_inputs, tolerance=1e-5, window=10),
        bandwidth_case("elemwise16M", elemwise_inputs, 4, ELEMENTS),
        bandwidth_case("softmax", row_inputs, 2, ROWS * COLUMNS),
        bandwidth_case("layernorm", row_inputs, 2, ROWS * COLUMNS),
        Case("sdpa_fwd", "ms", attention_inputs, tolerance=1e-4, flops=attention_flops),
        Case("sdpa_fwdbwd", "ms", attention_inputs, tolerance=1e-4, flops=3 * attention_flops),
        Case("conv3x3_fwd", "ms", conv_inputs, tolerance=2e-4, flops=conv_flops),
        train_case("train_lenet", models.LENET),
        train_case("train_resnet18", models.RESNET18),
        train_case("train_gpt", models.GPT),
    ]


CASES = {case.name: case for case in all_cases()}
IMPORT_CASES = ("import_wall", "import_rss")
BUSY_CASE = "lenet_busy_core"
CASE_NAMES = (*CASES, *IMPORT_CASES, BUSY_CASE)
