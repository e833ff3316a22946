"""Model, callbacks, metrics, mixed precision, loss scales, settings; values and texts are those of MindSpore 2.8.0."""

import io
import os
import re
import subprocess
import sys
import time

import morel.dataset as ds
import numpy as np
import pytest
from morel.train import Model

import morel as ms
from morel import Tensor, amp, nn, train

X = np.random.RandomState(0).randn(10, 4).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int32)


@pytest.fixture(autouse=True)
def no_progress(monkeypatch):
    monkeypatch.setenv("MOREL_PROGRESS", "0")


def data(size=4):
    return ds.NumpySlicesDataset((X, Y), ["x", "y"], shuffle=False).batch(size)


def model(**arguments):
    ms.set_seed(1)
    net = nn.Dense(4, 2)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return Model(net, loss, nn.Momentum(net.trainable_params(), 0.1, 0.9), **arguments)


HOOKS = [
    f"on_{mode}{part}_{edge}"
    for mode in ("train", "eval")
    for part in ("", "_epoch", "_step")
    for edge in ("begin", "end")
]


class Recorder(train.Callback):
    """Notes each call: (hook, epoch, step, mode)."""

    def __init__(self):
        self.calls = []


for _hook in HOOKS:

    def _note(self, run_context, hook=_hook):
        args = run_context.original_args()
        self.calls.append((hook, args.get("cur_epoch_num"), args.get("cur_step_num"), args.get("mode")))

    setattr(Recorder, _hook, _note)


class OldRecorder(train.Callback):
    """The same with the older names."""

    def __init__(self):
        self.calls = []


for _hook in ("begin", "end", "epoch_begin", "epoch_end", "step_begin", "step_end"):
    setattr(OldRecorder, _hook, lambda self, run_context, hook=_hook: self.calls.append(hook))


def steps(mode, epoch, count, first=1):
    return [
        (f"on_{mode}_step_{edge}", epoch, step, mode)
        for step in range(first, first + count)
        for edge in ("begin", "end")
    ]


def test_order_of_hooks():
    new, old = Recorder(), OldRecorder()
    model().train(2, data(), callbacks=[new, old])
    assert new.calls == [
        ("on_train_begin", None, 0, "train"),
        ("on_train_epoch_begin", 1, 0, "train"),
        *steps("train", 1, 3),
        ("on_train_epoch_end", 1, 3, "train"),
        ("on_train_epoch_begin", 2, 3, "train"),
        *steps("train", 2, 3, 4),
        ("on_train_epoch_end", 2, 6, "train"),
        ("on_train_end", 2, 6, "train"),
    ]
    epoch = ["epoch_begin", *["step_begin", "step_end"] * 3, "epoch_end"]
    assert old.calls == ["begin", *epoch, *epoch, "end"]


def test_order_of_hooks_in_fit():
    recorder = Recorder()
    model(metrics={"acc", "loss"}).fit(1, data(), data(5), callbacks=recorder)
    assert recorder.calls == [
        ("on_train_begin", None, 0, "train"),
        ("on_train_epoch_begin", 1, 0, "train"),
        *steps("train", 1, 3),
        ("on_eval_begin", 1, 0, "eval"),
        ("on_eval_epoch_begin", 1, 0, "eval"),
        *steps("eval", 1, 2),
        ("on_eval_epoch_end", 1, 2, "eval"),
        ("on_eval_end", 1, 2, "eval"),
        ("on_train_epoch_end", 1, 3, "train"),
        ("on_train_end", 1, 3, "train"),
    ]


