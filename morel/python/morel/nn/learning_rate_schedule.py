"""Learning rates as functions of the step: cells that an optimizer calls with its `global_step`."""

import math

from morel import ops
from morel._core import Tensor
from morel.common import dtype as mstype
from morel.nn import _check
from morel.nn.cell import Cell

__all__ = [
    "LearningRateSchedule",
    "ExponentialDecayLR",
    "NaturalExpDecayLR",
    "InverseDecayLR",
    "CosineDecayLR",
    "PolynomialDecayLR",
    "WarmUpLR",
]


def _number(value, name, cls, low=None, high=None, bounds="[]"):
    """A float (not an int) within bounds."""
    _check.check_type(value, float, name, cls)
    return _check.check_float(value, name, cls, low, high, bounds)


class LearningRateSchedule(Cell):
    """Base class: a subclass defines ``construct(self, global_step)``, which returns the learning rate as a Tensor.

    Example:
        >>> from morel import nn, Tensor
        >>> class Halving(nn.learning_rate_schedule.LearningRateSchedule):
        ...     def construct(self, global_step):
        ...         return 0.1 * 0.5 ** global_step
    """

    def construct(self, global_step):
        raise NotImplementedError(f"For '{self.cls_name}', 'construct' must be defined.")


def _as_float(global_step):
    return global_step.astype(mstype.float32) if isinstance(global_step, Tensor) else Tensor(float(global_step))


class _DecayLR(LearningRateSchedule):
    """Arguments of the three schedules that decay with step / decay_steps."""

    def __init__(self, learning_rate, decay_rate, decay_steps, is_stair=False):
        super().__init__()
        self.learning_rate = _number(learning_rate, "learning_rate", self.cls_name, 0, None, "(]")
        self.decay_rate = _number(decay_rate, "decay_rate", self.cls_name, 0, None, "(]")
        self.decay_steps = _check.check_positive_int(decay_steps, "decay_steps", self.cls_name)
        self.is_stair = _check.check_bool(is_stair, "is_stair", self.cls_name)

    def _progress(self, global_step):
        progress = _as_float(global_step) / float(self.decay_steps)
        return ops.floor(progress) if self.is_stair else progress


class ExponentialDecayLR(_DecayLR):
    """learning_rate * decay_rate^(step / decay_steps).

    Args:
        learning_rate (float): the first value; positive.
        decay_rate (float): the factor; positive.
        decay_steps (int): steps for one factor; positive.
        is_stair (bool): round step / decay_steps down. Default ``False``.

    Inputs:
        - **global_step** (Tensor) - the step.

    Outputs:
        Tensor like `global_step`.

    Example:
        >>> from morel import nn, Tensor
        >>> round(float(nn.ExponentialDecayLR(0.1, 0.9, 4)(Tensor(2)).asnumpy()), 6)
        0.094868
    """

    def construct(self, global_step):
        return self.learning_rate * ops.exp(self._progress(global_step) * math.log(self.decay_rate))


class NaturalExpDecayLR(_DecayLR):
    """learning_rate * exp(-decay_rate * step), the step rounded down to multiples of decay_steps with `is_stair`.

    Args:
        learning_rate (float): the first value; positive.
        decay_rate (float): the rate; positive.
        decay_steps (int): length of a stair; positive.
        is_stair (bool): keep the value for `decay_steps` steps. Default ``False``.
    """

    def construct(self, global_step):
        step = _as_float(global_step)
        if self.is_stair:
            step = ops.floor(step / float(self.decay_steps)) * float(self.decay_steps)
        return self.learning_rate * ops.exp(step * -self.decay_rate)


class InverseDecayLR(_DecayLR):
    """learning_rate / (1 + decay_rate * step / decay_steps).

    Args:
        learning_rate (float): the first value; positive.
        decay_rate (float): the rate; positive.
        decay_steps (int): unit of the step; positive.
        is_stair (bool): round step / decay_steps down. Default ``False``.
    """

    def construct(self, global_step):
        return self.learning_rate / (self._progress(global_step) * self.decay_rate + 1.0)


class CosineDecayLR(LearningRateSchedule):
    """min_lr + 0.5 (max_lr - min_lr) (1 + cos(pi * min(step, decay_steps) / decay_steps)).

    Args:
        min_lr (float): the last value; not negative.
        max_lr (float): the first value; larger than `min_lr`.
        decay_steps (int): number of steps; positive.

    Source: Loshchilov and Hutter, SGDR, 2016, eq. 5.
    """

    def __init__(self, min_lr, max_lr, decay_steps):
        super().__init__()
        self.min_lr = _number(min_lr, "min_lr", self.cls_name, 0, None)
        self.max_lr = _number(max_lr, "max_lr", self.cls_name, 0, None, "(]")
        self.decay_steps = _check.check_positive_int(decay_steps, "decay_steps", self.cls_name)
        if min_lr >= max_lr:
            raise ValueError(
                f"For '{self.cls_name}', the 'max_lr' must be greater than the 'min_lr', but got 'max_lr' "
                f"value: {max_lr}, 'min_lr' value: {min_lr}."
            )

    def construct(self, global_step):
        progress = ops.minimum(_as_float(global_step), float(self.decay_steps)) * (math.pi / self.decay_steps)
        return self.min_lr + 0.5 * (self.max_lr - self.min_lr) * (1.0 + ops.cos(progress))


class PolynomialDecayLR(LearningRateSchedule):
    """(learning_rate - end) * (1 - min(step, n) / n)^power + end, with n = decay_steps.

    Args:
        learning_rate (float): the first value; positive.
        end_learning_rate (float): the last value, end; not negative, not above the first.
        decay_steps (int): n; positive.
        power (float): the exponent; positive.
        update_decay_steps (bool): stretch n to the next multiple of decay_steps that is not below the step, so that the
            value rises again. Default ``False``.
    """

    def __init__(self, learning_rate, end_learning_rate, decay_steps, power, update_decay_steps=False):
        super().__init__()
        self.learning_rate = _number(learning_rate, "learning_rate", self.cls_name, 0, None, "(]")
        self.end_learning_rate = _number(end_learning_rate, "end_learning_rate", self.cls_name, 0, None)
        self.decay_steps = _check.check_positive_int(decay_steps, "decay_steps", self.cls_name)
        self.power = _number(power, "power", self.cls_name, 0, None, "(]")
        self.update_decay_steps = _check.check_bool(update_decay_steps, "update_decay_steps", self.cls_name)

    def construct(self, global_step):
        step = _as_float(global_step)
        steps = float(self.decay_steps)
        if self.update_decay_steps:
            steps = steps * ops.maximum(ops.ceil(step / steps), 1.0)
        left = 1.0 - ops.minimum(step, steps) / steps
        return (self.learning_rate - self.end_learning_rate) * left**self.power + self.end_learning_rate


class WarmUpLR(LearningRateSchedule):
    """learning_rate * min(step, warmup_steps) / warmup_steps.

    Args:
        learning_rate (float): the final value; positive.
        warmup_steps (int): number of steps; positive.
    """

    def __init__(self, learning_rate, warmup_steps):
        super().__init__()
        self.learning_rate = _number(learning_rate, "learning_rate", self.cls_name, 0, None, "(]")
        self.warmup_steps = _check.check_positive_int(warmup_steps, "warmup_steps", self.cls_name)

    def construct(self, global_step):
        return ops.minimum(_as_float(global_step), float(self.warmup_steps)) * (self.learning_rate / self.warmup_steps)
