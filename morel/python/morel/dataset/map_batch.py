"""The operations that compute: map, filter, batch."""

import inspect
import itertools

import numpy as np

from morel.dataset import _pipeline as pipeline
from morel.dataset import config
from morel.dataset.datasets import Dataset, _as_list, _check_range, pipeline_missing

__all__ = ["MapDataset", "FilterDataset", "BatchDataset", "BatchInfo"]


class FilterDataset(Dataset):
    """See `Dataset.filter`."""

    def __init__(self, input_dataset, predicate, input_columns=None, num_parallel_workers=None):
        if not callable(predicate):
            raise TypeError("Predicate should be a Python function or a callable Python object.")
        super().__init__(input_dataset, num_parallel_workers)
        self.predicate = predicate
        self.input_columns = None if input_columns is None else _as_list(input_columns, "input_columns")

    def _count(self):
        return None

    def _rows(self, run):
        have = self.children[0]._columns()
        for column in self.input_columns or ():
            if column not in have:
                raise pipeline_missing(column, have)
        places = [have.index(column) for column in (self.input_columns or have)]
        for row in self._child_rows(run):
            try:
                keep = self.predicate(*(row[place] for place in places))
            except Exception as error:
                raise pipeline.user_error("the predicate of 'filter' failed", error) from error
            keep = np.asarray(keep.asnumpy() if hasattr(keep, "asnumpy") else keep)
            if keep.size != 1 or keep.dtype.kind not in "biu":
                raise pipeline.pipeline_error(
                    f"Invalid data, the predicate of 'filter' must return a bool, but got {keep!r}."
                )
            if keep:
                yield row


class MapDataset(Dataset):
    """See `Dataset.map`."""

    def __init__(
        self,
        input_dataset,
        operations,
        input_columns=None,
        output_columns=None,
        num_parallel_workers=None,
        python_multiprocessing=False,
        cache=None,
        callbacks=None,
        max_rowsize=None,
        offload=None,
    ):
        super().__init__(input_dataset, num_parallel_workers, cache)
        pipeline.check_max_rowsize(max_rowsize)
        if callbacks is not None:
            raise NotImplementedError("For 'map', 'callbacks' is not supported yet.")
        if not isinstance(operations, (list, tuple)):
            operations = [operations]
        for operation in operations:
            if not callable(operation):
                raise ValueError(
                    "Parameter operations's element of method map should be a python function or class method "
                    f"which should be callable, but got: {operation}. It doesn't need parentheses for python "
                    "function or class method."
                )
        if not operations:
            raise ValueError("operations list can not be empty.")
        if not isinstance(python_multiprocessing, bool):
            raise TypeError(
                f"Argument python_multiprocessing with value {python_multiprocessing} is not of type "
                f"[<class 'bool'>], but got {type(python_multiprocessing)}."
            )
        self.operations = _flatten(operations)
        self.input_columns = None if input_columns is None else _as_list(input_columns, "input_columns")
        self.output_columns = None if output_columns is None else _as_list(output_columns, "output_columns")
        self.python_multiprocessing = python_multiprocessing
        self._known_plan = None

    def _inputs(self):
        have = self.children[0]._columns()
        inputs = self.input_columns or have[:1]
        for column in inputs:
            if column not in have:
                raise pipeline_missing(column, have)
        return inputs

    def _columns(self):
        have, inputs = self.children[0]._columns(), self._inputs()
        outputs = self.output_columns or inputs
        if len(outputs) == len(inputs):  # in the places of the inputs
            names = dict(zip(inputs, outputs))
            columns = [column for column in (names.get(column, column) for column in have)]
            kept = [c for c, old in zip(columns, have) if old in names or c not in outputs]
            return kept
        return [*outputs, *(column for column in have if column not in inputs and column not in outputs)]

    # One array operation for all rows of a batch, where all operations have one.
    def _is_table(self):
        return (
            self.children[0]._is_table()
            and len(self._inputs()) == 1
            and len(self.output_columns or self._inputs()) == 1
            and all(hasattr(operation, "_apply_batch") for operation in self.operations)
        )

    def _fetch(self, ids):
        return self._arranged(self.children[0]._fetch(ids), self._compute_batch)

    def _compute_batch(self, column):
        for operation in self.operations:
            column = operation._apply_batch(column)
        return (column,)

    def _plan(self):
        """(places of the inputs in a row, names of the results, for each column of the new row its place in results + row)."""
        if self._known_plan is None:
            have, inputs = self.children[0]._columns(), self._inputs()
            outputs = self.output_columns or inputs
            places = [outputs.index(c) if c in outputs else len(outputs) + have.index(c) for c in self._columns()]
            self._known_plan = [have.index(column) for column in inputs], outputs, places
        return self._known_plan

    def _arranged(self, row, compute):
        """The new row: results of `compute(*inputs)` and the other columns, in the order of `_columns`."""
        inputs, outputs, places = self._plan()
        results = compute(*(row[place] for place in inputs))
        if len(results) != len(outputs):
            raise pipeline.pipeline_error(
                "Invalid columns, the number of columns returned in 'map' operations should match the number of "
                f"'output_columns', but got the number of columns returned in 'map' operations: {len(results)}, the number "
                f"of 'output_columns': {len(outputs)}."
            )
        both = (*results, *row)
        return tuple(both[place] for place in places)

    def _compute(self, *values):
        for operation in self.operations:
            try:
                values = pipeline.to_row(operation(*values))
            except Exception as error:
                name = getattr(operation, "__name__", type(operation).__name__)
                raise pipeline.user_error(f"map operation: [{name}] failed", error) from error
        return values

    def _rows(self, run):
        if self._is_table():
            yield from super()._rows(run)
            return
        seed, number = run.state(self, lambda: (config.effective_seed(), run.number()), "place")
        epoch = next(run.state(self, itertools.count, "passes"))

        def one(item):
            epoch, row_number, row = item
            pipeline.enter_row(seed, number, epoch, row_number)
            try:
                return self._arranged(row, self._compute)
            finally:
                pipeline.leave_row()

        items = ((epoch, row_number, row) for row_number, row in enumerate(self._child_rows(run)))
        # Threads only when asked for: they pay where a user's function waits or leaves the interpreter.
        yield from pipeline.parallel_map(
            run, self, one, items, self.num_parallel_workers or 1, self.python_multiprocessing
        )


