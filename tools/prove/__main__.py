"""The program behind `./m prove`."""

import argparse
import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

from prove import OPERATORS

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
# Modules of this folder that are no consumers.
HELPERS = ("__init__", "__main__", "cases")
# Runs one consumer; its result is the last line.
PROGRAM = "import importlib, json; print(json.dumps(importlib.import_module('prove.{}').prove()))"


def consumers():
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in HELPERS)


def run(consumer):
    """(what a consumer says, None), or (None, why it failed)."""
    path = [FOLDER.parent, ROOT / "tests/python", ROOT / "build/python", os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(consumer)], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    if done.returncode != 0:
        return None, done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}"
    try:
        found = json.loads(done.stdout.splitlines()[-1])
        cells, numbers = found["cells"], found["numbers"]
    except (IndexError, KeyError, TypeError, ValueError) as error:
        return None, f"no result: {error!r}"
    missing = [operator for operator in OPERATORS if operator not in cells]
    if missing:
        return None, f"nothing is said of {', '.join(missing)}"
    return {"cells": cells, "numbers": numbers}, None


def table(found, width=110):
    """Operator x consumer: a block for each operator, a line or more for each consumer."""
    first = max(map(len, found)) + 2
    lines = []
    others = {operator for said in found.values() if said for operator in said["cells"]} - {*OPERATORS}
    for operator in (*OPERATORS, *sorted(others)):
        lines.append(operator)
        for consumer, said in found.items():
            text = said["cells"].get(operator) if said else "FAILED"
            if text is None:
                continue
            lines += textwrap.wrap(
                text, width, initial_indent=f"  {consumer:<{first}}", subsequent_indent=" " * (first + 2)
            )
    return "\n".join(lines)


def main(arguments):
    parser = argparse.ArgumentParser(
        prog="./m prove", description="Runs all consumers of entries over a dozen operators."
    )
    parser.add_argument("consumers", nargs="*", metavar="CONSUMER", help=f"only these of: {', '.join(consumers())}")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write what was found as JSON")
    options = parser.parse_args(arguments)
    unknown = set(options.consumers) - set(consumers())
    if unknown:
        parser.error(f"there is no consumer {', '.join(sorted(unknown))}")
    found, failures, numbers = {}, {}, {}
    for consumer in options.consumers or consumers():
        start = time.monotonic()
        found[consumer], failure = run(consumer)
        seconds = time.monotonic() - start
        print(f"{consumer}: {'FAILED' if failure else 'ok'} in {seconds:.1f} s", file=sys.stderr, flush=True)
        if failure:
            failures[consumer] = failure
        else:
            numbers |= found[consumer]["numbers"]
    print(table(found))
    print("\nnumbers")
    for name, number in sorted(numbers.items()):
        print(f"  {name:<{max(map(len, numbers)) + 2}}{number}")
    for consumer, failure in failures.items():
        print(f"\n{consumer} failed:\n{textwrap.indent(failure, '  ')}")
    if options.json:
        cells = {consumer: said and said["cells"] for consumer, said in found.items()}
        options.json.write_text(json.dumps({"numbers": numbers, "cells": cells, "failures": failures}, indent=2) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
