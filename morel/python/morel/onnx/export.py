"""Networks written as ONNX files."""

import inspect
import os

from morel import _core
from morel.common.parameter import Parameter
from morel.compiler.facts import recorded_facts
from morel.compiler.interpreter import Interpreter
from morel.compiler.recursion import Session
from morel.compiler.tree import flatten, unflatten


def export_onnx(
    net, *inputs, file_name, opset=None, input_names=None, output_names=None, dynamic_axes=None, data_limit=None
):
    """Writes a cell or function as an ONNX file.

    A cell is written as it is in evaluation. Weights have the names of the Parameters; where they are larger than a file of
    ONNX can be they go into another one beside it, ``file_name + ".data"``.

    Args:
        net (Cell, function): what to write; the source is read as for ``jit``.
        inputs (Tensor): arguments like those that the network is for.
        file_name (str): the file.
        opset (int, optional): version of ONNX's operators, 17 to 22. Default: 22.
        input_names (list[str], optional): default: the names of the parameters of ``construct``.
        output_names (list[str], optional): default: "output", or "output_0", "output_1", ...
        dynamic_axes (dict, optional): sizes that are open, as ``{"x": {0: "batch"}}``; axes of one name have one size. Default: all
            sizes are those of `inputs`.
        data_limit (int, optional): bytes of weights beyond which they go into the other file.
    """
    from morel.nn.cell import Cell

    leaves, structure = flatten(inputs)
    tensors = [leaf for leaf in leaves if isinstance(leaf, _core.Tensor)]
    names = list(input_names) if input_names is not None else _input_names(net, inputs)
    if len(names) != len(tensors):
        raise ValueError(f"For 'export', there are {len(tensors)} input tensors, but {len(names)} names: {names}.")
    symbols, sizes = _symbols(tensors, names, dynamic_axes or {})
    parts = [part for _, part in net.cells_and_names()] if isinstance(net, Cell) else []
    training = [part.training for part in parts]
    for part in parts:
        part.training = False

    def build():
        _core.graph_begin(getattr(net, "__name__", type(net).__name__))
        try:
            _core.graph_keep_named()
            places = iter(symbols)
            inside = [
                _core.graph_sized_parameter(leaf, next(places)) if isinstance(leaf, _core.Tensor) else leaf
                for leaf in leaves
            ]
            with recorded_facts() as facts:
                output = Interpreter().call(net, unflatten(structure, inside))
            results = [leaf for leaf in flatten(output)[0] if leaf is not None]
            for result in results:
                if not isinstance(result, _core.Tensor):
                    raise TypeError(
                        f"For 'export', the network gives a {type(result).__name__}, but ONNX has only tensors."
                    )
            if _core.graph_write_back([leaf for leaf in inside if isinstance(leaf, _core.Tensor)]):
                raise NotImplementedError("For 'export', the network changes an argument in place, which ONNX cannot.")
            return _core.graph_end(results), len(results), facts
        except BaseException:
            _core.graph_abort()
            raise

    try:
        with Session() as session:
            graph, count, facts = session.compile(build)
    finally:
        for part, was_training in zip(parts, training):
            part.training = was_training
    outputs = list(output_names) if output_names is not None else _numbered("output", count)
    if len(outputs) != count:
        raise ValueError(f"For 'export', the network has {count} outputs, but 'output_names' has {len(outputs)}.")
    weights = {value.name: value for _, _, value in facts.values() if isinstance(value, Parameter)}
    if isinstance(net, Cell):
        weights.update(net.parameters_and_names())
    options = {} if data_limit is None else {"data_limit": data_limit}
    opset = _core.onnx_opsets[1] if opset is None else opset
    _core.write_onnx(graph, os.fspath(file_name), opset, names, outputs, sizes, list(weights.items()), **options)


def _numbered(name, count):
    return [name] if count == 1 else [f"{name}_{i}" for i in range(count)]


def _input_names(net, inputs):
    """A name for each tensor: that of the parameter that it is, or is in."""
    function = getattr(net, "construct", net)
    try:
        parameters = [
            parameter
            for parameter in inspect.signature(inspect.unwrap(function)).parameters.values()
            if parameter.name != "self"
        ]
    except (TypeError, ValueError):
        parameters = []
    out = []
    for place, value in enumerate(inputs):
        at = min(place, len(parameters) - 1)
        name = f"input_{place}" if at < 0 else parameters[at].name
        if at >= 0 and parameters[at].kind is inspect.Parameter.VAR_POSITIONAL:
            name = f"{name}_{place - at}"
        out += (
            _numbered(name, sum(isinstance(leaf, _core.Tensor) for leaf in flatten(value)[0]))
            if _has_tensor(value)
            else []
        )
    return out


def _has_tensor(value):
    return any(isinstance(leaf, _core.Tensor) for leaf in flatten(value)[0])


def _symbols(tensors, names, dynamic_axes):
    """(for each tensor the number of the symbol that each size is, -1: none; names of the symbols)"""
    for name in dynamic_axes:
        if name not in names:
            raise ValueError(f"For 'export', 'dynamic_axes' names '{name}', but the inputs are {names}.")
    sizes, out = [], []
    for name, tensor in zip(names, tensors):
        row = [-1] * tensor.ndim
        given = dynamic_axes.get(name, {})
        for axis, size in given.items() if isinstance(given, dict) else ((axis, f"{name}_{axis}") for axis in given):
            if not -tensor.ndim <= axis < tensor.ndim:
                raise ValueError(
                    f"For 'export', 'dynamic_axes' names axis {axis} of '{name}', which has {tensor.ndim}."
                )
            if size not in sizes:
                sizes.append(size)
            row[axis] = sizes.index(size)
        out.append(row)
    return out, sizes
