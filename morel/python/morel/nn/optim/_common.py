"""What the optimizers share: argument checks and the loop over the parameter groups."""

from morel._core import Tensor
from morel.common import dtype as mstype
from morel.common.initializer import initializer
from morel.common.parameter import Parameter
from morel.nn import _check
from morel.nn.optim.optimizer import Optimizer, _check_scalar


def check_beta(value, name, cls):
    """A float in (0, 1)."""
    _check.check_type(value, float, name, cls)
    if not 0.0 < value < 1.0:
        raise ValueError(f"For '{cls}', the '{name}' must be in range of (0.0, 1.0), but got {value}.")
    return value


def check_eps(value, name, cls):
    """A positive float."""
    _check.check_type(value, float, name, cls)
    return _check_scalar(value, name, cls, positive=True)


def check_adam(beta1, beta2, eps, cls):
    check_beta(beta1, "beta1", cls)
    check_beta(beta2, "beta2", cls)
    check_eps(eps, "eps", cls)


def power(name, shape=()):
    """A parameter that counts steps as beta^step; it starts at 1."""
    return Parameter(initializer(1, shape, mstype.float32) if shape else Tensor(1.0, mstype.float32), name=name)


class ListOptimizer(Optimizer):
    """Runs `_update_group` for each group of parameters with their gradients and states."""

    def _state(self, prefix, init="zeros"):
        """One more tensor for each parameter, named ``prefix.name``."""
        return self.parameters.clone(prefix=prefix, init=init)

    def construct(self, gradients):
        from morel import _core

        return _core.without_grad(self._step, gradients)

    def _step(self, gradients):
        ready = self._begin_step(gradients)
        self._before_update()
        for rate, decay, indices, chosen in ready:
            self._update_group(rate, decay, indices, chosen)
        return self.optim_filter

    def _before_update(self):
        """What changes once per step."""

    def _update_group(self, rate, decay, indices, gradients):
        raise NotImplementedError

    def _pick(self, values, indices):
        """The members of a group; the whole list as it is when there is one group."""
        return values if len(indices) == self.param_length else [values[index] for index in indices]
