"""`./m prove`: the table, its numbers, and that a consumer which fails fails it. The consumers' own checks are tests elsewhere."""

import json
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def prove(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    from prove import __main__

    return __main__


def test_consumers_and_numbers(prove, tmp_path, capsys):
    file = tmp_path / "numbers.json"
    assert prove.main(["entries", "graph", "--json", str(file)]) == 0
    shown, found = capsys.readouterr().out, json.loads(file.read_text())
    assert found["failures"] == {} and set(found["cells"]) == {"entries", "graph"}
    for operator in prove.OPERATORS:
        assert operator in shown and found["cells"]["graph"][operator]
    numbers = found["numbers"]
    assert 3 <= numbers["entry_lines_median"] <= 25 and numbers["files_per_new_operator"] == 3
    assert 0.5 < numbers["vmap_derived_share"] <= 1 and 0.5 < numbers["sharding_derived_share"] <= 1


def test_a_failure_fails_the_whole(prove, tmp_path, monkeypatch, capsys):
    for name, code, reason in (
        ("wrong", "raise ValueError('2 is not 3')", "2 is not 3"),
        ("silent", "return {'cells': {'add': 'sum'}, 'numbers': {}}", "nothing is said of matmul"),
        ("chatty", "return 1", "no result"),
    ):
        (tmp_path / "prove").mkdir(exist_ok=True)
        (tmp_path / "prove/__init__.py").write_text((TOOLS / "prove/__init__.py").read_text())
        (tmp_path / f"prove/{name}.py").write_text(f"def prove():\n    {code}\n")
        monkeypatch.setattr(prove, "FOLDER", tmp_path / "prove")
        assert prove.main([name]) == 1
        shown = capsys.readouterr().out
        assert "FAILED" in shown and reason in shown
    with pytest.raises(SystemExit):
        prove.main(["no_such_consumer"])
    assert sys.modules["prove"].OPERATORS == prove.OPERATORS
