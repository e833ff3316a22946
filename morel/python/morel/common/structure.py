"""Tells compiled functions that a cell or Parameter which they know got other children, hooks, precision or was frozen.

Graphs rely on ``STRUCTURE["version"]``, an object that is replaced then; what no graph knows changes nothing.
"""

STRUCTURE = {"version": object()}


def watch(owner):
    """From now on changes of this cell or Parameter count."""
    owner.__dict__["_watched"] = id(owner)  # which a copy of it does not have


def changed(owner):
    if owner.__dict__.get("_watched") == id(owner):
        STRUCTURE["version"] = object()
