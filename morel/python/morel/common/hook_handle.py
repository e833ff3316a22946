"""The handle that hook registrations return."""

import weakref

__all__ = ["HookHandle"]

_next_id = 0


class HookHandle:
    """Identifies one registered hook; `remove` takes it out again.

    Args:
        hooks_dict (dict, optional): where the hook is stored under `handle_id`. Held weakly.
        extra_dict (Union[dict, list[dict]], optional): further dicts with an entry for the hook.
    """

    __slots__ = ("handle_id", "_dicts")

    def __init__(self, hooks_dict=None, extra_dict=None):
        global _next_id
        self.handle_id = _next_id
        _next_id += 1
        extra = extra_dict if isinstance(extra_dict, (list, tuple)) else [extra_dict]
        self._dicts = [weakref.ref(entry) for entry in (hooks_dict, *extra) if entry is not None]

    def remove(self):
        """Removes the hook; a second call does nothing."""
        for reference in self._dicts:
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.handle_id, None)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.remove()
