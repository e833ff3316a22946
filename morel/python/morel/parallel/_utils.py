"""What training cells of scripts ask about the processes."""

from morel.communication import get_group_size, get_rank
from morel.context import ParallelMode, get_auto_parallel_context

__all__ = ["_get_device_num", "_get_global_rank", "_get_gradients_mean", "_get_parallel_mode", "_is_pynative_parallel"]


def _get_device_num():
    return get_group_size()


def _get_global_rank():
    return get_rank()


def _get_gradients_mean():
    return get_auto_parallel_context("gradients_mean")


def _get_parallel_mode():
    return get_auto_parallel_context("parallel_mode")


def _is_pynative_parallel():
    return _get_parallel_mode() != ParallelMode.STAND_ALONE
