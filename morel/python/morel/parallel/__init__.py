"""Parallel training: layouts of tensors on meshes of processes, and tensors that lie there. docs/sharding.md tells how."""

from morel.parallel.dtensor import DTensor, distribute_tensor, shard_module, simulated_world
from morel.parallel.layout import DeviceMesh, Layout, Partial, Placement, Replicate, Shard, init_device_mesh

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Layout",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_tensor",
    "init_device_mesh",
    "shard_module",
    "simulated_world",
]
