"""Tensors, parameters, dtypes and process-wide settings."""


def __getattr__(name):
    import morel

    if name.startswith("__"):
        raise AttributeError(name)
    import importlib

    try:
        return importlib.import_module(f"morel.common.{name}")
    except ModuleNotFoundError:
        return getattr(morel, name)