def test_what_callbacks_are_told():
    seen = {}

    class Look(train.Callback):
        def on_train_step_end(self, run_context):
            args = run_context.original_args()
            seen.update(args)
            assert args.cur_step_num == args["cur_step_num"] and isinstance(args.net_outputs, Tensor)

        def on_train_epoch_end(self, run_context):
            args = run_context.original_args()
            assert set(args.metrics) == {"acc", "loss"} and set(args.eval_results) == {"acc", "loss", "eval_loss"}

    trained = model(metrics={"acc", "loss"})
    trained.fit(1, data(), data(), callbacks=[Look()])
    for key in (
        "train_network",
        "network",
        "optimizer",
        "loss_fn",
        "train_dataset",
        "epoch_num",
        "batch_num",
        "mode",
        "parallel_mode",
        "device_number",
        "list_callback",
        "train_dataset_element",
    ):
        assert key in seen, key
    assert seen["batch_num"] == 3 and seen["mode"] == "train" and seen["train_network"] is trained.train_network
    assert [type(n).__name__ for n in (trained.train_network, trained.eval_network, trained.predict_network)] == [
        "TrainOneStepCell",
        "WithEvalCell",
        "Dense",
    ]


def test_training_learns_and_evaluates():
    trained = model(metrics={"acc", "loss"})
    before = trained.eval(data())
    trained.train(30, data())
    after = trained.eval(data())
    assert after["loss"] < before["loss"] and after["acc"] == 1.0
    assert trained.predict(Tensor(X)).shape == (10, 2)


def test_stop_request():
    class Stop(train.Callback):
        def step_end(self, run_context):
            run_context.request_stop()

    recorder = Recorder()
    model().train(3, data(), callbacks=[Stop(), recorder])
    assert [call[0] for call in recorder.calls] == [
        "on_train_begin",
        "on_train_epoch_begin",
        "on_train_step_begin",
        "on_train_step_end",
        "on_train_epoch_end",
        "on_train_end",
    ]


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda m: m.train(0, data()), ValueError),
        (lambda m: m.train("a", data()), TypeError),
        (lambda m: m.train(1, [1]), TypeError),
        (lambda m: m.train(1, data(), callbacks=[3]), TypeError),
        (lambda m: m.train(1, data(), dataset_sink_mode=3), TypeError),
        (lambda m: m.train(2, data(), initial_epoch=2), ValueError),
        (lambda m: model().eval(data()), ValueError),
        (lambda m: model(metrics={"zz"}), KeyError),
        (lambda m: model(metrics=["acc"]), TypeError),
        (lambda m: Model(3), TypeError),
        (lambda m: Model(nn.Dense(1, 1), 3), TypeError),
        (lambda m: model(foo=1), ValueError),
        (lambda m: model(amp_level="O5"), ValueError),
        (lambda m: Model(nn.Dense(4, 2), metrics={"loss"}), ValueError),
        (lambda m: model().fit(1, data(), data()), ValueError),
        (lambda m: m.fit(1, data(), data(), valid_frequency="a"), TypeError),
        (lambda m: m.train(1, ds.NumpySlicesDataset((X, Y, Y)).batch(5)), ValueError),
        (lambda m: m.train(1, ds.NumpySlicesDataset(X).batch(5)), ValueError),
        (lambda m: m.predict(Tensor(X), backend="lite"), NotImplementedError),
        (lambda m: m.predict(Tensor(X), backend="gpu"), ValueError),
    ],
)
def test_wrong_arguments(call, error):
    with pytest.raises(error):
        call(model(metrics={"acc"}))


def test_monitors(capsys):
    model(metrics={"acc"}).fit(1, data(), data(), callbacks=[train.LossMonitor(2), train.TimeMonitor()])
    out = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"epoch: 1 step: 2, loss is 0\.\d+", out[0])
    assert re.fullmatch(r"Eval epoch time: *\d+\.\d{3} ms, per step time: *\d+\.\d{3} ms", out[1])
    assert re.fullmatch(r"Eval result: epoch 1, metrics: {'acc': .*}", out[2])
    assert re.fullmatch(r"Train epoch time: *\d+\.\d{3} ms, per step time: *\d+\.\d{3} ms", out[3]) and len(out) == 4


def test_nan_ends_the_training():
    trained = model()
    trained.predict_network.weight.fill_(float("nan"))
    with pytest.raises(ValueError, match="loss is NAN or INF"):
        trained.train(1, data(), callbacks=train.LossMonitor())


