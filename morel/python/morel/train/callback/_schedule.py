"""Callbacks that steer a training: early end, learning rate."""

import math
import warnings

from morel.train._check import int_at_least, is_bool, number
from morel.train.callback._callback import Callback, loss_value

__all__ = ["EarlyStopping", "ReduceLROnPlateau", "LearningRateScheduler"]


class _Monitor(Callback):
    """Base of the callbacks that watch whether a figure improves."""

    def __init__(self, monitor, min_delta, patience, verbose, mode):
        super().__init__()
        if not isinstance(monitor, str):
            raise TypeError(f"The 'monitor' must be str, but got {type(monitor).__name__}.")
        self.monitor = monitor
        self.min_delta = abs(number(min_delta, "min_delta"))
        self.patience = int_at_least(patience, 0, "patience")
        self.verbose = is_bool(verbose, "verbose")
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"mode should be 'auto', 'min' or 'max', but got {mode}.")
        self.mode = mode
        # Without being told, what sounds like accuracy should grow and everything else shrink.
        self._sign = 1 if mode == "max" or (mode == "auto" and "acc" in monitor) else -1
        self.best = -self._sign * math.inf
        self.wait = 0

    def _improves(self, value, reference):
        return self._sign * (value - reference) > self.min_delta

    def _current(self, run_context):
        """The watched figure, `None` if this epoch has none."""
        args = run_context.original_args()
        known = dict(args.get("eval_results") or {})
        if self.monitor == "loss":
            known["loss"] = loss_value(args.get("net_outputs"))
        value = known.get(self.monitor)
        if value is None:
            warnings.warn(
                f"'{type(self).__name__}' watches '{self.monitor}', which is not available; available are "
                f"{sorted(known)}.",
                stacklevel=2,
            )
            return None
        if not isinstance(value, (int, float)):
            try:
                value = float(value)
            except (TypeError, ValueError):
                raise ValueError(f"{type(self).__name__} only supports scalar monitor now.") from None
        return value


class EarlyStopping(_Monitor):
    """Ends a training when a figure has not improved for `patience` epochs.

    Args:
        monitor (str): ``"loss"``, ``"eval_loss"`` or the name of a metric of `Model.fit`. Default ``"eval_loss"``.
        min_delta (float): smaller changes are no improvement. Default ``0``.
        patience (int): epochs to wait. Default ``0``.
        verbose (bool): print when it ends. Default ``False``.
        mode (str): ``"min"``, ``"max"`` or ``"auto"``: by the name. Default ``"auto"``.
        baseline (float, optional): only figures better than this count as improvement.
        restore_best_weights (bool): go back to the parameters of the best epoch. Default ``False``.
    """

    def __init__(
        self,
        monitor="eval_loss",
        min_delta=0,
        patience=0,
        verbose=False,
        mode="auto",
        baseline=None,
        restore_best_weights=False,
    ):
        super().__init__(monitor, min_delta, patience, verbose, mode)
        self.baseline = None if baseline is None else number(baseline, "baseline")
        self.restore_best_weights = is_bool(restore_best_weights, "restore_best_weights")
        self.stopped_epoch = 0
        self.best_weights_param_dict = None

    def on_train_begin(self, run_context):
        """Starts anew."""
        self.wait = self.stopped_epoch = 0
        self.best = -self._sign * math.inf
        self.best_weights_param_dict = None

    def on_train_epoch_end(self, run_context):
        """Looks at the figure."""
        args = run_context.original_args()
        value = self._current(run_context)
        if value is None:
            return
        if self.restore_best_weights and self.best_weights_param_dict is None:
            self._keep(args)
        self.wait += 1
        if self._improves(value, self.best):
            self.best = value
            if self.restore_best_weights:
                self._keep(args)
            if self.baseline is None or self._improves(value, self.baseline):
                self.wait = 0
        if self.wait >= self.patience:
            self.stopped_epoch = args.get("cur_epoch_num", 1)
            run_context.request_stop()
            if self.restore_best_weights and self.best_weights_param_dict is not None:
                if self.verbose:
                    print("Restoring model weights from the end of the best epoch.")
                for param in args.train_network.get_parameters():
                    if param.name in self.best_weights_param_dict:
                        param.set_data(self.best_weights_param_dict[param.name])

    def _keep(self, args):
        self.best_weights_param_dict = {p.name: p.value().copy() for p in args.train_network.get_parameters()}

    def on_train_end(self, run_context):
        """Says whether it ended the training."""
        if self.stopped_epoch > 0 and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping")


