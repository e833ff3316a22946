"""python -m morel.tools.stubs FOLDER: writes FOLDER/morel/**.pyi, the types of modules whose names are made when first used.

They are laid over the package in a wheel; type checkers read all else from its Python sources (PEP 561). Operators come from
their entries and api rows, functions from their source and the "Returns:" of their docstrings.
"""

import builtins
import importlib
import inspect
import itertools
import keyword
import re
import sys
import types
from pathlib import Path

from morel import _core

# Modules whose names are made when first used.
MODULES = (
    "morel",
    "morel.mint",
    "morel.mint.linalg",
    "morel.mint.nn",
    "morel.mint.nn.functional",
    "morel.mint.special",
    "morel.nn",
    "morel.ops",
)
# What a schema's type is in Python.
TYPES = {
    "Tensor": "Tensor",
    "Tensor[]": "Sequence[Tensor]",
    "number": "builtins.complex",  # for type checkers int and float are complex numbers too
    "bool": "builtins.bool",
    "int": "builtins.int",
    "float": "builtins.float",
    "str": "builtins.str",
    "dtype": "_DType",
    "int[]": "builtins.int | Sequence[builtins.int]",
    "float[]": "builtins.float | Sequence[builtins.float]",
}
# Types of the extension under names that no operator has: morel.ops has a DType of its own.
NAMES = {"DType": "_DType", "Tensor": "Tensor"}
HEAD = "import builtins\nfrom collections.abc import Callable, Iterator, Sequence\nfrom typing import Any\n\n"
COMPARISONS = ("__eq__", "__ne__")


def annotation(type_text):
    """The annotation for the type of a schema: "Tensor|number", "int[]?"."""
    parts = [kind for part in type_text.rstrip("?").split("|") for kind in TYPES.get(part, "Any").split(" | ")]
    return " | ".join(dict.fromkeys(parts + (["None"] if type_text.endswith("?") else [])))


def _samples(type_text):
    """Arguments of the type of a schema, likely ones first."""
    kind = type_text.rstrip("?").split("|")[0]
    ones = _core.make_operator("ones", "ones")
    if kind in ("Tensor", "Tensor[]"):
        tensors = [
            ones(shape, dtype=dtype)
            for shape in ((4, 4), (1, 2, 4, 4), (4,), (2, 4, 4), (1, 2, 4, 4, 4), (1, 1))
            for dtype in (_core.dtype_named("Float32"), _core.dtype_named("Int64"), _core.dtype_named("Bool"))
        ]
        return [(tensor, tensor) for tensor in tensors] if kind == "Tensor[]" else tensors
    return {
        "number": [1.0],
        "bool": [True],
        "int": [1, 0, 2],
        "float": [0.5],
        "str": ["mean", "ij->ij"],
        "dtype": [_core.dtype_named("Float32")],
        "int[]": [(1, 1), (0,), (1,), (4, 4), (2, 2, 1, 1)],
        "float[]": [(1.0,)],
    }.get(kind, [None])


def _result_of_a_call(call):
    """What an operator gives that is called with samples of its required arguments; None where none of them fits."""
    for wanted in ((None,), (None, "None")):  # those without a default, then also those that may be left out
        given = [(name, _samples(kind)) for name, kind, _, default in call.parameters if default in wanted]
        for values in itertools.islice(itertools.product(*(samples for _, samples in given)), 3000):
            try:
                return call(**dict(zip([name for name, _ in given], values)))
            except Exception:
                continue
    return None


def results_of(call):
    """The annotation for what an operator gives."""
    facts = _core.describe_operator(call.op)
    count = facts["results"]
    if count == 0 and facts["kind"] == "view":
        return "tuple[Tensor, ...]"
    if count == 0 and not call.__name__.endswith("_"):
        found = _result_of_a_call(call)
        if found is None:
            return "Any"
        count = len(found) if isinstance(found, tuple) else 1
    return "Tensor" if count <= 1 else f"tuple[{', '.join(['Tensor'] * count)}]"


