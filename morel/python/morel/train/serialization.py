"""Checkpoints: saving, loading, putting parameters into networks."""

import concurrent.futures
import os
import threading

from morel import _core
from morel.common.parameter import Parameter

Tensor = _core.Tensor
__all__ = [
    "save_checkpoint",
    "load_checkpoint",
    "load_checkpoint_async",
    "load_param_into_net",
    "async_ckpt_thread_status",
    "ckpt_to_safetensors",
    "safetensors_to_ckpt",
]

_FORMATS = ("ckpt", "safetensors")
_pending = []  # saves that run in the background


# --- saving ---


def _check_file_name(name, format):
    if not isinstance(name, (str, os.PathLike)):
        raise TypeError(
            f"For 'save_checkpoint', the parameter {name} for checkpoint file name is invalid,'ckpt_file_name' "
            f"must be string, but got {type(name)}."
        )
    name = os.fspath(name)
    if format not in _FORMATS:
        raise ValueError(f"For 'save_checkpoint', the format must be 'safetensors' or 'ckpt', but got {format}.")
    if not name.endswith("." + format):
        name += "." + format
    path = os.path.realpath(name)
    if not os.path.isdir(os.path.dirname(path)):
        raise FileNotFoundError(2, "No such file or directory", path)
    return path


def _scalar(value, name):
    if isinstance(value, bool):
        return Tensor(value, dtype=_core_dtype("bool_"))
    if isinstance(value, int):
        return Tensor(value, dtype=_core_dtype("int64"))
    return Tensor(value, dtype=_core_dtype("float32"))


def _core_dtype(name):
    from morel.common import dtype

    return getattr(dtype, name)


def _value(value, name):
    """A Tensor (or str) of something that may be saved, `None` if it may not."""
    if isinstance(value, (Tensor, str)):
        return value
    if isinstance(value, (bool, int, float)):
        return _scalar(value, name)
    if type(value).__name__ == "Generator" and hasattr(value, "get_state"):
        return value.get_state()
    return None


def _items_of_dict(save_obj):
    for name, data in save_obj.items():
        value = _value(data, name)
        if value is None or not isinstance(name, str):
            raise TypeError(
                f"For save_checkpoint, the entries of a dict must be str: Parameter, Tensor, number or string, but got "
                f"{type(name)}: {type(data)}."
            )
        yield name, value


def _items_of_list(save_obj):
    for item in save_obj:
        if isinstance(item, dict):
            if "name" not in item or "data" not in item:
                raise TypeError(
                    f"For save_checkpoint, save_obj should be a list of dict items, and the dict should have key "
                    f"values 'name' and 'data', but got {type(item)} and {item}."
                )
            name, data = item["name"], item["data"]
        elif isinstance(item, Parameter):
            name, data = item.name, item
        else:
            raise TypeError(
                f"For save_checkpoint, when save_obj is made up by list of Parameter,the param should be "
                f"parameter, but got {type(item)}"
            )
        if not isinstance(name, str) or not isinstance(data, (Tensor, str)):
            raise TypeError(
                f"For save_checkpoint, 'name' must be str and 'data' a Parameter, Tensor or string, but got {type(name)} "
                f"and {type(data)}."
            )
        yield name, data


def _items(save_obj):
    """(name, Tensor or str) of what is to be saved."""
    from morel.nn.cell import Cell

    if isinstance(save_obj, Cell):
        for param in save_obj.get_parameters():
            if param.has_init:
                param.init_data()
        return [(param.name, param) for param in save_obj.parameters_dict().values()]
    if isinstance(save_obj, dict):
        return list(_items_of_dict(save_obj))
    if isinstance(save_obj, list):
        return list(_items_of_list(save_obj))
    raise TypeError(
        f"For 'save_checkpoint', the parameter 'save_obj' must be nn.Cell, list or dict, but got {type(save_obj)}."
    )


