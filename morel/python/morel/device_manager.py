"""Choice of the device."""

from morel.context import get_current_device, set_deterministic, set_device

__all__ = ["set_device", "set_deterministic", "get_current_device"]
