"""How a loss scale is chosen and changed during training."""

from morel.train._check import int_at_least

__all__ = ["LossScaleManager", "FixedLossScaleManager", "DynamicLossScaleManager"]


class LossScaleManager:
    """Base class of loss scale managers."""

    def get_loss_scale(self):
        """The present scale."""

    def update_loss_scale(self, overflow):
        """Takes notice of a step, with or without overflow."""

    def get_update_cell(self):
        """The cell that changes the scale inside the training step, or ``None``."""


class FixedLossScaleManager(LossScaleManager):
    """A scale that never changes.

    Args:
        loss_scale (float): the scale, at least 1. Default ``128.0``.
        drop_overflow_update (bool): leave parameters alone in steps with overflow. Default ``True``.
    """

    def __init__(self, loss_scale=128.0, drop_overflow_update=True):
        if loss_scale < 1:
            raise ValueError(f"The argument 'loss_scale' must be >= 1, but got {loss_scale}")
        if not isinstance(drop_overflow_update, bool):
            raise TypeError(f"The argument 'drop_overflow_update' must be bool, but got {type(drop_overflow_update)}.")
        self._loss_scale = loss_scale
        self._drop_overflow_update = drop_overflow_update

    def get_loss_scale(self):
        """The scale."""
        return self._loss_scale

    def get_drop_overflow_update(self):
        """Whether steps with overflow leave parameters alone."""
        return self._drop_overflow_update

    def update_loss_scale(self, overflow):
        """Nothing changes."""

    def get_update_cell(self):
        """A FixedLossScaleUpdateCell, or ``None`` if overflow need not be looked for."""
        if not self._drop_overflow_update:
            return None
        from morel.nn.wrap import FixedLossScaleUpdateCell

        return FixedLossScaleUpdateCell(self._loss_scale)


class DynamicLossScaleManager(LossScaleManager):
    """A scale that falls after an overflow and grows after a number of steps without.

    Args:
        init_loss_scale (float): the first scale, above 1. Default ``2**24``.
        scale_factor (int): by which it falls and grows. Default ``2``.
        scale_window (int): steps without overflow after which it grows. Default ``2000``.

    Source: Micikevicius et al., Mixed Precision Training, 2017, section 3.2.
    """

    def __init__(self, init_loss_scale=2**24, scale_factor=2, scale_window=2000):
        if init_loss_scale <= 1.0:
            raise ValueError(f"The argument 'init_loss_scale' must be > 1, but got {init_loss_scale}")
        if not isinstance(scale_window, int):
            raise TypeError(
                f"For 'DynamicLossScaleManager', the 'scale_window' must be int, but got "
                f"'{type(scale_window).__name__}'"
            )
        int_at_least(scale_window, 1, "scale_window")
        if scale_factor <= 0:
            raise ValueError(f"The argument 'scale_factor' must be > 0, but got {scale_factor}")
        self.loss_scale = init_loss_scale
        self.scale_factor = scale_factor
        self.scale_window = scale_window
        self.increase_ratio = scale_factor
        self.decrease_ratio = 1 / scale_factor
        self.cur_iter = 1
        self.last_overflow_iter = 0
        self.bad_step_max = 1000
        self.bad_step = 0

    def get_loss_scale(self):
        """The present scale."""
        return self.loss_scale

    def update_loss_scale(self, overflow):
        """Takes notice of a step.

        Args:
            overflow (bool): whether it overflowed.
        """
        if overflow:
            self.loss_scale = max(self.loss_scale * self.decrease_ratio, 1)
            self.last_overflow_iter = self.cur_iter
            self.bad_step += 1
        else:
            if (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
                self.loss_scale *= self.increase_ratio
            self.bad_step = 0
        if self.bad_step > self.bad_step_max:
            raise RuntimeError(
                f"Dynamic loss scale continues to overflow ({self.bad_step} times) and has exceeded the maximum "
                f"threshold {self.bad_step_max}."
            )
        self.cur_iter += 1

    def get_drop_overflow_update(self):
        """Steps with overflow leave parameters alone: ``True``."""
        return True

    def get_update_cell(self):
        """A DynamicLossScaleUpdateCell."""
        from morel.nn.wrap import DynamicLossScaleUpdateCell

        return DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)
