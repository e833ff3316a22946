"""The callback that saves checkpoints, and one that saves when the process is asked to end."""

import json
import os
import re
import signal
import time

from morel.train._check import int_at_least, is_bool
from morel.train.callback._callback import Callback

__all__ = ["CheckpointConfig", "ModelCheckpoint", "OnRequestExit"]


class CheckpointConfig:
    """When and what ModelCheckpoint saves.

    Args:
        save_checkpoint_steps (int): save at every so many steps; 0: see the next. Default ``1``.
        save_checkpoint_seconds (int): save after so many seconds, if `save_checkpoint_steps` is 0. Default ``0``.
        keep_checkpoint_max (int): keep only so many of the last files; 0: all. Default ``5``.
        keep_checkpoint_per_n_minutes (int): keep one file per so many minutes, if `keep_checkpoint_max` is 0. Default ``0``.
        integrated_save (bool): kept for scripts. Default ``True``.
        async_save (Union[bool, str]): save in the background. Default ``False``.
        saved_network (Cell, optional): what to save. Default: network and optimizer.
        append_info (list, optional): more to save: ``"epoch_num"``, ``"step_num"``, and dicts.
        enc_key, enc_mode: encryption is not supported.
        exception_save (bool): save too when the training ends with an exception (Ctrl-C included). Default ``False``.
        crc_check (bool): put a checksum into the file. Default ``False``.
        remove_redundancy (bool): kept for scripts. Default ``False``.
        format (str): ``"ckpt"`` or ``"safetensors"``.
    """

    def __init__(
        self,
        save_checkpoint_steps=1,
        save_checkpoint_seconds=0,
        keep_checkpoint_max=5,
        keep_checkpoint_per_n_minutes=0,
        integrated_save=True,
        async_save=False,
        saved_network=None,
        append_info=None,
        enc_key=None,
        enc_mode="AES-GCM",
        exception_save=False,
        crc_check=False,
        remove_redundancy=False,
        format="ckpt",
        **kwargs,
    ):
        for value in (
            save_checkpoint_steps,
            save_checkpoint_seconds,
            keep_checkpoint_max,
            keep_checkpoint_per_n_minutes,
        ):
            if value is not None:
                int_at_least(value, 0)
        if saved_network is not None:
            from morel.nn.cell import Cell

            if not isinstance(saved_network, Cell):
                raise TypeError(
                    f"For 'CheckpointConfig', the type of 'saved_network' must be None or Cell, but got "
                    f"{type(saved_network)}."
                )
        if not isinstance(async_save, bool) and async_save not in ("process", "thread"):
            raise ValueError(
                f"For 'save_checkpoint', the argument 'async_save' can only be 'process' or 'thread',but got "
                f"{async_save}."
            )
        if enc_key is not None:
            raise NotImplementedError("For 'CheckpointConfig', encryption is not supported; keep 'enc_key' None.")
        # Of two ways to say when, and what to keep, the first one given counts.
        self._save_checkpoint_steps = save_checkpoint_steps or None
        self._save_checkpoint_seconds = None if self._save_checkpoint_steps else save_checkpoint_seconds or None
        self._keep_checkpoint_max = keep_checkpoint_max or None
        self._keep_checkpoint_per_n_minutes = (
            None if self._keep_checkpoint_max else keep_checkpoint_per_n_minutes or None
        )
        if not self._keep_checkpoint_max and not self._keep_checkpoint_per_n_minutes and keep_checkpoint_max is None:
            self._keep_checkpoint_max = 1
        self._integrated_save = is_bool(integrated_save, "integrated_save")
        self._async_save = async_save
        self._saved_network = saved_network
        self._append_dict = self._checked_append_info(append_info)
        self._crc_check = is_bool(crc_check, "crc_check")
        self._format = format
        self.exception_save = is_bool(exception_save, "exception_save")
        self.remove_redundancy = is_bool(remove_redundancy, "remove_redundancy")

    @staticmethod
    def _checked_append_info(append_info):
        if append_info is None or append_info == []:
            return None
        if not isinstance(append_info, list):
            raise TypeError(
                f"For 'CheckpointConfig', the type of 'append_info' must be list,but got {type(append_info)}."
            )
        out = {}
        for item in append_info:
            if isinstance(item, dict):
                out.update(item)
            elif item in ("epoch_num", "step_num"):
                out[item] = 0
            elif isinstance(item, str):
                raise ValueError(
                    f"For 'CheckpointConfig', the value of element in the argument 'append_info' must be in "
                    f"['epoch_num', 'step_num'], but got {item}."
                )
            else:
                raise TypeError(
                    f"For 'CheckpointConfig', the type of 'append_info' element must be str or dict, but got "
                    f"{type(item)}."
                )
        return out

    save_checkpoint_steps = property(lambda self: self._save_checkpoint_steps)
    save_checkpoint_seconds = property(lambda self: self._save_checkpoint_seconds)
    keep_checkpoint_max = property(lambda self: self._keep_checkpoint_max)
    keep_checkpoint_per_n_minutes = property(lambda self: self._keep_checkpoint_per_n_minutes)
    integrated_save = property(lambda self: self._integrated_save)
    async_save = property(lambda self: self._async_save)
    saved_network = property(lambda self: self._saved_network)
    append_dict = property(lambda self: self._append_dict)
    crc_check = property(lambda self: self._crc_check)
    format = property(lambda self: self._format)

    def get_checkpoint_policy(self):
        """When to save and what to keep, as a dict."""
        return {
            "save_checkpoint_steps": self._save_checkpoint_steps,
            "save_checkpoint_seconds": self._save_checkpoint_seconds,
            "keep_checkpoint_max": self._keep_checkpoint_max,
            "keep_checkpoint_per_n_minutes": self._keep_checkpoint_per_n_minutes,
            "saved_network": self._saved_network,
        }


