"""An item of a tuple or list whose place is a tensor: each item in a branch of its own."""

from morel import _core
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
