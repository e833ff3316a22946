"""Models for devices: each operator converted, run by the runtime that devices have, and compared with PyNative mode, bit for
bit; the size of the library with these operators; LeNet beside ONNX Runtime."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench")]

import lite as bench  # noqa: E402 - bench/lite.py
import lite_size  # noqa: E402

import morel as ms  # noqa: E402
from morel import Tensor, lite  # noqa: E402
from prove.cases import CASES, inputs_of  # noqa: E402


def run_by_core(path, arrays, folder):
    """The first output as the program that links the small core alone prints it."""
    files = []
    for number, array in enumerate(arrays):
        files.append(folder / f"{number}.bin")
        files[-1].write_bytes(array.tobytes())
    command = [ROOT / "build/lite_predict_core", path, *files]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return np.array(out.splitlines()[0].split(), np.float32)


def check_refusal(path, folder):
    """What the small core says of a damaged file is what the whole library says."""
    damaged = folder / "damaged.ms"
    damaged.write_bytes(path.read_bytes()[:1000])
    programs = [ROOT / "build" / name for name in ("lite_predict", "lite_predict_core")]
    whole, core = (subprocess.run([program, damaged], capture_output=True, text=True) for program in programs)
    assert core.returncode != 0 and core.stderr == whole.stderr, (core.stderr, whole.stderr)


def check(operator, folder):
    steps = 0
    for function, shapes in CASES[operator]:
        arrays, _ = inputs_of(shapes, "float32")
        path = folder / "model.ms"
        lite.convert(function, *map(Tensor, arrays), file=path)
        model = lite.Model()
        model.build_from_file(path)
        ms.set_seed(3)
        (actual,) = (output.get_data_to_numpy() for output in model.predict(arrays))
        ms.set_seed(3)
        wanted = function(*map(Tensor, arrays)).asnumpy()
        if operator == "conv2d":  # the framework asks oneDNN, which devices have not
            np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(actual, wanted)
        check_refusal(path, folder)
        if operator != "dropout":  # which draws other numbers there
            np.testing.assert_allclose(run_by_core(path, arrays, folder), wanted.ravel(), rtol=1e-5, atol=1e-5)
        steps += 1
    same = "within 1e-5 (own GEMM instead of oneDNN)" if operator == "conv2d" else "= PyNative, bit for bit"
    return f"{steps} models converted and run, {same}"


def prove():
    size, kernels, loops = lite_size.build()
    with tempfile.TemporaryDirectory() as folder:
        cells = {operator: check(operator, Path(folder)) for operator in CASES}
    numbers = {"lite_core_bytes": size, "lite_core_kernels": kernels, "lite_core_loops": loops}
    found = bench.compare(rounds=2, seconds=0.5)[0]
    own = found["morel.lite"]
    numbers |= {"lite_lenet_us": round(own["run_us"], 1), "lite_lenet_added_mb": round(own["added_mb"], 2)}
    if "ONNX Runtime" in found:
        peer = found["ONNX Runtime"]
        numbers["lite_lenet_time_of_ort"] = round(own["run_us"] / peer["run_us"], 3)
        numbers["lite_lenet_ort_added_mb"] = round(peer["added_mb"], 2)
    return {"cells": cells, "numbers": numbers}
