"""Morel as a backend of ``onnx.backend``: ``onnx.backend.test`` runs its cases through it."""

import os
import tempfile

import numpy as np
import onnx
import onnx.numpy_helper
from onnx.backend.base import Backend, BackendRep

import morel
from morel.onnx.model import load


class MorelRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, cell):
        self.cell = cell

    def run(self, inputs, **_):
        """The outputs as arrays."""
        results = self.cell(*[_tensor(value) for value in inputs])
        return tuple(_array(result) for result in (results if isinstance(results, tuple) else (results,)))


def _tensor(value):
    if value is None:
        return None
    array = as_array(value)
    if array.dtype.name == "bfloat16":
        return morel.Tensor(array.astype(np.float32)).astype(morel.bfloat16)
    if array.dtype.kind not in "biufc" or (array.dtype.kind == "f" and array.dtype.itemsize == 1):
        raise NotImplementedError(f"inputs of {array.dtype} are not supported")
    return morel.Tensor(np.array(array, order="C"))


def _array(tensor):
    if tensor.dtype != morel.bfloat16:
        return tensor.asnumpy()
    from ml_dtypes import bfloat16

    return tensor.astype(morel.float32).asnumpy().astype(bfloat16)


def as_array(value):
    """An array of what a test case has: an array, a number of NumPy or a TensorProto."""
    return onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


class MorelBackend(Backend):
    """Models run compiled; those whose shapes depend on values operator by operator."""

    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs):
        """Whether every node has an operator."""
        try:
            _load(model)
        except NotImplementedError:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model, device="CPU", *, jit=True, **kwargs):
        """A MorelRep of a ModelProto."""
        return MorelRep(_load(model, jit))

    @classmethod
    def supports_device(cls, device):
        """Only "CPU"."""
        return device == "CPU"


def _load(model, jit=True):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(model.SerializeToString())
        return load(path, jit=jit)


is_compatible = MorelBackend.is_compatible
prepare = MorelBackend.prepare
run_model = MorelBackend.run_model
supports_device = MorelBackend.supports_device
