"""Facts about devices; the newer names are in `morel.runtime`."""

from morel import _core
from morel import runtime as _runtime
from morel.runtime import (
    Event,
    Stream,
    StreamCtx,
    communication_stream,
    current_stream,
    default_stream,
    empty_cache,
    set_cur_stream,
    synchronize,
)

__all__ = [
    "Event",
    "Stream",
    "StreamCtx",
    "communication_stream",
    "current_stream",
    "default_stream",
    "empty_cache",
    "set_cur_stream",
    "synchronize",
    "is_initialized",
    "is_available",
    "device_count",
    "get_device_capability",
    "get_device_properties",
    "get_device_name",
    "get_arch_list",
    "memory_stats",
    "memory_reserved",
    "max_memory_reserved",
    "reset_max_memory_reserved",
    "memory_allocated",
    "max_memory_allocated",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "memory_summary",
]


def _check(device_target):
    if device_target is None:
        return "CPU"
    if not isinstance(device_target, str):
        raise TypeError(f"For 'device_target', the type must be str, but got {type(device_target)}.")
    if device_target not in ("CPU", "OpenCL", "GPU", "Ascend"):
        raise ValueError(
            f"For 'device_target', it must be one of ['CPU', 'OpenCL', 'GPU', 'Ascend'], but got {device_target}."
        )
    return device_target


def is_available(device_target):
    """Whether there is such a device: for ``"CPU"``, and for ``"OpenCL"`` where the system has a driver."""
    return device_count(device_target) > 0


def is_initialized(device_target):
    """Whether the device is ready for use: the CPU always is, others as soon as they are there."""
    return device_count(device_target) > 0


def device_count(device_target=None):
    """Number of such devices: 1 CPU."""
    kind = _check(device_target)
    return _core.device_count(kind) if kind in ("CPU", "OpenCL") else 0


def get_device_name(device_id, device_target=None):
    """Name of the device."""
    kind = _check(device_target)
    return _core.describe_device(f"OpenCL:{device_id}") if kind == "OpenCL" else kind


def get_device_capability(device_id, device_target=None):
    """Nothing is known of a CPU."""
    _check(device_target)


def get_device_properties(device_id, device_target=None):
    """Nothing is known of a CPU."""
    _check(device_target)


def get_arch_list(device_target=None):
    """Nothing is known of a CPU."""
    _check(device_target)


def _of_runtime(name):
    def call(device_target=None):
        _check(device_target)
        return getattr(_runtime, name)()

    call.__name__ = name
    call.__doc__ = f"The same as `runtime.{name}`."
    return call


for _name in (
    "memory_stats",
    "memory_reserved",
    "max_memory_reserved",
    "reset_max_memory_reserved",
    "memory_allocated",
    "max_memory_allocated",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "memory_summary",
):
    globals()[_name] = _of_runtime(_name)
