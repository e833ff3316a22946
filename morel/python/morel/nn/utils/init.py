"""Networks whose parameters are filled later."""

from contextlib import contextmanager

from morel.common import parameter as _parameter

__all__ = ["no_init_parameters"]


@contextmanager
def no_init_parameters():
    """Parameters made inside keep their initializer and are filled by `init_parameters_data`, by loading, or at the
    first call.

    Example:
        >>> from morel import nn
        >>> with nn.utils.no_init_parameters():
        ...     net = nn.Dense(2, 3)
        >>> net.weight.has_init
        True
    """
    before = _parameter._fill_new_parameters
    _parameter._fill_new_parameters = False
    try:
        yield
    finally:
        _parameter._fill_new_parameters = before
