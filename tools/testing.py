"""`./m test`: the C++ tests (ctest) and the Python tests (pytest), plain or under sanitizers.

Python's own line comes last, so that the run closes with a test runner's summary.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import builder
from environment import ROOT, run, venv_python

# pytest's exit status for "no test was collected".
NO_TESTS = 5
# What TSan runs: it slows everything ten times, and only these tests start threads of their own.
THREAD_TESTS = "thread"
# Of the cases of each Python test, ASan runs one of so many unless all are asked for: all of them take hours.
SANITIZER_SHARE = 10


def expression_matches(expression: str, name: str) -> bool:
    """pytest's -k language (substrings, and, or, not, parentheses; case ignored) for the names of C++ tests."""
    words = re.sub(r"[^\s()]+", lambda m: m[0] if m[0] in ("and", "or", "not") else repr(m[0].lower()) + " in name",
                   expression)  # fmt: skip
    return bool(eval(words, {"__builtins__": {}}, {"name": name.lower()}))


def cpp_tests(directory: Path, launcher: list[str]) -> list[str]:
    command = [*launcher, "ctest", "-N"]
    listing = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True).stdout
    return re.findall(r"Test +#\d+: (.+)", listing)


def run_ctest(directory: Path, expression: str, sanitize: str) -> int:
    """Runs the matching tests and returns the exit status; NO_TESTS if nothing matches."""
    launcher = builder.launcher(sanitize)
    names = cpp_tests(directory, launcher)
    chosen = [name for name in names if not expression or expression_matches(expression, name)]
    if not chosen:
        print("ctest: no C++ test" + (f" matches {expression!r}" if expression else ""))
        return NO_TESTS
    command = [*launcher, "ctest", "--output-on-failure", "--timeout", "600", "-j", str(os.cpu_count())]
    if not os.environ.get("VERBOSE"):
        command += ["--progress"]
    if len(chosen) < len(names):
        command += ["-R", "^(" + "|".join(re.sub(r"[^\w/]", r"[\g<0>]", name) for name in chosen) + ")$"]
    env = sanitizer_environment(sanitize, python=False)
    return 1 if run(command, env=env, check=False, cwd=directory) else 0


def sanitizer_environment(sanitize: str, python: bool, full: bool = False) -> dict[str, str]:
    env = dict(os.environ)
    suppressions = ROOT / "tools/sanitizers"
    if sanitize == "address":
        leaks = 0 if python else 1  # the interpreter itself never frees all it takes
        # Without stack-use-after-return: GCC 12 places 64-byte vectors at addresses of 32 then (GCC bug 110027).
        env["ASAN_OPTIONS"] = f"detect_leaks={leaks}:strict_string_checks=1:detect_stack_use_after_return=0"
        env["LSAN_OPTIONS"] = f"suppressions={suppressions}/lsan.txt"
        env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
    if sanitize == "thread":
        env["TSAN_OPTIONS"] = (
            f"halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:suppressions={suppressions}/tsan.txt"
        )
    if sanitize and python:
        # The interpreter is not instrumented, so the run-time library must be there before anything else.
        libraries = {"address": ["libasan.so", "libubsan.so"], "thread": ["libtsan.so"]}[sanitize]
        paths = [subprocess.check_output(["g++", f"-print-file-name={name}"], text=True).strip() for name in libraries]
        env["LD_PRELOAD"] = " ".join(paths)
        env["PYTHONMALLOC"] = "malloc"
        env["MOREL_TEST_SANITIZER"] = sanitize
        if not full:
            env["MOREL_TEST_SHARE"] = str(SANITIZER_SHARE)
    return env


def run_pytest(directory: Path, expression: str, sanitize: str, options) -> int:
    env = sanitizer_environment(sanitize, python=True, full=options.full)
    env["PYTHONPATH"] = os.pathsep.join([str(directory / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
    selection = ["-k", expression] if expression else []
    command = [*builder.launcher(sanitize), venv_python(), "-m", "pytest", *selection, *options.args]
    return run(command, env=env, check=False)


def test_one(sanitize: str, expression: str, options) -> list[int]:
    directory = builder.build(sanitize)
    statuses = []
    if not options.python:
        statuses.append(run_ctest(directory, expression, sanitize))
    if not options.cpp:
        statuses.append(run_pytest(directory, expression, sanitize, options))
    return statuses


def test(options) -> int:
    if options.sanitize == "all":
        kinds = ["address", "thread"]
    else:
        kinds = [options.sanitize]
    statuses = []
    for kind in kinds:
        expression = options.k
        if kind == "thread":
            expression = f"({expression}) and {THREAD_TESTS}" if expression else THREAD_TESTS
        statuses += test_one(kind, expression, options)
    if all(status == NO_TESTS for status in statuses):
        print("m: no test ran", file=sys.stderr)
        return NO_TESTS
    failures = [status for status in statuses if status not in (0, NO_TESTS)]
    # Without a filter every runner must have found something.
    if not options.k and not options.sanitize and NO_TESTS in statuses:
        failures.append(NO_TESTS)
    if failures:
        print(f"m: {len(failures)} of {len(statuses)} test runs failed", file=sys.stderr)
    return failures[0] if failures else 0
