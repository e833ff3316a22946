"""Compiled graphs as files: what asks for them, which stages are written, and that they can be read again."""

import numpy as np
import pytest

import morel as ms
from morel import Tensor, _core, ops

STAGES = ["0_source", "1_simplify", "2_fold", "3_expand", "4_fuse", "5_schedule", "6_recompute", "7_validate"]


def run_a_graph():
    """The result of a new graph for [1, 2]."""

    @ms.jit
    def doubled(x):
        return ops.exp(x * 2) + 0

    return doubled(Tensor(np.array([1, 2], np.float32))).asnumpy().tolist()


def stages_in(folder):
    """The stages of the graphs called `doubled` in a folder, sorted."""
    return sorted(path.name.split(".")[2] for path in folder.glob("doubled.*.ir"))


@pytest.fixture
def context():
    yield ms.set_context
    ms.set_context(save_graphs=False, save_graphs_path=".")


def test_the_context_asks_for_files(tmp_path, context):
    folder = tmp_path / "made" / "by_it"
    context(save_graphs=True, save_graphs_path=str(folder))
    run_a_graph()
    assert stages_in(folder) == STAGES
    context(save_graphs=0)
    run_a_graph()
    assert len(stages_in(folder)) == len(STAGES)


@pytest.mark.parametrize(
    "variables",
    [("MS_DEV_SAVE_GRAPHS", "2", "MS_DEV_SAVE_GRAPHS_PATH"), ("MOREL_DUMP", "passes", "MOREL_DUMP_DIR")],
    ids=lambda names: names[0],
)
def test_the_environment_asks_for_files(tmp_path, monkeypatch, variables):
    switch, value, folder = variables
    monkeypatch.setenv(switch, value)
    monkeypatch.setenv(folder, str(tmp_path))
    wanted = run_a_graph()
    assert stages_in(tmp_path) == STAGES
    (path,) = tmp_path.glob("*.7_validate.ir")
    again = _core.Graph.parse(path.read_text())
    again.compile()
    assert again([Tensor(np.array([1, 2], np.float32))])[0].asnumpy().tolist() == wanted


def test_the_environment_comes_before_the_context(tmp_path, monkeypatch, context):
    context(save_graphs=True, save_graphs_path=str(tmp_path))
    monkeypatch.setenv("MS_DEV_SAVE_GRAPHS", "0")
    run_a_graph()
    assert stages_in(tmp_path) == []


def test_some_stages_alone(tmp_path, monkeypatch, context):
    context(save_graphs=1, save_graphs_path=str(tmp_path))
    monkeypatch.setenv("MS_DEV_DUMP_IR_PASSES", "_validate,fuse")
    run_a_graph()
    assert stages_in(tmp_path) == ["4_fuse", "7_validate"]


def test_levels_out_of_range():
    with pytest.raises(ValueError, match="save_graphs"):
        ms.set_context(save_graphs=4)
