"""Where rows come from: arrays in memory, user-written sources, MNIST and CIFAR folders."""

import os

import numpy as np

from morel.dataset import _pipeline as pipeline
from morel.dataset.datasets import MappableDataset, _as_list
from morel.dataset.samplers import choose_sampler

__all__ = [
    "NumpySlicesDataset",
    "GeneratorDataset",
    "MnistDataset",
    "FashionMnistDataset",
    "KMnistDataset",
    "Cifar10Dataset",
    "Cifar100Dataset",
    "PaddedDataset",
]


class _ArraysDataset(MappableDataset):
    """Columns that lie in memory as arrays with a common first axis."""

    def __init__(self, arrays, columns, sampler, num_parallel_workers=None, cache=None):
        super().__init__(sampler, num_parallel_workers, cache)
        self._known_arrays, self._column_names = arrays, columns

    def _arrays(self):
        return self._known_arrays

    def _columns(self):
        return self._column_names

    def _source_size(self):
        return len(self._arrays()[0])

    def _labels(self, column):
        return self._arrays()[self._column_names.index(column)] if column in self._column_names else None

    def _fetch(self, ids):
        return [array[ids] for array in self._arrays()]


class NumpySlicesDataset(_ArraysDataset):
    """Rows of arrays or lists.

    Args:
        data (Union[list, tuple, dict, numpy.ndarray]): one column (list, array), or several (tuple; dict by name).
        column_names (Union[str, list[str]], optional): Default: the keys of a dict, else "column_0", "column_1" ...
        num_samples (int, optional): how many rows. Default: all.
        num_parallel_workers (int): kept for scripts. Default ``1``.
        shuffle (bool, optional): Default ``None``: shuffle.
        sampler (Union[Sampler, Iterable], optional): which rows; not together with the four others.
        num_shards (int, optional): number of parts.
        shard_id (int, optional): which part.

    Example:
        >>> import morel.dataset as ds
        >>> for row in ds.NumpySlicesDataset({"x": [1, 2], "y": [3.0, 4.0]}, shuffle=False).create_dict_iterator(1, True):
        ...     print(row["x"], row["y"])
        1 3.0
        2 4.0
    """

    def __init__(
        self,
        data,
        column_names=None,
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
    ):
        if not isinstance(data, (list, tuple, dict, np.ndarray)):
            raise TypeError(
                f"Argument data with value {data} is not of type [<class 'list'>, <class 'tuple'>, <class "
                f"'dict'>, <class 'numpy.ndarray'>], but got {type(data)}."
            )
        if len(data) == 0:
            raise ValueError("Argument data cannot be empty")
        if isinstance(data, dict):
            values, names = list(data.values()), list(data)
        else:
            values = list(data) if isinstance(data, tuple) else [data]
            names = [f"column_{i}" for i in range(len(values))]
        if column_names is not None:
            given = _as_list(column_names, "column_names")
            if len(given) != len(values):
                raise ValueError(f"Num of input column names is {len(given)}, but required is {len(values)}.")
            names = given
        arrays = [_column_array(column) for column in values]
        if len({len(array) for array in arrays}) > 1:
            raise ValueError("Data length in each column is not equal.")
        super().__init__(
            arrays, names, choose_sampler(sampler, num_samples, shuffle, num_shards, shard_id), num_parallel_workers
        )

    def _is_table(self):
        return all(array.dtype != object for array in self._known_arrays)

    def _rows(self, run):
        if self._is_table():
            yield from super()._rows(run)
            return
        for i in self._ids(run):
            yield tuple(pipeline.to_array(array[i]) for array in self._known_arrays)


def _column_array(column):
    """A column as an array: of numbers where all rows are alike, else of objects."""
    if isinstance(column, np.ndarray):
        return column
    if hasattr(column, "asnumpy"):
        return column.asnumpy()
    values = [value.asnumpy() if hasattr(value, "asnumpy") else value for value in column]
    try:
        array = np.array(values)
        if array.dtype != object:
            return array
    except ValueError:  # rows of different shapes
        pass
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = np.asarray(value)
    return array


