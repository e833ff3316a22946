"""Hooks of a Cell: forward, backward and saved-tensor hooks, and how a call runs through them."""

import weakref

from morel.common.hook_handle import HookHandle
from morel.common.structure import changed


class Hooks(dict):
    """Hook functions by handle id; a class of its own so that handles can hold it weakly."""

    __slots__ = ("__weakref__", "owner")

    def pop(self, *args):
        owner = self.owner() if hasattr(self, "owner") else None
        if owner is not None:
            changed(owner)
        return super().pop(*args)


def _check_hook(hook_fn):
    if not callable(hook_fn):
        raise TypeError(f"For 'Cell', a hook must be callable, but got {type(hook_fn).__name__}.")


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def _run_chain(cell, hooks, what, values, *further):
    """Passes `values` through hooks that may replace it; the number of values must stay."""
    for hook_fn in list(hooks.values()):
        result = hook_fn(cell, values, *further)
        if result is None:
            continue
        result = _as_tuple(result)
        if len(result) != len(values):
            raise TypeError(
                f"For 'Cell', the {what} hook must return {len(values)} gradients, but returned {len(result)}."
            )
        values = result
    return values


class _BackwardHookRun:
    """One call of a cell with backward hooks: remembers the output's gradient until the inputs' are known."""

    def __init__(self, cell):
        self.cell = cell
        self.grad_output = None
        self.inputs_tracked = False
        self.input_count = 0

    def tap_inputs(self, core, args):
        """The arguments, noted as places where `backward` hooks run."""
        places = _tensor_places(args)
        self.input_count = len(places)
        tensors = [args[index] for index in places]
        self.inputs_tracked = core.any_tracked(*tensors)
        return _tap(core, args, places, self.at_input) if self.inputs_tracked else args

    def tap_outputs(self, core, output):
        """The outputs, noted as the place where `backward pre` hooks run."""
        outputs = _as_tuple(output)
        places = _tensor_places(outputs)
        if not core.any_tracked(*(outputs[index] for index in places)):
            return output
        outputs = _tap(core, outputs, places, self.at_output)
        return outputs if isinstance(output, tuple) else outputs[0]

    def at_output(self, *gradients):
        gradients = _run_chain(self.cell, self.cell._backward_pre_hook, "backward pre", gradients)
        self.grad_output = gradients
        if self.cell._backward_hook and not self.inputs_tracked:
            # Nothing flows on to the inputs; the hooks still see the output's gradient.
            _run_chain(self.cell, self.cell._backward_hook, "backward", (None,) * self.input_count, gradients)
        return gradients

    def at_input(self, *gradients):
        return _run_chain(self.cell, self.cell._backward_hook, "backward", gradients, self.grad_output)


def _tensor_places(values):
    from morel._core import Tensor

    return [index for index, value in enumerate(values) if isinstance(value, Tensor)]


def _tap(core, values, places, on_gradient):
    """`values` with the tensors at `places` passed through a node whose gradients go through `on_gradient` together."""
    tensors = [values[index] for index in places]
    linked = core.custom_backward("CellBackwardHook", tensors, tensors, on_gradient)
    values = list(values)
    for index, tensor in zip(places, linked):
        values[index] = tensor
    return tuple(values)


