"""Graph mode: functions and cells compiled into graphs."""

import functools
import types
import weakref

from morel import _core
from morel.compiler.facts import kind_of, recorded_facts
from morel.compiler.interpreter import Interpreter
from morel.compiler.recursion import Session
from morel.compiler.source import Unsupported
from morel.compiler.tensor_flow import unless_it_raises
from morel.compiler.tree import flatten, plain, unflatten

__all__ = ["CompiledFunction", "call_compiled_cell", "call_in_graph", "compiled_cell", "jit"]


class _Entry:
    """One graph: how its results are put together, and the Python values that it relies on."""

    def __init__(self, graph, structure, constants, facts):
        self.graph, self.structure, self.constants = graph, structure, constants
        # Cells are held weakly; module globals and the cells of closures live as long as the function.
        self.facts = [
            (weakref.ref(owner) if hasattr(type(owner), "construct") else owner, name, value)
            for owner, name, value in facts
        ]

    def holds(self):
        for owner, name, value in self.facts:
            if isinstance(owner, dict):
                now = owner.get(name)
            else:
                owner = owner() if isinstance(owner, weakref.ref) else owner
                now = getattr(owner, name, None)
            if now is not value:
                return False
        return True

    def may_hold_again(self):
        """False where a tensor that is no Parameter was replaced by another one: the old one does not come back."""
        return self.holds() or all(_is_lasting(value) for _, _, value in self.facts)

    def is_flat(self):
        """Whether the result is one tensor or a tuple of tensors."""
        flat = self.structure is None or (
            self.structure[0] is tuple and all(part is None for part in self.structure[1])
        )
        return flat and all(fixed is None for fixed in self.constants)

    def run(self, tensors):
        results = iter(self.graph(tensors))
        return unflatten(self.structure, [next(results) if fixed is None else fixed[0] for fixed in self.constants])


class CompiledFunction:
    """The graphs of one function, one for each kind of arguments.

    Tensors are known by dtype and number of axes, everything else by what it is: numbers, strings, objects; also the plain
    attributes of cells, globals and variables of outer functions that the code reads, and the training flags of cells. A graph
    serves all sizes of its tensors for which what was assumed while it was built holds (sizes of 0 and 1 stay as they are). Parameters and other tensors that the function reads from outside are read at every
    call. Within a gradient of PyNative mode a graph that is differentiated with it runs (``_core.TrainedGraph``), within a
    gradient of a gradient the function itself.
    """

    def __init__(self, function):
        self.function = function
        self.entries = {}
        self.compiled = 0  # how many graphs were built
        self.free = {}  # id -> tensor: arguments that the function also reaches from outside, and changes
        # What callers call: it knows the graphs of simple calls itself and asks `_call` for the others.
        self.call = _core.make_compiled_call(self._call)

    def __reduce_ex__(self, _protocol):
        """A copy of a cell, and one that is loaded, compiles for itself."""
        return type(None), ()

    @property
    def graphs(self):
        return [entry.graph for entries in self.entries.values() for entry in entries]

    def __call__(self, *args, **kwargs):
        return self.call(*args, **kwargs)

    def _call(self, *args, **kwargs):
        if _core.graph_active():
            return call_in_graph(self.function, args, kwargs)
        if _core.grad_depth() > 1 or _any_distributed(args, kwargs):
            return self.function(*args, **kwargs)
        entry, tensors = self._find(args, kwargs)
        return entry.run(tensors)

    def prepare(self, *args, **kwargs):
        """Compiles for these arguments without running; the graph."""
        return self._find(args, kwargs)[0].graph

    def _find(self, args, kwargs):
        """(the graph for these arguments, the tensors among them)"""
        leaves, structure = flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, _core.Tensor)]
        # Within a gradient: the places of the tensors at which it is wanted.
        places = None
        if _core.grad_enabled():
            places = tuple(place for place, tensor in enumerate(tensors) if _core.requires_grad(tensor))
        # A graph for an argument that is a free variable too serves this tensor alone.
        free = tuple((at, id(tensor)) for at, tensor in enumerate(tensors) if id(tensor) in self.free)
        key = (structure, tuple(kind_of(leaf) for leaf in leaves), places, _repeated(tensors), free)
        entries = self.entries.setdefault(key, [])
        for entry in entries:
            if entry.holds() and entry.graph.serves(tensors):
                break
        else:
            entry = self._compile(leaves, structure, places)
            entry.kept = [leaf for leaf in leaves if not isinstance(leaf, _core.Tensor)]
            entries[:] = [known for known in entries if known.may_hold_again()]
            entries.append(entry)
            lasting = all(_is_lasting(value) for _, _, value in entry.facts)
            simple = places is None and not kwargs and len(leaves) == len(args)
            if simple and lasting and not free and _repeated(tensors) is None and entry.is_flat():
                _core.remember_call(self.call, args, entry.graph, entry.facts, entry.structure is None)
        found = {} if places is not None else {id(tensors[at]): tensors[at] for at in entry.graph.captured_too(tensors)}
        if found.keys() - self.free.keys():
            self.free.update(found)
            return self._find(args, kwargs)
        return entry, tensors

    def _compile(self, leaves, structure, places):
        self.compiled += 1
        with Session() as session:
            return session.compile(lambda: self._build(leaves, structure, places))

    def _build(self, leaves, structure, places):
        graph, tree, constants, facts = traced(self.function, leaves, structure, places, self.free)
        if places is None:
            graph.compile()
        return _Entry(graph, tree, constants, facts)


