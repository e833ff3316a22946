"""The graph front end: reads the source of a Python function and runs it symbolically.

Values of Python (numbers, strings, cells, containers) are what they are, at compile time; tensors are symbolic, and every
operator on them becomes a node of the graph. Control flow on Python values is resolved here, control flow on tensors becomes
``if`` and ``while`` of the graph.

A function body is run as a list of statements that are still to come (a linked list: statement, rest). Loops and ``if`` put
their bodies in front of the rest, so ``break``, ``continue`` and ``return`` are a matter of what the rest is, and a branch on a
tensor that leaves early takes the rest along.
"""

import ast
import functools
import threading
import types

from morel import _core
from morel.compiler import containers, recursion
from morel.compiler.builtins import in_graph, items_of, raise_when_run
from morel.compiler.choice import by_mask, is_mask, item_at
from morel.compiler.expressions import BINARY, Expressions, Returned
from morel.compiler.facts import kind_with_sizes, relied_on, rely_on, rely_on_structure
from morel.compiler.frame import Closure, Frame, Undefined
from morel.compiler.jumps import RESULT, RETURNED, STOP, Give, jumps_in, leaves_early
from morel.compiler.source import FunctionSource, Unsupported, annotated, place_of, refuse_syntax
from morel.compiler.tensor_flow import blank_result, merge, run_while, same, symbolic
from morel.context import get_context

_state = threading.local()


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


def _managers(rest):
    """Of the ``with`` blocks that end in what is pending, the inner ones first."""
    while rest is not None:
        item, rest = rest
        if isinstance(item, _Exit):
            yield item.manager


def _check_kept(before, after, assigned):
    """That the body of a loop on a tensor left names alone which it does not assign: a function that it calls may not."""
    for name in before.keys() - assigned:
        old, new = before[name], after.get(name)
        if not (same(old, new) or isinstance(old, Undefined) and isinstance(new, Undefined)):
            raise Unsupported(
                f"'{name}' is changed within 'while' on a tensor by a function that is called there; return the new value "
                "and assign it in the loop"
            )


def _push(statements, rest):
    for statement in reversed(statements):
        rest = (statement, rest)
    return rest


