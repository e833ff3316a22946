"""What the documents say of the code is so."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# "morel/runtime/eager.cc:call_op": a place in the code.
PLACE = re.compile(r"`((?:morel|tools|tests)/[\w/.]+\.(?:cc|h|py)):(\w+)`")


@pytest.mark.parametrize("document", ["life_of_a_call.md", "life_of_a_jit.md"])
def test_places_exist(document):
    text = (ROOT / "docs" / document).read_text()
    places = PLACE.findall(text)
    assert len(places) >= 15
    for step in range(1, 9):
        part = re.search(rf"^{step}\. (.*?)(?=^{step + 1}\. |^$|\Z)", text, re.M | re.S)
        assert PLACE.search(part[1]), f"step {step} names no place"
    for path, symbol in places:
        source = (ROOT / path).read_text()
        defined = (
            rf"(?m)^ *(?:class|struct|def) {symbol}\b|^{symbol}::{symbol}\("
            rf"|^ {{0,4}}(?!return )\w[\w:<>*&, ]* (?:\w+::)?{symbol}\("
        )
        assert re.search(defined, source), f"{document}: {path} does not define {symbol}"
