"""The entries themselves: how long they are, and how much of vectorisation and sharding follows from them."""

import re
import statistics
from pathlib import Path

from morel import _core
from prove import OPERATORS

ROOT = Path(__file__).resolve().parents[2]
# Where the public name of the proof is not that of the entry, or of several.
ENTRIES = {
    "while/if": ("while", "if"),
    "gather": ("gather_elements", "index_select"),
    "scatter_add_": ("scatter_add_elements",),
}


def _balanced(text, start):
    """The number of lines of the bracketed text that opens at or after `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(text[place], 0)
        if depth == 0 and text[place] in "})":
            return text.count("\n", start, place) + 1
    return 0


def lines_of(facts, sources):
    """Lines of an entry; of one in a table of its family, those of its row."""
    path = ROOT / "morel/ops" / Path(facts["file"]).name
    text = sources.setdefault(path, path.read_text())
    start = sum(len(line) + 1 for line in text.split("\n")[: facts["line"] - 1])
    if f'"{facts["name"]}"' not in text[start : start + 200]:
        start = text.find(f'{{"{facts["name"]}"')
    return _balanced(text, start) if start >= 0 else None


def prove():
    sources, lengths, cells = {}, {}, {}
    known = {name: _core.describe_operator(name) for name in _core.operator_names()}
    for name, facts in known.items():
        lengths[name] = lines_of(facts, sources)
    for operator in OPERATORS:
        cells[operator] = "; ".join(
            f"{name}: {lengths[name]} lines, vmap {known[name]['vmap']}, sharding {known[name]['sharding']}"
            for name in ENTRIES.get(operator, (operator,))
        )
    derived = {key: [facts[key] in ("derived", "compose") for facts in known.values()] for key in ("vmap", "sharding")}
    written = {key: sum(facts[key] == "rule" for facts in known.values()) for key in derived}
    (files,) = re.findall(r"lines in (\d+) files", (ROOT / "docs/adding_an_operator.md").read_text())
    return {
        "cells": cells,
        "numbers": {
            "operators": len(known),
            "entry_lines_median": statistics.median(count for count in lengths.values() if count),
            "files_per_new_operator": int(files),
            **{f"{key}_derived_share": round(sum(found) / len(found), 3) for key, found in derived.items()},
            **{f"{key}_rules_written": count for key, count in written.items()},
        },
    }
