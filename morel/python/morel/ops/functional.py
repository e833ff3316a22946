"""The names of morel.ops under their older home."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from morel import ops

    return getattr(ops, name)


def __dir__():
    from morel import ops

    return dir(ops)
