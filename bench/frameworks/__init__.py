"""Which frameworks there are, how each is started and in which modes. Imports no framework and not even numpy."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Framework:
    name: str
    module: str  # what its users import
    adapter: str  # module and class below this package
    modes: tuple[str, ...]
    default_modes: tuple[str, ...]
    environment: str | None = None  # folder of its virtual environment below $PEERS; None: the interpreter of run.py


FRAMEWORKS = {
    framework.name: framework
    for framework in (
        Framework("morel", "morel", "mindspore_api:Morel", ("pynative", "jit"), ("pynative", "jit")),
        Framework("torch", "torch", "torch:Torch", ("eager", "compile"), ("eager",), "torch"),
        Framework("ort", "onnxruntime", "ort:OnnxRuntime", ("graph",), ("graph",), "ort"),
        Framework("jax", "jax", "jax:Jax", ("jit",), ("jit",), "jax"),
        Framework("mindspore", "mindspore", "mindspore_api:MindSpore", ("pynative", "jit"), ("pynative", "jit"), "ms"),
        Framework("numpy", "numpy", "numpy:Numpy", ("reference",), ("reference",)),
    )
}
PEERS = ("torch", "ort", "jax", "mindspore")


def environment(framework: Framework, threads: int) -> dict[str, str]:
    """The environment of a worker: thread counts that libraries read when they are loaded."""
    variables = dict(os.environ)
    # Some machines force an old BLAS kernel for old builds; it would slow the numpy and torch of today.
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        variables.pop(name, None)
    if framework.environment:
        variables.pop("PYTHONPATH", None)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MOREL_NUM_THREADS", "NPROC"):
        variables[name] = str(threads)
    multi = "true" if threads > 1 else "false"
    variables["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={multi} intra_op_parallelism_threads={threads}"
    variables["JAX_PLATFORMS"] = "cpu"
    variables["GLOG_v"] = "3"
    return variables
