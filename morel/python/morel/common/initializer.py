"""Initializers: how a parameter gets its first values. Random ones draw from the generator that `set_seed` seeds."""

import math
import numbers

from morel import _core
from morel._core import Tensor
from morel.common import _random
from morel.common import dtype as mstype
from morel.common import parameter as _parameter

__all__ = [
    "Initializer",
    "initializer",
    "TruncatedNormal",
    "Normal",
    "Uniform",
    "HeUniform",
    "HeNormal",
    "XavierUniform",
    "XavierNormal",
    "One",
    "Zero",
    "Constant",
    "Identity",
    "Sparse",
    "Dirac",
    "Orthogonal",
    "VarianceScaling",
]

_ALIASES = {}


def _register(*names):
    """Makes the decorated class available as `initializer("name", ...)`."""

    def add(cls):
        for name in (cls.__name__.lower(), *names):
            _ALIASES.setdefault(name, cls)
        return cls

    return add


def _numpy_dtype(dtype):
    """The NumPy dtype to build values in; NumPy has no bfloat16."""
    return {"BFloat16": "float32", "Bool": "bool"}.get(str(dtype), str(dtype).lower())


def _from_array(array, dtype):
    """A tensor of `dtype` with the values of a NumPy array."""
    found = Tensor(array)
    return found if found.dtype == dtype else found.astype(dtype)


class Initializer:
    """Base class. A subclass defines ``_initialize(self, arr)``, which fills a NumPy array in place.

    Args:
        kwargs: kept for inspection.
    """

    def __init__(self, **kwargs):
        self._kwargs = kwargs
        self._seed = None

    @property
    def seed(self):
        """The pair (graph seed, operator seed) that a serialised network stores."""
        if self._seed is None:
            from morel.common.seed import get_seed

            return get_seed() or 0, 0
        return self._seed + 1, 0

    @seed.setter
    def seed(self, value):
        self._seed = value

    def _values(self, shape, dtype):
        """A new tensor; the classes of this file override it."""
        import numpy as np

        array = np.zeros(shape, _numpy_dtype(dtype))
        self._initialize(array)
        return _from_array(array, dtype)

    def _initialize(self, arr):
        if type(self)._values is Initializer._values:
            raise NotImplementedError(f"For '{type(self).__name__}', '_initialize' must be defined.")
        arr[...] = self._values(tuple(arr.shape), mstype.float32).asnumpy()

    def __call__(self, arr):
        return self._initialize(arr)


def _make(init, shape, dtype):
    """The initial values; a user's `_initialize` wins over the built-in way."""
    if type(init)._initialize is Initializer._initialize:
        return init._values(shape, dtype)
    return Initializer._values(init, shape, dtype)


def fill(tensor, init):
    """Fills `tensor` in place with `init`."""
    tensor.copy_(_make(init, tuple(tensor.shape), tensor.dtype))


@_register("zeros")
class Zero(Initializer):
    """All zeros."""

    def _values(self, shape, dtype):
        from morel import ops

        return ops.zeros(shape, dtype)


@_register("ones")
class One(Initializer):
    """All ones."""

    def _values(self, shape, dtype):
        from morel import ops

        return ops.ones(shape, dtype)


class Constant(Initializer):
    """One value (or one array) everywhere.

    Args:
        value (Union[int, float, bool, numpy.ndarray]): the value.
    """

    def __init__(self, value):
        super().__init__(value=value)
        self.value = value

    def _values(self, shape, dtype):
        if getattr(self.value, "shape", ()):
            import numpy as np

            return _from_array(np.broadcast_to(self.value, shape).astype(_numpy_dtype(dtype)), dtype)
        from morel import ops

        return ops.full(shape, self.value, dtype)


def _calculate_fan_in_and_fan_out(shape):
    """(inputs, outputs) per unit of a weight of shape [out, in, *kernel]."""
    if len(shape) < 2:
        raise ValueError(
            f"For 'Initializer', 'fan_in' and 'fan_out' can not be computed for a tensor with fewer than "
            f"2 dimensions, but got dimensions {len(shape)}."
        )
    kernel = math.prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


