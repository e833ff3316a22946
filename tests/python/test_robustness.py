"""Threads, forks and interrupts: what must go on working around the operators."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import morel as ms
from morel import Tensor, nn, ops


def make_problem(seed):
    rng = np.random.default_rng(seed)
    return Tensor(rng.standard_normal((64, 8)).astype(np.float32)), Tensor(rng.integers(0, 3, 64).astype(np.int32))


def train(net, x, y, steps):
    optimizer = nn.Adam(net.trainable_params(), 0.05)
    step = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, optimizer.parameters)
    losses = []
    for _ in range(steps):
        loss, gradients = step(x, y)
        optimizer(gradients)
        losses.append(float(loss))
    return losses


def make_net(seed):
    ms.set_seed(seed)
    return nn.SequentialCell(nn.Dense(8, 32), nn.ReLU(), nn.Dense(32, 3))


def test_two_threads_train_at_once():
    """Each thread gets exactly what it would get alone."""
    alone = [train(make_net(seed), *make_problem(seed), 40) for seed in (1, 2)]
    nets = [make_net(seed) for seed in (1, 2)]
    together = [None, None]

    def work(place):
        together[place] = train(nets[place], *make_problem(place + 1), 40)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_gradient_scopes_belong_to_their_thread():
    inside, outside = threading.Event(), threading.Event()
    seen = []

    def watch():
        inside.wait()
        seen.append(ms._core.grad_enabled())
        outside.set()

    watcher = threading.Thread(target=watch)
    watcher.start()

    def function(x):
        inside.set()
        outside.wait()
        return (x * x).sum()

    assert ms.grad(function)(Tensor(3.0)).item() == 6.0
    watcher.join()
    assert seen == [False]


def test_fork_after_use():
    big = Tensor(np.ones((512, 512), np.float32))
    expected = ops.matmul(big, big).sum().item()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = int(ops.matmul(big, big).sum().item() != expected)
            os.write(writer, b"done")
        finally:
            os._exit(status)
    os.close(writer)
    assert os.read(reader, 4) == b"done"
    os.close(reader)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ops.matmul(big, big).sum().item() == expected


INTERRUPTED = textwrap.dedent("""
    import sys
    import numpy as np
    import morel as ms
    from morel import nn, ops
    net = nn.SequentialCell(nn.Dense(256, 256), nn.ReLU(), nn.Dense(256, 10))
    optimizer = nn.Adam(net.trainable_params(), 0.001)
    step = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, optimizer.parameters)
    x, y = ms.Tensor(np.ones((512, 256), np.float32)), ms.Tensor(np.zeros(512, np.int32))
    try:
        for count in range(1000000):
            loss, gradients = step(x, y)
            optimizer(gradients)
            if count % 10 == 0:
                ms.save_checkpoint(net, sys.argv[1])
                print(count, flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.exit(3)
""")


def test_interrupt_during_training(tmp_path):
    """Ctrl-C leaves through KeyboardInterrupt, and the checkpoint that lies there can be loaded."""
    checkpoint = tmp_path / "net.ckpt"
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(checkpoint)], stdout=subprocess.PIPE, text=True)
    for _ in range(3):
        assert process.stdout.readline().strip().isdigit()
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    assert process.wait(timeout=60) == 3 and rest.rstrip().endswith("interrupted")
    net = nn.SequentialCell(nn.Dense(256, 256), nn.ReLU(), nn.Dense(256, 10))
    assert ms.load_param_into_net(net, ms.load_checkpoint(str(checkpoint))) == ([], [])


def test_error_names_the_call_and_the_users_line():
    with pytest.raises(ValueError) as caught:
        ops.matmul(Tensor(np.ones((2, 3), np.float32)), Tensor(np.ones((4, 5), np.float32)))
    assert "call: matmul(f32[2,3]@CPU, f32[4,5]@CPU) at " in str(caught.value)
    assert "test_robustness.py:" in str(caught.value)


def test_import_is_light():
    """No NumPy, dataset or train module is loaded by `import morel`."""
    code = "import sys, morel; print([name for name in ('numpy', 'morel.dataset', 'morel.train', 'morel.nn') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
