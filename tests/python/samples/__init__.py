"""One table of samples for all operators; test_operators.py checks every property of every sample."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

FLOATS = ("float32", "float64")
HALVES = ("float16", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")
SIGNED = ("int8", "int16", "int32", "int64")


def normal(*shape):
    """Input maker: standard normal numbers."""
    return lambda rng: rng.standard_normal(shape)


def positive(*shape, low=0.2, high=3.0):
    """Input maker: uniform in [low, high)."""
    return lambda rng: rng.uniform(low, high, shape)


def between(low, high, *shape):
    """Input maker: uniform in [low, high)."""
    return lambda rng: rng.uniform(low, high, shape)


def distinct(*shape):
    """Input maker: numbers without ties, far enough apart for finite differences."""

    def make(rng):
        count = int(np.prod(shape))
        return (rng.permutation(count) * 0.37 - count * 0.185 + 0.1).reshape(shape)

    return make


def indices(high, *shape, dtype="int64"):
    """Input maker: integers in [0, high) that stay integers for every dtype of the sample."""
    return lambda rng: Fixed(rng.integers(0, high, shape).astype(dtype))


def flags(*shape):
    """Input maker: booleans that stay booleans."""
    return lambda rng: Fixed(rng.integers(0, 2, shape).astype(bool))


class Fixed:
    """An input whose dtype is not that of the sample; no gradient flows to it."""

    def __init__(self, array):
        self.array = array


@dataclass
class Sample:
    """One call of an operator.

    name: its public path ("ops.add", "mint.sum", "Tensor.item"). inputs: makers of its tensor arguments. reference: NumPy function
    of the arrays and the keyword arguments; None: only properties that need none. options: keyword arguments.
    """

    name: str
    inputs: tuple
    reference: Callable | None
    options: dict = field(default_factory=dict)
    dtypes: tuple = FLOATS + HALVES
    grad: bool = True
    as_list: bool = False  # the tensors are one list argument
    output: int | None = None  # of several outputs, the one that is differentiated
    names: tuple = ()  # the tensors are keyword arguments of these names
    tolerance: float = 1.0  # factor on the tolerance of the dtype
    second: bool = True

    @property
    def label(self):
        options = ",".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.name}({options})" if options else self.name


@dataclass
class ErrorSample:
    """A call that must raise `error` with text matching `match`."""

    name: str
    arguments: Callable
    error: type
    match: str


def all_samples():
    """Every sample of every family."""
    from samples import activation, elementwise, index, linalg, network, reduce, shape

    found = []
    for family in (elementwise, activation, reduce, shape, linalg, index, network):
        found += family.SAMPLES
    return found


def all_errors():
    """Every error sample."""
    from samples import errors

    return errors.ERRORS
