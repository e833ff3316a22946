"""Types for editors, made from the entries: complete, and a type checker reads programs with them; what is said of an operator."""

import ast
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from morel.tools import op, pages, stubs

import morel as ms

GOOD = """
import morel as ms
from morel import Tensor, mint, nn, ops
from morel.mint.nn import functional as F

x: Tensor = ops.ones((2, 3))
total: Tensor = ops.sum(x, 1, keepdim=True) + mint.matmul(x, x.T) * 2.0 - x[0]
values, places = ops.topk(x, 2)
for row in x:
    row.shape
for part in ops.split(values, 1):
    part.softmax(-1).add_(x)
y: Tensor = F.gelu(ops.concat([x, total], axis=0)).reshape((2, -1))
shape: tuple[int, ...] = y.shape
layer = nn.Dense(3, 4)
print(layer(x), float(y.mean()), ms.grad(ops.sin)(x), x.astype(ms.float16).dtype)
"""
# line -> what is wrong there
BAD = {
    "ops.sum(x, axes=1)": "Unexpected keyword argument",
    "ops.softmax('x')": "incompatible type",
    "ops.add(x)": "Missing positional argument",
    "ops.topk(x, 'k')": "incompatible type",
    "x.reshap((2, 3))": "has no attribute",
    "ops.no_such_operator(x)": "has no attribute",
    "text: str = x.matmul(x)": "Incompatible types",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The package as a wheel has it: the sources, and the types beside them."""
    out = tmp_path_factory.mktemp("stubs")
    shutil.copytree(Path(ms.__file__).resolve().parent, out / "morel", ignore=shutil.ignore_patterns("__pycache__"))
    stubs.write(out)
    return out


def test_every_public_operator_has_its_types(folder):
    for module, namespace in (("ops/__init__", ms.ops), ("mint/__init__", ms.mint)):
        tree = ast.parse((folder / f"morel/{module}.pyi").read_text())
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        for name in dir(namespace):
            value = getattr(namespace, name)
            if name.startswith("_") or not isinstance(value, ms._core.Operator):
                continue
            arguments = functions[name].args
            written = [argument.arg for argument in arguments.args + arguments.kwonlyargs]
            assert written == [parameter[0] for parameter in value.parameters], name
            assert ast.unparse(functions[name].returns) != "Any", name


def checked(folder, text):
    """What mypy says of a program."""
    program = folder / "program.py"
    program.write_text(text)
    environment = {**os.environ, "MYPYPATH": str(folder)}
    command = ["-m", "mypy", "--cache-dir", folder / "cache", "--follow-imports", "silent", program]
    done = subprocess.run(
        [sys.executable, *map(str, command)], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert "INTERNAL ERROR" not in done.stderr, done.stderr
    return done.stdout


def test_a_type_checker_reads_them(folder):
    text = checked(folder, GOOD + "\n".join(BAD))
    first = GOOD.count("\n") + 1
    errors = [line.removeprefix("program.py:").split(": error:", 1) for line in text.splitlines() if ": error:" in line]
    lines = dict(errors)
    assert not [line for line in lines if not line.isdigit() or int(line) < first], text
    for place, (code, wrong) in enumerate(BAD.items(), first):
        assert wrong in lines.get(str(place), ""), f"{code}: {text}"


def test_pages(tmp_path):
    written = pages.write(tmp_path)
    text = "\n".join(page.read_text() for page in written)
    for name in ms._core.public_operator_names():
        assert f"\n## {name}\n" in text
    assert "ops.sum, mint.sum(input, dim=None, keepdim=False, *, dtype=None)" in text
    assert all(f"({page.name})" in (tmp_path / "README.md").read_text() for page in written)


def test_each_public_name_of_an_operator_is_shown_once():
    names = op.public_names("softmax")
    assert "mint.softmax" in names and len(set(names)) == len(names)


def test_a_reader_of_the_operators_that_stops_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-m", "morel.tools.op"], stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert done.returncode == -signal.SIGPIPE and not done.stderr
