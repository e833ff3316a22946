"""Containers of cells: sequence, list and dict."""

from collections import OrderedDict

from morel.nn.cell import Cell

__all__ = ["SequentialCell", "CellList", "CellDict"]


def _check_index(index, size, cls, allow_slice=False):
    """An index into a container of `size` cells, made non-negative."""
    if isinstance(index, bool) or not isinstance(index, int):
        wanted = "int or slice" if allow_slice else "int"
        raise TypeError(f"For '{cls}', the type of 'index' must be {wanted}, but got {type(index).__name__}.")
    if not -size <= index < size:
        raise IndexError(
            f"For '{cls}', the value of 'index' must be a number in range [{-size}, {size}), but got {index}."
        )
    return index % size


def _check_cell(cell, cls):
    if not isinstance(cell, Cell):
        raise TypeError(f"For '{cls}', each cell must be subclass of Cell, but got {type(cell).__name__}.")
    return cell


class _Ordered(Cell):
    """Common part of the containers that number their cells."""

    def _replace_cells(self, cells):
        """Makes `cells` the children "0", "1", ... and names their parameters accordingly."""
        self._cells.clear()
        for number, cell in enumerate(cells):
            self._adopt(str(number), cell)

    def _adopt(self, key, cell):
        if self._auto_prefix and cell is not None:
            cell.update_parameters_name(key + ".")
        self._cells[key] = cell

    def __len__(self):
        return len(self._cells)

    def __iter__(self):
        return iter(self._cells.values())

    def __setitem__(self, index, cell):
        place = _check_index(index, len(self), self.cls_name)
        self._adopt(list(self._cells)[place], _check_cell(cell, self.cls_name))
        self._changed()

    def __delitem__(self, index):
        cells = list(self._cells.values())
        if isinstance(index, slice):
            del cells[index]
        else:
            del cells[_check_index(index, len(cells), self.cls_name, allow_slice=True)]
        self._replace_cells(cells)
        self._changed()

    def append(self, cell):
        """Adds a cell at the end and returns the container."""
        self._adopt(str(len(self)), _check_cell(cell, self.cls_name))
        self._changed()
        return self

    def _changed(self):
        """Called after every change of the children."""


class SequentialCell(_Ordered):
    """Runs its cells one after the other; each gets the output of the one before.

    Args:
        args (Union[Cell..., list[Cell], OrderedDict]): the cells; an OrderedDict gives them names.

    Inputs:
        - **x** - what the first cell takes.

    Outputs:
        What the last cell gives.

    Raises:
        TypeError: an element is not a Cell.

    Example:
        >>> import numpy as np
        >>> from morel import nn, Tensor
        >>> net = nn.SequentialCell([nn.Dense(3, 4), nn.ReLU()])
        >>> net(Tensor(np.ones((2, 3), np.float32))).shape
        (2, 4)
        >>> [p.name for p in net.trainable_params()]
        ['0.weight', '0.bias']
    """

    def __init__(self, *args):
        super().__init__()
        self.__dict__["cell_list"] = ()
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            entries = [(str(number), cell) for number, cell in enumerate(args[0])]
        elif len(args) == 1 and isinstance(args[0], dict):
            entries = list(args[0].items())
        elif len(args) == 1 and not isinstance(args[0], Cell):
            raise TypeError(
                f"For 'SequentialCell', the 'args[0]' must be Cell, list or orderedDict, "
                f"but got {type(args[0]).__name__}."
            )
        else:
            entries = [(str(number), cell) for number, cell in enumerate(args)]
        for name, cell in entries:
            self.insert_child_to_cell(name, cell)
            if cell is not None:
                cell.update_parameters_name(name + ".")
        self._changed()

    def _changed(self):
        self.__dict__["cell_list"] = tuple(cell for cell in self._cells.values() if cell is not None)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if isinstance(value, Cell):
            self._changed()

    def __setstate__(self, state):
        super().__setstate__(state)
        self._changed()

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._cells.items())[index]))
        return list(self._cells.values())[_check_index(index, len(self), self.cls_name)]

    def construct(self, input_data):
        for cell in self.cell_list:
            input_data = cell(input_data)
        return input_data


