"""Computations in Python for operators: what a `PrimitiveWithInfer` of a script runs when it has none of its own."""

__all__ = ["get_vm_impl_fn", "vm_impl_registry"]


class _Registry:
    """Getters by the name of the operator: each takes the primitive and returns the function that computes it."""

    def __init__(self):
        self._getters = {}

    def register(self, primitive):
        """Decorator of a getter for a Primitive class, or for the name of one."""
        name = primitive if isinstance(primitive, str) else primitive.__name__

        def add(getter):
            self._getters[name] = getter
            return getter

        return add

    def get(self, primitive, default=None):
        """The getter of an operator, given by its class or name."""
        return self._getters.get(primitive if isinstance(primitive, str) else primitive.__name__, default)


vm_impl_registry = _Registry()


def get_vm_impl_fn(primitive):
    """The getter of an operator; None where nothing is registered."""
    return vm_impl_registry.get(primitive)
