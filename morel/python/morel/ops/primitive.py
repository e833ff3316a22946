"""Primitive classes: an operator whose attributes are given first and whose inputs are given at the call."""

import ast
import functools
import importlib
import inspect

from morel import _core
from morel.api import load_table, make_operator

__all__ = ["Primitive", "PrimitiveWithCheck", "PrimitiveWithInfer", "find", "names", "prim_attr_register"]

_rows = None


def _table(section="primitives"):
    global _rows
    if _rows is None:
        _rows = load_table("primitives")
    return _rows[section]


class Primitive:
    """Base class of all operators in class form.

    Args:
        name (str): name of the operator.
    """

    def __init__(self, name):
        self.name = name
        self.attrs = {}

    def add_prim_attr(self, name, value):
        """Keeps an attribute; returns the primitive."""
        self.attrs[name] = value
        return self

    def set_device(self, device_target):
        """Only "CPU"."""
        if device_target != "CPU":
            raise ValueError(f"For 'Primitive', 'device_target' must be 'CPU', but got {device_target!r}.")
        return self

    def set_stage(self, stage):
        """Pipeline stage; kept as an attribute."""
        return self.add_prim_attr("stage", stage)

    def shard(self, in_strategy=None, out_strategy=None):
        """Keeps the sharding strategy for parallel training."""
        return self.add_prim_attr("in_strategy", in_strategy).add_prim_attr("out_strategy", out_strategy)

    def recompute(self, mode=True):
        """Marks the operator for recomputation in graph mode."""
        return self.add_prim_attr("recompute", mode)

    def __repr__(self):
        return f"Prim[{self.name}]<{', '.join(f'{key}={value}' for key, value in self.attrs.items())}>"


class PrimitiveWithInfer(Primitive):
    """Base class of operators that users define, with `infer_shape` and `infer_dtype`. They need a computation: their own `__call__`, or
    a function in ``ops.vm_impl_registry``."""

    def __call__(self, *inputs):
        from morel.ops.vm_impl_registry import vm_impl_registry

        getter = vm_impl_registry.get(type(self))
        if getter is not None:
            return getter(self)(*inputs)
        raise NotImplementedError(
            f"'{self.name}' has no computation; write a function, or a class with apply (ms._Function)."
        )


class PrimitiveWithCheck(PrimitiveWithInfer):
    """Base class of operators that users define, with `check_shape` and `check_dtype`. They need a computation of their own."""


def prim_attr_register(fn):
    """Decorator of an operator's `__init__`: its arguments become attributes, and its name that of the class."""
    names = inspect.signature(fn)

    @functools.wraps(fn)
    def initialise(self, *args, **kwargs):
        bound = names.bind(self, *args, **kwargs)
        bound.apply_defaults()
        Primitive.__init__(self, type(self).__name__)
        for name, value in [*bound.arguments.items()][1:]:
            self.add_prim_attr(name, value)
            setattr(self, name, value)
        fn(self, *args, **kwargs)

    return initialise


def __getattr__(name):
    if name in ("constexpr", "_primexpr"):
        return importlib.import_module("morel.common.marks").constexpr
    raise AttributeError(f"module 'morel.ops.primitive' has no attribute '{name}'")


def _make_class(name, spec):
    operator, _, rest = spec.partition("(")
    signature, _, fixed = rest.rpartition(")")
    attrs_text, bar, inputs_text = signature.partition("|")
    if not bar:
        attrs_text, inputs_text = "", attrs_text
    attributes = _core.describe_signature(operator.strip(), attrs_text)
    keyword_part = f", *, {attrs_text}" if attrs_text.strip() else ""
    call_spec = f"{operator}({inputs_text}{keyword_part}){fixed}"
    operation = make_operator(name, call_spec)

    return class_with(name, attributes, lambda given, inputs: operation(*inputs, **given), operation.__doc__)


# Attributes that mean nothing here: updates are never concurrent.
_IGNORED = ("use_locking", "maxlen")


def _make_function_class(name, spec):
    function, _, rest = spec.partition("(")
    attributes, own = [], {}
    for part in filter(None, (text.strip() for text in rest.rpartition(")")[0].split(", "))):
        left, has_default, default = part.partition(" = ")
        public, _, keyword = (text.strip() for text in left.partition(":"))
        own[public] = keyword or public
        attributes.append((public, bool(has_default), ast.literal_eval(default) if has_default else None))

    def call(given, inputs):
        from morel import ops

        keywords = {own[key]: value for key, value in given.items() if key not in _IGNORED}
        return getattr(ops, function)(*inputs, **keywords)

    return class_with(name, attributes, call, f"See :func:`morel.ops.{function}`.")


def class_with(name, attributes, call, doc, call_method=None):
    """A Primitive class; attributes are (name, whether it has a default, default), ``call`` takes those given and the inputs."""

    def __init__(self, *args, **kwargs):
        Primitive.__init__(self, name)
        if len(args) > len(attributes):
            raise TypeError(f"For '{name}', at most {len(attributes)} attributes are taken, but got {len(args)}.")
        values = {row[0]: value for row, value in zip(attributes, args)}
        for key, value in kwargs.items():
            if key not in {row[0] for row in attributes}:
                raise TypeError(f"For '{name}', got an unexpected keyword argument '{key}'.")
            values[key] = value
        for row in attributes:
            if row[0] not in values and not row[1]:
                raise TypeError(f"For '{name}', the attribute '{row[0]}' is missing.")
        self.attrs = {row[0]: values.get(row[0], row[2]) for row in attributes}
        self.__dict__.update(self.attrs)
        self._given = values

    def __call__(self, *inputs):
        return call(self._given, inputs)

    members = {"__init__": __init__, "__call__": call_method or __call__, "__doc__": doc, "__module__": "morel.ops"}
    return type(name, (Primitive,), members)


def _make_mint_class(name, function):
    from morel import mint

    def __call__(self, *args, **kwargs):
        return getattr(mint, function)(*args, **kwargs)

    return class_with(name, (), None, f"See :func:`morel.mint.{function}`.", __call__)


def _make_elsewhere(name, devices):
    """A name that other devices have: a Primitive class that takes any attributes, or a function."""

    def refuse(*_args, **_kwargs):
        raise NotImplementedError(f"'{name}' exists on {devices} only; it is not supported on this device.")

    if name[0].islower():
        refuse.__name__ = refuse.__qualname__ = name
        return refuse
    members = {
        "__init__": lambda self, *_args, **_kwargs: Primitive.__init__(self, name),
        "__call__": refuse,
        "__doc__": f"Exists on {devices} only: a call raises NotImplementedError.",
        "__module__": "morel.ops",
    }
    return type(name, (Primitive,), members)


def _written_classes():
    return [importlib.import_module(f"morel.ops.{name}") for name in ("primitive_classes", "primitive_effects")]


def find(name):
    """The Primitive class called ``name``, or None."""
    if name == "Primitive":
        return Primitive
    if name in _table():
        return _make_class(name, _table()[name])
    if name in _table("functions"):
        return _make_function_class(name, _table("functions")[name])
    if name in _table("mint"):
        return _make_mint_class(name, _table("mint")[name])
    for classes in _written_classes():
        if name in classes.__all__:
            return getattr(classes, name)
    elsewhere = load_table("elsewhere")["ops"].get(name)
    return None if elsewhere is None else _make_elsewhere(name, elsewhere)


def names():
    """All Primitive names."""
    written = [name for classes in _written_classes() for name in classes.__all__]
    return ["Primitive", *_table(), *_table("functions"), *_table("mint"), *written]