class GeneratorDataset(MappableDataset):
    """Rows of a user-written source.

    Args:
        source (Union[Callable, Iterable, Random Accessible]): a function that returns an iterator, an iterable, or an
            object with ``__getitem__`` and ``__len__``. A row is an array (or number, string, Tensor) per column.
        column_names (Union[str, list[str]], optional): required unless `schema` is given.
        column_types (list[mindspore.dtype], optional): checked if given.
        schema: not supported.
        num_samples (int, optional): how many rows. Default: all.
        num_parallel_workers (int): threads that read a random accessible source. Default ``1``.
        shuffle (bool, optional): only for random accessible sources. Default ``None``: shuffle those.
        sampler (Union[Sampler, Iterable], optional): only for random accessible sources.
        num_shards (int, optional): number of parts; only for random accessible sources.
        shard_id (int, optional): which part.
        python_multiprocessing (bool): with several workers: processes instead of threads. Default ``True``.
        max_rowsize: kept for scripts.
        batch_sampler (Iterable, optional): yields lists of indices; a row is then a batch.
        collate_fn (Callable, optional): makes a batch of the list of rows that `batch_sampler` names.
    """

    def __init__(
        self,
        source,
        column_names=None,
        column_types=None,
        schema=None,
        num_samples=None,
        num_parallel_workers=1,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        python_multiprocessing=True,
        max_rowsize=None,
        batch_sampler=None,
        collate_fn=None,
    ):
        self.source = _repeatable(source)
        source = self.source
        pipeline.check_max_rowsize(max_rowsize)
        self._accessible = hasattr(source, "__getitem__")
        if (
            not self._accessible
            and not callable(source)
            and not hasattr(source, "__iter__")
            and not hasattr(source, "__next__")
        ):
            raise TypeError(
                "Input `source` function of GeneratorDataset should be callable, iterable or random accessible, "
                "commonly it should implement one of the method like yield, __getitem__ or __next__(__iter__)."
            )
        if schema is not None:
            raise NotImplementedError("For 'GeneratorDataset', 'schema' is not supported yet; give 'column_names'.")
        if column_names is None:
            raise ValueError("Neither columns_names nor schema are provided.")
        self._column_names = _as_list(column_names, "column_names")
        if column_types is not None and len(column_types) != len(self._column_names):
            raise ValueError("column_names and column_types should have the same length.")
        self.column_types = column_types
        if not self._accessible:
            for value, name in ((sampler, "sampler"), (num_shards, "num_shards")):
                if value is not None:
                    raise ValueError(f"{name} is not supported if source does not have attribute '__getitem__'.")
        if batch_sampler is not None:
            _check_batch_sampler(source, batch_sampler, num_samples, shuffle, sampler, num_shards)
            if collate_fn is not None and not callable(collate_fn):
                raise TypeError("collate_fn should be callable.")
        elif collate_fn is not None:
            raise ValueError("collate_fn can be specified only when batch_sampler is set.")
        self.batch_sampler, self.collate_fn = batch_sampler, collate_fn
        self.python_multiprocessing = python_multiprocessing
        self._num_samples = num_samples
        self._first_order = None
        super().__init__(choose_sampler(sampler, num_samples, shuffle, num_shards, shard_id), num_parallel_workers)

    def _columns(self):
        return self._column_names

    def _is_table(self):
        return False

    def _source_size(self):
        if not hasattr(self.source, "__len__"):
            count = self.sampler.get_num_samples()
            if count is None:
                raise RuntimeError(
                    "Unable to get the size of 'GeneratorDataset': the '__len__' method is required in its source, or "
                    "'num_samples'."
                )
            return count
        return len(self.source)

    def _count(self):
        if self.batch_sampler is not None:
            return len(self.batch_sampler) if hasattr(self.batch_sampler, "__len__") else None
        if self._accessible:
            return super()._count()
        if hasattr(self.source, "__len__"):
            return min(len(self.source), self._num_samples or len(self.source))
        return None

    def is_shuffled(self):
        return self._accessible and super().is_shuffled()

    def _read(self, index):
        try:
            return self.source[index]
        except Exception as error:
            raise pipeline.user_error(f"the source of 'GeneratorDataset' failed at index {index}", error) from error

    def _read_batch(self, indices):
        if isinstance(indices, (int, np.integer)):
            raise RuntimeError("Batch sampler should return a list, but got an integer.")
        for index in indices:
            if not isinstance(index, (int, np.integer)):
                raise RuntimeError(f"Python sampler should return index of type integer, but got {type(index)}.")
        rows = [self._read(int(index)) for index in indices]
        columns = [list(values) for values in zip(*rows)] if isinstance(rows[0], tuple) else [rows]
        if self.collate_fn is None:
            columns = [[pipeline.to_array(value) for value in values] for values in columns]
            return tuple(pipeline.stack(values, name) for values, name in zip(columns, self._column_names))
        try:
            return self.collate_fn(*columns)
        except Exception as error:
            raise pipeline.user_error("collate_fn of 'GeneratorDataset' failed", error) from error

    def _values(self, run):
        """What the source gives, row by row."""
        if self.batch_sampler is not None:
            yield from pipeline.parallel_map(
                run,
                self,
                self._read_batch,
                run.state(self, self._own_batch_sampler, "batches"),
                self.num_parallel_workers or 1,
                self.python_multiprocessing,
            )
        elif self._accessible:
            yield from pipeline.parallel_map(
                run,
                self,
                self._read,
                self._ids(run).tolist(),
                self.num_parallel_workers or 1,
                self.python_multiprocessing,
            )
        else:
            try:
                for i, value in enumerate(self.source() if callable(self.source) else self.source):
                    if self._num_samples and i >= self._num_samples:
                        return
                    yield value
            except Exception as error:
                raise pipeline.user_error("the source of 'GeneratorDataset' failed", error) from error

    def _rows(self, run):
        for value in self._values(run):
            try:
                row = pipeline.to_row(value)
            except TypeError as error:
                raise pipeline.user_error(
                    "the source of 'GeneratorDataset' returned something unusable", error
                ) from error
            if len(row) != len(self._column_names):
                raise RuntimeError(
                    "Exception thrown from user defined Python function in dataset: Invalid Python function, the 'source' of "
                    "'GeneratorDataset' should return same number of NumPy arrays as specified in column_names, the size of "
                    f"column_names is:{len(self._column_names)} and number of returned NumPy array is:{len(row)}"
                )
            if self.column_types is not None:
                self._check_types(row)
            yield row

    def _check_types(self, row):
        for value, wanted in zip(row, self.column_types):
            if wanted is not None and value.dtype.name != _numpy_name(wanted):
                raise RuntimeError(
                    "Exception thrown from user defined Python function in dataset: Invalid Python function, type of "
                    f"returned data in 'GeneratorDataset' should be same with specified column_types, but the type of "
                    f"returned data: {value.dtype}, specified column type: {wanted}"
                )

    def _own_batch_sampler(self):
        """A copy for one iterator: what it keeps between passes must not depend on other iterators."""
        import copy

        try:
            return copy.deepcopy(self.batch_sampler)
        except TypeError:  # generators, locks
            return self.batch_sampler

    def get_batch_size(self):
        return 1 if self.batch_sampler is None else -1

    def __getitem__(self, index):
        """The row that comes at place `index` of the first pass."""
        if not self._accessible:
            raise RuntimeError("Dataset don't support randomized access.")
        if not isinstance(index, (int, np.integer)):
            raise TypeError(
                f"Argument index with value {index} is not of type [<class 'int'>, <class 'numpy.number'>], but got "
                f"{type(index)}."
            )
        if index < 0:
            raise RuntimeError(f"Index [{index}] can not be a negative number.")
        if self._first_order is None:
            self._first_order = next(self.sampler.orders(self._source_size(), self))
        if index >= len(self._first_order):
            raise RuntimeError(f"Index [{index}] exceeded the number of data samples.")
        return self.source[int(self._first_order[index])]


