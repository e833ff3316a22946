"""Public names from tables: a row says which operator a name stands for and how its parameters differ.

A table is a TOML file of sections and ``name = "spec"`` lines. Specs:

- ``"add"``: operator ``add`` with its own parameters;
- ``"sum(input, dim: axis = None, *, dtype = None)"``: the public parameters in order; an annotation names the operator's
  argument where it differs; arguments that are not mentioned keep the operator's default;
- ``"batch_norm(x: input) training = True"``: what follows sets arguments that callers cannot.

A name that ends in an underscore is the in-place form. A Primitive class has its constructor's parameters before a ``|``.
"""

import os

from morel import _core

_FOLDER = os.path.dirname(__file__)


def load_table(name):
    """{section: {public name: spec}} of the file api/NAME.toml."""
    sections, rows = {}, None
    with open(os.path.join(_FOLDER, name + ".toml"), encoding="utf-8") as file:
        for line in file:
            line = line.strip()
            if line.startswith("["):
                rows = sections.setdefault(line[1:-1], {})
            elif line and not line.startswith("#"):
                key, _, spec = line.partition(" = ")
                rows[key.strip('"')] = spec.strip('"')
    return sections


# Operators with a list of results, which stays a tuple where it has one element.
_LISTS = ("chunk", "meshgrid", "split", "tensor_split", "unbind")


def make_operator(name, spec):
    """The callable for a row; also for a bare operator name."""
    operator = spec.partition("(")[0].strip()
    in_place = name.endswith("_") and not name.startswith("_") and not operator.endswith("_")
    call = _core.make_operator(name, spec, in_place)
    return _always_tuple(call, name) if operator in _LISTS else call


def _always_tuple(call, name):
    def listed(*args, **kwargs):
        results = call(*args, **kwargs)
        return results if isinstance(results, tuple) else (results,)

    listed.__name__ = listed.__qualname__ = name
    listed.__doc__ = call.__doc__
    listed.__wrapped__ = call
    return listed


class NameTable:
    """Lazily made callables of one namespace: rows of a table, then the operators that need no row."""

    def __init__(self, rows, with_registry=True):
        self.rows = dict(rows)
        if with_registry:
            for name in _core.public_operator_names():
                self.rows.setdefault(name, name)

    def __contains__(self, name):
        return name in self.rows

    def make(self, name):
        return make_operator(name, self.rows[name])
