"""Generators of random numbers: a seed, and how many numbers have been drawn since."""

import contextlib

from morel import _core

__all__ = [
    "Generator",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "using",
]


class Generator:
    """Random numbers of its own for functions with a `generator` argument.

    Example:
        >>> import morel as ms
        >>> generator = ms.Generator().manual_seed(5)
        >>> ms.mint.rand(2, generator=generator)
    """

    def __init__(self):
        self._state = (0, 0)

    def _get(self):
        return self._state

    def _put(self, state):
        self._state = state

    def manual_seed(self, seed):
        """Starts the numbers of a seed, an int; returns the generator."""
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise TypeError(f"For 'manual_seed', 'seed' must be int, but got {type(seed).__name__}.")
        self._put((seed, 0))
        return self

    def seed(self):
        """Starts the numbers of a seed that the operating system draws, and returns it."""
        import secrets

        seed = secrets.randbits(31)
        self._put((seed, 0))
        return seed

    def initial_seed(self):
        """The seed whose numbers are drawn."""
        return self._get()[0]

    def get_state(self):
        """What `set_state` takes to draw the same numbers again: uint8 [16]."""
        import numpy

        return _core.from_numpy(numpy.array(self._get(), "<i8").view(numpy.uint8))

    def set_state(self, state):
        """Goes to where the generator was when `get_state` gave `state`."""
        if not isinstance(state, _core.Tensor):
            raise TypeError(f"For 'set_state', 'state' must be a Tensor, but got {type(state).__name__}.")
        if state.shape != (16,) or str(state.dtype) != "UInt8":
            raise ValueError(f"For 'set_state', 'state' must be uint8 [16], but got {state.dtype} {state.shape}.")
        self._put(tuple(state.asnumpy().view("<i8").tolist()))


class _DefaultGenerator(Generator):
    """The generator that functions use unless they are given another one."""

    def __init__(self):
        pass

    def _get(self):
        return _core.generator_state()

    def _put(self, state):
        _core.set_generator_state(*state)


default_generator = _DefaultGenerator()


def manual_seed(seed):
    """Starts the numbers of a seed in the default generator, which is returned. See `set_seed` for everything random."""
    return default_generator.manual_seed(seed)


def seed():
    """Starts the numbers of a seed that the operating system draws in the default generator, and returns the seed."""
    return default_generator.seed()


def initial_seed():
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state():
    """The state of the default generator: uint8 [16]."""
    return default_generator.get_state()


def set_rng_state(state):
    """Puts the default generator back to where `get_rng_state` gave `state`."""
    default_generator.set_state(state)


@contextlib.contextmanager
def using(generator):
    """Within this context operators draw from `generator`; None: the default one."""
    if generator is None or generator is default_generator:
        yield
        return
    if not isinstance(generator, Generator):
        raise TypeError(f"'generator' must be a Generator, but got {type(generator).__name__}.")
    if _core.graph_active():
        raise NotImplementedError("a generator or seed of its own is not supported in compiled functions.")
    outer = _core.generator_state()
    _core.set_generator_state(*generator._get())
    try:
        yield
    finally:
        generator._put(_core.generator_state())
        _core.set_generator_state(*outer)
