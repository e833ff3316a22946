"""The progress bar."""

import os
import sys
import time

from morel.train.callback._callback import Callback, loss_value

__all__ = ["ProgressBar"]

_WIDTH = 24


def _clock(seconds):
    seconds = int(seconds)
    return (
        f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        if seconds >= 3600
        else (f"{seconds // 60}:{seconds % 60:02d}")
    )


class ProgressBar(Callback):
    """Shows step, loss, speed and remaining time of each epoch in one line of the terminal.

    Without a terminal (a file, a pipe) it writes one line per epoch. Model shows one of its own accord on a terminal if no
    callback of the training prints; the environment variable MOREL_PROGRESS=0 forbids that, 1 demands it.

    Args:
        refresh (float): seconds between changes of the line. Default ``0.1``.
        file (file): where to. Default: standard error.
    """

    def __init__(self, refresh=0.1, file=None):
        super().__init__()
        if not isinstance(refresh, (int, float)) or refresh < 0:
            raise ValueError(f"The 'refresh' must be a number that is not negative, but got {refresh}.")
        self.refresh = refresh
        self._file = file
        self._shown = ""

    def _out(self):
        return self._file or sys.stderr

    def _is_terminal(self):
        return getattr(self._out(), "isatty", lambda: False)()

    def _show(self, text, last=False):
        """Puts `text` in the place of what is shown; a last one stays."""
        if not self._is_terminal():
            if last:
                self._out().write(text + "\n")
                self._out().flush()
            return
        self._out().write("\r" + text + " " * max(len(self._shown) - len(text), 0) + ("\n" if last else ""))
        self._out().flush()
        self._shown = "" if last else text

    def _start(self, run_context):
        self._first = run_context.original_args().cur_step_num
        self._began = self._last = time.perf_counter()
        self._count = 0

    on_train_epoch_begin = _start

    def _text(self, args, name, final):
        steps, total = args.cur_step_num - self._first, args.batch_num
        seconds = max(time.perf_counter() - self._began, 1e-9)
        filled = _WIDTH if total <= 0 else min(_WIDTH * steps // total, _WIDTH)
        bar = "=" * filled + (">" if filled < _WIDTH else "") + "." * (_WIDTH - filled - 1)
        parts = [f"{name} {steps:>{len(str(total))}}/{total} [{bar}]"]
        loss = loss_value(args.get("net_outputs"))
        if isinstance(loss, float):
            parts.append(f"loss {loss:.4f}")
        parts.append(f"{self._count / seconds:,.0f} rows/s")
        parts.append(
            _clock(seconds) if final or not steps else f"{_clock(seconds)}<{_clock(seconds / steps * (total - steps))}"
        )
        return "  ".join(parts)

    @staticmethod
    def _rows(args):
        element = args.get("train_dataset_element" if args.mode == "train" else "eval_dataset_element")
        first = element[0] if isinstance(element, (list, tuple)) and element else None
        return first.shape[0] if getattr(first, "ndim", 0) else 1

    def _step(self, run_context, name):
        now = time.perf_counter()
        self._count += self._rows(run_context.original_args())
        if now - self._last >= self.refresh and self._is_terminal():
            self._last = now
            self._show(self._text(run_context.original_args(), name, False))

    def on_train_step_end(self, run_context):
        """Shows the step."""
        args = run_context.original_args()
        self._step(run_context, f"epoch {args.cur_epoch_num}/{self._last_epoch(args)}")

    @staticmethod
    def _last_epoch(args):
        return args.get("epoch_num", 0) + args.get("initial_epoch", 0)

    def on_eval_step_end(self, run_context):
        """Shows the step."""
        self._step(run_context, "eval")

    def on_train_epoch_end(self, run_context):
        """Leaves the line of the epoch."""
        args = run_context.original_args()
        text = self._text(args, f"epoch {args.cur_epoch_num}/{self._last_epoch(args)}", True)
        for name, value in (args.get("metrics") or {}).items():
            text += f"  {name} {value:.4f}" if isinstance(value, float) else f"  {name} {value}"
        self._show(text, last=True)

    def on_eval_epoch_begin(self, run_context):
        """Keeps the times of the training epoch around."""
        self._saved = getattr(self, "_first", 0), getattr(self, "_began", 0.0), getattr(self, "_count", 0)
        self._start(run_context)

    def on_eval_end(self, run_context):
        """Takes the line away; `Model.fit` shows the metrics in the line of the epoch, `Model.eval` in one of its own."""
        args = run_context.original_args()
        if "cur_epoch_num" not in args:
            text = self._text(args, "eval", True)
            for name, value in (args.get("metrics") or {}).items():
                text += f"  {name} {value:.4f}" if isinstance(value, float) else f"  {name} {value}"
            self._show(text, last=True)
        time_of_evaluation = time.perf_counter() - self._began
        self._first, self._began, self._count = self._saved
        self._began += time_of_evaluation

    def __exit__(self, *err):
        if self._shown:  # interrupted: the next output starts in a line of its own
            self._out().write("\n")
            self._out().flush()
            self._shown = ""


def wanted_by_default(callbacks):
    """Whether Model should show a progress bar of its own accord."""
    setting = os.environ.get("MOREL_PROGRESS", "")
    if any(isinstance(callback, ProgressBar) for callback in callbacks) or setting == "0":
        return False
    if setting == "1":
        return True
    from morel.train.callback._monitor import LossMonitor, TimeMonitor

    return (
        sys.stderr is not None
        and sys.stderr.isatty()
        and not any(isinstance(callback, (LossMonitor, TimeMonitor)) for callback in callbacks)
    )
