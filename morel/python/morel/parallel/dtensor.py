"""Distributed tensors: Tensors of the whole's shape whose data lie in parts on the processes of a mesh. Operators, methods, gradients
and optimizers take them as they are; the core chooses how results lie and what has to be moved (docs/sharding.md).
"""

from contextlib import contextmanager

from morel import _core
from morel._core import Tensor
from morel.parallel.layout import DeviceMesh, Layout, placements_of_sharding, sharding_of_placements

__all__ = [
    "DTensor",
    "distribute_tensor",
    "empty",
    "full",
    "ones",
    "rand",
    "randn",
    "shard_module",
    "simulated_world",
    "zeros",
]

_dist = _core.dist


def _sharding(rank, mesh, placements):
    """The core's sharding of a Layout, or of a mesh and placements."""
    if isinstance(mesh, Layout):
        if placements is not None:
            mesh = mesh.mesh
        else:
            return mesh.sharding(rank)
    if not isinstance(mesh, DeviceMesh):
        raise TypeError(f"a Layout, or a DeviceMesh and placements, are needed, but got {type(mesh).__name__}")
    if placements is None:
        raise ValueError("placements are needed, one for each axis of the mesh")
    if isinstance(placements, Layout):
        return placements.sharding(rank)
    return sharding_of_placements(mesh._mesh, placements, rank)


class _Kind(type):
    def __instancecheck__(cls, object_):
        return isinstance(object_, Tensor) and _dist.sharding_of(object_) is not None


class DTensor(metaclass=_Kind):
    """The kind of Tensors that are distributed: `isinstance(x, DTensor)`. They have these methods:

    - `redistribute(device_mesh, placements)` or `redistribute(layout)`: the same values, laid out so;
    - `full_tensor()`: an ordinary Tensor of the whole, at every process;
    - `to_local()`: this process' part (in a simulated world a tuple of all parts);
    - `reduce_partial()`: with parts of sums added up;
    - `layout`, `placements`, `device_mesh`, `local_shape`.
    """

    @staticmethod
    def from_local(local_tensor, device_mesh, placements=None, *, shape=None):
        """The distributed tensor of which this process has the part `local_tensor`.

        Args:
            local_tensor (Tensor): the part; in a simulated world a sequence of them.
            device_mesh (Union[DeviceMesh, Layout]): where.
            placements (sequence of Placement, optional): how it lies there, where `device_mesh` is not a Layout.
            shape (tuple of int, optional): of the whole; needed where the pieces are not of equal size.

        Raises:
            ValueError: the part has not the size that belongs to it.
        """
        parts = list(local_tensor) if isinstance(local_tensor, (list, tuple)) else [local_tensor]
        sharding = _sharding(parts[0].ndim, device_mesh, placements)
        shape = list(shape) if shape is not None else _dist.parts_shape(sharding, parts)
        return _dist.from_parts(sharding, shape, parts[0].dtype, parts)


def distribute_tensor(tensor, device_mesh, placements=None):
    """A tensor that every process has in full, laid out on a mesh: each process keeps its pieces.

    Args:
        tensor (Tensor): the same at all processes.
        device_mesh (Union[DeviceMesh, Layout]): where.
        placements (sequence of Placement, optional): how it lies there, where `device_mesh` is not a Layout.
    """
    return _dist.distribute(tensor, _sharding(tensor.ndim, device_mesh, placements))


# -- methods of distributed tensors --
def _checked(tensor, name):
    sharding = _dist.sharding_of(tensor)
    if sharding is None:
        raise ValueError(f"'{name}' is for distributed tensors, but this one of shape {tensor.shape} is not")
    return sharding


def _redistribute(self, device_mesh=None, placements=None):
    sharding = _checked(self, "redistribute")
    mesh = DeviceMesh("CPU", None, _core_mesh=sharding.mesh) if device_mesh is None else device_mesh
    return _dist.redistribute(self, _sharding(self.ndim, mesh, placements))


def _full_tensor(self):
    _checked(self, "full_tensor")
    return _dist.full_tensor(self)


