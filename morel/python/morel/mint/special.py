"""morel.mint.special: special functions."""

from morel import mint
from morel.mint.nn import functional as _functional

__all__ = ["erfc", "exp2", "expm1", "log1p", "log_softmax", "round", "sinc"]

erfc, exp2, expm1, log1p, sinc = mint.erfc, mint.exp2, mint.expm1, mint.log1p, mint.sinc


def log_softmax(input, dim=None, *, dtype=None):
    """log(softmax(input)) along dim; None: 0 for 0, 1 and 3 axes, otherwise 1."""
    return _functional.log_softmax(input, dim, dtype=dtype)


def round(input):
    """Rounds, halves to even."""
    return mint.round(input)
