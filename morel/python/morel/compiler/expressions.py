"""Expressions of the source, evaluated symbolically. A new kind is a method ``get_Name``, after the class in `ast`."""

import ast
import operator
import types

from morel.common import dtype as mstype
from morel.compiler import containers
from morel.compiler.builtins import items_of
from morel.compiler.choice import item_at, operand
from morel.compiler.facts import rely_on
from morel.compiler.frame import Closure, Frame, Undefined
from morel.compiler.source import FunctionSource, Unsupported, annotated, refuse_syntax
from morel.compiler.tensor_flow import check_condition, merge, symbolic
from morel.compiler.text import Text, formatted

BINARY = {
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
# Of an expression that cannot fail, change or draw anything once its Python values are known.
_HARMLESS = (
    *(ast.BoolOp, ast.Compare, ast.UnaryOp, ast.BinOp, ast.Attribute, ast.Name, ast.Constant),
    *(ast.operator, ast.cmpop, ast.unaryop, ast.boolop, ast.expr_context),
)
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}


class Returned:
    """What a function, or a branch that is an expression, gives."""

    def __init__(self, value):
        self.value = value


def _is_harmless(node):
    """Whether a part of a condition may be computed although an earlier part decides already."""
    return all(
        isinstance(part, _HARMLESS) or (isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant))
        for part in ast.walk(node)
    )


class Expressions:
    """The part of the interpreter that evaluates; it needs `call` and `assign`."""

    def evaluate(self, node, frame):
        return getattr(self, "get_" + type(node).__name__, self.refuse_expression)(node, frame)

    def refuse_expression(self, node, _frame):
        refuse_syntax(node)

    def get_Constant(self, node, _frame):
        return node.value

    def get_Name(self, node, frame):
        return frame.load(node.id)

    def get_Attribute(self, node, frame):
        return self.attribute(self.evaluate(node.value, frame), node.attr)

    def attribute(self, owner, name):
        value = getattr(owner, name)
        if hasattr(type(owner), "construct"):
            rely_on(owner, name, value)
        elif isinstance(owner, types.ModuleType):
            containers.enter_value(f"{owner.__name__}.{name}", value)
        return value

    def get_Subscript(self, node, frame):
        return item_at(self.call, self.evaluate(node.value, frame), self.evaluate(node.slice, frame))

    def get_Slice(self, node, frame):
        return slice(
            *(None if part is None else self.evaluate(part, frame) for part in (node.lower, node.upper, node.step))
        )

    def get_BinOp(self, node, frame):
        return BINARY[type(node.op)](self.evaluate(node.left, frame), self.evaluate(node.right, frame))

    def get_UnaryOp(self, node, frame):
        if isinstance(node.op, ast.Not):
            value = self.condition(node.operand, frame)
            return value.logical_not() if symbolic(value) else not value
        return _UNARY[type(node.op)](self.evaluate(node.operand, frame))

    def condition(self, node, frame):
        """The value of an expression of which only the truth counts."""
        return self.get_BoolOp(node, frame, True) if isinstance(node, ast.BoolOp) else self.evaluate(node, frame)

    def truth(self, node, frame):
        """The same, as a Python value or a tensor of one bool."""
        value = self.condition(node, frame)
        if not symbolic(value):
            return bool(value)
        check_condition(value)
        return value.astype(mstype.bool_).reshape(())

    def get_BoolOp(self, node, frame, is_condition=False):
        is_and = isinstance(node.op, ast.And)
        evaluate = self.truth if is_condition else self.evaluate
        value = evaluate(node.values[0], frame)
        for part in node.values[1:]:
            if symbolic(value) and is_condition and _is_harmless(part):
                other = evaluate(part, frame)
                value = value.logical_and(other) if is_and else value.logical_or(other)
            elif symbolic(value):
                value = operand(is_and, value, self.branch(part, frame, "'and'" if is_and else "'or'", evaluate))
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
        return merge(condition, *branches, frame.names, Undefined, Returned)[1].value

    def branch(self, part, frame, where, evaluate=None):
        """A function that evaluates an expression which a condition on a tensor decides on."""

        def run():
            return frame.names, Returned((evaluate or self.evaluate)(part, frame))

        return lambda: containers.run_guarded(frame, where, run)

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
        return Text.of([self.evaluate(part, frame) for part in node.values])

    def get_FormattedValue(self, node, frame):
        value = self.evaluate(node.value, frame)
        spec = "" if node.format_spec is None else self.evaluate(node.format_spec, frame)
        return formatted(value, None if node.conversion == -1 else chr(node.conversion), spec)

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
