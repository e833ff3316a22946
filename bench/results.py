"""What a run found: the best value of every figure, or the error of a case that failed; rows of the JSON file."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cases import BUSY_CASE, CASES
from limits import MEMORY_BYTES, Limits

MACHINE = "machine"
LARGER_IS_BETTER = ("images/s", "share", "GB/s", "GFLOP/s")


class Key(NamedTuple):
    case: str
    framework: str
    mode: str
    threads: int


@dataclass
class Row:
    key: Key
    value: float | None
    unit: str | None
    limit: float | None = None
    error: str | None = None

    def as_json(self) -> dict:
        row = {**self.key._asdict(), "value": self.value, "unit": self.unit, "limit": self.limit}
        return row | ({"error": self.error} if self.error else {})


class Results:
    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}

    def add(self, key: Key, value: float, unit: str, limit: float | None = None) -> None:
        """Keeps the better value: other programs on the machine only ever make figures worse."""
        old = self.rows.get(key)
        if old is None or old.error:
            self.rows[key] = Row(key, value, unit, limit)
            return
        better = max if unit in LARGER_IS_BETTER else min
        old.value = better(old.value, value)
        old.limit = min((x for x in (old.limit, limit) if x is not None), default=None)

    def fail(self, key: Key, error: str) -> None:
        for suffix in ("", ":first", ":peak_rss", ":idle", ":busy"):
            self.rows.pop(key._replace(case=key.case + suffix), None)
        self.rows[key] = Row(key, None, None, error=error)

    def failed(self, key: Key) -> bool:
        return key in self.rows and self.rows[key].error is not None

    def errors(self) -> list[Row]:
        return [row for row in self.rows.values() if row.error]

    def finish(self, limits: dict[int, Limits]) -> None:
        """Adds what follows from several figures: limits, the machine's own rows, the share that a busy core leaves."""
        for row in list(self.rows.values()):
            case = CASES.get(row.key.case)
            if case and row.value is not None and row.key.threads in limits:
                least = limits[row.key.threads].least_milliseconds(case)
                row.limit = min((x for x in (row.limit, least) if x is not None), default=None)
            if row.key.case == f"{BUSY_CASE}:busy":
                idle = self.rows[row.key._replace(case=f"{BUSY_CASE}:idle")]
                key = row.key._replace(case=BUSY_CASE)
                self.rows[key] = Row(key, row.value / idle.value, "share")
        for threads, limit in limits.items():
            self.add(Key("fma_peak", MACHINE, "", threads), limit.gflops, "GFLOP/s")
            self.add(Key("triad", MACHINE, "", threads), limit.gigabytes[MEMORY_BYTES], "GB/s")

    def keep_better_of(self, path: Path) -> None:
        """A figure of an earlier run never hides that the case fails now."""
        failed = {row.key for row in self.errors()}
        for row in load_rows(path):
            case = row.key._replace(case=row.key.case.split(":")[0])
            if not row.error and case not in failed:
                self.add(row.key, row.value, row.unit, row.limit)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps([row.as_json() for row in self.rows.values()], indent=1) + "\n", encoding="utf-8")


def load_rows(path: Path) -> list[Row]:
    rows = json.loads(path.read_text(encoding="utf-8"))
    fields = Key._fields
    return [
        Row(Key(*(row[name] for name in fields)), row["value"], row["unit"], row["limit"], row.get("error"))
        for row in rows
    ]