def test_history_lambda_and_learning_rates():
    history, rates, epochs = train.History(), [], []
    trained = model(metrics={"acc"})
    trained.fit(
        2,
        data(),
        data(),
        callbacks=[
            history,
            train.LambdaCallback(
                on_train_epoch_end=lambda context: epochs.append(context.original_args().cur_epoch_num)
            ),
            train.LearningRateScheduler(lambda rate, step: rates.append((rate, step)) or rate * 0.5),
        ],
    )
    assert history.epoch == {"epoch": [1, 2]} and set(history.history) == {"net_output", "acc"}
    assert epochs == [1, 2]
    assert rates[:3] == [(0.1, 1), (0.05, 2), (0.025, 3)]
    with pytest.raises(TypeError):
        train.LambdaCallback(foo=1)


class Figures(train.Callback):
    """Sets the evaluation figures that other callbacks watch."""

    def __init__(self, values):
        self.values = list(values)

    def on_train_epoch_end(self, run_context):
        run_context.original_args()["eval_results"] = {"eval_loss": self.values.pop(0)}


def test_early_stopping(capsys):
    stopping = train.EarlyStopping(patience=2, verbose=True, restore_best_weights=True)
    recorder, trained = Recorder(), model()
    weights = []
    keep = train.LambdaCallback(
        on_train_epoch_end=lambda context: weights.append(trained.predict_network.weight.asnumpy().copy())
    )
    trained.train(10, data(), callbacks=[Figures([3.0, 2.0, 2.5, 2.1, 9, 9, 9]), keep, stopping, recorder])
    assert recorder.calls[-1][1] == 4 == stopping.stopped_epoch
    assert "Epoch 00004: early stopping" in capsys.readouterr().out
    assert np.array_equal(trained.predict_network.weight.asnumpy(), weights[1])
    for arguments, error in [
        (dict(mode="x"), ValueError),
        (dict(monitor=3), TypeError),
        (dict(patience=-1), ValueError),
    ]:
        with pytest.raises(error):
            train.EarlyStopping(**arguments)


def test_reduce_rate_on_plateau():
    plateau = train.ReduceLROnPlateau(factor=0.5, patience=2, min_lr=0.03)
    trained = model()
    rates = []
    look = train.LambdaCallback(
        on_train_epoch_end=lambda context: rates.append(float(trained._optimizer.learning_rate.item()))
    )
    trained.train(7, data(), callbacks=[Figures([3.0, 3, 3, 3, 3, 3, 3]), plateau, look])
    assert np.allclose(rates, [0.1, 0.1, 0.05, 0.05, 0.03, 0.03, 0.03])
    with pytest.raises(ValueError):
        train.ReduceLROnPlateau(factor=1.0)


# --- checkpoints during training ---


def saved(folder):
    return sorted(os.listdir(folder))


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (dict(), ["CKP-1_2", "CKP-1_3", "CKP-2_1", "CKP-2_2", "CKP-2_3"]),
        (dict(save_checkpoint_steps=2), ["CKP-1_2", "CKP-2_1", "CKP-2_3"]),
        (dict(save_checkpoint_steps=4), ["CKP-2_1", "CKP-2_3"]),
        (dict(save_checkpoint_steps=2, keep_checkpoint_max=1), ["CKP-2_3"]),
        (dict(save_checkpoint_steps=3, async_save=True), ["CKP-1_3", "CKP-2_3"]),
    ],
)
def test_model_checkpoint(tmp_path, arguments, expected):
    callback = train.ModelCheckpoint(directory=str(tmp_path / "new"), config=train.CheckpointConfig(**arguments))
    trained = model()
    trained.train(2, data(), callbacks=callback)
    assert saved(tmp_path / "new") == [name + ".ckpt" for name in expected]
    assert callback.latest_ckpt_file_name == os.path.realpath(tmp_path / "new" / "CKP-2_3.ckpt")
    loaded = ms.load_checkpoint(callback.latest_ckpt_file_name)
    assert list(loaded)[:2] == ["weight", "bias"] and "moments.weight" in loaded and "learning_rate" in loaded
    assert ms.load_param_into_net(trained.train_network, loaded) == ([], [])


