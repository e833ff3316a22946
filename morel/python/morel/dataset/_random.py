"""Random orders and random numbers of the data pipeline.

Orders equal MindSpore's for the same seed: they come from the 32-bit and 64-bit Mersenne twisters of C++ and from the way
libstdc++'s `std::shuffle` draws from them. Random transforms are ours: their numbers are a function of the seed, the place
in the pipeline, the pass and the row, so they do not depend on the number of workers.
"""

import os
import threading

import numpy as np

_MASK64 = (1 << 64) - 1


def fresh_seed():
    """32 bits of the system's entropy, for pipelines that nobody seeded."""
    return int.from_bytes(os.urandom(4), "little")


def _words(seed):
    """The outputs of std::mt19937(seed)."""
    state = np.random.RandomState(seed)  # its integer seeding is init_genrand, as std::mt19937's
    while True:
        yield from state.randint(0, 1 << 32, 4096, dtype=np.uint32).tolist()


def _below(words, bound):
    """A number in [0, bound), as std::uniform_int_distribution maps 32-bit words: by division, with rejection."""
    scale = 0xFFFFFFFF // bound
    limit = bound * scale
    word = next(words)
    while word >= limit:
        word = next(words)
    return word // scale


def shuffled(items, seed):
    """`items` (an array) in the order of std::shuffle with std::mt19937(seed)."""
    count = len(items)
    order = list(range(count))
    words = _words(seed)
    if count == 0:
        return items
    if 0xFFFFFFFF // count < count:
        for i in range(1, count):
            k = _below(words, i + 1)
            order[i], order[k] = order[k], order[i]
        return items[order]
    # Short ranges: one word serves two swaps.
    i = 1
    if count % 2 == 0:
        k = _below(words, 2)
        order[1], order[k] = order[k], order[1]
        i = 2
    while i < count:
        k, m = divmod(_below(words, (i + 1) * (i + 2)), i + 2)
        order[i], order[k] = order[k], order[i]
        order[i + 1], order[m] = order[m], order[i + 1]
        i += 2
    return items[order]


def draws_with_replacement(count, bound, seed):
    """`count` numbers in [0, bound)."""
    words = _words(seed)
    return np.array([_below(words, bound) for _ in range(count)], np.int64)


def weighted_draws(weights, count, seed):
    """`count` indices with probabilities proportional to `weights`, as std::discrete_distribution draws them."""
    state = np.random.RandomState(seed)
    words = state.randint(0, 1 << 32, 2 * count, dtype=np.uint32).astype(np.float64).reshape(count, 2)
    uniform = (words[:, 0] + words[:, 1] * 2.0**32) / 2.0**64
    weights = np.asarray(weights, np.float64)
    bounds = np.cumsum(weights / weights.sum())
    bounds[-1] = 1.0
    return np.searchsorted(bounds, uniform)


def weighted_choice(weights, count, seed):
    """`count` different indices, drawn one after the other by weight (Efraimidis and Spirakis, 2006: keys log(u) / w)."""
    with np.errstate(divide="ignore"):
        keys = np.log(np.random.RandomState(seed).random_sample(len(weights))) / np.asarray(weights, np.float64)
    return np.argsort(-keys, kind="stable")[:count]


class MersenneTwister64:
    """std::mt19937_64.

    Source: Nishimura, Tables of 64-bit Mersenne Twisters, 2000.
    """

    def __init__(self, seed):
        words = [seed & _MASK64]
        for i in range(1, 312):
            words.append((6364136223846793005 * (words[-1] ^ (words[-1] >> 62)) + i) & _MASK64)
        self._words, self._next = words, 312

    def _refill(self):
        words = self._words
        for k in range(312):
            mixed = (words[k] & 0xFFFFFFFF80000000) | (words[(k + 1) % 312] & 0x7FFFFFFF)
            words[k] = words[(k + 156) % 312] ^ (mixed >> 1) ^ (0xB5026F5AA96619E9 if mixed & 1 else 0)
        self._next = 0

    def __call__(self):
        if self._next == 312:
            self._refill()
        word = self._words[self._next]
        self._next += 1
        word ^= (word >> 29) & 0x5555555555555555
        word ^= (word << 17) & 0x71D67FFFEDA60000
        word ^= (word << 37) & 0xFFF7EEE000000000
        return word ^ (word >> 43)


def buffer_shuffled(items, size, draw):
    """Yields `items` through a buffer of `size`: each time a random slot leaves, the last one fills it, a new one follows."""
    items = iter(items)
    buffer = []
    for item in items:
        buffer.append(item)
        if len(buffer) == size:
            break
    for item in items:
        slot = draw() % len(buffer)
        yield buffer[slot]
        buffer[slot] = buffer[-1]
        buffer[-1] = item
    while buffer:
        slot = draw() % len(buffer)
        yield buffer[slot]
        buffer[slot] = buffer[-1]
        buffer.pop()


# --- random transforms ---


class _Place(threading.local):
    """Where the calling thread is: set by `map` before it runs the transforms of a row."""

    seed = None
    operator = epoch = row = draw = 0


_place = _Place()


def enter_row(seed, operator, epoch, row):
    """Makes the next calls of `row_generator` in this thread those of one row of one `map`."""
    _place.seed, _place.operator, _place.epoch, _place.row, _place.draw = seed, operator, epoch, row, 0


def leave_row():
    """Back to transforms that are called on their own."""
    _place.seed = None


def row_generator():
    """The NumPy generator for one call of one random transform."""
    if _place.seed is None:  # called eagerly, outside of a pipeline: NumPy's global state, which set_seed seeds
        return np.random.Generator(np.random.Philox(key=int(np.random.randint(0, 1 << 32, dtype=np.uint64))))
    _place.draw += 1
    key = [_place.seed, _place.operator << 32 | _place.draw]
    return np.random.Generator(np.random.Philox(key=np.array(key, np.uint64), counter=[0, 0, _place.epoch, _place.row]))
