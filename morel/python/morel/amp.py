"""Mixed precision for training loops of one's own: loss scalers, checks for overflow."""

from morel import _core
from morel.api import make_operator
from morel.common import dtype as mstype
from morel.common.parameter import Parameter
from morel.train.amp import (
    auto_mixed_precision,
    build_train_network,
    custom_mixed_precision,
    get_black_list,
    get_white_list,
)
from morel.train.loss_scale_manager import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager

__all__ = [
    "DynamicLossScaleManager",
    "LossScaleManager",
    "FixedLossScaleManager",
    "build_train_network",
    "DynamicLossScaler",
    "StaticLossScaler",
    "LossScaler",
    "auto_mixed_precision",
    "all_finite",
    "custom_mixed_precision",
    "get_black_list",
    "get_white_list",
    "init_status",
    "is_finite",
]

_all_finite = make_operator("all_finite", "all_finite")


def _map(inputs, function):
    """function(tensor) for a tensor or each one of a (nested) tuple or list."""
    if isinstance(inputs, (tuple, list)):
        return type(inputs)(_map(item, function) for item in inputs)
    return function(inputs)


def _flat(inputs):
    if isinstance(inputs, (tuple, list)):
        return [tensor for item in inputs for tensor in _flat(item)]
    if not isinstance(inputs, _core.Tensor):
        raise TypeError(f"For 'all_finite', the inputs must be Tensors, but got {type(inputs)}.")
    return [inputs]


def all_finite(inputs):
    """Whether no element is infinite or not a number.

    Args:
        inputs (Union[tuple[Tensor], list[Tensor], Tensor]): the tensors, such as gradients.

    Returns:
        Tensor, a bool.
    """
    from morel import ops

    tensors = _flat(inputs)
    result = _all_finite([tensor for tensor in tensors if tensor.dtype.is_floating_point])
    for tensor in tensors:
        if tensor.dtype.is_complex:
            result = ops.logical_and(result, ops.isfinite(tensor).all())
    return result


def _core_bool(value):
    from morel import Tensor

    return Tensor(value, mstype.bool_)


def init_status():
    """Kept for scripts: overflow is found in the gradients themselves."""
    from morel import Tensor

    return Tensor([0] * 8, mstype.int32)


def is_finite(inputs, status=None):
    """The same as `all_finite`."""
    return all_finite(inputs)


class LossScaler:
    """Base class of loss scalers."""

    def scale(self, inputs):
        """Tensors times the scale."""
        raise NotImplementedError

    def unscale(self, inputs):
        """Tensors divided by the scale."""
        raise NotImplementedError

    def adjust(self, grads_finite):
        """Takes notice of a step."""
        raise NotImplementedError


class StaticLossScaler(LossScaler):
    """A scale that never changes.

    Args:
        scale_value (Union[float, int]): the scale, at least 1.
    """

    def __init__(self, scale_value):
        if not isinstance(scale_value, (float, int)) or isinstance(scale_value, bool):
            raise TypeError(
                f"The type of 'scale_value' should be one of '['float', 'int']', but got type "
                f"'{type(scale_value).__name__}'."
            )
        if scale_value < 1:
            raise ValueError(f"The argument 'scale_value' must be >= 1, but got {scale_value}")
        self.scale_value = Parameter(_number(scale_value, mstype.float32), name="scale_value")

    def scale(self, inputs):
        """Tensors times the scale."""
        return _map(inputs, lambda x: _times(x, self.scale_value))

    def unscale(self, inputs):
        """Tensors divided by the scale."""
        inverse = 1.0 / self.scale_value.astype(mstype.float64)
        return _map(inputs, lambda x: _times(x, inverse))

    def adjust(self, grads_finite):
        """Nothing changes."""
        return _core_bool(False)


def _times(x, number):
    """x times a tensor of one element, which counts as a Python number would: the dtype stays that of x."""
    product = x * number.astype(mstype.float64 if x.dtype in (mstype.float64, mstype.complex128) else mstype.float32)
    return product.astype(x.dtype) if x.dtype.is_floating_point else product


def _number(value, dtype):
    from morel import Tensor

    return Tensor(value, dtype)


class DynamicLossScaler(StaticLossScaler):
    """A scale that falls after a step with overflow and grows after `scale_window` steps without.

    Args:
        scale_value (Union[float, int]): the first scale, above 1.
        scale_factor (int): by which it falls (not below 1) and grows.
        scale_window (int): steps without overflow after which it grows.

    Source: Micikevicius et al., Mixed Precision Training, 2017, section 3.2.

    Example:
        >>> from morel import Tensor, amp
        >>> scaler = amp.DynamicLossScaler(scale_value=1024, scale_factor=2, scale_window=1)
        >>> _ = scaler.adjust(Tensor(False))
        >>> float(scaler.scale_value)
        512.0
    """

    def __init__(self, scale_value, scale_factor, scale_window):
        super().__init__(scale_value)
        if scale_value <= 1:
            raise ValueError(f"The argument 'scale_value' must be > 1, but got {scale_value}")
        for value, name in ((scale_factor, "scale_factor"), (scale_window, "scale_window")):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"The type of '{name}' should be 'int', but got type '{type(value).__name__}'.")
            if value <= 0:
                raise ValueError(f"The '{name}' must be int and must > 0, but got '{value}' with type 'int'.")
        self.scale_factor, self.scale_window = scale_factor, scale_window
        self.counter = Parameter(_number(0, mstype.int32), name="counter")

    def adjust(self, grads_finite):
        """Takes notice of a step.

        Args:
            grads_finite (Union[Tensor, bool]): whether its gradients are finite.

        Returns:
            Tensor, ``True``.
        """
        from morel import ops

        scale, counter = self.scale_value, self.counter
        finite = grads_finite if isinstance(grads_finite, _core.Tensor) else _core_bool(grads_finite)
        full = counter == self.scale_window - 1
        grown = ops.where(full, scale * self.scale_factor, scale)
        scale_after = ops.where(finite, grown, ops.clamp(scale / self.scale_factor, min=1.0))
        counter_after = ops.where(ops.logical_and(finite, ops.logical_not(full)), counter + 1, ops.zeros_like(counter))
        scale.copy_(scale_after)
        counter.copy_(counter_after)
        return _core_bool(True)
