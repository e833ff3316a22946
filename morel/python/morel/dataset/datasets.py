"""Dataset and its operations.

A pipeline is a tree of datasets. Each can run in two ways:
- `_rows(run)` yields the rows of one pass, tuples of arrays, and works for everything;
- where `_is_table()` holds, `_ids(run)` gives the row numbers of one pass and `_fetch(ids)` the columns of those rows, each as
  one array. `batch` and the iterators then handle whole arrays instead of rows.
"""

import copy
import itertools

import numpy as np

from morel.dataset import _pipeline as pipeline
from morel.dataset import _random, config
from morel.dataset.iterators import DictIterator, TupleIterator

__all__ = [
    "Dataset",
    "MappableDataset",
    "zip",
    "ShuffleDataset",
    "RepeatDataset",
    "TakeDataset",
    "SkipDataset",
    "ZipDataset",
    "ConcatDataset",
    "ProjectDataset",
    "RenameDataset",
]

_builtin_zip = __builtins__["zip"] if isinstance(__builtins__, dict) else __builtins__.zip
INT32_MAX = 2147483647


def _check_range(value, low, name, extra=()):
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"Argument {name} with value {value} is not of type [<class 'int'>], but got {type(value)}.")
    if value not in extra and not low <= value <= INT32_MAX:
        raise ValueError(f"Input {name} is not within the required interval of [{low}, 2147483647].")


def _as_list(columns, name):
    if isinstance(columns, str):
        columns = [columns]
    if not isinstance(columns, (list, tuple)):
        raise TypeError(
            f"Argument {name} with value {columns} is not of type [<class 'str'>, <class 'list'>], but got "
            f"{type(columns)}."
        )
    for column in columns:
        if not isinstance(column, str):
            raise TypeError(
                f"Argument {name} with value {column} is not of type [<class 'str'>], but got {type(column)}."
            )
        if not column:
            raise ValueError(f"{name} should not be an empty string.")
    if len(set(columns)) != len(columns):
        raise ValueError(f"Every column name should not be same with others in {name}.")
    return list(columns)


def _check_workers(num_parallel_workers):
    if num_parallel_workers is not None:
        _check_range(num_parallel_workers, 1, "num_parallel_workers")
    return num_parallel_workers


