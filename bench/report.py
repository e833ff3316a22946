"""Tables of a run's figures, for the terminal and for docs/performance.md."""

from datetime import date
from pathlib import Path

from cases import CASE_NAMES
from frameworks import FRAMEWORKS
from results import MACHINE, Key, Results, Row

DOCUMENT = Path(__file__).parent.parent / "docs" / "performance.md"
SUFFIXES = ("", ":first", ":peak_rss", ":idle", ":busy")
EMPTY = "-"


def figure(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def cell(row: Row | None, best_peer: float | None) -> str:
    if row is None:
        return EMPTY
    if row.error:
        return "error"
    text = figure(row.value)
    if row.key.framework == "morel" and best_peer:
        text += f" ({row.value / best_peer:.2f}x)"
    return text


def machine_line(results: Results, threads: int) -> str:
    def value(case: str) -> str:
        row = results.rows.get(Key(case, MACHINE, "", threads))
        return f"{figure(row.value)} {row.unit}" if row else "not measured"

    return f"Fused multiply-add peak {value('fma_peak')}, memory triad {value('triad')}."


def columns_of(results: Results) -> list[tuple[str, str]]:
    present = {(key.framework, key.mode) for key in results.rows}
    return [
        (name, mode) for name, framework in FRAMEWORKS.items() for mode in framework.modes if (name, mode) in present
    ]


def table(results: Results, threads: int) -> str:
    """One line a case; Morel's cells tell the ratio to the best peer, the last column the best's ratio to the limit."""
    columns = columns_of(results)
    lines = [
        "| case | unit | " + " | ".join(f"{name} {mode}" for name, mode in columns) + " | limit | best / limit |",
        "|---|---|" + "---|" * (len(columns) + 2),
    ]
    for case in (name + suffix for name in CASE_NAMES for suffix in SUFFIXES):
        rows = [results.rows.get(Key(case, *column, threads)) for column in columns]
        measured = [row for row in rows if row and not row.error]
        if not any(rows):
            continue
        unit = measured[0].unit if measured else EMPTY
        limit = min((row.limit for row in measured if row.limit), default=None)
        pick = max if unit in ("images/s", "share") else min
        best_peer = pick((row.value for row in measured if row.key.framework != "morel"), default=None)
        distance = f"{pick(row.value for row in measured) / limit:.2f}x" if limit else EMPTY
        cells = [case, unit, *(cell(row, best_peer) for row in rows), figure(limit) if limit else EMPTY, distance]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def report(results: Results, threads: list[int]) -> str:
    parts = []
    for count in threads:
        parts += [f"### {count} thread{'s' if count > 1 else ''}", machine_line(results, count), table(results, count)]
    for row in results.errors():
        parts.append(f"- {row.key.case}, {row.key.framework} {row.key.mode}, threads {row.key.threads}: {row.error}")
    return "\n\n".join(parts)


def replace_section(name: str, content: str) -> None:
    """Puts `content` between the marks of a generated part of docs/performance.md."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = DOCUMENT.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(end)
    DOCUMENT.write_text(f"{before}{begin}\n{content}\n{end}{after}", encoding="utf-8")


def update_document(results: Results, threads: list[int], versions: dict[str, str]) -> None:
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    content = f"Measured {date.today().isoformat()} with {named}.\n\n{report(results, threads)}"
    replace_section("bench table", content)
