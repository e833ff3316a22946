"""morel.mint.linalg: norms. Decompositions are not there yet."""

from morel import mint, ops
from morel.api import make_operator

__all__ = ["inv", "matrix_norm", "norm", "qr", "vector_norm"]

inv, qr = mint.refusal("linalg.inv"), mint.refusal("linalg.qr")
_norm = make_operator("norm", "norm(A: input, ord = None, dim = None, keepdim = False, *, dtype = None)")
vector_norm = make_operator(
    "vector_norm", "vector_norm(x: input, ord: p = 2.0, dim = None, keepdim = False, *, dtype = None)"
)


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None):
    """Norm of matrices; see :func:`morel.ops.matrix_norm`."""
    return ops.matrix_norm(A, ord, dim, keepdim, dtype=dtype)


def norm(A, ord=None, dim=None, keepdim=False, *, dtype=None):
    """Norm of vectors or matrices: of all elements without dim and ord, of matrices for two axes, else of vectors."""
    return _norm(A, ord, dim, keepdim, dtype=dtype)
