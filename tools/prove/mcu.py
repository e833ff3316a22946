"""Microcontrollers: each operator as C99, compiled without a warning and run on this machine and on a Cortex-M4 under QEMU,
against the runtime for devices; LeNet in int8 on images of Fashion-MNIST, bit for bit on a Cortex-M3 and an M4."""

import gzip
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "examples")]

import mcu  # noqa: E402

import morel as ms  # noqa: E402
from morel import Tensor, alias, lite, nn  # noqa: E402
from prove.cases import CASES, inputs_of  # noqa: E402

alias.install()  # the example is a script for MindSpore
from lenet_fashion_mnist import MEAN, STD, LeNet  # noqa: E402

DATA = Path("/usr/share/datasets/fashion-mnist")
BOARD = "mps2-an386"


def check(function, shapes, folder):
    arrays, _ = inputs_of(shapes, "float32")
    lite.convert(function, *map(Tensor, arrays), file=folder / "model.ms")
    lite.to_c(folder / "model.ms", folder / "c")
    model = lite.Model()
    model.build_from_file(folder / "model.ms")
    wanted = [tensor.get_data_to_numpy() for tensor in model.predict(arrays)]
    for found in (mcu.run_on_host(folder / "c", [arrays]), mcu.run_on_board(BOARD, folder / "c", [arrays])):
        for result, expected in zip(found[0], wanted, strict=True):
            np.testing.assert_allclose(result, expected, rtol=2e-6, atol=2e-6)


def cell(operator):
    try:
        for function, shapes in CASES[operator]:
            with tempfile.TemporaryDirectory() as folder:
                check(function, shapes, Path(folder))
    except NotImplementedError as error:
        return "- " + " ".join(str(error).split())
    return f"as C99 on this machine and {BOARD}: = runtime within 2e-6, models: {len(CASES[operator])}"


def images(kind):
    """Images as the example's network takes them, and labels."""
    with gzip.open(DATA / f"{kind}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(DATA / f"{kind}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8).astype(np.int32)
    return (pixels.astype(np.float32) / 255 - MEAN) / STD, labels


def trained():
    ms.set_seed(1)
    net, loss_fn = LeNet(), nn.CrossEntropyLoss()
    optimizer = nn.Adam(net.trainable_params(), 1e-3)
    step = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)
    x, y = images("train")
    order = np.random.default_rng(1).permutation(len(x))
    for begin in range(0, len(x), 64):
        chosen = order[begin : begin + 64]
        optimizer(step(Tensor(x[chosen]), Tensor(y[chosen]))[1])
    return net


def accuracy(function, x, y):
    right = 0
    for begin in range(0, len(x), 500):
        scores = function(Tensor(x[begin : begin + 500])).asnumpy()
        right += int((scores.argmax(1) == y[begin : begin + 500]).sum())
    return right / len(x)


def lenet(folder):
    net, (train, _), (x, y) = trained(), images("train"), images("t10k")
    calibration = [Tensor(train[begin : begin + 50]) for begin in range(0, 500, 50)]
    many = lite.quantise(net, Tensor(x[:500]), calibration=calibration)
    in_float, in_int8 = accuracy(net, x, y), accuracy(many, x, y)
    if in_float - in_int8 > 0.005:
        raise AssertionError(f"int8 loses too much: {in_float} to {in_int8}")

    one = lite.quantise(net, Tensor(x[:1]), calibration=[Tensor(image[None]) for image in train[:500]], input_data_type="INT8", output_data_type="INT8")  # fmt: skip
    lite.convert(one, file=folder / "lenet.ms")
    made = lite.to_c(folder / "lenet.ms", folder / "int8")
    model = lite.Model()
    model.build_from_file(folder / "lenet.ms")
    scale, zero = one.inputs[0]
    batches = [[np.clip(np.rint(image[None] / scale) + zero, -128, 127).astype(np.int8)] for image in x[:100]]
    wanted = [model.predict(batch)[0].get_data_to_numpy() for batch in batches]
    for found in (mcu.run_on_host(folder / "int8", batches), *(mcu.run_on_board(board, folder / "int8", batches) for board in mcu.BOARDS)):  # fmt: skip
        for result, expected in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(result[0], expected)

    lite.convert(net, Tensor(x[:1]), file=folder / "float.ms")
    lite.to_c(folder / "float.ms", folder / "float")
    few = [[image[None]] for image in x[:5]]
    for result, image in zip(mcu.run_on_board(BOARD, folder / "float", few), few, strict=True):
        np.testing.assert_allclose(result[0], net(Tensor(image[0])).asnumpy(), rtol=1e-4, atol=1e-4)

    flash, ram = mcu.size_on_board("mps2-an385", folder / "int8")
    float_flash, float_ram = mcu.size_on_board(BOARD, folder / "float")
    return {
        "mcu_flash_bytes": flash,
        "mcu_ram_bytes": ram,
        "mcu_arena_bytes": made.arena_bytes,
        "mcu_weight_bytes": made.weight_bytes,
        "mcu_boards_bit_equal": len(mcu.BOARDS),
        "mcu_accuracy_float": round(in_float, 4),
        "mcu_accuracy_int8": round(in_int8, 4),
        "mcu_instructions_m3": mcu.instructions_on_board("mps2-an385", folder / "int8", batches[0]),
        "mcu_float_flash_bytes": float_flash,
        "mcu_float_ram_bytes": float_ram,
    }


def prove():
    if missing := mcu.missing_tools():
        return {"cells": {operator: f"- not installed: {', '.join(missing)}" for operator in CASES}, "numbers": {}}
    cells = {operator: cell(operator) for operator in CASES}
    with tempfile.TemporaryDirectory() as folder:
        return {"cells": cells, "numbers": lenet(Path(folder))}


if __name__ == "__main__":
    import json

    print(json.dumps(prove(), indent=2))
