"""Settings of the data pipeline."""

import os
import random

import numpy

from morel.common.seed import get_seed as _process_seed

__all__ = [
    "set_sending_batches",
    "load",
    "set_seed",
    "get_seed",
    "set_prefetch_size",
    "get_prefetch_size",
    "set_num_parallel_workers",
    "get_num_parallel_workers",
    "set_numa_enable",
    "get_numa_enable",
    "set_monitor_sampling_interval",
    "get_monitor_sampling_interval",
    "set_callback_timeout",
    "get_callback_timeout",
    "set_auto_num_workers",
    "get_auto_num_workers",
    "set_enable_shared_mem",
    "get_enable_shared_mem",
    "set_enable_autotune",
    "get_enable_autotune",
    "set_autotune_interval",
    "get_autotune_interval",
    "set_auto_offload",
    "get_auto_offload",
    "set_enable_watchdog",
    "get_enable_watchdog",
    "set_fast_recovery",
    "get_fast_recovery",
    "set_debug_mode",
    "get_debug_mode",
    "set_multiprocessing_timeout_interval",
    "get_multiprocessing_timeout_interval",
    "set_dynamic_shape",
    "get_dynamic_shape",
    "set_iterator_mode",
    "get_iterator_mode",
    "set_multiprocessing_start_method",
    "get_multiprocessing_start_method",
]

INT32_MAX = 2147483647
UINT32_MAX = 4294967295
# This seed means that nobody has set one (it is that of std::mt19937): orders then differ from run to run.
UNSEEDED = 5489

_values = {
    "seed": UNSEEDED if _process_seed() is None else _process_seed(),
    "num_parallel_workers": min(8, os.cpu_count() or 1),
}


def _check_int(value, name):
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} isn't of type int, but got {type(value)}.")


def set_seed(seed):
    """Makes shuffles, samplers and random transforms repeatable; seeds `random` and `numpy.random` too.

    Args:
        seed (int): in [0, 2^32 - 1].

    Raises:
        TypeError: not an int.
        ValueError: out of range.
    """
    _check_int(seed, "seed")
    if not 0 <= seed <= UINT32_MAX:
        raise ValueError("seed given is not within the required range [0, UINT32_MAX(4294967295)].")
    _values["seed"] = seed
    random.seed(seed)
    numpy.random.seed(seed)


def get_seed():
    """The seed that was set, 5489 if none was."""
    return _values["seed"]


def effective_seed():
    """The seed of a pipeline that starts now."""
    from morel.dataset._random import fresh_seed

    return fresh_seed() if _values["seed"] == UNSEEDED else _values["seed"]


def set_num_parallel_workers(num):
    """Sets how many threads `map` uses when it is not told.

    Args:
        num (int): in (0, 2^31 - 1].
    """
    _check_int(num, "num")
    if not 0 < num <= INT32_MAX:
        raise ValueError(
            "Number of parallel workers given is not within the required range (0, INT32_MAX(2147483647)]."
        )
    _values["num_parallel_workers"] = num


def get_num_parallel_workers():
    """The number that `set_num_parallel_workers` set."""
    return _values["num_parallel_workers"]


def load(file):
    """Reads settings from a JSON file with keys such as "num_parallel_workers" and "seed"."""
    import json

    with open(file, encoding="utf-8") as handle:
        values = json.load(handle)
    names = {
        "numParallelWorkers": "num_parallel_workers",
        "seed": "seed",
        "monitorSamplingInterval": "monitor_sampling_interval",
        "workerConnectorSize": "prefetch_size",
    }
    for key, value in values.items():
        if names.get(key, key) in ("num_parallel_workers", "seed", "monitor_sampling_interval", "prefetch_size"):
            globals()["set_" + names.get(key, key)](value)


def set_sending_batches(batch_num):
    """For data sinks of devices; nothing to do on a CPU."""
    _check_int(batch_num, "batch_num")


def _positive(name):
    def check(value):
        _check_int(value, name)
        if not 0 < value <= INT32_MAX:
            raise ValueError(f"{name} given is not within the required range (0, INT32_MAX(2147483647)].")

    return check


def _switch(name):
    def check(value):
        if not isinstance(value, bool):
            raise TypeError(f"{name} must be of type bool, but got {type(value)}.")

    return check


def _one_of(name, choices):
    def check(value):
        if not isinstance(value, (str, bool)):
            raise TypeError(f"{name} must be of type str, but got {type(value)}.")
        if value not in choices:
            raise ValueError(f"{name} must be one of {list(choices)}, but got {value}.")

    return check


# Kept and checked, without an effect on this pipeline: name, first value, check.
for _name, _first, _check in [
    ("prefetch_size", 16, _positive("size")),
    ("numa_enable", False, _switch("numa_enable")),
    ("monitor_sampling_interval", 1000, _positive("interval")),
    ("callback_timeout", 60, _positive("timeout")),
    ("auto_num_workers", False, _switch("enable")),
    ("enable_shared_mem", True, _switch("enable")),
    ("autotune_interval", 0, lambda value: _check_int(value, "interval")),
    ("auto_offload", False, _switch("offload")),
    ("enable_watchdog", True, _switch("enable")),
    ("fast_recovery", True, _switch("fast_recovery")),
    ("multiprocessing_timeout_interval", 300, _positive("interval")),
    ("dynamic_shape", False, _switch("is_dynamic")),
    ("multiprocessing_start_method", "fork", _one_of("start_method", ("fork", "spawn"))),
]:

    def _make(name=_name, check=_check):
        def setter(value):
            check(value)
            _values[name] = value

        def getter():
            return _values[name]

        setter.__doc__ = f"Sets `{name}`; kept for scripts, this pipeline does not need it."
        getter.__doc__ = f"What `set_{name}` set."
        setter.__name__, getter.__name__ = "set_" + name, "get_" + name
        return setter, getter

    _values[_name] = _first
    globals()["set_" + _name], globals()["get_" + _name] = _make()


def set_enable_autotune(enable, filepath_prefix=None):
    """Kept for scripts; there is nothing to tune yet."""
    _switch("enable")(enable)
    _values["enable_autotune"] = enable


def get_enable_autotune():
    """What `set_enable_autotune` set."""
    return _values.get("enable_autotune", False)


def set_debug_mode(debug_mode_flag, debug_hook_list=None):
    """Runs `map` in the calling thread, so that a debugger stops in user functions.

    Args:
        debug_mode_flag (bool): on or off.
        debug_hook_list (list, optional): not supported.
    """
    _switch("debug_mode_flag")(debug_mode_flag)
    if debug_hook_list:
        raise NotImplementedError("For 'set_debug_mode', 'debug_hook_list' is not supported; set breakpoints instead.")
    _values["debug_mode"] = debug_mode_flag


def get_debug_mode():
    """What `set_debug_mode` set."""
    return _values.get("debug_mode", False)


def set_iterator_mode(do_copy=True, parallel_convert=False):
    """Kept for scripts: whether iterators copy (they do where it is needed) and convert in parallel."""
    _switch("do_copy")(do_copy)
    _switch("parallel_convert")(parallel_convert)
    _values["iterator_mode"] = {"do_copy": do_copy, "parallel_convert": parallel_convert}


def get_iterator_mode():
    """What `set_iterator_mode` set."""
    return _values.get("iterator_mode", {"do_copy": False, "parallel_convert": False})