def _flatten(operations):
    """The operations with every Compose replaced by its parts."""
    flat = []
    for operation in operations:
        parts = getattr(operation, "_parts", None)
        flat.extend(_flatten(parts) if parts else [operation])
    return flat


class BatchInfo:
    """Tells `batch` functions where they are."""

    def __init__(self, epoch=0, batch=0):
        self._epoch, self._batch = epoch, batch

    def get_epoch_num(self):
        """The number of the pass, from 0."""
        return self._epoch

    def get_batch_num(self):
        """The number of the batch in the pass, from 0."""
        return self._batch


class BatchDataset(Dataset):
    """See `Dataset.batch`."""

    def __init__(
        self,
        input_dataset,
        batch_size,
        drop_remainder=False,
        num_parallel_workers=None,
        per_batch_map=None,
        input_columns=None,
        output_columns=None,
        python_multiprocessing=False,
        max_rowsize=None,
        pad_info=None,
    ):
        super().__init__(input_dataset, num_parallel_workers)
        pipeline.check_max_rowsize(max_rowsize)
        if not callable(batch_size):
            _check_range(batch_size, 1, "batch_size")
        elif len(inspect.signature(batch_size).parameters) != 1:
            raise ValueError("callable batch_size should take one parameter (BatchInfo).")
        if not isinstance(drop_remainder, bool):
            raise TypeError(
                f"Argument drop_remainder with value {drop_remainder} is not of type [<class 'bool'>], but got "
                f"{type(drop_remainder)}."
            )
        if per_batch_map is None and (input_columns is not None or output_columns is not None):
            raise ValueError("input_columns and output_columns can be specified only when per_batch_map is specified.")
        if per_batch_map is not None and not callable(per_batch_map):
            raise TypeError("per_batch_map should be a Python function or a callable Python object.")
        if pad_info is not None and not isinstance(pad_info, dict):
            raise TypeError(
                f"Argument pad_info with value {pad_info} is not of type [<class 'dict'>], but got {type(pad_info)}."
            )
        self.batch_size, self.drop_remainder, self.per_batch_map = batch_size, drop_remainder, per_batch_map
        self.input_columns = None if input_columns is None else _as_list(input_columns, "input_columns")
        self.output_columns = None if output_columns is None else _as_list(output_columns, "output_columns")
        self.pad_info = pad_info

    def _inputs(self):
        have = self.children[0]._columns()
        for column in self.input_columns or ():
            if column not in have:
                raise pipeline.pipeline_error(
                    f"Invalid parameter, '{column}' of 'input_columns' doesn't exist in {have}."
                )
        for column in self.output_columns or ():
            if column in have and column not in (self.input_columns or have):
                raise pipeline.pipeline_error(
                    f"Invalid parameter, columns that are not involved in 'per_batch_map' should not be in output_columns, "
                    f"but got '{column}'."
                )
        return self.input_columns or have

    def _columns(self):
        have, inputs = self.children[0]._columns(), self._inputs()
        outputs = self.output_columns or inputs
        if len(outputs) == len(inputs):
            names = dict(zip(inputs, outputs))
            return [names.get(column, column) for column in have]
        return [*outputs, *(column for column in have if column not in inputs)]

    def get_batch_size(self):
        return -1 if callable(self.batch_size) else self.batch_size

    def _count(self):
        size = super()._count()
        if size is None or size < 0 or callable(self.batch_size):
            return None if callable(self.batch_size) else size
        return size // self.batch_size if self.drop_remainder else -(-size // self.batch_size)

    def _is_fresh(self):
        return True  # stacking copies

    def _rows(self, run):
        child = self.children[0]
        plain = not callable(self.batch_size) and self.per_batch_map is None and self.pad_info is None
        if plain and child._is_table():
            yield from self._table_batches(child, run)
            return
        rows = child._rows(run)
        for number in itertools.count():
            info = BatchInfo(run.epoch, number)
            size = self.batch_size(info) if callable(self.batch_size) else self.batch_size
            if not isinstance(size, int) or size < 1:
                raise pipeline.pipeline_error(
                    f"Invalid batch_size function, it must return a positive int, but got {size}."
                )
            group = list(itertools.islice(rows, size))
            if not group or (len(group) < size and self.drop_remainder):
                return
            yield self._combine(group, info)

    def _table_batches(self, child, run):
        ids = child._ids(run)
        end = len(ids) // self.batch_size * self.batch_size if self.drop_remainder else len(ids)
        for begin in range(0, end, self.batch_size):
            yield tuple(child._fetch(ids[begin : min(begin + self.batch_size, end)]))

    def _combine(self, group, info):
        """One batch of the rows in `group`."""
        columns = dict(zip(self.children[0]._columns(), (list(values) for values in zip(*group))))
        if self.per_batch_map is not None:
            columns = self._mapped(columns, info, len(group))
        names = self._columns()
        if self.pad_info is not None:
            for name in self.pad_info or names:
                if name not in columns:
                    raise pipeline_missing(name, names)
                columns[name] = _padded(columns[name], self.pad_info.get(name))
        return tuple(
            pipeline.stack(columns[name], name) if isinstance(columns[name], list) else columns[name] for name in names
        )

    def _mapped(self, columns, info, count):
        """The columns after `per_batch_map`: lists of rows, or finished values."""
        inputs, outputs = self._inputs(), self.output_columns or self._inputs()
        try:
            results = self.per_batch_map(*(columns[column] for column in inputs), info)
            results = results if isinstance(results, tuple) else (results,)
            results = [
                [pipeline.to_array(value) for value in column]
                if isinstance(column, list)
                else pipeline.to_array(column)
                for column in results
            ]
        except Exception as error:
            raise pipeline.user_error("per_batch_map failed", error) from error
        if len(results) != len(outputs):
            raise pipeline.pipeline_error(
                f"Invalid columns, the number of columns returned in 'per_batch_map' function should be {len(outputs)}, "
                f"but got: {len(results)}."
            )
        for column in results:
            if isinstance(column, list) and len(column) != count:
                raise pipeline.pipeline_error(
                    f"Invalid data, expects: {count} rows returned from 'per_batch_map', got: {len(column)}."
                )
        kept = {name: column for name, column in columns.items() if name not in inputs}
        return {**kept, **dict(zip(outputs, results))}


def _padded(values, info):
    shape, fill = info if info is not None else (None, 0)
    shape = list(shape) if shape is not None else [None] * values[0].ndim
    sizes = [max(value.shape[axis] for value in values) if size is None else size for axis, size in enumerate(shape)]
    return [pipeline.pad_to(value, sizes, 0 if fill is None else fill) for value in values]
