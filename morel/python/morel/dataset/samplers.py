"""Samplers: which rows a source gives, and in which order."""

import enum

import numpy as np

from morel.dataset import _random, config

__all__ = [
    "Shuffle",
    "Sampler",
    "BuiltinSampler",
    "SequentialSampler",
    "RandomSampler",
    "SubsetSampler",
    "SubsetRandomSampler",
    "DistributedSampler",
    "WeightedRandomSampler",
    "PKSampler",
    "IterSampler",
]


class Shuffle(str, enum.Enum):
    """How much to shuffle: everything, only the order of files, only inside of files."""

    GLOBAL = "global"
    FILES = "files"
    INFILE = "infile"
    PARTIAL = "partial"
    ADAPTIVE = "adaptive"


def _check_count(value, name="num_samples"):
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} should be an integer, but got {name}={value} of type {type(value)}.")
    if value < 0:
        raise ValueError(f"{name} exceeds the boundary between 0 and 9223372036854775807(INT64_MAX)!")


def _check_bool(value, name):
    if not isinstance(value, bool):
        raise TypeError(f"{name} should be a boolean value, but got {name}: {value}.")


class BuiltinSampler:
    """Base of the samplers: `_own_orders(count, source)` yields the order of one pass after the other."""

    def __init__(self, num_samples=None):
        self.child_sampler = None
        self.num_samples = num_samples

    def add_child(self, sampler):
        """Chains: `sampler` picks first, this one picks among what it gives."""
        if self.child_sampler is not None:
            raise RuntimeError("Cannot add child sampler, this sampler already has a child.")
        self.child_sampler = sampler

    def get_child(self):
        """The chained sampler or ``None``."""
        return self.child_sampler

    def use_sampler(self, sampler):
        """Replaces the chained sampler."""
        self.child_sampler = sampler

    def is_shuffled(self):
        """Whether the order is random."""
        return self.child_sampler is not None and self.child_sampler.is_shuffled()

    def is_sharded(self):
        """Whether it gives one part of several."""
        return self.child_sampler is not None and self.child_sampler.is_sharded()

    def get_num_samples(self):
        """The number of rows that was asked for, ``None`` for all."""
        return self.num_samples or None

    def orders(self, count, source=None):
        """Yields, for one pass after the other, the indices in [0, count) as an array."""
        children = self.child_sampler.orders(count, source) if self.child_sampler is not None else None
        own, size = None, -1
        while True:
            chosen = next(children) if children else np.arange(count, dtype=np.int64)
            if len(chosen) != size:
                size = len(chosen)
                own = self._own_orders(size, source)
            order = np.asarray(next(own), np.int64)
            if self.num_samples:
                order = order[: self.num_samples]
            wrong = order[(order < 0) | (order >= size)]
            if wrong.size:
                raise RuntimeError(f"Sample ID ({wrong[0]}) is out of bound, expected range [0, {size - 1}]")
            yield chosen[order]

    def _own_orders(self, count, source):
        raise NotImplementedError(f"For '{type(self).__name__}', '_own_orders' must be defined.")


class Sampler(BuiltinSampler):
    """Base of user-written samplers: a subclass defines ``__iter__``, which yields indices."""

    def __init__(self, num_samples=None):
        super().__init__(num_samples)
        self.dataset_size = 0

    def __iter__(self):
        raise NotImplementedError("Sample should be implemented as an iterable.")

    def reset(self):
        """Called before each pass after the first."""

    def _own_orders(self, count, source):
        self.dataset_size = count
        while True:
            if not hasattr(self, "child_sampler"):  # a subclass without super().__init__()
                self.child_sampler = None
            yield np.fromiter(iter(self), np.int64)
            self.reset()

    def orders(self, count, source=None):
        for name in ("child_sampler", "num_samples"):
            if not hasattr(self, name):
                setattr(self, name, None)
        return super().orders(count, source)


class IterSampler(Sampler):
    """Wraps any iterable of indices."""

    def __init__(self, sampler, num_samples=None):
        super().__init__(num_samples)
        self.sampler = sampler

    def __iter__(self):
        return iter(self.sampler)


class SequentialSampler(BuiltinSampler):
    """Rows in order.

    Args:
        start_index (int, optional): the first row. Default: 0.
        num_samples (int, optional): how many. Default: all.
    """

    def __init__(self, start_index=None, num_samples=None):
        _check_count(num_samples)
        _check_count(start_index, "start_index")
        super().__init__(num_samples)
        self.start_index = start_index or 0

    def _own_orders(self, count, source):
        if self.start_index >= count > 0:
            raise RuntimeError(
                f"Invalid parameter, start_index must be less than num_rows, but got start_index: "
                f"{self.start_index}, num_rows: {count}."
            )
        while True:
            yield np.arange(self.start_index, count)