class Dataset:
    """Base of all datasets: the operations that every one has, and the iterators.

    Args:
        children (Union[Dataset, list[Dataset]], optional): where the rows come from.
        num_parallel_workers (int, optional): threads for this operation.
        cache: not supported.
    """

    def __init__(self, children=None, num_parallel_workers=None, cache=None):
        if cache is not None:
            raise NotImplementedError(f"For '{type(self).__name__}', 'cache' is not supported yet; keep it None.")
        self.children = (
            list(children) if isinstance(children, (list, tuple)) else [children] if children is not None else []
        )
        self.num_parallel_workers = _check_workers(num_parallel_workers)
        self._size = None
        self._init_step = 0

    # --- what subclasses define ---

    def _columns(self):
        return self.children[0]._columns()

    def _rows(self, run):
        """The rows of one pass."""
        if not self._is_table():
            raise NotImplementedError(f"For '{type(self).__name__}', '_rows' must be defined.")
        ids = self._ids(run)
        for begin in range(0, len(ids), 64):
            columns = self._fetch(ids[begin : begin + 64])
            yield from _builtin_zip(*([np.asarray(value) for value in column] for column in columns))

    def _is_table(self):
        return False

    def _is_fresh(self):
        """Whether the arrays that leave are nobody else's, so that tensors may take their memory."""
        return self._is_table()

    def _ids(self, run):
        return self.children[0]._ids(run)

    def _fetch(self, ids):
        return self.children[0]._fetch(ids)

    def _count(self):
        """The number of rows of one pass, `None` when only running tells."""
        return self.children[0]._count()

    def _child_rows(self, run):
        return self.children[0]._rows(run)

    # --- operations ---

    def batch(self, batch_size, drop_remainder=False, num_parallel_workers=None, **kwargs):
        """Combines `batch_size` rows into one.

        Args:
            batch_size (Union[int, Callable]): rows per batch, or a function of a BatchInfo that says it.
            drop_remainder (bool): leave out a last batch that is smaller. Default ``False``.
            num_parallel_workers (int, optional): threads for `per_batch_map`.
            kwargs: `per_batch_map` (Callable: columns as lists, then a BatchInfo -> tuple of lists), `input_columns`,
                `output_columns`, `python_multiprocessing`, `max_rowsize`.
        """
        from morel.dataset.map_batch import BatchDataset

        return BatchDataset(self, batch_size, drop_remainder, num_parallel_workers, **kwargs)

    def padded_batch(self, batch_size, drop_remainder=False, num_parallel_workers=None, pad_info=None):
        """Like `batch`, and fills arrays of different shapes up.

        Args:
            pad_info (dict, optional): column -> (shape or ``None`` for the largest in the batch, value); ``{}`` or ``None``
                for all columns with zeros.
        """
        from morel.dataset.map_batch import BatchDataset

        return BatchDataset(self, batch_size, drop_remainder, num_parallel_workers, pad_info=pad_info or {})

    def map(self, operations, input_columns=None, output_columns=None, num_parallel_workers=None, **kwargs):
        """Applies functions or transforms to columns, row by row.

        Args:
            operations (Union[Callable, list[Callable]]): applied one after the other.
            input_columns (Union[str, list[str]], optional): their inputs. Default: the first column.
            output_columns (Union[str, list[str]], optional): names of the results. Default: those of the inputs.
            num_parallel_workers (int, optional): threads, if any operation is a user's function.
            kwargs: `python_multiprocessing` (processes instead of threads), `max_rowsize`, `offload`, `callbacks`, `cache`.
        """
        from morel.dataset.map_batch import MapDataset

        return MapDataset(self, operations, input_columns, output_columns, num_parallel_workers, **kwargs)

    def shuffle(self, buffer_size):
        """Shuffles through a buffer of `buffer_size` rows (2 or more)."""
        return ShuffleDataset(self, buffer_size)

    def repeat(self, count=None):
        """Passes over the rows `count` times; ``None`` and -1: without end."""
        return RepeatDataset(self, count)

    def take(self, count=-1):
        """The first `count` rows; -1: all."""
        return TakeDataset(self, count)

    def skip(self, count):
        """All but the first `count` rows."""
        return SkipDataset(self, count)

    def zip(self, datasets):
        """Puts the columns of several datasets side by side."""
        if isinstance(datasets, (list, tuple)):
            return ZipDataset((self, *datasets))
        if isinstance(datasets, Dataset):
            return ZipDataset((self, datasets))
        raise TypeError(f"Invalid datasets, expected Dataset object or tuple of Dataset, but got {datasets}!")

    def concat(self, datasets):
        """The rows of this dataset, then those of others with the same columns."""
        if isinstance(datasets, Dataset):
            datasets = [datasets]
        if not isinstance(datasets, (list, tuple)):
            raise TypeError(f"Invalid datasets, expected Dataset object or list of Dataset, but got {datasets}!")
        return ConcatDataset([self, *datasets])

    def __add__(self, datasets):
        return self.concat(datasets)

    def project(self, columns):
        """Only these columns, in this order."""
        return ProjectDataset(self, columns)

    def rename(self, input_columns, output_columns):
        """Gives columns other names."""
        return RenameDataset(self, input_columns, output_columns)

    def filter(self, predicate, input_columns=None, num_parallel_workers=None):
        """Keeps the rows for which `predicate(*columns)` is true."""
        from morel.dataset.map_batch import FilterDataset

        return FilterDataset(self, predicate, input_columns, num_parallel_workers)

    def apply(self, apply_func):
        """apply_func(self), a dataset."""
        if not callable(apply_func):
            raise TypeError("apply_func must be a function.")
        result = apply_func(self)
        if not isinstance(result, Dataset):
            raise TypeError("apply_func must return a dataset.")
        return result

    def split(self, sizes, randomize=True):
        """Cuts the rows into datasets.

        Args:
            sizes (Union[list[int], list[float]]): rows of each part, or fractions that sum to 1.
            randomize (bool): shuffle before cutting. Default ``True``.
        """
        total = self.get_dataset_size()
        sizes = _split_sizes(sizes, total)
        if not isinstance(randomize, bool):
            raise TypeError(
                f"Argument randomize with value {randomize} is not of type [<class 'bool'>], but got {type(randomize)}."
            )
        order = np.arange(total)
        if randomize:
            order = _random.shuffled(order, config.effective_seed())
        ends = list(itertools.accumulate(sizes))
        return tuple(_RowsDataset(self, order[end - size : end]) for size, end in _builtin_zip(sizes, ends))

    # --- iterators ---

    def create_dict_iterator(self, num_epochs=-1, output_numpy=False, do_copy=False):
        """Iterates over rows as dictionaries.

        Args:
            num_epochs (int): how often the iterator may be run through; -1: without limit.
            output_numpy (bool): NumPy arrays instead of Tensors. Default ``False``.
            do_copy (bool): kept for scripts; memory is never shared with a source.
        """
        return DictIterator(self, None, num_epochs, output_numpy, do_copy)

    def create_tuple_iterator(self, columns=None, num_epochs=-1, output_numpy=False, do_copy=False):
        """Iterates over rows as lists.

        Args:
            columns (list[str], optional): only these, in this order. Default: all.
            num_epochs (int): how often the iterator may be run through; -1: without limit.
            output_numpy (bool): NumPy arrays instead of Tensors. Default ``False``.
            do_copy (bool): kept for scripts.
        """
        return TupleIterator(self, columns, num_epochs, output_numpy, do_copy)

    def __iter__(self):
        return self.create_tuple_iterator(num_epochs=1)

    def __len__(self):
        return self.get_dataset_size()

    # --- facts ---

    def get_dataset_size(self):
        """The number of rows (batches) of one pass."""
        if self._size is None:
            self._size = self._count()
            if self._size is None:
                self._size = sum(1 for _ in self._rows(pipeline.Run()))
        return self._size

    def _first_row(self):
        for row in self._rows(pipeline.Run()):
            return row
        raise RuntimeError("The dataset has no rows, so that the shapes and types of its columns are unknown.")

    def output_shapes(self, estimate=False):
        """The shape of each column, a list of lists; with `estimate`, ``None`` for sizes that change from row to row."""
        if not estimate:
            return [list(value.shape) for value in self._first_row()]
        shapes = None
        for row in self._rows(pipeline.Run()):
            new = [list(value.shape) for value in row]
            shapes = (
                new
                if shapes is None
                else [[a if a == b else None for a, b in _builtin_zip(*pair)] for pair in _builtin_zip(shapes, new)]
            )
        return shapes or []

    def output_types(self):
        """The NumPy type of each column."""
        return [np.dtype("S") if value.dtype.kind == "S" else value.dtype for value in self._first_row()]

    def get_col_names(self):
        """The names of the columns."""
        return list(self._columns())

    def get_batch_size(self):
        """Rows per batch, 1 without `batch`."""
        return self.children[0].get_batch_size() if self.children else 1

    def get_repeat_count(self):
        """Product of the counts of `repeat`, 1 without."""
        return self.children[0].get_repeat_count() if self.children else 1

    def num_classes(self):
        """The number of classes, where the source knows it."""
        return self.children[0].num_classes() if self.children else None

    def get_class_indexing(self):
        """Class name -> index, where the source knows it."""
        return self.children[0].get_class_indexing() if self.children else {}

    def is_shuffled(self):
        """Whether any part of the pipeline shuffles."""
        return any(child.is_shuffled() for child in self.children)

    def is_sharded(self):
        """Whether any part of the pipeline gives one shard of several."""
        return any(child.is_sharded() for child in self.children)

    def is_sync(self):
        """Whether any part waits for a condition: never."""
        return False

    def set_init_step(self, init_step):
        """Lets the first pass of the next iterator start at this row (batch), to resume a training.

        Args:
            init_step (int): rows (batches) to leave out, counted over passes.
        """
        _check_range(init_step, 0, "init_step")
        self._init_step = init_step

    def get_init_step(self):
        """What `set_init_step` set."""
        return self._init_step

    def reset(self):
        """For iterators of devices; a new pass starts anew here."""

    def copy_batch_size(self, value):
        """Kept for scripts; `get_batch_size` looks the size up."""

    @property
    def input_indexs(self):
        """Which inputs of a network the columns are, 0 for the first."""
        own = getattr(self, "_input_indexs", ())
        return own if own != () or not self.children else self.children[0].input_indexs

    @input_indexs.setter
    def input_indexs(self, value):
        self._input_indexs = value

    def iterator_bootstrap(self):
        """Kept for scripts; nothing has to be prepared."""