def _fixed_rate(args, who):
    """The optimizer's learning rate, a Parameter."""
    optimizer = args.get("optimizer") or getattr(args.get("train_network"), "optimizer", None)
    if optimizer is None:
        raise ValueError(f"{who} needs an optimizer.")
    if optimizer.dynamic_lr or optimizer.is_group_lr:
        raise ValueError(f"{who} does not support dynamic learning rate and group learning rate now.")
    return optimizer.learning_rate


class ReduceLROnPlateau(_Monitor):
    """Multiplies the learning rate by `factor` when a figure has not improved for `patience` epochs.

    Args:
        monitor (str): as in EarlyStopping. Default ``"eval_loss"``.
        factor (float): below 1. Default ``0.1``.
        patience (int): epochs to wait. Default ``10``.
        verbose (bool): print the new rate. Default ``False``.
        mode (str): ``"min"``, ``"max"`` or ``"auto"``. Default ``"auto"``.
        min_delta (float): smaller changes are no improvement. Default ``1e-4``.
        cooldown (int): epochs after a change in which it does not count. Default ``0``.
        min_lr (float): the rate does not fall below. Default ``0``.
    """

    def __init__(
        self,
        monitor="eval_loss",
        factor=0.1,
        patience=10,
        verbose=False,
        mode="auto",
        min_delta=1e-4,
        cooldown=0,
        min_lr=0,
    ):
        super().__init__(monitor, min_delta, patience, verbose, mode)
        self.factor = number(factor, "factor")
        if not 0 <= factor < 1:
            raise ValueError(f"The 'factor' must be in [0, 1), but got {factor}.")
        self.cooldown = int_at_least(cooldown, 0, "cooldown")
        self.min_lr = number(min_lr, "min_lr")
        if min_lr < 0:
            raise ValueError(f"The 'min_lr' must not be negative, but got {min_lr}.")
        self.cooldown_counter = 0

    def on_train_begin(self, run_context):
        """Starts anew."""
        self.cooldown_counter = self.wait = 0
        self.best = -self._sign * math.inf

    def on_train_epoch_end(self, run_context):
        """Looks at the figure."""
        args = run_context.original_args()
        value = self._current(run_context)
        rate = _fixed_rate(args, "ReduceLROnPlateau")
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self._improves(value, self.best):
            self.best = value
            self.wait = 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce_rate(args, rate)

    def _reduce_rate(self, args, rate):
        old = float(rate.item())
        if old <= self.min_lr:
            return
        new = max(old * self.factor, self.min_lr)
        rate.fill_(new)
        self.cooldown_counter = self.cooldown
        self.wait = 0
        if self.verbose:
            print(f"Epoch {args.get('cur_epoch_num', 1):05d}: ReduceLROnPlateau reducing learning rate to {new}.")


class LearningRateScheduler(Callback):
    """Sets the learning rate before each step.

    Args:
        learning_rate_function (Callable): (present rate, number of the step) -> new rate.
    """

    def __init__(self, learning_rate_function):
        super().__init__()
        if not callable(learning_rate_function):
            raise TypeError(
                f"The 'learning_rate_function' must be a function, but got {type(learning_rate_function).__name__}."
            )
        self.learning_rate_function = learning_rate_function

    def step_begin(self, run_context):
        """Sets the rate."""
        args = run_context.original_args()
        rate = _fixed_rate(args, "LearningRateScheduler")
        # Rates are float32; the user sees 0.1, not 0.10000000149.
        old = float(f"{float(rate.item()):.7g}")
        new = self.learning_rate_function(old, args.cur_step_num)
        if not isinstance(new, float) and not hasattr(new, "dtype"):
            raise TypeError(f"The output of learning_rate_function must be float, but got {type(new).__name__}.")
        rate.fill_(float(new))

    def on_eval_step_begin(self, run_context):
        """Evaluations have no learning rate."""