class _Kept:
    """The rows of an iterator that can be run through only once."""

    def __init__(self, iterator):
        self._iterator, self._rows = iterator, []

    def __iter__(self):
        yield from self._rows
        for row in self._iterator:
            self._rows.append(row)
            yield row


def _repeatable(source):
    """Python's own iterators (generator objects, zip, map ...) end after one pass; so their rows are kept."""
    own = type(source).__module__ == "builtins" and hasattr(source, "__next__")
    return _Kept(source) if own else source


def _check_batch_sampler(source, batch_sampler, num_samples, shuffle, sampler, num_shards):
    if not hasattr(source, "__getitem__"):
        raise ValueError("batch_sampler is not supported if source does not have attribute '__getitem__'.")
    if not hasattr(batch_sampler, "__iter__"):
        raise TypeError("batch_sampler should have __getitem__ or __iter__ method.")
    if any(value is not None for value in (num_samples, shuffle, sampler, num_shards)):
        raise ValueError(
            "batch_sampler is mutually exclusive with num_samples, shuffle, num_shards, shard_id and sampler."
        )


def _numpy_name(dtype):
    """ "float32" of a Morel or NumPy dtype."""
    name = str(dtype) if "numpy" not in type(dtype).__module__ and not isinstance(dtype, type) else np.dtype(dtype).name
    return name.lower().rsplit(".", 1)[-1]


