"""The C++ package: what `cmake --install` gives is complete, can be moved, and serves a program of its own."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import morel

BUILD = Path(morel.__file__).parents[2]
EXAMPLE = Path(__file__).parents[2] / "examples/cpp"
DATA = Path("/usr/share/datasets/fashion-mnist")

pytestmark = [
    pytest.mark.skipif(not (BUILD / "CMakeCache.txt").exists(), reason="morel is not imported from a build folder"),
    pytest.mark.skipif("MOREL_TEST_SANITIZER" in os.environ, reason="a sanitized library needs a sanitized program"),
]


def shown_by(*command, cwd=None):
    done = subprocess.run([str(part) for part in command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = done.stdout.decode()
    assert done.returncode == 0, text
    return text


def configured(source, build, prefix):
    return shown_by("cmake", "-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Where the C++ component was installed, and then moved."""
    folder = tmp_path_factory.mktemp("package")
    shown_by("cmake", "--install", BUILD, "--component", "cpp", "--prefix", folder / "first")
    (folder / "first").rename(folder / "moved")
    return folder / "moved"


@pytest.mark.skipif(not DATA.is_dir(), reason="Debian's dataset-fashion-mnist is not installed")
def test_example_builds_and_learns(prefix, tmp_path):
    source = shutil.copytree(EXAMPLE, tmp_path / "example")
    configured(source, tmp_path / "build", prefix)
    shown_by("cmake", "--build", tmp_path / "build")
    text = shown_by(tmp_path / "build/mlp", DATA, 1, 6400, cwd=tmp_path)
    (accuracy,) = re.findall(r"epoch 1: loss [\d.]+, test accuracy ([\d.]+)", text)
    assert float(accuracy) > 0.5, text


def test_version_is_checked(prefix, tmp_path):
    for version, fits in ((".".join(morel.__version__.split(".")[:2]), True), ("99.0", False)):
        (tmp_path / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(version LANGUAGES CXX)\n"
            f"find_package(morel {version} CONFIG)\nmessage(STATUS found=${{morel_FOUND}})\n"
        )
        text = configured(tmp_path, tmp_path / f"build-{version}", prefix)
        assert f"found={int(fits)}\n" in text, text


def test_headers_stand_alone_and_show_no_third_party(prefix, tmp_path):
    include = prefix / "include"
    assert not (include / "morel/python").exists()
    source = tmp_path / "program.cc"
    source.write_text('#include "morel/morel.h"\n')
    used = shown_by("c++", "-std=c++20", "-M", f"-I{include}", source).replace("\\\n", " ").split()
    names = sorted(str(Path(path).relative_to(include)) for path in used if Path(path).is_relative_to(include))
    assert "morel/runtime/tape.h" in names
    others = [path for path in used if not Path(path).is_relative_to(include)]
    assert not [path for path in others if re.search(r"dnnl|nlohmann|zlib|llvm|omp\.h|Python\.h", path)]
    # One after the other in reverse: a header that leans on an earlier one fails.
    source.write_text("".join(f'#include "{name}"\n' for name in names[::-1]))
    shown_by("c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", f"-I{include}", source)
