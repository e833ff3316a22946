"""Callbacks: what happens besides the steps of a training."""

from morel.train.callback import _callback, _checkpoint, _monitor, _progress, _schedule
from morel.train.callback._callback import *  # noqa: F401,F403
from morel.train.callback._callback import _CallbackManager, _InternalCallbackParam
from morel.train.callback._checkpoint import *  # noqa: F401,F403
from morel.train.callback._monitor import *  # noqa: F401,F403
from morel.train.callback._progress import *  # noqa: F401,F403
from morel.train.callback._schedule import *  # noqa: F401,F403

__all__ = [*_callback.__all__, *_checkpoint.__all__, *_monitor.__all__, *_progress.__all__, *_schedule.__all__]
_LATER = (
    "SummaryCollector",
    "SummaryLandscape",
    "BackupAndRestore",
    "FlopsUtilizationCollector",
    "TrainFaultTolerance",
)


def __getattr__(name):
    if name in _LATER:

        def later(*args, **kwargs):
            raise NotImplementedError(f"'{name}' is not supported yet; supported are {', '.join(__all__)}.")

        later.__name__ = name
        return later
    raise AttributeError(f"module 'morel.train.callback' has no attribute '{name}'")
