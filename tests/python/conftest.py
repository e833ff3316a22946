import collections
import os
import signal
import sys

import pytest

from morel import _core

sys.path.insert(0, os.path.dirname(__file__))

# A shell that runs the tests in the background has SIGINT ignored, which child processes inherit; the tests that interrupt
# a script need it as a terminal has it.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Under a sanitizer every test takes many times as long: of the cases of one test every so many-th reaches its code too.
SHARE = int(os.environ.get("MOREL_TEST_SHARE", "1"))


def pytest_collection_modifyitems(config, items):
    seen, chosen, rest = collections.Counter(), [], []
    for item in items:
        test = (item.path, item.cls, getattr(item, "originalname", item.name))
        (chosen if seen[test] % SHARE == 0 else rest).append(item)
        seen[test] += 1
    if rest:
        config.hook.pytest_deselected(items=rest)
        items[:] = chosen


@pytest.fixture(autouse=True)
def graphs_read_back(request, monkeypatch):
    """In the tests of graph mode, the text of every graph must read back as itself, before and after the passes."""
    if not request.module.__name__.startswith("test_graph"):
        return
    compile_graph = _core.Graph.compile

    def compile_and_compare(graph):
        for step in (lambda _: None, compile_graph):
            step(graph)
            text = repr(graph)
            assert repr(_core.Graph.parse(text)) == text

    monkeypatch.setattr(_core.Graph, "compile", compile_and_compare)