def test_model_checkpoint_again_and_extras(tmp_path):
    config = train.CheckpointConfig(
        append_info=["epoch_num", "step_num", {"a": 1.5}], format="safetensors", save_checkpoint_steps=3
    )
    for _ in range(2):
        model().train(1, data(), callbacks=train.ModelCheckpoint("net", str(tmp_path), config))
    assert saved(tmp_path) == ["net-1_3.safetensors", "net_1-1_3.safetensors"]
    loaded = ms.load_checkpoint(str(tmp_path / "net-1_3.safetensors"), format="safetensors")
    assert [float(loaded[name]) for name in ("epoch_num", "step_num", "a")] == [1, 3, 1.5]
    for wrong, error in [
        (dict(save_checkpoint_steps=-1), ValueError),
        (dict(save_checkpoint_steps="a"), TypeError),
        (dict(append_info=3), TypeError),
        (dict(append_info=["foo"]), ValueError),
        (dict(async_save="x"), ValueError),
        (dict(saved_network=3), TypeError),
        (dict(enc_key=b"0" * 16), NotImplementedError),
    ]:
        with pytest.raises(error):
            train.CheckpointConfig(**wrong)
    for arguments, error in [(("a/b",), ValueError), ((3,), ValueError), (("a", None, 3), TypeError)]:
        with pytest.raises(error):
            train.ModelCheckpoint(*arguments)


def test_resuming_gives_the_same_parameters(tmp_path):
    whole = model()
    whole.train(4, data())
    first = model()
    first.train(2, data(), callbacks=train.ModelCheckpoint("c", str(tmp_path)))
    second = model()
    ms.load_checkpoint(str(tmp_path / "c-2_3.ckpt"), net=second.train_network)
    second.train(4, data(), initial_epoch=2)
    assert np.array_equal(whole.predict_network.weight.asnumpy(), second.predict_network.weight.asnumpy())


def test_exception_saves_and_waits(tmp_path):
    class Boom(train.Callback):
        def step_end(self, run_context):
            if run_context.original_args().cur_step_num == 2:
                raise KeyboardInterrupt

    config = train.CheckpointConfig(save_checkpoint_steps=100, exception_save=True)
    with pytest.raises(KeyboardInterrupt):
        model().train(1, data(), callbacks=[train.ModelCheckpoint("c", str(tmp_path), config), Boom()])
    assert saved(tmp_path) == ["c-1_2_breakpoint.ckpt"]


TRAINING = """
import numpy as np, morel as ms, morel.dataset as ds
from morel import nn
from morel.train import *
net = nn.Dense(400, 400)
x = np.ones((64, 400), np.float32)
data = ds.NumpySlicesDataset((x, x)).batch(8)
model = Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.001, 0.9))
config = CheckpointConfig(save_checkpoint_steps=1, keep_checkpoint_max=3)
callbacks = [ModelCheckpoint("c", {folder!r}, config){more}]
print("begin", flush=True)
model.train(100000, data, callbacks=callbacks)
print("end", flush=True)
"""


