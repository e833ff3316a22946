"""The names of morel.ops under their older homes, such as ``ops.function.math_func``."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from morel import ops

    return ops.functional if name.endswith("_func") else getattr(ops, name)
