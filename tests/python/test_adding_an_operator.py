"""The example of docs/adding_an_operator.md, executed in a copy of the checkout."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/adding_an_operator.md").read_text()
# "In `FILE`, after the line `LINE`:" and the block of code that follows.
EDIT = re.compile(r"In\s+`([^`]+)`,\s+after\s+the\s+line\s+`([^`]+)`:\n```\w+\n(.*?)```", re.S)
EDITS = EDIT.findall(DOCUMENT)

pytestmark = [
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no checkout"),
    pytest.mark.skipif("MOREL_TEST_SANITIZER" in os.environ, reason="the copy is built without sanitizers"),
]


def shown_by(*command, **options):
    done = subprocess.run(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the checkout with the edits of the document, built."""
    folder = tmp_path_factory.mktemp("copy") / "morel"
    listed = shown_by("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    for name, line, code in EDITS:
        text = (folder / name).read_text()
        assert text.count(f"{line}\n") == 1, f"{name} does not have the line {line!r} once"
        (folder / name).write_text(text.replace(f"{line}\n", f"{line}\n{code}"))
    program = "import builder; builder.build(build_dir='scratch', targets=['python_package'])"
    shown_by(sys.executable, "-c", program, cwd=folder, env={**os.environ, "PYTHONPATH": str(folder / "tools")})
    return folder


def in_copy(copy, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(copy / "scratch/python")}
    return shown_by(sys.executable, *arguments, cwd=copy, env=environment)


def test_counts():
    lines, files = map(int, re.search(r"That is (\d+) lines in (\d+) files", DOCUMENT).groups())
    assert files == len({name for name, _, _ in EDITS}) == 3
    assert lines == sum(len(code.splitlines()) for _, _, code in EDITS) <= 25


def test_every_property_holds(copy):
    text = in_copy(copy, "-m", "pytest", "-p", "no:cacheprovider", "-k", "squareplus", "-rA", "tests/python")
    passed = set(re.findall(r"PASSED tests/python/(\w+)\.py::(\w+)\[.*squareplus", text))
    assert passed >= {
        ("test_operators", "test_reference"),
        ("test_operators", "test_strided_inputs"),
        ("test_operators", "test_gradient"),
        ("test_operators", "test_second_gradient"),
        ("test_operators", "test_empty_input"),
        ("test_graph_operators", "test_result"),
        ("test_graph_operators", "test_second_gradient"),
        ("test_jvp", "test_tangent"),
        ("test_jvp", "test_graph_tangent"),
        ("test_vmap", "test_result"),
        ("test_vmap", "test_gradient_of_each_example"),
        ("test_sharding", "test_samples"),
    }


def test_derived_consumers(copy):
    shown = in_copy(copy, "-m", "morel.tools.op", "squareplus")
    for part in (
        "squareplus.f32",
        "gradient   derivative",
        "batches    derived; parts derived",
        "ops.squareplus, Tensor.squareplus",
    ):
        assert part in shown, shown
    in_copy(copy, "-m", "morel.tools.stubs", copy / "stubs")
    for module in ("ops/__init__.pyi", "_core.pyi"):
        assert re.search(r"def squareplus\(.*\) -> Tensor:", (copy / "stubs/morel" / module).read_text())
