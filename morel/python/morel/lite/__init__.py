"""Models for devices: conversion to one file, and the runtime that devices have, with the names of ``mindspore_lite``.

lite.convert(net, Tensor(image), file="lenet.ms")
model = lite.Model()
model.build_from_file("lenet.ms", lite.ModelType.MINDIR_LITE, context)
outputs = model.predict([image])
"""

import enum
import inspect
import operator
from types import SimpleNamespace

import numpy as np

from morel import _core
from morel.common import dtype as mstype
from morel.common.tensor import Tensor as _Array
from morel.nn.cell import Cell

__all__ = ["Context", "Model", "ModelType", "Quantised", "Tensor", "convert", "quantise", "to_c"]


class ModelType(enum.Enum):
    """Kinds of model files."""

    MINDIR = 0
    MINDIR_LITE = 4


class Context:
    """How a model runs.

    Attributes:
        target (list[str]): devices; ``["cpu"]``.
        cpu.thread_num (int): threads of the process; None leaves them as they are.
        map_file (bool): weights stay in the model's file, which is mapped: processes share them, but nobody may write to the file
            while a model uses it. Default: False, the file is read.
    """

    def __init__(self, thread_num=None, map_file=False):
        self._target = ["cpu"]
        self.map_file = map_file
        self.cpu = SimpleNamespace(
            thread_num=thread_num,
            inter_op_parallel_num=1,
            thread_affinity_mode=0,
            thread_affinity_core_list=[],
            precision_mode="enforce_fp32",
        )

    @property
    def target(self):
        return self._target

    @target.setter
    def target(self, names):
        if list(names) != ["cpu"]:
            raise NotImplementedError(f"models run on the CPU: target must be ['cpu'], but got {names}")
        self._target = list(names)

    def _threads(self):
        for name, usual in (
            ("inter_op_parallel_num", 1),
            ("thread_affinity_mode", 0),
            ("thread_affinity_core_list", []),
        ):
            if getattr(self.cpu, name) != usual:
                raise NotImplementedError(f"'{name}' is not supported; it must be {usual}")
        if self.cpu.precision_mode != "enforce_fp32":
            raise NotImplementedError("models run in the precision that they were converted with: 'enforce_fp32'")
        return self.cpu.thread_num or 0


class Tensor:
    """An input or output of a model: memory of the model."""

    def __init__(self, name, array):
        self.name = name
        self._array = array

    shape = property(lambda self: list(self._array.shape))
    dtype = property(lambda self: self._array.dtype)
    element_num = property(lambda self: self._array.size)
    data_size = property(lambda self: self._array.nbytes)

    def set_data_from_numpy(self, data):
        """Copies ``data``, which has shape and dtype of the tensor; float32 for bfloat16, which NumPy has not."""
        if not isinstance(data, np.ndarray):
            raise TypeError(f"the data of '{self.name}' must be a numpy.ndarray, but got {type(data).__name__}")
        data = _Array(data)
        is_widened = self.dtype == mstype.bfloat16 and data.dtype == mstype.float32
        self._set(data.bfloat16() if is_widened else data)

    def get_data_to_numpy(self):
        """A copy of the tensor's elements; of bfloat16 as float32."""
        array = self._array.float() if self.dtype == mstype.bfloat16 else self._array
        return array.asnumpy().copy()

    def _set(self, data):
        if data.dtype != self._array.dtype or tuple(data.shape) != tuple(self._array.shape):
            raise ValueError(
                f"'{self.name}' is {self._array.dtype}{self.shape}, but got {data.dtype}{list(data.shape)}; "
                "other shapes need resize()"
            )
        self._array.copy_(data)

    def __repr__(self):
        return f"lite.Tensor({self.name!r}, {self.dtype}, {self.shape})"


