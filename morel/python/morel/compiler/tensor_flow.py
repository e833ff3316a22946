"""Control flow on tensors: the two branches of an ``if``, the turns of a ``while``, as graphs of their own."""

from morel import _core
from morel.compiler.builtins import Raises
from morel.compiler.recursion import MAX_TRIES, Unsettled
from morel.compiler.source import Unsupported
from morel.compiler.tree import count_leaves, flatten, unflatten

_NUMBERS = (bool, int, float, complex)


def symbolic(value):
    """Whether a value is a tensor, which is not known while a graph is built."""
    return isinstance(value, _core.Tensor)


def check_condition(tensor):
    if tensor.size != 1:
        raise ValueError(f"a condition must be a tensor of one element, but its shape is {tuple(tensor.shape)}")


def _as_tensor(value):
    if isinstance(value, _core.Tensor):
        return value
    if isinstance(value, _NUMBERS):
        import morel

        dtype = {bool: morel.bool_, int: morel.int64, float: morel.float32, complex: morel.complex64}[type(value)]
        return morel.ops.full((), value, dtype=dtype)
    raise Unsupported(
        f"a value of type {type(value).__name__} depends on a condition that is a tensor; only tensors and numbers can"
    )


def same(a, b):
    if a is b:
        return True
    if isinstance(a, _core.Tensor) or isinstance(b, _core.Tensor):
        return False
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:
        return False


def unless_it_raises(run, instead):
    """(what a part under a condition gives, False); where it raises an error when it runs, (what stands for that, True)."""
    depth = _core.graph_depth()
    try:
        return run(), False
    except Raises as raises:
        if raises.depth != depth:
            raise Unsupported(
                "a function that calls itself, or is mapped, and always raises an error is not supported in a compiled "
                "function under a condition on a tensor"
            ) from None
    return instead(), True


class _Branch:
    """One side of an ``if``: its graph, whose results are all tensors that it leaves behind. Where it raises an error, the
    results of the other side follow, for their types."""

    def __init__(self, name, run, other, before):
        _core.graph_begin(name)
        try:
            (names, self.result), self.raises = unless_it_raises(
                run, lambda: unless_it_raises(other, lambda: (before, None))[0]
            )
            kept = [self.result.value] if self.result is not None else _changed(names, before)
            tensors = [leaf for leaf in flatten(kept)[0] if isinstance(leaf, _core.Tensor)]
            self.index = {id(tensor): i for i, tensor in enumerate(tensors)}
            self.tensors = tensors  # keeps the ids valid
            self.graph = _core.graph_end(tensors, with_changes=True)
        except BaseException:
            _core.graph_abort()
            raise
        self.names = names

    def pick(self, leaf):
        """A leaf as a result of the graph: the place of a tensor made inside, a tensor of outside, or a number."""
        return self.index.get(id(leaf), leaf) if isinstance(leaf, _core.Tensor) else (leaf,)


def _branches(then, orelse, before):
    """Both sides. Where one needs a result that is not known yet, the other one stands for both, for its types."""
    done, unsettled = [], []
    for name, run, other in (("then", then, orelse), ("orelse", orelse, then)):
        try:
            done.append(_Branch(name, run, other, before))
            last = run
        except Unsettled as error:
            unsettled.append(error)
    if not done:
        raise min(unsettled, key=lambda error: error.call.level)
    return done if len(done) == 2 else (*done, _Branch("again", last, last, before))


def _changed(names, before):
    return [value for key, value in names.items() if key not in before or value is not before[key]]


def _common_dtype(a, b):
    for leaf in (a, b):
        if not isinstance(leaf, (_core.Tensor, *_NUMBERS)):
            raise Unsupported(
                f"a value of type {type(leaf).__name__} depends on a condition that is a tensor; only tensors and numbers can"
            )
    tensors = [leaf for leaf in (a, b) if isinstance(leaf, _core.Tensor)]
    if len(tensors) == 2 and tuple(a.shape) != tuple(b.shape):
        raise TypeError(
            f"the branches of an 'if' on a tensor give different shapes: {tuple(a.shape)} and {tuple(b.shape)}"
        )
    if len(tensors) == 1 and tensors[0].shape:
        number, shape = (b if tensors[0] is a else a), tuple(tensors[0].shape)
        raise TypeError(
            f"the branches of an 'if' on a tensor give different shapes: the number {number} and a tensor of shape "
            f"{shape}; make the number a tensor of that shape, as ops.full({shape}, {number})"
        )
    return _core.common_dtype([a, b])


