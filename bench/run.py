"""Times Morel beside its peers: same model, data and precision; results compared before anything is timed.

One framework per process, and rounds alternate between frameworks, so that drift of the machine hits all alike; the
figures are minima over rounds. PEERS names a folder that holds one virtual environment per peer: torch, ort, jax, ms.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import compile_time
import limits as machine
import lite
import report
from cases import BUSY_CASE, CASE_NAMES, CASES, IMPORT_CASES
from compare import difference, load
from frameworks import FRAMEWORKS, PEERS, environment
from results import Key, Results

HERE = Path(__file__).parent
WORKER_SECONDS = 900
BUSY_FRAMEWORKS = ("morel", "torch")
NUMPY_REFERENCE = ("numpy", "reference", 1)

Runner = tuple[str, str, int]  # framework, mode, threads


def notice(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse_arguments() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return [name for name in text.split(",") if name]

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=names, default=["*"], help="cases, by name or pattern: " + ", ".join(CASE_NAMES))
    parser.add_argument("--threads", type=lambda text: [int(t) for t in names(text)], default=[1, 2])
    parser.add_argument("--peers", type=names, default=list(PEERS))
    parser.add_argument("--modes", type=names, help="modes as framework:mode, instead of each framework's default ones")
    parser.add_argument("--repeat", type=int, default=3, help="rounds; 0 compares results and times nothing")
    parser.add_argument("--seconds", type=float, default=0.5, help="measuring time per case and round")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--compile-time", action="store_true", help="instead: compile time against depth, Morel alone")
    parser.add_argument("--lite", action="store_true", help="instead: LeNet as a model for devices")
    parser.add_argument("--keep-better", action="store_true", help="keep better figures that FILE already has")
    parser.add_argument("--no-morel", action="store_true", help="the peers alone")
    parser.add_argument("--update-docs", action="store_true", help="put the tables into docs/performance.md")
    arguments = parser.parse_args()
    for pattern in arguments.only:
        if not any(fnmatch(name, pattern) for name in CASE_NAMES):
            parser.error(f"--only: no case matches {pattern!r}")
    for peer in arguments.peers:
        if peer not in PEERS:
            parser.error(f"--peers: {peer!r} is none of {', '.join(PEERS)}")
    if not (arguments.json or arguments.compile_time or arguments.lite):
        parser.error("--json is needed: the file for the figures")
    if min(arguments.threads) < 1 or arguments.repeat < 0:
        parser.error("--threads must be at least 1 and --repeat at least 0")
    return arguments


@dataclass
class Bench:
    arguments: argparse.Namespace
    folder: Path
    interpreters: dict[str, Path] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    results: Results = field(default_factory=Results)
    limits: dict[int, machine.Limits] = field(default_factory=dict)

    def find_frameworks(self) -> None:
        """An interpreter for each framework that is there; a notice for each that is not."""
        peers_folder = os.environ.get("PEERS")
        for name in ([] if self.arguments.no_morel else ["morel"]) + self.arguments.peers:
            interpreter = Path(sys.executable)
            if (folder := FRAMEWORKS[name].environment) is not None:
                if not peers_folder:
                    notice(f"{name}: left out, the variable PEERS names no folder of virtual environments")
                    continue
                interpreter = Path(peers_folder).absolute() / folder / "bin" / "python"
            probe = f"import {FRAMEWORKS[name].module} as m; print(getattr(m, '__version__', '?'))"
            try:
                found = subprocess.run(
                    [interpreter, "-c", probe],
                    capture_output=True,
                    text=True,
                    # In the checkout's root the folder morel would pass for the package, and MindSpore leaves files.
                    cwd=self.folder,
                    env=environment(FRAMEWORKS[name], 1),
                )
            except OSError as error:
                notice(f"{name}: left out, {error}")
                continue
            if found.returncode:
                notice(f"{name}: left out, {(found.stderr.strip().splitlines() or ['import failed'])[-1]}")
                continue
            self.interpreters[name] = interpreter
            self.versions[name] = found.stdout.strip().splitlines()[-1]
        self.interpreters["numpy"] = Path(sys.executable)

    def runners(self) -> list[Runner]:
        """Ordered so that neighbours are what is compared: frameworks alternate within a number of threads."""

        def modes(name: str) -> list[str]:
            if self.arguments.modes is None:
                return list(FRAMEWORKS[name].default_modes)
            wanted = [m.split(":")[1] for m in self.arguments.modes if m.split(":")[0] == name]
            return [m for m in wanted if m in FRAMEWORKS[name].modes] or list(FRAMEWORKS[name].default_modes)

        frameworks = [name for name in self.interpreters if name != "numpy"]
        return [(name, mode, t) for t in self.arguments.threads for name in frameworks for mode in modes(name)]

    def selected(self, names) -> list[str]:
        return [name for name in names if any(fnmatch(name, pattern) for pattern in self.arguments.only)]

    def start(self, runner: Runner, command: list, out: Path) -> list[dict]:
        """Runs a worker and returns its rows; with an error row at the end if it died."""
        name, _, threads = runner
        out.unlink(missing_ok=True)
        log = self.folder / "worker.log"
        with log.open("wb") as stream:
            try:
                code = subprocess.run(
                    [self.interpreters[name], *command],
                    stdout=stream,
                    stderr=stream,
                    cwd=self.folder,
                    env=environment(FRAMEWORKS[name], threads),
                    timeout=WORKER_SECONDS,
                ).returncode
                died = f"the process ended with code {code}" if code else None
            except subprocess.TimeoutExpired:
                died = f"the process took more than {WORKER_SECONDS} s"
        rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []
        if died:
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            rows.append({"died": f"{died}: {lines[-1][:200]}" if lines else died})
        return rows

    def work(self, runner: Runner, job: str, cases: list[str]) -> list[dict]:
        name, mode, threads = runner
        out = self.folder / "rows.jsonl"
        command = [HERE / "worker.py", "--framework", name, "--mode", mode, "--threads", str(threads), "--job", job]
        command += ["--cases", ",".join(cases), "--seconds", str(self.arguments.seconds), "--out", out]
        rows = self.start(runner, [*command, "--results", self.folder], out)
        reported = {row["case"].split(":")[0] for row in rows if "case" in row}
        died = next((row["died"] for row in rows if "died" in row), None)
        missing = [{"case": case, "error": died} for case in cases if case not in reported] if died else []
        return [row for row in rows if "case" in row] + missing

    def check(self, cases: list[str]) -> dict[Runner, list[str]]:
        """Which cases may be timed for whom: those whose results equal the reference's."""
        runners = self.runners()
        reference = next((runner for runner in runners if runner[:2] == ("torch", "eager")), NUMPY_REFERENCE)
        expected = {}
        passed: dict[Runner, list[str]] = {runner: [] for runner in runners}
        for runner in [reference, *(r for r in runners if r != reference)]:
            for row in self.work(runner, "check", cases):
                case, key = row["case"], Key(row["case"], *runner)
                if "absent" in row:
                    continue
                error = row.get("error")
                if not error:
                    path = self.folder / f"{case}.npz"
                    arrays = load(path)
                    path.unlink()
                    if runner == reference:
                        expected[case] = arrays
                    if case in expected:
                        error = difference(arrays, expected[case], CASES[case].tolerance)
                if error and runner != NUMPY_REFERENCE:
                    notice(f"{case}, {runner[0]} {runner[1]}, threads {runner[2]}: {error}")
                    self.results.fail(key, error)
                elif runner in passed:
                    passed[runner].append(case)
            if runner in passed and runner != reference:
                notice(f"{' '.join(map(str, runner))}: {len(passed[runner])} cases equal to {reference[0]}'s results")
        return passed

    def collect(self, runner: Runner, rows: list[dict]) -> None:
        for row in rows:
            key = Key(row["case"], *runner)
            if "error" in row:
                self.results.fail(key, row["error"])
            elif "value" in row:
                self.results.add(key, row["value"], row["unit"])

    def import_rows(self, runner: Runner) -> list[dict]:
        out = self.folder / "rows.jsonl"
        command = [HERE / "import_probe.py", FRAMEWORKS[runner[0]].module, out]
        return [row for row in self.start(runner, command, out) if row.get("case") in self.selected(IMPORT_CASES)]

    def measure_round(self, passed: dict[Runner, list[str]]) -> None:
        """Every group of cases for every framework in turn; each training case in a process of its own."""
        for threads in self.arguments.threads:
            self.limits.setdefault(threads, machine.Limits()).update(machine.measure(threads))
        calls = [name for name in self.selected(CASES) if not CASES[name].training]
        groups = [calls, *([name] for name in self.selected(CASES) if CASES[name].training)]
        if self.selected(IMPORT_CASES):
            for runner in {(name, mode): (name, mode, t) for name, mode, t in reversed(passed)}.values():
                self.collect(runner, self.import_rows(runner))
        for group in groups:
            for runner, good in passed.items():
                cases = [case for case in group if case in good and not self.results.failed(Key(case, *runner))]
                if cases:
                    self.collect(runner, self.work(runner, "time", cases))
        if self.selected([BUSY_CASE]):
            for runner in passed:
                if runner[0] in BUSY_FRAMEWORKS and 1 < runner[2] <= len(os.sched_getaffinity(0)):
                    rows = self.work(runner, "busy", ["train_lenet"])
                    self.collect(runner, [row | {"case": BUSY_CASE} if "error" in row else row for row in rows])

    def run(self) -> None:
        self.find_frameworks()
        cases = self.selected(CASES)
        began = time.monotonic()
        passed = self.check(cases) if cases else {runner: [] for runner in self.runners()}
        for number in range(1, self.arguments.repeat + 1):
            self.measure_round(passed)
            self.save()
            notice(f"round {number} of {self.arguments.repeat} done after {time.monotonic() - began:.0f} s")

    def save(self) -> None:
        if self.arguments.keep_better and self.arguments.json.exists():
            self.results.keep_better_of(self.arguments.json)
        self.results.finish(self.limits)
        self.results.save(self.arguments.json)


def main() -> int:
    arguments = parse_arguments()
    if arguments.compile_time:
        compile_time.run(compile_time.DEPTHS, max(arguments.repeat, 1), arguments.update_docs)
        return 0
    if arguments.lite:
        lite.run(max(arguments.repeat, 1), arguments.update_docs)
        return 0
    # An end from outside must end the worker too: subprocess does that when an exception passes through it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        bench = Bench(arguments, Path(folder))
        bench.run()
    bench.save()
    print(report.report(bench.results, arguments.threads))
    if arguments.update_docs:
        report.update_document(bench.results, arguments.threads, bench.versions)
    return 1 if any(row.key.framework == "morel" for row in bench.results.errors()) else 0


if __name__ == "__main__":
    sys.exit(main())
