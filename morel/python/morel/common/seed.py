"""The seed of everything random: operators, initializers, dropout, NumPy, the data pipeline."""

import sys

__all__ = ["set_seed", "get_seed"]

_seed = None
generation = 0  # how often set_seed was called: the numbers of functions with a seed of their own start again
_LARGEST = 2**32 - 1  # NumPy's and the data pipeline's range


def set_seed(seed):
    """Makes a program repeatable: the same seed gives the same bits for any number of threads.

    Args:
        seed (int): in [0, 2^32 - 1].

    Raises:
        TypeError: not an int.
        ValueError: out of range.

    Example:
        >>> import morel as ms
        >>> from morel import ops
        >>> ms.set_seed(1)
        >>> a = ops.standard_normal((2,))
        >>> ms.set_seed(1)
        >>> bool((a == ops.standard_normal((2,))).all())
        True
    """
    global _seed, generation
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise TypeError(f"The argument 'seed' must be type of int, but got {type(seed)}.")
    if seed < 0:
        raise ValueError(f"For 'global_seed', the 'seed' must be int and must >= 0, but got '{seed}' with type 'int'.")
    if seed > _LARGEST:
        raise ValueError("Seed must be between 0 and 2**32 - 1")
    import numpy

    from morel import _core

    _core.set_seed(seed)
    numpy.random.seed(seed)
    _seed = seed
    generation += 1
    pipeline_config = sys.modules.get("morel.dataset.config")  # looks here when it is imported later
    if pipeline_config is not None:
        pipeline_config.set_seed(seed)


def get_seed():
    """The seed that was set, ``None`` if none was."""
    return _seed


def _get_global_and_op_seed():
    """(global seed, operator seed) of older scripts."""
    return _seed or 0, 0