class PaddedDataset(GeneratorDataset):
    """Rows to fill a dataset up with, given as dictionaries.

    Args:
        padded_samples (list[dict]): the rows.
    """

    def __init__(self, padded_samples):
        if not isinstance(padded_samples, list):
            raise TypeError(
                f"Argument padded_samples with value {padded_samples} is not of type [<class 'list'>], but got "
                f"{type(padded_samples)}."
            )
        if not padded_samples:
            raise ValueError("padded_samples cannot be empty.")
        super().__init__([tuple(row.values()) for row in padded_samples], list(padded_samples[0]), shuffle=False)


# --- folders of images ---


def _check_folder(folder):
    if not isinstance(folder, (str, os.PathLike)):
        raise TypeError(
            f"Argument dataset_dir with value {folder} is not of type [<class 'str'>], but got {type(folder)}."
        )
    folder = os.fspath(folder)
    if not os.path.isdir(folder) or not os.access(folder, os.R_OK):
        raise ValueError(f"The folder {folder} does not exist or is not a directory or permission denied!")
    return folder


def _check_usage(usage, choices):
    if usage is None:
        return "all"
    if not isinstance(usage, str):
        raise TypeError(f"Argument usage with value {usage} is not of type [<class 'str'>], but got {type(usage)}.")
    if usage not in choices:
        raise ValueError(f"Input usage is not within the valid set of {choices}.")
    return usage


