"""Products with Jacobians as cells."""

from morel import ops
from morel.nn.cell import Cell
from morel.ops.autograd import differentiate

__all__ = ["Jvp", "Vjp"]


class _OfFunction(Cell):
    def __init__(self, fn):
        super().__init__(auto_prefix=False)
        self.fn = fn


class Jvp(_OfFunction):
    """The output of a cell or function and the product of its Jacobian with v: ``Jvp(fn)(*inputs, v)``.

    Args:
        fn (Cell, function): takes and returns tensors.
    """

    def construct(self, *args):
        *inputs, v = args
        return ops.jvp(self.fn, tuple(inputs) if len(inputs) > 1 else inputs[0], v)


class Vjp(_OfFunction):
    """The output of a cell or function and the product of v with its Jacobian: ``Vjp(fn)(*inputs, v)``.

    Args:
        fn (Cell, function): takes and returns tensors.
    """

    def construct(self, *args):
        *inputs, v = args
        output, gradients, _ = differentiate(self.fn, [*range(len(inputs))], None, False, tuple(inputs), {}, v)
        return output, gradients[0] if len(inputs) == 1 else tuple(gradients)
