"""Primitive classes that do something besides their results: print, update parameters, record summaries."""

from morel import _core, ops
from morel.ops.primitive_classes import REQUIRED, Attributes

__all__ = ["ApplyMomentum", "InplaceAddExt", "InplaceIndexAdd", "InplaceSubExt", "Load", "Print", "ScalarSummary"]


class Print(Attributes):
    """Prints tensors, numbers and strings, each on lines of its own; in a compiled function whenever the graph runs."""

    def __call__(self, *args):
        if _core.graph_active():
            from morel.compiler.builtins import print_lines

            return print_lines(args)
        for arg in args:
            print(repr(arg) if isinstance(arg, _core.Tensor) else arg)


class InplaceAddExt(Attributes):
    """input += alpha * other; returns the input."""

    def __call__(self, input, other, alpha=1):
        return input.add_(other * alpha if alpha != 1 else other)


class InplaceIndexAdd(Attributes):
    """var[indices] += updates along an axis, in place; returns var."""

    _defaults = {"axis": REQUIRED}

    def __call__(self, var, indices, updates):
        var[...] = ops.index_add(var, indices, updates, self.axis)
        return var


class InplaceSubExt(Attributes):
    """input -= alpha * other; returns the input."""

    def __call__(self, input, other, alpha=1):
        return input.sub_(other * alpha if alpha != 1 else other)


class Load(Attributes):
    """The value that a parameter has now."""

    def __call__(self, variable, monad=None):
        return variable.clone()


class ApplyMomentum(Attributes):
    """accumulation = momentum * accumulation + gradient; variable -= rate * accumulation. Returns the variable."""

    _defaults = {"use_nesterov": False, "use_locking": False, "gradient_scale": 1.0}

    def __call__(self, variable, accumulation, learning_rate, gradient, momentum):
        gradient = gradient * self.gradient_scale if self.gradient_scale != 1.0 else gradient
        accumulation[...] = accumulation * momentum + gradient
        step = gradient + accumulation * momentum if self.use_nesterov else accumulation
        variable[...] = variable - step * learning_rate
        return variable


class ScalarSummary(Attributes):
    """Records the value of a scalar tensor under a name."""

    def __call__(self, name, value):
        raise NotImplementedError("For 'ScalarSummary', summaries are not supported.")
