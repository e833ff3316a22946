"""Jumps out of branches and loops on tensors: return, break, continue."""

import ast


class Give:
    """A return of a value that is known already."""

    def __init__(self, value):
        self.value = value


def leaves_early(statements):
    """Whether a return, or a break or continue of an outer loop, is among the statements."""

    def visit(node, in_loop):
        if isinstance(node, (ast.Return, Give)):
            return True
        if isinstance(node, (ast.Break, ast.Continue)):
            return not in_loop
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            return False
        if not isinstance(node, ast.AST):
            return False
        inside = in_loop or isinstance(node, (ast.For, ast.While))
        return any(visit(child, inside) for child in ast.iter_child_nodes(node))

    return any(visit(statement, False) for statement in statements)


# Names that no source can have. Of a loop on a tensor: whether it was left, whether by a return, and what that returns.
STOP, RETURNED, RESULT = "<stop>", "<returned>", "<result>"


def jumps_in(statements):
    """The names that a loop on a tensor needs for the jumps in its body."""

    def visit(node, in_loop):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            return set()
        if isinstance(node, ast.Return):
            return {STOP, RETURNED, RESULT}
        if isinstance(node, ast.Break):
            return set() if in_loop else {STOP}
        inside = in_loop or isinstance(node, (ast.For, ast.While))
        return set().union(*(visit(child, inside) for child in ast.iter_child_nodes(node)))

    return set().union(*(visit(statement, False) for statement in statements))
