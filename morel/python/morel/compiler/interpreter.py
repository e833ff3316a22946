"""The graph front end: reads the source of a Python function and runs it symbolically.

Values of Python (numbers, strings, cells, containers) are what they are, at compile time; tensors are symbolic, and every
operator on them becomes a node of the graph. Control flow on Python values is resolved here, control flow on tensors becomes
``if`` and ``while`` of the graph.

A function body is run as a list of statements that are still to come (a linked list: statement, rest). Loops and ``if`` put
their bodies in front of the rest, so ``break``, ``continue`` and ``return`` are a matter of what the rest is, and a branch on a
tensor that leaves early takes the rest along.
"""

import ast
import builtins
import contextlib
import functools
import operator
import threading
import types

from morel import _core
from morel.common.structure import STRUCTURE, watch
from morel.compiler import recursion
from morel.compiler.builtins import in_graph, items_of
from morel.compiler.choice import item_at, operand
from morel.compiler.containers import run_guarded
from morel.compiler.jumps import RESULT, RETURNED, STOP, Give, jumps_in, leaves_early
from morel.compiler.source import FunctionSource, Unsupported, annotated, refuse_syntax
from morel.compiler.tensor_flow import blank_result, merge, run_while, symbolic

_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_COMPARE = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}

MAX_DEPTH = 200


_recorder = threading.local()


_PLAIN = (bool, int, float, str, type(None))


@contextlib.contextmanager
def recorded_facts():
    """What Python values, and which tensors, the code within relies on: (owner, name, value).

    An owner is a cell, the cell of a closure, or the dict of a module's globals.
    """
    before = getattr(_recorder, "facts", None)
    _recorder.facts = facts = {}
    try:
        yield facts
    finally:
        _recorder.facts = before


def _rely_on(owner, name, value):
    facts = getattr(_recorder, "facts", None)
    if isinstance(value, _core.Tensor):
        known = not _core.is_symbolic(value)
    else:
        known = isinstance(value, _PLAIN)
    if facts is not None and known:
        facts.setdefault((id(owner), name), (owner, name, value))


def rely_on_structure(owner):
    """The children, hooks and precision of a cell, or whether a Parameter is trained."""
    facts = getattr(_recorder, "facts", None)
    if facts is not None:
        watch(owner)
        facts.setdefault((id(STRUCTURE), "version"), (STRUCTURE, "version", STRUCTURE["version"]))


def kind_of(leaf):
    """What a graph depends on of an argument: number of axes and dtype of a tensor, the value of anything else."""
    if isinstance(leaf, _core.Tensor):
        return (leaf.ndim, leaf.dtype, type(leaf))
    if isinstance(leaf, float):
        return (float, leaf.hex())  # tells -0.0 from 0.0, and NaN equals itself
    try:
        hash(leaf)
    except TypeError:
        return id(leaf)  # who keeps the kind keeps the object alive
    return (type(leaf), leaf)


def kind_with_sizes(leaf):
    """The same with the sizes of a tensor, which may be expressions."""
    return (kind_of(leaf), _core.describe(leaf)) if isinstance(leaf, _core.Tensor) else kind_of(leaf)


class Undefined:
    """Stands for a name that one branch of an ``if`` on a tensor (``missing``: the other one) or a loop on a tensor assigns."""

    def __init__(self, name, missing=None):
        self.name, self.missing = name, missing

    def refuse(self):
        if self.missing is None:
            where = "defined in the 'while' loop body cannot be used outside of the loop body."
        else:
            other = "false" if self.missing == "true" else "true"
            where = f"is not defined in {self.missing} branch, but defined in {other} branch."
        raise UnboundLocalError(f"The local variable '{self.name}' {where}")


