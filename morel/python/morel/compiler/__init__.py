"""Graph mode: functions and cells compiled into graphs."""

import functools
import inspect
import types

from morel import _core
from morel.compiler.interpreter import Interpreter
from morel.compiler.tree import flatten, unflatten

__all__ = ["CompiledFunction", "call_in_graph", "jit"]


class CompiledFunction:
    """The graphs of one function, one for each kind of arguments.

    Tensors are known by shape and dtype; everything else is part of the kind: numbers, strings, cells and their training
    flags. Parameters and other tensors that the function reads from outside are read at every call.
    """

    def __init__(self, function):
        self.function = function
        self.graphs = {}
        self.compiled = 0  # how many graphs were built

    def __call__(self, *args, **kwargs):
        if _core.graph_active():
            return call_in_graph(self.function, args, kwargs)
        leaves, structure = flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, _core.Tensor)]
        key = (structure, tuple(_kind(leaf) for leaf in leaves), _training_flags(self.function, leaves))
        entry = self.graphs.get(key)
        if entry is None:
            entry = self.graphs[key] = self._compile(leaves, structure)
        graph, tree, constants = entry
        results = iter(graph(tensors))
        return unflatten(tree, [next(results) if fixed is None else fixed[0] for fixed in constants])

    def _compile(self, leaves, structure):
        self.compiled += 1
        name = getattr(self.function, "__name__", type(self.function).__name__)
        _core.graph_begin(name)
        try:
            inside = [_core.graph_parameter(leaf) if isinstance(leaf, _core.Tensor) else leaf for leaf in leaves]
            args, kwargs = unflatten(structure, inside)
            output = Interpreter().call(self.function, args, kwargs)
            results, tree = flatten(output)
            constants = [None if isinstance(result, _core.Tensor) else (result,) for result in results]
            graph = _core.graph_end([result for result in results if isinstance(result, _core.Tensor)])
        except BaseException:
            _core.graph_abort()
            raise
        graph.compile()
        return graph, tree, constants


def _kind(leaf):
    if isinstance(leaf, _core.Tensor):
        return (tuple(leaf.shape), leaf.dtype, type(leaf))
    try:
        hash(leaf)
    except TypeError:
        return id(leaf)
    return (type(leaf), leaf)


def _training_flags(function, leaves):
    from morel.nn.cell import Cell

    owner = function.__self__ if isinstance(function, types.MethodType) else function
    cells = [value for value in (owner, *leaves) if isinstance(value, Cell)]
    return tuple(cell.training for root in cells for _, cell in root.cells_and_names())


def call_in_graph(function, args=(), kwargs=None):
    """Calls a function while a graph is built: its source is read, its operators become nodes."""
    return Interpreter().call(function, args, kwargs)


def jit(function=None, *, capture_mode="ast", jit_level="O0", dynamic=0, fullgraph=False, backend="", **options):
    """Compiles a function, a method or a cell into a graph.

    Args:
        function (function, Cell): what to compile; without it, a decorator is returned.
        capture_mode (str): "ast" reads the source; "bytecode" and "trace" are accepted and do the same.
        jit_level (str), dynamic (int), fullgraph (bool), backend (str): accepted for MindSpore's scripts.
    Returns:
        function: called like the given one; compiles at the first call with each kind of arguments.
    Raises:
        NotImplementedError: the source contains what a graph cannot; the message shows the line.
    """
    if capture_mode not in ("ast", "bytecode", "trace"):
        raise ValueError(f"For 'jit', 'capture_mode' must be 'ast', 'bytecode' or 'trace', but got {capture_mode!r}.")
    if function is None:
        return functools.partial(
            jit,
            capture_mode=capture_mode,
            jit_level=jit_level,
            dynamic=dynamic,
            fullgraph=fullgraph,
            backend=backend,
            **options,
        )
    from morel.nn.cell import Cell

    if isinstance(function, Cell):
        function.construct = jit(function.construct)
        return function
    if isinstance(function, types.MethodType):
        return CompiledFunction(function)
    if not inspect.isfunction(function):
        raise TypeError(f"For 'jit', 'function' must be a function or a Cell, but got {type(function).__name__}.")
    return _decorate(function)


def _decorate(function):
    """A plain function around a compiled one, so that it can become a method."""
    own = CompiledFunction(function)

    @functools.wraps(function)
    def compiled(*args, **kwargs):
        return own(*args, **kwargs)

    compiled.__jit_function__ = function
    compiled.__compiled__ = own
    return compiled
