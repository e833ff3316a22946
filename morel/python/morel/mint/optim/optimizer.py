"""The base class of the optimizers whose hyperparameters live in `param_groups`."""

from morel._core import Tensor
from morel.common import dtype as mstype
from morel.common.parameter import Parameter, ParameterTuple
from morel.nn.cell import Cell

__all__ = ["Optimizer"]


def _non_negative(value, name, cls):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"For '{cls}', the '{name}' must be int or float, but got {type(value).__name__}.")
    if value < 0:
        raise ValueError(f"For '{cls}', the '{name}' must be >= 0, but got {value}.")
    return float(value)


class Optimizer(Cell):
    """Base class: `param_groups` is a list of dicts with the parameters and everything that steers their update.

    Args:
        params (Union[list[Parameter], list[dict]]): the parameters, or groups of them with the key ``params``.
        defaults (dict): what a group does not say itself.

    Raises:
        TypeError: `params` holds something else.
        ValueError: there are no parameters, or one is in two groups.
    """

    def __init__(self, params, defaults):
        super().__init__(auto_prefix=False)
        if params is None:
            raise ValueError("For 'Optimizer', the argument params can not be None.")
        if not hasattr(params, "__iter__"):
            raise TypeError(f"For 'Optimizer', the argument params must be Iterable type, but got {type(params)}.")
        groups = list(params)
        if not groups:
            raise ValueError("For 'Optimizer', the argument params must not be empty.")
        self.defaults = defaults
        self.param_groups = []
        self.__dict__.update(lrs=[], group_start_id=[0], parameters=())
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)
        self.parameters = ParameterTuple(self.__dict__.pop("parameters"))

    def add_param_group(self, param_group):
        """Adds a group; what it lacks comes from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError("For 'Optimizer', a parameter group must be a dict.")
        group = dict(param_group)
        group["params"] = self._group_parameters(group["params"])
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        group["lr"] = self._rate(group["lr"], f"learning_rate_group_{len(self.param_groups)}")
        if "weight_decay" in group:
            group["weight_decay"] = _non_negative(group["weight_decay"], "weight_decay", self.cls_name)
        self.lrs.append(group["lr"])
        self.param_groups.append(group)
        self.group_start_id.append(self.group_start_id[-1] + len(group["params"]))
        self.__dict__["parameters"] = (*self.parameters, *group["params"])

    def _group_parameters(self, params):
        if isinstance(params, set):
            raise TypeError("For 'Optimizer', the parameters must be ordered; use a list instead of a set.")
        params = [params] if isinstance(params, Parameter) else list(params)
        known = {id(param) for group in self.param_groups for param in group["params"]}
        for param in params:
            if not isinstance(param, Parameter):
                raise TypeError(f"For 'Optimizer', each parameter must be a Parameter, but got {type(param)}.")
            if id(param) in known:
                raise ValueError("For 'Optimizer', some parameters appear in more than one parameter group.")
        return params

    def _rate(self, value, name):
        if isinstance(value, Tensor):
            if value.ndim != 0:
                raise ValueError("For 'Optimizer', if 'learning_rate' is a Tensor, then it should be scalar Tensor.")
            return Parameter(value.astype(mstype.float32), name)
        return Parameter(Tensor(_non_negative(value, "learning rate", self.cls_name), mstype.float32), name)

    def _grouped(self, gradients):
        """(group, first index, gradients) for each group; gradients are negated where the group maximises."""
        if len(gradients) != len(self.parameters):
            raise ValueError(
                f"For '{self.cls_name}', there must be {len(self.parameters)} gradients, one for each "
                f"parameter, but got {len(gradients)}."
            )
        for group, first, last in zip(self.param_groups, self.group_start_id, self.group_start_id[1:]):
            chosen = gradients[first:last]
            yield group, first, tuple(-gradient for gradient in chosen) if group.get("maximize") else tuple(chosen)

    def construct(self, gradients):
        from morel import _core

        return _core.without_grad(self._step, gradients)

    def _step(self, gradients):
        raise NotImplementedError(f"For '{self.cls_name}', 'construct' must be defined.")

    def __repr__(self):
        lines = [f"{self.cls_name} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            for key in sorted(group):
                if key not in ("params", "max_exp_avg_sq"):
                    value = group[key].value() if isinstance(group[key], Parameter) else group[key]
                    lines.append(f"    {key}: {value}")
        return "\n".join(lines) + "\n)"
