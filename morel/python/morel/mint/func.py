"""morel.mint.func: functions of functions, of which MindSpore has all but `hessian` under other names."""

from morel.ops.autograd import grad
from morel.ops.jacobian import _by_columns, _jacobian_function, jacfwd, jacrev, jvp, linearize, vjp
from morel.ops.vectorisation import vmap

__all__ = ["grad", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap"]


def hessian(fn, grad_position=0, has_aux=False):
    """A function that computes the second derivatives of ``fn``: forward mode over the gradient.

    Args:
        fn (function, Cell): takes tensors; returns a tensor, or a tuple of tensors.
        grad_position (int, tuple[int]): arguments to differentiate at.
        has_aux (bool): only the first output is differentiated, others are returned as they are.
    Returns:
        function: (\\*args) -> second derivatives of shape (\\*output.shape, \\*argument.shape, \\*argument.shape); for several
        positions a tuple of tuples, one entry for each pair. With ``has_aux`` the pair of this and the other outputs.
    Raises:
        TypeError: ``grad_position`` is no int or tuple of ints, an argument there no tensor, or something complex.
    Example:
        >>> ms.mint.func.hessian(lambda x: (x**3).sum())(ms.Tensor([1., 2.]))
    """
    return _jacobian_function(jacrev(fn, grad_position, has_aux), grad_position, has_aux, "hessian", _by_columns)
