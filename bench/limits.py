"""The machine's limits: builds and runs limits.cc, and turns a case's FLOPs and bytes into a least time."""

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from cases import CASES, Case

SOURCE = Path(__file__).with_name("limits.cc")
BUILD_FOLDER = Path(os.environ.get("MOREL_BUILD_DIR", SOURCE.parent.parent / "build")) / "bench"
# Far above any cache in use, this is "memory" in the rows of the machine.
MEMORY_BYTES = 1 << 30


@dataclass
class Limits:
    """The best figures seen in this run, for one number of threads."""

    gflops: float = 0.0
    gigabytes: dict[int, float] = field(default_factory=dict)  # by working set in bytes

    def update(self, measured: dict) -> None:
        self.gflops = max(self.gflops, measured["gflops"])
        for size, rate in measured["triad"].items():
            self.gigabytes[int(size)] = max(self.gigabytes.get(int(size), 0.0), rate)

    def least_milliseconds(self, case: Case) -> float | None:
        """The longer of computing and moving data, each at full speed; None for cases that measure overhead."""
        times = []
        if case.flops:
            times.append(case.flops / (self.gflops * 1e6))
        if case.traffic:
            times.append(case.traffic / (self.gigabytes[case.working_set] * 1e6))
        return max(times, default=None)


def build() -> Path:
    program = BUILD_FOLDER / "limits"
    if not program.exists() or program.stat().st_mtime < SOURCE.stat().st_mtime:
        BUILD_FOLDER.mkdir(parents=True, exist_ok=True)
        compiler = os.environ.get("CXX", "g++")
        # -march is left out: the source asks for instruction sets by itself and chooses at run time.
        subprocess.run([compiler, "-std=c++20", "-O3", "-pthread", SOURCE, "-o", program], check=True)
    return program


def measure(threads: int) -> dict:
    sizes = {case.working_set for case in CASES.values() if case.working_set} | {MEMORY_BYTES}
    command = [build(), str(threads), *map(str, sorted(sizes))]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
