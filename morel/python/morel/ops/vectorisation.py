"""vmap: a function of one example as a function of a batch of them."""

import functools

from morel import _core
from morel.api import make_operator

__all__ = ["vmap"]

_movedim, _stack = make_operator("movedim", "movedim"), make_operator("stack", "stack")
_broadcast_to, _select = make_operator("broadcast_to", "broadcast_to"), make_operator("select", "select")


def _is_axis(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _checked_axes(axes, what):
    """Axes with lists as tuples; RuntimeError unless they are integers, None and tuples of these."""
    if axes is None or _is_axis(axes):
        return axes
    if isinstance(axes, (tuple, list)):
        return tuple(_checked_axes(item, what) for item in axes)
    raise RuntimeError(
        f"For 'vmap', '{what}' must hold integers, None, and tuples or lists of these, but got {axes!r}."
    )


def _all_none(axes):
    return all(map(_all_none, axes)) if isinstance(axes, tuple) else axes is None


def _spread_axes(axes, value, what):
    """The leaves of a value (depth first) with their axes: one for all, or a structure like the value's."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if not isinstance(value, (tuple, list)):
        if isinstance(axes, tuple):
            raise RuntimeError(f"For 'vmap', '{what}' has the tuple {axes} for a value of type {type(value).__name__}.")
        return [(value, axes)]
    each = axes if isinstance(axes, tuple) else (axes,) * len(value)
    if len(each) != len(value):
        raise RuntimeError(f"For 'vmap', '{what}' has {len(each)} entries for {len(value)} values: {axes}.")
    return [pair for item, axis in zip(value, each) for pair in _spread_axes(axis, item, what)]


def _rank(tensor):
    return len(tensor.shape)


def _batches(pairs):
    """(each mapped tensor with its axis moved to the front, by place; the number of examples)"""
    batches, size, first = {}, None, None
    for place, (leaf, axis) in enumerate(pairs):
        if axis is None:
            continue
        if not isinstance(leaf, _core.Tensor):
            raise RuntimeError(
                f"For 'vmap', 'in_axes' has axis {axis} for a value of type {type(leaf).__name__}; only tensors are mapped, "
                "others have None."
            )
        rank = _rank(leaf)
        if not -rank <= axis < rank:
            raise RuntimeError(f"For 'vmap', 'in_axes' has axis {axis} for a tensor of {rank} dimensions.")
        if size is None:
            size, first = leaf.shape[axis], (tuple(leaf.shape), axis)
        elif leaf.shape[axis] != size:
            raise RuntimeError(
                f"For 'vmap', the mapped axes must have one size, but axis {first[1]} of {first[0]} has {size} and axis {axis} "
                f"of {tuple(leaf.shape)} has {leaf.shape[axis]}."
            )
        batches[place] = leaf if axis % rank == 0 else _movedim(leaf, axis, 0)
    return batches, size


def _placed(result, batched, axis, size):
    """A result with the axis of the batch where 'out_axes' wants it."""
    if axis is None:
        if batched:
            raise RuntimeError("For 'vmap', 'out_axes' has None for a result that differs between the examples.")
        return result
    if not batched:
        result = _broadcast_to(result, (size, *result.shape))
    rank = _rank(result)
    if not -rank <= axis < rank:
        raise RuntimeError(f"For 'vmap', 'out_axes' has axis {axis} for a result of {rank} dimensions.")
    return result if axis % rank == 0 else _movedim(result, 0, axis)


def _run(fn, in_axes, out_axes, args):
    """One call: the function becomes a graph for one example, which runs for the batch."""
    from morel.compiler import call_in_graph
    from morel.compiler.tree import flatten, unflatten

    pairs = _spread_axes(in_axes, args, "in_axes")
    batches, size = _batches(pairs)
    _, structure = flatten(args)
    _core.graph_begin("vmap")
    try:
        leaves = [
            _core.graph_example(batches[place]) if place in batches else leaf for place, (leaf, _) in enumerate(pairs)
        ]
        output = call_in_graph(fn, unflatten(structure, leaves))
        results, tree = flatten(output)
        graph = _core.graph_end([leaf for leaf in results if isinstance(leaf, _core.Tensor)])
    except BaseException:
        _core.graph_abort()
        raise
    mapped = iter(_core.graph_vmap(graph, list(batches.values()), size))
    placed = []
    for leaf, axis in _spread_axes(out_axes, output, "out_axes"):
        placed.append(_placed(*next(mapped), axis, size) if isinstance(leaf, _core.Tensor) else leaf)
    return unflatten(tree, placed)


def _ensemble(cells, in_axes, out_axes):
    """Cells of one kind, one for each example."""

    def call(*args):
        from morel.compiler.tree import flatten, unflatten

        pairs = _spread_axes(in_axes, args, "in_axes")
        batches, size = _batches(pairs)
        if size is not None and size != len(cells):
            raise RuntimeError(f"For 'vmap', {len(cells)} cells are given for {size} examples.")
        _, structure = flatten(args)
        outputs = []
        for i, cell in enumerate(cells):
            leaves = [_select(batches[k], 0, i) if k in batches else leaf for k, (leaf, _) in enumerate(pairs)]
            outputs.append(flatten(cell(*unflatten(structure, leaves))))
        tree = outputs[0][1]
        axes = [axis for _, axis in _spread_axes(out_axes, unflatten(tree, outputs[0][0]), "out_axes")]
        stacked = [
            _placed(_stack(list(leaves), 0), True, axis, size)
            for leaves, axis in zip(zip(*(o[0] for o in outputs)), axes)
        ]
        return unflatten(tree, stacked)

    return call


def vmap(fn, in_axes=0, out_axes=0):
    """A function of batches that gives for each example what ``fn`` gives for it, computed for all at once.

    The function is compiled for one example, as by ``jit``; every operator then takes one more axis. Random operators draw
    for every example. Nested, within ``jit``, and within or around gradients it works as well.

    Args:
        fn (function, Cell, CellList): takes tensors, numbers, tuples, lists; returns tensors, also in tuples, lists and
            dicts. With a CellList each cell takes one example.
        in_axes (int, tuple, list): which axis of each argument runs over the examples: one for all, or for each argument an
            integer (negative: from the end), None (the same for all examples) or a tuple for the items of an argument.
        out_axes (int, tuple, list): where this axis stands in each result; None: a result which is the same for all.
    Returns:
        function: takes positional arguments.
    Raises:
        RuntimeError: axes that do not fit the arguments or results, or tensors with other numbers of examples.
        NotImplementedError: fn contains what graphs cannot, or changes a tensor that the examples share.
    Example:
        >>> ms.vmap(lambda x, y: (x * y).sum(), in_axes=(0, None))(ms.ops.ones((3, 2)), ms.Tensor([1., 2.]))
        >>> ms.vmap(ms.grad(lambda x: (x**3).sum()))(ms.ops.ones((3, 2)))  # gradients of each example
    """
    from morel.compiler import CompiledFunction
    from morel.nn.layer.container import CellList

    in_axes, out_axes = _checked_axes(in_axes, "in_axes"), _checked_axes(out_axes, "out_axes")
    if in_axes is None or (isinstance(in_axes, tuple) and _all_none(in_axes)):
        raise RuntimeError("For 'vmap', 'in_axes' must name an axis of at least one argument, but all are None.")
    if isinstance(fn, CellList):
        return _ensemble(fn, in_axes, out_axes)
    if not callable(fn):
        raise TypeError(f"For 'vmap', 'fn' must be a function, a Cell or a CellList, but got {type(fn).__name__}.")

    def mapped(*args):
        return _run(fn, in_axes, out_axes, args)

    compiled = CompiledFunction(mapped)

    @functools.wraps(fn, updated=())
    def call(*args):
        return mapped(*args) if _core.graph_active() else compiled.call(*args)

    return call
