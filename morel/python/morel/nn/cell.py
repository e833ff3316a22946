"""Cell: the base class of layers, networks, losses and optimizers."""

from collections import OrderedDict
from weakref import ref

from morel._core import Tensor
from morel.common.parameter import Parameter, ParameterTuple, _Buffer, _is_parameter_generated
from morel.common.structure import changed
from morel.nn._cell_hooks import CellHooks
from morel.nn._cell_state import CellState

__all__ = ["Cell", "GraphCell"]


class _Members(dict):
    """The parameters, buffers or children of a cell. Each entry is an ordinary attribute of the cell too.

    The cell is held weakly: a cycle would keep its memory until the garbage collector runs.
    """

    __slots__ = ("_owner",)

    def __init__(self, owner, entries=()):
        self._owner = ref(owner)
        dict.__init__(self, entries)

    def _set_attribute(self, name, value):
        owner = self._owner()
        if owner is not None:
            owner.__dict__[name] = value
            changed(owner)

    def _drop_attribute(self, name):
        owner = self._owner()
        if owner is not None:
            owner.__dict__.pop(name, None)
            changed(owner)

    def __setitem__(self, name, value):
        dict.__setitem__(self, name, value)
        self._set_attribute(name, value)

    def __delitem__(self, name):
        dict.__delitem__(self, name)
        self._drop_attribute(name)

    def pop(self, name, *default):
        if name in self:
            self._drop_attribute(name)
        return dict.pop(self, name, *default)

    def popitem(self):
        name, value = dict.popitem(self)
        self._drop_attribute(name)
        return name, value

    def clear(self):
        for name in list(self):
            del self[name]

    def update(self, *args, **kwargs):
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def setdefault(self, name, default=None):
        if name not in self:
            self[name] = default
        return self[name]

    def __reduce__(self):
        return dict, (list(self.items()),)  # the owner's __setstate__ binds it again

    def __deepcopy__(self, memo):
        from copy import deepcopy

        return {name: deepcopy(value, memo) for name, value in self.items()}


_REGISTRIES = ("_params", "_cells", "_buffers")


def _indented(text, width):
    return text.replace("\n", "\n" + " " * width)


