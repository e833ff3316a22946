"""Primitive classes of gradients: by formula from the operator's output, or as the pullback of the operator itself."""

from morel import ops
from morel.ops.autograd import differentiate
from morel.ops.primitive import class_with
from morel.ops.primitive_classes import REQUIRED, Conv2DTranspose

__all__ = []


def _define(name, attributes, call):
    """Adds a class; ``call`` takes the attributes as a namespace of the primitive's own, then the inputs."""
    rows = [(key, default is not REQUIRED, default) for key, default in attributes.items()]
    globals()[name] = class_with(
        name, rows, lambda given, inputs: call({**attributes, **given}, *inputs), f"The gradient of {name[:-4]}."
    )
    __all__.append(name)


def _pullback(forward, inputs, cotangent):
    """The gradients at all inputs of a function; one as it is."""
    found = differentiate(forward, [*range(len(inputs))], None, False, tuple(inputs), {}, cotangent)[1]
    return found[0] if len(inputs) == 1 else tuple(found)


# Of (output, its gradient).
_FROM_OUTPUT = {
    "AcoshGrad": lambda y, dy: dy / ops.sinh(y),
    "AsinhGrad": lambda y, dy: dy / ops.cosh(y),
    "InvGrad": lambda y, dy: -dy * y * y,
    "ReciprocalGrad": lambda y, dy: -dy * y * y,
    "RsqrtGrad": lambda y, dy: dy * y * y * y * -0.5,
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "SqrtGrad": lambda y, dy: dy * 0.5 / y,
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
}
# The Primitive that is differentiated. The gradients take (input, gradient of the output) ...
_INPUT_FIRST = {"ACosGrad": "ACos", "AbsGrad": "Abs", "AsinGrad": "Asin", "AtanGrad": "Atan"}
# ... or (gradient of the output, input, perhaps the output).
_GRADIENT_FIRST = {
    "FastGeLUGrad": "FastGeLU",
    "GeLUGrad": "GeLU",
    "HSigmoidGrad": "HSigmoid",
    "HSwishGrad": "HSwish",
    "ReLU6Grad": "ReLU6",
    "ReluGrad": "ReLU",
    "SiLUGrad": "SiLU",
    "SoftplusGrad": "Softplus",
}


def _unary(name, gradient_first):
    def call(_given, *inputs):
        dy, x = inputs[:2] if gradient_first else inputs[1::-1]
        return _pullback(getattr(ops, name)(), (x,), dy)

    return call


for _name, _formula in _FROM_OUTPUT.items():
    _define(_name, {}, lambda _given, y, dy, formula=_formula: formula(y, dy))
for _rows, _gradient_first in ((_INPUT_FIRST, False), (_GRADIENT_FIRST, True)):
    for _name, _forward in _rows.items():
        _define(_name, {}, _unary(_forward, _gradient_first))
for _name in ("HShrink", "SoftShrink"):
    _define(
        _name + "Grad",
        {"lambd": 0.5},
        lambda given, dy, x, forward=_name: _pullback(getattr(ops, forward)(given["lambd"]), (x,), dy),
    )
for _name in ("Maximum", "Minimum"):

    def _binary(given, x, y, dout, forward=_name):
        found = _pullback(getattr(ops, forward)(), (x, y), dout)
        wanted = (given["grad_x"], given["grad_y"])
        return tuple(gradient if keep else ops.zeros_like(gradient) for gradient, keep in zip(found, wanted))

    _define(_name + "Grad", {"grad_x": True, "grad_y": True}, _binary)
for _name in ("AvgPool", "MaxPool"):
    _define(
        _name + "Grad",
        {"kernel_size": 1, "strides": 1, "pad_mode": "valid", "data_format": "NCHW"},
        lambda given, x, _out, dout, forward=_name: _pullback(getattr(ops, forward)(**given), (x,), dout),
    )


def _bias_add(given, dout):
    channel = 1 if given["data_format"] != "NHWC" else dout.ndim - 1
    return ops.sum(dout, tuple(axis for axis in range(dout.ndim) if axis != channel))


def _conv2d_filter(given, dout, x, filter_size):
    weight = ops.zeros(tuple(filter_size), x.dtype)
    given = {key: value for key, value in given.items() if key != "pad_list"} | (
        {} if given["pad_list"] is None else {"pad": given["pad_list"]}
    )
    forward = ops.Conv2D(**given)
    return _pullback(lambda w: forward(x, w), (weight,), dout)


def _layer_norm(given, x, dy, _variance, _mean, gamma):
    forward = ops.LayerNorm(given["begin_norm_axis"], given["begin_params_axis"])
    return _pullback(lambda *inputs: forward(*inputs)[0], (x, gamma, ops.zeros_like(gamma)), dy)


def _batch_norm(given, dy, x, scale, mean, variance, _reserve=None):
    forward = ops.BatchNorm(given["is_training"], given["epsilon"], data_format=given["data_format"])
    return _pullback(lambda *inputs: forward(*inputs, mean, variance)[0], (x, scale, ops.zeros_like(scale)), dy)


def _slice(_given, dy, x, begin, size):
    return _pullback(lambda value: ops.Slice()(value, begin, size), (x,), dy)


def _strided_slice(given, dy, shape, begin, end, strides):
    forward = ops.StridedSlice(**given)
    return _pullback(lambda value: forward(value, begin, end, strides), (ops.zeros(tuple(shape), dy.dtype),), dy)


def _max_pool_with_argmax(given, x, grad, _argmax):
    return _pullback(ops.MaxPool(**given), (x,), grad)


def _resize_bilinear(given, grads, image):
    forward = ops.ResizeBilinearV2(**given)
    return _pullback(lambda value: forward(value, tuple(grads.shape[2:])), (image,), grads)


def _concat_offset(given, inputs):
    """Where each input begins in the concatenated tensor."""
    axis, at, out = given["axis"], 0, []
    for value in inputs:
        place = [0] * value.ndim
        place[axis] = at
        out.append(tuple(place))
        at += value.shape[axis]
    return tuple(out)


_MASKS = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
_define("BiasAddGrad", {"data_format": "NCHW"}, _bias_add)
_define("Conv2DBackpropFilter", Conv2DTranspose._defaults, _conv2d_filter)
_define("LayerNormGrad", {"begin_norm_axis": 1, "begin_params_axis": 1}, _layer_norm)
_define("BatchNormGrad", {"is_training": False, "epsilon": 1e-5, "data_format": "NCHW"}, _batch_norm)
_define("SliceGrad", {}, _slice)
_define("StridedSliceGrad", _MASKS, _strided_slice)
_define("FlattenGrad", {}, lambda _given, dout, shape: dout.reshape(tuple(shape)))
_define("MaxPoolGradWithArgmax", {"kernel_size": 1, "strides": 1, "pad_mode": "valid"}, _max_pool_with_argmax)
_define("ResizeBilinearGrad", {"align_corners": False, "half_pixel_centers": False}, _resize_bilinear)
_define("EluGrad", {}, lambda _given, dout, out: dout * ops.minimum(out + 1, 1))
_define("LogSoftmaxGrad", {"axis": -1}, lambda g, out, dy: dy - ops.exp(out) * ops.sum(dy, g["axis"], True))
_define("ConcatOffset", {"N": 2, "axis": 0}, _concat_offset)
