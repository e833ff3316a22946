"""The types that editors see: stubs made from the entries, and a program that a type checker reads with them."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from morel.tools import stubs

from prove import OPERATORS

ROOT = Path(__file__).resolve().parents[2]


def prove():
    with tempfile.TemporaryDirectory() as folder:
        written = stubs.write(folder)
        texts = {path: path.read_text() for path in written}
    functions = {
        name: sum(re.search(rf"def {name}\(", text) is not None for text in texts.values()) for name in OPERATORS
    }
    cells = {
        name: "- syntax of Python" if name == "while/if" else f"typed in {count} module{'s' * (count > 1)}"
        for name, count in functions.items()
    }
    missing = [name for name, count in functions.items() if count == 0 and name != "while/if"]
    if missing:
        raise AssertionError(f"no stub for {', '.join(missing)}")
    checked = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/python/test_stubs.py"], cwd=ROOT, capture_output=True, text=True
    )
    if checked.returncode:
        raise AssertionError(checked.stdout[-4000:])
    return {"cells": cells, "numbers": {"stub_functions": sum(text.count("def ") for text in texts.values())}}