class Cell(CellHooks, CellState):
    """Base class of everything that computes with parameters.

    A subclass creates its parameters and sub-cells in ``__init__`` (after ``super().__init__()``) and computes in
    ``construct``. If it also defines ``bprop(self, *inputs, output, grad_output)``, that gives the gradients of the
    inputs instead of automatic differentiation.

    Args:
        auto_prefix (bool): name the parameters of sub-cells by their path. Default ``True``.
        flags (dict, optional): attributes to set.

    Example:
        >>> from morel import nn, ops
        >>> class Net(nn.Cell):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.hidden = nn.Dense(4, 3)
        ...
        ...     def construct(self, x):
        ...         return ops.relu(self.hidden(x))
        >>> [p.name for p in Net().trainable_params()]
        ['hidden.weight', 'hidden.bias']
    """

    # Defaults that most cells never change stay on the class; this keeps instances small and creation quick.
    training = False
    requires_grad = False
    has_bprop = False
    cell_type = None
    is_top_cell = False
    mixed_precision_type = None
    bprop_debug = False
    cell_init_args = ""
    compiled = False
    arguments_key = ""
    _auto_prefix = True
    _param_prefix = ""
    _phase = "train"
    _scope = None
    _amp_level = ""
    _recompute_flag = False
    _parameter_id = 1
    _dynamic_shape_inputs = None
    # True once names are checked and nothing surrounds `construct`: then a call is one branch and the call itself.
    _direct = False
    _names_checked = False

    def __init__(self, auto_prefix=True, flags=None):
        attributes = self.__dict__
        for registry in _REGISTRIES:
            attributes[registry] = _Members(self)
        if not auto_prefix:
            attributes["_auto_prefix"] = False
        if hasattr(type(self), "bprop"):
            attributes["has_bprop"] = True
        if flags:
            self.add_flags(**flags)

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, state):
        attributes = self.__dict__
        attributes.update(state)
        for registry in _REGISTRIES:
            if registry in state:
                attributes[registry] = _Members(self, state[registry])

    def __bool__(self):
        return True  # containers define __len__; an empty one is still a cell

    # ---- calling ---------------------------------------------------------------------------------------------------

    def construct(self, *args, **kwargs):
        """The computation; every subclass defines it."""
        raise AttributeError("For 'Cell', the method 'construct' is not defined.")

    def __call__(self, *args, **kwargs):
        if self._direct:
            return self.construct(*args, **kwargs)
        return self._call_checked(args, kwargs)

    def _call_checked(self, args, kwargs):
        """The general call: checks names once, then runs hooks, mixed precision, custom gradients around construct."""
        if not self._names_checked:
            self._prepare()
        hooked = self._has_hooks()
        if not hooked and self.mixed_precision_type is None and not self.has_bprop:
            self.__dict__["_direct"] = True
            return self.construct(*args, **kwargs)
        return self._call_hooked(args, kwargs) if hooked else self._call_inner(args, kwargs)

    def _prepare(self):
        """Before the first call: unique parameter names, pending initializers."""
        if "_params" not in self.__dict__:
            raise AttributeError(f"For '{type(self).__name__}', please call super().__init__() in __init__.")
        self.check_names_and_refresh_name()
        for param in self._params.values():
            if param is not None and param.has_init:
                param.init_data()
        self.__dict__["_names_checked"] = True

    def _call_inner(self, args, kwargs):
        """`construct` with whatever replaces or surrounds it, but without call hooks."""
        from morel import _core

        if self.mixed_precision_type is not None:
            from morel.nn._mixed_precision import run_in_dtype

            return run_in_dtype(self, self.mixed_precision_type, self._call_recorded, _core, args, kwargs)
        return self._call_recorded(_core, args, kwargs)

    def _call_recorded(self, core, args, kwargs):
        if self.has_bprop and core.grad_enabled():
            return self._call_bprop(core, args, kwargs)
        if self._saved_tensors_hooks is not None:
            with core.saved_tensors_hooks(*self._saved_tensors_hooks):
                return self.construct(*args, **kwargs)
        return self.construct(*args, **kwargs)

    def _call_bprop(self, core, args, kwargs):
        """Runs `construct` unrecorded; in the backward pass `bprop(*inputs, output, grad_output)` takes its place."""
        if kwargs or self.construct.__defaults__ or self.construct.__kwdefaults__:
            from inspect import signature

            bound = signature(self.construct).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        output = core.without_grad(self.construct, *args)
        single = not isinstance(output, tuple)

        def backward(*gradients):
            result = self.bprop(*args, output, gradients[0] if single else gradients)
            result = result if isinstance(result, tuple) else (result,)
            if len(result) != len(args):
                raise TypeError(
                    f"For '{self.cls_name}', 'bprop' must return {len(args)} gradients, one for each "
                    f"input, but returned {len(result)}."
                )
            return result

        linked = core.custom_backward(self.cls_name, list(args), [output] if single else list(output), backward)
        return linked[0] if single else tuple(linked)

    # ---- attributes ------------------------------------------------------------------------------------------------

    def __getattr__(self, name):
        # Only reached when the attribute does not exist.
        if name in _REGISTRIES:
            raise AttributeError(
                f"The '{type(self).__name__}' object has no attribute '{name}': please call super().__init__() first."
            )
        raise AttributeError(f"The '{type(self).__name__}' object has no attribute '{name}'.")

    def __setattr__(self, name, value):
        if isinstance(value, Parameter):
            self._forget_plain(name)
            self.insert_param_to_cell(name, value)
        elif isinstance(value, Cell):
            self._set_cell(name, value)
        elif isinstance(value, ParameterTuple):
            self._set_parameter_tuple(name, value)
        elif isinstance(value, _Buffer):
            self._forget_plain(name)
            self.register_buffer(name, value, value.persistent)
        else:
            attributes = self.__dict__
            if name in attributes:  # registered names are attributes too
                for registry in _REGISTRIES:
                    if name in attributes.get(registry, ()):
                        self._set_registered(name, value, attributes[registry])
                        return
            if isinstance(value, (list, tuple)) and value and all(isinstance(v, Parameter) for v in value):
                self._check_listed_names(value)
            object.__setattr__(self, name, value)

    def __delattr__(self, name):
        for registry in _REGISTRIES:
            if name in self.__dict__.get(registry, ()):
                del self.__dict__[registry][name]
                return
        object.__delattr__(self, name)

    def _forget_plain(self, name):
        """Drops an ordinary attribute of that name, so that it can become a parameter or child."""
        attributes = self.__dict__
        if name in attributes and not any(name in attributes.get(r, ()) for r in _REGISTRIES):
            del attributes[name]

    def _set_cell(self, name, value):
        self._forget_plain(name)
        if self._auto_prefix:
            value.update_parameters_name(name + ".")
        self.insert_child_to_cell(name, value)

    def _set_parameter_tuple(self, name, value):
        names, seen = set(), set()
        for item in value:
            if id(item) in seen:
                continue
            seen.add(id(item))
            if _is_parameter_generated(item.name):
                item.name = f"Parameter${self._parameter_id}"
                self.__dict__["_parameter_id"] = self._parameter_id + 1
            if item.name in names:
                raise ValueError(
                    f"For '{type(self).__name__}', the parameter name '{item.name}' already exists in "
                    f"'{name}'. Please set a unique name for the parameter."
                )
            names.add(item.name)
            # Registered, but no attribute of its own: the names of other cells' parameters (an optimizer holds them)
            # must not hide or block attributes of this cell.
            dict.__setitem__(self._params, item.name, item)
        object.__setattr__(self, name, value)

    def _check_listed_names(self, values):
        """Parameters in plain lists are not registered, but their names must not clash."""
        listed = self.__dict__.setdefault("_listed_names", {})
        for item in values:
            if listed.setdefault(item.name, item) is not item:
                raise ValueError(
                    f"For '{type(self).__name__}', the parameter name '{item.name}' already exists. "
                    f"Please set a unique name for the parameter."
                )

    def _set_registered(self, name, value, registry):
        """Assigns something that is no Parameter or Cell to the name of a parameter, child or buffer."""
        if value is None:
            registry[name] = None
        elif registry is self._params and isinstance(value, Tensor) and registry[name] is not None:
            registry[name].set_data(value)
        elif registry is self._buffers and isinstance(value, Tensor):
            registry[name] = value
        elif registry[name] is None:
            dict.pop(registry, name)
            object.__setattr__(self, name, value)
        else:
            what = {"_params": "Parameter", "_cells": "Sub cell", "_buffers": "Buffer"}
            kind = next(what[r] for r in _REGISTRIES if self.__dict__[r] is registry)
            raise TypeError(
                f"For '{type(self).__name__}', {kind} '{name}' already exists, can not assign "
                f"{type(value).__name__} to it."
            )

    def insert_param_to_cell(self, param_name, param, check_name_contain_dot=True):
        """Registers a parameter (or ``None``) under `param_name`.

        Raises:
            KeyError: the name is empty, has a dot, or is taken.
            TypeError: `param` is not a Parameter.
        """
        if not param_name:
            raise KeyError("For 'insert_param_to_cell', the argument 'param_name' should not be None.")
        if check_name_contain_dot and "." in param_name:
            raise KeyError("For 'insert_param_to_cell', the argument 'param_name' should not contain '.'.")
        if "_params" not in self.__dict__:
            raise AttributeError("For 'insert_param_to_cell', please call Cell.__init__() firstly.")
        if param_name not in self._params and hasattr(self, param_name):
            raise KeyError(f"For 'insert_param_to_cell', the name '{param_name}' already exists in the cell.")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"For 'insert_param_to_cell', the argument 'param' must be 'Parameter' if not None, "
                f"but got {type(param)}."
            )
        if param is not None and _is_parameter_generated(param.name):
            param.name = param_name
        self._params[param_name] = param

    def insert_child_to_cell(self, child_name, child_cell):
        """Registers a sub-cell (or ``None``) under `child_name`; parameter names are left as they are.

        Raises:
            KeyError: the name is empty, has a dot, or is taken.
            TypeError: the name is not a str or `child_cell` not a Cell.
        """
        if not isinstance(child_name, str):
            raise TypeError(
                f"For 'insert_child_to_cell', the type of parameter 'child_name' must be str, "
                f"but got {type(child_name)}."
            )
        if not child_name or "." in child_name:
            raise KeyError(
                "For 'insert_child_to_cell', the parameter 'child_name' can not be None and can not contain '.'."
            )
        if child_name not in self._cells and hasattr(self, child_name):
            raise KeyError(f"For 'insert_child_to_cell', the name '{child_name}' already exists in the cell.")
        if child_cell is not None and not isinstance(child_cell, Cell):
            raise TypeError(
                f"For 'insert_child_to_cell', the argument 'child_cell' must be 'Cell' if not None, "
                f"but got type {type(child_cell)}."
            )
        self._cells[child_name] = child_cell

    # ---- walking the tree ------------------------------------------------------------------------------------------

    def name_cells(self):
        """The direct sub-cells by name, each once."""
        seen, cells = set(), OrderedDict()
        for name, cell in self._cells.items():
            if cell is not None and id(cell) not in seen:
                seen.add(id(cell))
                cells[name] = cell
        return cells

    def cells(self):
        """The direct sub-cells."""
        return self.name_cells().values()

    def cells_and_names(self, cells=None, name_prefix=""):
        """Yields (dotted path, cell) for this cell and all cells below, each once."""
        seen = cells if cells else set()
        if self in seen:
            return
        seen.add(self)
        yield name_prefix, self
        for name, cell in self._cells.items():
            if cell is not None:
                yield from cell.cells_and_names(seen, f"{name_prefix}.{name}" if name_prefix else name)

    def get_sub_cell(self, target):
        """The cell at the dotted path `target`; the cell itself for ``""``."""
        cell = self
        for name in target.split(".") if target else ():
            if name not in cell._cells:
                raise AttributeError(f"For '{cell.cls_name}', '{name}' is not a cell.")
            cell = cell._cells[name]
        return cell

    def parameters_and_names(self, name_prefix="", expand=True):
        """Yields (dotted path, parameter), each parameter once.

        Args:
            name_prefix (str): put before the paths. Default ``""``.
            expand (bool): include the parameters of sub-cells. Default ``True``.
        """
        seen = set()
        for path, cell in self.cells_and_names(name_prefix=name_prefix) if expand else [(name_prefix, self)]:
            for name, param in cell._params.items():
                if param is not None and id(param) not in seen:
                    seen.add(id(param))
                    yield (f"{path}.{name}" if path else name), param

    def get_parameters(self, expand=True):
        """Yields the parameters of this cell and, with `expand`, of the cells in it."""
        for _, param in self.parameters_and_names(expand=expand):
            yield param

    def parameters_dict(self, recurse=True):
        """The parameters by their own names."""
        return OrderedDict((param.name, param) for param in self.get_parameters(expand=recurse))

    def parameters_broadcast_dict(self, recurse=True):
        """The parameters that data parallel training broadcasts, or ``None``."""
        shared = OrderedDict((p.name, p) for p in self.get_parameters(expand=recurse) if not p.layerwise_parallel)
        return shared or None

    def trainable_params(self, recurse=True):
        """The list of parameters that are trained."""
        return [param for param in self.get_parameters(expand=recurse) if param.requires_grad]

    def untrainable_params(self, recurse=True):
        """The list of parameters that are not trained."""
        return [param for param in self.get_parameters(expand=recurse) if not param.requires_grad]

    # ---- parameter names -------------------------------------------------------------------------------------------

    def update_parameters_name(self, prefix="", recurse=True):
        """Names every parameter `prefix` + its path."""
        if not isinstance(prefix, str):
            raise TypeError(f"For 'update_parameters_name', 'prefix' must be str, but got {type(prefix).__name__}.")
        for name, param in self.parameters_and_names(expand=recurse):
            param.name = prefix + name

    def check_names(self):
        """Raises a ValueError when two parameters have the same name."""
        names = set()
        for path, param in self.parameters_and_names():
            if param.name in names:
                raise ValueError(
                    f"For '{self.cls_name}', the parameter '{path}' has the name '{param.name}', which "
                    f"already exists. Please set a unique name for the parameter."
                )
            names.add(param.name)

    def check_names_and_refresh_name(self):
        """Gives all parameters the names of their paths if some names clash."""
        names = [param.name for param in self.get_parameters()]
        if len(set(names)) < len(names):
            self.update_parameters_name()
            self.check_names()

    def update_cell_prefix(self):
        """Records in every cell its path, `param_prefix`."""
        for path, cell in self.cells_and_names():
            cell.__dict__["_param_prefix"] = path

    @property
    def param_prefix(self):
        """The path that `update_cell_prefix` recorded."""
        return self._param_prefix

    # ---- flags and modes -------------------------------------------------------------------------------------------

    def add_flags(self, **flags):
        """Sets attributes that also count as flags of the cell (see `get_flags`)."""
        self.__dict__.setdefault("_func_graph_flags", {}).update(flags)
        self.__dict__.update(flags)
        for flag, dtype_name in (("fp16", "float16"), ("fp32", "float32"), ("bf16", "bfloat16")):
            if flags.get(flag):
                from morel.common import dtype as mstype

                self.__dict__["mixed_precision_type"] = getattr(mstype, dtype_name)
                self.__dict__["_direct"] = False
                changed(self)
        return self

    def add_flags_recursive(self, **flags):
        """`add_flags` on this cell and all cells below."""
        self.add_flags(**flags)
        for cell in self.cells():
            cell.add_flags_recursive(**flags)
        return self

    def get_flags(self):
        """The flags of this cell."""
        return self.__dict__.setdefault("_func_graph_flags", {})

    def set_train(self, mode=True):
        """Switches this cell and all cells below between training and evaluation (dropout, batch statistics)."""
        self.__dict__["_phase"] = "train" if mode else "predict"
        return self.add_flags_recursive(training=mode)

    def set_grad(self, requires_grad=True):
        """Marks the cell for gradients; kept for compatibility, recording is decided by `grad` and `value_and_grad`."""
        self.__dict__["requires_grad"] = requires_grad
        return self

    def to_float(self, dst_type):
        """Runs the operators of this cell and all cells below in `dst_type`.

        Args:
            dst_type (mindspore.dtype): float16, float32 or bfloat16.

        Raises:
            ValueError: another dtype.
        """
        from morel.common import dtype as mstype

        flags = {"fp16": mstype.float16, "fp32": mstype.float32, "bf16": mstype.bfloat16}
        if dst_type not in flags.values():
            raise ValueError(
                f"For 'to_float', the argument 'dst_type' must be mstype.float32, mstype.float16 or "
                f"mstype.bfloat16, but got type: {type(dst_type)} and value: {dst_type}."
            )
        return self.add_flags_recursive(**{flag: dtype == dst_type for flag, dtype in flags.items()})

    def set_boost(self, boost_type):
        """Flags the cells for the algorithm `boost_type` (``"less_bn"``)."""
        if boost_type not in ("less_bn",):
            raise ValueError(f"For 'set_boost', the argument 'boost_type' must be 'less_bn', but got {boost_type}.")
        return self.add_flags_recursive(less_bn=True)

    def set_broadcast_flag(self, mode=True):
        """Flags the cells for parameter broadcast."""
        return self.add_flags_recursive(broadcast_flag=mode)

    def set_data_parallel(self):
        """Kept for compatibility; changes nothing on one device."""

    def set_comm_fusion(self, fusion_type, recurse=True):
        """Sets the communication fusion group of the trainable parameters."""
        for param in self.trainable_params(recurse):
            param.comm_fusion = fusion_type
        return self

    def recompute(self, *, use_reentrant=True, output_recompute=False, **kwargs):
        """Asks for activations to be computed again in the backward pass.

        Values and gradients are the same either way; in PyNative mode only the wish is recorded. The outermost of cells
        within each other that ask for it is computed again as a whole.
        """
        known = ("mp_comm_recompute", "parallel_optimizer_comm_recompute", "recompute_slice_activation")
        for key in kwargs:
            if key not in known:
                raise ValueError(f"For 'recompute', keyword '{key}' is not recognized, it must be in {list(known)}.")
        for cell in (self, *self.cells()):
            cell.__dict__["_recompute_flag"] = True

    # ---- the rest of the public interface --------------------------------------------------------------------------

    def apply(self, fn):
        """Calls `fn(cell)` for all cells below and then for this one."""
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self

    def init_parameters_data(self, auto_parallel_mode=False):
        """Runs all pending initializers and returns {parameter: parameter}."""
        return {param: param.init_data() for param in self.get_parameters()}

    def set_inputs(self, *inputs, **kwargs):
        """Declares dynamic input shapes; PyNative mode needs no such declaration and only keeps it."""
        if inputs and kwargs:
            raise ValueError("For 'set_inputs', give either positional or keyword inputs, not both.")
        self.__dict__["_dynamic_shape_inputs"] = inputs if inputs or not kwargs else kwargs

    def get_inputs(self):
        """What `set_inputs` declared."""
        return self._dynamic_shape_inputs

    def set_jit_config(self, jit_config):
        """Keeps the first configuration for graph mode."""
        self.__dict__.setdefault("_jit_config_dict", jit_config.jit_config_dict)

    @property
    def jit_config_dict(self):
        """The configuration for graph mode."""
        return self.__dict__.get("_jit_config_dict", {})

    def compile(self, *args, **kwargs):
        """Compiles the cell into a graph for these arguments, without running it."""
        from morel.compiler import compiled_cell

        compiled_cell(self).prepare(*args, **kwargs)

    def compile_and_run(self, *args, **kwargs):
        """Compiles the cell for graph mode and runs it."""
        from morel.compiler import compiled_cell

        return compiled_cell(self)(*args, **kwargs)

    def shard(self, in_strategy, out_strategy=None, parameter_plan=None):
        """Shards the computation of the cell over devices."""
        raise NotImplementedError("For 'Cell.shard', sharding is not available yet; only one device is supported.")

    def offload(self, backward_prefetch="Auto"):
        """Keeps activations in host memory until the backward pass."""
        raise NotImplementedError("For 'Cell.offload', the CPU device has no second memory to offload to.")

    def update_cell_type(self, cell_type):
        """Sets `cell_type`."""
        self.cell_type = cell_type

    @property
    def cls_name(self):
        """The class name."""
        return type(self).__name__

    @property
    def phase(self):
        """``"train"`` or ``"predict"``, or whatever was set."""
        return self._phase

    @phase.setter
    def phase(self, value):
        if not isinstance(value, str):
            raise TypeError(f"For 'Cell', the property 'phase' must be string type, but got type {type(value)}.")
        self.__dict__["_phase"] = value

    @property
    def pipeline_stage(self):
        """The pipeline stage that the cell runs on."""
        return self.__dict__.get("_pipeline_stage", 0)

    @pipeline_stage.setter
    def pipeline_stage(self, value):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"For 'Cell', the property 'pipeline_stage' must be int type, but got {type(value)}.")
        if value < 0:
            raise ValueError(f"For 'Cell', the property 'pipeline_stage' can not be less than 0, but got {value}.")
        self.__dict__["_pipeline_stage"] = value
        for param in self.trainable_params():
            param.add_pipeline_stage(value)

    def get_scope(self):
        """The scope name that `generate_scope` gave."""
        return self._scope

    def generate_scope(self, prefix="Default"):
        """Gives every cell below a scope name such as ``"Default/backbone/conv"``."""
        for name, cell in self.name_cells().items():
            if cell._scope is None:
                cell.__dict__["_scope"] = f"{prefix}/{name}"
            cell.generate_scope(f"{prefix}/{name}")

    def _get_name(self):
        return type(self).__name__

    def extend_repr(self):
        """What `repr` shows between the parentheses; subclasses override it."""
        return ""

    def __repr__(self):
        extra = self.extend_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): {_indented(repr(cell), 2)}" for name, cell in self._cells.items()]
        if len(extra_lines) == 1 and not child_lines:
            return f"{self._get_name()}({extra_lines[0]})"
        lines = extra_lines + child_lines
        return f"{self._get_name()}(" + ("\n  " + "\n  ".join(lines) + "\n" if lines else "") + ")"

    def __str__(self):
        return self.__repr__()


class GraphCell(Cell):
    """A cell that runs a graph loaded from a MindIR file."""

    def __init__(self, graph, params_init=None, obf_random_seed=None):
        super().__init__(auto_prefix=True)
        raise NotImplementedError("For 'GraphCell', graph mode is not available yet; build the network in Python.")
