"""Derivatives of any order along a curve: jet, derivative."""

from morel.api import make_operator
from morel.common import dtype as mstype
from morel.ops.jacobian import _call, _check_function, _checked_tensors, _like, _tensors, jvp

__all__ = ["derivative", "jet"]

_cast, _concat, _full, _stack = (make_operator(name, name) for name in ("cast", "concat", "full", "stack"))


def _along(fn, curve, order):
    """t -> (fn at curve(t), then for 1 to `order` the tensors of its derivative in t).

    Each order is the product of the one before with dt = 1, and gives all lower ones besides.
    """

    def values(t):
        output = _call(fn, curve(t))
        return output, _tensors(output)

    def with_next(before):
        def derived(t):
            (output, *lower), (_, *moved) = jvp(before, t, _full((), 1, dtype=t.dtype))
            return output, *lower, moved[-1]

        return derived

    for _ in range(order):
        values = with_next(values)
    return values


def _expand(fn, primals, series, name):
    """(output of fn, for each of its tensors the stacked derivatives) on the curve through primals."""
    floats = []
    for value in primals:
        if value.dtype in (mstype.complex64, mstype.complex128, mstype.bool_):
            raise TypeError(f"For '{name}', 'primals' must be real numbers, but got a tensor of {value.dtype}.")
        floats.append(value if value.is_floating_point() else _cast(value, mstype.float32))
    order = series[0].shape[0]

    def curve(t):
        points = []
        for value, terms in zip(floats, series):
            at = _cast(t, value.dtype)
            step, point = at, value
            for k in range(order):
                point = point + _cast(terms[k], value.dtype) * step
                step = step * at / (k + 2)
            points.append(point)
        return points

    found = _along(fn, curve, order)(_full((), 0, dtype=floats[0].dtype))
    return found[0], [_stack(list(terms), 0) for terms in zip(*found[2:])]


def jet(fn, primals, series):
    """``fn`` and its derivatives along a curve x(t) with x(0) = primals, whose k-th derivative at 0 is series[k - 1].

    With a series of ones followed by zeros these are the derivatives of an elementwise function.

    Args:
        fn (function, Cell): takes tensors; returns a tensor or a tuple of tensors.
        primals (Tensor, tuple[Tensor]): where to differentiate; real. Integers compute in float32.
        series (Tensor, tuple[Tensor]): one for each of primals, with an axis for the orders before its own.
    Returns:
        tuple: output, and like it tensors with an axis for the orders before their own: the k-th derivative at [k - 1].
    Raises:
        TypeError: primals or series are no tensors of real numbers. ValueError: they do not fit one another.
    Example:
        >>> ms.ops.jet(ms.ops.sin, ms.Tensor([1., 2.]), ms.Tensor([[1., 1.], [0., 0.]]))
    """
    _check_function(fn, "jet")
    values, terms = _checked_tensors(primals, "'primals'", "jet"), _checked_tensors(series, "'series'", "jet")
    if len(values) != len(terms):
        raise ValueError(
            f"For 'jet', 'series' must hold {len(values)} tensors as 'primals' does, but got {len(terms)}."
        )
    for value, rows in zip(values, terms):
        if rows.ndim != value.ndim + 1 or tuple(rows.shape[1:]) != tuple(value.shape) or not 0 < rows.shape[0]:
            raise ValueError(
                f"For 'jet', 'series' must have the shape (order, *{tuple(value.shape)}), but got {tuple(rows.shape)}."
            )
        if rows.shape[0] != terms[0].shape[0]:
            raise ValueError("For 'jet', all tensors of 'series' must be of one order.")
    output, derivatives = _expand(fn, values, terms, "jet")
    return output, _like(output, derivatives)


def derivative(fn, primals, order):
    """``fn`` and its derivative of one order along the ones; of elementwise functions the derivative of each element.

    Args:
        fn (function, Cell): takes tensors; returns a tensor or a tuple of tensors.
        primals (Tensor, tuple[Tensor]): where to differentiate; real. Integers compute in float32.
        order (int): which derivative; at least 1.
    Returns:
        tuple: output, derivative of that order (like the output).
    Raises:
        TypeError: primals are no tensors of real numbers, or order is no int. ValueError: order is less than 1.
    Example:
        >>> ms.ops.derivative(ms.ops.sin, ms.Tensor([1., 2.]), 3)
    """
    _check_function(fn, "derivative")
    if isinstance(order, bool) or not isinstance(order, int):
        raise TypeError(f"For 'derivative', 'order' must be an int, but got {type(order).__name__}.")
    if order < 1:
        raise ValueError(f"For 'derivative', 'order' must be at least 1, but got {order}.")
    values = _checked_tensors(primals, "'primals'", "derivative")
    ones = [_full((1, *value.shape), 1, dtype=value.dtype) for value in values]
    rest = [_full((order - 1, *value.shape), 0, dtype=value.dtype) for value in values]
    series = [_concat(pair, 0) for pair in zip(ones, rest)]
    output, derivatives = _expand(fn, values, series, "derivative")
    return output, _like(output, [found[order - 1] for found in derivatives])
