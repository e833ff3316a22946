"""`python -m morel script.py`, and the alias that lets `import mindspore` mean Morel."""

import subprocess
import sys

import pytest


def run(*arguments, folder, check=True, **options):
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=120, **options
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def script(folder, text, name="script.py"):
    path = folder / name
    path.write_text(text)
    return path


def test_script_runs_as_a_program(tmp_path):
    path = script(
        tmp_path,
        """
import os, sys
import helper
import mindspore as ms
import mindspore.nn as nn
from mindspore import Tensor, context, ops
from mindspore.train import Model
import mindspore.dataset.vision as vision
from mindspore.common.initializer import initializer
print(__name__, sys.argv, os.path.basename(__file__), __spec__, __package__, sys.modules["__main__"].__dict__ is globals())
import morel
print(nn is morel.nn, Tensor is morel.Tensor, vision is morel.dataset.vision, helper.Cell is morel.nn.Cell, ms.nn is morel.nn)
print(nn.__name__, nn.__spec__.name, ms.__version__, ms.__name__)
print(nn.Dense(3, 2)(Tensor([[1.0, 2.0, 3.0]], ms.float32)).shape)
class Local: pass
import pickle
print(type(pickle.loads(pickle.dumps(Local()))) is Local)
""",
    )
    script(tmp_path, "from mindspore.nn import Cell\n", "helper.py")
    out = run("-m", "morel", path, "--lr", "0.1", "-m", folder=tmp_path.parent).stdout.splitlines()
    assert out == [
        f"__main__ ['{path}', '--lr', '0.1', '-m'] script.py None None True",
        "True True True True True",
        "morel.nn morel.nn 2.8.0 mindspore",
        "(1, 2)",
        "True",
    ]


def test_modules_run_too(tmp_path):
    script(tmp_path, "import sys, mindspore\nprint(__name__, sys.argv[1:], mindspore.__name__)", "tool.py")
    assert run("-m", "morel", "-m", "tool", "x", folder=tmp_path).stdout == "__main__ ['x'] mindspore\n"


def test_traceback_is_the_scripts(tmp_path):
    path = script(tmp_path, "import mindspore\n\ndef f():\n    return 1 / 0\n\nf()\n")
    done = run("-m", "morel", path, folder=tmp_path, check=False)
    assert done.returncode == 1 and not done.stdout
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and lines[1] == f'  File "{path}", line 6, in <module>'
    assert lines[-1] == "ZeroDivisionError: division by zero" and "morel" not in done.stderr.replace(str(path), "")


def test_ways_to_end(tmp_path):
    assert run("-m", "morel", script(tmp_path, "import sys; sys.exit(7)"), folder=tmp_path, check=False).returncode == 7
    done = run("-m", "morel", script(tmp_path, "raise KeyboardInterrupt"), folder=tmp_path, check=False)
    assert done.returncode == 130 and done.stderr.rstrip().endswith("KeyboardInterrupt")
    done = run("-m", "morel", script(tmp_path, "x = = 1"), folder=tmp_path, check=False)
    assert done.returncode == 1 and "SyntaxError" in done.stderr and "morel" not in done.stderr
    done = run("-m", "morel", tmp_path / "none.py", folder=tmp_path, check=False)
    assert done.returncode == 1 and "can't open file" in done.stderr
    out = run(
        "-m",
        "morel",
        script(
            tmp_path,
            """
import threading, time
def late():
    time.sleep(0.2)
    print("thread", answer)
answer = 42
threading.Thread(target=late).start()
print("end", flush=True)
""",
        ),
        folder=tmp_path,
    ).stdout
    assert out == "end\nthread 42\n"


def test_command_line(tmp_path):
    assert "usage" in run("-m", "morel", "--help", folder=tmp_path).stdout
    assert run("-m", "morel", "--version", folder=tmp_path).stdout.startswith("morel ")
    assert run("-m", "morel", folder=tmp_path, check=False).returncode == 2
    assert run("-m", "morel", "--wrong", folder=tmp_path, check=False).returncode == 2


def test_missing_names(tmp_path):
    out = run(
        "-m",
        "morel",
        script(
            tmp_path,
            """
import mindspore
for statement in ("import mindspore.nothing", "from mindspore import nothing", "from mindspore.nn import Nothing"):
    try:
        exec(statement)
    except ImportError as error:
        print(type(error).__name__, error)
""",
        ),
        folder=tmp_path,
    ).stdout.splitlines()
    assert out[0] == "ModuleNotFoundError No module named 'mindspore.nothing'"
    assert out[1].startswith("ImportError cannot import name 'nothing' from 'mindspore'")
    assert out[2].startswith("ImportError cannot import name 'Nothing' from 'morel.nn'")


def test_nothing_happens_silently(tmp_path):
    code = (
        "import sys, morel\nprint('mindspore' in sys.modules, any('morel' in type(f).__module__ for f in sys.meta_path))\n"
        "import morel.alias, mindspore\nprint(mindspore.Tensor is morel.Tensor)"
    )
    assert run("-c", code, folder=tmp_path).stdout == "False False\nTrue\n"


def test_the_real_one_is_not_replaced_when_it_is_there_already(tmp_path):
    script(tmp_path, "", "mindspore.py")
    code = "import mindspore\nimport morel.alias"
    done = run("-c", code, folder=tmp_path, check=False)
    assert "ImportError: mindspore has been imported already" in done.stderr
    code = (
        "import morel.alias, mindspore, morel; print(mindspore.Tensor is morel.Tensor)"  # but it hides one on the path
    )
    assert run("-c", code, folder=tmp_path).stdout == "True\n"


def test_pytest_plugin(tmp_path):
    text = "import mindspore, morel\nfrom mindspore.nn.cell import Cell\n\ndef test_alias():\n    assert Cell is morel.nn.Cell\n"
    script(tmp_path, text, "test_x.py")
    out = run(
        "-m",
        "pytest",
        "-q",
        "-p",
        "morel.alias",
        "-p",
        "no:cacheprovider",
        "-o",
        "python_files=*.py",
        "test_x.py",
        folder=tmp_path,
    ).stdout
    assert "1 passed" in out


@pytest.mark.parametrize("method", ["fork"])
def test_worker_processes_inherit_the_alias(tmp_path, method):
    path = script(
        tmp_path,
        f"""
import multiprocessing
def work(x):
    import mindspore.ops as ops, mindspore as ms
    return float(ops.add(ms.Tensor(x), ms.Tensor(1.0)))
if __name__ == "__main__":
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        print(pool.map(work, [1.0, 2.0]))
""",
    )
    assert run("-m", "morel", path, folder=tmp_path).stdout == "[2.0, 3.0]\n"


def test_importing_morel_stays_light(tmp_path):
    code = "import sys, morel; print(sorted(m for m in ('numpy', 'morel.dataset', 'morel.train', 'morel.nn', 'asyncio') if m in sys.modules))"
    assert run("-c", code, folder=tmp_path).stdout == "[]\n"
