"""Functions of each element."""

import math

from morel import _core, ops
from morel.api import make_operator
from morel.common import dtype as mstype
from morel.ops.composed import _check

__all__ = [
    "angle",
    "approximate_equal",
    "arcsin",
    "clip_by_value",
    "copysign",
    "deg2rad",
    "float_power",
    "fmax",
    "fmin",
    "frac",
    "gcd",
    "gumbel_softmax",
    "heaviside",
    "hypot",
    "isneginf",
    "isposinf",
    "isreal",
    "lcm",
    "ldexp",
    "logaddexp",
    "logaddexp2",
    "logit",
    "nan_to_num",
    "polar",
    "positive",
    "rad2deg",
    "round",
    "rrelu",
    "sgn",
    "signbit",
    "sinc",
    "softmin",
    "subtract",
    "swiglu",
    "view_as_real",
    "xdivy",
    "xlogy",
]

_arcsin, _round, _sub = (
    make_operator("arcsin", "asin"),
    make_operator("round", "round_even"),
    make_operator("sub", "sub"),
)


def _pair(input, other, function):
    """Both as tensors of one dtype; at least one must be a tensor."""
    if not isinstance(input, _core.Tensor) and not isinstance(other, _core.Tensor):
        raise TypeError(f"For '{function}', one of the inputs must be a Tensor.")
    return input, other


def arcsin(x):
    """Inverse sine of each element, in radians."""
    return _arcsin(x)


def angle(input):
    """Argument of each complex number in (-pi, pi]; for real numbers 0, or pi where they are negative."""
    _check.tensor(input, "input", "angle")
    if input.dtype.is_complex:
        return ops.atan2(ops.imag(input), ops.real(input))
    input = _check.as_float(input)
    return ops.where(ops.isnan(input), input, ops.where(input < 0, math.pi, ops.zeros_like(input)))


def approximate_equal(x, y, tolerance=1e-05):
    """Whether abs(x - y) < tolerance."""
    return ops.abs(x - y) < tolerance


def clip_by_value(x, clip_value_min=None, clip_value_max=None):
    """x limited to [clip_value_min, clip_value_max]; of a tuple or list: each of its tensors."""
    if clip_value_min is None and clip_value_max is None:
        raise ValueError("For 'clip_by_value', 'clip_value_min' and 'clip_value_max' cannot both be None.")
    if isinstance(x, (tuple, list)):
        return type(x)(ops.clamp(item, clip_value_min, clip_value_max) for item in x)
    return ops.clamp(_check.tensor(x, "x", "clip_by_value"), clip_value_min, clip_value_max)


def signbit(input):
    """Whether the sign bit is set: true for -0.0 too."""
    _check.tensor(input, "input", "signbit")
    if not input.dtype.is_floating_point:
        return input < 0
    return ops.logical_or(input < 0, ops.logical_and(input == 0, ops.reciprocal(input) < 0))


def copysign(x, other):
    """abs(x) with the sign of other."""
    _check.tensor(x, "x", "copysign")
    x = _check.as_float(x)
    if isinstance(other, (int, float)):
        return ops.abs(x) * math.copysign(1.0, other)
    return ops.where(signbit(other), -ops.abs(x), ops.abs(x))


def deg2rad(x):
    """Degrees as radians: x * pi / 180."""
    return _check.floating(x, "x", "deg2rad") * (math.pi / 180)


def rad2deg(x):
    """Radians as degrees: x * 180 / pi."""
    return _check.floating(x, "x", "rad2deg") * (180 / math.pi)


def float_power(input, exponent):
    """input to the power of exponent in float64, in complex128 if one of them is complex."""
    _pair(input, exponent, "float_power")
    wide = any(
        value.dtype.is_complex if isinstance(value, _core.Tensor) else isinstance(value, complex)
        for value in (input, exponent)
    )
    dtype = mstype.complex128 if wide else mstype.float64
    input, exponent = (
        value.astype(dtype) if isinstance(value, _core.Tensor) else _core.Tensor(value, dtype)
        for value in (input, exponent)
    )
    return ops.pow(input, exponent)


