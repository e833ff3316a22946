"""Activation functions and softmax."""

import math

import numpy as np

from samples import Sample, distinct, normal

_erf = np.vectorize(math.erf, otypes=[float])


def _softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _softplus(x):
    return np.logaddexp(x, 0)


def _unary(name, reference, options=None, maker=distinct, **more):
    return Sample(f"ops.{name}", (maker(4, 5),), reference, options or {}, **more)


SAMPLES = [
    _unary("relu", lambda x: np.maximum(x, 0)),
    _unary("relu6", lambda x: np.clip(x, 0, 6)),
    _unary("leaky_relu", lambda x, alpha: np.where(x > 0, x, alpha * x), {"alpha": 0.1}),
    _unary("elu", lambda x: np.where(x > 0, x, np.expm1(x))),
    _unary("selu", lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), tolerance=4),
    _unary("celu", lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x / alpha)), {"alpha": 0.7}),
    _unary("gelu", lambda x, approximate: 0.5 * x * (1 + _erf(x / math.sqrt(2))), {"approximate": "none"}, normal),
    _unary(
        "gelu",
        lambda x, approximate: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        {"approximate": "tanh"},
        normal,
        tolerance=4,
    ),
    _unary("silu", lambda x: x * _sigmoid(x)),
    _unary("mish", lambda x: x * np.tanh(_softplus(x)), tolerance=4),
    _unary("softplus", lambda x: _softplus(x)),
    _unary("softsign", lambda x: x / (1 + np.abs(x))),
    _unary("hardtanh", lambda x: np.clip(x, -1, 1)),
    _unary("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, second=False),
    _unary("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6),
    _unary("logsigmoid", lambda x: -_softplus(-x)),
    _unary("hardshrink", lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    _unary("softshrink", lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    _unary("tanhshrink", lambda x: x - np.tanh(x)),
    _unary("threshold", lambda x, thr, value: np.where(x > thr, x, value), {"thr": 0.3, "value": 2.0}),
    _unary("softmax", _softmax, {"axis": -1}, normal),
    _unary("softmax", _softmax, {"axis": 0}, normal),
    _unary("log_softmax", lambda x, axis: np.log(_softmax(x, axis)), {"axis": -1}, normal),
    Sample("ops.glu", (normal(4, 6),), lambda x: x[:, :3] * _sigmoid(x[:, 3:])),
    Sample("ops.prelu", (distinct(2, 3, 4), normal(3)), lambda x, w: np.where(x > 0, x, w[None, :, None] * x)),
]
