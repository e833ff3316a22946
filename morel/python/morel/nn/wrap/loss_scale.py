"""Training with a loss scale, for half types whose gradients would underflow."""

from morel import ops
from morel._core import Tensor
from morel.api import make_operator
from morel.common import dtype as mstype
from morel.common.parameter import Parameter
from morel.nn.cell import Cell
from morel.nn.wrap.cell_wrapper import TrainOneStepCell, loss_and_gradients

__all__ = ["TrainOneStepWithLossScaleCell", "DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell"]

_all_finite = make_operator("all_finite", "all_finite")


class DynamicLossScaleUpdateCell(Cell):
    """Divides the scale by a factor (not below 1) after an overflow, multiplies it after a number of good steps.

    Args:
        loss_scale_value (float): the first scale.
        scale_factor (int): the factor.
        scale_window (int): number of steps without overflow after which the scale grows.

    Inputs:
        - **loss_scale** (Parameter) - the scale, changed in place.
        - **overflow** (Union[bool, Tensor]) - whether this step overflowed.

    Outputs:
        `overflow`.

    Source: Micikevicius et al., Mixed Precision Training, 2017, section 3.2.
    """

    def __init__(self, loss_scale_value, scale_factor, scale_window):
        super().__init__()
        self.loss_scale_value = loss_scale_value
        self.scale_factor = scale_factor
        self.scale_window = scale_window
        self.cur_iter = Parameter(Tensor(1, mstype.int32), name="current_iterator_step")
        self.last_overflow_iter = Parameter(Tensor(0, mstype.int32), name="last_overflow_iterator_step")

    def get_loss_scale(self):
        """The first scale."""
        return self.loss_scale_value

    def construct(self, loss_scale, overflow):
        if overflow:
            loss_scale.copy_(ops.maximum(loss_scale / self.scale_factor, 1.0))
            self.last_overflow_iter.copy_(self.cur_iter)
        elif self.cur_iter - self.last_overflow_iter >= self.scale_window:
            loss_scale.mul_(self.scale_factor)
            self.last_overflow_iter.copy_(self.cur_iter)
        self.cur_iter.add_(1)
        return overflow


class FixedLossScaleUpdateCell(Cell):
    """Leaves the scale as it is.

    Args:
        loss_scale_value (float): the scale.
    """

    def __init__(self, loss_scale_value):
        super().__init__()
        self.loss_scale_value = loss_scale_value

    def get_loss_scale(self):
        """The scale."""
        return self.loss_scale_value

    def construct(self, _, overflow):
        return overflow


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """One training step with the loss times `scale_sense`; a step whose gradients are not finite changes nothing.

    Args:
        network (Cell): gives the loss.
        optimizer (Cell): updates the parameters.
        scale_sense (Union[Tensor, Cell]): the scale, or the cell that updates it.

    Outputs:
        The tuple (loss, overflow, scale).

    Raises:
        TypeError: `scale_sense` is neither Cell nor Tensor.
        ValueError: its shape is neither () nor (1,).
    """

    def __init__(self, network, optimizer, scale_sense):
        super().__init__(network, optimizer, sens=None)
        self.loss_scaling_manager = None
        if isinstance(scale_sense, Cell):
            self.loss_scaling_manager = scale_sense
            self.scale_sense = Parameter(
                Tensor(float(scale_sense.get_loss_scale()), mstype.float32), name="scale_sense"
            )
        elif isinstance(scale_sense, Tensor):
            if tuple(scale_sense.shape) not in ((), (1,)):
                raise ValueError(
                    f"For 'TrainOneStepWithLossScaleCell', the shape of 'scale_sense' must be (1,) or (), "
                    f"but got {tuple(scale_sense.shape)}."
                )
            self.scale_sense = Parameter(scale_sense, name="scale_sense")
        else:
            raise TypeError(
                f"For 'TrainOneStepWithLossScaleCell', the 'scale_sense' must be Cell or Tensor, but got "
                f"'scale_sense' type: {type(scale_sense)}."
            )

    def construct(self, *inputs):
        scale = self.scale_sense.value().reshape(()).clone()
        loss, gradients = loss_and_gradients(self.network, self.weights, inputs, scale)
        gradients = self.grad_reducer(self._unscale(gradients, scale))
        overflow = self.get_overflow_status(None, gradients)
        if not self.process_loss_scale(overflow):
            self.optimizer(gradients)
        return loss, overflow, scale

    @staticmethod
    def _unscale(gradients, scale):
        return tuple(gradient / scale.astype(gradient.dtype) for gradient in gradients)

    def set_sense_scale(self, sens):
        """Sets the scale, a Tensor."""
        if not isinstance(sens, Tensor):
            raise TypeError(
                f"For 'TrainOneStepWithLossScaleCell', the type of 'sens' must be Tensor, but got {type(sens)}."
            )
        self.scale_sense.set_data(sens)

    def start_overflow_check(self, pre_cond, compute_input):
        """Kept for custom training cells: overflow is found in the gradients themselves."""
        return Tensor([0] * 8, mstype.int32), compute_input

    def get_overflow_status(self, status, compute_output):
        """A bool tensor: whether a gradient is infinite or not a number."""
        return ops.logical_not(_all_finite(list(compute_output)))

    def process_loss_scale(self, overflow):
        """Lets the manager update the scale; returns `overflow`."""
        if self.loss_scaling_manager is not None:
            return self.loss_scaling_manager(self.scale_sense, overflow)
        return overflow

    process_loss_scale.__interpreted__ = True  # in a compiled function: the manager's conditions are on tensors