def test_interrupted_training_leaves_usable_checkpoints(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(TRAINING.format(folder=str(tmp_path / "out"), more=", ProgressBar()"))
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.time() + 60
    while len(os.listdir(tmp_path / "out") if os.path.isdir(tmp_path / "out") else []) < 3 and time.time() < deadline:
        time.sleep(0.05)
    process.send_signal(2)
    out, error = process.communicate(timeout=60)
    assert out == "begin\n" and error.rstrip().endswith("KeyboardInterrupt")
    files = os.listdir(tmp_path / "out")
    assert files and all(name.endswith(".ckpt") for name in files), files
    for name in files:
        assert ms.load_checkpoint(str(tmp_path / "out" / name))["weight"].shape == (400, 400)


def test_exit_on_request(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        TRAINING.format(
            folder=str(tmp_path / "out"), more=f", OnRequestExit(file_name='n', directory={str(tmp_path)!r})"
        )
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    deadline = time.time() + 60
    while not os.path.isdir(tmp_path / "out") or not os.listdir(tmp_path / "out") and time.time() < deadline:
        time.sleep(0.05)
    process.terminate()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and out == "begin\nend\n"
    assert "weight" in ms.load_checkpoint(str(tmp_path / "n_train.ckpt"))


# --- the progress bar ---


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_bar():
    terminal, pipe = Terminal(), io.StringIO()
    trained = model(metrics={"acc"})
    trained.fit(2, data(), data(), callbacks=[train.ProgressBar(0, terminal), train.ProgressBar(file=pipe)])
    lines = pipe.getvalue().splitlines()
    assert len(lines) == 2 and lines[1].startswith("epoch 2/2 3/3 [========================]  loss 0.")
    assert "rows/s" in lines[0] and "acc " in lines[0]
    assert "\repoch 1/2 1/3 [========>" in terminal.getvalue() and "\reval 3/3" in terminal.getvalue()
    assert terminal.getvalue().count("\n") == 2
    pipe = io.StringIO()
    trained.eval(data(), callbacks=train.ProgressBar(file=pipe))
    assert re.match(r"eval 3/3 .*acc \d", pipe.getvalue())


def test_progress_bar_by_default(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.delenv("MOREL_PROGRESS")
    model().train(1, data())
    assert "epoch 1/1 3/3" in shown.getvalue()
    shown.truncate(0)
    model().train(1, data(), callbacks=train.LossMonitor(1000))
    assert not shown.getvalue().strip("\0")


# --- metrics ---

P = np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]], np.float32)
LABELS, ONE_HOT = np.array([1, 0, 1]), np.array([[0, 1], [1, 0], [0, 1]])
MULTI = np.array([[0, 1], [1, 0], [1, 1]]), np.array([[0, 1], [1, 1], [1, 1]])
TOP = np.random.RandomState(0).rand(4, 7).astype(np.float32), np.array([1, 2, 3, 0])


def measured(metric, *batches):
    metric.clear()
    for batch in batches:
        metric.update(*(Tensor(x) if isinstance(x, np.ndarray) else x for x in batch))
    return metric.eval()


