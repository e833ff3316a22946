"""Iterators over a dataset, pass after pass."""

import itertools

from morel.dataset import _pipeline as pipeline

__all__ = ["Iterator", "DictIterator", "TupleIterator"]


class Iterator:
    """Runs through a dataset once per ``for``, up to `num_epochs` times."""

    def __init__(self, dataset, columns=None, num_epochs=-1, output_numpy=False, do_copy=False):
        if not isinstance(num_epochs, int) or isinstance(num_epochs, bool):
            raise TypeError(
                f"Argument num_epochs with value {num_epochs} is not of type [<class 'int'>], but got "
                f"{type(num_epochs)}."
            )
        if num_epochs != -1 and num_epochs <= 0:
            raise ValueError(
                f"num_epochs should be either -1 or within the required interval of [1, 2147483647], got {num_epochs}."
            )
        for value, name in ((output_numpy, "output_numpy"), (do_copy, "do_copy")):
            if not isinstance(value, bool):
                raise TypeError(
                    f"Argument {name} with value {value} is not of type [<class 'bool'>], but got {type(value)}."
                )
        self.dataset = dataset.project(columns) if columns else dataset
        self._num_epochs = num_epochs
        self._output_numpy = output_numpy
        self._columns = self.dataset.get_col_names()
        self._fresh = self.dataset._is_fresh()
        self._run = pipeline.Run()
        self._rows = None
        self._skip = dataset.get_init_step()

    def __iter__(self):
        return self

    def __next__(self):
        if self._run is None:
            # The class and text of MindSpore's error.
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '_runtime_context': it was stopped.")
        if self._rows is None:
            self._rows = self._new_pass()
        try:
            row = next(self._rows)
        except StopIteration:
            self._rows = None
            self._run.epoch += 1
            raise
        if not self._output_numpy:
            row = [pipeline.to_tensor(value, self._fresh) for value in row]
        return self._arrange(row)

    def _new_pass(self):
        if 0 <= self._num_epochs <= self._run.epoch:
            raise RuntimeError(
                "EOF buffer encountered. User tries to fetch data beyond the specified number of epochs."
            )
        rows = self.dataset._rows(self._run)
        if not self._skip:
            return rows
        # Resuming: whole passes are run through and left out, then the first rows of one.
        while self._skip:
            count = sum(1 for _ in itertools.islice(rows, self._skip))
            self._skip -= count
            first = next(rows, None)
            if first is not None:
                self._skip = 0
                return itertools.chain([first], rows)
            if count == 0:
                break
            self._run.epoch += 1
            rows = self.dataset._rows(self._run)
        return rows

    def _arrange(self, row):
        raise NotImplementedError

    def stop(self):
        """Ends the workers; the iterator cannot be used any more."""
        if self._run is not None:
            self._rows = None
            self._run.close()
            self._run = None

    def release(self):
        """The same as `stop`."""
        self.stop()


class DictIterator(Iterator):
    """Rows as dictionaries from column name to value."""

    def _arrange(self, row):
        return dict(zip(self._columns, row))


class TupleIterator(Iterator):
    """Rows as lists."""

    def _arrange(self, row):
        return list(row)


def _cleanup():
    """Kept for scripts: iterators end their workers themselves."""


def _unset_iterator_cleanup():
    """Kept for scripts."""
