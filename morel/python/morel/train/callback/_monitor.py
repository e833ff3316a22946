"""Callbacks that report: losses, times, metrics."""

import math
import time

from morel.train._check import int_at_least, is_bool
from morel.train.callback._callback import _HOOKS, Callback, loss_value

__all__ = ["LossMonitor", "TimeMonitor", "History", "LambdaCallback"]


class LossMonitor(Callback):
    """Prints the loss; ends the training with an error when it is no finite number.

    Args:
        per_print_times (int): print at every so many steps; 0: never. Default ``1``.

    Raises:
        ValueError: the loss is NaN or infinite.
    """

    def __init__(self, per_print_times=1):
        int_at_least(per_print_times, 0)
        self._per_print_times = per_print_times
        self._last_print_time = 0

    def on_train_begin(self, run_context):
        """Starts counting anew."""
        self._last_print_time = 0

    def step_end(self, run_context):
        """Prints the loss."""
        args = run_context.original_args()
        due = self._per_print_times and args.cur_step_num - self._last_print_time >= self._per_print_times
        loss = loss_value(args.net_outputs)
        epoch = args.get("cur_epoch_num", 1)
        step = (args.cur_step_num - 1) % args.batch_num + 1
        if isinstance(loss, float) and not math.isfinite(loss):
            raise ValueError(
                f"In epoch: {epoch} step: {step}, loss is NAN or INF, training process cannot continue, "
                f"terminating training."
            )
        if due:
            self._last_print_time = args.cur_step_num
            print(f"epoch: {epoch} step: {step}, loss is {loss}", flush=True)

    def on_eval_step_end(self, run_context):
        """Evaluations are not reported step by step."""

    def on_train_epoch_end(self, run_context):
        """Prints the metrics of `Model.fit`."""
        args = run_context.original_args()
        if args.get("metrics"):
            print(f"Eval result: epoch {args.cur_epoch_num}, metrics: {args.metrics}")


class TimeMonitor(Callback):
    """Prints the time of each epoch and the mean time of its steps.

    Args:
        data_size (int, optional): steps per epoch. Default: those of the dataset.
        data_time (bool): also print how long steps waited for data. Default ``False``.
    """

    def __init__(self, data_size=None, data_time=False):
        is_bool(data_time, "data_time")
        self.data_size = data_size
        self.data_time = data_time
        self.epoch_time = time.time()
        self._waited = self._last_end = 0.0

    def epoch_begin(self, run_context):
        """Takes the time."""
        self.epoch_time = self._last_end = time.time()
        self._waited = 0.0

    def on_train_step_begin(self, run_context):
        """Data has come."""
        self._waited += time.time() - self._last_end

    def on_train_step_end(self, run_context):
        """From here on, the next step waits for data."""
        self._last_end = time.time()

    def epoch_end(self, run_context):
        """Prints the times."""
        args = run_context.original_args()
        milliseconds = (time.time() - self.epoch_time) * 1000
        steps = args.get("batch_num")
        steps = steps if isinstance(steps, int) and steps > 0 else self.data_size
        int_at_least(steps, 1)
        text = f"{args.get('mode', '').title()} epoch time: {milliseconds:5.3f} ms, per step time: {milliseconds / steps:5.3f} ms"
        if self.data_time:
            text += f" (data time: {self._waited * 1000 / steps:5.3f} ms)"
        print(text, flush=True)


class History(Callback):
    """Keeps the last loss and the metrics of each epoch in the dicts `epoch` and `history`."""

    def __init__(self):
        super().__init__()
        self.history = {}
        self.epoch = {"epoch": []}

    def begin(self, run_context):
        """Forgets an earlier training."""
        self.epoch = {"epoch": []}
        self.history = {}

    def on_eval_begin(self, run_context):
        """Evaluations during a training are part of it."""

    def epoch_end(self, run_context):
        """Keeps the figures of the epoch."""
        args = run_context.original_args()
        self.epoch["epoch"].append(args.get("cur_epoch_num", 1))
        outputs = args.get("net_outputs")
        if isinstance(outputs, (tuple, list)):
            outputs = outputs[0] if outputs else None
        if hasattr(outputs, "asnumpy"):
            outputs = outputs.float().asnumpy().mean()
        self.history.setdefault("net_output", []).append(outputs)
        for name, value in (args.get("metrics") or {}).items():
            self.history.setdefault(name, []).append(value)

    def on_eval_epoch_end(self, run_context):
        """Metrics are kept at the end of the training epoch."""


class LambdaCallback(Callback):
    """A callback made of functions.

    Args:
        on_train_begin, on_train_epoch_begin, on_train_step_begin ... on_eval_end (Callable, optional): called with the
            RunContext at that time.
    """

    def __init__(
        self,
        on_train_epoch_begin=None,
        on_train_epoch_end=None,
        on_train_step_begin=None,
        on_train_step_end=None,
        on_train_begin=None,
        on_train_end=None,
        on_eval_epoch_begin=None,
        on_eval_epoch_end=None,
        on_eval_step_begin=None,
        on_eval_step_end=None,
        on_eval_begin=None,
        on_eval_end=None,
    ):
        super().__init__()
        functions = locals()
        for hook in _HOOKS:
            setattr(self, hook, functions[hook] or (lambda run_context: None))


# The hooks above are set on objects; this tells CallbackList that the class has them.
for _hook in _HOOKS:
    setattr(LambdaCallback, _hook, lambda self, run_context: None)
