"""The base class of the optimizers: parameter groups, learning rates, weight decay."""

from morel import _core, ops
from morel._core import Tensor
from morel.common import dtype as mstype
from morel.common.initializer import initializer
from morel.common.parameter import Parameter, ParameterTuple
from morel.nn.cell import Cell
from morel.nn.layer.container import CellList
from morel.nn.learning_rate_schedule import LearningRateSchedule

__all__ = ["Optimizer", "opt_init_args_register"]

_GROUP_KEYS = ("params", "lr", "weight_decay", "order_params", "grad_centralization")


def opt_init_args_register(fn):
    """Decorates an optimizer's ``__init__``; keeps its arguments: `init_params`, `init_learning_rate`, `init_args`."""
    from functools import wraps

    @wraps(fn)
    def wrapped(self, *args, **kwargs):
        from inspect import signature

        bound = signature(fn).bind(self, *args, **kwargs)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        arguments.pop("self")
        kept = self.__dict__
        if "params" in arguments:
            kept["init_params"] = {"params": arguments.pop("params")}
        if "optimizer" in arguments:
            kept["init_params"] = {"params": arguments.pop("optimizer").init_params["params"]}
        if "learning_rate" in arguments:
            rate = arguments.pop("learning_rate")
            rate = rate.asnumpy().tolist() if isinstance(rate, Tensor) else rate
            kept["init_learning_rate"] = None if isinstance(rate, Cell) else rate
        kept["init_args"] = arguments
        fn(self, *args, **kwargs)

    return wrapped


def _check_scalar(value, name, cls, positive=False):
    """A float or int that is not negative (or positive), as float."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, float):
        raise TypeError(f"For '{cls}', the '{name}' must be float, but got {type(value).__name__}.")
    if value < 0 or (positive and value == 0) or value != value:
        raise ValueError(
            f"For '{cls}', the '{name}' must be float and must {'> 0' if positive else '>= 0'}, "
            f"but got '{value}' with type 'float'."
        )
    return value


def _parameter_list(parameters, what):
    """A non-empty list from any iterable."""
    if parameters is None:
        raise ValueError(f"For 'Optimizer', the argument {what} can not be None.")
    if not hasattr(parameters, "__iter__"):
        raise TypeError(f"For 'Optimizer', the argument {what} must be Iterable type, but got {type(parameters)}.")
    parameters = list(parameters)
    if not parameters:
        raise ValueError(f"For 'Optimizer', the argument {what} must not be empty.")
    return parameters


def value_of(x, kind=float):
    """A number from a float, or from a tensor with one element. In a graph that is a tensor of 64 bits, which kernels read when
    they run."""
    if isinstance(x, float):
        return x
    if _core.graph_active():
        return x.astype(mstype.float64 if kind is float else mstype.int64)
    return kind(x.item())


def _like(gradient, param):
    """The gradient in the parameter's dtype."""
    return gradient if gradient.dtype == param.dtype else gradient.astype(param.dtype)


class _Group:
    """Parameters that share learning rate, weight decay and gradient centralization; they are updated at once."""

    __slots__ = ("learning_rate", "weight_decay", "centralize", "indices")

    def __init__(self, learning_rate, weight_decay, centralize):
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.centralize = centralize
        self.indices = []


