"""Four processes over TCP on this machine: what they compute together is what one computes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from morel.parallel import launch

from morel import communication

SCRIPT = Path(__file__).parent / "parallel_script.py"


def msrun(tmp_path, *arguments):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "morel.parallel.launch", "--worker_num=4", "--local_worker_num=4"]
    command += [f"--master_port={port}", "--join=True", "--cluster_time_out=60", f"--log_dir={tmp_path}", str(SCRIPT)]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=300, env=dict(os.environ))


def test_training_and_collectives(tmp_path):
    done = msrun(tmp_path)
    logs = [(tmp_path / f"worker_{rank}.log").read_text() for rank in range(4)]
    assert done.returncode == 0, done.stderr
    for rank, log in enumerate(logs):
        assert f"rank {rank} is right" in log


def test_a_process_that_fails_is_named_and_ends_all(tmp_path):
    done = msrun(tmp_path, "fail")
    assert done.returncode == 1
    assert "rank 1 ended with code 1" in done.stderr and "fails on purpose" in done.stderr


@pytest.mark.parametrize(
    "arguments,error",
    [
        (["--worker_num=0", "a.py"], ValueError),
        (["--worker_num=2", "--local_worker_num=4", "a.py"], ValueError),
        (["--worker_num=4", "--local_worker_num=4", "--master_port=0", "a.py"], ValueError),
        (["--worker_num=8", "--local_worker_num=4", "a.py"], ValueError),
    ],
)
def test_command_lines_that_make_no_sense(arguments, error):
    with pytest.raises(error):
        launch.main(arguments)


def test_without_other_processes():
    assert communication.get_rank() == 0 and communication.get_group_size() == 1
    with pytest.raises(RuntimeError, match="msrun"):
        communication.init()
    with pytest.raises(RuntimeError, match="backend_name"):
        communication.init("nothing")
    with pytest.raises(RuntimeError, match="init"):
        communication.create_group("a", [0])