def _later(name):
    def method(self, *args, **kwargs):
        raise NotImplementedError(
            f"For 'Dataset', '{name}' is not supported yet; use map, batch, padded_batch, shuffle, "
            f"repeat, filter, take, skip, zip, concat, project, rename, split."
        )

    method.__name__ = name
    method.__doc__ = "Not supported yet."
    return method


for _name in (
    "bucket_batch_by_length",
    "flat_map",
    "device_que",
    "sync_wait",
    "sync_update",
    "disable_sync",
    "save",
    "to_json",
    "build_vocab",
    "build_sentencepiece_vocab",
    "send",
    "recv",
):
    setattr(Dataset, _name, _later(_name))


def _split_sizes(sizes, total):
    if not isinstance(sizes, list):
        raise TypeError("sizes must be a list.")
    if not sizes:
        raise ValueError("sizes cannot be empty.")
    if total is None or total <= 0:
        raise RuntimeError("dataset_size is unknown, unable to split.")
    if all(isinstance(size, int) for size in sizes):
        if any(size <= 0 for size in sizes):
            raise ValueError("there should be no negative or 0 numbers.")
        if sum(sizes) != total:
            raise RuntimeError(f"Sum of split sizes {sum(sizes)} is not equal to dataset size {total}.")
        return sizes
    if not all(isinstance(size, float) for size in sizes):
        raise ValueError("sizes should be list of int or list of float.")
    if any(not 0 < size <= 1 for size in sizes):
        raise ValueError("there should be no numbers outside the range (0, 1].")
    if abs(sum(sizes) - 1) > 1e-6:
        raise ValueError("sum of percentages is not 1.")
    rows = [round(size * total) for size in sizes]
    if any(count == 0 for count in rows):
        raise RuntimeError("percentage is too small.")
    difference = total - sum(rows)
    for idx, count in enumerate(rows):  # rounding: the first parts that can give or take a row do
        if difference == 0:
            break
        step = difference if difference > 0 else max(difference, 1 - count)
        rows[idx] += step
        difference -= step
    return rows


