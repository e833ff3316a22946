"""Arithmetic, mathematical functions, comparisons."""

import math

import numpy as np

from samples import COMPLEX, FLOATS, HALVES, INTEGERS, SIGNED, Sample, between, distinct, flags, normal, positive

_erf, _erfc = np.vectorize(math.erf, otypes=[float]), np.vectorize(math.erfc, otypes=[float])
_NUMBERS = FLOATS + HALVES + INTEGERS + COMPLEX
_REALS = FLOATS + HALVES + INTEGERS


def _float(values):
    return values if values.dtype.kind in "fc" else values.astype(np.float32)


def _unary(name, reference, maker=normal, dtypes=FLOATS + HALVES, **more):
    return Sample(f"ops.{name}", (maker(3, 5),), reference, dtypes=dtypes, **more)


def _binary(name, reference, left=normal, right=normal, dtypes=_NUMBERS, **more):
    return [
        Sample(f"ops.{name}", (left(3, 5), right(3, 5)), reference, dtypes=dtypes, **more),
        Sample(f"ops.{name}", (left(2, 1, 5), right(3, 1)), reference, dtypes=("float32", "float64"), **more),
    ]


def _pole_free(*shape):
    return between(-1.2, 1.2, *shape)


def _unit(*shape):
    return between(-0.9, 0.9, *shape)


def _above_one(*shape):
    return between(1.2, 4.0, *shape)


SAMPLES = [
    *_binary("add", np.add),
    *_binary("sub", np.subtract),
    *_binary("mul", np.multiply),
    *_binary("div", lambda a, b: _float(a) / _float(b), right=positive, dtypes=FLOATS + HALVES + COMPLEX),
    *_binary("floor_divide", np.floor_divide, right=positive, dtypes=FLOATS, grad=False),
    *_binary("floor_mod", np.mod, left=distinct, right=positive, dtypes=FLOATS, second=False),
    *_binary("fmod", np.fmod, left=distinct, right=positive, dtypes=FLOATS, second=False),
    *_binary("pow", np.power, left=positive, dtypes=FLOATS + HALVES),
    *_binary("maximum", np.maximum, left=distinct, dtypes=_REALS),
    *_binary("minimum", np.minimum, left=distinct, dtypes=_REALS),
    *_binary("atan2", np.arctan2, right=positive, dtypes=FLOATS + HALVES),
    _unary("abs", np.abs, distinct, FLOATS + HALVES + SIGNED),
    _unary("neg", np.negative, normal, FLOATS + HALVES + SIGNED + COMPLEX),
    _unary("exp", np.exp, dtypes=FLOATS + HALVES + COMPLEX),
    _unary("exp2", np.exp2),
    _unary("expm1", np.expm1),
    _unary("log", np.log, positive, FLOATS + HALVES + COMPLEX),
    _unary("log2", np.log2, positive),
    _unary("log10", np.log10, positive),
    _unary("log1p", np.log1p, positive),
    _unary("sqrt", np.sqrt, positive, FLOATS + HALVES + COMPLEX),
    _unary("rsqrt", lambda x: 1 / np.sqrt(x), positive),
    _unary("reciprocal", lambda x: 1 / x, positive, FLOATS + HALVES + COMPLEX),
    _unary("sin", np.sin, dtypes=FLOATS + HALVES + COMPLEX),
    _unary("cos", np.cos, dtypes=FLOATS + HALVES + COMPLEX),
    _unary("tan", np.tan, _pole_free),
    _unary("asin", np.arcsin, _unit),
    _unary("acos", np.arccos, _unit),
    _unary("atan", np.arctan),
    _unary("sinh", np.sinh),
    _unary("cosh", np.cosh),
    _unary("tanh", np.tanh, dtypes=FLOATS + HALVES + COMPLEX),
    _unary("asinh", np.arcsinh),
    _unary("acosh", np.arccosh, _above_one),
    _unary("atanh", np.arctanh, _unit),
    _unary("erf", _erf),
    _unary("erfc", _erfc),
    _unary("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    _unary("square", np.square, dtypes=_NUMBERS),
    _unary("floor", np.floor, distinct),
    _unary("ceil", np.ceil, distinct),
    _unary("trunc", np.trunc, distinct),
    _unary("round", np.round, distinct),
    _unary("sign", np.sign, distinct, FLOATS + HALVES + SIGNED),
    _unary("conj", np.conj, dtypes=FLOATS + COMPLEX),
    _unary("real", np.real, dtypes=FLOATS + COMPLEX, grad=False),
    _unary("imag", np.imag, dtypes=COMPLEX, grad=False),
    Sample(
        "ops.complex", (normal(3, 5), normal(3, 5)), lambda a, b: a + 1j * b, dtypes=("float32", "float64"), grad=False
    ),
    Sample("ops.where", (flags(3, 5), normal(3, 5), normal(3, 5)), np.where, dtypes=_NUMBERS),
    Sample("ops.where", (flags(3, 1), normal(5), normal(2, 3, 1)), np.where),
    Sample("ops.lerp", (normal(3, 5), normal(3, 5), normal(3, 5)), lambda a, b, w: a + w * (b - a)),
    Sample(
        "ops.addcmul",
        (normal(3, 5), normal(3, 5), normal(3, 5)),
        lambda x, a, b, value: x + value * a * b,
        {"value": 2.0},
    ),
    Sample(
        "ops.addcdiv",
        (normal(3, 5), normal(3, 5), positive(3, 5)),
        lambda x, a, b, value: x + value * a / b,
        {"value": 2.0},
    ),
    Sample("ops.clamp", (distinct(3, 5),), lambda x, min, max: np.clip(x, min, max), {"min": -1.0, "max": 1.3}),
    Sample("ops.clamp", (distinct(3, 5),), lambda x, min: np.maximum(x, min), {"min": -1.0}),
    *(
        sample
        for name, reference in (
            ("equal", np.equal),
            ("not_equal", np.not_equal),
            ("less", np.less),
            ("greater", np.greater),
            ("less_equal", np.less_equal),
            ("greater_equal", np.greater_equal),
        )
        for sample in _binary(name, reference, dtypes=_REALS, grad=False)
    ),
    *(
        sample
        for name, reference in (
            ("logical_and", np.logical_and),
            ("logical_or", np.logical_or),
            ("logical_xor", np.logical_xor),
        )
        for sample in _binary(name, reference, dtypes=FLOATS + ("int32", "bool"), grad=False)
    ),
    _unary("logical_not", np.logical_not, dtypes=FLOATS + ("int32", "bool"), grad=False),
    *(
        sample
        for name, reference in (
            ("bitwise_and", np.bitwise_and),
            ("bitwise_or", np.bitwise_or),
            ("bitwise_xor", np.bitwise_xor),
        )
        for sample in (
            Sample(
                f"ops.{name}",
                (between(0, 100, 3, 5), between(0, 100, 3, 5)),
                reference,
                dtypes=INTEGERS + ("bool",),
                grad=False,
            ),
        )
    ),
    _unary("isnan", np.isnan, grad=False),
    _unary("isinf", np.isinf, grad=False),
    _unary("isfinite", np.isfinite, grad=False),
]
