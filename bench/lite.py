"""LeNet as a model for devices beside ONNX Runtime: latency of one image, memory, time to load.

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
BATCHES = (1, 32)


def make_files(folder: Path) -> None:
    """model.ms and model.onnx with the same weights, and an image for each batch size."""
    from morel import Tensor, lite

    sys.path.insert(0, str(ROOT / "tools"))
    from lite_size import lenet

    net = lenet()
    random = np.random.default_rng(0)
    for batch in BATCHES:
        image = random.standard_normal((batch, 1, 28, 28)).astype(np.float32)
        np.save(folder / f"image{batch}.npy", image)
        np.save(folder / f"wanted{batch}.npy", net(Tensor(image)).asnumpy())
        lite.convert(net, Tensor(image), file=folder / f"model{batch}.ms", fixed_sizes=True)
    np.savez(folder / "weights.npz", **{name: parameter.asnumpy() for name, parameter in net.parameters_and_names()})


def onnx_model(weights: dict[str, np.ndarray]) -> bytes:
    from onnx import TensorProto, helper, numpy_helper

    node = helper.make_node
    nodes = [
        node("Conv", ["x", "conv1.weight", "conv1.bias"], ["c1"], pads=[2, 2, 2, 2]),
        node("Relu", ["c1"], ["r1"]),
        node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p1", "conv2.weight", "conv2.bias"], ["c2"]),
        node("Relu", ["c2"], ["r2"]),
        node("MaxPool", ["r2"], ["p2"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["p2"], ["f"]),
        node("Gemm", ["f", "fc1.weight", "fc1.bias"], ["g1"], transB=1),
        node("Relu", ["g1"], ["r3"]),
        node("Gemm", ["r3", "fc2.weight", "fc2.bias"], ["g2"], transB=1),
        node("Relu", ["g2"], ["r4"]),
        node("Gemm", ["r4", "fc3.weight", "fc3.bias"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "lenet",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 28, 28])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model.SerializeToString()


def morel_runner(folder: Path, batch: int, threads: int):
    from morel import _core, lite

    def load():
        model = _core.LiteModel.build_from_file(str(folder / f"model{batch}.ms"), threads)
        lite.Tensor(*model.inputs()[0]).set_data_from_numpy(np.load(folder / f"image{batch}.npy"))
        output = lite.Tensor(*model.outputs()[0])
        return model.predict, output.get_data_to_numpy

    return load


def ort_runner(folder: Path, batch: int, threads: int):
    import onnxruntime

    model = onnx_model(dict(np.load(folder / "weights.npz")))

    def load():
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 3
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        binding.bind_ortvalue_input(
            "x", onnxruntime.OrtValue.ortvalue_from_numpy(np.load(folder / f"image{batch}.npy"))
        )
        binding.bind_output("y")
        return lambda: session.run_with_iobinding(binding), lambda: binding.copy_outputs_to_cpu()[0]

    return load


RUNNERS = {"morel.lite": morel_runner, "ONNX Runtime": ort_runner}


def measure(runtime: str, folder: Path, batch: int, threads: int, seconds: float) -> dict[str, float]:
    from memory import status_megabytes

    load = RUNNERS[runtime](folder, batch, threads)
    before = status_megabytes("VmRSS")
    began = time.perf_counter()
    run, result = load()
    loading = time.perf_counter() - began
    best, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        began = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - began)
    added = status_megabytes("VmHWM") - before
    np.testing.assert_allclose(result(), np.load(folder / f"wanted{batch}.npy"), rtol=1e-4, atol=1e-5)
    return {"load_ms": 1e3 * loading, "run_us": 1e6 * best, "added_mb": added, "peak_mb": status_megabytes("VmHWM")}


def measured_apart(
    runtime: str, python: str, folder: Path, batch: int, threads: int, seconds: float
) -> dict[str, float]:
    out = subprocess.run(
        [python, __file__, "--measure", runtime, str(folder), str(batch), str(threads), str(seconds)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT / "build/python")])},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return json.loads(out)


def compare(rounds: int = 3, seconds: float = 1.0, batches=BATCHES, threads: int = 1) -> dict:
    """{batch: {runtime: figures}}; without the peer's environment (PEERS) for Morel alone."""
    peer = Path(os.environ.get("PEERS", "/nowhere")) / "ort/bin/python"
    pythons = {"morel.lite": sys.executable} | ({"ONNX Runtime": str(peer)} if peer.exists() else {})
    found: dict = {batch: {} for batch in batches}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        make_files(folder)
        for _ in range(rounds):
            for batch in batches:
                for runtime, python in pythons.items():
                    figures = measured_apart(runtime, python, folder, batch, threads, seconds)
                    known = found[batch].setdefault(runtime, figures)
                    found[batch][runtime] = {key: min(value, known[key]) for key, value in figures.items()}
    return found


def table(found: dict) -> str:
    lines = ["| images | runtime | load, ms | run, us | added memory, MB |", "|---|---|---|---|---|"]
    for batch, runtimes in found.items():
        for runtime, figures in runtimes.items():
            cells = f"{figures['load_ms']:.2f} | {figures['run_us']:.1f} | {figures['added_mb']:.1f}"
            lines.append(f"| {batch} | {runtime} | {cells} |")
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
        "--measure", nargs=5, metavar=("RUNTIME", "FOLDER", "BATCH", "THREADS", "SECONDS"), required=True
    )
    runtime, folder, batch, threads, seconds = parser.parse_args().measure
    print(json.dumps(measure(runtime, Path(folder), int(batch), int(threads), float(seconds))))