class MappableDataset(Dataset):
    """A source whose rows have numbers, so that a sampler can choose among them."""

    def __init__(self, sampler, num_parallel_workers=None, cache=None):
        super().__init__(None, num_parallel_workers, cache)
        self.sampler = sampler

    def _source_size(self):
        raise NotImplementedError

    def _labels(self, column):
        return None

    def _is_table(self):
        return True

    def _ids(self, run):
        return next(run.state(self, lambda: self.sampler.orders(self._source_size(), self), "order"))

    def _count(self):
        return len(next(self.sampler.orders(self._source_size(), self)))

    def add_sampler(self, new_sampler):
        """Puts `new_sampler` in front of the present one, which chooses among what it gives."""
        if new_sampler is not None:
            new_sampler.add_child(self.sampler)
            self.sampler = new_sampler

    def use_sampler(self, new_sampler):
        """Replaces the sampler."""
        if new_sampler is None:
            raise TypeError("Input sampler can not be None.")
        self.sampler = new_sampler

    def is_shuffled(self):
        return self.sampler.is_shuffled()

    def is_sharded(self):
        return self.sampler.is_sharded()


class _RowsDataset(Dataset):
    """Some rows, by number, of another dataset (a part of a split)."""

    def __init__(self, child, numbers):
        super().__init__(child)
        self.numbers = numbers

    def _count(self):
        return len(self.numbers)

    def _is_table(self):
        return self.children[0]._is_table()

    def _ids(self, run):
        return self.children[0]._ids(run)[self.numbers]

    def _rows(self, run):
        if self._is_table():
            yield from super()._rows(run)
            return
        rows = list(self._child_rows(run))
        for number in self.numbers:
            yield rows[number]


class _Reordering(Dataset):
    """An operation that only chooses and orders rows: `_choose` works on row numbers as on rows."""

    def _is_table(self):
        return self.children[0]._is_table()

    def _is_fresh(self):
        return self.children[0]._is_fresh()

    def _ids(self, run):
        return np.fromiter(self._choose(iter(self.children[0]._ids(run).tolist()), run), np.int64)

    def _rows(self, run):
        if self._is_table():
            return super()._rows(run)
        return self._choose(self._child_rows(run), run)

    def _choose(self, rows, run):
        raise NotImplementedError


