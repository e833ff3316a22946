"""Runs cases of one framework in its own process; run.py starts it with that framework's interpreter.

Each finding is one JSON line in the output file, written at once, so that a crash in a later case loses nothing.
"""

import argparse
import gc
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from frameworks import FRAMEWORKS

MICROSECONDS, MILLISECONDS = 1e6, 1e3
FACTORS = {"us": MICROSECONDS, "ms": MILLISECONDS}
WARM_UP_SECONDS = 0.3
FEWEST_WINDOWS = 2
BUSY_PERIODS = 2
BUSY_SETTLE_SECONDS = 0.3
# Ends by itself when its parent is gone.
SPIN = """
import os, sys
parent = os.getppid()
os.sched_setaffinity(0, {int(sys.argv[1])})
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--framework", required=True)
    parser.add_argument("--mode", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--job", choices=("check", "time", "busy"), required=True)
    parser.add_argument("--cases", type=lambda text: text.split(","), required=True)
    parser.add_argument("--seconds", type=float, default=1.0, help="measuring time per case")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--results", type=Path, help="folder for the result arrays of a check")
    return parser.parse_args()


def load_adapter(arguments: argparse.Namespace):
    module, name = FRAMEWORKS[arguments.framework].adapter.split(":")
    adapter = getattr(importlib.import_module(f"frameworks.{module}"), name)
    return adapter(arguments.mode, arguments.threads)


def check(adapter, case, build, arguments) -> list[dict]:
    import numpy as np
    from cases import CHECKED_STEPS

    call = build()
    if case.training:
        steps = 1 if arguments.framework == "numpy" else CHECKED_STEPS
        arrays = [np.array([call() for _ in range(steps)])]
    else:
        result = call()
        adapter.sync(result)
        arrays = adapter.arrays(result)
    np.savez(arguments.results / f"{case.name}.npz", *arrays)
    return [{"case": case.name, "checked": True}]


def time_window(adapter, call, calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        result = call()
    adapter.sync(result)
    return (time.perf_counter() - began) / calls


def measure(adapter, case, build, arguments) -> list[dict]:
    from memory import status_megabytes

    call = build()
    first = time_window(adapter, call, 1)
    began = time.perf_counter()
    while time.perf_counter() - began < min(WARM_UP_SECONDS, arguments.seconds):
        time_window(adapter, call, case.window)
    best, windows, began = float("inf"), 0, time.perf_counter()
    while windows < FEWEST_WINDOWS or time.perf_counter() - began < arguments.seconds:
        best = min(best, time_window(adapter, call, case.window))
        windows += 1
    rows = [
        {"case": case.name, "value": best * FACTORS[case.unit], "unit": case.unit},
        {"case": f"{case.name}:first", "value": first * MILLISECONDS, "unit": "ms"},
    ]
    if case.training:
        # Right only because run.py gives every training case a process of its own.
        rows.append({"case": f"{case.name}:peak_rss", "value": status_megabytes("VmHWM"), "unit": "MB"})
    return rows


def images_per_second(call, images: int, seconds: float) -> float:
    began, steps = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < seconds:
        call()
        steps += 1
    return steps * images / elapsed


def busy_core(adapter, case, build, arguments) -> list[dict]:
    """Training speed with as many cores as threads, idle and with one of them kept busy by a child that spins."""
    import models

    call = build()
    images_per_second(call, models.LENET.batch, WARM_UP_SECONDS)
    core = max(os.sched_getaffinity(0))
    speeds = {"idle": [], "busy": []}
    for _ in range(BUSY_PERIODS):
        speeds["idle"].append(images_per_second(call, models.LENET.batch, arguments.seconds))
        child = subprocess.Popen([sys.executable, "-c", SPIN, str(core)])
        try:
            time.sleep(BUSY_SETTLE_SECONDS)
            speeds["busy"].append(images_per_second(call, models.LENET.batch, arguments.seconds))
        finally:
            child.kill()
            child.wait()
    return [
        {"case": f"lenet_busy_core:{state}", "value": max(values), "unit": "images/s"}
        for state, values in speeds.items()
    ]


JOBS = {"check": check, "time": measure, "busy": busy_core}


def main() -> None:
    arguments = parse_arguments()
    # A test of contention needs exactly as many cores as threads, and the threads must be born on them.
    if arguments.job == "busy":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.threads])
    adapter = load_adapter(arguments)
    from cases import CASES

    with arguments.out.open("w", encoding="utf-8") as output:
        for name in arguments.cases:
            case = CASES[name]
            try:
                if not hasattr(adapter, name):
                    rows = [{"case": name, "absent": True}]
                else:
                    rows = JOBS[arguments.job](
                        adapter, case, lambda c=case: adapter.build(c.name, c.make_inputs()), arguments
                    )
            except Exception as error:  # whatever a framework raises is this case's finding
                text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                rows = [{"case": name, "error": text}]
            for row in rows:
                print(json.dumps(row), file=output, flush=True)
            gc.collect()


if __name__ == "__main__":
    main()
