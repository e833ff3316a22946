"""What a tensor chooses: an item of a tuple or list, each in a branch of its own; an operand of `and` and `or`."""

from morel import _core
from morel.compiler.source import Unsupported
from morel.compiler.tensor_flow import merge


class _Chosen:
    """The result of a branch, as `merge` wants it."""

    def __init__(self, value):
        self.value = value


def choose(index, items, use):
    """``use(items[index])`` for an index that is a tensor of one integer; negative ones count from the end."""
    index = index.reshape(())
    index = (index < 0).astype(index.dtype) * len(items) + index

    def select(first):
        if first == len(items) - 1:
            return use(items[first])
        branches = (lambda: ({}, _Chosen(use(items[first])))), (lambda: ({}, _Chosen(select(first + 1))))
        return merge(index == first, *branches, {}, type(None), _Chosen)[1].value

    return select(0)


def _is_sequence(container):
    return isinstance(container, (tuple, list)) or (hasattr(container, "construct") and hasattr(container, "__len__"))


def item_at(call, container, key):
    """``container[key]``. Of functions or cells, the one at a tensor's place is chosen when it is called."""
    if not (isinstance(key, _core.Tensor) and _core.is_symbolic(key) and _is_sequence(container)):
        return container[key]
    container = tuple(container)
    if not container:
        raise IndexError("An item of an empty sequence is asked for.")
    if all(callable(part) and not isinstance(part, _core.Tensor) for part in container):
        return lambda *args, **kwargs: choose(key, container, lambda fn: call(fn, args, kwargs))
    return choose(key, container, lambda part: part)


def is_mask(container, key):
    """Whether ``container[key]`` takes elements of a tensor by a mask, which a graph does not know before it runs."""
    tensors = isinstance(container, _core.Tensor) and isinstance(key, _core.Tensor)
    return tensors and str(key.dtype) == "Bool"


def by_mask(container, mask, combine, value):
    """``combine(container, value)`` where a mask over the first axes holds; else the container itself."""
    import morel

    inner = container.ndim - mask.ndim
    if isinstance(value, _core.Tensor) and value.ndim > inner:
        raise Unsupported(
            "'x[mask] += value' in a compiled function takes a value that is the same for every place of the mask, but its "
            f"shape is {tuple(value.shape)}; use where"
        )
    changed = combine(container, value)
    kept = container.dtype
    if _core.common_dtype([container, changed]) != kept and not (
        kept.is_floating_point and changed.dtype.is_floating_point
    ):
        raise TypeError(
            f"the result of 'x[mask] += value' has dtype {changed.dtype}, which does not fit into a tensor of {kept}"
        )
    changed = changed.astype(kept)
    return morel.ops.where(mask.reshape((*mask.shape, *(1,) * inner)), changed, container)


def operand(is_and, first, second):
    """``first and ...`` or ``first or ...`` for a tensor ``first``: the operand itself, as in Python. ``second`` is the
    branch that gives the other one."""

    def other():
        names, result = second()
        value = result.value
        if isinstance(value, _core.Tensor) and (value.dtype, value.shape) != (first.dtype, first.shape):
            kinds = " and ".join(f"{tuple(tensor.shape)} of {tensor.dtype}" for tensor in (first, value))
            raise TypeError(
                f"'{'and' if is_and else 'or'}' on tensors gives one of its operands, which must have the same shape and "
                f"dtype in a compiled function, but they have {kinds}; compare or convert one of them"
            )
        return names, result

    branches = (other, lambda: ({}, _Chosen(first)))
    return merge(first, *(branches if is_and else branches[::-1]), {}, type(None), _Chosen)[1].value
