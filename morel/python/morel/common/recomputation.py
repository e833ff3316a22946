"""Recomputation: less memory for activations in exchange for a second forward pass."""

from morel import _core

__all__ = ["recompute"]


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
    from morel.ops.autograd import _is_variable, differentiate

    if not isinstance(block, Cell):
        raise TypeError(f"For 'recompute', 'block' must be a Cell, but got {type(block).__name__}.")
    for name, value in (("use_reentrant", use_reentrant), ("output_recompute", output_recompute)):
        if not isinstance(value, bool):
            raise TypeError(f"For 'recompute', '{name}' must be bool, but got {type(value).__name__}.")
    if _core.graph_active() or not _core.grad_enabled():
        return block(*args, **kwargs)
    places = [idx for idx, arg in enumerate(args) if _is_variable(arg)]
    weights = tuple(block.trainable_params())
    state = _core.generator_state()
    output = _core.without_grad(block, *args, **kwargs)
    single = not isinstance(output, tuple)

    def backward(*gradients):
        later = _core.generator_state()
        _core.set_generator_state(*state)
        try:
            _, at_inputs, at_weights = differentiate(block, places, weights, False, args, kwargs, tuple(gradients))
        finally:
            _core.set_generator_state(*later)
        return (*at_inputs, *at_weights)

    outputs = _tensors((output,) if single else output)
    linked = _core.custom_backward("Recompute", [*(args[idx] for idx in places), *weights], outputs, backward)
    if single:
        return linked[0]
    remaining = iter(linked)
    return tuple(next(remaining) if isinstance(item, _core.Tensor) else item for item in output)