class CellList(_Ordered):
    """A list of cells whose parameters belong to the network; it is not called itself.

    Args:
        args (list[Cell], optional): the cells.
        auto_prefix (bool): name parameters by position. Default ``True``.

    Raises:
        TypeError: an element is not a Cell.

    Example:
        >>> from morel import nn
        >>> layers = nn.CellList([nn.Dense(2, 2)])
        >>> layers.append(nn.ReLU())
        CellList(
          (0): Dense(input_channels=2, output_channels=2, has_bias=True)
          (1): ReLU()
        )
    """

    def __init__(self, *args, **kwargs):
        super().__init__(auto_prefix=kwargs.get("auto_prefix", True))
        if len(args) == 1:
            self.extend(args[0])

    def __getitem__(self, index):
        cells = list(self._cells.values())
        if isinstance(index, slice):
            return type(self)(cells[index], auto_prefix=False)
        return cells[_check_index(index, len(cells), self.cls_name, allow_slice=True)]

    def __iadd__(self, cells):
        return self.extend(cells)

    def __add__(self, cells):
        return type(self)(list(self) + list(cells))

    def insert(self, index, cell):
        """Puts a cell before position `index`."""
        size = len(self)
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError(f"For '{self.cls_name}', the type of 'index' must be int, but got {type(index).__name__}.")
        if not -size <= index <= size:
            raise IndexError(
                f"For '{self.cls_name}', the value of 'index' must be a number in range [{-size}, "
                f"{size}], but got {index}."
            )
        cells = list(self._cells.values())
        cells.insert(index, _check_cell(cell, self.cls_name))
        self._replace_cells(cells)

    def extend(self, cells):
        """Adds all cells of a list at the end and returns the container."""
        if not isinstance(cells, (list, tuple, CellList)):
            raise TypeError(f"For '{self.cls_name}', the new cells must be a list, but got {type(cells).__name__}.")
        for cell in cells:
            self.append(cell)
        return self

    def construct(self, *inputs):
        raise NotImplementedError("For 'CellList', call its elements instead.")


class CellDict(Cell):
    """A dict of cells whose parameters belong to the network; it is not called itself.

    Args:
        args (iterable, optional): a mapping or pairs of (str, Cell).
        auto_prefix (bool): name parameters by key. Default ``True``.

    Raises:
        TypeError: a key is not a str or a value not a Cell.
        KeyError: a key is empty, has a dot or is the name of an attribute of Cell.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(auto_prefix=kwargs.get("auto_prefix", True))
        if args:
            self.update(args[0])

    def __getitem__(self, key):
        return self._cells[key]

    def __setitem__(self, key, cell):
        if not isinstance(key, str):
            raise TypeError(f"For 'CellDict', the type of key must be str, but got {type(key).__name__}.")
        if not isinstance(cell, Cell):
            raise TypeError(f"For 'CellDict', the type of cell should be Cell, but got {type(cell).__name__}.")
        if not key or "." in key:
            raise KeyError(f"For 'CellDict', the key must not be empty or contain '.', but got '{key}'.")
        if key not in self._cells and hasattr(self, key):
            raise KeyError(f"For 'CellDict', the key can not be same with the attributes of Cell, but got key {key}.")
        if self._auto_prefix:
            cell.update_parameters_name(key + ".")
        self._cells[key] = cell

    def __delitem__(self, key):
        del self._cells[key]

    def __len__(self):
        return len(self._cells)

    def __iter__(self):
        return iter(self._cells)

    def __contains__(self, key):
        return key in self._cells

    def clear(self):
        """Removes all cells."""
        self._cells.clear()

    def pop(self, key):
        """Removes a cell and returns it."""
        cell = self._cells[key]
        del self._cells[key]
        return cell

    def keys(self):
        """The keys."""
        return self._cells.keys()

    def values(self):
        """The cells."""
        return self._cells.values()

    def items(self):
        """The pairs of key and cell."""
        return self._cells.items()

    def update(self, cells):
        """Adds the cells of a mapping or of pairs, replacing those with the same key."""
        if not hasattr(cells, "__iter__"):
            raise TypeError(f"For 'CellDict', the cells must be iterable, but got {type(cells).__name__}.")
        pairs = cells.items() if hasattr(cells, "items") else cells
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ValueError(f"For 'CellDict', each element must be a pair of key and cell, but got {pair!r}.")
            self[pair[0]] = pair[1]

    def construct(self, *inputs):
        raise NotImplementedError("For 'CellDict', call its elements instead.")
