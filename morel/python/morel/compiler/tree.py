"""Nested tuples, lists and dicts as a list of leaves and a structure."""

from morel import _core
from morel.compiler.text import Text


def plain(value):
    """A value that is no tensor as it leaves a graph: a size becomes the number that the graph is then specialised to."""
    return int(value) if type(value) is _core.Size else value


def flatten(value):
    """(leaves, structure). Structures compare equal where the same leaves fit."""
    leaves = []

    def visit(item):
        if isinstance(item, tuple) and hasattr(item, "_fields"):
            return (type(item), tuple(visit(part) for part in item))
        if isinstance(item, (tuple, list)):
            return (type(item), tuple(visit(part) for part in item))
        if isinstance(item, dict):
            return (dict, tuple(map(plain, item)), tuple(visit(part) for part in item.values()))
        if isinstance(item, Text):
            return (Text, tuple(visit(part) for part in item.parts))
        leaves.append(item)
        return None

    structure = visit(value)
    return leaves, structure


def unflatten(structure, leaves):
    """The inverse of :func:`flatten`."""
    remaining = iter(leaves)

    def build(part):
        if part is None:
            return next(remaining)
        if part[0] is dict:
            return dict(zip(part[1], [build(item) for item in part[2]]))
        items = [build(item) for item in part[1]]
        if part[0] is Text:
            return Text.of(items)
        return part[0](*items) if hasattr(part[0], "_fields") else part[0](items)

    return build(structure)


def count_leaves(structure):
    """How many leaves a structure has."""
    return 1 if structure is None else sum(count_leaves(part) for part in structure[-1])
