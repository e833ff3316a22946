"""Settings of the process: execution mode, device, threads, memory."""

import os

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "STRICT",
    "COMPATIBLE",
    "LAX",
    "ParallelMode",
    "set_context",
    "get_context",
    "set_auto_parallel_context",
    "get_auto_parallel_context",
    "reset_auto_parallel_context",
    "set_ps_context",
    "get_ps_context",
    "reset_ps_context",
    "set_device",
    "get_current_device",
    "set_deterministic",
]

GRAPH_MODE = 0
PYNATIVE_MODE = 1
STRICT = 0
COMPATIBLE = 1
LAX = 2


class ParallelMode:
    """The kinds of distributed training."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = [STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL]


# --- checks and effects of single settings ---


def _in(name, *choices):
    def check(value):
        if value not in choices:
            raise ValueError(
                f"For 'context.set_context', the argument '{name}' must be one of {list(choices)}, but got {value}."
            )
        return value

    return check


def _not_negative(what):
    def check(value):
        if value < 0:
            raise ValueError(f"The num of {what} must bigger than or equal to 0.")
        return value

    return check


def _set_mode(mode):
    if mode not in (GRAPH_MODE, PYNATIVE_MODE):
        raise ValueError(
            f"For 'context.set_context', the argument 'mode' should be context.GRAPH_MODE (0) or "
            f"context.PYNATIVE_MODE (1), but got {mode}."
        )
    if mode != _values["mode"]:
        _switch_cells(mode)
    return mode


def _call_in_graph_mode(self, *args, **kwargs):
    from morel.compiler import call_compiled_cell

    return call_compiled_cell(self, _eager_call, args, kwargs)


def _switch_cells(mode):
    """Cells are what graph mode executes; so their calls change, and PyNative mode pays nothing."""
    from morel.nn.cell import Cell

    global _eager_call
    if mode == GRAPH_MODE:
        _eager_call = Cell.__call__
        Cell.__call__ = _call_in_graph_mode
    else:
        Cell.__call__ = _eager_call


def _set_device_target(target):
    _in("device_target", "CPU", "OpenCL", "GPU", "Ascend", "Davinci")(target)
    if target not in ("CPU", "OpenCL"):
        raise RuntimeError(
            f"Unsupported device target {target}. This process only supports one of the ['CPU', 'OpenCL']."
        )
    _choose_device(target, 0)
    return target


def _choose_device(target, index):
    from morel import _core

    _core.set_default_device(target if target == "CPU" else f"{target}:{index}")


def _set_device_id(device_id):
    if not 0 <= device_id <= 4095:
        raise ValueError(
            f"For 'context.set_context', the argument 'device_id' must be in range [0, 4095], but got {device_id}."
        )
    target = _values["device_target"]
    if target == "CPU" and device_id != 0:
        raise TypeError(
            f"For 'set_context', the parameter device_id can not be {device_id}: there is one CPU, device 0."
        )
    _choose_device(target, device_id)
    return device_id


def _set_threads(count):
    _not_negative("thread")(count)
    from morel import _core

    _core.set_num_threads(count if count else len(os.sched_getaffinity(0)))
    return count


def _set_call_depth(depth):
    if depth <= 0:
        raise ValueError(
            f"For 'context.set_context', the argument 'max_call_depth' must be greater than 0, but got {depth}."
        )
    return depth


def _memory_size(name):
    """ "3.5GB" -> 3.5"""

    def check(value):
        digits = value[:-2] if value.upper().endswith("GB") else value
        try:
            size = float(digits)
        except ValueError:
            raise ValueError(
                f"For 'context.set_context', the argument '{name}' should be in correct format, such as "
                f'"10GB", but got {value}.'
            ) from None
        if size < 0:
            raise ValueError(
                f"For 'context.set_context', the argument '{name}' should not be negative, but got {value}."
            )
        return size

    return check


def _set_save_graphs(value):
    level = int(value)
    if not 0 <= level <= 3:
        raise ValueError(f"value for save_graphs should be 0-3 but got '{value}'")
    return level


def _set_syntax_level(level):
    if level not in (STRICT, COMPATIBLE, LAX):
        raise ValueError(f"For 'jit_syntax_level', the value should be context.STRICT or context.LAX, but got {level}.")
    return level


def _set_jit_config(config):
    choices = {"jit_level": ["O0", "O1", "O2"], "infer_boost": ["on", "off"]}
    for key, value in config.items():
        if key not in choices:
            raise ValueError(
                f"For 'context.set_context', the key of argument 'jit_config' must be one of {choices}, but got {key}."
            )
        if value not in choices[key]:
            raise ValueError(
                f"For 'context.set_context', the value of argument jit_config['{key}'] must be one of "
                f"{choices[key]}, but got {value}."
            )
    return dict(config)


# name -> (types, first value, check that returns the value to keep). Settings without a check are kept for scripts.
_KEYS = {
    "mode": (int, PYNATIVE_MODE, _set_mode),
    "device_target": (str, "CPU", _set_device_target),
    "device_id": (int, 0, _set_device_id),
    "runtime_num_threads": (int, None, _set_threads),
    "max_call_depth": (int, 1000, _set_call_depth),
    "pynative_synchronize": (bool, False, None),  # every operator returns when it is done
    "deterministic": (str, "OFF", _in("deterministic", "ON", "OFF")),  # results always are
    "max_device_memory": (str, 1024.0, _memory_size("max_device_memory")),
    "mempool_block_size": (str, 1.0, _memory_size("mempool_block_size")),
    "variable_memory_max_size": (str, "0", None),
    "memory_optimize_level": (str, 0, lambda v: _in("memory_optimize_level", "O0", "O1")(v) == "O1" and 1 or 0),
    "save_graphs": ((bool, int), 0, _set_save_graphs),
    "save_graphs_path": (str, ".", None),
    "jit_syntax_level": (int, LAX, _set_syntax_level),
    "jit_config": (dict, {}, _set_jit_config),
    "jit_level": (str, "", _in("jit_level", "O0", "O1", "O2")),
    "exec_order": (str, "bfs", _in("exec_order", "bfs", "dfs")),
    "debug_level": (int, 0, _in("debug_level", 0, 1)),
    "inter_op_parallel_num": (int, 0, _not_negative("parallel thread")),
    "op_timeout": (int, 900, _not_negative("op exe timeout")),
    "ascend_config": (dict, {}, None),
    "gpu_config": (dict, {}, None),
    "aoe_config": (dict, {}, None),
    "aoe_tune_mode": (str, "", _in("aoe_tune_mode", "online", "offline")),
    "precompile_only": (bool, False, None),
    "enable_graph_kernel": (bool, False, None),
    "graph_kernel_flags": (str, "", None),
    "enable_reduce_precision": (bool, True, None),
    "check_bprop": (bool, False, None),
    "grad_for_scalar": (bool, False, None),
    "enable_compile_cache": ((bool, str, int), None, None),
    "compile_cache_path": (str, "", None),
    "reserve_class_name_in_scope": (bool, True, None),
    "print_file_path": (str, "", None),
    "env_config_path": (str, "", None),
    "host_scheduling_max_threshold": (str, "", None),
    "disable_format_transform": (bool, False, None),
    "support_binary": (bool, False, None),
    "enable_profiling": (bool, False, None),
}
# Accepted and without meaning, as in MindSpore.
_FORMER = ("enable_sparse", "auto_tune_mode", "enable_dump", "save_dump_path", "pynative_hook")
_values = {name: first for name, (_, first, _) in _KEYS.items()}
_eager_call = None


def _check_type(name, value, types):
    wrong_bool = isinstance(value, bool) and (bool not in types if isinstance(types, tuple) else types is not bool)
    if not isinstance(value, types) or wrong_bool:
        raise TypeError(f"The parameter '{name}' must be {types}, but got {type(value)}")


def set_context(**kwargs):
    """Changes settings.

    Args:
        mode (int): ``PYNATIVE_MODE`` (1, default) or ``GRAPH_MODE`` (0), in which calls of cells are compiled.
        device_target (str): ``"CPU"`` or ``"OpenCL"``: where new tensors lie, and so where operators on them run.
        device_id (int): number of the device among those of its kind.
        runtime_num_threads (int): threads for operators; 0: one per CPU.
        deterministic (str): ``"ON"`` or ``"OFF"``; results do not depend on threads either way.
        max_device_memory (str): such as ``"2.5GB"``.
        save_graphs (Union[bool, int]): whether compiled graphs are written as text, at every stage; 0 to 3.
        save_graphs_path (str): the folder for it.
        pynative_synchronize (bool): kept for scripts; operators always run at once.
        kwargs: the other settings of MindSpore are checked and kept.

    Raises:
        TypeError: a value has the wrong type.
        ValueError: an unknown setting or a value out of range.
        RuntimeError: a device that this process does not have.
    """
    for name, value in kwargs.items():
        if name in _FORMER:
            continue
        if name not in _KEYS:
            raise ValueError(
                f"For 'context.set_context', the keyword argument {name} is not recognized! For detailed usage "
                f"of 'set_context', please refer to its documentation."
            )
        types, _, check = _KEYS[name]
        _check_type(name, value, types)
        _values[name] = check(value) if check else value
    if kwargs.keys() & {"save_graphs", "save_graphs_path"}:
        from morel import _core

        _core.save_graphs(_values["save_graphs_path"] if _values["save_graphs"] else "")


def get_context(attr_key):
    """The value of a setting.

    Args:
        attr_key (str): its name.

    Raises:
        ValueError: an unknown setting.
    """
    if attr_key not in _KEYS:
        raise ValueError(
            f"For 'context.get_context', the argument {attr_key} is not recognized! For detailed usage of "
            f"'get_context', please refer to its documentation."
        )
    if attr_key == "runtime_num_threads" and _values[attr_key] is None:
        from morel import _core

        return _core.num_threads()
    return _values[attr_key]


def set_device(device_target, device_id=None):
    """Chooses where new tensors lie, and so where operators on them run.

    Args:
        device_target (str): ``"CPU"`` or ``"OpenCL"``.
        device_id (int, optional): number of the device among those of its kind.

    Raises:
        ValueError: an unknown device. RuntimeError: the system has no driver for it.
    """
    if device_target not in ("CPU", "OpenCL", "GPU", "Ascend"):
        raise ValueError(
            f"The argument 'device_target' must be one of ['CPU', 'OpenCL', 'GPU', 'Ascend'], but got {device_target}."
        )
    _values["device_target"] = _set_device_target(device_target)
    if device_id is not None:
        _check_type("device_id", device_id, int)
        _values["device_id"] = _set_device_id(device_id)


def get_current_device():
    """The device: ``("CPU", 0)``."""
    return _values["device_target"], _values["device_id"]


def set_recursion_limit(recursion_limit=1000):
    """How deep calls may be nested in functions that are compiled.

    Args:
        recursion_limit (int): the number of calls.

    Raises:
        TypeError: no int. ValueError: not greater than 0.
    """
    _check_type("recursion_limit", recursion_limit, int)
    _values["max_call_depth"] = _set_call_depth(recursion_limit)


def set_deterministic(deterministic):
    """Kept for scripts: results are deterministic either way.

    Args:
        deterministic (bool): on or off.
    """
    _check_type("deterministic", deterministic, bool)
    _values["deterministic"] = "ON" if deterministic else "OFF"


# --- distributed training: settings are kept, only the stand-alone mode runs ---

_PARALLEL_FIRST = {
    "device_num": 1,
    "global_rank": 0,
    "gradients_mean": False,
    "gradient_fp32_sync": True,
    "parallel_mode": ParallelMode.STAND_ALONE,
    "auto_parallel_search_mode": "recursive_programming",
    "search_mode": "recursive_programming",
    "parameter_broadcast": False,
    "strategy_ckpt_load_file": "",
    "strategy_ckpt_save_file": "",
    "full_batch": False,
    "dataset_strategy": "data_parallel",
    "enable_parallel_optimizer": False,
    "enable_alltoall": False,
    "all_reduce_fusion_config": [],
    "pipeline_stages": 1,
    "pipeline_result_broadcast": False,
    "grad_accumulation_step": 1,
    "auto_parallel_new_interface": False,
    "comm_fusion": {
        "openstate": True,
        **{name: {"mode": "auto", "config": None} for name in ("allreduce", "allgather", "reducescatter")},
    },
    "strategy_ckpt_config": {"load_file": "", "save_file": "", "only_trainable_params": True},
    "loss_repeated_mean": True,
    "optimizer_weight_shard_size": -1,
    "init_param_in_compile": True,
}
_parallel = dict(_PARALLEL_FIRST)


def set_auto_parallel_context(**kwargs):
    """Changes settings of distributed training. With ``parallel_mode="data_parallel"`` `TrainOneStepCell` adds up gradients over the
    processes (their mean with ``gradients_mean=True``); the other modes are kept and do nothing."""
    for name, value in kwargs.items():
        if name not in _PARALLEL_FIRST and name not in ("parallel_optimizer_config", "group_ckpt_save_file"):
            raise ValueError(f"Set context keyword {name} is not recognized!")
        if name == "parallel_mode" and value not in ParallelMode.MODE_LIST:
            raise ValueError(
                "The context configuration parameter 'parallel_mode' only support 'stand_alone', 'data_parallel', "
                f"'hybrid_parallel', 'semi_auto_parallel' and 'auto_parallel', but got the value : {value}."
            )
        if name in ("device_num", "pipeline_stages", "grad_accumulation_step"):
            _check_type(name, value, int)
            if value <= 0:
                raise ValueError(
                    f"The context configuration parameter '{name}' must be a positive integer, but got the "
                    f"value of {name} : {value}."
                )
        _parallel[name] = value


def get_auto_parallel_context(attr_key):
    """The value of a setting of distributed training."""
    if attr_key not in _PARALLEL_FIRST:
        raise ValueError(f"Get context keyword {attr_key} is not recognized!")
    return _parallel[attr_key]


def reset_auto_parallel_context():
    """Sets the settings of distributed training back."""
    _parallel.clear()
    _parallel.update(_PARALLEL_FIRST)


_PS_FIRST = {
    "enable_ps": False,
    "enable_ssl": False,
    "config_file_path": "",
    "client_password": "",
    "server_password": "",
}
_ps = dict(_PS_FIRST)


def set_ps_context(**kwargs):
    """Changes settings of parameter servers, which are not supported.

    Raises:
        NotImplementedError: they are switched on.
    """
    for name, value in kwargs.items():
        if name not in _PS_FIRST:
            raise ValueError(f"Set PS context keyword {name} is not recognized!")
        if name == "enable_ps" and value:
            raise NotImplementedError("Parameter servers are not supported.")
        _ps[name] = value


def get_ps_context(attr_key):
    """The value of a setting of parameter servers."""
    if attr_key not in _PS_FIRST:
        raise ValueError(f"Get PS context keyword {attr_key} is not recognized!")
    return _ps[attr_key]


def reset_ps_context():
    """Sets the settings of parameter servers back."""
    _ps.clear()
    _ps.update(_PS_FIRST)


def _get_mode():
    return _values["mode"]
