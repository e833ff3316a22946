"""The API pages made from the entries."""

import tempfile
from pathlib import Path

from morel.tools import pages

from prove import OPERATORS
from prove.entries import ENTRIES


def prove():
    with tempfile.TemporaryDirectory() as folder:
        texts = {path.stem: path.read_text() for path in pages.write(Path(folder))}
    cells = {}
    for operator in OPERATORS:
        names = ENTRIES.get(operator, (operator,))
        found = {family for name in names for family, text in texts.items() if f"\n## {name}\n" in text}
        cells[operator] = (
            f"page {', '.join(sorted(found))}"
            if found
            else "- no public operator: Python's syntax, or a method in place"
        )
    return {"cells": cells, "numbers": {"api_pages": len(texts)}}