def _appended(append_dict):
    if append_dict is None:
        return []
    if not isinstance(append_dict, dict):
        raise TypeError(f"For 'save_checkpoint', the argument 'append_dict' must be dict, but got {type(append_dict)}.")
    out = []
    for name, data in append_dict.items():
        value = _value(data, name)
        if not isinstance(name, str) or value is None:
            raise TypeError(
                f"For 'save_checkpoint', the type of dict 'append_info' must be key: string, value: int, float, "
                f"bool or Generator, but got key: {type(name)}, value: {type(data)}"
            )
        out.append((name, value))
    return out


def _write(path, items, format, crc_check, metadata):
    if format == "ckpt":
        _core.write_ckpt(path, items, crc_check)
    else:
        _core.write_safetensors(path, items, metadata)


def _check_unencrypted(key, function, argument):
    if key is not None:
        raise NotImplementedError(f"For '{function}', encryption is not supported; keep '{argument}' None.")


def save_checkpoint(
    save_obj,
    ckpt_file_name,
    integrated_save=True,
    async_save=False,
    append_dict=None,
    enc_key=None,
    enc_mode="AES-GCM",
    choice_func=None,
    crc_check=False,
    format="ckpt",
    **kwargs,
):
    """Saves a network, or names and tensors, to a file. An older file of that name stays whole until the new one is.

    Args:
        save_obj (Union[Cell, list, dict]): a network; a list of Parameters or of ``{"name": ..., "data": ...}``; or a dict
            from name to Parameter, Tensor, number or string.
        ckpt_file_name (str): the file; the ending is added if missing.
        integrated_save (bool): kept for scripts. Default ``True``.
        async_save (Union[bool, str]): save a copy in the background: ``True`` and ``"thread"``; ``"process"`` is the same.
            The program waits for it at its end. Default ``False``.
        append_dict (dict, optional): more to save: name -> int, float, bool, str, Tensor.
        enc_key, enc_mode: encryption is not supported.
        choice_func (Callable, optional): name -> bool: whether to save it.
        crc_check (bool): put a CRC-32 of the content at the end (.ckpt). Default ``False``.
        format (str): ``"ckpt"`` (MindSpore's layout) or ``"safetensors"``.
        kwargs: `global_step_num`, `remove_redundancy`, kept for scripts.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: unknown format.
        OSError: the file cannot be written; what was there before is unchanged.

    Example:
        >>> import morel as ms
        >>> from morel import nn
        >>> net = nn.Dense(3, 2)
        >>> ms.save_checkpoint(net, "net.ckpt", append_dict={"epoch": 3})
        >>> sorted(ms.load_checkpoint("net.ckpt"))
        ['bias', 'epoch', 'weight']
    """
    path = _check_file_name(ckpt_file_name, format)
    _check_unencrypted(enc_key, "save_checkpoint", "enc_key")
    for name, value in (("integrated_save", integrated_save), ("crc_check", crc_check)):
        if not isinstance(value, bool):
            raise TypeError(f"For 'save_checkpoint', the argument '{name}' must be bool, but got {type(value)}.")
    if not isinstance(async_save, bool) and async_save not in ("process", "thread"):
        raise ValueError(
            f"For 'save_checkpoint', the argument 'async_save' can only be 'process' or 'thread',but got {async_save}."
        )
    wrong = set(kwargs) - {"incremental", "global_step_num", "remove_redundancy", "map_param_inc"}
    if wrong:
        raise TypeError(f"save_checkpoint() got an unexpected keyword argument '{sorted(wrong)[0]}'")
    items = _items(save_obj) + _appended(append_dict)
    if choice_func is not None:
        if not callable(choice_func):
            raise TypeError(
                f"For 'save_checkpoint', the argument 'choice_func' must be a function, but got {type(choice_func)}."
            )
        items = [(name, value) for name, value in items if choice_func(name)]
    metadata = {"format": "ms"}
    if kwargs.get("remove_redundancy"):
        metadata["remove_redundancy"] = "True"
    if format == "safetensors" and crc_check:
        raise NotImplementedError(
            "For 'save_checkpoint', crc_check=True needs format='ckpt'; safetensors files have no place for a checksum."
        )
    if async_save:
        _save_in_background(path, items, format, crc_check, metadata)
    else:
        _write(path, items, format, crc_check, metadata)


