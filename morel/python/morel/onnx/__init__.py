"""ONNX: networks written as ONNX files, and such files as cells."""

from morel.onnx.export import export_onnx
from morel.onnx.model import OnnxCell, load

__all__ = ["OnnxCell", "export_onnx", "load"]