@pytest.mark.parametrize(
    "metric, batches, expected",
    [
        (train.Accuracy(), [(P, LABELS), (P, ONE_HOT)], 2 / 3),
        (train.Accuracy("multilabel"), [MULTI], 2 / 3),
        (train.Precision(), [(P, LABELS)], [0.5, 1.0]),
        (train.Recall(), [(P, LABELS)], [1.0, 0.5]),
        (train.Recall("multilabel"), [MULTI], [1.0, 0.5, 1.0]),
        (train.Precision("multilabel"), [MULTI], [1.0, 1.0, 1.0]),
        (train.F1(), [(P, LABELS)], [2 / 3, 2 / 3]),
        (train.Fbeta(2), [(P, LABELS)], [0.83333333, 0.55555556]),
        (train.MAE(), [(np.array([1.0, 2.0]), np.array([1.0, 4.0])), (np.array([1.0]), np.array([2.0]))], 1.0),
        (train.MSE(), [(np.array([1.0, 2.0]), np.array([1.0, 4.0])), (np.array([1.0]), np.array([2.0]))], 5 / 3),
        (train.Loss(), [(np.array(1.0),), (np.array([3.0]),)], 2.0),
        (train.Loss(), [(np.array([1.0, 2.0]),)], 1.5),
        (train.TopKCategoricalAccuracy(2), [TOP], 0.5),
        (train.Top1CategoricalAccuracy(), [TOP], 0.25),
        (train.Top5CategoricalAccuracy(), [TOP], 0.75),
        (train.ConfusionMatrix(2), [(np.array([1, 0, 1, 0]), np.array([1, 0, 0, 1]))], [[1, 1], [1, 1]]),
        (
            train.ConfusionMatrix(2, "target"),
            [(np.array([1, 0, 1, 0]), np.array([1, 0, 0, 0]))],
            [[2 / 3, 1 / 3], [0, 1]],
        ),
        (
            train.ConfusionMatrix(2, threshold=0.6),
            [(np.array([0.7, 0.1, 0.9, 0.5]), np.array([1, 0, 0, 1]))],
            [[1, 1], [1, 1]],
        ),
        (train.CosineSimilarity(), [(np.array([[1.0, 2.0], [3.0, 4.0]]),)], [[0, 0.98386991], [0.98386991, 0]]),
        (train.Perplexity(), [(P, LABELS)], 2.2314431850023855),
        (train.Perplexity(0), [(P, LABELS)], 1.8257418694340384),
        (train.Dice(), [(np.array([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), ONE_HOT)], 0.2046779137180255),
    ],
)
def test_metric_values(metric, batches, expected):
    assert np.allclose(measured(metric, *batches), expected, rtol=1e-6)


def test_more_metric_values():
    rates = measured(train.ROC(pos_label=1), (np.array([3, 1, 4, 2]), np.array([0, 1, 0, 1])))
    assert [part.tolist() for part in rates] == [[0, 0.5, 1, 1, 1], [0, 0, 0, 0.5, 1], [5, 4, 3, 2, 1]]
    assert train.auc(np.array([0, 0.5, 1.0]), np.array([0, 0.8, 1.0])) == 0.65
    words = "i have a pen on my desk".split()
    references = ["i have a pen in my desk".split(), "there is a pen on the desk".split()]
    assert np.isclose(measured(train.BleuScore(), ([words], [references])), 0.5946035575013605)
    metric = train.Precision()
    measured(metric, (P, LABELS))
    assert metric.eval(True) == 0.75


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: train.Accuracy("x"), TypeError),
        (lambda: measured(train.Accuracy()), RuntimeError),
        (lambda: measured(train.Accuracy(), (P,)), ValueError),
        (lambda: measured(train.Accuracy(), (P, np.array([1, 0]))), ValueError),
        (lambda: measured(train.Accuracy(), (P, LABELS), (np.ones((1, 3)), np.array([1]))), ValueError),
        (lambda: measured(train.Accuracy(), ("a", "b")), TypeError),
        (lambda: train.Fbeta(0), ValueError),
        (lambda: train.TopKCategoricalAccuracy(0), ValueError),
        (lambda: train.TopKCategoricalAccuracy(1.5), TypeError),
        (lambda: measured(train.Loss(), (np.array(1.0), np.array(2.0))), ValueError),
        (lambda: train.get_metric_fn("zz"), KeyError),
        (lambda: train.ConfusionMatrix(2, "x"), ValueError),
        (lambda: train.Metric(), TypeError),
        (lambda: train.Accuracy().set_indexes([1, "a"]), ValueError),
        (lambda: train.HausdorffDistance(), NotImplementedError),
    ],
)
def test_metric_errors(call, error):
    with pytest.raises(error):
        call()


def test_metric_indexes_and_names():
    metric = train.Accuracy().set_indexes([1, 0])
    assert np.isclose(measured(metric, (LABELS, P)), 2 / 3) and metric.indexes == [1, 0]
    assert "acc" in train.names() and isinstance(train.get_metric_fn("acc"), train.Accuracy)


# --- mixed precision and loss scales ---


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(4, 8)
        self.norm = nn.LayerNorm((8,))
        self.last = nn.Dense(8, 2)
        self.seen = []

    def construct(self, x):
        a = self.first(x)
        b = self.norm(a)
        c = self.last(b)
        self.seen = [str(t.dtype) for t in (a, b, c)]
        return c