class ShuffleDataset(_Reordering):
    """See `Dataset.shuffle`."""

    def __init__(self, input_dataset, buffer_size):
        _check_range(buffer_size, 2, "buffer_size")
        super().__init__(input_dataset)
        self.buffer_size = buffer_size

    def is_shuffled(self):
        return True

    def _choose(self, rows, run):
        draw = run.state(self, lambda: _random.MersenneTwister64(config.effective_seed()))
        return _random.buffer_shuffled(rows, self.buffer_size, draw)


class TakeDataset(_Reordering):
    """See `Dataset.take`."""

    def __init__(self, input_dataset, count):
        if not isinstance(count, int) or isinstance(count, bool):
            raise TypeError(f"Argument count with value {count} is not of type [<class 'int'>], but got {type(count)}.")
        if count != -1 and not 0 < count <= INT32_MAX:
            raise ValueError(
                f"count should be either -1 or within the required interval of (0, 2147483647], got {count}."
            )
        super().__init__(input_dataset)
        self.count = count

    def _count(self):
        size = super()._count()
        return size if self.count < 0 or size is None else self.count if size < 0 else min(size, self.count)

    def _choose(self, rows, run):
        return rows if self.count < 0 else itertools.islice(rows, self.count)


class SkipDataset(_Reordering):
    """See `Dataset.skip`."""

    def __init__(self, input_dataset, count):
        _check_range(count, 0, "count")
        super().__init__(input_dataset)
        self.count = count

    def _count(self):
        size = super()._count()
        return size if size is None or size < 0 else max(size - self.count, 0)

    def _choose(self, rows, run):
        return itertools.islice(rows, self.count, None)


class RepeatDataset(Dataset):
    """See `Dataset.repeat`."""

    def __init__(self, input_dataset, count):
        if count is None:
            count = -1
        if not isinstance(count, int) or isinstance(count, bool):
            raise TypeError(f"Argument count with value {count} is not of type [<class 'int'>], but got {type(count)}.")
        if count != -1 and not 0 < count <= INT32_MAX:
            raise ValueError(
                f"count should be either -1 or within the required interval of [1, 2147483647], got {count}."
            )
        super().__init__(input_dataset)
        self.count = count

    def _count(self):
        if self.count < 0:
            return -1
        size = super()._count()
        return None if size is None else size * self.count

    def get_repeat_count(self):
        return self.count * super().get_repeat_count()

    def _is_table(self):
        return self.count > 0 and self.children[0]._is_table()

    def _is_fresh(self):
        return self.children[0]._is_fresh()

    def _ids(self, run):
        return np.concatenate([self.children[0]._ids(run) for _ in range(self.count)])

    def _rows(self, run):
        if self._is_table():
            yield from super()._rows(run)
            return
        for _ in range(self.count) if self.count > 0 else itertools.count():
            empty = True
            for row in self._child_rows(run):
                empty = False
                yield row
            if empty:
                return


class ProjectDataset(Dataset):
    """See `Dataset.project`."""

    def __init__(self, input_dataset, columns):
        super().__init__(input_dataset)
        self.columns = _as_list(columns, "columns")

    def _columns(self):
        return self.columns

    def _places(self):
        have = self.children[0]._columns()
        for column in self.columns:
            if column not in have:
                raise pipeline_missing(column, have)
        return [have.index(column) for column in self.columns]

    def _is_table(self):
        return self.children[0]._is_table()

    def _is_fresh(self):
        return self.children[0]._is_fresh()

    def _fetch(self, ids):
        columns = self.children[0]._fetch(ids)
        return [columns[place] for place in self._places()]

    def _rows(self, run):
        places = self._places()
        for row in self._child_rows(run):
            yield tuple(row[place] for place in places)


def pipeline_missing(column, have):
    """The error for a column that is not there."""
    return pipeline.pipeline_error(
        f"Invalid parameter, input column name: {column} doesn't exist in the dataset columns {list(have)}."
    )


