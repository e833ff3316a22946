"""An ONNX file as a cell."""

import os

from morel import _core
from morel.common.parameter import Parameter, ParameterTuple
from morel.nn.cell import Cell

# Names that MindSpore and PyTorch give the statistics of a batch normalisation.
_STATISTICS = ("moving_mean", "moving_variance", "running_mean", "running_var")


def _is_trained(name, tensor):
    """Whether a float tensor of a file is a weight: a file does not say; numbers and running statistics are none."""
    return tensor.ndim > 0 and not name.endswith(_STATISTICS)


class OnnxCell(Cell):
    """The network of an ONNX file; its float tensors are Parameters with the names that they have there.

    It is a cell like others: it can be part of one, be compiled with it, and be trained.

    Args:
        file_name (str): the file; tensors beside it are found.
    """

    def __init__(self, file_name):
        super().__init__()
        self.model = _core.open_onnx(os.fspath(file_name))
        self.weights = ParameterTuple(
            [
                Parameter(tensor, name=name, requires_grad=_is_trained(name, tensor))
                for name, tensor in self.model.weights
            ]
        )

    @property
    def input_names(self):
        """Names of the inputs, in the order in which they are given."""
        return [name for name, _, _ in self.model.inputs]

    @property
    def output_names(self):
        """Names of the outputs."""
        return [name for name, _, _ in self.model.outputs]

    def construct(self, *inputs):
        """One tensor, or a tuple of them; None stands for a missing input."""
        results = self.model.call(list(inputs), list(self.weights))
        return results[0] if len(results) == 1 else results


def load(file_name, *, jit=True):
    """The network of an ONNX file as a cell.

    Args:
        file_name (str): the file. Where its format is wrong, the error names the byte; nodes without an operator are all named.
        jit (bool): compile it; False calls it operator by operator, which also serves models whose shapes depend on values.
    Returns:
        OnnxCell: called with the inputs of the model in their order.
    """
    from morel.compiler import jit as compiled

    cell = OnnxCell(file_name)
    cell.set_train(False)
    return compiled(cell) if jit else cell
