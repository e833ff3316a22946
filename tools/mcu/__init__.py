"""Compiles what morel.lite.to_c writes, for this machine and for Cortex-M, and runs it (Cortex-M: under QEMU)."""

import pathlib
import re
import shutil
import subprocess

import numpy as np

HERE = pathlib.Path(__file__).parent
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
# QEMU's machine: processor and where its memory lies.
_LOW = {"FLASH": 0x0, "RAM": 0x20000000}
BOARDS = {
    "mps2-an385": (["-mcpu=cortex-m3"], _LOW),
    "mps2-an386": (["-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"], _LOW),
    "mps2-an500": (["-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"], _LOW),
    "mps2-an505": (
        ["-mcpu=cortex-m33", "-mfloat-abi=hard", "-mfpu=fpv5-sp-d16"],
        {"FLASH": 0x10000000, "RAM": 0x38000000},
    ),
}
_DTYPES = {
    "bool": "bool",
    "i8": "int8",
    "u8": "uint8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "f32": "float32",
    "f64": "float64",
}


def missing_tools():
    """Names of programs that are not installed."""
    return [name for name in ("arm-none-eabi-gcc", "qemu-system-arm") if not shutil.which(name)]


def _run(command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if result.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def ports(folder, kind):
    """(dtype, shape) of each INPUT or OUTPUT, as model.h describes it."""
    text = (pathlib.Path(folder) / "model.h").read_text()
    out = []
    for dtype, shape in re.findall(rf"/\*.*?(\w+)\[([\d,]*)\] \*/\n#define MODEL_{kind}_\d+ ", text):
        out.append((np.dtype(_DTYPES[dtype]), tuple(int(size) for size in shape.split(",") if size)))
    return out


def _harness(folder):
    """What tools/mcu/run.c is told of the model."""
    sizes = [int(np.prod(shape)) * dtype.itemsize for dtype, shape in ports(folder, "INPUT")]
    copies = " ".join(f"memcpy(MODEL_INPUT_{i}, at, {size}); at += {size};" for i, size in enumerate(sizes))
    results = [int(np.prod(shape)) * dtype.itemsize for dtype, shape in ports(folder, "OUTPUT")]
    writes = " ".join(f"fwrite(MODEL_OUTPUT_{i}, {size}, 1, to);" for i, size in enumerate(results))
    return [f"-DTEST_INPUT_BYTES={sum(sizes)}", f"-DTEST_COPY_INPUTS={copies}", f"-DTEST_WRITE_OUTPUTS={writes}"]


def sources(folder):
    return sorted(pathlib.Path(folder).glob("*.c"))


def _arm(board, folder, program, out, extra=()):
    options, memory = BOARDS[board]
    places = [f"-Wl,--defsym={name}={place:#x}" for name, place in memory.items()]
    _run(["arm-none-eabi-gcc", *STRICT, "-O2", "-mthumb", *options, "-ffunction-sections", "-fdata-sections", f"-I{folder}",
          *extra, HERE / program, HERE / "start.c", *sources(folder), "-o", out, "-nostartfiles", "-Wl,--gc-sections", *places,
          f"-T{HERE / 'cortex_m.ld'}", "-lm"])  # fmt: skip
    return out


def _batches(folder, batches):
    dtypes = [dtype for dtype, _ in ports(folder, "INPUT")]
    return b"".join(
        np.ascontiguousarray(array, dtype).tobytes()
        for batch in batches
        for array, dtype in zip(batch, dtypes, strict=True)
    )


def _results(folder, data):
    """A list of outputs for each run."""
    found, at = [], 0
    while at < len(data):
        run = []
        for dtype, shape in ports(folder, "OUTPUT"):
            count = int(np.prod(shape))
            run.append(np.frombuffer(data, dtype, count, at).reshape(shape))
            at += count * dtype.itemsize
        found.append(run)
    return found


def run_on_host(folder, batches):
    """Outputs of each run on this machine; the folder must compile without a warning."""
    folder = pathlib.Path(folder)
    work = folder / "host"
    work.mkdir(exist_ok=True)
    (work / "input.bin").write_bytes(_batches(folder, batches))
    _run(
        [
            "gcc",
            *STRICT,
            "-O2",
            f"-I{folder}",
            *_harness(folder),
            HERE / "run.c",
            *sources(folder),
            "-o",
            work / "run",
            "-lm",
        ]
    )
    _run([work / "run"], cwd=work)
    return _results(folder, (work / "output.bin").read_bytes())


def run_on_board(board, folder, batches, timeout=600):
    """Outputs of each run on QEMU's board."""
    work = _prepare(board, folder, batches)
    _qemu(board, work, timeout)
    return _results(folder, (work / "output.bin").read_bytes())


def instructions_on_board(board, folder, batch):
    """How many instructions one run takes: QEMU lets one pass each nanosecond, and the timer ticks every 40."""
    printed = _qemu(board, _prepare(board, folder, [batch]), 600, "-icount", "shift=0")
    return 40 * int(re.search(r"(\d+) ticks", printed)[1])


def _prepare(board, folder, batches):
    folder = pathlib.Path(folder)
    work = folder / board
    work.mkdir(exist_ok=True)
    (work / "input.bin").write_bytes(_batches(folder, batches))
    _arm(board, folder, "run.c", work / "run.elf", ["--specs=rdimon.specs", *_harness(folder)])
    return work


def _qemu(board, work, timeout, *options):
    return _run(["qemu-system-arm", "-M", board, "-nographic", "-semihosting-config", "enable=on,target=native", *options,
                 "-kernel", work / "run.elf"], cwd=work, timeout=timeout, stdin=subprocess.DEVNULL)  # fmt: skip


def size_on_board(board, folder):
    """(bytes of flash, bytes of RAM without the stack) of the smallest program that holds the model."""
    folder = pathlib.Path(folder)
    image = _arm(board, folder, "idle.c", folder / f"{board}.elf", ["--specs=nosys.specs"])
    text, data, bss = map(int, _run(["arm-none-eabi-size", image]).splitlines()[1].split()[:3])
    return text + data, data + bss
