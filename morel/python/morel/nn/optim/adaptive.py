"""Other optimizers with a step size per element, and averaging."""

from morel._core import Tensor
from morel.common import dtype as mstype
from morel.common.parameter import Parameter, ParameterTuple
from morel.nn import _check
from morel.nn.optim import _update
from morel.nn.optim._common import ListOptimizer, check_eps
from morel.nn.optim.optimizer import _check_scalar, opt_init_args_register, value_of

__all__ = ["RMSProp", "Adagrad", "Adadelta", "FTRL", "ProximalAdagrad", "Rprop", "ASGD"]


class RMSProp(ListOptimizer):
    """s = decay s + (1 - decay) g^2; v = momentum v + lr g / sqrt(s + epsilon); p -= v.

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): see `Optimizer`. Default ``0.1``.
        decay (float): not negative. Default ``0.9``.
        momentum (float): not negative. Default ``0.0``.
        epsilon (float): positive. Default ``1e-10``.
        use_locking (bool): kept for compatibility. Default ``False``.
        centered (bool): subtract the square of the mean gradient from s. Default ``False``.
        loss_scale (float): see `Optimizer`. Default ``1.0``.
        weight_decay (Union[float, int, Cell]): L2 penalty. Default ``0.0``.

    Source: Tieleman and Hinton, Lecture 6.5, 2012; Graves, Generating Sequences With Recurrent Neural Networks, 2013
    (`centered`).
    """

    @opt_init_args_register
    def __init__(
        self,
        params,
        learning_rate=0.1,
        decay=0.9,
        momentum=0.0,
        epsilon=1e-10,
        use_locking=False,
        centered=False,
        loss_scale=1.0,
        weight_decay=0.0,
    ):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        cls = self.cls_name
        for name, value in (("decay", decay), ("momentum", momentum)):
            _check.check_type(value, float, name, cls)
            _check_scalar(value, name, cls)
        check_eps(epsilon, "epsilon", cls)
        _check.check_bool(use_locking, "use_locking", cls)
        self.centered = _check.check_bool(centered, "centered", cls)
        if centered:
            self.mg = self._state("mean_grad")
        self.momentum, self.epsilon, self.decay = momentum, epsilon, decay
        self.ms = self._state("mean_square", "ones")
        self.moment = self._state("moment")

    def _update_group(self, rate, decay, indices, gradients):
        pick = self._pick
        means = pick(self.mg, indices) if self.centered else None
        _update.rmsprop(
            pick(self.parameters, indices),
            gradients,
            means,
            pick(self.ms, indices),
            pick(self.moment, indices),
            rate,
            self.decay,
            self.momentum,
            self.epsilon,
            decay,
        )