def operator_parameters(call):
    """[(text, keyword-only)] of an operator's parameters."""
    return [
        (f"{name}: {annotation(kind)}" + ("" if default is None else f" = {_default(default)}"), keyword_only)
        for name, kind, keyword_only, default in call.parameters
    ]


def _default(text):
    return text if re.fullmatch(r"-?[\d.]+(e-?\d+)?|True|False|None|'\w*'|\([\d, -]*\)", text) else "..."


def _joined(parameters):
    out, star = [], False
    for text, keyword_only in parameters:
        if keyword_only and not star:
            out.append("*")
            star = True
        out.append(text)
    return ", ".join(out)


def _quoted(doc, indent):
    text = inspect.cleandoc(doc or "").split("\n\n")[0].replace("\\", "\\\\").replace('"""', "'''")
    return f'{indent}    """{text}"""\n' if text and '"' not in text[-1:] else f"{indent}    ...\n"


def _def(name, parameters, result, doc, indent=""):
    return f"{indent}def {name}({parameters}) -> {result}:\n{_quoted(doc, indent)}"


def _documented_result(doc):
    """The annotation that the "Returns:" of a docstring stands for."""
    found = re.search(r"Returns:\s*(Tensor|tuple|function|bool|int|float|str)\b(?!\s*(or\b|,|\[|\|))", doc or "")
    named = {"Tensor": "Tensor", "tuple": "tuple[Any, ...]", "function": "Callable[..., Any]", None: "Any"}
    kind = found and found[1]
    return named.get(kind) or f"builtins.{kind}"


def _function_parameters(function):
    out = []
    for parameter in inspect.signature(function).parameters.values():
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        text = f"{prefix}{parameter.name}" + ("" if parameter.name in ("self", "cls") and not out else ": Any")
        out.append(text + (" = ..." if parameter.default is not parameter.empty else ""))
        if parameter.kind == parameter.KEYWORD_ONLY and not any(item.startswith("*") for item in out[:-1]):
            out.insert(-1, "*")
    return ", ".join(out)


def function_stub(name, value, indent=""):
    """The stub of a callable that is no class; operators with the types of their schema."""
    if isinstance(value, _core.Operator):
        return _def(name, _joined(operator_parameters(value)), results_of(value), value.__doc__, indent)
    wrapped = getattr(value, "__wrapped__", None)
    if isinstance(wrapped, _core.Operator):
        return _def(name, _joined(operator_parameters(wrapped)), "tuple[Tensor, ...]", wrapped.__doc__, indent)
    return _def(name, _function_parameters(value), _documented_result(value.__doc__), value.__doc__, indent)


def _class_stub(name, value):
    """A class that is made when first used: a Primitive, which takes its operator's arguments when called."""
    constructor = _function_parameters(value.__init__) if inspect.isfunction(value.__init__) else "self"
    return (
        f"class {name}(Primitive):\n{_quoted(value.__doc__, '')}"
        f"    def __init__({constructor}) -> None: ...\n    def __call__(self, *args: Any) -> Any: ...\n"
    )


def _kind_of(value):
    """The annotation for a constant or a property."""
    kind = type(value).__name__
    if kind == "tuple" and all(type(item) is int for item in value):
        return "tuple[builtins.int, ...]"
    if kind in NAMES:
        return NAMES[kind]
    return f"builtins.{kind}" if hasattr(builtins, kind) else "Any"


