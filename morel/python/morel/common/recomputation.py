"""Recomputation: less memory for activations in exchange for a second forward pass."""

from morel import _core
from morel.api import make_operator

__all__ = ["recompute"]


_rng_state, _exchange_rng, _stop_gradient = (
    make_operator(name, name) for name in ("rng_state", "exchange_rng", "stop_gradient")
)


class _EagerRun:
    """The first run of a block, and what the second one needs to draw the same random numbers."""

    def __init__(self):
        self.state = _core.generator_state()

    def end(self):
        pass

    def begin_again(self, args, places, _weights, _gradients):
        self.later = _core.generator_state()
        _core.set_generator_state(*self.state)
        if _core.grad_enabled():
            return args
        # What lies before the block is not part of this gradient.
        return tuple(_stop_gradient(arg) if idx in places else arg for idx, arg in enumerate(args))

    def end_again(self):
        _core.set_generator_state(*self.later)


class _GraphRun:
    """The same while a graph is built. The second run waits for the cotangents, so that nothing of it is taken from the
    first one."""

    def __init__(self):
        self.state, self.first = _rng_state(), _core.graph_num_nodes()

    def end(self):
        self.draws = _core.graph_draws_since(self.first)

    def begin_again(self, args, places, weights, gradients):
        held = iter(_core.graph_hold([*(args[place] for place in places), *weights], list(gradients)))
        self.later = _exchange_rng(self.state) if self.draws else None
        return tuple(next(held) if idx in places else arg for idx, arg in enumerate(args))

    def end_again(self):
        if self.draws:
            _exchange_rng(self.later)
        _core.graph_release()


def _run(block, args, kwargs):
    if not _core.graph_active():
        return block(*args, **kwargs)
    from morel.compiler import call_in_graph

    return call_in_graph(block, args, kwargs)


def _tensors(outputs):
    return [output for output in outputs if isinstance(output, _core.Tensor)]


def recompute(block, *args, use_reentrant=True, output_recompute=False, **kwargs):
    """``block(*args, **kwargs)`` that keeps only its inputs for the backward pass, and runs again there.

    The second run draws the same random numbers. Values and gradients are those of the block itself, also of second order.

    Args:
        block (Cell): what is computed.
        args: its arguments; gradients flow to tensors that are arguments themselves, not into tuples or lists.
        use_reentrant (bool): both ways of MindSpore give the same here.
        output_recompute (bool): an option of graph mode; outputs are kept where later operators need them.
        kwargs: keyword arguments of the block; no gradients flow to them.
    Returns:
        what the block returns: a tensor or a tuple.
    Raises:
        TypeError: block is no Cell, or an option no bool.
    Example:
        >>> import morel as ms
        >>> from morel import nn
        >>> block = nn.SequentialCell(nn.Dense(4, 4), nn.ReLU())
        >>> ms.grad(lambda x: ms.recompute(block, x).sum())(ms.ops.ones((2, 4)))
    """
    from morel.nn.cell import Cell

    if not isinstance(block, Cell):
        raise TypeError(f"For 'recompute', 'block' must be a Cell, but got {type(block).__name__}.")
    for name, value in (("use_reentrant", use_reentrant), ("output_recompute", output_recompute)):
        if not isinstance(value, bool):
            raise TypeError(f"For 'recompute', '{name}' must be bool, but got {type(value).__name__}.")
    return run_and_forget(block, block.trainable_params(), args, kwargs)


def run_and_forget(block, weights, args, kwargs):
    """``block(*args, **kwargs)``, any function, with gradients at its arguments and weights for which it runs again."""
    from morel.ops.autograd import _is_variable, differentiate

    # The gradient of a branch, loop body or recursive function computes all of it again.
    if not _core.grad_enabled() or _core.graph_depth() > 1:
        return _run(block, args, kwargs)
    places = [idx for idx, arg in enumerate(args) if _is_variable(arg)]
    weights = tuple(weights)
    run = _GraphRun() if _core.graph_active() else _EagerRun()
    output = _core.without_grad(_run, block, args, kwargs)
    run.end()
    single = not isinstance(output, tuple)

    def backward(*gradients):
        given = run.begin_again(args, places, weights, gradients)
        try:
            _, at_inputs, at_weights = differentiate(block, places, weights, False, given, kwargs, tuple(gradients))
        finally:
            run.end_again()
        return (*at_inputs, *at_weights)

    outputs = _tensors((output,) if single else output)
    linked = _core.custom_backward("Recompute", [*(args[idx] for idx in places), *weights], outputs, backward)
    if single:
        return linked[0]
    remaining = iter(linked)
    return tuple(next(remaining) if isinstance(item, _core.Tensor) else item for item in output)
