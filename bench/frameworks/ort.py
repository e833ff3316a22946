"""ONNX Runtime: the inference cases as ONNX graphs."""

import numpy as np
import onnxruntime
from cases import Inputs
from onnx import TensorProto, helper, numpy_helper

from frameworks.base import Adapter, Call

OPSET, IR_VERSION = 17, 9


def graph_bytes(nodes: list, feeds: dict[str, np.ndarray], constants: dict[str, np.ndarray]) -> bytes:
    """A model whose output is `y`."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, a.shape) for name, a in feeds.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "case", inputs, [output], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = IR_VERSION
    return model.SerializeToString()


class OnnxRuntime(Adapter):
    def __init__(self, mode, threads):
        super().__init__(mode, threads)
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.inter_op_num_threads = 1
        self.options.log_severity_level = 3

    def arrays(self, result):
        return result.copy_outputs_to_cpu()

    def call(self, nodes: list, feeds: dict[str, np.ndarray], constants: dict[str, np.ndarray] | None = None) -> Call:
        """The first call also makes the session: it is what compiling is elsewhere."""
        model = graph_bytes(nodes, feeds, constants or {})
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()}
        session = binding = None

        def run():
            nonlocal session, binding
            if session is None:
                session = onnxruntime.InferenceSession(model, self.options, providers=["CPUExecutionProvider"])
                binding = session.io_binding()
                for name, value in values.items():
                    binding.bind_ortvalue_input(name, value)
                binding.bind_output("y")
            session.run_with_iobinding(binding)
            return binding

        return run

    def add_small(self, inputs: Inputs):
        return self.call([helper.make_node("Add", ["a", "b"], ["y"])], inputs.data)

    def chain10_small(self, inputs):
        nodes, last = [], "a"
        for i in range(5):
            product = "y" if i == 4 else f"product{i}"
            nodes.append(helper.make_node("Add", [last, "b"], [f"sum{i}"]))
            nodes.append(helper.make_node("Mul", [f"sum{i}", "b"], [product]))
            last = product
        return self.call(nodes, inputs.data)

    def elemwise16M(self, inputs):  # noqa: N802 - the case's name
        nodes = [
            helper.make_node("Mul", ["a", "b"], ["product"]),
            helper.make_node("Add", ["product", "c"], ["x"]),
            helper.make_node("Mul", ["x", "factor"], ["scaled"]),
            helper.make_node("Sigmoid", ["scaled"], ["gate"]),
            helper.make_node("Mul", ["x", "gate"], ["y"]),
        ]
        return self.call(nodes, inputs.data, {"factor": np.float32(1.702)})

    def softmax(self, inputs):
        return self.call([helper.make_node("Softmax", ["x"], ["y"], axis=-1)], {"x": inputs.data["x"]})

    def layernorm(self, inputs):
        data = dict(inputs.data)
        node = helper.make_node("LayerNormalization", ["x", "weight", "bias"], ["y"], axis=-1, epsilon=1e-5)
        return self.call([node], {"x": data.pop("x")}, data)

    def sdpa_fwd(self, inputs):
        nodes = [
            helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
            helper.make_node("MatMul", ["q", "kt"], ["products"]),
            helper.make_node("Mul", ["products", "scale"], ["scores"]),
            helper.make_node("Softmax", ["scores"], ["probabilities"], axis=-1),
            helper.make_node("MatMul", ["probabilities", "v"], ["y"]),
        ]
        return self.call(nodes, inputs.data, {"scale": np.float32(inputs.data["q"].shape[-1] ** -0.5)})

    def conv3x3_fwd(self, inputs):
        node = helper.make_node("Conv", ["x", "weight"], ["y"], pads=[1, 1, 1, 1])
        return self.call([node], {"x": inputs.data["x"]}, {"weight": inputs.data["weight"]})
