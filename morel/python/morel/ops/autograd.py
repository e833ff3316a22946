"""Gradients of functions and cells: grad, value_and_grad, GradOperation, get_grad, stop_gradient.

One tensor object is one variable: where it is given as several arguments, or as an argument and as a weight, each of these
places gets its whole gradient. In graph mode each place is a variable of its own. Both are as in MindSpore.
"""

from morel import _core
from morel.api import make_operator
from morel.common import dtype as mstype
from morel.context import GRAPH_MODE, _values

__all__ = ["GradOperation", "get_grad", "grad", "stop_gradient", "value_and_grad"]

stop_gradient = make_operator("stop_gradient", "stop_gradient")
_zeros_like = make_operator("zeros_like", "zeros_like")


def _value_and_grad(fn, *args):
    """(output, gradients at positions, gradients of weights), now or as nodes of the graph that is being built."""
    if _core.graph_active():
        from morel.compiler.gradient import value_and_grad_in_graph

        return value_and_grad_in_graph(fn, *args)
    return _core.value_and_grad(fn, *args)


def _compiles():
    """Whether a gradient function is to be compiled as a whole: in GRAPH_MODE, at the outermost call."""
    return _values["mode"] == GRAPH_MODE and not _core.graph_active() and not _core.grad_enabled()


def _is_variable(value):
    return isinstance(value, _core.Tensor) and value.dtype != mstype.bool_


def _trained(parameter):
    return getattr(parameter, "requires_grad", True)


def differentiate(fn, positions, parameters, has_aux, args, kwargs, sens=None):
    """(output, gradients at the positions, gradients of the parameters) of one call.

    Positions count on into kwargs. Parameters with ``requires_grad=False`` get zeros.
    """
    if parameters and not all(map(_trained, parameters)):
        trained = tuple(filter(_trained, parameters))
        output, by_position, found = differentiate(fn, positions, trained, has_aux, args, kwargs, sens)
        known = {id(weight): gradient for weight, gradient in zip(trained, found)}
        return output, by_position, [known[id(w)] if id(w) in known else _zeros_like(w) for w in parameters]
    if positions and (kwargs or parameters or len(args) > 1) and not _core.graph_active():
        values = (*args, *kwargs.values())
        repeated = values[0] is values[1] if len(values) == 2 else len(set(map(id, values))) < len(values)
        beyond = len(args) <= max(positions) < len(values)
        if repeated or beyond or parameters and not {*map(id, values)}.isdisjoint(map(id, parameters)):
            return _differentiate_shared(fn, positions, parameters, has_aux, args, kwargs, sens)
    return _value_and_grad(fn, positions, parameters, has_aux, args, kwargs, sens)


def _differentiate_shared(fn, positions, parameters, has_aux, args, kwargs, sens):
    """`differentiate` where a variable stands in several places or among the keyword arguments."""
    values = (*args, *kwargs.values())
    if max(positions) >= len(values) or not all(_is_variable(values[position]) for position in positions):
        return _core.value_and_grad(fn, positions, parameters, has_aux, values, {}, sens)  # says what is wrong
    weights = {id(parameter): idx for idx, parameter in enumerate(parameters or ())}
    variables = {id(values[position]): values[position] for position in positions}
    inputs = [value for key, value in variables.items() if key not in weights]
    slots = {id(value): idx for idx, value in enumerate(inputs)}

    def call(*given):
        filled = [given[slots[id(value)]] if id(value) in slots else value for value in values]
        return fn(*filled[: len(args)], **dict(zip(kwargs, filled[len(args) :])))

    output, by_input, by_weight = _core.value_and_grad(
        call, [*range(len(inputs))], parameters, has_aux, tuple(inputs), {}, sens
    )
    keys = [id(values[position]) for position in positions]
    return output, [by_weight[weights[key]] if key in weights else by_input[slots[key]] for key in keys], by_weight


def _positions(grad_position, name):
    if grad_position is None:
        return ()
    if not isinstance(grad_position, (int, tuple)):
        raise TypeError(f"For '{name}', 'grad_position' must be int or a tuple of ints, but got {grad_position!r}.")
    positions = (grad_position,) if isinstance(grad_position, int) else grad_position
    for position in positions:
        if isinstance(position, bool) or not isinstance(position, int):
            raise TypeError(f"For '{name}', 'grad_position' must be int or a tuple of ints, but got {grad_position!r}.")
        if position < 0:
            raise ValueError(f"For '{name}', 'grad_position' must be >= 0, but got {position}.")
    if len(set(positions)) != len(positions):
        raise ValueError(f"For '{name}', 'grad_position' names an argument twice: {positions}.")
    if not positions:
        raise RuntimeError(
            f"For '{name}', 'grad_position' must name an argument; None differentiates at weights alone."
        )
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


def _take_sens(args, kwargs, name):
    """The arguments without the sensitivity, which is the last one or the keyword `sens`; and that."""
    if "sens" in kwargs:
        kwargs = dict(kwargs)
        sens = kwargs.pop("sens")
    elif args:
        *args, sens = args
    else:
        raise TypeError(f"For '{name}' with sens_param=True, the last argument must be the sensitivity.")
    if not isinstance(sens, (_core.Tensor, tuple, list)):
        sens = _core.Tensor(sens)
    return tuple(args), kwargs, sens