class MnistDataset(_ArraysDataset):
    """The MNIST handwritten digits: columns "image" (uint8 [28, 28, 1]) and "label" (uint32).

    Args:
        dataset_dir (str): folder with ``train-images-idx3-ubyte`` and so on, plain or ``.gz``.
        usage (str, optional): ``"train"``, ``"test"`` or ``"all"``. Default ``None``: all.
        num_samples (int, optional): how many images. Default: all.
        num_parallel_workers (int, optional): kept for scripts.
        shuffle (bool, optional): Default ``None``: shuffle.
        sampler (Union[Sampler, Iterable], optional): which images; not together with the four others.
        num_shards (int, optional): number of parts.
        shard_id (int, optional): which part.
        cache: not supported.

    Raises:
        ValueError: no such folder, wrong `usage`, conflicting arguments.
        RuntimeError: files are missing, damaged, or of another kind.
    """

    _parts = {"train": "train", "test": "t10k"}

    def __init__(
        self,
        dataset_dir,
        usage=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        self.dataset_dir = _check_folder(dataset_dir)
        self.usage = _check_usage(usage, ["train", "test", "all"])
        super().__init__(
            None,
            ["image", "label"],
            choose_sampler(sampler, num_samples, shuffle, num_shards, shard_id),
            num_parallel_workers,
            cache,
        )

    def _arrays(self):
        if self._known_arrays is None:
            usages = [self.usage] if self.usage != "all" else ["train", "test"]
            parts = [part for part in (self._read_part(usage) for usage in usages) if part is not None]
            if not parts:
                raise RuntimeError(
                    f"Invalid data, no {'/'.join(usages)} images and labels found in {self.dataset_dir}: "
                    f"expected files such as {self._parts[usages[0]]}-images-idx3-ubyte (or .gz)."
                )
            arrays = [np.concatenate(columns) if len(columns) > 1 else columns[0] for columns in zip(*parts)]
            self._known_arrays = arrays
        return self._known_arrays

    def _read_part(self, usage):
        paths = [self._find(f"{self._parts[usage]}-{kind}") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]
        if None in paths:
            if any(paths):
                raise RuntimeError(
                    f"Invalid data, {self.dataset_dir} has {usage} images without labels, or the other way round."
                )
            return None
        images, labels = (_read_idx(path) for path in paths)
        if images.dtype != np.uint8 or images.ndim != 3:
            raise RuntimeError(f"Invalid mnist file, {paths[0]} holds {images.dtype}{list(images.shape)}, not images.")
        if images.shape[1:] != (28, 28):
            raise RuntimeError(
                f"Invalid mnist file, shape of image in {paths[0]} should be (28, 28), but got {images.shape[1:]}."
            )
        if labels.dtype != np.uint8 or labels.shape != images.shape[:1]:
            raise RuntimeError(
                f"Invalid mnist file, number of labels in {paths[1]} ({labels.shape}) does not match the "
                f"{len(images)} images in {paths[0]}."
            )
        return images[..., None], labels.astype(np.uint32)

    def _find(self, name):
        for path in (os.path.join(self.dataset_dir, name), os.path.join(self.dataset_dir, name + ".gz")):
            if os.path.isfile(path):
                return path
        return None


class FashionMnistDataset(MnistDataset):
    """Fashion-MNIST, in the same form as MnistDataset: ten kinds of clothes."""


class KMnistDataset(MnistDataset):
    """Kuzushiji-MNIST, in the same form as MnistDataset: ten cursive Japanese characters."""


def _read_idx(path):
    try:
        from morel._core import read_idx

        return read_idx(path).asnumpy()
    except (ValueError, OSError) as error:
        raise RuntimeError(f"Invalid mnist file, {error}") from error


class Cifar10Dataset(_ArraysDataset):
    """CIFAR-10 in its binary form: columns "image" (uint8 [32, 32, 3]) and "label" (uint32).

    Args:
        dataset_dir (str): folder with ``data_batch_1.bin`` ... ``test_batch.bin``.
        usage (str, optional): ``"train"``, ``"test"`` or ``"all"``. Default ``None``: all.
        num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache: as in MnistDataset.
    """

    _files = {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]}
    _label_columns = ["label"]

    def __init__(
        self,
        dataset_dir,
        usage=None,
        num_samples=None,
        num_parallel_workers=None,
        shuffle=None,
        sampler=None,
        num_shards=None,
        shard_id=None,
        cache=None,
    ):
        self.dataset_dir = _check_folder(dataset_dir)
        self.usage = _check_usage(usage, ["train", "test", "all"])
        super().__init__(
            None,
            ["image", *self._label_columns],
            choose_sampler(sampler, num_samples, shuffle, num_shards, shard_id),
            num_parallel_workers,
            cache,
        )

    def _arrays(self):
        if self._known_arrays is None:
            usages = [self.usage] if self.usage != "all" else ["train", "test"]
            paths = [os.path.join(self.dataset_dir, name) for usage in usages for name in self._files[usage]]
            found = [path for path in paths if os.path.isfile(path)]
            if not found:
                raise RuntimeError(
                    f"Invalid data, none of {', '.join(map(os.path.basename, paths))} is in {self.dataset_dir}."
                )
            records = np.concatenate([self._records(path) for path in found])
            labels = len(self._label_columns)
            images = np.ascontiguousarray(records[:, labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
            columns = [records[:, k].astype(np.uint32) for k in reversed(range(labels))]
            self._known_arrays = [images, *columns]
        return self._known_arrays

    def _records(self, path):
        size = len(self._label_columns) + 3072
        content = np.fromfile(path, np.uint8)
        if len(content) == 0 or len(content) % size:
            raise RuntimeError(
                f"Invalid cifar file, {path}: {len(content)} bytes are no multiple of {size}; the file is "
                f"truncated at byte {len(content)} or of another kind."
            )
        return content.reshape(-1, size)


class Cifar100Dataset(Cifar10Dataset):
    """CIFAR-100 in its binary form: columns "image", "fine_label" and "coarse_label".

    Args:
        dataset_dir (str): folder with ``train.bin`` and ``test.bin``.
        usage, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache: as in Cifar10Dataset.
    """

    _files = {"train": ["train.bin"], "test": ["test.bin"]}
    _label_columns = ["fine_label", "coarse_label"]