def _without_nan(input, other, larger, function):
    _check.tensor(input, "input", function), _check.tensor(other, "other", function)
    if not (input.dtype.is_floating_point or other.dtype.is_floating_point):
        return larger(input, other)
    nan_left, nan_right = ops.isnan(input), ops.isnan(other)
    return ops.where(nan_left, other, ops.where(nan_right, input, larger(input, other)))


def fmax(input, other):
    """The larger of both; where one is NaN the other one."""
    return _without_nan(input, other, ops.maximum, "fmax")


def fmin(input, other):
    """The smaller of both; where one is NaN the other one."""
    return _without_nan(input, other, ops.minimum, "fmin")


def frac(x):
    """What follows the decimal point: x - trunc(x)."""
    return _check.tensor(x, "x", "frac") - ops.trunc(x)


def _euclid(input, other):
    input, other = ops.abs(input), ops.abs(other)
    shape = (input + other).shape
    input, other = ops.broadcast_to(input, shape), ops.broadcast_to(other, shape)
    while bool((other != 0).any()):
        safe = ops.where(other == 0, 1, other)
        input, other = ops.where(other == 0, input, other), ops.where(other == 0, 0, ops.fmod(input, safe))
    return input


def gcd(input, other):
    """Greatest common divisor of integers, never negative; gcd(0, 0) = 0."""
    return _euclid(_check.integral(input, "input", "gcd"), _check.integral(other, "other", "gcd"))


def lcm(input, other):
    """Least common multiple of integers, never negative; 0 where one of them is 0."""
    divisor = gcd(input, other)
    return ops.abs(ops.floor_divide(input, ops.where(divisor == 0, 1, divisor)) * other)


def gumbel_softmax(logits, tau=1.0, hard=False, dim=-1):
    """Samples of the Gumbel-softmax distribution: softmax((logits + noise) / tau).

    Args:
        logits (Tensor): unnormalised log probabilities, float16 or float32.
        tau (float): temperature, above 0.
        hard (bool): one-hot samples, whose gradient is that of the soft ones.
        dim (int): axis of the classes.
    """
    _check.floating(logits, "logits", "gumbel_softmax")
    if not isinstance(tau, (int, float)) or isinstance(tau, bool):
        raise TypeError(f"For 'gumbel_softmax', 'tau' must be float, but got {type(tau).__name__}.")
    if tau <= 0:
        raise ValueError(f"For 'gumbel_softmax', 'tau' must be positive, but got {tau}.")
    dim = _check.axis(dim, logits.ndim, "dim", "gumbel_softmax")
    draw = make_operator("random_uniform", "random_uniform")
    tiny = 1e-7
    noise = -ops.log(-ops.log(draw(logits.shape, tiny, 1.0 - tiny, mstype.float32))).astype(logits.dtype)
    soft = ops.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = ops.one_hot(ops.argmax(soft, dim), soft.shape[dim], 1, 0, dim).astype(soft.dtype)
    return chosen - ops.stop_gradient(soft) + soft


def heaviside(input, values):
    """0 where input is negative, 1 where it is positive, values where it is 0."""
    _check.tensor(input, "input", "heaviside"), _check.tensor(values, "values", "heaviside")
    step = ops.where(input < 0, ops.zeros_like(input), ops.ones_like(input))
    if input.dtype.is_floating_point:
        step = ops.where(ops.isnan(input), input, step)
    return ops.where(input == 0, values, step)


def hypot(input, other):
    """sqrt(input^2 + other^2) without overflow on the way."""
    _check.floating(input, "input", "hypot"), _check.floating(other, "other", "hypot")
    input, other = ops.abs(input), ops.abs(other)
    large, small = ops.maximum(input, other), ops.minimum(input, other)
    zero_or_inf = ops.logical_or(large == 0, ops.isinf(large))
    ratio = ops.where(zero_or_inf, 0, small / ops.where(zero_or_inf, 1, large))
    infinite = ops.logical_or(ops.isinf(input), ops.isinf(other))
    return ops.where(infinite, math.inf, large * ops.sqrt(1 + ratio * ratio))