def _are_numbers(args, positions):
    """Whether the arguments at all these positions are numbers of Python: nothing to differentiate at, as in MindSpore."""
    return all(position < len(args) and isinstance(args[position], (bool, int, float)) for position in positions)


def _gradient_function(name, fn, grad_position, weights, has_aux, return_ids, sens_param):
    """(\\*args, \\*\\*kwargs) -> (output, gradients) for the arguments of grad and value_and_grad."""
    if grad_position is None and weights is None:
        raise ValueError(f"For '{name}', 'grad_position' and 'weights' cannot both be None.")
    positions = _positions(grad_position, name)
    parameters, single_weight = _weights(weights, name)
    if not callable(fn):
        raise TypeError(f"For '{name}', 'fn' must be a function or a Cell, but got {type(fn).__name__}.")
    single_position = len(positions) == 1
    position_list, ids = list(positions), positions if return_ids else None
    compiled = None

    def compute(*args, **kwargs):
        sens = None
        if sens_param:
            args, kwargs, sens = _take_sens(args, kwargs, name)
        if parameters is None and _are_numbers(args, position_list):
            return fn(*args, **kwargs), ()
        output, by_position, by_weight = differentiate(fn, position_list, parameters, has_aux, args, kwargs, sens)
        return output, _result(by_position, by_weight, single_position, parameters, single_weight, ids)

    def value_and_gradients(*args, **kwargs):  # does not refer to itself, so that it is freed with its last user
        nonlocal compiled
        if _compiles():
            from morel.compiler import CompiledFunction

            compiled = compiled or CompiledFunction(compute)
            return compiled.call(*args, **kwargs)
        return compute(*args, **kwargs)

    return value_and_gradients


def value_and_grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False, sens_param=False):
    """A function that computes ``fn`` and its gradients.

    Args:
        fn (Cell, function): returns a tensor or a tuple of tensors, whose elements are summed up for the gradient.
        grad_position (int, tuple[int], None): arguments to differentiate at, counted on into the keyword arguments of the
            call. None: weights alone.
        weights (Parameter, ParameterTuple, list, optional): parameters to differentiate at.
        has_aux (bool): only the first output is differentiated, others are returned as they are.
        return_ids (bool): each gradient comes as (position or parameter name, gradient); see :func:`get_grad`.
        sens_param (bool): the last argument of the call, or its keyword ``sens``, is the gradient of the output: a tensor, or
            a tuple for several outputs.
    Returns:
        function: (\\*args, \\*\\*kwargs) -> (output, gradients): one gradient for one position, a tuple for several; one for a
        Parameter, a tuple for a ParameterTuple or list; a pair of both if both are asked for.
    Raises:
        ValueError: both ``grad_position`` and ``weights`` are None. TypeError: arguments of wrong types.
    Example:
        >>> ms.value_and_grad(lambda x: (x * x).sum())(ms.Tensor([1., 2.]))
    """
    return _gradient_function("value_and_grad", fn, grad_position, weights, has_aux, return_ids, sens_param)


def grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False, sens_param=False):
    """A function that computes the gradients of ``fn``; with ``has_aux`` it returns (gradients, auxiliary outputs).

    See :func:`value_and_grad` for the arguments.
    """
    found = _gradient_function("grad", fn, grad_position, weights, has_aux, return_ids, sens_param)

    def gradients(*args, **kwargs):
        output, by_place = found(*args, **kwargs)
        return (by_place, tuple(output[1:])) if has_aux else by_place

    return gradients


def get_grad(gradients, identifier):
    """One gradient out of what ``grad`` or ``value_and_grad`` gave with ``return_ids=True``.

    Args:
        gradients (tuple): the gradients with their ids.
        identifier (int, Parameter): the position of the argument, or the parameter.
    Returns:
        Tensor.
    Raises:
        TypeError: identifier is neither. RuntimeError: no gradient has that id.
    Example:
        >>> pairs = ms.grad(lambda x, y: x * y, (0, 1), return_ids=True)(ms.Tensor([2.]), ms.Tensor([3.]))
        >>> ms.get_grad(pairs, 1)
    """
    from morel.common.parameter import Parameter

    if isinstance(identifier, bool) or not isinstance(identifier, (int, Parameter)):
        raise TypeError(f"For 'get_grad', 'identifier' must be an int or a Parameter, but got {identifier!r}.")
    wanted = identifier if isinstance(identifier, int) else identifier.name

    def search(item):
        if not isinstance(item, tuple):
            return None
        if len(item) == 2 and isinstance(item[0], (int, str)):
            return item[1] if item[0] == wanted else None
        return next((found for part in item if (found := search(part)) is not None), None)

    found = search(gradients)
    if found is None:
        raise RuntimeError(f"For 'get_grad', no gradient is there for {wanted!r}.")
    return found


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
                args, kwargs, sens = _take_sens(args, kwargs, "GradOperation")
            inputs = [idx for idx, value in enumerate((*args, *kwargs.values())) if _is_variable(value)]
            if not self.get_all:
                inputs = [] if self.get_by_list else inputs[:1]
            by_position, by_weight = [], []
            if inputs or parameters:
                _, by_position, by_weight = differentiate(fn, inputs, parameters, False, args, kwargs, sens)
            at_inputs = tuple(by_position) if self.get_all or not by_position else by_position[0]
            if not self.get_by_list:
                return at_inputs
            at_weights = by_weight[0] if single_weight else tuple(by_weight)
            return (at_inputs, at_weights) if self.get_all else at_weights

        return gradients