def traced(function, leaves, structure, places=None, free=()):
    """The graph of a call whose flattened arguments are ``leaves``, not compiled yet; how its results are put together, those
    that are no tensors, and the Python values that it relies on. Arguments among ``free``, by id, are read as tensors of
    outside. Within a ``Session``."""
    name = getattr(function, "__name__", type(function).__name__)
    _core.graph_begin(name)
    try:
        inside = [_core.graph_parameter(leaf) if isinstance(leaf, _core.Tensor) else leaf for leaf in leaves]
        first = {id(leaf): at for at, leaf in reversed([*enumerate(leaves)])}  # an object is one tensor inside too
        given = [leaf if id(leaf) in free else inside[first[id(leaf)]] for leaf in leaves]
        args, kwargs = unflatten(structure, given)
        with recorded_facts() as facts:
            output, _ = unless_it_raises(lambda: Interpreter().call(function, args, kwargs), lambda: None)
            results, tree = flatten(output)
            constants = [None if isinstance(result, _core.Tensor) else (plain(result),) for result in results]
            tensors = [result for result in results if isinstance(result, _core.Tensor)]
            changed = _core.graph_write_back([leaf for leaf in inside if isinstance(leaf, _core.Tensor)])
            if changed and places is not None:
                raise Unsupported(
                    f"'{name}' changes an argument in place, which a gradient of PyNative mode cannot follow"
                )
            # Within the facts: a gradient runs hooks and `bprop`.
            graph = _core.graph_end(tensors) if places is None else _core.graph_end_trained(tensors, places)
    except BaseException:
        _core.graph_abort()
        raise
    return graph, tree, constants, facts.values()


def call_compiled_cell(cell, call, args, kwargs):
    """A call of a cell in GRAPH_MODE. ``call`` is the call of PyNative mode."""
    if _core.graph_active() or _core.grad_depth() > 1:
        return call(cell, *args, **kwargs)
    return compiled_cell(cell).call(*args, **kwargs)


def compiled_cell(cell):
    """The compiled form of a cell; made once."""
    compiled = cell.__dict__.get("_compiled_call")
    if compiled is None:
        compiled = cell.__dict__["_compiled_call"] = CompiledFunction(cell)
    return compiled


def _any_distributed(args, kwargs):
    """Distributed tensors have no graphs yet."""
    return any(isinstance(leaf, _core.Tensor) and _core.dist.sharding_of(leaf) for leaf in flatten((args, kwargs))[0])


def _repeated(tensors):
    """Which of the tensors are the same object: what changes one of them changes the other. None: none are."""
    if len({*map(id, tensors)}) == len(tensors):
        return None
    return tuple([*map(id, tensors)].index(id(tensor)) for tensor in tensors)


def _is_lasting(value):
    from morel.common.parameter import Parameter

    return not isinstance(value, _core.Tensor) or isinstance(value, Parameter)


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
    if isinstance(function, type):
        method = "construct" if hasattr(function, "construct") else "__call__"
        setattr(function, method, jit(getattr(function, method)))
        return function
    if not callable(function):
        raise TypeError(f"For 'jit', 'function' must be a function or a Cell, but got {type(function).__name__}.")
    if isinstance(function, types.MethodType):
        return CompiledFunction(function).call
    return function if hasattr(function, "__compiled__") else _decorate(function)


def _decorate(function):
    """The compiled form of a function; as an attribute of a class it is a method."""
    own = CompiledFunction(function)
    functools.update_wrapper(own.call, function)
    own.call.__jit_function__ = function
    own.call.__compiled__ = own
    return own.call
