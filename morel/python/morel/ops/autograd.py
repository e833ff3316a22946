"""Gradients of functions and cells: grad, value_and_grad, GradOperation, stop_gradient."""

from morel import _core
from morel.api import make_operator

__all__ = ["GradOperation", "grad", "stop_gradient", "value_and_grad"]

stop_gradient = make_operator("stop_gradient", "stop_gradient")


def _value_and_grad(fn, *args):
    """(output, gradients at positions, gradients of weights), now or as nodes of the graph that is being built."""
    if _core.graph_active():
        from morel.compiler.gradient import value_and_grad_in_graph

        return value_and_grad_in_graph(fn, *args)
    return _core.value_and_grad(fn, *args)


def _positions(grad_position, name):
    if grad_position is None:
        return ()
    positions = (grad_position,) if isinstance(grad_position, int) else tuple(grad_position)
    for position in positions:
        if isinstance(position, bool) or not isinstance(position, int):
            raise TypeError(f"For '{name}', 'grad_position' must be int or a tuple of ints, but got {grad_position!r}.")
        if position < 0:
            raise ValueError(f"For '{name}', 'grad_position' must be >= 0, but got {position}.")
    if len(set(positions)) != len(positions):
        raise ValueError(f"For '{name}', 'grad_position' names an argument twice: {positions}.")
    return positions


def _weights(weights, name):
    """(sequence of parameters or None, whether it was a single one)."""
    if weights is None:
        return None, False
    if isinstance(weights, _core.Tensor):
        return (weights,), True
    if isinstance(weights, (tuple, list)) or hasattr(weights, "__iter__"):
        return tuple(weights), False
    raise TypeError(
        f"For '{name}', 'weights' must be a Parameter, ParameterTuple or list of Parameters, but got {type(weights).__name__}."
    )


def _result(by_position, by_weight, single_position, weights, single_weight, with_ids=None):
    at_inputs = by_position[0] if single_position else tuple(by_position)
    at_weights = None if weights is None else by_weight[0] if single_weight else tuple(by_weight)
    if with_ids is not None:
        positions = with_ids
        pairs = tuple(zip(positions, by_position))
        at_inputs = pairs[0] if single_position else pairs
        if weights is not None:
            named = tuple((weight.name, gradient) for weight, gradient in zip(weights, by_weight))
            at_weights = named[0] if single_weight else named
    if not by_position:
        return at_weights
    return at_inputs if weights is None else (at_inputs, at_weights)


def value_and_grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False):
    """A function that computes ``fn`` and its gradients.

    Args:
        fn (Cell, function): returns a tensor or a tuple of tensors, whose elements are summed up for the gradient.
        grad_position (int, tuple[int], None): arguments to differentiate at. None: weights alone.
        weights (Parameter, ParameterTuple, list, optional): parameters to differentiate at.
        has_aux (bool): only the first output is differentiated, others are returned as they are.
        return_ids (bool): each gradient comes as (position or parameter name, gradient).
    Returns:
        function: (\\*args, \\*\\*kwargs) -> (output, gradients): one gradient or a tuple for the positions, one or a tuple for the
        weights, a pair of both if both are asked for.
    Raises:
        ValueError: both ``grad_position`` and ``weights`` are None. TypeError: arguments of wrong types.
    Example:
        >>> ms.value_and_grad(lambda x: (x * x).sum())(ms.Tensor([1., 2.]))
    """
    if grad_position is None and weights is None:
        raise ValueError("For 'value_and_grad', 'grad_position' and 'weights' cannot both be None.")
    positions = _positions(grad_position, "value_and_grad")
    parameters, single_weight = _weights(weights, "value_and_grad")
    if not callable(fn):
        raise TypeError(f"For 'value_and_grad', 'fn' must be a function or a Cell, but got {type(fn).__name__}.")
    single_position = isinstance(grad_position, int)
    position_list = list(positions)

    def value_and_gradients(*args, **kwargs):
        output, by_position, by_weight = _value_and_grad(fn, position_list, parameters, has_aux, args, kwargs)
        return output, _result(
            by_position, by_weight, single_position, parameters, single_weight, positions if return_ids else None
        )

    return value_and_gradients


def grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False):
    """A function that computes the gradients of ``fn``; with ``has_aux`` it returns (gradients, auxiliary outputs).

    See :func:`value_and_grad` for the arguments.
    """
    if grad_position is None and weights is None:
        raise ValueError("For 'grad', 'grad_position' and 'weights' cannot both be None.")
    with_value = value_and_grad(fn, grad_position, weights, has_aux, return_ids)

    def gradients(*args, **kwargs):
        output, found = with_value(*args, **kwargs)
        return (found, tuple(output[1:])) if has_aux else found

    return gradients


class GradOperation:
    """The older form of :func:`grad`.

    Args:
        get_all (bool): gradients of all tensor inputs, not of the first alone.
        get_by_list (bool): gradients of the parameters given as the second argument of the call.
        sens_param (bool): the gradient function's last argument is the sensitivity: the gradient of the output.
    """

    def __init__(self, get_all=False, get_by_list=False, sens_param=False):
        for name, value in (("get_all", get_all), ("get_by_list", get_by_list), ("sens_param", sens_param)):
            if not isinstance(value, bool):
                raise TypeError(f"For 'GradOperation', '{name}' must be bool, but got {type(value).__name__}.")
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param

    def __call__(self, fn, weights=None):
        if self.get_by_list and weights is None:
            if not hasattr(fn, "trainable_params"):
                raise TypeError(
                    "For 'GradOperation' with get_by_list=True, give the weights, or a Cell as the function."
                )
            weights = fn.trainable_params()
        parameters, single_weight = _weights(weights if self.get_by_list else None, "GradOperation")

        def gradients(*args, **kwargs):
            sens = None
            if self.sens_param:
                if "sens" in kwargs:
                    sens = kwargs.pop("sens")
                else:
                    *args, sens = args
            inputs = [
                idx
                for idx, arg in enumerate(args)
                if isinstance(arg, _core.Tensor) and (arg.dtype.is_floating_point or arg.dtype.is_complex)
            ]
            if not self.get_all:
                inputs = [] if self.get_by_list else inputs[:1]
            if not isinstance(sens, (_core.Tensor, tuple, list, type(None))):
                sens = _core.Tensor(sens)
            _, by_position, by_weight = _value_and_grad(fn, inputs, parameters, False, tuple(args), kwargs, sens)
            return _result(by_position, by_weight, not self.get_all and bool(inputs), parameters, single_weight)

        return gradients