class CellHooks:
    """The hook part of Cell. Hook dicts are shared empty defaults until the first registration."""

    _forward_pre_hook = {}
    _forward_hook = {}
    _backward_pre_hook = {}
    _backward_hook = {}
    _with_kwargs = {}
    _saved_tensors_hooks = None

    def _add_hook(self, attribute, hook_fn, with_kwargs=False):
        _check_hook(hook_fn)
        members = self.__dict__
        hooks = members.setdefault(attribute, Hooks())
        kwargs_hooks = members.setdefault("_with_kwargs", Hooks())
        handle = HookHandle(hooks, extra_dict=kwargs_hooks)
        hooks[handle.handle_id] = hook_fn
        hooks.owner = weakref.ref(self)
        if with_kwargs:
            kwargs_hooks[handle.handle_id] = True
        members["_direct"] = False
        changed(self)
        return handle

    def register_forward_pre_hook(self, hook_fn, with_kwargs=False):
        """Calls ``hook_fn(cell, args)`` before `construct`.

        Args:
            hook_fn (function): returns ``None`` or new positional arguments (a tuple or one value). With `with_kwargs`
                it is called as ``hook_fn(cell, args, kwargs)`` and returns ``None`` or ``(args, kwargs)``.
            with_kwargs (bool): hand keyword arguments to the hook too. Default ``False``.

        Returns:
            HookHandle, whose `remove` takes the hook out.
        """
        return self._add_hook("_forward_pre_hook", hook_fn, with_kwargs)

    def register_forward_hook(self, hook_fn, with_kwargs=False):
        """Calls ``hook_fn(cell, args, output)`` after `construct`; a result other than ``None`` replaces the output."""
        if self.has_bprop:
            return HookHandle()
        return self._add_hook("_forward_hook", hook_fn, with_kwargs)

    def register_backward_pre_hook(self, hook_fn):
        """Calls ``hook_fn(cell, grad_output)`` when the gradient of the output is known; it may return a new one."""
        return self._add_hook("_backward_pre_hook", hook_fn)

    def register_backward_hook(self, hook_fn):
        """Calls ``hook_fn(cell, grad_input, grad_output)``, which may return other gradients of the inputs."""
        return self._add_hook("_backward_hook", hook_fn)

    def register_saved_tensors_hooks(self, pack_hook, unpack_hook):
        """Runs `construct` inside ``saved_tensors_hooks(pack_hook, unpack_hook)`` when gradients are recorded."""
        from morel import _core

        if not hasattr(_core, "saved_tensors_hooks"):
            raise NotImplementedError(
                "For 'Cell', saved tensors hooks are not supported yet; forward and backward hooks are."
            )
        self.__dict__["_saved_tensors_hooks"] = (pack_hook, unpack_hook)
        self.__dict__["_direct"] = False
        changed(self)

    def _has_hooks(self):
        return bool(
            self._forward_pre_hook
            or self._forward_hook
            or self._backward_pre_hook
            or self._backward_hook
            or self._saved_tensors_hooks
        )

    def _run_forward_pre_hooks(self, args, kwargs):
        for handle_id, hook_fn in list(self._forward_pre_hook.items()):
            if handle_id in self._with_kwargs:
                result = hook_fn(self, args, kwargs)
                if result is not None:
                    if not isinstance(result, tuple) or len(result) != 2:
                        raise RuntimeError(
                            f"For 'Cell', a forward pre hook with kwargs must return None or a tuple "
                            f"(args, kwargs), but returned {type(result).__name__}."
                        )
                    args, kwargs = result
            else:
                result = hook_fn(self, args)
                if result is not None:
                    args = _as_tuple(result)
        return args, kwargs

    def _run_forward_hooks(self, args, kwargs, output):
        for handle_id, hook_fn in list(self._forward_hook.items()):
            if handle_id in self._with_kwargs:
                result = hook_fn(self, args, kwargs, output)
            else:
                result = hook_fn(self, args, output)
            output = output if result is None else result
        return output

    def _call_hooked(self, args, kwargs):
        """One call with all hooks around `_call_inner`."""
        if self._forward_pre_hook:
            args, kwargs = self._run_forward_pre_hooks(args, kwargs)
        run = None
        if self._backward_hook or self._backward_pre_hook:
            from morel import _core

            if _core.grad_enabled():
                run = _BackwardHookRun(self)
        inner_args = run.tap_inputs(_core, args) if run is not None and self._backward_hook else args
        output = self._call_inner(inner_args, kwargs)
        if self._forward_hook:
            output = self._run_forward_hooks(args, kwargs, output)
        return output if run is None else run.tap_outputs(_core, output)
