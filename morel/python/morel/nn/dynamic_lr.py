"""Learning rates as lists, one number per step."""

import math

from morel.nn import _check

__all__ = [
    "exponential_decay_lr",
    "natural_exp_decay_lr",
    "inverse_decay_lr",
    "cosine_decay_lr",
    "polynomial_decay_lr",
    "piecewise_constant_lr",
    "warmup_lr",
]


def _rate(value, name, cls, low=0, bounds="(]"):
    """A float (not an int) above the bound."""
    _check.check_type(value, float, name, cls)
    return _check.check_float(value, name, cls, low, None, bounds)


def _check_steps(cls, **values):
    for name, value in values.items():
        _check.check_positive_int(value, name, cls)


def piecewise_constant_lr(milestone, learning_rates):
    """learning_rates[i] up to step milestone[i].

    Args:
        milestone (Union[list[int], tuple[int]]): increasing positive step numbers.
        learning_rates (Union[list[float], tuple[float]]): as many rates.

    Returns:
        list[float] of length milestone[-1].

    Raises:
        TypeError: an argument is neither tuple nor list.
        ValueError: the lengths differ or the milestones do not increase.

    Example:
        >>> from morel import nn
        >>> nn.piecewise_constant_lr([2, 5], [0.1, 0.05])
        [0.1, 0.1, 0.05, 0.05, 0.05]
    """
    cls = "piecewise_constant_lr"
    _check.check_type(milestone, (tuple, list), "milestone", cls)
    _check.check_type(learning_rates, (tuple, list), "learning_rates", cls)
    if len(milestone) != len(learning_rates):
        raise ValueError(
            f"For '{cls}', 'milestone' and 'learning_rates' must have the same length, but got "
            f"{len(milestone)} and {len(learning_rates)}."
        )
    rates, last = [], 0
    for step, rate in zip(milestone, learning_rates):
        _check.check_positive_int(step, "milestone item", cls)
        _rate(rate, "learning_rates item", cls)
        if step < last:
            raise ValueError(f"For '{cls}', the numbers of 'milestone' must increase, but got {milestone}.")
        rates += [rate] * (step - last)
        last = step
    return rates


def _decayed(cls, learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair, formula):
    """formula(epoch) for every step, with the epoch rounded down to stairs of `decay_epoch` if asked for."""
    _rate(learning_rate, "learning_rate", cls)
    _rate(decay_rate, "decay_rate", cls)
    _check_steps(cls, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)
    _check.check_bool(is_stair, "is_stair", cls)
    return [formula(step // step_per_epoch) for step in range(total_step)]


def exponential_decay_lr(learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair=False):
    """learning_rate * decay_rate^(epoch / decay_epoch) for every step.

    Args:
        learning_rate (float): the first value; positive.
        decay_rate (float): the factor; positive.
        total_step (int): number of steps.
        step_per_epoch (int): steps of an epoch.
        decay_epoch (int): epochs for one factor.
        is_stair (bool): round epoch / decay_epoch down. Default ``False``.

    Returns:
        list[float].
    """

    def formula(epoch):
        power = epoch // decay_epoch if is_stair else epoch / decay_epoch
        return learning_rate * decay_rate**power

    return _decayed(
        "exponential_decay_lr", learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair, formula
    )


def natural_exp_decay_lr(learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair=False):
    """learning_rate * exp(-decay_rate * epoch) for every step; arguments as `exponential_decay_lr`."""

    def formula(epoch):
        shown = epoch // decay_epoch * decay_epoch if is_stair else epoch
        return learning_rate * math.exp(-decay_rate * shown)

    return _decayed(
        "natural_exp_decay_lr", learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair, formula
    )


def inverse_decay_lr(learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair=False):
    """learning_rate / (1 + decay_rate * epoch / decay_epoch) for every step; arguments as `exponential_decay_lr`."""

    def formula(epoch):
        progress = epoch // decay_epoch if is_stair else epoch / decay_epoch
        return learning_rate / (1 + decay_rate * progress)

    return _decayed(
        "inverse_decay_lr", learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair, formula
    )


def cosine_decay_lr(min_lr, max_lr, total_step, step_per_epoch, decay_epoch):
    """min_lr + 0.5 (max_lr - min_lr) (1 + cos(pi * min(epoch, decay_epoch) / decay_epoch)) for every step.

    Args:
        min_lr (float): the last value; not negative.
        max_lr (float): the first value; larger than `min_lr`.
        total_step (int): number of steps.
        step_per_epoch (int): steps of an epoch.
        decay_epoch (int): epochs of the decay.

    Returns:
        list[float].
    """
    cls = "cosine_decay_lr"
    _rate(min_lr, "min_lr", cls, 0, "[]")
    _rate(max_lr, "max_lr", cls)
    _check_steps(cls, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)
    if min_lr >= max_lr:
        raise ValueError(
            f"For '{cls}', the 'max_lr' must be greater than the 'min_lr', but got 'max_lr' value: "
            f"{max_lr}, 'min_lr' value: {min_lr}."
        )
    half = 0.5 * (max_lr - min_lr)
    return [
        min_lr + half * (1 + math.cos(math.pi * min(step // step_per_epoch, decay_epoch) / decay_epoch))
        for step in range(total_step)
    ]


def polynomial_decay_lr(
    learning_rate, end_learning_rate, total_step, step_per_epoch, decay_epoch, power, update_decay_epoch=False
):
    """(learning_rate - end) * (1 - min(epoch, n) / n)^power + end for every step, with n = decay_epoch.

    Args:
        learning_rate (float): the first value; positive.
        end_learning_rate (float): the last value, end; not negative.
        total_step (int): number of steps.
        step_per_epoch (int): steps of an epoch.
        decay_epoch (int): epochs of the decay.
        power (float): the exponent; positive.
        update_decay_epoch (bool): n becomes the next multiple of `decay_epoch` that is not below the epoch. Default
            ``False``.

    Returns:
        list[float].
    """
    cls = "polynomial_decay_lr"
    _rate(learning_rate, "learning_rate", cls)
    _rate(end_learning_rate, "end_learning_rate", cls, 0, "[]")
    _rate(power, "power", cls)
    _check_steps(cls, total_step=total_step, step_per_epoch=step_per_epoch, decay_epoch=decay_epoch)
    _check.check_bool(update_decay_epoch, "update_decay_epoch", cls)
    rates = []
    for step in range(total_step):
        epoch = step // step_per_epoch
        epochs = decay_epoch * max(math.ceil(epoch / decay_epoch), 1) if update_decay_epoch else decay_epoch
        left = 1 - min(epoch, epochs) / epochs
        rates.append((learning_rate - end_learning_rate) * left**power + end_learning_rate)
    return rates


def warmup_lr(learning_rate, total_step, step_per_epoch, warmup_epoch):
    """learning_rate * min(epoch, warmup_epoch) / warmup_epoch for every step.

    Args:
        learning_rate (float): the final value; positive.
        total_step (int): number of steps.
        step_per_epoch (int): steps of an epoch.
        warmup_epoch (int): epochs of the warm-up.

    Returns:
        list[float].
    """
    cls = "warmup_lr"
    _rate(learning_rate, "learning_rate", cls)
    _check_steps(cls, total_step=total_step, step_per_epoch=step_per_epoch, warmup_epoch=warmup_epoch)
    return [learning_rate * min(step // step_per_epoch, warmup_epoch) / warmup_epoch for step in range(total_step)]