class RenameDataset(Dataset):
    """See `Dataset.rename`."""

    def __init__(self, input_dataset, input_columns, output_columns):
        super().__init__(input_dataset)
        self.input_columns = _as_list(input_columns, "input_columns")
        self.output_columns = _as_list(output_columns, "output_columns")
        if len(self.input_columns) != len(self.output_columns):
            raise ValueError(
                f"Number of column in input_columns and output_columns is not equal: {input_columns}, {output_columns}."
            )

    def _columns(self):
        have = list(self.children[0]._columns())
        for old, new in _builtin_zip(self.input_columns, self.output_columns):
            if old not in self.children[0]._columns():
                raise pipeline_missing(old, self.children[0]._columns())
            have[self.children[0]._columns().index(old)] = new
        if len(set(have)) != len(have):
            raise pipeline.pipeline_error(f"Invalid column, renaming gives the same name twice: {have}.")
        return have

    def _is_table(self):
        return self.children[0]._is_table()

    def _is_fresh(self):
        return self.children[0]._is_fresh()

    def _rows(self, run):
        self._columns()
        return self._child_rows(run)


class ZipDataset(Dataset):
    """See `zip`."""

    def __init__(self, datasets):
        for dataset in datasets:
            if not isinstance(dataset, Dataset):
                raise TypeError(f"Invalid datasets, expected Dataset object in tuple, but got {type(dataset)}!")
        super().__init__(list(datasets))

    def _columns(self):
        have = [column for child in self.children for column in child._columns()]
        for column in have:
            if have.count(column) > 1:
                raise pipeline.pipeline_error(
                    f"Invalid data, duplicate column {column} already exists when zipping datasets."
                )
        return have

    def _count(self):
        sizes = [child._count() for child in self.children]
        if None in sizes:
            return None
        finite = [size for size in sizes if size >= 0]
        return min(finite) if finite else -1

    def _rows(self, run):
        self._columns()
        for rows in _builtin_zip(*(child._rows(run) for child in self.children)):
            yield tuple(itertools.chain.from_iterable(rows))


class ConcatDataset(Dataset):
    """See `Dataset.concat`."""

    def __init__(self, datasets):
        for dataset in datasets:
            if not isinstance(dataset, Dataset):
                raise TypeError(f"Invalid dataset, expected Dataset object, but got {type(dataset)}!")
        super().__init__(list(datasets))
        self._sampler = None

    def _total(self):
        sizes = [child.get_dataset_size() for child in self.children]
        return -1 if -1 in sizes else sum(sizes)

    def _count(self):
        return self._total() if self._sampler is None else len(next(self._sampler.orders(self._total())))

    def use_sampler(self, sampler):
        """Chooses among the rows of all datasets; the rows of a pass are then held in memory."""
        from morel.dataset.samplers import BuiltinSampler, DistributedSampler

        if not isinstance(sampler, BuiltinSampler):
            raise TypeError(f"The parameter 'sampler' must be a sampler, but got {type(sampler)}.")
        if isinstance(sampler, DistributedSampler) and sampler.offset < 0:  # parts are not filled up here
            sampler = copy.copy(sampler).set_offset(0)
        self._sampler, self._size = sampler, None

    def _all_rows(self, run):
        names, types = self.children[0]._columns(), None
        for child in self.children:
            if list(child._columns()) != list(names):
                raise pipeline.pipeline_error(
                    f"Invalid data, columns of the datasets to concatenate differ: {list(names)} and "
                    f"{list(child._columns())}."
                )
            for number, row in enumerate(child._rows(run)):
                if number == 0:
                    found = [
                        (value.dtype.kind, value.dtype.name, value.ndim) for value in row if not isinstance(value, dict)
                    ]
                    types = types or found
                    if found != types and "U" not in (kind for kind, _, _ in found):
                        raise pipeline.pipeline_error(
                            f"Invalid data, types or ranks of the datasets to concatenate differ: {types} and {found}."
                        )
                yield row

    def _rows(self, run):
        rows = self._all_rows(run)
        if self._sampler is None:
            yield from rows
            return
        orders = run.state(self, lambda: self._sampler.orders(self._total()), "order")
        rows = list(rows)
        for number in next(orders):
            yield rows[number]


def zip(datasets):  # noqa: A001 - MindSpore's public name
    """Puts the columns of several datasets side by side; the shortest one ends it.

    Args:
        datasets (tuple[Dataset]): at least two, with different column names.
    """
    if not isinstance(datasets, (list, tuple)):
        raise TypeError(
            f"Argument datasets with value {datasets} is not of type [<class 'tuple'>, <class 'list'>], but got "
            f"{type(datasets)}."
        )
    if len(datasets) <= 1:
        raise ValueError("Can't zip empty or just one dataset!")
    return ZipDataset(tuple(datasets))