class Adagrad(ListOptimizer):
    """s += g^2; p -= lr g / sqrt(s).

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        accum (float): first value of s; not negative. Default ``0.1``.
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): see `Optimizer`. Default ``1e-3``.
        update_slots (bool): whether s grows. Default ``True``.
        loss_scale (float): see `Optimizer`. Default ``1.0``.
        weight_decay (Union[float, int, Cell]): L2 penalty. Default ``0.0``.

    Source: Duchi et al., Adaptive Subgradient Methods, 2011.
    """

    @opt_init_args_register
    def __init__(self, params, accum=0.1, learning_rate=0.001, update_slots=True, loss_scale=1.0, weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _check.check_type(accum, float, "accum", self.cls_name)
        self.update_slots = _check.check_bool(update_slots, "update_slots", self.cls_name)
        self.accum = self._state("accum", _check_scalar(accum, "accum", self.cls_name))

    def _update_group(self, rate, decay, indices, gradients):
        pick = self._pick
        _update.adagrad(
            pick(self.parameters, indices), gradients, pick(self.accum, indices), rate, decay, self.update_slots
        )


class Adadelta(ListOptimizer):
    """Steps in the ratio of the root mean squares of past steps and gradients.

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): see `Optimizer`. Default ``1.0``.
        rho (float): decay of the means, in [0, 1]. Default ``0.9``.
        epsilon (float): not negative. Default ``1e-6``.
        loss_scale (float): see `Optimizer`. Default ``1.0``.
        weight_decay (Union[float, int, Cell]): L2 penalty. Default ``0.0``.

    Source: Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012.
    """

    @opt_init_args_register
    def __init__(self, params, learning_rate=1.0, rho=0.9, epsilon=1e-6, loss_scale=1.0, weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        _check.check_type(rho, float, "rho", self.cls_name)
        self.rho = _check.check_float(rho, "rho", self.cls_name, 0, 1)
        _check.check_type(epsilon, float, "epsilon", self.cls_name)
        self.epsilon = _check_scalar(epsilon, "epsilon", self.cls_name)
        self.accum = self._state("accum", 0)
        self.accum_update = self._state("accum_update", 0)

    def _update_group(self, rate, decay, indices, gradients):
        pick = self._pick
        _update.adadelta(
            pick(self.parameters, indices),
            gradients,
            pick(self.accum, indices),
            pick(self.accum_update, indices),
            rate,
            self.rho,
            self.epsilon,
            decay,
        )


class FTRL(ListOptimizer):
    """Follow the regularized leader: sparse parameters through an L1 penalty.

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`; without `lr` in groups.
        initial_accum (float): first value of the sums; not negative. Default ``0.1``.
        learning_rate (float): positive. Default ``0.001``.
        lr_power (float): exponent; not positive. Default ``-0.5``.
        l1 (float): L1 penalty. Default ``0.0``.
        l2 (float): L2 penalty. Default ``0.0``.
        use_locking (bool): kept for compatibility. Default ``False``.
        loss_scale (float): see `Optimizer`. Default ``1.0``.
        weight_decay (Union[float, int, Cell]): decay of all parameters. Default ``0.0``.

    Source: McMahan et al., Ad Click Prediction: a View from the Trenches, 2013.
    """

    @opt_init_args_register
    def __init__(
        self,
        params,
        initial_accum=0.1,
        learning_rate=0.001,
        lr_power=-0.5,
        l1=0.0,
        l2=0.0,
        use_locking=False,
        loss_scale=1.0,
        weight_decay=0.0,
    ):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        cls = self.cls_name
        if self.dynamic_lr or self.is_group_lr:
            raise ValueError(f"For '{cls}', a learning rate that changes with the step or the group is not supported.")
        for name, value in (("initial_accum", initial_accum), ("learning_rate", learning_rate), ("l1", l1), ("l2", l2)):
            _check.check_type(value, float, name, cls)
            _check_scalar(value, name, cls, positive=name == "learning_rate")
        _check.check_type(lr_power, float, "lr_power", cls)
        _check.check_float(lr_power, "lr_power", cls, None, 0)
        _check.check_bool(use_locking, "use_locking", cls)
        self.moments = self._state("moments", initial_accum)
        self.linear = self._state("linear")
        self.l1, self.l2, self.lr, self.lr_power = l1, l2, learning_rate, lr_power
        self.use_locking = use_locking
        if not self.is_group:  # here the decay spares no parameter
            self.decay_flags = (True,) * self.param_length
            self._build_groups()

    def _update_group(self, rate, decay, indices, gradients):
        pick = self._pick
        _update.ftrl(
            pick(self.parameters, indices),
            gradients,
            pick(self.moments, indices),
            pick(self.linear, indices),
            rate,
            self.l1,
            self.l2,
            self.lr_power,
            decay,
        )


class ProximalAdagrad(ListOptimizer):
    """`Adagrad` followed by a proximal step for L1 and L2 penalties.

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        accum (float): first value of the sums; not negative. Default ``0.1``.
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): see `Optimizer`. Default ``0.001``.
        l1 (float): L1 penalty. Default ``0.0``.
        l2 (float): L2 penalty. Default ``0.0``.
        use_locking (bool): kept for compatibility. Default ``False``.
        loss_scale (float): see `Optimizer`. Default ``1.0``.
        weight_decay (Union[float, int, Cell]): decay. Default ``0.0``.

    Source: Duchi and Singer, Efficient Learning using Forward-Backward Splitting, 2009.
    """

    @opt_init_args_register
    def __init__(
        self,
        params,
        accum=0.1,
        learning_rate=0.001,
        l1=0.0,
        l2=0.0,
        use_locking=False,
        loss_scale=1.0,
        weight_decay=0.0,
    ):
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        for name, value in (("accum", accum), ("l1", l1), ("l2", l2)):
            _check.check_type(value, float, name, self.cls_name)
            _check_scalar(value, name, self.cls_name)
        self.use_locking = _check.check_bool(use_locking, "use_locking", self.cls_name)
        self.accum = self._state("accum", accum)
        self.l1, self.l2 = l1, l2

    def _update_group(self, rate, decay, indices, gradients):
        pick = self._pick
        _update.proximal_adagrad(
            pick(self.parameters, indices), gradients, pick(self.accum, indices), rate, self.l1, self.l2, decay
        )


class Rprop(ListOptimizer):
    """Resilient backpropagation: only the signs of the gradients count, each element has its own step size.

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): the first step size. Default ``0.1``.
        etas (tuple[float, float]): factors when the sign changes and when it stays. Default ``(0.5, 1.2)``.
        step_sizes (tuple[float, float]): smallest and largest step. Default ``(1e-6, 50.)``.
        weight_decay (Union[float, int, Cell]): L2 penalty. Default ``0.0``.

    Source: Riedmiller and Braun, A direct adaptive method for faster backpropagation learning, 1993.
    """

    @opt_init_args_register
    def __init__(self, params, learning_rate=0.1, etas=(0.5, 1.2), step_sizes=(1e-6, 50.0), weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay)
        cls = self.cls_name
        for name, value in (("etas", etas), ("step_sizes", step_sizes)):
            _check.check_type(value, tuple, name, cls)
            if len(value) != 2:
                raise ValueError(f"For '{cls}', the '{name}' must be a tuple with the size of 2, but got {len(value)}.")
        if step_sizes[0] > step_sizes[1]:
            raise ValueError(
                f"For '{cls}', the largest step size must not be below the smallest, but got {step_sizes}."
            )
        _check.check_float(etas[0], "etaminus", cls, 0, 1, "()")
        _check.check_float(etas[1], "etaplus", cls, 1, None, "()")
        self.etaminus, self.etaplus = etas
        self.step_size_min, self.step_size_max = step_sizes
        self.prev = self._state("prev")
        self.step_size = self._state("step_size")

    def _update_group(self, rate, decay, indices, gradients):
        pick = self._pick
        _update.rprop(
            pick(self.parameters, indices),
            gradients,
            pick(self.prev, indices),
            pick(self.step_size, indices),
            rate,
            self.etaminus,
            self.etaplus,
            self.step_size_min,
            self.step_size_max,
            decay,
            value_of(self.global_step) == 1,
        )


class ASGD(ListOptimizer):
    """Averaged stochastic gradient descent; the averages are in `ax`.

    Args:
        params (Union[list[Parameter], list[dict]]): see `Optimizer`.
        learning_rate (Union[float, int, Tensor, Iterable, LearningRateSchedule]): see `Optimizer`. Default ``0.1``.
        lambd (float): decay term. Default ``1e-4``.
        alpha (float): exponent of the learning rate's decay. Default ``0.75``.
        t0 (float): step at which averaging starts. Default ``1e6``.
        weight_decay (Union[float, int, Cell]): L2 penalty. Default ``0.0``.

    Source: Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992.
    """

    @opt_init_args_register
    def __init__(self, params, learning_rate=0.1, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0):
        super().__init__(learning_rate, params, weight_decay)
        for name, value in (("lambd", lambd), ("alpha", alpha), ("t0", t0)):
            setattr(self, name, _check.check_type(value, float, name, self.cls_name))
        self.mu = ParameterTuple(Parameter(Tensor(1.0, mstype.float32), name=f"mu_{p.name}") for p in self.parameters)
        self.eta = ParameterTuple(Parameter(Tensor(0.0, mstype.float32), name=f"eta_{p.name}") for p in self.parameters)
        self.ax = self._state("ax_")

    def _update_group(self, rate, decay, indices, gradients):
        pick = self._pick
        _update.asgd(
            pick(self.parameters, indices),
            gradients,
            pick(self.ax, indices),
            pick(self.eta, indices),
            pick(self.mu, indices),
            rate,
            self.lambd,
            self.alpha,
            self.t0,
            decay,
            value_of(self.global_step),
        )
