"""The names of morel.ops under their older home."""

import sys

# Modules that hold them in MindSpore; here each is this module.
PARTS = (
    "_inner_ops",
    "_rl_inner_ops",
    "array_ops",
    "comm_ops",
    "control_ops",
    "custom_ops",
    "debug_ops",
    "image_ops",
    "inner_ops",
    "linalg_ops",
    "manually_defined",
    "math_ops",
    "nn_ops",
    "other_ops",
    "random_ops",
    "sparse_ops",
    "spectral_ops",
)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in PARTS:
        return sys.modules[__name__]
    from morel import ops

    return getattr(ops, name)


def __dir__():
    from morel import ops

    return dir(ops)