def _save_in_background(path, items, format, crc_check, metadata):
    """Copies the tensors now, since training goes on to change them, and writes them in a thread that the program's end waits
    for."""
    copies = [(name, value if isinstance(value, str) else value.copy()) for name, value in items]
    _pending[:] = [thread for thread in _pending if thread.is_alive()]
    before = list(_pending)

    def write():
        for thread in before:  # in order: the last one saved under a name must win
            thread.join()
        _write(path, copies, format, crc_check, metadata)

    thread = threading.Thread(target=write, name="asyn_save_ckpt")
    _pending.append(thread)
    thread.start()


def async_ckpt_thread_status():
    """Whether a save still runs in the background."""
    return any(thread.is_alive() for thread in _pending)


def wait_for_saves():
    """Returns when no save runs in the background."""
    for thread in list(_pending):
        thread.join()


# --- loading ---


def _check_existing(ckpt_file_name, format):
    if not isinstance(ckpt_file_name, (str, os.PathLike)):
        raise TypeError(
            f"For 'load_checkpoint', the argument 'ckpt_file_name' must be string, but got {type(ckpt_file_name)}."
        )
    if format not in _FORMATS:
        raise ValueError(
            f"For 'load_checkpoint', the checkpoint file format must be 'ckpt' or 'safetensors', but got {format}."
        )
    name = os.fspath(ckpt_file_name)
    if not name.endswith("." + format):
        raise ValueError(
            f"For 'load_checkpoint', the checkpoint file format must same with 'format', but got "
            f"file_name:'{name}', format:'{format}'"
        )
    path = os.path.realpath(name)
    if not os.path.exists(path):
        raise ValueError(
            f"For 'load_checkpoint', the checkpoint file: {path} does not exist, please check whether the "
            f"'ckpt_file_name' is correct."
        )
    return path


def _prefixes(value, name):
    if value is None:
        return None
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise TypeError(
            f"For 'load_checkpoint', the argument '{name}' must be list[str] or tuple[str], but got {type(value)}."
        )
    if not value:
        raise ValueError(f"For 'load_checkpoint', the argument '{name}' can't be empty.")
    for prefix in value:
        if not isinstance(prefix, str):
            raise TypeError(f"For 'load_checkpoint', the elements of '{name}' must be string, but got {type(prefix)}.")
        if name == "filter_prefix" and not prefix:
            raise ValueError(f"For 'load_checkpoint', the elements of '{name}' can't be an empty string.")
    return tuple(value)


def _chooser(specify_prefix, filter_prefix, choice_func):
    """name -> whether to load it."""
    specify, leave_out = _prefixes(specify_prefix, "specify_prefix"), _prefixes(filter_prefix, "filter_prefix")
    if choice_func is not None and not callable(choice_func):
        raise TypeError(
            f"For 'load_checkpoint', the argument 'choice_func' must be a function, but got {type(choice_func)}."
        )

    def choose(name):
        return (
            (specify is None or name.startswith(specify))
            and (leave_out is None or not name.startswith(leave_out))
            and (choice_func is None or bool(choice_func(name)))
        )

    return choose


def _open(path, format, crc_check):
    try:
        return _core.open_ckpt(path, crc_check) if format == "ckpt" else _core.open_safetensors(path)
    except ValueError as error:
        raise ValueError(
            f"Failed to read the checkpoint file {path}. The file may be corrupted, and the content cannot be "
            f"parsed: {error}"
        ) from None
    except OSError as error:
        raise ValueError(
            f"Failed to read the checkpoint file {path}. May not have permission to read it, please check the "
            f"correct of the file: {error}"
        ) from None


