"""`./m lite-size`: the size of the library for devices that has what the operators of the proof and LeNet need, and nothing else.

Converts them, selects the kernels, loops and dtypes that their plans name, builds libmorel_lite_core.so with these (for AVX2)
and prints its size, which may not exceed MOST_BYTES. `select` makes the selection for any models.
"""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "build/python")]
CORE = ROOT / "build/lite_core"
LIBRARY = ROOT / "build/libmorel_lite_core.so"
MOST_BYTES = 300_000


def lenet():
    """The network of the demo, with weights of a fixed seed."""
    import morel as ms
    from morel import alias

    alias.install()
    spec = importlib.util.spec_from_file_location("lenet", ROOT / "examples/lenet_fashion_mnist.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ms.set_seed(3)
    return module.LeNet()


def write_if_changed(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def select(models, folder=CORE):
    """Writes what the build of a core needs to know: kernels, loop programs and dtypes of these model files."""
    from morel import _core

    kernels, loops, dtypes = {}, set(), 0
    for path in models:
        found = _core.LiteModel.build_from_file(str(path)).requirements()
        for name, of_kernel in found[0].items():
            kernels[name] = kernels.get(name, 0) | of_kernel
        loops.update(found[1])
        dtypes |= found[2]
    folder.mkdir(parents=True, exist_ok=True)
    rows = ", ".join(f'{{"{name}", {of_kernel:#x}}}' for name, of_kernel in sorted(kernels.items()))
    write_if_changed(
        folder / "selection.h", f"#define MOREL_DTYPE_MASK {dtypes:#x}u\n#define MOREL_SELECTED_KERNELS {rows}\n"
    )
    write_if_changed(folder / "loops.txt", "".join(f"{name}\n" for name in sorted(loops)))
    return len(kernels), len(loops)


def proof_models(folder):
    """A model file of each operator of the proof, and LeNet."""
    import numpy as np
    from prove.cases import CASES, inputs_of

    from morel import Tensor, lite

    paths = []
    for operator, cases in CASES.items():
        for number, (function, shapes) in enumerate(cases):
            arrays, _ = inputs_of(shapes, "float32")
            paths.append(folder / f"{operator.replace('/', '_')}{number}.ms")
            lite.convert(function, *map(Tensor, arrays), file=paths[-1])
    paths.append(folder / "lenet.ms")
    lite.convert(lenet(), Tensor(np.zeros((2, 1, 28, 28), np.float32)), file=paths[-1])
    return paths


def build():
    """(bytes of the core, number of kernels, number of loops); the core is up to date then."""
    import builder

    with tempfile.TemporaryDirectory() as folder:
        kernels, loops = select(proof_models(Path(folder)))
    directory = builder.build_directory()
    command = ["cmake", "--build", directory, "--target", "morel_lite_core", "--target", "lite_predict_core"]
    subprocess.run(command, check=True, env=builder.build_environment(), stdout=sys.stderr)
    size = LIBRARY.stat().st_size
    if size > MOST_BYTES:
        sys.exit(f"{LIBRARY.relative_to(ROOT)} has {size} bytes, more than {MOST_BYTES}")
    return size, kernels, loops


if __name__ == "__main__":
    size, kernels, loops = build()
    print(f"{LIBRARY.relative_to(ROOT)}: {size} bytes with {kernels} kernels and {loops} loops")