def isneginf(input):
    """Whether each element is minus infinity."""
    return _check.tensor(input, "input", "isneginf") == -math.inf


def isposinf(input):
    """Whether each element is plus infinity."""
    return _check.tensor(input, "input", "isposinf") == math.inf


def isreal(input):
    """Whether the imaginary part of each element is 0."""
    _check.tensor(input, "input", "isreal")
    return ops.imag(input) == 0 if input.dtype.is_complex else ops.ones_like(input, dtype=mstype.bool_)


def ldexp(x, other):
    """x * 2 ** other."""
    _check.tensor(x, "x", "ldexp"), _check.tensor(other, "other", "ldexp")
    return _check.as_float(x) * ops.pow(2.0, _check.as_float(other))


def _log_add(input, other, log1p_exp, function):
    _check.floating(input, "input", function), _check.floating(other, "other", function)
    large = ops.maximum(input, other)
    # Equal infinities would give NaN by their difference; they are the result themselves.
    fixed = ops.isinf(large)
    distance = ops.abs(ops.where(fixed, 0, input) - ops.where(fixed, 0, other))
    return ops.where(fixed, large, ops.maximum(input, other) + log1p_exp(-distance))


def logaddexp(input, other):
    """log(exp(input) + exp(other)), without overflow."""
    return _log_add(input, other, lambda x: ops.log1p(ops.exp(x)), "logaddexp")


def logaddexp2(input, other):
    """log2(2 ** input + 2 ** other), without overflow."""
    return _log_add(input, other, lambda x: ops.log1p(ops.exp2(x)) * (1 / math.log(2)), "logaddexp2")


def logit(input, eps=None):
    """log(x / (1 - x)), where x is input, limited to [eps, 1 - eps] if eps is given."""
    _check.floating(input, "input", "logit")
    if eps is not None:
        if not isinstance(eps, float):
            raise TypeError(f"For 'logit', 'eps' must be float, but got {type(eps).__name__}.")
        input = ops.clamp(input, eps, 1 - eps)
    return ops.log(input / (1 - input))


_LARGEST = {"Float16": 65504.0, "BFloat16": 3.3895313892515355e38, "Float32": 3.4028234663852886e38}


def nan_to_num(input, nan=None, posinf=None, neginf=None):
    """NaN replaced by nan (0), infinities by posinf and neginf (the largest and smallest finite numbers of the dtype)."""
    _check.tensor(input, "input", "nan_to_num")
    for name, value in (("nan", nan), ("posinf", posinf), ("neginf", neginf)):
        if value is not None and not isinstance(value, (int, float)):
            raise TypeError(f"For 'nan_to_num', '{name}' must be float, but got {type(value).__name__}.")
    if not input.dtype.is_floating_point:
        return input
    largest = _LARGEST.get(str(input.dtype), 1.7976931348623157e308)
    output = ops.where(ops.isnan(input), 0.0 if nan is None else nan, input)
    output = ops.where(input == math.inf, largest if posinf is None else posinf, output)
    return ops.where(input == -math.inf, -largest if neginf is None else neginf, output)


def polar(abs, angle):
    """Complex numbers from their absolute values and angles."""
    _check.floating(abs, "abs", "polar"), _check.floating(angle, "angle", "polar")
    return ops.complex(abs * ops.cos(angle), abs * ops.sin(angle))


def positive(input):
    """input itself; booleans have no sign: TypeError."""
    if _check.tensor(input, "input", "positive").dtype == mstype.bool_:
        raise TypeError("For 'positive', 'input' must not be of dtype Bool.")
    return input


