"""Gradient descent with momentum."""

from morel import _core
from morel._core import Tensor
from morel.common import dtype as mstype
from morel.common.parameter import Parameter
from morel.nn import _check
from morel.nn.optim import _update
from morel.nn.optim._common import ListOptimizer
from morel.nn.optim.optimizer import _check_scalar, opt_init_args_register, value_of

__all__ = ["SGD", "Momentum"]


class SGD(ListOptimizer):
    """Stochastic gradient descent, with momentum: v = momentum v + (1 - dampening) g (v = g at first), p -= lr v.

    With `nesterov` the step is g + momentum v.

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): see `Optimizer`. Default ``0.1``.
        momentum (float): not negative. Default ``0.0``.
        dampening (float): not negative. Default ``0.0``.
        weight_decay (float): L2 penalty. Default ``0.0``.
        nesterov (bool): needs momentum and no dampening. Default ``False``.
        loss_scale (float): see `Optimizer`. Default ``1.0``.

    Inputs:
        - **gradients** (tuple[Tensor]) - in the order of the parameters.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range.

    Source: Sutskever et al., On the importance of initialization and momentum in deep learning, 2013.
    """

    @opt_init_args_register
    def __init__(
        self, params, learning_rate=0.1, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, loss_scale=1.0
    ):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        cls = self.cls_name
        momentum = _check_scalar(momentum, "momentum", cls)
        self.dampening = _check_scalar(dampening, "dampening", cls)
        self.nesterov = _check.check_bool(nesterov, "nesterov", cls)
        if nesterov and (momentum <= 0.0 or dampening != 0.0):
            raise ValueError(
                f"For '{cls}', if 'nesterov' is true, 'momentum' must be > 0.0 and 'dampening' must equal "
                f"to 0.0, but got 'momentum' {momentum}, 'dampening' {dampening}."
            )
        if self.dynamic_weight_decay:
            raise TypeError(
                f"For '{cls}', the argument 'weight_decay' must be float or int; a weight decay that "
                f"changes with the step is not supported."
            )
        self.momentum = Parameter(Tensor(momentum, mstype.float32), name="momentum")
        self.accum = self._state("accum")
        # Only element 0 of `stat` is read: 1 before the first step of its parameter, 0 afterwards.
        self.stat = self._state("stat", "ones")
        self.__dict__["_started"] = [False] * self.param_length

    def _first_step(self, indices):
        """Whether these parameters have not been stepped yet; a loaded state counts."""
        if all(self._started[index] for index in indices):
            return False
        stat = self.stat[indices[0]]
        if _core.graph_active():  # the kernel reads it when the graph runs
            first = stat.reshape((-1,))[0] > 0
            for index in indices:
                self.stat[index].zero_()
            return first
        first = bool(stat.reshape((-1,))[0].item() > 0)
        for index in indices:
            self._started[index] = True
            if first:
                self.stat[index].zero_()
        return first

    def _update_group(self, rate, decay, indices, gradients):
        pick = self._pick
        _update.sgd(
            pick(self.parameters, indices),
            gradients,
            pick(self.accum, indices),
            rate,
            value_of(self.momentum),
            self.dampening,
            decay,
            self.nesterov,
            self._first_step(indices),
        )


class Momentum(ListOptimizer):
    """v = momentum v + g; p -= lr v, or lr (g + momentum v) with `use_nesterov`.

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): see `Optimizer`.
        momentum (float): not negative.
        weight_decay (Union[float, int, Cell]): L2 penalty. Default ``0.0``.
        loss_scale (float): see `Optimizer`. Default ``1.0``.
        use_nesterov (bool): Nesterov's form. Default ``False``.

    Raises:
        TypeError: `momentum` is not a float.
        ValueError: a number is out of range.

    Example:
        >>> from morel import nn
        >>> net = nn.Dense(2, 1)
        >>> optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.1, momentum=0.9)
    """

    @opt_init_args_register
    def __init__(self, params, learning_rate, momentum, weight_decay=0.0, loss_scale=1.0, use_nesterov=False):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _check.check_type(momentum, float, "momentum", self.cls_name)
        if momentum < 0.0:
            raise ValueError(f"For 'Momentum', the argument 'momentum' must be at least 0.0, but got {momentum}.")
        self.use_nesterov = _check.check_bool(use_nesterov, "use_nesterov", self.cls_name)
        self.momentum = Parameter(Tensor(momentum, mstype.float32), name="momentum")
        self.params = self.parameters
        self.moments = self._state("moments")

    def _update_group(self, rate, decay, indices, gradients):
        pick = self._pick
        _update.momentum(
            pick(self.parameters, indices),
            gradients,
            pick(self.moments, indices),
            rate,
            value_of(self.momentum),
            decay,
            self.use_nesterov,
        )