class Model:
    """A model file, ready to run."""

    def __init__(self):
        self._model = None

    def build_from_file(self, model_path, model_type=ModelType.MINDIR_LITE, context=None):
        """Reads a file that ``convert`` wrote.

        Args:
            model_path (str): the file.
            model_type (ModelType): MINDIR_LITE.
            context (Context): threads.
        Raises:
            ValueError: the file is damaged; the message names its place.
        """
        if model_type != ModelType.MINDIR_LITE:
            raise NotImplementedError(f"'model_type' must be ModelType.MINDIR_LITE, but got {model_type}")
        context = context or Context()
        self._model = _core.LiteModel.build_from_file(str(model_path), context._threads(), context.map_file)

    def _built(self):
        if self._model is None:
            raise RuntimeError("the model is not built yet: call build_from_file first")
        return self._model

    def get_inputs(self):
        return [Tensor(name, array) for name, array in self._built().inputs()]

    def get_outputs(self):
        return [Tensor(name, array) for name, array in self._built().outputs()]

    def resize(self, inputs, dims):
        """Gives the inputs other sizes; memory is planned again.

        Args:
            inputs (list[Tensor]): all inputs of the model.
            dims (list[list[int]]): their new shapes.
        Raises:
            ValueError: the model was converted with a fixed size there.
        """
        if len(inputs) != len(dims):
            raise ValueError(f"resize takes a shape for each of {len(inputs)} inputs, but got {len(dims)}")
        self._built().resize([list(map(operator.index, shape)) for shape in dims])

    def predict(self, inputs, outputs=None):
        """Runs the model.

        Args:
            inputs (list[Tensor, numpy.ndarray]): a value for each input. Tensors of this model hold theirs already.
            outputs (list[Tensor]): accepted for MindSpore's scripts; results are returned.
        Returns:
            list[Tensor]: the results, which hold until the next call.
        """
        model, places = self._built(), self.get_inputs()
        if len(inputs) != len(places):
            raise ValueError(f"the model has {len(places)} inputs, but got {len(inputs)}")
        held = [_core.data_ptr(place._array) for place in places]
        arrays = [given._array if isinstance(given, Tensor) else given for given in inputs]
        for i, array in enumerate(arrays):  # an input that is given for another one is written over before it is read
            if isinstance(array, _core.Tensor) and _core.data_ptr(array) in held[:i]:
                arrays[i] = array.copy()
        for place, pointer, array in zip(places, held, arrays):
            if isinstance(array, _core.Tensor):
                if _core.data_ptr(array) != pointer:
                    place._set(array)
            else:
                place.set_data_from_numpy(array)
        model.predict()
        return self.get_outputs()

    @property
    def arena_bytes(self):
        """Memory of activations."""
        return self._built().arena_bytes

    @property
    def weight_bytes(self):
        return self._built().weight_bytes


def traced_for_devices(net, inputs):
    """(the graph of a call that is not compiled, of a cell as it is for inference; its flat arguments)"""
    from morel.compiler import traced
    from morel.compiler.recursion import Session
    from morel.compiler.tree import flatten

    leaves, structure = flatten((inputs, {}))
    training = [(cell, cell.training) for _, cell in net.cells_and_names()] if isinstance(net, Cell) else []
    try:
        for cell, _ in training:
            cell.training = False
        with Session() as session:
            graph, _, constants, _ = session.compile(lambda: traced(net, leaves, structure))
    finally:
        for cell, was in training:
            cell.training = was
    if any(fixed is not None for fixed in constants):
        raise NotImplementedError("a model for devices gives tensors, but the function also returns a Python value")
    return graph, leaves


def convert(net, *inputs, file, input_names=None, output_names=None, fixed_sizes=False):
    """Writes a cell or function as a model for devices.

    Args:
        net (Cell, function, Quantised): what is converted; a cell as it is for inference.
        inputs (Tensor): arguments of a call. Their sizes may differ at run time (``Model.resize``) but for 0 and 1, and as far
            as what the code assumes of them holds.
        file (str): where the model goes; replaced only when it is complete.
        input_names (list[str]): default: the names of the function's arguments.
        output_names (list[str]): default: output0, output1, ...
        fixed_sizes (bool): the model serves the sizes of ``inputs`` only.
    Raises:
        NotImplementedError: the model contains what a device cannot run; the message names operator and line.
    """
    if isinstance(net, Quantised):
        if inputs:
            raise ValueError("a quantised model is converted for the inputs that it was quantised with: give none here")
        graph, leaves, types = net.graph.copy(), net.leaves, (net.inputs, net.outputs)
        net = net.net
    else:
        graph, leaves = traced_for_devices(net, inputs)
        types = ()
    is_cell = isinstance(net, Cell)
    weights = [(parameter, name) for name, parameter in net.parameters_and_names()] if is_cell else []
    names = list(input_names or _argument_names(net.construct if is_cell else net, leaves))
    for place, given in (("input_names", names), ("output_names", list(output_names or []))):
        if len(set(given)) < len(given):
            raise ValueError(f"For 'lite.convert', '{place}' must differ from each other, but got {given}.")
    _core.lite_convert(graph, str(file), names, list(output_names or []), weights, fixed_sizes, *types)


def _argument_names(function, leaves):
    """Those of the tensors among the arguments where each is a tensor of its own."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    names = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    if len(names) < len(leaves):
        return []
    return [name for name, leaf in zip(names, leaves) if isinstance(leaf, _core.Tensor)]


from morel.lite.microcontroller import to_c  # noqa: E402
from morel.lite.quantisation import Quantised, quantise  # noqa: E402