class RandomSampler(BuiltinSampler):
    """Rows in random order, another one in each pass.

    Args:
        replacement (bool): draw each row anew from all. Default ``False``.
        num_samples (int, optional): how many. Default: all.
        shuffle (Shuffle): only ``Shuffle.GLOBAL``.
    """

    def __init__(self, replacement=False, num_samples=None, shuffle=Shuffle.GLOBAL):
        _check_bool(replacement, "replacement")
        _check_count(num_samples)
        if shuffle is not Shuffle.GLOBAL:
            raise NotImplementedError("For 'RandomSampler', only shuffle=Shuffle.GLOBAL is supported.")
        super().__init__(num_samples)
        self.replacement = replacement

    def is_shuffled(self):
        return True

    def _own_orders(self, count, source):
        seed = config.effective_seed()
        order = np.arange(count)
        while True:
            if self.replacement:
                yield _random.draws_with_replacement(self.num_samples or count, count, seed)
            else:
                order = _random.shuffled(order, seed)
                yield order
            seed = (seed + 1) & 0xFFFFFFFF


class SubsetSampler(BuiltinSampler):
    """The rows of a list.

    Args:
        indices (Union[int, Iterable[int]]): their indices.
        num_samples (int, optional): take only the first so many.
    """

    def __init__(self, indices, num_samples=None):
        _check_count(num_samples)
        super().__init__(num_samples)
        indices = list(indices) if not isinstance(indices, int) else [indices]
        for place, index in enumerate(indices):
            if not isinstance(index, (int, np.integer)):
                raise TypeError(
                    f"SubsetSampler: Type of indices element must be int, but got list[{place}]: {index}, type: "
                    f"{type(index)}."
                )
        self.indices = [int(index) for index in indices]

    def _own_orders(self, count, source):
        while True:
            yield np.array(self.indices, np.int64)


class SubsetRandomSampler(SubsetSampler):
    """The rows of a list, shuffled.

    Args:
        indices (Iterable[int]): their indices.
        num_samples (int, optional): take only so many.
    """

    def is_shuffled(self):
        return True

    def _own_orders(self, count, source):
        seed = config.effective_seed()
        order = np.array(self.indices, np.int64)
        while True:
            order = _random.shuffled(order, seed)
            yield order


