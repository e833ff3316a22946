"""How `Cell.to_float` runs a cell in another floating dtype."""

from morel._core import Tensor


def cast_float(value, dtype, cast):
    """Floating tensors, also inside tuples and lists, in `dtype`; everything else as it is."""
    if isinstance(value, Tensor):
        return cast(value, dtype) if value.dtype.is_floating_point and value.dtype != dtype else value
    if isinstance(value, (tuple, list)):
        return type(value)(cast_float(item, dtype, cast) for item in value)
    return value


def run_in_dtype(cell, dtype, run, core, args, kwargs):
    """`run(core, args, kwargs)` with the inputs and the trained parameters of `cell` in `dtype`.

    The parameters themselves keep their dtype, and so do their gradients: the casts are recorded. Statistics that a
    layer updates in place (parameters that are not trained) are left alone.
    """
    autocast = getattr(core, "set_autocast", None)
    if autocast is not None:
        before = autocast(dtype)
        try:
            return run(core, args, kwargs)
        finally:
            autocast(before)
    from morel.ops import cast

    args = tuple(cast_float(arg, dtype, cast) for arg in args)
    kwargs = {name: cast_float(arg, dtype, cast) for name, arg in kwargs.items()}
    attributes = cell.__dict__
    originals = {
        name: param
        for name, param in cell._params.items()
        if param is not None
        and param.requires_grad
        and attributes.get(name) is param
        and param.dtype.is_floating_point
        and param.dtype != dtype
    }
    try:
        for name, param in originals.items():
            attributes[name] = cast(param, dtype)
        return run(core, args, kwargs)
    finally:
        attributes.update(originals)
