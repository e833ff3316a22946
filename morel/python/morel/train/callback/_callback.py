"""Base of the callbacks, what they are told, and the list that calls them."""

from contextlib import ExitStack

__all__ = ["Callback", "RunContext"]

_HOOKS = tuple(
    f"on_{mode}{part}_{edge}"
    for mode in ("train", "eval")
    for part in ("", "_epoch", "_step")
    for edge in ("begin", "end")
)


class Callback:
    """Base class of callbacks: a subclass defines the methods it wants.

    The order in a training is ``on_train_begin``, then for each epoch ``on_train_epoch_begin``, for each step
    ``on_train_step_begin`` and ``on_train_step_end``, and ``on_train_epoch_end``; at last ``on_train_end``. Evaluations call the
    same with ``eval``. The older names ``begin``, ``epoch_begin``, ``step_begin``, ``step_end``, ``epoch_end`` and ``end`` are called
    in both, unless the newer ones are defined.

    Each gets a RunContext. A callback is also a context manager around the whole run.
    """

    def __enter__(self):
        return self

    def __exit__(self, *err):
        return None

    def begin(self, run_context):
        """Before the first epoch."""

    def epoch_begin(self, run_context):
        """Before each epoch."""

    def epoch_end(self, run_context):
        """After each epoch."""

    def step_begin(self, run_context):
        """Before each step."""

    def step_end(self, run_context):
        """After each step."""

    def end(self, run_context):
        """After the last epoch."""

    def on_train_begin(self, run_context):
        """Before the training."""
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context):
        """Before each epoch of a training."""
        self.epoch_begin(run_context)

    def on_train_epoch_end(self, run_context):
        """After each epoch of a training."""
        self.epoch_end(run_context)

    def on_train_step_begin(self, run_context):
        """Before each step of a training."""
        self.step_begin(run_context)

    def on_train_step_end(self, run_context):
        """After each step of a training."""
        self.step_end(run_context)

    def on_train_end(self, run_context):
        """After the training."""
        self.end(run_context)

    def on_eval_begin(self, run_context):
        """Before an evaluation."""
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context):
        """Before the only epoch of an evaluation."""
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context):
        """After the only epoch of an evaluation."""
        self.epoch_end(run_context)

    def on_eval_step_begin(self, run_context):
        """Before each step of an evaluation."""
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context):
        """After each step of an evaluation."""
        self.step_end(run_context)

    def on_eval_end(self, run_context):
        """After an evaluation."""
        self.end(run_context)


class CallbackList:
    """The callbacks of a run as one. Hooks that nobody has overridden are not called at all."""

    def __init__(self, callbacks):
        self.callbacks = callbacks = as_list(callbacks)
        self._stack = ExitStack()
        for hook in _HOOKS:
            setattr(self, hook, self._caller([c for c in callbacks if _defines(type(c), hook)], hook))

    @staticmethod
    def _caller(callbacks, hook):
        methods = [getattr(callback, hook) for callback in callbacks]

        def call(run_context):
            for method in methods:
                method(run_context)

        return call

    def __enter__(self):
        for callback in self.callbacks:
            self._stack.enter_context(callback)
        return self

    def __exit__(self, *err):
        return self._stack.__exit__(*err)


_CallbackManager = CallbackList  # MindSpore's name


def _defines(cls, hook):
    """Whether calling `hook` of such a callback does anything."""
    old = hook.removeprefix("on_train_").removeprefix("on_eval_")
    return getattr(cls, hook) is not getattr(Callback, hook) or getattr(cls, old) is not getattr(Callback, old)


def as_list(callbacks):
    """A list from what Model takes: ``None``, one callback, or several."""
    if callbacks is None:
        return []
    if isinstance(callbacks, Callback):
        return [callbacks]
    if isinstance(callbacks, (list, tuple)):
        if not all(isinstance(callback, Callback) for callback in callbacks):
            raise TypeError("When the 'callbacks' is a list, the elements in 'callbacks' must be Callback functions.")
        return list(callbacks)
    raise TypeError(f"The 'callbacks' must be a Callback or a list of Callback, but got {type(callbacks).__name__}.")


class _InternalCallbackParam(dict):
    """A dict whose entries are attributes too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no '{name}' in the arguments of the run") from None

    def __setattr__(self, name, value):
        self[name] = value


class RunContext:
    """What callbacks get: `original_args` tells about the run, `request_stop` ends it.

    Args:
        original_args (dict): network, optimizer, train_dataset, cur_epoch_num, cur_step_num, batch_num, net_outputs and so on.
    """

    def __init__(self, original_args):
        if not isinstance(original_args, dict):
            raise TypeError(
                f"The argument 'original_args' of RunContext should be dict type, but got {type(original_args)}."
            )
        self._original_args = original_args
        self._stop_requested = False

    def original_args(self):
        """The dict of facts; its entries are attributes too."""
        return self._original_args

    def request_stop(self):
        """Ends the training after this step."""
        self._stop_requested = True

    def get_stop_requested(self):
        """Whether `request_stop` has been called."""
        return self._stop_requested


def loss_value(outputs):
    """The loss as a float from what a training step returned: the loss, or a tuple that starts with it."""
    if isinstance(outputs, (tuple, list)):
        outputs = outputs[0] if outputs and hasattr(outputs[0], "asnumpy") else outputs
    if hasattr(outputs, "asnumpy"):
        return float(outputs.float().asnumpy().mean()) if outputs.size != 1 else float(outputs.item())
    return outputs