def load_checkpoint(
    ckpt_file_name,
    net=None,
    strict_load=False,
    filter_prefix=None,
    dec_key=None,
    dec_mode="AES-GCM",
    specify_prefix=None,
    choice_func=None,
    crc_check=False,
    remove_redundancy=False,
    format="ckpt",
):
    """Reads a file that `save_checkpoint` (here or in MindSpore) has written.

    Args:
        ckpt_file_name (str): the file.
        net (Cell, optional): put the parameters into this network too.
        strict_load (bool): for `net`, see `load_param_into_net`. Default ``False``.
        filter_prefix (Union[str, list[str], tuple[str]], optional): leave out names with such a start.
        dec_key, dec_mode: encryption is not supported.
        specify_prefix (Union[str, list[str], tuple[str]], optional): only names with such a start.
        choice_func (Callable, optional): name -> bool: whether to load it.
        crc_check (bool): compare the file with its checksum, if it has one. Default ``False``.
        remove_redundancy (bool): for `net`, see `load_param_into_net`. Default ``False``.
        format (str): ``"ckpt"`` or ``"safetensors"``.

    Returns:
        dict, name -> Parameter (str for strings), in the order of the file.

    Raises:
        ValueError: no such file, a damaged one (the message names the byte), or nothing is left after filtering.
        TypeError: an argument has the wrong type.
    """
    path = _check_existing(ckpt_file_name, format)
    _check_unencrypted(dec_key, "load_checkpoint", "dec_key")
    choose = _chooser(specify_prefix, filter_prefix, choice_func)
    file = _open(path, format, crc_check)
    out = {}
    for i, (name, dtype, _) in enumerate(file.entries()):
        if not choose(name):
            continue
        value = file.load(i)
        out[name] = value if dtype is None else Parameter(value, name=name)
    if not out:
        raise ValueError(
            "The loaded parameter dict is empty after filter or specify, please check whether 'filter_prefix' or "
            f"'specify_prefix' are set correctly (the file {path} has {len(file)} entries)."
        )
    if net is not None:
        load_param_into_net(net, out, strict_load, remove_redundancy)
    return out


class ParamDictFuture:
    """What `load_checkpoint_async` returns."""

    def __init__(self, executor, param_dict_future):
        self._executor, self._future = executor, param_dict_future

    def result(self):
        """Waits and returns the dict of parameters."""
        value = self._future.result()
        self._executor.shutdown()
        return value


def load_checkpoint_async(
    ckpt_file_name,
    net=None,
    strict_load=False,
    filter_prefix=None,
    dec_key=None,
    dec_mode="AES-GCM",
    specify_prefix=None,
    choice_func=None,
):
    """Reads a file in the background; the arguments are those of `load_checkpoint`.

    Returns:
        An object with a method ``result()``.
    """
    executor = concurrent.futures.ThreadPoolExecutor(1)
    future = executor.submit(
        load_checkpoint, ckpt_file_name, net, strict_load, filter_prefix, dec_key, dec_mode, specify_prefix, choice_func
    )
    return ParamDictFuture(executor, future)


# --- into a network ---


def _check_dict(parameter_dict):
    if not isinstance(parameter_dict, dict):
        raise TypeError(
            f"For 'load_param_into_net', the argument 'parameter_dict' should be a dict, but got "
            f"{type(parameter_dict)}."
        )
    for name, value in parameter_dict.items():
        if not isinstance(name, str) or not isinstance(value, (Parameter, str)):
            raise TypeError(
                f"For 'parameter_dict', the element in the argument 'parameter_dict' should be a 'str' and "
                f"'Parameter' , but got {type(name)} and {type(value)}."
            )