def round(input, *, decimals=0):
    """Rounds to `decimals` places (negative: tens, hundreds ...), halves to even."""
    _check.integer(decimals, "decimals", "round")
    if decimals == 0 or not input.dtype.is_floating_point:
        if decimals < 0:
            raise ValueError(f"For 'round', 'decimals' of integers must not be negative, but got {decimals}.")
        return _round(input)
    scale = 10.0 ** abs(decimals)
    return _round(input * scale) / scale if decimals > 0 else _round(input / scale) * scale


round.op = "round_even"  # what the registry knows about it


def rrelu(input, lower=0.125, upper=0.3333333333333333):
    """input where it is positive; elsewhere times a slope that is drawn from [lower, upper) for each element."""
    _check.floating(input, "input", "rrelu")
    if not 0 <= lower <= upper <= 1:
        raise ValueError(f"For 'rrelu', 0 <= lower <= upper <= 1 must hold, but got {lower} and {upper}.")
    if lower == upper:
        return ops.where(input >= 0, input, input * lower)
    draw = make_operator("random_uniform", "random_uniform")
    slope = draw(input.shape, float(lower), float(upper), mstype.float32).astype(input.dtype)
    return ops.where(input >= 0, input, input * slope)


def sgn(input):
    """Sign of each element; of complex numbers z / abs(z), and 0 for 0."""
    if not _check.tensor(input, "input", "sgn").dtype.is_complex:
        return ops.sign(input)
    size = ops.abs(input)
    return input / ops.where(size == 0, 1, size)


def sinc(input):
    """sin(pi x) / (pi x), and 1 for 0."""
    x = _check.as_float(_check.tensor(input, "input", "sinc")) * math.pi
    zero = x == 0
    safe = ops.where(zero, 1, x)
    return ops.where(zero, 1, ops.sin(safe) / safe)


def softmin(x, axis=-1, *, dtype=None):
    """softmax(-x) along axis, in `dtype` if it is given."""
    _check.floating(x, "x", "softmin")
    return ops.softmax(-x, axis, dtype=dtype)


def subtract(input, other, *, alpha=1):
    """input - alpha * other."""
    return _sub(input, other if alpha == 1 else other * alpha)


def swiglu(input, dim=-1):
    """silu(a) * b for the halves a and b of input along dim."""
    _check.floating(input, "input", "swiglu")
    dim = _check.axis(dim, input.ndim, "dim", "swiglu")
    if input.ndim == 0 or input.shape[dim] % 2:
        raise ValueError(f"For 'swiglu', the size along 'dim' must be even, but the input has shape {input.shape}.")
    first, second = ops.chunk(input, 2, dim)
    return ops.silu(first) * second


def view_as_real(input):
    """Real and imaginary parts along a new last axis."""
    if not _check.tensor(input, "input", "view_as_real").dtype.is_complex:
        raise TypeError(f"For 'view_as_real', 'input' must be complex, but got {input.dtype}.")
    return ops.stack((ops.real(input), ops.imag(input)), -1)


def _both_tensors(input, other, function):
    _pair(input, other, function)
    if not isinstance(input, _core.Tensor):
        return ops.full_like(_check.as_float(other), input), _check.as_float(other)
    if not isinstance(other, _core.Tensor):
        return _check.as_float(input), ops.full_like(_check.as_float(input), other)
    return _check.as_float(input), _check.as_float(other)


def xdivy(x, y):
    """x / y, and 0 where x is 0 and y no NaN."""
    x, y = _both_tensors(x, y, "xdivy")
    zero = ops.logical_and(x == 0, ops.logical_not(ops.isnan(y)))
    return ops.where(zero, 0, x / ops.where(zero, 1, y))


def xlogy(input, other):
    """input * log(other), and 0 where input is 0 and other no NaN."""
    input, other = _both_tensors(input, other, "xlogy")
    zero = ops.logical_and(input == 0, ops.logical_not(ops.isnan(other)))
    return ops.where(zero, 0, input * ops.log(ops.where(zero, 1, other)))
