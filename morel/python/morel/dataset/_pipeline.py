"""What runs a pipeline: one `Run` per iterator, parallel `map` of user functions, conversion and stacking of values."""

import collections
import concurrent.futures
import itertools
import traceback

import numpy as np

from morel.dataset import _random, config


class Run:
    """The state of one iterator over a pipeline: what each operation keeps from one pass to the next."""

    def __init__(self):
        self.epoch = 0
        self._states = {}
        self._pools = []

    def state(self, operation, make, part=""):
        """What `operation` keeps (one thing for each `part`); `make()` creates it at the first pass."""
        key = (id(operation), part)
        if key not in self._states:
            self._states[key] = make()
        return self._states[key]

    def number(self):
        """A number for each operation that asks, in the order of asking."""
        return len(self._states)

    def pool(self, executor):
        """Keeps an executor, to be shut down with the run."""
        self._pools.append(executor)
        return executor

    def close(self):
        """Ends the workers."""
        for executor in self._pools:
            executor.shutdown(wait=False, cancel_futures=True)
        self._pools.clear()

    def __del__(self):
        self.close()


def pipeline_error(text):
    """An error of the pipeline or its data."""
    return RuntimeError("Exception thrown from dataset pipeline: " + text)


def user_error(what, error):
    """The error for an exception in a user's function; the original one is its cause."""
    trace = "".join(traceback.format_exception(error))
    wrapped = RuntimeError(
        f"Exception thrown from user defined Python function in dataset: {what}: "
        f"{type(error).__name__}: {error}\n{trace}"
    )
    wrapped.__cause__ = error
    return wrapped


# --- values ---


def to_array(value, which=""):
    """A value that a user's function returned, as a NumPy array (dictionaries stay what they are)."""
    if isinstance(value, dict):
        return value
    array = value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)
    if array.dtype == object:
        raise TypeError(
            f"Invalid data type. Data type of {which}the input or its converted Numpy array is expected to be one of "
            f"numbers, bool, string or bytes, but got {type(value)} with objects in it."
        )
    return array


def to_row(value):
    """What a user's function returned for a row, as a tuple of arrays."""
    if isinstance(value, tuple):
        return tuple(to_array(item, f"{i}th item of ") for i, item in enumerate(value, 1))
    return (to_array(value),)


def check_max_rowsize(max_rowsize):
    """MindSpore's bound for rows in shared memory, which this pipeline does not have: an int, or two in a list."""
    if max_rowsize is None:
        return
    for value in max_rowsize if isinstance(max_rowsize, list) else [max_rowsize]:
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(
                f"Argument max_rowsize with value {max_rowsize} is not of type [<class 'int'>, <class 'list'>], but got "
                f"{type(max_rowsize)}."
            )
        if not -1 <= value <= 2147483647:
            raise ValueError("Input max_rowsize is not within the required interval of [-1, 2147483647].")


def to_tensor(array, fresh):
    """A column value for the user: a Tensor; text and dictionaries stay. It takes the memory of `fresh` arrays."""
    if isinstance(array, dict):
        return {key: to_tensor(to_array(value), fresh) for key, value in array.items()}
    if array.dtype.kind in "SUO":
        return array
    from morel import Tensor

    if fresh and array.flags.writeable and array.flags.c_contiguous:
        return Tensor.from_numpy(array)
    return Tensor(array)


def stack(values, column):
    """The values of one column of a batch as one array."""
    first = values[0]
    if isinstance(first, dict):
        return {key: stack([to_array(value[key]) for value in values], f"{column}.{key}") for key in first}
    if first.dtype.kind in "SU":
        return (
            np.stack(np.broadcast_arrays(*values)) if len({v.shape for v in values}) == 1 else _ragged(values, column)
        )
    for value in values:
        if value.shape != first.shape:
            _ragged(values, column)
        if value.dtype != first.dtype:
            raise pipeline_error(
                f"Cannot batch tensors with different types in column '{column}': {first.dtype} and {value.dtype}"
            )
    return np.stack(values)


def _ragged(values, column):
    other = next(value for value in values if value.shape != values[0].shape)
    raise pipeline_error(
        f"Cannot batch tensors with different shapes in column '{column}'. First element had shape "
        f"{list(values[0].shape)} and this element had shape {list(other.shape)}; use padded_batch to "
        f"fill them up"
    )


def pad_to(array, shape, value):
    """`array` in the corner of an array of `shape` that is filled with `value`."""
    if array.ndim != len(shape):
        raise pipeline_error(f"pad_info has {len(shape)} dimensions, but the data has shape {list(array.shape)}")
    out = np.full(shape, value, array.dtype)
    index = tuple(slice(0, min(have, want)) for have, want in zip(array.shape, shape))
    out[index] = array[index]
    return out


# --- workers ---


def in_order(function, items, executor, ahead):
    """Yields function(item) for each item, in order, computing up to `ahead` of them at a time."""
    waiting = collections.deque()
    items = iter(items)
    try:
        for item in itertools.islice(items, ahead):
            waiting.append(executor.submit(function, item))
        while waiting:
            result = waiting.popleft().result()
            for item in itertools.islice(items, 1):
                waiting.append(executor.submit(function, item))
            yield result
    finally:
        for future in waiting:
            future.cancel()


_forked = {}  # functions for worker processes, which inherit this module's memory by fork


def _call_forked(key, item):
    return _forked[key](item)


class _ForkedExecutor:
    """Worker processes that run one function; made by fork, so the function may be anything."""

    def __init__(self, function, workers):
        import multiprocessing

        self._key = id(self)
        _forked[self._key] = function
        self._pool = concurrent.futures.ProcessPoolExecutor(workers, multiprocessing.get_context("fork"))

    def submit(self, _, item):
        return self._pool.submit(_call_forked, self._key, item)

    def shutdown(self, wait, cancel_futures):
        self._pool.shutdown(wait=wait, cancel_futures=cancel_futures)
        _forked.pop(self._key, None)


def parallel_map(run, owner, function, items, workers, processes):
    """function(item) for each item, in order, with `workers` threads (or processes); they live as long as the run."""
    if workers <= 1 or config.get_debug_mode():
        yield from map(function, items)
        return
    make = (
        (lambda: run.pool(_ForkedExecutor(function, workers)))
        if processes
        else (lambda: run.pool(concurrent.futures.ThreadPoolExecutor(workers, "morel-dataset")))
    )
    executor = run.state(owner, make, "workers")
    try:
        yield from in_order(function, items, executor, 2 * workers)
    except concurrent.futures.BrokenExecutor as error:
        raise RuntimeError(
            "A worker process of the dataset pipeline ended unexpectedly (killed, or out of memory); the "
            "rows it worked on are lost. Use python_multiprocessing=False or fewer workers."
        ) from error


enter_row, leave_row = _random.enter_row, _random.leave_row
