"""`./m build`: configures and runs CMake + Ninja, then makes the package importable from .venv."""

import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from environment import ROOT, VENV, run, venv_python

DIRECTORY = {"": "build", "address": "build-asan", "thread": "build-tsan"}


def build_directory(sanitize: str = "") -> Path:
    return ROOT / DIRECTORY[sanitize]


def build_environment() -> dict[str, str]:
    """Compiler-cache settings that let two checkouts of the same sources share their object files."""
    settings = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": "pch_defines,time_macros"}
    return {**settings, **os.environ}


def launcher(sanitize: str) -> list[str]:
    """ThreadSanitizer of GCC 12 cannot place its shadow memory where the kernel randomises addresses a lot."""
    setting = Path("/proc/sys/vm/mmap_rnd_bits")
    if sanitize == "thread" and setting.exists() and int(setting.read_text()) > 28:
        return ["setarch", platform.machine(), "-R"]
    return []


def configure(directory: Path, sanitize: str) -> None:
    arguments = [f"-DMOREL_SANITIZE={sanitize}", f"-DPython_EXECUTABLE={venv_python()}"]
    stamp = directory / "configured"
    text = "\n".join([str(ROOT), *arguments])
    if stamp.exists() and stamp.read_text() == text and (directory / "build.ninja").exists():
        return  # Ninja itself notices changes of CMake files and of the list of sources
    run(["cmake", "-S", ".", "-B", directory, "-G", "Ninja", *arguments], env=build_environment())
    stamp.write_text(text)


def make_importable(directory: Path) -> None:
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(subprocess.check_output([VENV / "bin/python", "-c", query], text=True).strip())
    (site / "morel-checkout.pth").write_text(f"{directory / 'python'}\n")


def build(sanitize="", build_dir=None, targets=None, budget=None, jobs=None) -> Path:
    start = time.monotonic()
    directory = Path(build_dir).resolve() if build_dir else build_directory(sanitize)
    directory.mkdir(parents=True, exist_ok=True)
    configure(directory, sanitize)
    wanted = [part for target in targets or [] for part in ("--target", target)]
    run(
        [*launcher(sanitize), "cmake", "--build", directory, "-j", jobs or os.cpu_count(), *wanted],
        env=build_environment(),
    )
    if directory == build_directory():
        make_importable(directory)
    seconds = time.monotonic() - start
    print(f"build: {directory.name} up to date in {seconds:.1f} s")
    if budget is not None and seconds > budget:
        sys.exit(f"m: the build took {seconds:.0f} s, over its budget of {budget:.0f} s")
    return directory