def load_param_into_net(net, parameter_dict, strict_load=False, remove_redundancy=False):
    """Puts parameters into the network's parameters of the same names.

    If none of the names fits, a prefix that the network's or the dict's names all have is left out.

    Args:
        net (Cell): the network.
        parameter_dict (dict): name -> Parameter, as from `load_checkpoint`.
        strict_load (bool): refuse to convert between floating types. Default ``False``.
        remove_redundancy (bool): kept for scripts. Default ``False``.

    Returns:
        Two lists: names of the network that were not in the dict; names of the dict that were not in the network.

    Raises:
        TypeError: an argument has the wrong type.
        RuntimeError: a shape or type differs; nothing is changed then.
    """
    from morel.nn.cell import Cell

    if not isinstance(net, Cell):
        raise TypeError(f"For 'load_param_into_net', the argument 'net' should be a Cell, but got {type(net)}.")
    _check_dict(parameter_dict)
    for name, value in (("strict_load", strict_load), ("remove_redundancy", remove_redundancy)):
        if not isinstance(value, bool):
            raise TypeError(f"For 'load_param_into_net', the argument '{name}' must be bool, but got {type(value)}.")
    for param in net.get_parameters():
        if param.has_init:
            param.init_data()
    targets = {param.name: param for param in net.get_parameters()}
    found = {name: value for name, value in parameter_dict.items() if name in targets and not isinstance(value, str)}
    if not found and parameter_dict and targets:
        found = _without_prefix(targets, parameter_dict)
    converted = {name: _converted(targets[name], value, strict_load) for name, value in found.items()}
    for name, value in converted.items():
        targets[name].set_data(value)
    missing = [name for name in targets if name not in found]
    unused = [name for name in parameter_dict if name not in targets]
    if missing:
        _warn(
            f"For 'load_param_into_net', {len(missing)} parameters in the 'net' are not loaded, because they are not in the "
            f"'parameter_dict', please check whether the network structure is consistent when training and loading "
            f"checkpoint: {missing}."
        )
    return missing, unused


def _common_prefix(names):
    prefix = os.path.commonprefix(list(names))
    return prefix[: prefix.rfind(".") + 1]


def _without_prefix(targets, parameter_dict):
    """The parameters under the network's names, when one side's names all have a prefix that the other's lack."""
    prefix = _common_prefix(parameter_dict)
    found = {name[len(prefix) :]: value for name, value in parameter_dict.items() if name[len(prefix) :] in targets}
    if prefix and found:
        _warn(f"For 'load_param_into_net', remove parameter prefix name: {prefix}, continue to load.")
        return found
    prefix = _common_prefix(targets)
    found = {prefix + name: value for name, value in parameter_dict.items() if prefix + name in targets}
    return found


def _converted(target, value, strict_load):
    """`value` as the target's type, a tensor of its own."""
    name = target.name
    if tuple(target.shape) != tuple(value.shape) and not (target.size == value.size == 1):
        raise RuntimeError(
            f"For 'load_param_into_net', {name} in the argument 'net' should have the same shape as {name} in "
            f"the argument 'parameter_dict'. But got its shape {tuple(target.shape)} in the argument 'net' and "
            f"shape {tuple(value.shape)} in the argument 'parameter_dict'.May you need to check whether the "
            f"checkpoint you loaded is correct or the batch size and so on in the 'net' and 'parameter_dict' "
            f"are same."
        )
    if target.dtype != value.dtype:
        floats = target.dtype.is_floating_point and value.dtype.is_floating_point
        if strict_load or not floats:
            raise RuntimeError(
                f"For 'load_param_into_net', {name} in the argument 'net' should have the same type as {name} "
                f"in the argument 'parameter_dict'. but got its type {target.dtype} in the argument 'net' and "
                f"type {value.dtype} in the argument 'parameter_dict'.May you need to check whether the "
                f"checkpoint you loaded is correct."
            )
    data = value.astype(target.dtype) if target.dtype != value.dtype else value.copy()
    return data.reshape(tuple(target.shape)) if tuple(data.shape) != tuple(target.shape) else data