def merge(condition, then, orelse, before, undefined, returned):
    """Runs both branches, each as a graph, and gives (names that they change, what they return).

    ``then()`` and ``orelse()`` give (names afterwards, return value or None). Names and return values that differ become
    results of the graph's ``if``.
    """
    check_condition(condition)
    a, b = _branches(then, orelse, before)
    if (a.result is None) != (b.result is None):
        a.result, b.result = a.result or returned(None), b.result or returned(None)
    keys, constants = [], {}
    if a.result is None:
        for key in {**a.names, **b.names}:
            x, y = (names.get(key, undefined(key)) for names in (a.names, b.names))
            if isinstance(x, undefined) or isinstance(y, undefined):
                constants[key] = undefined(key, "true" if isinstance(x, undefined) else "false")
            elif same(x, y):
                constants[key] = x
            else:
                keys.append(key)
    leaves, trees = zip(
        *(
            flatten(side.result.value if side.result is not None else [side.names[key] for key in keys])
            for side in (a, b)
        )
    )
    if trees[0] != trees[1]:
        raise Unsupported("the branches of an 'if' on a tensor give values of different structure")
    pairs = list(zip(*leaves))
    fixed = [same(x, y) and not isinstance(x, _core.Tensor) for x, y in pairs]
    dtypes = [_common_dtype(x, y) for (x, y), is_fixed in zip(pairs, fixed) if not is_fixed]
    changed = _core.graph_changes(a.graph, b.graph)
    dtypes += [tensor.dtype for tensor in changed]
    for side, own in zip((a, b), leaves):
        picks = [side.pick(leaf) for leaf, is_fixed in zip(own, fixed) if not is_fixed]
        _core.graph_choose(side.graph, [*picks, *changed], dtypes)
    results = iter(_core.graph_if(condition, a.graph, b.graph))  # also without results: a branch may have effects
    value = unflatten(trees[0], [x if is_fixed else next(results) for (x, _), is_fixed in zip(pairs, fixed)])
    for tensor, result in zip(changed, results):
        _core.graph_assign(tensor, result)
    if a.raises and b.raises:
        raise Raises
    if a.result is not None:
        return {}, returned(value)
    return {**constants, **dict(zip(keys, value))}, None


class _State:
    """What the turns of a loop change: tensors and numbers by name. Other values must stay what they are."""

    def __init__(self, before):
        self.names = list(before)
        self.leaves, self.tree = flatten(list(before.values()))
        self.tensors = [_as_tensor(leaf) for leaf in self.leaves if isinstance(leaf, (_core.Tensor, *_NUMBERS))]

    def filled(self, tensors):
        """The names with these tensors as their values."""
        remaining = iter(tensors)
        leaves = [next(remaining) if isinstance(leaf, (_core.Tensor, *_NUMBERS)) else leaf for leaf in self.leaves]
        return dict(zip(self.names, unflatten(self.tree, leaves)))

    def inside(self):
        return self.filled([_core.graph_parameter(tensor) for tensor in self.tensors])

    def after(self, names):
        """The tensors after one turn."""
        leaves, tree = flatten([names[name] for name in self.names])
        if tree != self.tree:
            raise Unsupported("the body of a 'while' on a tensor changes the structure of a value")
        out = []
        for name, old, new in zip(self._names_of_leaves(), self.leaves, leaves):
            if not isinstance(old, (_core.Tensor, *_NUMBERS)) and same(old, new):
                continue
            out.append(_as_tensor(new))
            shape, before = tuple(out[-1].shape), tuple(_as_tensor(old).shape)
            if shape != before:
                raise TypeError(
                    f"the body of a 'while' on a tensor changes the shape of '{name}' from {before} to {shape}"
                )
        return out

    def _names_of_leaves(self):
        for name, part in zip(self.names, self.tree[1]):
            for _ in range(count_leaves(part)):
                yield name


def blank_result(turn, before, returned):
    """A value of the type that a loop on a tensor returns: zeros. ``returned`` collects what one turn would return."""
    _core.graph_begin("body")
    try:
        turn(_State(before).inside(), "body")
    except Unsettled:
        pass
    finally:
        _core.graph_abort()
    leaves, tree = flatten(returned[0] if returned else None)
    return unflatten(tree, [_core.graph_zeros(leaf) if isinstance(leaf, _core.Tensor) else leaf for leaf in leaves])


def _part_of_turn(part, turn, state, changed):
    """The "condition" or "body" of a loop as (graph, dtypes of its results). ``changed``: tensors of outside that belong to
    the state as well."""
    _core.graph_begin(part)
    try:
        names = state.inside()
        for tensor in changed:
            _core.graph_start_from(tensor, _core.graph_parameter(tensor))
        names, _ = unless_it_raises(lambda: turn(names, part), lambda: names if part == "body" else True)
        results = [_as_tensor(names)] if part == "condition" else state.after(names)
        return _core.graph_end(results, with_changes=part == "body"), [value.dtype for value in results]
    except BaseException:
        _core.graph_abort()
        raise


def run_while(turn, before):
    """A ``while`` whose condition is a tensor. ``before``: the names that the body assigns, with their values at the start.

    ``turn(names, "condition")`` gives the condition, ``turn(names, "body")`` the names after one turn.
    """
    state, changed = _State(before), []
    for _ in range(MAX_TRIES):  # until it is known what the turns change, and the dtypes of the state settle
        try:
            condition, _ = _part_of_turn("condition", turn, state, changed)
            body, dtypes = _part_of_turn("body", turn, state, changed)
        except Unsettled:
            return state.filled(state.tensors)
        known, changed = len(changed), body.changed
        if len(changed) > known:
            continue
        if all(old.dtype == dtype for old, dtype in zip(state.tensors, dtypes)):
            return _loop(condition, body, state, changed)
        state.tensors = [old.astype(dtype) for old, dtype in zip(state.tensors, dtypes)]
    raise TypeError("the dtypes of the values that a 'while' on a tensor changes do not settle")


def _loop(condition, body, state, changed):
    if _core.graph_overlap(changed, state.tensors):
        raise Unsupported(
            "the body of a 'while' on a tensor assigns a name, and changes the tensor that it had before in place by another "
            "name; use one name for it"
        )
    results = iter(_core.graph_while(condition, body, [*state.tensors, *changed]))
    names = state.filled(results)
    for tensor, result in zip(changed, results):
        _core.graph_assign(tensor, result)
    return names