class Optimizer(Cell):
    """Base class of the optimizers.

    An optimizer is called with the gradients of its `parameters`, in their order, and updates the parameters in place.
    A subclass defines ``construct(self, gradients)``.

    Args:
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): a number; a list or a 1-D tensor with
            one value per step; or a schedule called with `global_step`.
        parameters (Union[list[Parameter], list[dict]]): the parameters, or groups of them. Keys of a group:

            - params: the parameters. Required.
            - lr: learning rate of the group, instead of `learning_rate`.
            - weight_decay: weight decay of the group, instead of `weight_decay`.
            - grad_centralization: subtract the mean of each output's gradient.
            - order_params: alone in its group; the order in which gradients will come.

        weight_decay (Union[float, int, Cell]): L2 penalty, added to the gradients as ``weight_decay * parameter``.
            Without groups it spares parameters with ``beta`` or ``gamma`` in their names. Default ``0.0``.
        loss_scale (float): the gradients are divided by it. Default ``1.0``.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is negative, or there are no parameters.
        KeyError: a group has an unknown key.
        RuntimeError: a parameter occurs in two groups.
    """

    def __init__(self, learning_rate, parameters, weight_decay=0.0, loss_scale=1.0):
        super().__init__(auto_prefix=False)
        parameters = _parameter_list(parameters, "parameters")
        if not all(isinstance(x, Parameter) for x in parameters) and not all(isinstance(x, dict) for x in parameters):
            raise TypeError(
                "For 'Optimizer', all elements of the argument 'parameters' must be 'Parameter' or 'dict', "
                "please check the 'parameters'."
            )
        self.loss_scale = _check_scalar(loss_scale, "loss_scale", self.cls_name, positive=True)
        self.need_scale = self.loss_scale != 1.0
        self.reciprocal_scale = 1.0 / self.loss_scale
        self.dynamic_lr = self.dynamic_weight_decay = False
        self.is_group = self.is_group_lr = self.is_group_params_ordered = False
        self.grad_centralization = False
        self._unique, self._target = True, "CPU"
        self.global_step = Parameter(initializer(0, (1,), mstype.int32), name="global_step")
        self.global_step_increase_tensor = 1
        learning_rate = self._preprocess_single_lr(learning_rate)
        if isinstance(parameters[0], dict):
            self._init_grouped(parameters, learning_rate, weight_decay)
        else:
            self._init_flat(parameters, learning_rate, weight_decay)
        self._parameters = self.parameters
        self.param_length = len(self.parameters)
        self.optim_filter = (True,) * self.param_length
        self.use_parallel = False
        self._build_groups()

    # ---- creation --------------------------------------------------------------------------------------------------

    def _init_flat(self, parameters, learning_rate, weight_decay):
        self.learning_rate = self._build_single_lr(learning_rate, "learning_rate")
        self.parameters = ParameterTuple(parameters)
        weight_decay = self._preprocess_weight_decay(weight_decay)
        self.decay_flags = tuple("beta" not in param.name and "gamma" not in param.name for param in parameters)
        self.dynamic_decay_flags = isinstance(weight_decay, Cell)
        self.exec_weight_decay = self.dynamic_decay_flags or weight_decay > 0
        self.weight_decay = weight_decay

    def _init_grouped(self, groups, learning_rate, weight_decay):
        self.is_group = True
        groups = [dict(group) for group in groups]
        self._check_groups(groups, learning_rate)
        default_rate = self._build_single_lr(learning_rate, "learning_rate")
        rows, order, seen = [], None, set()
        for number, group in enumerate(groups):
            if "order_params" in group:
                order = list(group["order_params"])
                continue
            rate = default_rate
            if "lr" in group:
                rate = self._build_single_lr(self._preprocess_single_lr(group["lr"]), f"learning_rate_group_{number}")
            decay = self._preprocess_weight_decay(group.get("weight_decay", weight_decay))
            centralize = group.get("grad_centralization", False)
            if not isinstance(centralize, bool):
                raise TypeError(
                    f"For 'Optimizer', the 'gradients_centralization' must be bool type, but got {type(centralize)}."
                )
            for param in group["params"]:
                if param.name in seen:
                    raise RuntimeError(
                        f"For 'Optimizer', the {param.name} parameter already exists, it does not "
                        f"support repeated setting. Please check whether the optimizer parameter has "
                        f"been set multiple times."
                    )
                seen.add(param.name)
                rows.append((param, rate, decay, centralize))
        rows = rows if order is None else self._ordered(rows, order)
        self._keep_groups(rows, default_rate)

    def _keep_groups(self, rows, default_rate):
        self.group_params, self.group_lr, self.group_weight_decay, self.group_grad_centralization = (
            list(column) for column in zip(*rows)
        )
        if not self.is_group_lr:
            self.learning_rate = default_rate
        elif self.dynamic_lr:
            self.learning_rate = CellList(self.group_lr, auto_prefix=False)
        else:
            self.learning_rate = ParameterTuple(self.group_lr)
        self.parameters = ParameterTuple(self.group_params)
        self.dynamic_decay_flags = tuple(isinstance(decay, Cell) for decay in self.group_weight_decay)
        self.decay_flags = tuple(isinstance(decay, Cell) or decay > 0 for decay in self.group_weight_decay)
        self.weight_decay = tuple(self.group_weight_decay)
        self.exec_weight_decay = any(self.decay_flags)
        self.grad_centralization_flags = tuple(self.group_grad_centralization)

    def _check_groups(self, groups, learning_rate):
        """Keys and types of the groups; finds out whether rates differ, change, or come in a given order."""
        sizes = set()
        if isinstance(learning_rate, Tensor) and learning_rate.ndim == 1:
            sizes.add(learning_rate.size)
        for group in groups:
            unknown = [key for key in group if key not in _GROUP_KEYS]
            if unknown:
                raise KeyError(
                    f"For 'Optimizer', the key in group params must be one of in {list(_GROUP_KEYS)}, "
                    f"but got {unknown}."
                )
            if "order_params" in group:
                if len(group) > 1:
                    raise ValueError(
                        f"For 'Optimizer', the order params dict in group parameters should only include "
                        f"the 'order_params' key, but got {list(group)}."
                    )
                if not hasattr(group["order_params"], "__iter__"):
                    raise TypeError(
                        f"For 'Optimizer', the value of 'order_params' in group parameters should be "
                        f"Iterable type, but got {type(group['order_params'])}."
                    )
                self.is_group_params_ordered = True
                continue
            if "params" not in group:
                raise KeyError("For 'Optimizer', a group must have the key 'params'.")
            group["params"] = _parameter_list(group["params"], "group `params`")
            for index, param in enumerate(group["params"]):
                if not isinstance(param, Parameter):
                    raise TypeError(
                        f"For 'Optimizer', the element in group parameters must be Parameter type, "
                        f"but got {type(param)} at index {index}."
                    )
            if "lr" in group:
                self.is_group_lr = True
                rate = self._preprocess_single_lr(group["lr"])
                if isinstance(rate, Tensor) and rate.ndim == 1:
                    sizes.add(rate.size)
        if len(sizes) > 1:
            raise ValueError(
                "For 'Optimizer', the Tensor type dynamic learning rate in group must be the same size as "
                "the argument 'learning_rate'."
            )

    @staticmethod
    def _ordered(rows, order):
        if len(order) != len(rows):
            raise ValueError(
                f"For 'Optimizer', the length of order parameters must be the same as the length of group "
                f"parameters, but got order parameters' length {len(order)}, group parameters' length "
                f"{len(rows)}."
            )
        by_name = {row[0].name: row for row in rows}
        for param in order:
            if param.name not in by_name:
                raise ValueError(f"For 'Optimizer', the parameter {param.name} of 'order_params' is in no group.")
        return [by_name[param.name] for param in order]

    def _preprocess_single_lr(self, learning_rate):
        """A float, a tensor, or a schedule; notes when the rate changes with the step."""
        if isinstance(learning_rate, (float, int)) and not isinstance(learning_rate, bool):
            return _check_scalar(learning_rate, "learning rate", self.cls_name)
        if isinstance(learning_rate, Tensor):
            if learning_rate.ndim > 1:
                raise ValueError(
                    f"For 'Optimizer', if 'learning_rate' is Tensor type, then the dimension of it should "
                    f"be 0 or 1, but got {learning_rate.ndim}."
                )
            self.dynamic_lr = self.dynamic_lr or learning_rate.ndim == 1
            return learning_rate.astype(mstype.float32)
        if isinstance(learning_rate, LearningRateSchedule):
            self.dynamic_lr = True
            return learning_rate
        if hasattr(learning_rate, "__iter__"):
            self.dynamic_lr = True
            return Tensor([float(rate) for rate in learning_rate], mstype.float32)
        raise TypeError(
            f"For 'Optimizer', the argument 'learning_rate' must be int, float, Tensor, Iterable or "
            f"LearningRateSchedule, but got {type(learning_rate)}."
        )

    def _build_single_lr(self, learning_rate, name):
        """What `get_lr` reads: a Parameter, or a schedule if any rate changes."""
        if isinstance(learning_rate, (float, Tensor)) and getattr(learning_rate, "ndim", 0) == 0:
            rate = Parameter(Tensor(value_of(learning_rate), mstype.float32), name)
            return _ConvertToCell(rate) if self.is_group_lr and self.dynamic_lr else rate
        return _IteratorLearningRate(learning_rate, name) if isinstance(learning_rate, Tensor) else learning_rate

    def _preprocess_weight_decay(self, weight_decay):
        """The decay for scaled gradients: times `loss_scale`, because `scale_grad` comes after `decay_weight`."""
        if isinstance(weight_decay, Cell):
            self.dynamic_weight_decay = True
            return _WrappedWeightDecay(weight_decay, self.loss_scale)
        if isinstance(weight_decay, (float, int)) and not isinstance(weight_decay, bool):
            return _check_scalar(weight_decay, "weight_decay", self.cls_name) * self.loss_scale
        raise TypeError(
            f"For 'Optimizer', the argument 'Weight_decay' must be int, float or Cell, but got {type(weight_decay)}."
        )

    def _build_groups(self):
        """Sorts the parameters by what they share; the usual case is one or two groups."""
        groups = {}
        for index in range(self.param_length):
            rate = self.learning_rate[index] if self.is_group_lr else self.learning_rate
            decay = self.weight_decay[index] if self.is_group else self.weight_decay
            decay = decay if self.decay_flags[index] else 0.0
            centralize = self.is_group and self.grad_centralization_flags[index]
            key = (id(rate), id(decay) if isinstance(decay, Cell) else decay, centralize)
            if key not in groups:
                groups[key] = _Group(rate, decay, centralize)
            groups[key].indices.append(index)
        self.__dict__["_groups"] = tuple(groups.values())

    # ---- what a step needs -----------------------------------------------------------------------------------------

    def _begin_step(self, gradients):
        """Checks the gradients, advances `global_step` and yields for each group (learning rate, weight decay of the
        unscaled gradients, indices, gradients ready for use)."""
        if not isinstance(gradients, (tuple, list)) or len(gradients) != self.param_length:
            got = f"{len(gradients)} of them" if isinstance(gradients, (tuple, list)) else type(gradients).__name__
            raise ValueError(
                f"For '{self.cls_name}', the gradients must be a tuple of {self.param_length} tensors, "
                f"one for each parameter, but got {got}."
            )
        step = self.global_step
        ready = []
        for group in self._groups:
            rate, decay = group.learning_rate, group.weight_decay
            rate = value_of(rate(step) if isinstance(rate, Cell) else rate)
            decay = value_of(decay(step)) if isinstance(decay, Cell) else decay
            chosen = [_like(gradients[index], self.parameters[index]) for index in group.indices]
            if group.centralize:
                chosen = [_centralized(gradient) for gradient in chosen]
            if self.need_scale:
                chosen = [gradient * self.reciprocal_scale for gradient in chosen]
            ready.append((rate, decay * self.reciprocal_scale, group.indices, chosen))
        step.add_(1)
        return ready

    def decay_weight(self, gradients):
        """Adds ``weight_decay * parameter`` to the gradients of the parameters that decay."""
        if not self.exec_weight_decay:
            return gradients
        decay = self.get_weight_decay()
        decays = decay if self.is_group else (decay,) * self.param_length
        return tuple(
            gradient + param * amount if flag else gradient
            for gradient, param, amount, flag in zip(gradients, self.parameters, decays, self.decay_flags)
        )

    def gradients_centralization(self, gradients):
        """Subtracts the mean over all but the first dimension where a group asks for it."""
        if not self.is_group:
            return gradients
        return tuple(
            _centralized(gradient) if flag else gradient
            for gradient, flag in zip(gradients, self.grad_centralization_flags)
        )

    def scale_grad(self, gradients):
        """Divides the gradients by `loss_scale`."""
        if not self.need_scale:
            return gradients
        return tuple(gradient * self.reciprocal_scale for gradient in gradients)

    def flatten_gradients(self, gradients):
        """Kept for compatibility: returns its argument."""
        return gradients

    def _grad_sparse_indices_deduplicate(self, gradients):
        return gradients

    def assignadd(self, target, amount):
        """Adds in place, as optimizers do with `global_step`."""
        return target.add_(amount)

    def get_weight_decay(self):
        """The current weight decay, times `loss_scale`; a tuple with groups."""
        if self.is_group:
            return tuple(decay(self.global_step) if isinstance(decay, Cell) else decay for decay in self.weight_decay)
        return self.weight_decay(self.global_step) if isinstance(self.weight_decay, Cell) else self.weight_decay

    def get_lr(self):
        """The current learning rate, a scalar tensor; a tuple with one per parameter if groups have their own."""
        if not self.dynamic_lr:
            return tuple(self.learning_rate) if self.is_group_lr else self.learning_rate
        if self.is_group_lr:
            return tuple(rate(self.global_step).reshape(()) for rate in self.learning_rate)
        return self.learning_rate(self.global_step).reshape(())

    def get_lr_parameter(self, param):
        """The learning rate of a parameter, or the list of those of a list.

        Raises:
            TypeError: `param` is neither a Parameter nor a list.
            ValueError: the optimizer does not train the parameter.
        """
        if not isinstance(param, (Parameter, list)):
            raise TypeError(
                f"For 'get_lr_parameter', the 'param' must be 'Parameter' or 'list' type, but got {type(param)}."
            )
        places = {id(own): index for index, own in enumerate(self.parameters)}
        rates = []
        for item in param if isinstance(param, list) else [param]:
            if not isinstance(item, Parameter):
                raise TypeError(f"For 'get_lr_parameter', each element must be a Parameter, but got {type(item)}.")
            if id(item) not in places:
                raise ValueError(
                    f"For 'get_lr_parameter', the parameter {item.name} is not in optimizer, please check "
                    f"whether the argument 'param' is correct."
                )
            rate = self.learning_rate[places[id(item)]] if self.is_group_lr else self.learning_rate
            rates.append(rate.learning_rate if isinstance(rate, (_ConvertToCell, _IteratorLearningRate)) else rate)
        return rates if isinstance(param, list) else rates[0]

    def _is_dynamic_lr_or_weight_decay(self):
        return self.dynamic_lr or self.dynamic_weight_decay

    @property
    def unique(self):
        """Whether the optimizer sums sparse gradients with equal indices; gradients here are dense."""
        return self._unique

    @unique.setter
    def unique(self, value):
        if not isinstance(value, bool):
            raise TypeError(f"For 'Optimizer', the property 'unique' must be bool, but got {type(value)}.")
        self._unique = value

    @property
    def target(self):
        """The device of the update: ``"CPU"``."""
        return self._target

    @target.setter
    def target(self, value):
        if not isinstance(value, str):
            raise TypeError(f"For 'Optimizer', the property 'target' must be string, but got {type(value)}.")
        if value != "CPU":
            raise ValueError(
                f"For 'Optimizer', the property 'target' must be 'CPU' in the 'CPU' environment, but got {value}."
            )
        self._target = value

    def construct(self, *hyper_params):
        raise NotImplementedError(f"For '{self.cls_name}', 'construct' must be defined.")