def _warn(text):
    """A warning that names the user's line."""
    import sys
    import warnings

    package = os.path.dirname(os.path.dirname(__file__))
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level - 1)


# --- conversion of files ---


def _convert(file_path, save_path, name_map, file_name_regex, old, new):
    import re

    if not isinstance(file_path, str) or not os.path.exists(file_path):
        raise ValueError(f"For 'convert_{old}_to_{new}', the input path {file_path} does not exist.")
    if os.path.isdir(file_path):
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(file_path) for name in sorted(names)]
        paths = [
            p
            for p in paths
            if p.endswith("." + old) and (file_name_regex is None or re.search(file_name_regex, os.path.basename(p)))
        ]
        if not paths:
            raise ValueError(f"There is no suitable {old} file in {file_path}.")
    elif not file_path.endswith("." + old):
        raise ValueError(f"The file {file_path} does not end in .{old}.")
    else:
        paths = [file_path]
    for path in paths:
        values = {(name_map or {}).get(name, name): value for name, value in load_checkpoint(path, format=old).items()}
        target = os.path.splitext(path)[0]
        if save_path is not None:
            os.makedirs(save_path, exist_ok=True)
            target = os.path.join(save_path, os.path.basename(target))
        save_checkpoint(values, f"{target}.{new}", format=new)


def ckpt_to_safetensors(file_path, save_path=None, name_map=None, file_name_regex=None, processes_num=1):
    """Writes .ckpt files as safetensors files.

    Args:
        file_path (str): a file, or a folder.
        save_path (str, optional): folder for the new files. Default: beside the old ones.
        name_map (dict, optional): old name -> new name of parameters.
        file_name_regex (str, optional): only files of the folder whose name it finds.
        processes_num (int): kept for scripts.
    """
    _convert(file_path, save_path, name_map, file_name_regex, "ckpt", "safetensors")


def safetensors_to_ckpt(file_path, save_path=None, name_map=None, file_name_regex=None, processes_num=1):
    """Writes safetensors files as .ckpt files; the arguments are those of `ckpt_to_safetensors`."""
    _convert(file_path, save_path, name_map, file_name_regex, "safetensors", "ckpt")


def _later(name, what):
    def later(*args, **kwargs):
        raise NotImplementedError(f"'{name}' is not supported yet: {what}.")

    later.__name__ = name
    later.__doc__ = f"Not supported yet: {what}."
    return later


def export(net, *inputs, file_name, file_format="MINDIR", **kwargs):
    """Writes a network as a file for other programs.

    Args:
        net (Cell, function): the network, written as it is in evaluation.
        inputs (Tensor): arguments like those that it is for.
        file_name (str): the file; without the format's suffix it gets it.
        file_format (str): "ONNX"; "MINDIR" and "AIR" are not supported yet.
        kwargs: `opset`, `input_names`, `output_names`, `dynamic_axes`, `data_limit` of :func:`morel.onnx.export_onnx`.
    """
    if file_format not in ("MINDIR", "ONNX", "AIR"):
        raise ValueError(f"For 'export', 'file_format' must be 'MINDIR', 'ONNX' or 'AIR', but got {file_format!r}.")
    if file_format != "ONNX":
        raise NotImplementedError(f"For 'export', 'file_format' '{file_format}' is not supported yet; 'ONNX' is.")
    from morel.onnx import export_onnx

    file_name = os.fspath(file_name)
    export_onnx(net, *inputs, file_name=file_name if file_name.endswith(".onnx") else f"{file_name}.onnx", **kwargs)


for _name in ("load", "export_split_mindir"):
    globals()[_name] = _later(
        _name, "it comes with the graph mode; save_checkpoint and load_checkpoint keep parameters"
    )
for _name in (
    "build_searched_strategy",
    "merge_sliced_parameter",
    "load_distributed_checkpoint",
    "restore_group_info_list",
    "get_ckpt_path_with_strategy",
    "parse_print",
):
    globals()[_name] = _later(_name, "it comes with distributed training")
