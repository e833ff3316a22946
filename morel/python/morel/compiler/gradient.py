"""value_and_grad while a graph is built: by source transformation of the graph so far."""

from morel import _core
from morel.api import make_operator
from morel.common import dtype as mstype
from morel.compiler.tree import flatten

_fresh = make_operator("view_as_self", "view_as_self")
_zeros = make_operator("zeros_like", "zeros_like")


def value_and_grad_in_graph(fn, positions, weights, has_aux, args, kwargs, sens=None):
    """What ``_core.value_and_grad`` does in eager mode: (output, gradients at positions, gradients of weights).

    Positions count on into kwargs.
    """
    from morel.compiler import call_in_graph
    from morel.compiler.facts import rely_on_structure

    given = [*args, *kwargs.values()]
    for position in positions:
        if position >= len(given):
            raise IndexError(
                f"the gradient at argument {position} is asked for, but the function was called with {len(given)} arguments"
            )
        arg = given[position]
        if not isinstance(arg, _core.Tensor):
            raise TypeError(
                f"the gradient is asked for at argument {position}, which must be a Tensor but is {type(arg).__name__}"
            )
        if arg.dtype == mstype.bool_:
            raise TypeError(
                f"argument {position} has dtype Bool, which cannot be differentiated: it must be a tensor of numbers"
            )
        given[position] = _fresh(arg)
    inputs = [given[position] for position in positions] + list(weights or ())
    output = call_in_graph(fn, given[: len(args)], dict(zip(kwargs, given[len(args) :])))
    if has_aux and not (isinstance(output, tuple) and output):
        raise ValueError("with has_aux=True the function must return a tuple (value, ...)")
    outputs = [leaf for leaf in flatten(output[0] if has_aux else output)[0] if isinstance(leaf, _core.Tensor)]
    if not outputs:
        raise TypeError(f"the function to differentiate returned no Tensor but {type(output).__name__}")
    seeds = [None] * len(outputs) if sens is None else flatten(sens)[0]
    if len(seeds) != len(outputs):
        raise ValueError(f"{len(seeds)} sensitivities are given for {len(outputs)} outputs")
    gradients = _core.graph_gradients(outputs, seeds, inputs)
    for place, weight in enumerate(weights or (), len(positions)):
        rely_on_structure(weight)
        if not weight.requires_grad:
            gradients[place] = _zeros(weight)
    return output, gradients[: len(positions)], gradients[len(positions) :]