class ModelCheckpoint(Callback):
    """Saves checkpoints during a training, as ``PREFIX-EPOCH_STEP.ckpt``, and one at its end.

    If the folder already has files with this prefix, ``PREFIX_1`` is used, and so on: files of an earlier training stay.

    Args:
        prefix (Union[str, Callable]): start of the names, or a function of the run's arguments that gives the name. Default
            ``"CKP"``.
        directory (Union[str, Callable], optional): the folder, made if missing. Default: the working folder.
        config (CheckpointConfig, optional): when and what. Default: every step, the last 5.
    """

    def __init__(self, prefix="CKP", directory=None, config=None):
        super().__init__()
        if not callable(prefix) and (not isinstance(prefix, str) or "/" in prefix or not prefix):
            raise ValueError(
                f"For 'ModelCheckpoint', the argument 'prefix' for checkpoint file name is invalid, it must be "
                f"callable or string that does not contain '/', but got {prefix}."
            )
        if config is not None and not isinstance(config, CheckpointConfig):
            raise TypeError(
                f"For 'ModelCheckpoint', the type of argument 'config' should be 'CheckpointConfig', but got "
                f"{type(config)}."
            )
        if directory is not None and not callable(directory) and not isinstance(directory, (str, os.PathLike)):
            raise TypeError(f"For 'ModelCheckpoint', the argument 'directory' must be str, but got {type(directory)}.")
        self._prefix = prefix
        self._directory = directory if callable(directory) else os.path.realpath(directory or os.getcwd())
        self._config = config or CheckpointConfig()
        self._latest = ""
        self._files = []  # (time, path) of what this object has saved and not removed
        self._args = None

    @property
    def latest_ckpt_file_name(self):
        """The path of the last file."""
        return self._latest

    def _ending(self):
        return "." + self._config.format

    def begin(self, run_context):
        """Makes the folder and finds a prefix that is free."""
        self._args = run_context.original_args()
        self._last_step, self._last_time = self._args.cur_step_num, time.time()
        self._minute_start = time.time()
        if callable(self._directory):
            return
        os.makedirs(self._directory, exist_ok=True)
        if callable(self._prefix):
            return
        taken = {os.path.basename(path) for _, path in self._files}
        pattern = re.compile(re.escape(self._prefix) + r"(_\d+)?-\d+_\d+" + re.escape(self._ending()))
        foreign = [name for name in os.listdir(self._directory) if pattern.fullmatch(name) and name not in taken]
        if foreign:
            numbers = [int((pattern.fullmatch(name).group(1) or "_0")[1:]) for name in foreign]
            self._prefix = f"{self._prefix}_{max(numbers) + 1}"

    def on_eval_begin(self, run_context):
        """Evaluations save nothing."""

    on_eval_end = on_eval_step_end = on_eval_begin

    def step_end(self, run_context):
        """Saves if it is time."""
        args = self._args = run_context.original_args()
        if self._config.save_checkpoint_steps:
            due = args.cur_step_num >= self._last_step + self._config.save_checkpoint_steps
        elif self._config.save_checkpoint_seconds:
            due = time.time() - self._last_time > self._config.save_checkpoint_seconds
        else:
            due = False
        if due:
            self._save(args)

    def end(self, run_context):
        """Saves the last state, if it is not saved yet, and waits for saves in the background."""
        args = run_context.original_args()
        if args.cur_step_num > self._last_step or not self._latest:
            self._save(args)
        from morel.train.serialization import wait_for_saves

        wait_for_saves()

    def __exit__(self, kind, error, trace):
        if kind is not None and self._config.exception_save and self._args is not None and self._args.cur_step_num > 0:
            self._save(self._args, "_breakpoint")

    def _path(self, args, suffix):
        folder = self._directory
        if callable(folder):
            folder = os.path.realpath(folder(args))
            os.makedirs(folder, exist_ok=True)
        if callable(self._prefix):
            return os.path.join(folder, self._prefix(args) + suffix + self._ending())
        step = (args.cur_step_num - 1) % args.batch_num + 1
        return os.path.join(folder, f"{self._prefix}-{args.get('cur_epoch_num', 1)}_{step}{suffix}{self._ending()}")

    def _save(self, args, suffix=""):
        from morel.train.serialization import save_checkpoint

        path = self._path(args, suffix)
        append = dict(self._config.append_dict or {})
        for key, value in (("epoch_num", args.get("cur_epoch_num", 1)), ("step_num", args.cur_step_num)):
            if key in append:
                append[key] = value
        network = self._config.saved_network or args.train_network
        save_checkpoint(
            network,
            path,
            self._config.integrated_save,
            self._config.async_save,
            append or None,
            crc_check=self._config.crc_check,
            format=self._config.format,
        )
        self._last_step, self._last_time = args.cur_step_num, time.time()
        self._latest = args["latest_ckpt_file"] = path
        args["last_save_ckpt_step"] = args.cur_step_num
        if not suffix:
            self._files = [(when, old) for when, old in self._files if old != path] + [(time.time(), path)]
            self._remove_old()

    def _remove_old(self):
        """New files first: what is removed is already replaced."""
        if self._config.keep_checkpoint_max:
            while len(self._files) > self._config.keep_checkpoint_max:
                _remove(self._files.pop(0)[1])
        elif self._config.keep_checkpoint_per_n_minutes:
            span = self._config.keep_checkpoint_per_n_minutes * 60
            recent = [item for item in self._files if item[0] >= self._minute_start]
            if time.time() - self._minute_start > span:
                self._minute_start = time.time()
            elif len(recent) > 1:
                for item in recent[:-1]:
                    self._files.remove(item)
                    _remove(item[1])


