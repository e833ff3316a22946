"""Functions with gradients of their own."""

from morel import _core
from morel.api import make_operator

__all__ = ["_Function"]

_zeros_like = make_operator("zeros_like", "zeros_like")


class _Function:
    """Base class of functions that say what their gradients are.

    A subclass defines two static methods: ``forward(ctx, *args, **kwargs)``, which is not recorded, and ``backward(ctx,
    *grad_outputs)``, which returns a gradient, or None, for each argument of `forward`. `ctx` carries what they share:
    `save_for_backward` and any attributes. The function is called as ``Subclass.apply(*args, **kwargs)``.

    Example:
        >>> import morel as ms
        >>> class Double(ms._Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> ms.grad(lambda x: Double.apply(x).sum())(ms.Tensor([1.0, 2.0]))
    """

    def __init__(self):
        self.saved_tensors, self.needs_input_grad, self._constant = (), (), ()

    @staticmethod
    def forward(ctx, *args, **kwargs):
        """The computation; every subclass defines it."""
        raise NotImplementedError("For '_Function', 'forward' must be defined.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """The gradients of the arguments from those of the outputs; every subclass defines it."""
        raise NotImplementedError("For '_Function', 'backward' must be defined.")

    def save_for_backward(self, *tensors):
        """Keeps tensors, or None, as `saved_tensors`."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, _core.Tensor):
                raise TypeError(f"For '_Function', 'save_for_backward' takes Tensors, but got {type(tensor).__name__}.")
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *args):
        """No gradients flow through these outputs."""
        self._constant = tuple(map(id, args))

    def mark_dirty(self, *args):
        """Inputs that `forward` changes in place are not supported."""
        raise NotImplementedError("For '_Function', inputs that are changed in place are not supported.")

    def set_materialize_grads(self, value):
        """Gradients of outputs that are not used are zeros; None instead is not supported."""
        if not isinstance(value, bool):
            raise TypeError(f"For '_Function', 'value' must be bool, but got {type(value).__name__}.")
        if not value:
            raise NotImplementedError("For '_Function', gradients that are not used are always zeros.")

    @classmethod
    def apply(cls, *args, **kwargs):
        """Calls `forward`; in the backward pass `backward` takes its place."""
        ctx = cls()
        ctx.needs_input_grad = tuple(isinstance(arg, _core.Tensor) and _core.any_tracked(arg) for arg in args)
        output = _core.without_grad(cls.forward, ctx, *args, **kwargs)
        if not any(ctx.needs_input_grad):
            return output
        outputs = output if isinstance(output, tuple) else (output,)
        places = [
            idx for idx, item in enumerate(outputs) if isinstance(item, _core.Tensor) and id(item) not in ctx._constant
        ]

        def backward(*cotangents):
            given = [_zeros_like(item) if isinstance(item, _core.Tensor) else None for item in outputs]
            for place, cotangent in zip(places, cotangents):
                given[place] = cotangent
            found = cls.backward(ctx, *given)
            found = found if isinstance(found, tuple) else (found,)
            if len(found) != len(args):
                raise ValueError(
                    f"For '{cls.__name__}', 'backward' must return {len(args)} gradients, one for each argument of "
                    f"'forward', but returned {len(found)}."
                )
            for idx, (gradient, arg) in enumerate(zip(found, args)):
                if gradient is not None and not isinstance(arg, _core.Tensor):
                    raise RuntimeError(
                        f"For '{cls.__name__}', 'backward' returned a gradient for argument {idx}, which is no Tensor."
                    )
            return tuple(gradient for gradient, arg in zip(found, args) if isinstance(arg, _core.Tensor))

        inputs = [arg for arg in args if isinstance(arg, _core.Tensor)]
        linked = iter(_core.custom_backward(cls.__name__, inputs, [outputs[place] for place in places], backward))
        results = tuple(next(linked) if idx in places else item for idx, item in enumerate(outputs))
        return results if isinstance(output, tuple) else results[0]