class DistributedSampler(BuiltinSampler):
    """One of `num_shards` parts; row r (of the shuffled order) belongs to part r modulo `num_shards`.

    Args:
        num_shards (int): number of parts.
        shard_id (int): which one.
        shuffle (bool): shuffle, equally in all parts. Default ``True``.
        num_samples (int, optional): take only so many rows of the part.
        offset (int): the part that gets the first row; then no rows repeat to fill up. Default ``-1``: parts are filled up
            to equal size.
    """

    def __init__(self, num_shards, shard_id, shuffle=True, num_samples=None, offset=-1):
        for value, name in ((num_shards, "num_shards"), (shard_id, "shard_id"), (offset, "offset")):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} must be integer but was: {value}.")
        _check_bool(shuffle, "shuffle")
        _check_count(num_samples)
        if num_shards <= 0:
            raise ValueError(f"num_shards should be a positive integer value, but got num_shards: {num_shards}.")
        if not 0 <= shard_id < num_shards:
            raise ValueError(f"shard_id is invalid, shard_id: {shard_id}.")
        if offset > num_shards:
            raise RuntimeError(
                f"DistributedSampler: offset must be no more than num_shards({num_shards}), but got offset: {offset}."
            )
        super().__init__(num_samples)
        self.num_shards, self.shard_id, self.shuffle, self.offset = num_shards, shard_id, shuffle, offset

    def is_shuffled(self):
        return self.shuffle or super().is_shuffled()

    def is_sharded(self):
        return True

    def set_offset(self, offset):
        """Sets `offset`."""
        self.offset = offset
        return self

    def _own_orders(self, count, source):
        seed = config.effective_seed()
        rows = np.arange(count)
        while True:
            seed = (seed + 1) & 0xFFFFFFFF
            if self.shuffle:
                rows = _random.shuffled(rows, seed)
            if self.offset >= 0:
                yield rows[(self.shard_id - self.offset) % self.num_shards :: self.num_shards]
            elif count == 0:
                yield rows
            else:
                places = np.arange(-(-count // self.num_shards)) * self.num_shards + self.shard_id
                yield rows[places % count]


class WeightedRandomSampler(BuiltinSampler):
    """Rows drawn with given weights.

    Args:
        weights (list[float]): one per row, not negative, not all 0.
        num_samples (int, optional): how many. Default: as many as weights.
        replacement (bool): a row may come more than once. Default ``True``.
    """

    def __init__(self, weights, num_samples=None, replacement=True):
        weights = list(weights)
        for index, weight in enumerate(weights):
            if not isinstance(weight, (int, float, np.number)) or isinstance(weight, bool):
                raise TypeError(
                    f"type of weights element must be number, but got w[{index}]={weight}, type={type(weight)}."
                )
        if not weights:
            raise ValueError("weights size should not be 0")
        if min(weights) < 0:
            raise ValueError(f"weights should not contain negative numbers, but got weights: {weights}.")
        if sum(weights) == 0:
            raise ValueError("elements of weights should not be all zero.")
        _check_count(num_samples)
        _check_bool(replacement, "replacement")
        super().__init__(num_samples)
        self.weights, self.replacement = weights, replacement

    def is_shuffled(self):
        return True

    def _own_orders(self, count, source):
        seed = config.effective_seed()
        draw = _random.weighted_draws if self.replacement else _random.weighted_choice
        if not self.replacement and (self.num_samples or 0) > len(self.weights):
            raise RuntimeError(
                "Invalid parameter, without replacement num_samples must not exceed the number of weights."
            )
        while True:
            yield draw(self.weights, self.num_samples or len(self.weights), seed)


class PKSampler(BuiltinSampler):
    """`num_val` rows of each class.

    Args:
        num_val (int): rows per class.
        num_class (int, optional): only ``None``: all classes.
        shuffle (bool): pick the rows at random. Default ``False``: the first ones.
        class_column (str): the column with the class. Default ``"label"``.
        num_samples (int, optional): take only so many.
    """

    def __init__(self, num_val, num_class=None, shuffle=False, class_column="label", num_samples=None):
        if not isinstance(num_val, int) or isinstance(num_val, bool):
            raise TypeError(f"num_val must be integer but was: {num_val}.")
        if num_class is not None:
            raise NotImplementedError("Not supported to specify num_class for PKSampler.")
        _check_bool(shuffle, "shuffle")
        if not isinstance(class_column, str):
            raise TypeError(f"class_column must be a str value but was: {class_column}.")
        if num_val <= 0:
            raise ValueError(f"num_val should be a positive integer value, but got num_val: {num_val}.")
        _check_count(num_samples)
        super().__init__(num_samples)
        self.num_val, self.shuffle, self.class_column = num_val, shuffle, class_column

    def is_shuffled(self):
        return self.shuffle or super().is_shuffled()

    def _own_orders(self, count, source):
        if self.child_sampler is not None:
            raise NotImplementedError("For 'PKSampler', a child sampler is not supported.")
        labels = source._labels(self.class_column) if source is not None else None
        if labels is None:
            raise RuntimeError(
                f"For 'PKSampler', the dataset has no column '{self.class_column}' that is known in advance."
            )
        seed = config.effective_seed()
        classes = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        while True:
            picked = [_random.shuffled(rows, seed) if self.shuffle else rows for rows in classes]
            yield np.concatenate([rows[: self.num_val] for rows in picked])
            seed = (seed + 1) & 0xFFFFFFFF


def choose_sampler(sampler, num_samples, shuffle, num_shards, shard_id):
    """The sampler of a source from its usual five arguments."""
    _check_count(num_samples)
    others = [shuffle, num_shards, shard_id]
    if isinstance(sampler, BuiltinSampler):
        others.append(num_samples)
    if sampler is not None and any(value is not None for value in others):
        raise ValueError(
            f"Conflicting arguments during sampler assignments. num_samples: {num_samples}, num_shards: "
            f"{num_shards}, shard_id: {shard_id}, shuffle: {shuffle}."
        )
    if shuffle is not None and not isinstance(shuffle, (bool, Shuffle)):
        raise TypeError(
            f"shuffle must be of boolean or enum of 'Shuffle' values like 'Shuffle.GLOBAL', but got {shuffle}."
        )
    if (num_shards is None) != (shard_id is None):
        raise ValueError("num_shards and shard_id need to be passed in together.")
    if num_shards is not None:
        for value, name in ((num_shards, "num_shards"), (shard_id, "shard_id")):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(
                    f"Argument {name} with value {value} is not of type [<class 'int'>], but got {type(value)}."
                )
        if num_shards <= 0:
            raise ValueError("Input num_shards is not within the required interval of [1, 2147483647].")
        if not 0 <= shard_id < num_shards:
            raise ValueError("shard_id should be less than num_shards.")
        return DistributedSampler(num_shards, shard_id, shuffle is None or bool(shuffle), num_samples)
    if sampler is not None:
        if isinstance(sampler, BuiltinSampler):
            return sampler
        if isinstance(sampler, str):
            raise TypeError(f"Unsupported sampler object of type {type(sampler)}.")
        if hasattr(sampler, "__iter__"):
            return IterSampler(sampler, num_samples)
        if hasattr(sampler, "__getitem__") and hasattr(sampler, "__len__"):
            return IterSampler([sampler[i] for i in range(len(sampler))], num_samples)
        raise TypeError(f"Unsupported sampler object of type {type(sampler)}.")
    if shuffle is None or shuffle:
        return RandomSampler(num_samples=num_samples)
    return SequentialSampler(num_samples=num_samples)