class Frame:
    """The names of one call. A nested function's frame has its definer's as ``outer``."""

    __slots__ = ("names", "arguments", "outer", "source", "globals", "foreign")

    def __init__(self, source, outer=None, arguments=()):
        self.names = dict(arguments)
        self.arguments = dict(arguments)
        self.outer = outer
        self.source = source
        self.globals = source.globals
        self.foreign = {}  # names declared global or nonlocal -> where they live

    def copy(self):
        other = Frame.__new__(Frame)
        other.names, other.outer, other.source = dict(self.names), self.outer, self.source
        other.globals, other.foreign, other.arguments = self.globals, self.foreign, self.arguments
        return other

    def load(self, name):
        frame = self
        while frame is not None:
            if name in frame.names and name not in frame.foreign:
                value = frame.names[name]
                if isinstance(value, Undefined):
                    value.refuse()
                return value
            frame = frame.outer
        if name in self.source.closure:
            cell = self.source.closure[name]
            _rely_on(cell, "cell_contents", cell.cell_contents)
            return cell.cell_contents
        if name in self.globals:
            _rely_on(self.globals, name, self.globals[name])
            return self.globals[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise NameError(f"name '{name}' is not defined")

    def store(self, name, value):
        if name in self.foreign:
            frame = self.outer
            while frame is not None:
                if name in frame.names:
                    frame.names[name] = value
                    return
                frame = frame.outer
            raise Unsupported(
                f"assigning to the {self.foreign[name]} name '{name}' is not supported in a compiled function"
            )
        self.names[name] = value


class Closure:
    """A function or lambda defined in interpreted code; a callable for Python code too."""

    def __init__(self, interpreter, source, outer):
        self.interpreter, self.source, self.outer = interpreter, source, outer
        self.__name__ = source.name

    def __call__(self, *args, **kwargs):
        return self.interpreter.run_source(self.source, args, kwargs, self.outer)

    def __get__(self, instance, _owner=None):
        return self if instance is None else types.MethodType(self, instance)


class _Return:
    def __init__(self, value):
        self.value = value


# Pending work that is no statement of the source.
class _Next:
    """The next turn of a ``for`` over Python items."""

    def __init__(self, node, items, at):
        self.node, self.items, self.at = node, items, at


class _Again:
    """The next turn of a ``while`` whose condition is a Python value."""

    def __init__(self, node):
        self.node = node


class _Exit:
    """The end of a ``with`` block."""

    def __init__(self, manager):
        self.manager = manager


class _EndOfTurn:
    """The end of the body of a ``while`` on a tensor; jumps out of it set names that its condition reads."""

    def __init__(self):
        self.returned = []  # values; only their types count


class _Choice:
    """An ``if`` whose condition is known already."""

    def __init__(self, condition, body, orelse=()):
        self.condition, self.body, self.orelse = condition, body, orelse


def _push(statements, rest):
    for statement in reversed(statements):
        rest = (statement, rest)
    return rest


class Interpreter:
    def __init__(self):
        self.depth = 0
        self.conditions = 0  # on tensors, under which the code runs

    # --- calls ---

    def call(self, fn, args=(), kwargs=None):
        kwargs = kwargs or {}
        from morel.nn.cell import Cell

        if isinstance(fn, Closure):
            return fn(*args, **kwargs)
        own = in_graph(fn)
        if own is not None:
            return own(self.call, *args, **kwargs)
        if isinstance(fn, types.MethodType):
            return self.call(fn.__func__, (fn.__self__, *args), kwargs)
        if isinstance(fn, functools.partial):
            return self.call(fn.func, (*fn.args, *args), {**fn.keywords, **kwargs})
        if isinstance(fn, Cell):
            return self.call_cell(fn, args, kwargs)
        compiled = getattr(fn, "__jit_function__", None)
        if compiled is not None:
            return self.call(compiled, args, kwargs)
        if isinstance(fn, types.FunctionType):
            source = FunctionSource.of(fn)
            if source is not None:
                return self.run_source(source, args, kwargs)
        return fn(*args, **kwargs)

    def call_cell(self, cell, args, kwargs):
        facts = getattr(_recorder, "facts", None)
        if facts is not None and (id(cell), "training") not in facts:  # else with a cell that contains it
            for _, part in cell.cells_and_names():
                _rely_on(part, "training", part.training)
                rely_on_structure(part)
        if cell.has_bprop or cell.mixed_precision_type is not None or cell._has_hooks():
            return cell(*args, **kwargs)
        if not cell._names_checked:
            cell._prepare()
        if cell._recompute_flag and not getattr(_recorder, "recomputes", False):
            return self.recompute(cell, args, kwargs)
        return self.call(cell.construct, args, kwargs)

    def recompute(self, cell, args, kwargs):
        """A cell that asks to be computed again in the backward pass; those within it are part of that."""
        from morel.common.recomputation import run_and_forget

        def run(*inputs, **options):
            _recorder.recomputes = True
            try:
                return self.call(cell.construct, inputs, options)
            finally:
                _recorder.recomputes = False

        return run_and_forget(run, cell.trainable_params(), args, kwargs)

    def run_source(self, source, args, kwargs, outer=None):
        names = source.bind(args, kwargs)
        return recursion.call(source, outer, names, kind_with_sizes, lambda names: self._run_body(source, names, outer))

    def _run_body(self, source, names, outer):
        frame = Frame(source, outer, names)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.depth = 0
            raise Unsupported(
                f"calls are nested more than {MAX_DEPTH} deep; a compiled function can call itself that often only under an "
                "'if' on a tensor, with arguments of the same types"
            )
        try:
            if isinstance(source.node, ast.Lambda):
                return self.evaluate(source.node.body, frame)
            result = self.run(_push(source.node.body, None), frame)
        finally:
            self.depth = max(self.depth - 1, 0)
        return result.value if result is not None else None

    # --- statements ---

    def run(self, pending, frame):
        """Runs pending statements; a _Return, or None at the end."""
        while pending is not None:
            statement, rest = pending
            with annotated(frame.source, statement):
                pending = getattr(self, "do_" + type(statement).__name__, self.refuse)(statement, rest, frame)
            if isinstance(pending, _Return):
                return pending
        return None

    def refuse(self, statement, _rest, _frame):
        refuse_syntax(statement)

    def do_Expr(self, node, rest, frame):
        self.evaluate(node.value, frame)
        return rest

    def do_Pass(self, _node, rest, _frame):
        return rest

    def do_Return(self, node, rest, frame):
        value = None if node.value is None else self.evaluate(node.value, frame)
        return self.do_Give(Give(value), rest, frame)

    def do_Give(self, statement, rest, frame):
        value = statement.value
        while rest is not None:
            item, rest = rest
            if isinstance(item, _Exit):
                self.do__Exit(item, None, None)
            if isinstance(item, _EndOfTurn):
                item.returned.append(value)
                frame.names.update({STOP: True, RETURNED: True, RESULT: value})
                return None
        return _Return(value)

    def do_Assign(self, node, rest, frame):
        value = self.evaluate(node.value, frame)
        for target in node.targets:
            self.assign(target, value, frame)
        return rest

    def do_AnnAssign(self, node, rest, frame):
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value, frame), frame)
        return rest

    def do_AugAssign(self, node, rest, frame):
        target = node.target
        load = ast.copy_location(type(target)(**{**vars(target), "ctx": ast.Load()}), target)
        old = self.evaluate(load, frame)
        new = _BINARY[type(node.op)](old, self.evaluate(node.value, frame))
        if isinstance(old, list) and isinstance(node.op, ast.Add):
            old[:] = new
            new = old
        elif isinstance(old, _core.Tensor) and not _core.is_symbolic(old) and isinstance(target, ast.Attribute):
            old[...] = new  # a Parameter keeps its identity
            new = old
        self.assign(target, new, frame)
        return rest

    def do_Assert(self, node, rest, frame):
        condition = self.condition(node.test, frame)
        if symbolic(condition):
            raise Unsupported("'assert' on a tensor is not supported in a compiled function")
        if not condition:
            self.fail(AssertionError(self.evaluate(node.msg, frame) if node.msg else ""))
        return rest

    def do_Raise(self, node, _rest, frame):
        self.fail(self.evaluate(node.exc, frame))

    def fail(self, error):
        if not self.conditions:
            raise error
        error = error() if isinstance(error, type) else error
        raise Unsupported(
            "an error under a condition on a tensor is not supported in a compiled function, which would raise it while it "
            f"is compiled ({type(error).__name__}: {error}); check the condition outside of the compiled function"
        )

    def do_Delete(self, node, rest, frame):
        for target in node.targets:
            if isinstance(target, ast.Name):
                del frame.names[target.id]
            elif isinstance(target, ast.Subscript):
                del self.evaluate(target.value, frame)[self.evaluate(target.slice, frame)]
            else:
                raise Unsupported("'del' of this is not supported in a compiled function")
        return rest

    def do_Global(self, node, rest, frame):
        frame.foreign.update(dict.fromkeys(node.names, "global"))
        return rest

    def do_Nonlocal(self, node, rest, frame):
        frame.foreign.update(dict.fromkeys(node.names, "nonlocal"))
        return rest

    def do_Import(self, node, rest, frame):
        for alias in node.names:
            module = __import__(alias.name)
            if alias.asname:
                for part in alias.name.split(".")[1:]:
                    module = getattr(module, part)
            frame.store(alias.asname or alias.name.split(".")[0], module)
        return rest

    def do_ImportFrom(self, node, rest, frame):
        module = __import__(node.module, frame.globals, {}, [alias.name for alias in node.names], node.level)
        for alias in node.names:
            frame.store(alias.asname or alias.name, getattr(module, alias.name))
        return rest

    def do_FunctionDef(self, node, rest, frame):
        value = Closure(self, FunctionSource.nested(node, frame, self), frame)
        for decorator in reversed(node.decorator_list):
            value = self.call(self.evaluate(decorator, frame), (value,))
        frame.store(node.name, value)
        return rest

    def do_With(self, node, rest, frame):
        exits = []
        for item in node.items:
            manager = self.evaluate(item.context_expr, frame)
            value = type(manager).__enter__(manager)
            exits.append(_Exit(manager))
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, frame)
        return _push(node.body, _push(list(reversed(exits)), rest))

    def do__Exit(self, statement, rest, _frame):
        type(statement.manager).__exit__(statement.manager, None, None, None)
        return rest

    # --- control flow ---

    def do_If(self, node, rest, frame):
        condition = self.condition(node.test, frame)
        return self.do__Choice(_Choice(condition, node.body, node.orelse), rest, frame)

    def do__Choice(self, choice, rest, frame):
        condition = choice.condition
        if not symbolic(condition):
            return _push(choice.body if condition else choice.orelse, rest)
        leaves = leaves_early(choice.body) or leaves_early(choice.orelse)

        def runner(body):
            def run():
                inner = frame.copy()
                result = self.run(_push(body, rest if leaves else None), inner)
                return inner.names, result

            return lambda: self.under_condition(frame, "'if'", run, leaves)

        then, orelse = runner(choice.body), runner(choice.orelse)
        names, result = merge(condition, then, orelse, frame.names, Undefined, _Return if leaves else None)
        if result is not None:
            return result
        frame.names.update(names)
        return None if leaves else rest

    def under_condition(self, frame, where, run, leaves=False):
        """Runs a part of a function that a condition on a tensor decides on."""
        self.conditions += 1
        try:
            return run_guarded(frame, where, run, leaves)
        finally:
            self.conditions -= 1

    def do_For(self, node, rest, frame):
        iterable = self.evaluate(node.iter, frame)
        return (_Next(node, list(items_of(iterable)), 0), rest)

    def do__Next(self, turn, rest, frame):
        if turn.at == len(turn.items):
            return _push(turn.node.orelse, rest)
        self.assign(turn.node.target, turn.items[turn.at], frame)
        return _push(turn.node.body, (_Next(turn.node, turn.items, turn.at + 1), rest))

    def do_While(self, node, rest, frame):
        condition = self.condition(node.test, frame)
        if symbolic(condition):
            return self.tensor_while(node, rest, frame)
        if not condition:
            return _push(node.orelse, rest)
        return _push(node.body, (_Again(node), rest))

    def do__Again(self, turn, rest, frame):
        return self.do_While(turn.node, rest, frame)

    def tensor_while(self, node, rest, frame):
        jumps = jumps_in(node.body)
        stores = (n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        assigned = jumps.union(n.id for n in stores)
        outer = {name: frame.names[name] for name in jumps if name in frame.names}  # of a loop around this one
        frame.names.update(dict.fromkeys(jumps - {RESULT}, False))
        end = _EndOfTurn()

        def turn(names, part):
            inner = frame.copy()
            inner.names.update(names)
            if part == "condition":
                condition = self.condition(node.test, inner)
                return inner.names[STOP].logical_not().logical_and(condition) if jumps else condition

            def run():
                self.run(_push(node.body, (end, None)), inner)
                return inner.names, None

            return self.under_condition(frame, "'while'", run)[0]

        def before():
            known = frame.names
            return {n: known[n] for n in assigned if n in known and not isinstance(known[n], Undefined)}

        if RESULT in jumps - outer.keys():  # one turn, which is thrown away, tells its type
            frame.names[RESULT] = blank_result(turn, before(), end.returned)
        frame.names.update(run_while(turn, before()))
        for name in assigned - frame.names.keys():
            frame.names[name] = Undefined(name)
        left = {name: frame.names.pop(name) for name in jumps}
        frame.names.update(outer)
        if STOP in left:
            rest = (_Choice(left[STOP], (), node.orelse), rest) if node.orelse else rest
        else:
            rest = _push(node.orelse, rest)
        return (_Choice(left[RETURNED], [Give(left[RESULT])]), rest) if RETURNED in left else rest

    def do__EndOfTurn(self, _statement, _rest, _frame):
        return None

    def _leave_loop(self, pending):
        """Drops what is pending up to the next turn of the innermost loop; (turn, rest)."""
        while pending is not None:
            item, pending = pending
            if isinstance(item, _Exit):
                self.do__Exit(item, None, None)
            if isinstance(item, (_Next, _Again, _EndOfTurn)):
                return item, pending
        raise Unsupported("'break' or 'continue' outside of a loop")

    def do_Break(self, _node, rest, frame):
        turn, rest = self._leave_loop(rest)
        if isinstance(turn, _EndOfTurn):
            frame.names[STOP] = True
        return rest

    def do_Continue(self, _node, rest, _frame):
        return self._leave_loop(rest)

    # --- targets ---

    def assign(self, target, value, frame):
        if isinstance(target, ast.Name):
            frame.store(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target.elts, value, frame)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value, frame)
            old = owner.__dict__.get(target.attr) if hasattr(owner, "__dict__") else None
            if isinstance(old, _core.Tensor) and isinstance(value, _core.Tensor) and not _core.is_symbolic(old):
                if old is not value:
                    old[...] = value  # the new value of a Parameter or buffer
            else:
                raise Unsupported(
                    f"assigning to the attribute '{target.attr}' is not supported in a compiled function, unless it is a "
                    "Parameter"
                )
        elif isinstance(target, ast.Subscript):
            container = self.evaluate(target.value, frame)
            key = self.evaluate(target.slice, frame)
            container[key] = value
        elif isinstance(target, ast.Starred):
            self.assign(target.value, list(value), frame)
        else:
            raise Unsupported("assigning to this is not supported in a compiled function")

    def unpack(self, targets, value, frame):
        values = list(items_of(value))
        star = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        if star is not None:
            after = len(targets) - star - 1
            values[star : len(values) - after] = [values[star : len(values) - after]]
        if len(values) != len(targets):
            raise ValueError(f"cannot unpack {len(values)} values into {len(targets)} names")
        for target, item in zip(targets, values):
            self.assign(target, item, frame)

    # --- expressions ---

    def evaluate(self, node, frame):
        return getattr(self, "get_" + type(node).__name__, self.refuse_expression)(node, frame)

    def refuse_expression(self, node, _frame):
        refuse_syntax(node)

    def get_Constant(self, node, _frame):
        return node.value

    def get_Name(self, node, frame):
        return frame.load(node.id)

    def get_Attribute(self, node, frame):
        owner = self.evaluate(node.value, frame)
        value = getattr(owner, node.attr)
        if hasattr(type(owner), "construct"):
            _rely_on(owner, node.attr, value)
        return value

    def get_Subscript(self, node, frame):
        return item_at(self.call, self.evaluate(node.value, frame), self.evaluate(node.slice, frame))

    def get_Slice(self, node, frame):
        return slice(
            *(None if part is None else self.evaluate(part, frame) for part in (node.lower, node.upper, node.step))
        )

    def get_BinOp(self, node, frame):
        return _BINARY[type(node.op)](self.evaluate(node.left, frame), self.evaluate(node.right, frame))

    def get_UnaryOp(self, node, frame):
        if isinstance(node.op, ast.Not):
            value = self.condition(node.operand, frame)
            return value.logical_not() if symbolic(value) else not value
        return _UNARY[type(node.op)](self.evaluate(node.operand, frame))

    def condition(self, node, frame):
        """The value of an expression of which only the truth counts."""
        return self.get_BoolOp(node, frame, True) if isinstance(node, ast.BoolOp) else self.evaluate(node, frame)

    def get_BoolOp(self, node, frame, is_condition=False):
        is_and = isinstance(node.op, ast.And)
        evaluate = self.condition if is_condition else self.evaluate
        value = evaluate(node.values[0], frame)
        for part in node.values[1:]:
            if symbolic(value) and is_condition:
                other = evaluate(part, frame)
                value = value.logical_and(other) if is_and else value.logical_or(other)
            elif symbolic(value):
                value = operand(is_and, value, self.branch(part, frame, "'and'" if is_and else "'or'"))
            elif bool(value) is is_and:
                value = evaluate(part, frame)
            else:
                return value
        return value

    def get_Compare(self, node, frame):
        left, result = self.evaluate(node.left, frame), True
        for kind, right_node in zip(node.ops, node.comparators):
            right = self.evaluate(right_node, frame)
            value = _COMPARE[type(kind)](left, right)
            if result is True:
                result = value
            elif symbolic(result) or symbolic(value):
                result = result.logical_and(value) if symbolic(result) else value.logical_and(result)
            else:
                result = result and value
            if result is False:
                return False
            left = right
        return result

    def get_IfExp(self, node, frame):
        condition = self.condition(node.test, frame)
        if not symbolic(condition):
            return self.evaluate(node.body if condition else node.orelse, frame)

        branches = (self.branch(part, frame, "'if'") for part in (node.body, node.orelse))
        return merge(condition, *branches, frame.names, Undefined, _Return)[1].value

    def branch(self, part, frame, where):
        """A function that evaluates an expression which a condition on a tensor decides on."""

        def run():
            return frame.names, _Return(self.evaluate(part, frame))

        return lambda: self.under_condition(frame, where, run)

    def get_Call(self, node, frame):
        fn = self.evaluate(node.func, frame)
        args = self.items(node.args, frame)
        kwargs = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, frame)
            kwargs.update(value if keyword.arg is None else {keyword.arg: value})
        if fn is super and not args:
            return super(frame.load("__class__"), frame.load(next(iter(frame.names))))
        with annotated(frame.source, node):
            return self.call(fn, args, kwargs)

    def items(self, nodes, frame):
        out = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                out.extend(items_of(self.evaluate(node.value, frame)))
            else:
                out.append(self.evaluate(node, frame))
        return out

    def get_Tuple(self, node, frame):
        return tuple(self.items(node.elts, frame))

    def get_List(self, node, frame):
        return self.items(node.elts, frame)

    def get_Set(self, node, frame):
        return set(self.items(node.elts, frame))

    def get_Dict(self, node, frame):
        out = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                out.update(self.evaluate(value, frame))
            else:
                out[self.evaluate(key, frame)] = self.evaluate(value, frame)
        return out

    def get_Lambda(self, node, frame):
        return Closure(self, FunctionSource.nested(node, frame, self), frame)

    def get_NamedExpr(self, node, frame):
        value = self.evaluate(node.value, frame)
        self.assign(node.target, value, frame)
        return value

    def get_JoinedStr(self, node, frame):
        return "".join(self.evaluate(part, frame) for part in node.values)

    def get_FormattedValue(self, node, frame):
        value = self.evaluate(node.value, frame)
        if symbolic(value) and _core.is_symbolic(value):
            value = f"Tensor(shape={list(value.shape)}, dtype={value.dtype})"
        convert = {115: str, 114: repr, 97: ascii}.get(node.conversion, lambda v: v)
        return format(convert(value), "" if node.format_spec is None else self.evaluate(node.format_spec, frame))

    def _comprehend(self, generators, frame, add):
        inner = Frame(frame.source, frame)

        def level(at):
            if at == len(generators):
                return add(inner)
            generator = generators[at]
            iterable = self.evaluate(generator.iter, frame if at == 0 else inner)
            for item in items_of(iterable):
                self.assign(generator.target, item, inner)
                keep = [self.evaluate(test, inner) for test in generator.ifs]
                if any(symbolic(k) for k in keep):
                    raise Unsupported("a condition on a tensor within a comprehension is not supported")
                if all(keep):
                    level(at + 1)

        level(0)

    def get_ListComp(self, node, frame):
        out = []
        self._comprehend(node.generators, frame, lambda inner: out.append(self.evaluate(node.elt, inner)))
        return out

    get_GeneratorExp = get_ListComp

    def get_SetComp(self, node, frame):
        return set(self.get_ListComp(node, frame))

    def get_DictComp(self, node, frame):
        out = {}

        def add(inner):
            out[self.evaluate(node.key, inner)] = self.evaluate(node.value, inner)

        self._comprehend(node.generators, frame, add)
        return out
