"""All operators as MindSpore generates them: those of morel.ops, their gradients, and ``x_ext``, the form that mint has."""

import sys


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("gen_ops_def", "gen_ops_prim"):
        return sys.modules[__name__]
    from morel import mint, ops
    from morel.ops.operations import _grad_ops

    if name in _grad_ops.__all__:
        return getattr(_grad_ops, name)
    if name.endswith("_ext") and hasattr(mint, name[:-4]):
        return getattr(mint, name[:-4])
    return getattr(ops, name)


def __dir__():
    from morel import ops
    from morel.ops.operations import _grad_ops

    return sorted({*dir(ops), *_grad_ops.__all__})