@pytest.mark.parametrize(
    "level, inside",
    [("O0", ["Float32"] * 3), ("O1", ["Float32"] * 3), ("O2", ["Float16"] * 3), ("O3", ["Float16"] * 3)],
)
def test_amp_levels(level, inside):
    ms.set_seed(0)
    plain, net = Net(), amp.auto_mixed_precision(Net(), level)
    ms.load_param_into_net(net, plain.parameters_dict())
    out = net(Tensor(X))
    assert out.dtype == ms.float32 and net.seen == inside
    assert all(param.dtype == ms.float32 for param in net.get_parameters())
    difference = np.abs(out.asnumpy() - plain(Tensor(X)).asnumpy()).max()
    assert difference == 0 if level == "O0" else 0 < difference < 0.02


def test_amp_arguments():
    for call, error in [
        (lambda: amp.auto_mixed_precision(Net(), "O4"), ValueError),
        (lambda: amp.auto_mixed_precision(3, "O1"), TypeError),
        (lambda: amp.auto_mixed_precision(Net(), "O1", ms.float32), ValueError),
        (lambda: amp.custom_mixed_precision(Net()), ValueError),
        (lambda: amp.custom_mixed_precision(Net(), white_list=[nn.Dense], black_list=[nn.Dense]), ValueError),
        (lambda: amp.build_train_network(3, 4), TypeError),
    ]:
        with pytest.raises(error):
            call()
    net = amp.custom_mixed_precision(Net(), black_list=[nn.LayerNorm])
    net(Tensor(X))
    assert net.seen == ["Float16"] * 3


@pytest.mark.parametrize(
    "arguments, cell",
    [
        (dict(), "TrainOneStepCell"),
        (dict(amp_level="O2"), "TrainOneStepWithLossScaleCell"),
        (dict(loss_scale_manager=amp.FixedLossScaleManager(16.0)), "TrainOneStepWithLossScaleCell"),
        (dict(loss_scale_manager=amp.FixedLossScaleManager(1.0, False)), "TrainOneStepCell"),
        (dict(loss_scale_manager=amp.DynamicLossScaleManager(2**10)), "TrainOneStepWithLossScaleCell"),
        (dict(amp_level="O3"), "TrainOneStepCell"),
    ],
)
def test_training_with_loss_scale(arguments, cell):
    trained = model(metrics={"loss"}, **arguments)
    assert type(trained.train_network).__name__ == cell
    before = trained.eval(data())["loss"]
    trained.train(20, data(), callbacks=train.LossMonitor(0))
    assert trained.eval(data())["loss"] < before


def test_loss_scalers():
    scaler = amp.DynamicLossScaler(scale_value=2**10, scale_factor=2, scale_window=2)
    assert float(scaler.scale(Tensor(2.0))) == 2048
    assert [float(x) for x in scaler.unscale((Tensor(1024.0), Tensor(512.0)))] == [1, 0.5]
    course = []
    for finite in (True, True, True, False, False, False):
        assert bool(scaler.adjust(Tensor(finite)))
        course.append((float(scaler.scale_value), int(scaler.counter)))
    assert course == [(1024, 1), (2048, 0), (2048, 1), (1024, 0), (512, 0), (256, 0)]
    assert float(amp.StaticLossScaler(8).scale(Tensor(2.0))) == 16
    assert bool(amp.all_finite([Tensor([1.0])])) and not bool(amp.all_finite((Tensor([1.0]), Tensor([np.inf]))))
    manager = amp.DynamicLossScaleManager(2**8, 2, 2)
    scales = []
    for overflow in (False, False, True, False):
        manager.update_loss_scale(overflow)
        scales.append(manager.get_loss_scale())
    assert scales == [256, 512, 256, 256]
    for call, error in [
        (lambda: amp.DynamicLossScaler(0, 2, 2), ValueError),
        (lambda: amp.DynamicLossScaler(4, 2, 0), ValueError),
        (lambda: amp.DynamicLossScaler("a", 2, 2), TypeError),
        (lambda: amp.FixedLossScaleManager(0.5), ValueError),
        (lambda: amp.DynamicLossScaleManager(2, 2, "a"), TypeError),
        (lambda: amp.all_finite(3), TypeError),
    ]:
        with pytest.raises(error):
            call()


