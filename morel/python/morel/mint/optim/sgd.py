"""Stochastic gradient descent."""

from morel._core import Tensor
from morel.common import dtype as mstype
from morel.common.parameter import Parameter
from morel.mint.optim.optimizer import Optimizer
from morel.nn.optim import _update
from morel.nn.optim.optimizer import value_of

__all__ = ["SGD"]


class SGD(Optimizer):
    """v = momentum v + (1 - dampening) g (v = g at first); p -= lr v, or lr (g + momentum v) with `nesterov`.

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        lr (Union[float, int, Tensor]): learning rate.
        momentum (Union[float, int]): not negative. Default ``0``.
        dampening (Union[float, int]): Default ``0``.
        weight_decay (Union[float, int]): L2 penalty. Default ``0``.
        nesterov (bool): needs momentum and no dampening. Default ``False``.
        maximize (bool): go up instead of down. Default ``False``.

    Raises:
        ValueError: a number is out of range.
    """

    def __init__(self, params, lr, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False):
        if momentum < 0.0:
            raise ValueError(f"For 'SGD', the 'momentum' must be >= 0, but got {momentum}.")
        if nesterov and (momentum <= 0.0 or dampening != 0.0):
            raise ValueError(
                f"For 'SGD', if 'nesterov' is true, 'momentum' must be > 0.0 and 'dampening' must equal "
                f"to 0.0, but got 'momentum' {momentum}, 'dampening' {dampening}."
            )
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "weight_decay": weight_decay,
                "dampening": dampening,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )
        self.momentum_buf = self.parameters.clone(prefix="momentum_buf", init="zeros")
        self.step_t = Parameter(Tensor(0, mstype.int32), "step_t")

    def _step(self, gradients):
        first_step = value_of(self.step_t) == 0
        for group, first, chosen in self._grouped(gradients):
            _update.sgd(
                group["params"],
                chosen,
                self.momentum_buf[first : first + len(chosen)],
                value_of(group["lr"]),
                group["momentum"],
                group["dampening"],
                group["weight_decay"],
                group["nesterov"],
                first_step,
            )
        self.step_t.add_(1)
        return True