def _centralized(gradient):
    """Yong et al., Gradient Centralization, 2020, eq. 1; only where the second dimension is a multiple of 16."""
    if gradient.ndim < 2 or gradient.shape[1] % 16 != 0:
        return gradient
    return gradient - gradient.mean(tuple(range(1, gradient.ndim)), True)


class _ConvertToCell(LearningRateSchedule):
    """A constant rate as a schedule, for optimizers where other groups have schedules."""

    def __init__(self, learning_rate):
        super().__init__()
        self.learning_rate = learning_rate

    def construct(self, global_step):
        return self.learning_rate * 1.0


class _IteratorLearningRate(LearningRateSchedule):
    """A list of rates as a schedule; after its end the last one stays."""

    def __init__(self, learning_rate, name):
        super().__init__()
        self.learning_rate = Parameter(learning_rate, name)

    def construct(self, global_step):
        return ops.gather(self.learning_rate, ops.minimum(global_step, self.learning_rate.shape[0] - 1), 0)


class _WrappedWeightDecay(Cell):
    """A weight decay that changes with the step, times `loss_scale`."""

    def __init__(self, weight_decay, loss_scale=1.0):
        super().__init__()
        self.weight_decay = weight_decay
        self.loss_scale = loss_scale

    def construct(self, global_step):
        return self.weight_decay(global_step) * self.loss_scale