def _remove(path):
    try:
        os.remove(path)
    except FileNotFoundError:
        pass


class OnRequestExit(Callback):
    """Saves and ends a training when the process gets a signal, or when a file says so.

    Args:
        save_ckpt (bool): save ``FILE_NAME_train.ckpt``. Default ``True``.
        save_mindir (bool): kept for scripts; MindIR is not supported yet. Default ``True``.
        file_name (str): start of the names. Default ``"Net"``.
        directory (str): folder of the files. Default ``"./"``.
        config_file (str, optional): a JSON file; ``{"GracefulExit": 1}`` in it ends the training.
        sig (int): the signal. Default ``signal.SIGTERM``.
    """

    def __init__(
        self, save_ckpt=True, save_mindir=True, file_name="Net", directory="./", config_file=None, sig=signal.SIGTERM
    ):
        super().__init__()
        for value, name in ((save_ckpt, "save_ckpt"), (save_mindir, "save_mindir")):
            is_bool(value, name)
        for value, name in ((file_name, "file_name"), (directory, "directory")):
            if not isinstance(value, str):
                raise TypeError(f"The '{name}' must be str, but got {type(value).__name__}.")
        if not isinstance(sig, int):
            raise TypeError(f"The 'sig' must be int, but got {type(sig).__name__}.")
        self.save_ckpt, self.file_name, self.directory, self.config_file, self.sig = (
            save_ckpt,
            file_name,
            directory,
            config_file,
            sig,
        )
        self.exit = False
        self._before = None

    def _handle(self, number, frame):
        self.exit = True

    def on_train_begin(self, run_context):
        """Listens for the signal; goes on from a file that an earlier run has saved."""
        self.exit = False
        try:
            self._before = signal.signal(self.sig, self._handle)
        except ValueError:  # not the main thread: only the file counts
            self._before = None
        path = self._path("train")
        if self.save_ckpt and os.path.isfile(path):
            from morel.train.serialization import load_checkpoint

            load_checkpoint(path, net=run_context.original_args().train_network)

    def _path(self, mode):
        return os.path.join(os.path.realpath(self.directory), f"{self.file_name}_{mode}.ckpt")

    def _asked(self):
        if self.config_file is None or not os.path.exists(self.config_file):
            return False
        try:
            with open(self.config_file, encoding="utf-8") as handle:
                return json.load(handle).get("GracefulExit") == 1
        except ValueError:  # being written at this moment
            return False

    def on_train_step_end(self, run_context):
        """Ends the training if asked to."""
        if self.exit or self._asked():
            self.exit = True
            run_context.request_stop()

    def on_train_end(self, run_context):
        """Saves if asked to end."""
        if self._before is not None:
            signal.signal(self.sig, self._before)
        if self.exit and self.save_ckpt:
            from morel.train.serialization import save_checkpoint

            os.makedirs(self.directory, exist_ok=True)
            save_checkpoint(run_context.original_args().train_network, self._path("train"))
