"""Post-training quantisation to int8, with the options of MindSpore Lite's converter."""

from morel import _core
from morel.common import dtype as mstype
from morel.common.tensor import Tensor

_METHODS = ("MAX_MIN", "KL", "REMOVAL_OUTLIER")
_TYPES = ("FLOAT32", "INT8")


class Quantised:
    """A network whose dense layers and convolutions compute in int8. It can be called as the network, and given to
    ``convert``.

    Attributes:
        num_int8 (int): operators that compute in int8.
        in_float (dict): how many of each operator compute in float32.
        inputs, outputs (list): (scale, zero_point) of each input and output that is int8, None for others.
    """

    def __init__(self, graph, net, leaves, report):
        self.graph, self.net, self.leaves = graph, net, leaves
        self.num_int8, self.in_float = report["int8"], report["in_float"]
        self.inputs, self.outputs = report["inputs"], report["outputs"]
        self._compiled = None

    def __call__(self, *inputs):
        if self._compiled is None:
            self._compiled = self.graph.copy()
            self._compiled.compile()
        tensors = [given for given in inputs if isinstance(given, _core.Tensor)]
        _check_arguments("the arguments of a call", self._compiled, tensors, self.leaves, self.inputs)
        results = self._compiled(tensors)
        return results[0] if len(results) == 1 else tuple(results)

    def __repr__(self):
        rest = ", ".join(f"{count} {name}" for name, count in sorted(self.in_float.items())) or "none"
        return f"Quantised({self.num_int8} operators in int8; in float32: {rest})"


def _check_arguments(what, graph, given, leaves, int8=()):
    """Raises ValueError unless the graph that was traced with `leaves` can be called with the tensors `given`."""
    tensors = [leaf for leaf in leaves if isinstance(leaf, _core.Tensor)]
    dtypes = [
        mstype.int8 if place < len(int8) and int8[place] else tensor.dtype for place, tensor in enumerate(tensors)
    ]
    if [tensor.dtype for tensor in given] != dtypes or not graph.serves(given):
        wanted = [f"{dtype}{list(tensor.shape)}" for dtype, tensor in zip(dtypes, tensors)]
        got = [f"{tensor.dtype}{list(tensor.shape)}" for tensor in given]
        raise ValueError(
            f"For 'quantise', {what} do not fit 'inputs', the example with which the network was read: they are "
            f"{', '.join(got) or 'no tensors'}, but must be {', '.join(wanted)}; sizes may differ only where the network takes "
            "others; 0 and 1 stay what they are."
        )


def quantise(
    net,
    *inputs,
    calibration=None,
    quant_type="FULL_QUANT",
    bit_num=8,
    activation_quant_method="MAX_MIN",
    per_channel=True,
    bias_correction=False,
    calibrate_size=None,
    skip_quant_node=(),
    input_data_type="FLOAT32",
    output_data_type="FLOAT32",
):
    """Makes dense layers and convolutions of a network compute in int8.

    Weights become int8 symmetrically, activations by the range that they have on examples; sums are int32 and turned into int8
    by fixed-point numbers, bit for bit as TensorFlow Lite's reference kernels do it.

    Args:
        net (Cell, function): the network; it stays as it is.
        inputs (Tensor): arguments of a call, for their shapes.
        calibration (iterable): further examples: each a tuple of arguments, or the one argument. Default: ``inputs`` alone.
        quant_type (str): ``"FULL_QUANT"``.
        bit_num (int): 8.
        activation_quant_method (str): ``"MAX_MIN"``: the whole range; ``"REMOVAL_OUTLIER"``: without the 0.01 % farthest out on
            each side; ``"KL"``: the limits that lose least information.
        per_channel (bool): a scale for each output channel of a weight, or one for all.
        bias_correction (bool): False.
        calibrate_size (int): at most so many examples. Default: all.
        skip_quant_node (list[str]): operators by name ("dense", "convolution"), or nodes by the line they come from
            ("model.py:41"), that stay in float32.
        input_data_type, output_data_type (str): ``"INT8"``: inputs (outputs) that are quantised first (last) are int8 themselves;
            ``"FLOAT32"``.
    Returns:
        Quantised: what can be called and converted.
    """
    from morel.lite import traced_for_devices

    if quant_type != "FULL_QUANT" or bit_num != 8:
        raise NotImplementedError(
            f"For 'quantise', full quantisation to 8 bits is supported: 'quant_type' must be 'FULL_QUANT' and 'bit_num' 8, but got "
            f"{quant_type!r} and {bit_num}."
        )
    if bias_correction:
        raise NotImplementedError("For 'quantise', 'bias_correction' must be False.")
    for name, value, known in (
        ("activation_quant_method", activation_quant_method, _METHODS),
        ("input_data_type", input_data_type, _TYPES),
        ("output_data_type", output_data_type, _TYPES),
    ):
        if value not in known:
            raise ValueError(f"For 'quantise', {name!r} must be one of {', '.join(known)}, but got {value!r}.")
    batches = []
    for example in [inputs] if calibration is None else calibration:
        if calibrate_size is not None and len(batches) >= calibrate_size:
            break
        example = example if isinstance(example, (tuple, list)) else (example,)
        batches.append([given if isinstance(given, _core.Tensor) else Tensor(given) for given in example])
    if not batches:
        raise ValueError("For 'quantise', 'calibration' has no examples.")
    graph, leaves = traced_for_devices(net, inputs)
    for number, batch in enumerate(batches):
        _check_arguments(f"the arguments of example {number} of 'calibration'", graph, batch, leaves)
    report = _core.quantise_graph(
        graph,
        batches,
        activation_quant_method,
        per_channel,
        input_data_type == "INT8",
        output_data_type == "INT8",
        list(skip_quant_node),
    )
    return Quantised(graph, net, leaves, report)