def _to_local(self):
    _checked(self, "to_local")
    parts = _dist.to_parts(self)
    return parts[0] if len(_dist.local_ranks()) == 1 else tuple(parts)


def _reduce_partial(self):
    sharding = _checked(self, "reduce_partial")
    return _dist.redistribute(self, _dist.sharding(sharding.mesh, sharding.axes, [], "sum"))


_METHODS = {
    "redistribute": _redistribute,
    "full_tensor": _full_tensor,
    "to_local": _to_local,
    "reduce_partial": _reduce_partial,
    "placements": property(lambda self: placements_of_sharding(_checked(self, "placements"))),
    "device_mesh": property(lambda self: DeviceMesh("CPU", None, _core_mesh=_checked(self, "device_mesh").mesh)),
    "layout": property(lambda self: Layout.of(_checked(self, "layout"))),
    "local_shape": property(
        lambda self: tuple(
            _checked(self, "local_shape").local_shape(
                _dist.sharding_of(self).mesh.position_of(_dist.local_ranks()[0]), list(self.shape)
            )
        )
    ),
}
for _name, _method in _METHODS.items():
    setattr(Tensor, _name, _method)


# -- new ones: every process makes its part, random numbers as if there were one process --
def _made(operator, size, rest, device_mesh, placements):
    size = [size] if isinstance(size, int) else list(size)
    return _dist.create(operator, [tuple(size), *rest], _sharding(len(size), device_mesh, placements))


def zeros(size, device_mesh, placements=None, *, dtype=None):
    """A distributed tensor of zeros."""
    return full(size, 0.0, device_mesh, placements, dtype=dtype)


def ones(size, device_mesh, placements=None, *, dtype=None):
    """A distributed tensor of ones."""
    return full(size, 1.0, device_mesh, placements, dtype=dtype)


empty = zeros


def full(size, fill_value, device_mesh, placements=None, *, dtype=None):
    """A distributed tensor of one value."""
    return _made("full", size, [fill_value, dtype or _core.dtype_named("Float32")], device_mesh, placements)


def rand(size, device_mesh, placements=None, *, dtype=None):
    """Uniform numbers in [0, 1), the same for every layout."""
    return _made("random_uniform", size, [0.0, 1.0, dtype], device_mesh, placements)


def randn(size, device_mesh, placements=None, *, dtype=None):
    """Normal numbers, the same for every layout."""
    return _made("random_normal", size, [0.0, 1.0, dtype], device_mesh, placements)


def shard_module(module, device_mesh, plan):
    """Lays out the Parameters of a Cell, in place.

    Args:
        module (Cell): a network, or an optimizer, whose Parameters must be the same at all processes.
        device_mesh (DeviceMesh): where.
        plan (dict): for names of Parameters, or functions of them that say yes, placements or a Layout. Others become copies
            at all processes, unless they are laid out already.

    Raises:
        ValueError: the plan names a Parameter that is not there.
    """
    unused = {key for key in plan if isinstance(key, str)}
    for parameter in module.get_parameters():
        chosen = [
            value for key, value in plan.items() if key == parameter.name or (callable(key) and key(parameter.name))
        ]
        unused.discard(parameter.name)
        if not chosen and isinstance(parameter, DTensor):
            continue
        whole = Layout.of(_dist.sharding(device_mesh._mesh, [[] for _ in range(parameter.ndim)], [], "sum"))
        laid_out = distribute_tensor(parameter, device_mesh, chosen[0] if chosen else whole)
        _core.set_data(parameter, _core.detach(laid_out))
    if unused:
        raise ValueError(f"the plan names Parameters that are not there: {sorted(unused)}")
    return module


@contextmanager
def simulated_world(size):
    """Within it this process stands for `size` ranks: what distributed tensors would do is done here, part by part, in an order
    that is always the same. For tests, and to see what a layout costs before there are as many processes."""
    if _dist.world_size() > 1:
        raise RuntimeError("a world of several processes is there already")
    _dist.simulate(size)
    try:
        yield
    finally:
        _dist.simulate(1)
