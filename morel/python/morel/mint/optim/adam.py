"""Adam and AdamW."""

from morel._core import Tensor
from morel.common import dtype as mstype
from morel.common.parameter import Parameter, ParameterTuple
from morel.mint.optim.optimizer import Optimizer
from morel.nn.optim import _update
from morel.nn.optim.optimizer import value_of

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2; p -= lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps).

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        lr (Union[float, int, Tensor]): learning rate. Default ``1e-3``.
        betas (tuple[float, float]): b1 and b2, in [0, 1). Default ``(0.9, 0.999)``.
        eps (float): not negative. Default ``1e-8``.
        weight_decay (float): L2 penalty. Default ``0.0``.
        amsgrad (bool): the largest v so far instead of v. Default ``False``.
        maximize (bool): go up instead of down. Default ``False``.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range.

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015, algorithm 1.

    Example:
        >>> from morel import mint
        >>> net = mint.nn.Linear(2, 1)
        >>> optimizer = mint.optim.Adam(net.trainable_params(), lr=1e-3)
    """

    _decoupled = False
    _first_step = 0.0

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, *, maximize=False
    ):
        cls = type(self).__name__
        if not isinstance(betas, tuple) or len(betas) != 2:
            raise TypeError(f"For '{cls}', the 'betas' must be a tuple of two floats, but got {betas}.")
        for position, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"For '{cls}', betas[{position}] must be in [0, 1), but got {beta}.")
        if eps < 0.0:
            raise ValueError(f"For '{cls}', the 'eps' must be >= 0, but got {eps}.")
        for name, flag in (("amsgrad", amsgrad), ("maximize", maximize)):
            if not isinstance(flag, bool):
                raise TypeError(f"For '{cls}', the '{name}' must be bool, but got {type(flag).__name__}.")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
            },
        )
        self.exp_avg = self.parameters.clone(prefix="exp_avg", init="zeros")
        self.exp_avg_sq = self.parameters.clone(prefix="exp_avg_sq", init="zeros")
        for group in self.param_groups:
            if group["amsgrad"]:
                group["max_exp_avg_sq"] = ParameterTuple(group["params"]).clone(prefix="max_exp_avg_sq", init="zeros")
        self.state_step = Parameter(Tensor([self._first_step], mstype.float32), "state_step")

    def _step(self, gradients):
        self.state_step.add_(1)
        step = value_of(self.state_step) - self._first_step
        for group, first, chosen in self._grouped(gradients):
            last = first + len(chosen)
            beta1, beta2 = group["betas"]
            _update.adam_corrected(
                group["params"],
                chosen,
                self.exp_avg[first:last],
                self.exp_avg_sq[first:last],
                group.get("max_exp_avg_sq"),
                value_of(group["lr"]),
                beta1,
                beta2,
                group["eps"],
                group["weight_decay"],
                step,
                self._decoupled,
            )
        return True


class AdamW(Adam):
    """`Adam` with decoupled weight decay: p *= 1 - lr * weight_decay before the step.

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        lr (Union[float, int, Tensor]): learning rate. Default ``1e-3``.
        betas (tuple[float, float]): b1 and b2, in [0, 1). Default ``(0.9, 0.999)``.
        eps (float): not negative. Default ``1e-8``.
        weight_decay (float): the decay. Default ``0.01``.
        amsgrad (bool): the largest v so far instead of v. Default ``False``.
        maximize (bool): go up instead of down. Default ``False``.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2017.
    """

    _decoupled = True
    _first_step = -1.0

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False
    ):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)
