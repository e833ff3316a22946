"""Adam and its relatives. Their states are parameters, so that a checkpoint of an optimizer continues exactly."""

from morel.nn import _check
from morel.nn.optim import _update
from morel.nn.optim._common import ListOptimizer, check_adam, power
from morel.nn.optim.optimizer import opt_init_args_register, value_of

__all__ = ["Adam", "AdamOffload", "LazyAdam", "AdamWeightDecay", "AdaMax", "Lamb"]


class Adam(ListOptimizer):
    """m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2; p -= lr sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps).

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): see `Optimizer`. Default ``1e-3``.
        beta1 (float): b1, in (0, 1). Default ``0.9``.
        beta2 (float): b2, in (0, 1). Default ``0.999``.
        eps (float): positive. Default ``1e-8``.
        use_locking (bool): kept for compatibility. Default ``False``.
        use_nesterov (bool): b1 m + (1 - b1) g instead of m in the step. Default ``False``.
        weight_decay (Union[float, int, Cell]): L2 penalty. Default ``0.0``.
        loss_scale (float): see `Optimizer`. Default ``1.0``.
        use_amsgrad (bool): the largest v so far instead of v. Default ``False``.
        kwargs: `use_lazy` and `use_offload`, which change nothing for dense gradients on the CPU.

    Raises:
        KeyError: another keyword.
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range.

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015; Reddi et al., On the Convergence of Adam
    and Beyond, 2018 (`use_amsgrad`); Dozat, Incorporating Nesterov Momentum into Adam, 2016 (`use_nesterov`).

    Example:
        >>> from morel import nn
        >>> net = nn.Dense(2, 1)
        >>> optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-3)
    """

    @opt_init_args_register
    def __init__(
        self,
        params,
        learning_rate=1e-3,
        beta1=0.9,
        beta2=0.999,
        eps=1e-8,
        use_locking=False,
        use_nesterov=False,
        weight_decay=0.0,
        loss_scale=1.0,
        use_amsgrad=False,
        **kwargs,
    ):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        cls = self.cls_name
        if set(kwargs) - {"use_lazy", "use_offload"}:
            raise KeyError(
                f"For '{cls}', the supported keywords are 'use_lazy' and 'use_offload', but got {sorted(kwargs)}."
            )
        check_adam(beta1, beta2, eps, cls)
        flags = {
            "use_locking": use_locking,
            "use_nesterov": use_nesterov,
            "use_amsgrad": use_amsgrad,
            "use_lazy": kwargs.get("use_lazy", False),
            "use_offload": kwargs.get("use_offload", False),
        }
        for name, flag in flags.items():
            setattr(self, name, _check.check_bool(flag, name, cls))
        if self.use_lazy and self.use_offload:
            raise ValueError(f"For '{cls}', 'use_lazy' and 'use_offload' can not both be True.")
        if use_amsgrad and (self.use_lazy or self.use_offload):
            raise ValueError(f"For '{cls}', 'use_amsgrad' can not be combined with 'use_lazy' or 'use_offload'.")
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.beta1_power = power("beta1_power")
        self.beta2_power = power("beta2_power")
        self.moment1 = self._state("moment1")
        self.moment2 = self._state("moment2")
        if use_amsgrad:
            self.vhat = self._state("vhat")

    def _before_update(self):
        self.beta1_power.mul_(self.beta1)
        self.beta2_power.mul_(self.beta2)
        self.__dict__["_powers"] = value_of(self.beta1_power), value_of(self.beta2_power)

    def _update_group(self, rate, decay, indices, gradients):
        pick = self._pick
        largest = pick(self.vhat, indices) if self.use_amsgrad else None
        _update.adam(
            pick(self.parameters, indices),
            gradients,
            pick(self.moment1, indices),
            pick(self.moment2, indices),
            largest,
            rate,
            self.beta1,
            self.beta2,
            self.eps,
            decay,
            *self._powers,
            self.use_nesterov,
        )


class AdamOffload(Adam):
    """`Adam` under the name of the variant that runs on the host; on the CPU there is no difference.

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): see `Optimizer`. Default ``1e-3``.
        beta1 (float): in (0, 1). Default ``0.9``.
        beta2 (float): in (0, 1). Default ``0.999``.
        eps (float): positive. Default ``1e-8``.
        use_locking (bool): kept for compatibility. Default ``False``.
        use_nesterov (bool): see `Adam`. Default ``False``.
        weight_decay (float): L2 penalty. Default ``0.0``.
        loss_scale (float): see `Optimizer`. Default ``1.0``.
    """

    def __init__(
        self,
        params,
        learning_rate=1e-3,
        beta1=0.9,
        beta2=0.999,
        eps=1e-8,
        use_locking=False,
        use_nesterov=False,
        weight_decay=0.0,
        loss_scale=1.0,
    ):
        super().__init__(params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale)