def _member(module, name, value):
    """The line or lines of one public name of a module; None for what is not ours."""
    home = getattr(value, "__module__", None) or ""
    if isinstance(value, types.ModuleType):
        parent, _, last = value.__name__.rpartition(".")
        return f"from {parent} import {last} as {name}\n" if value.__name__.startswith("morel.") else None
    if isinstance(value, type):
        if value.__name__ in NAMES and getattr(_core, value.__name__) is value:
            return f"from morel._core import {value.__name__} as {name}\n"
        if not home.startswith("morel"):
            return None
        found = getattr(sys.modules.get(home), value.__qualname__, None)
        if found is value and home != module:
            return f"from {home} import {value.__qualname__} as {name}\n"
        return None if found is value and name != value.__qualname__ else _class_stub(name, value)
    if callable(value) and not isinstance(value, _core.DType):
        return function_stub(name, value)
    return f"{name}: {_kind_of(value)}\n"


def module_stub(name):
    """The stub of a module: every public name of its dir()."""
    module, imports, rest = importlib.import_module(name), [], []
    for public in sorted(dir(module)):
        if public.startswith("_") or keyword.iskeyword(public):
            continue
        try:
            text = _member(name, public, getattr(module, public))
        except AttributeError:  # modules of MindSpore that are not there yet
            continue
        if text:
            (imports if text.startswith("from ") else rest).append(text)
    known = "from morel._core import DType as _DType, Tensor as Tensor\n"
    if any("(Primitive)" in text for text in rest):
        known += "from morel.ops.primitive import Primitive\n"
    return HEAD + known + "".join(imports) + "\n" + "\n".join(rest)


def _tensor_stub():
    """The class Tensor with its methods, properties and operators."""
    tensor = _core.make_operator("ones", "ones")((2, 2))
    out = [
        "class Tensor:\n    def __init__(self, input_data: Any = ..., dtype: _DType | None = ..., *args: Any, **kwargs: Any) -> None: ...\n"
    ]
    plain = {"__bool__": "bool", "__float__": "float", "__int__": "int", "__index__": "int", "__len__": "int"}
    for name in sorted(dir(_core.Tensor)):
        value = inspect.getattr_static(_core.Tensor, name)
        if isinstance(value, types.WrapperDescriptorType):
            if value.__objclass__ is not _core.Tensor or name == "__hash__":
                continue
            if name in plain:
                out.append(f"    def {name}(self) -> builtins.{plain[name]}: ...\n")
            elif name in ("__setitem__", "__delitem__"):
                out.append(
                    f"    def {name}(self, key: Any{', value: Any' * (name == '__setitem__')}, /) -> None: ...\n"
                )
            elif name in ("__neg__", "__abs__", "__invert__"):
                out.append(f"    def {name}(self) -> Tensor: ...\n")
            else:
                ignore = "  # type: ignore[override]" * (name in COMPARISONS)
                out.append(f"    def {name}(self, other: Any, /) -> Tensor: ...{ignore}\n")
        elif name.startswith("_"):
            continue
        elif isinstance(value, (property, types.GetSetDescriptorType)):
            try:
                kind = _kind_of(getattr(tensor, name))
            except ValueError:  # tensors of a kind alone have it
                kind = "Any"
            out.append(f"    @property\n    def {name}(self) -> {kind}: ...\n")
        elif callable(value):
            out.append(function_stub(name, value, "    "))
    out.append("    def __iter__(self) -> Iterator[Tensor]: ...\n")
    return "".join(out)


def core_stub():
    """The extension: types that users meet, everything else as it comes."""
    return (
        HEAD + "class DType: ...\n\n_DType = DType\n\n" + _tensor_stub() + "\ndef __getattr__(name: str) -> Any: ...\n"
    )


def write(folder):
    """Writes the stubs; returns their paths."""
    root = Path(folder) / "morel"
    written = []
    for module in (*MODULES, "morel._core"):
        parts = module.split(".")[1:]
        is_package = hasattr(importlib.import_module(module), "__path__")
        path = root.joinpath(*parts, "__init__.pyi") if is_package else root.joinpath(*parts).with_suffix(".pyi")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = core_stub() if module == "morel._core" else module_stub(module)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    write(sys.argv[1])
