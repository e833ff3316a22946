"""Buffers and the state dict of a Cell: what a checkpoint holds and how it is loaded back."""

from collections import OrderedDict, namedtuple

from morel._core import Tensor
from morel.common.hook_handle import HookHandle
from morel.common.parameter import Parameter
from morel.nn._cell_hooks import Hooks

_EXTRA_STATE = "_extra_state"
_IncompatibleKeys = namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])


class _StateDict(OrderedDict):
    """What `state_dict` returns: an OrderedDict that carries `_metadata`."""


class CellState:
    """The state part of Cell."""

    _non_persistent_buffers_set = frozenset()
    _state_dict_hooks = {}
    _state_dict_pre_hooks = {}
    _load_state_dict_pre_hooks = {}
    _load_state_dict_post_hooks = {}

    def register_buffer(self, name, tensor, persistent=True):
        """Registers a tensor that belongs to the state but is not trained.

        Args:
            name (str): attribute name; without dots, not yet used.
            tensor (Union[Tensor, None]): the value.
            persistent (bool): whether `state_dict` includes it. Default ``True``.

        Raises:
            TypeError: `name` is not a str or `tensor` is not a Tensor.
            KeyError: `name` is empty, has a dot, or is taken.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("For 'register_buffer', please call Cell.__init__() first.")
        if not isinstance(name, str):
            raise TypeError(f"For 'register_buffer', 'name' must be str, but got {type(name).__name__}.")
        if not name or "." in name:
            raise KeyError(f"For 'register_buffer', 'name' must not be empty or contain '.', but got '{name}'.")
        if hasattr(self, name) and name not in self._buffers:
            raise KeyError(f"For 'register_buffer', the attribute '{name}' already exists.")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"For 'register_buffer', 'tensor' must be Tensor or None, but got {type(tensor).__name__}.")
        self._buffers[name] = tensor
        transient = set(self._non_persistent_buffers_set)
        (transient.discard if persistent else transient.add)(name)
        self.__dict__["_non_persistent_buffers_set"] = transient

    def get_buffer(self, target):
        """The buffer with the dotted name `target`."""
        path, _, name = target.rpartition(".")
        cell = self.get_sub_cell(path)
        if name not in cell._buffers:
            raise AttributeError(f"For '{cell.cls_name}', '{name}' is not a buffer.")
        return cell._buffers[name]

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Yields (name, buffer) of this cell and, with `recurse`, of the cells in it."""
        seen = set()
        cells = self.cells_and_names(name_prefix=prefix) if recurse else [(prefix, self)]
        for path, cell in cells:
            for name, buffer in cell._buffers.items():
                if buffer is None or (remove_duplicate and id(buffer) in seen):
                    continue
                seen.add(id(buffer))
                yield (f"{path}.{name}" if path else name), buffer

    def buffers(self, recurse=True):
        """Yields the buffers of this cell and, with `recurse`, of the cells in it."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_extra_state(self):
        """Override together with `set_extra_state` to store more than tensors in the state dict."""
        raise RuntimeError(f"For '{self.cls_name}', 'get_extra_state' is not defined.")

    def set_extra_state(self, state):
        """Takes back what `get_extra_state` gave."""
        raise RuntimeError(f"For '{self.cls_name}', 'set_extra_state' is not defined.")

    def _add_state_hook(self, attribute, hook):
        hooks = self.__dict__.setdefault(attribute, Hooks())
        handle = HookHandle(hooks)
        hooks[handle.handle_id] = hook
        return handle

    def register_state_dict_pre_hook(self, hook):
        """Calls ``hook(cell, prefix, keep_vars)`` before `state_dict` collects."""
        return self._add_state_hook("_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook):
        """Calls ``hook(cell, state_dict, prefix, local_metadata)`` after `state_dict` collected; returns ``None``."""
        return self._add_state_hook("_state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Calls ``hook(cell, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)`` first."""
        return self._add_state_hook("_load_state_dict_pre_hooks", hook)

    def register_load_state_dict_post_hook(self, hook):
        """Calls ``hook(cell, incompatible_keys)`` after loading; it may change the lists in place."""
        return self._add_state_hook("_load_state_dict_post_hooks", hook)

    def _local_state(self):
        """The cell's own parameters and persistent buffers by name."""
        state = {name: value for name, value in self._params.items() if value is not None}
        for name, value in self._buffers.items():
            if value is not None and name not in self._non_persistent_buffers_set:
                state[name] = value
        return state

    def _overrides(self, method):
        return getattr(type(self), method) is not getattr(CellState, method)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, value in self._local_state().items():
            destination[prefix + name] = value
        if self._overrides("get_extra_state"):
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """Parameters and persistent buffers of the whole tree, by dotted attribute path.

        Args:
            destination (dict, optional): where to store; a new OrderedDict by default.
            prefix (str): put before every key. Default ``""``.
            keep_vars (bool): kept for compatibility; values are the parameters themselves. Default ``False``.

        Returns:
            dict.

        Example:
            >>> from morel import nn
            >>> list(nn.Dense(2, 3).state_dict())
            ['weight', 'bias']
        """
        if args:
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and not prefix else prefix
            keep_vars = args[2] if len(args) > 2 and not keep_vars else keep_vars
        for name, value, kind in (("prefix", prefix, str), ("keep_vars", keep_vars, bool)):
            if not isinstance(value, kind):
                raise TypeError(f"For 'state_dict', '{name}' must be {kind.__name__}, but got {type(value).__name__}.")
        if destination is None:
            destination = _StateDict()
            destination._metadata = OrderedDict()
        elif not isinstance(destination, dict):
            raise TypeError(f"For 'state_dict', 'destination' must be dict, but got {type(destination).__name__}.")
        local_metadata = {}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, cell in self._cells.items():
            if cell is not None:
                cell.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            if hook(self, destination, prefix, local_metadata) is not None:
                raise RuntimeError("For 'state_dict', a post-hook must return None.")
        return destination

    def _load_entry(self, key, target, value, errors):
        """Copies one value of the state dict into a parameter or buffer."""
        if not isinstance(value, Tensor):
            errors.append(f"'{key}' must be a Tensor, but got {type(value).__name__}.")
        elif tuple(value.shape) != tuple(target.shape):
            errors.append(
                f"'{key}' has shape {tuple(value.shape)}, the shape in this network is {tuple(target.shape)}."
            )
        elif isinstance(target, Parameter):
            target.set_data(value)
        else:
            target.assign_value(value if value.dtype == target.dtype else value.astype(target.dtype))

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        for hook in self._load_state_dict_pre_hooks.values():
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        local = self._local_state()
        for name, target in local.items():
            if prefix + name in state_dict:
                self._load_entry(prefix + name, target, state_dict[prefix + name], error_msgs)
            elif strict:
                missing_keys.append(prefix + name)
        extra = prefix + _EXTRA_STATE
        if self._overrides("set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    head, _, tail = key[len(prefix) :].partition(".")
                    if (tail and head not in self._cells and head + "." + tail not in local) or (
                        not tail and head not in local
                    ):
                        unexpected_keys.append(key)

    def load_state_dict(self, state_dict, strict=True):
        """Copies the values of a state dict into this cell and the cells in it.

        Args:
            state_dict (dict): as `state_dict` returns it.
            strict (bool): refuse missing and unexpected keys. Default ``True``.

        Returns:
            A named tuple of the lists missing_keys and unexpected_keys.

        Raises:
            TypeError: `state_dict` is not a mapping.
            RuntimeError: a shape differs or, with `strict`, keys are missing or unexpected.
        """
        if not hasattr(state_dict, "keys") or not hasattr(state_dict, "__getitem__"):
            raise TypeError(
                f"For 'load_state_dict', 'state_dict' must be dict-like, but got {type(state_dict).__name__}."
            )
        metadata = getattr(state_dict, "_metadata", {})
        state_dict = OrderedDict(state_dict)  # pre-hooks may change it
        missing, unexpected, errors = [], [], []

        def load(cell, entries, prefix):
            cell._load_from_state_dict(
                entries, prefix, metadata.get(prefix[:-1], {}), True, missing, unexpected, errors
            )
            for name, child in cell._cells.items():
                if child is not None:
                    path = f"{prefix}{name}."
                    load(child, OrderedDict((k, v) for k, v in entries.items() if k.startswith(path)), path)
            result = _IncompatibleKeys(missing, unexpected)
            for hook in cell._load_state_dict_post_hooks.values():
                if hook(cell, result) is not None:
                    raise RuntimeError("For 'load_state_dict', a post-hook must return None.")

        load(self, state_dict, "")
        if strict and missing:
            errors.insert(0, f"Missing key(s) in state_dict: {', '.join(missing)}.")
        if strict and unexpected:
            errors.insert(0, f"Unexpected key(s) in state_dict: {', '.join(unexpected)}.")
        if errors:
            raise RuntimeError(
                f"For 'load_state_dict', error(s) in loading into {self.cls_name}:\n\t" + "\n\t".join(errors)
            )
        return _IncompatibleKeys(missing, unexpected)