class LazyAdam(Adam):
    """`Adam` under the name of the variant that skips untouched rows of sparse gradients; gradients here are dense.

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): see `Optimizer`. Default ``1e-3``.
        beta1 (float): in (0, 1). Default ``0.9``.
        beta2 (float): in (0, 1). Default ``0.999``.
        eps (float): positive. Default ``1e-8``.
        use_locking (bool): kept for compatibility. Default ``False``.
        use_nesterov (bool): see `Adam`. Default ``False``.
        weight_decay (Union[float, int, Cell]): L2 penalty. Default ``0.0``.
        loss_scale (float): see `Optimizer`. Default ``1.0``.
    """

    def __init__(
        self,
        params,
        learning_rate=1e-3,
        beta1=0.9,
        beta2=0.999,
        eps=1e-8,
        use_locking=False,
        use_nesterov=False,
        weight_decay=0.0,
        loss_scale=1.0,
    ):
        super().__init__(params, learning_rate, beta1, beta2, eps, use_locking, use_nesterov, weight_decay, loss_scale)
        self.beta1_power = power("beta1_power", (1,))
        self.beta2_power = power("beta2_power", (1,))


class AdamWeightDecay(ListOptimizer):
    """Adam without bias correction and with decoupled decay: p -= lr (m / (sqrt(v) + eps) + weight_decay p).

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): see `Optimizer`. Default ``1e-3``.
        beta1 (float): in (0, 1). Default ``0.9``.
        beta2 (float): in (0, 1). Default ``0.999``.
        eps (float): positive. Default ``1e-6``.
        weight_decay (Union[float, int, Cell]): the decay. Default ``0.0``.

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2017; Devlin et al., BERT, 2018.
    """

    def __init__(self, params, learning_rate=1e-3, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay)
        check_adam(beta1, beta2, eps, self.cls_name)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.moments1 = self._state("adam_m")
        self.moments2 = self._state("adam_v")

    def _update_group(self, rate, decay, indices, gradients):
        pick = self._pick
        _update.adam_weight_decay(
            pick(self.parameters, indices),
            gradients,
            pick(self.moments1, indices),
            pick(self.moments2, indices),
            rate,
            self.beta1,
            self.beta2,
            self.eps,
            decay,
        )


class AdaMax(ListOptimizer):
    """Adam with the infinity norm: u = max(b2 u, |g|); p -= lr / (1 - b1^t) * m / (u + eps).

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): see `Optimizer`. Default ``1e-3``.
        beta1 (float): in (0, 1). Default ``0.9``.
        beta2 (float): in (0, 1). Default ``0.999``.
        eps (float): positive. Default ``1e-8``.
        weight_decay (Union[float, int, Cell]): L2 penalty. Default ``0.0``.
        loss_scale (float): see `Optimizer`. Default ``1.0``.

    Source: Kingma and Ba, 2015, algorithm 2.
    """

    @opt_init_args_register
    def __init__(
        self, params, learning_rate=0.001, beta1=0.9, beta2=0.999, eps=1e-08, weight_decay=0.0, loss_scale=1.0
    ):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_adam(beta1, beta2, eps, self.cls_name)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.beta1_power = power("beta1_power", (1,))
        self.moment1 = self._state("moment1")
        self.moment2 = self._state("moment2")

    def _before_update(self):
        self.beta1_power.mul_(self.beta1)

    def _update_group(self, rate, decay, indices, gradients):
        pick = self._pick
        _update.adamax(
            pick(self.parameters, indices),
            gradients,
            pick(self.moment1, indices),
            pick(self.moment2, indices),
            rate,
            self.beta1,
            self.beta2,
            self.eps,
            decay,
            value_of(self.beta1_power),
        )


class Lamb(ListOptimizer):
    """Adam's step plus weight_decay p, scaled by |p| / |step| for each parameter.

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): see `Optimizer`.
        beta1 (float): in (0, 1). Default ``0.9``.
        beta2 (float): in (0, 1). Default ``0.999``.
        eps (float): positive. Default ``1e-6``.
        weight_decay (Union[float, int, Cell]): the decay. Default ``0.0``.

    Source: You et al., Large Batch Optimization for Deep Learning: Training BERT in 76 minutes, 2019.
    """

    @opt_init_args_register
    def __init__(self, params, learning_rate, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay)
        check_adam(beta1, beta2, eps, self.cls_name)
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.params = self.parameters
        self.moments1 = self._state("lamb_m")
        self.moments2 = self._state("lamb_v")

    def _update_group(self, rate, decay, indices, gradients):
        pick = self._pick
        _update.lamb(
            pick(self.parameters, indices),
            gradients,
            pick(self.moments1, indices),
            pick(self.moments2, indices),
            rate,
            self.beta1,
            self.beta2,
            self.eps,
            decay,
            value_of(self.global_step, int),
        )
