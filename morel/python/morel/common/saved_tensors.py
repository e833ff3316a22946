"""Hooks on the tensors that are kept for the backward pass. Not there yet."""

__all__ = ["register_saved_tensors_hooks", "saved_tensors_hooks"]


def _refuse(name, pack_hook, unpack_hook):
    for argument, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
        if not callable(hook):
            raise TypeError(f"For '{name}', '{argument}' must be callable, but got {type(hook).__name__}.")
    raise NotImplementedError(
        f"'{name}' is not supported yet; recompute(block, *args) keeps the inputs of a block instead of its activations."
    )


class saved_tensors_hooks:
    """Context in which tensors that are kept for the backward pass go through `pack_hook`, and come back from `unpack_hook`."""

    def __init__(self, pack_hook, unpack_hook):
        _refuse("saved_tensors_hooks", pack_hook, unpack_hook)


def register_saved_tensors_hooks(pack_hook, unpack_hook):
    """Decorator of functions that run within `saved_tensors_hooks`."""
    _refuse("register_saved_tensors_hooks", pack_hook, unpack_hook)