class Interpreter(Expressions):
    def __init__(self):
        self.depth = 0

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
        if not relied_on(cell, "training"):  # else with a cell that contains it
            for _, part in cell.cells_and_names():
                rely_on(part, "training", part.training)
                rely_on_structure(part)
        if cell.has_bprop or cell.mixed_precision_type is not None or cell._has_hooks():
            return cell(*args, **kwargs)
        if not cell._names_checked:
            cell._prepare()
        if cell._recompute_flag and not getattr(_state, "recomputes", False):
            return self.recompute(cell, args, kwargs)
        return self.call(cell.construct, args, kwargs)

    def recompute(self, cell, args, kwargs):
        """A cell that asks to be computed again in the backward pass; those within it are part of that."""
        from morel.common.recomputation import run_and_forget

        def run(*inputs, **options):
            _state.recomputes = True
            try:
                return self.call(cell.construct, inputs, options)
            finally:
                _state.recomputes = False

        return run_and_forget(run, cell.trainable_params(), args, kwargs)

    def run_source(self, source, args, kwargs, outer=None):
        names = source.bind(args, kwargs)
        return recursion.call(source, outer, names, kind_with_sizes, lambda names: self._run_body(source, names, outer))

    def _run_body(self, source, names, outer):
        frame = Frame(source, outer, names)
        containers.enter(source)
        self.depth += 1
        if self.depth > get_context("max_call_depth"):
            self.depth = 0
            raise Unsupported(
                f"calls are nested more than {get_context('max_call_depth')} deep (set_recursion_limit); a compiled function "
                "can call itself without end only under an 'if' on a tensor, with arguments of the same types"
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
        """Runs pending statements; a Returned, or None at the end."""
        while pending is not None:
            statement, rest = pending
            with annotated(frame.source, statement):
                pending = getattr(self, "do_" + type(statement).__name__, self.refuse)(statement, rest, frame)
            if isinstance(pending, Returned):
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
        return Returned(value)

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
        combine = BINARY[type(node.op)]
        if isinstance(node.target, ast.Subscript):
            owner, key = self.evaluate(node.target.value, frame), self.evaluate(node.target.slice, frame)
            if is_mask(owner, key):
                value = self.evaluate(node.value, frame)
                owner[...] = by_mask(owner, key, combine, value)
                return rest
            old = item_at(self.call, owner, key)
        elif isinstance(node.target, ast.Attribute):
            owner = self.evaluate(node.target.value, frame)
            old = self.attribute(owner, node.target.attr)
        else:
            old = frame.load(node.target.id)
        new = combine(old, self.evaluate(node.value, frame))
        if isinstance(old, list) and isinstance(new, list) and isinstance(node.op, ast.Add):
            old[:] = new
            new = old
        if isinstance(node.target, ast.Subscript):
            owner[key] = new
        elif isinstance(node.target, ast.Attribute):
            self.set_attribute(owner, node.target.attr, new)
        else:
            frame.store(node.target.id, new)
        return rest

    def do_Assert(self, node, rest, frame):
        condition = self.condition(node.test, frame)
        if symbolic(condition):
            fails = ast.copy_location(ast.Assert(ast.Constant(False), node.msg), node)
            return self.do__Choice(_Choice(condition, (), [fails]), rest, frame)
        if not condition:
            self.fail(AssertionError(*([self.evaluate(node.msg, frame)] if node.msg else ())), node, frame)
        return rest

    def do_Raise(self, node, _rest, frame):
        if node.exc is None:
            raise Unsupported("'raise' alone is not supported in a compiled function")
        self.fail(self.evaluate(node.exc, frame), node, frame)

    def fail(self, error, node, frame):
        if not containers.under_condition() and not (_core.graph_depth() == 1 and _core.graph_talks()):
            raise error  # nothing comes before it
        raise_when_run(error, place_of(frame.source, node))

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
        from morel.common.api import _no_grad

        condition = choice.condition
        if not symbolic(condition):
            return _push(choice.body if condition else choice.orelse, rest)
        leaves = leaves_early(choice.body) or leaves_early(choice.orelse)
        # What follows, and so the end of each `with` of no gradients, is part of the branches then.
        pauses = [manager for manager in _managers(rest) if isinstance(manager, _no_grad)] if leaves else []

        def runner(body):
            def run():
                for pause in reversed(pauses):
                    pause.__enter__()
                result = self.run(_push(body, rest if leaves else None), frame)
                return dict(frame.names), result

            return lambda: self.branch_of(frame, "'if'", run, leaves)

        then, orelse = runner(choice.body), runner(choice.orelse)
        for pause in pauses:
            pause.__exit__()
        names, result = merge(condition, then, orelse, frame.names, Undefined, Returned if leaves else None)
        if result is not None:
            return result
        frame.names.update(names)
        return None if leaves else rest

    def branch_of(self, frame, where, run, leaves=False):
        """Statements that a condition on a tensor decides on: (the names after them, what they return)."""
        with frame.aside():
            return containers.run_guarded(frame, where, run, assigns=True, leaves=leaves)

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
        if any(isinstance(part, ast.NamedExpr) for part in ast.walk(node.test)):
            raise Unsupported("':=' in the condition of a 'while' on a tensor is not supported in a compiled function")
        jumps = jumps_in(node.body)
        stores = (n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        assigned = jumps.union(n.id for n in stores)
        outer = {name: frame.names[name] for name in jumps if name in frame.names}  # of a loop around this one
        frame.names.update(dict.fromkeys(jumps - {RESULT}, False))
        end = _EndOfTurn()

        def turn(names, part):
            with frame.aside():
                frame.names.update(names)
                if part == "condition":
                    condition = self.condition(node.test, frame)
                    return frame.names[STOP].logical_not().logical_and(condition) if jumps else condition

                before = dict(frame.names)

                def run():
                    self.run(_push(node.body, (end, None)), frame)
                    _check_kept(before, frame.names, assigned)
                    return dict(frame.names), None

                return self.branch_of(frame, "'while'", run)[0]

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
            self.set_attribute(self.evaluate(target.value, frame), target.attr, value)
        elif isinstance(target, ast.Subscript):
            container = self.evaluate(target.value, frame)
            key = self.evaluate(target.slice, frame)
            container[key] = value
        elif isinstance(target, ast.Starred):
            self.assign(target.value, list(value), frame)
        else:
            raise Unsupported("assigning to this is not supported in a compiled function")

    def set_attribute(self, owner, name, value):
        old = owner.__dict__.get(name) if hasattr(owner, "__dict__") else None
        if not (isinstance(old, _core.Tensor) and isinstance(value, _core.Tensor)) or _core.is_symbolic(old):
            raise Unsupported(
                f"assigning to the attribute '{name}' is not supported in a compiled function, unless it is a Parameter"
            )
        if old is not value:
            old[...] = value  # the new value of a Parameter or buffer, which keeps its identity

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