# --- settings ---


def test_context():
    threads = ms.get_context("runtime_num_threads")
    try:
        ms.set_context(
            mode=ms.PYNATIVE_MODE, device_target="CPU", device_id=0, runtime_num_threads=1, max_device_memory="3.5GB"
        )
        assert [
            ms.get_context(key) for key in ("mode", "device_target", "runtime_num_threads", "max_device_memory")
        ] == [1, "CPU", 1, 3.5]
    finally:
        ms.set_context(runtime_num_threads=threads)
    for arguments, error in [
        (dict(mode=2), ValueError),
        (dict(mode="a"), TypeError),
        (dict(device_target="TPU"), ValueError),
        (dict(device_target="Ascend"), RuntimeError),
        (dict(device_id=-1), ValueError),
        (dict(foo=1), ValueError),
        (dict(runtime_num_threads=-1), ValueError),
        (dict(deterministic="x"), ValueError),
        (dict(pynative_synchronize="a"), TypeError),
        (dict(save_graphs=4), ValueError),
        (dict(jit_config={"a": 1}), ValueError),
        (dict(max_call_depth=0), ValueError),
    ]:
        with pytest.raises(error):
            ms.set_context(**arguments)
    with pytest.raises(ValueError):
        ms.get_context("foo")
    ms.set_device("CPU", 0)
    assert ms.get_current_device() == ("CPU", 0)
    ms.set_auto_parallel_context(device_num=2)
    ms.reset_auto_parallel_context()
    assert ms.get_auto_parallel_context("device_num") == 1


def test_graph_mode_compiles_cells_and_gradients():
    net = nn.Dense(4, 2)
    wanted = net(Tensor(X)).asnumpy()
    gradient = ms.grad(lambda x: net(x).sum())
    slope = gradient(Tensor(X)).asnumpy()
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        assert (Tensor(X) + 1).shape == (10, 4)
        np.testing.assert_array_equal(net(Tensor(X)).asnumpy(), wanted)
        np.testing.assert_array_equal(gradient(Tensor(X)).asnumpy(), slope)
        net.compile(Tensor(X[:3]))
        np.testing.assert_allclose(net.compile_and_run(Tensor(X[:3])).asnumpy(), wanted[:3], rtol=1e-5)
        assert net._compiled_call.compiled == 1  # for both batches
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert net(Tensor(X)).shape == (10, 2)


def test_seed_and_memory():
    ms.set_seed(5)
    first = np.random.rand(), nn.Dense(4, 2).weight.asnumpy()
    ms.set_seed(5)
    assert (
        ms.get_seed() == 5
        and first[0] == np.random.rand()
        and np.array_equal(first[1], nn.Dense(4, 2).weight.asnumpy())
    )
    for wrong, error in ((-1, ValueError), ("a", TypeError), (2**32, ValueError), (1.5, TypeError)):
        with pytest.raises(error):
            ms.set_seed(wrong)
    before = ms.runtime.memory_allocated()
    kept = Tensor(np.zeros(1 << 20, np.float32)) + 1
    assert ms.runtime.memory_allocated() - before >= 4 << 20 and ms.hal.max_memory_allocated() >= 4 << 20
    assert "Allocated memory" in ms.runtime.memory_summary() and kept.size == 1 << 20
    ms.runtime.synchronize()
    assert ms.hal.device_count() == 1 and not ms.hal.is_available("GPU")


def test_run_check(capsys):
    ms.run_check()
    assert capsys.readouterr().out.splitlines() == [
        f"Morel version:  {ms.__version__}",
        "The result of multiplication calculation is correct, Morel has been installed on platform [CPU] successfully!",
    ]


def test_data_sink_and_helper():
    calls = []
    step = train.data_sink(lambda x, y: calls.append(x.shape) or len(calls), data(5), sink_size=2)
    assert step() == 2 and step() == 4
    helper = train.DatasetHelper(data(5), dataset_sink_mode=False)
    assert len([row for row in helper]) == 2
