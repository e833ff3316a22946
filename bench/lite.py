"""Models for devices beside ONNX Runtime: latency, memory, time to load.

Each runtime works in a process of its own, on the same weights and image; rounds alternate, figures are minima.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parent
# Model and shape of its input.
CASES = (("LeNet", (1, 1, 28, 28)), ("LeNet", (32, 1, 28, 28)), ("ResNet-18", (1, 3, 224, 224)))


def resnet18():
    """With the statistics of batch norms that a trained network has: none is 0 or 1."""
    import models

    import morel as ms
    from morel import Tensor, nn, ops

    def convolution(inputs, outputs, size, stride):
        layer = nn.Conv2d(inputs, outputs, size, stride=stride, pad_mode="pad", padding=size // 2)
        return nn.SequentialCell(layer, nn.BatchNorm2d(outputs))

    class Block(nn.Cell):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.first = convolution(inputs, outputs, 3, stride)
            self.second = convolution(outputs, outputs, 3, 1)
            self.shortcut = convolution(inputs, outputs, 1, stride) if inputs != outputs else ops.identity

        def construct(self, x):
            return ops.relu(self.second(ops.relu(self.first(x))) + self.shortcut(x))

    class ResNet(nn.Cell):
        def __init__(self):
            super().__init__()
            self.stem = convolution(3, 64, 7, 2)
            self.pool = nn.MaxPool2d(3, 2, pad_mode="pad", padding=1)
            self.blocks = nn.SequentialCell(*(Block(*block) for block in models.RESNET_BLOCKS))
            self.head = nn.Dense(512, 1000)

        def construct(self, x):
            return self.head(ops.mean(self.blocks(self.pool(ops.relu(self.stem(x)))), (2, 3)))

    ms.set_seed(3)
    net, random = ResNet().set_train(False), np.random.default_rng(3)
    for parameter in net.get_parameters():
        if "moving" in parameter.name:
            parameter.set_data(Tensor(random.uniform(0.5, 1.5, parameter.shape).astype(np.float32)))
    return net


def make_files(folder: Path) -> None:
    """Each case as a model for devices and as ONNX, with an image and what comes of it."""
    import morel as ms
    from morel import Tensor, lite

    sys.path.insert(0, str(ROOT / "tools"))
    from lite_size import lenet

    nets = {"LeNet": lenet(), "ResNet-18": resnet18()}
    random = np.random.default_rng(0)
    for number, (name, shape) in enumerate(CASES):
        image = random.standard_normal(shape).astype(np.float32)
        np.save(folder / f"image{number}.npy", image)
        np.save(folder / f"wanted{number}.npy", nets[name](Tensor(image)).asnumpy())
        lite.convert(nets[name], Tensor(image), file=folder / f"model{number}.ms", fixed_sizes=True)
        ms.export(nets[name], Tensor(image), file_name=str(folder / f"model{number}"), file_format="ONNX")


def morel_runner(folder: Path, case: int, threads: int):
    from morel import _core, lite

    def load():
        model = _core.LiteModel.build_from_file(str(folder / f"model{case}.ms"), threads)
        lite.Tensor(*model.inputs()[0]).set_data_from_numpy(np.load(folder / f"image{case}.npy"))
        output = lite.Tensor(*model.outputs()[0])
        return model.predict, output.get_data_to_numpy

    return load


def ort_runner(folder: Path, case: int, threads: int):
    import onnxruntime

    def load():
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
        session = onnxruntime.InferenceSession(
            str(folder / f"model{case}.onnx"), options, providers=["CPUExecutionProvider"]
        )
        binding = session.io_binding()
        image = onnxruntime.OrtValue.ortvalue_from_numpy(np.load(folder / f"image{case}.npy"))
        binding.bind_ortvalue_input(session.get_inputs()[0].name, image)
        binding.bind_output(session.get_outputs()[0].name)
        return lambda: session.run_with_iobinding(binding), lambda: binding.copy_outputs_to_cpu()[0]

    return load


RUNNERS = {"morel.lite": morel_runner, "ONNX Runtime": ort_runner}


def measure(runtime: str, folder: Path, case: int, threads: int, seconds: float) -> dict[str, float]:
    from memory import status_megabytes

    load = RUNNERS[runtime](folder, case, threads)
    before = status_megabytes("VmRSS")
    began = time.perf_counter()
    run, result = load()
    run()
    loading = time.perf_counter() - began
    best, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        began = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - began)
    added = status_megabytes("VmHWM") - before
    np.testing.assert_allclose(result(), np.load(folder / f"wanted{case}.npy"), rtol=1e-3, atol=1e-4)
    return {"load_ms": 1e3 * loading, "run_us": 1e6 * best, "added_mb": added, "peak_mb": status_megabytes("VmHWM")}


def measured_apart(
    runtime: str, python: str, folder: Path, case: int, threads: int, seconds: float
) -> dict[str, float]:
    out = subprocess.run(
        [python, __file__, "--measure", runtime, str(folder), str(case), str(threads), str(seconds)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT / "build/python")])},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return json.loads(out)


def compare(rounds: int = 3, seconds: float = 1.0, threads: int = 1) -> list[dict]:
    """{runtime: figures} of each case; without the peer's environment (PEERS) for Morel alone."""
    peer = Path(os.environ.get("PEERS", "/nowhere")) / "ort/bin/python"
    pythons = {"morel.lite": sys.executable} | ({"ONNX Runtime": str(peer)} if peer.exists() else {})
    found: list[dict] = [{} for _ in CASES]
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        make_files(folder)
        for _ in range(rounds):
            for case, runtimes in enumerate(found):
                for runtime, python in pythons.items():
                    figures = measured_apart(runtime, python, folder, case, threads, seconds)
                    known = runtimes.setdefault(runtime, figures)
                    runtimes[runtime] = {key: min(value, known[key]) for key, value in figures.items()}
    return found


def table(found: list[dict]) -> str:
    lines = ["| model | images | runtime | load, ms | run, us | added memory, MB |", "|---|---|---|---|---|---|"]
    for (name, shape), runtimes in zip(CASES, found):
        for runtime, figures in runtimes.items():
            cells = f"{figures['load_ms']:.2f} | {figures['run_us']:.1f} | {figures['added_mb']:.1f}"
            lines.append(f"| {name} | {shape[0]} | {runtime} | {cells} |")
    return "\n".join(lines)


def run(rounds: int, update_docs: bool) -> None:
    import report

    text = table(compare(rounds))
    print(text)
    if update_docs:
        report.replace_section("lite", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--measure", nargs=5, metavar=("RUNTIME", "FOLDER", "CASE", "THREADS", "SECONDS"), required=True
    )
    runtime, folder, case, threads, seconds = parser.parse_args().measure
    print(json.dumps(measure(runtime, Path(folder), int(case), int(threads), float(seconds))))