def _calculate_correct_fan(shape, mode):
    """fan_in or fan_out, as `mode` says."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"For 'Initializer', 'mode' must be in ['fan_in', 'fan_out'], but got {mode}.")
    return _calculate_fan_in_and_fan_out(shape)[mode.lower() == "fan_out"]


def _calculate_gain(nonlinearity, param=None):
    """How much a layer followed by `nonlinearity` has to amplify (He et al., 2015, section 2.2)."""
    fixed = {"sigmoid": 1.0, "linear": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0)}
    fixed.update((f"conv{transposed}{rank}d", 1.0) for transposed in ("", "_transpose") for rank in (1, 2, 3))
    if nonlinearity in fixed:
        return fixed[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(
            f"For 'Initializer', 'nonlinearity' must be one of {sorted(fixed) + ['leaky_relu']}, "
            f"but got {nonlinearity}."
        )
    if param is None:
        param = 0.01
    if isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"For 'Initializer', 'negative_slope' must be int or float, but got {param}.")
    return math.sqrt(2.0 / (1 + param**2))


@_register()
class Uniform(Initializer):
    """Uniform on [-scale, scale].

    Args:
        scale (float): half the width. Default ``0.07``.
    """

    def __init__(self, scale=0.07):
        super().__init__(scale=scale)
        self.scale = scale

    def _values(self, shape, dtype):
        return _random.uniform(shape, -self.scale, self.scale, dtype)


def _normal(shape, mean, sigma, dtype):
    if sigma < 0:
        raise ValueError(f"For 'Initializer', 'sigma' must be >= 0, but got {sigma}.")
    return _random.normal(shape, mean, sigma, dtype)


@_register()
class Normal(Initializer):
    """Normal with mean `mean` and standard deviation `sigma`.

    Args:
        sigma (float): standard deviation. Default ``0.01``.
        mean (float): mean. Default ``0.0``.
    """

    def __init__(self, sigma=0.01, mean=0.0):
        super().__init__(sigma=sigma, mean=mean)
        self.sigma = sigma
        self.mean = mean

    def _values(self, shape, dtype):
        return _normal(shape, self.mean, self.sigma, dtype)


@_register()
class TruncatedNormal(Initializer):
    """Normal, drawn again until it falls into [a, b] (absolute bounds, not multiples of sigma).

    Args:
        sigma (float): standard deviation before truncation. Default ``0.01``.
        mean (float): mean before truncation. Default ``0.0``.
        a (float): lower bound. Default ``-2.0``.
        b (float): upper bound. Default ``2.0``.
    """

    def __init__(self, sigma=0.01, mean=0.0, a=-2.0, b=2.0):
        super().__init__(sigma=sigma, mean=mean, a=a, b=b)
        self.sigma = sigma
        self.mean = mean
        self.a = a
        self.b = b

    def _values(self, shape, dtype):
        if self.sigma < 0:
            raise ValueError(f"For 'TruncatedNormal', 'sigma' must be >= 0, but got {self.sigma}.")
        return _random.truncated_normal(shape, self.mean, self.sigma, self.a, self.b, dtype)


@_register("xavier_uniform")
class XavierUniform(Initializer):
    """Uniform on [-x, x] with x = gain * sqrt(6 / (fan_in + fan_out)).

    Args:
        gain (float): scale. Default ``1``.

    Source: Glorot and Bengio, Understanding the difficulty of training deep feedforward networks, 2010, eq. 16.
    """

    def __init__(self, gain=1):
        super().__init__(gain=gain)
        self.gain = gain

    def _values(self, shape, dtype):
        bound = self.gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(shape)))
        return _random.uniform(shape, -bound, bound, dtype)


@_register("xavier_normal")
class XavierNormal(Initializer):
    """Normal with standard deviation gain * sqrt(2 / (fan_in + fan_out)).

    Args:
        gain (float): scale. Default ``1``.

    Source: Glorot and Bengio, 2010, eq. 12.
    """

    def __init__(self, gain=1):
        super().__init__(gain=gain)
        self.gain = gain

    def _values(self, shape, dtype):
        return _normal(shape, 0.0, self.gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(shape))), dtype)


class _He(Initializer):
    """Common part of the two He initializers: the standard deviation gain / sqrt(fan)."""

    def __init__(self, negative_slope=0, mode="fan_in", nonlinearity="leaky_relu"):
        super().__init__(negative_slope=negative_slope, mode=mode, nonlinearity=nonlinearity)
        self.negative_slope = negative_slope
        self.mode = mode
        self.nonlinearity = nonlinearity

    def _deviation(self, shape):
        gain = _calculate_gain(self.nonlinearity, self.negative_slope)
        return gain / math.sqrt(_calculate_correct_fan(shape, self.mode))


@_register("he_uniform")
class HeUniform(_He):
    """Uniform on [-x, x] with x = gain * sqrt(3 / fan).

    Args:
        negative_slope (Union[int, float]): slope of the leaky ReLU that follows. Default ``0``.
        mode (str): ``"fan_in"`` or ``"fan_out"``.
        nonlinearity (str): what follows: ``"relu"``, ``"leaky_relu"``, ``"tanh"``, ``"sigmoid"`` ...

    Source: He et al., Delving Deep into Rectifiers, 2015, eq. 14.
    """

    def _values(self, shape, dtype):
        bound = math.sqrt(3.0) * self._deviation(shape)
        return _random.uniform(shape, -bound, bound, dtype)


@_register("he_normal")
class HeNormal(_He):
    """Normal with standard deviation gain / sqrt(fan).

    Args:
        negative_slope (Union[int, float]): slope of the leaky ReLU that follows. Default ``0``.
        mode (str): ``"fan_in"`` or ``"fan_out"``.
        nonlinearity (str): what follows.

    Source: He et al., 2015, eq. 10.
    """

    def _values(self, shape, dtype):
        return _normal(shape, 0.0, self._deviation(shape), dtype)


@_register()
class VarianceScaling(Initializer):
    """Zero mean and variance scale / n, where n is fan_in, fan_out or their mean.

    Args:
        scale (float): positive factor. Default ``1.0``.
        mode (str): ``"fan_in"``, ``"fan_out"`` or ``"fan_avg"``.
        distribution (str): ``"truncated_normal"`` (cut at two standard deviations and widened to keep the variance),
            ``"untruncated_normal"`` or ``"uniform"``.

    Raises:
        ValueError: `scale` is not positive, `mode` or `distribution` is unknown.
    """

    def __init__(self, scale=1.0, mode="fan_in", distribution="truncated_normal"):
        super().__init__(scale=scale, mode=mode, distribution=distribution)
        if scale <= 0.0:
            raise ValueError(f"For 'VarianceScaling', 'scale' must be greater than 0, but got {scale}.")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(
                f"For 'VarianceScaling', 'mode' must be in ['fan_in', 'fan_out', 'fan_avg'], but got {mode}."
            )
        if distribution not in ("uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(
                f"For 'VarianceScaling', 'distribution' must be in ['uniform', 'truncated_normal', "
                f"'untruncated_normal'], but got {distribution}."
            )
        self.scale = scale
        self.mode = mode
        self.distribution = distribution

    def _values(self, shape, dtype):
        fan_in, fan_out = _calculate_fan_in_and_fan_out(shape)
        units = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}[self.mode]
        deviation = math.sqrt(self.scale / max(1.0, units))
        if self.distribution == "uniform":
            bound = math.sqrt(3.0) * deviation
            return _random.uniform(shape, -bound, bound, dtype)
        if self.distribution == "untruncated_normal":
            return _normal(shape, 0.0, deviation, dtype)
        # 0.8796...: standard deviation of a standard normal cut at -2 and 2.
        wide = deviation / 0.87962566103423978
        return _random.truncated_normal(shape, 0.0, wide, -2.0 * wide, 2.0 * wide, dtype)


@_register()
class Identity(Initializer):
    """Ones on the diagonal of a matrix, zeros elsewhere."""

    def _values(self, shape, dtype):
        _need_rank(shape, (2,), "Identity")
        import numpy as np

        return _from_array(np.eye(*shape, dtype=_numpy_dtype(dtype)), dtype)


@_register()
class Sparse(Initializer):
    """Normal values of which a share `sparsity` of every column is zero.

    Args:
        sparsity (float): share of zeros in each column.
        sigma (float): standard deviation of the rest. Default ``0.01``.

    Source: Martens, Deep learning via Hessian-free optimization, 2010, section 5.
    """

    def __init__(self, sparsity, sigma=0.01):
        super().__init__(sparsity=sparsity, sigma=sigma)
        self.sparsity = sparsity
        self.sigma = sigma

    def _values(self, shape, dtype):
        _need_rank(shape, (2,), "Sparse")
        import numpy as np

        order = _random.uniform(shape, 0.0, 1.0, mstype.float32).asnumpy()
        zeros = np.argsort(order, axis=0, kind="stable")[: math.ceil(self.sparsity * shape[0])]
        array = _normal(shape, 0.0, self.sigma, mstype.float32).asnumpy().copy()
        np.put_along_axis(array, zeros, 0.0, axis=0)
        return _from_array(array, dtype)


@_register()
class Dirac(Initializer):
    """Convolution weights that pass as many channels as possible through unchanged.

    Args:
        groups (int): number of groups of the convolution. Default ``1``.
    """

    def __init__(self, groups=1):
        super().__init__(groups=groups)
        self.groups = groups

    def _values(self, shape, dtype):
        _need_rank(shape, (3, 4, 5), "Dirac")
        if shape[0] % self.groups != 0:
            raise ValueError(
                f"For 'Dirac', the first dimension must be divisible by 'groups', but got {shape[0]} and {self.groups}."
            )
        import numpy as np

        array = np.zeros(shape, _numpy_dtype(dtype))
        outputs = shape[0] // self.groups
        center = tuple(size // 2 for size in shape[2:])
        for group in range(self.groups):
            for channel in range(min(outputs, shape[1])):
                array[(group * outputs + channel, channel, *center)] = 1
        return _from_array(array, dtype)


@_register()
class Orthogonal(Initializer):
    """Rows (or columns, whichever are fewer) orthonormal, times `gain`; higher ranks count as [shape[0], rest].

    Args:
        gain (float): scale. Default ``1.0``.

    Source: Saxe et al., Exact solutions to the nonlinear dynamics of learning, 2013.
    """

    def __init__(self, gain=1.0):
        super().__init__(gain=gain)
        self.gain = gain

    def _values(self, shape, dtype):
        if len(shape) < 2:
            raise ValueError(f"For 'Orthogonal', the tensor must have at least 2 dimensions, but got {len(shape)}.")
        import numpy as np

        rows, columns = shape[0], math.prod(shape[1:])
        size = (max(rows, columns), min(rows, columns))
        basis, upper = np.linalg.qr(_normal(size, 0.0, 1.0, mstype.float32).asnumpy())
        # Signs of the diagonal make the result uniformly distributed (Mezzadri, 2007).
        basis = basis * np.sign(np.diag(upper))
        basis = basis.T if rows < columns else basis
        return _from_array(np.ascontiguousarray(self.gain * basis.reshape(shape)).astype("float32"), dtype)


def _need_rank(shape, ranks, name):
    if len(shape) not in ranks:
        raise ValueError(f"For '{name}', the number of dimensions must be in {list(ranks)}, but got {len(shape)}.")


class InitTensor(Tensor):
    """What `initializer` returns: a filled tensor that remembers its initializer.

    Inside `nn.utils.no_init_parameters()` it is not filled before `init_data()`.
    """

    __hash__ = Tensor.__hash__ or object.__hash__

    def __init__(self, init, shape, dtype):
        deferred = not _parameter._fill_new_parameters
        plain = Zero()._values(shape, dtype) if deferred else _make(init, shape, dtype)
        _core.init_tensor(self, plain)
        self.init = init
        self._deferred = deferred
        self._plain = plain

    @property
    def has_init(self):
        """Always true: the values come from an initializer."""
        return True

    def init_data(self, slice_index=None, shape=None, opt_shard_group=None):
        """The filled, plain tensor."""
        if self._deferred:
            fill(self, self.init)
            self._deferred = False
        return _core.detach(self).clone()

    def _claim_storage(self):
        """The storage itself for the first owner, a copy for later ones."""
        plain, self._plain = self._plain, None
        return plain if plain is not None else _core.detach(self).clone()


def _check_shape(shape):
    if isinstance(shape, numbers.Number):
        shape = (shape,)
    for size in shape:
        if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
            raise ValueError(
                f"For 'initializer', the argument 'shape' is invalid, the value of 'shape' must be "
                f"positive integer, but got {tuple(shape)}."
            )
    return tuple(shape)


def initializer(init, shape=None, dtype=mstype.float32):
    """A tensor filled as `init` says.

    Args:
        init (Union[Tensor, str, Initializer, Number]): a name such as ``"normal"``, ``"xavier_uniform"``, ``"zeros"``;
            an Initializer; a number; or a tensor, which is returned as it is.
        shape (Union[tuple, list, int]): the shape. ``None`` only with a tensor.
        dtype (mindspore.dtype): the dtype. Default ``float32``.

    Raises:
        TypeError: `init` is of another type.
        ValueError: the name is unknown, a size is not positive, or a tensor's shape differs from `shape`.

    Example:
        >>> from morel.common.initializer import initializer, One
        >>> initializer(One(), [1, 2]).asnumpy().tolist()
        [[1.0, 1.0]]
    """
    if isinstance(init, Tensor):
        wanted = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        if shape is not None and tuple(init.shape) != wanted:
            raise ValueError(
                f"For 'initializer', the shape of 'init' must equal 'shape', but got {tuple(init.shape)} and {wanted}."
            )
        return init
    if not isinstance(init, (numbers.Number, str, Initializer)):
        raise TypeError(
            f"For 'initializer', the type of the 'init' argument should be 'Tensor', 'number', 'string' "
            f"or 'initializer', but got {type(init)}."
        )
    if shape is None:
        raise ValueError("For 'initializer', the argument 'shape' can be None only if 'init' is a Tensor.")
    shape = _check_shape(shape)
    if isinstance(init, str):
        cls = _ALIASES.get(init.lower())
        if cls is None:
            raise ValueError(f"For 'initializer', the class corresponding to '{init}' was not found.")
        init = cls()
    elif isinstance(init, numbers.Number):
        init = Constant(init)
    return InitTensor(init, shape, dtype)
