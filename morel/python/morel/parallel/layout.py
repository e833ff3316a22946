"""How a tensor lies on a mesh of processes, under MindSpore's names (Layout) and those of placements (Shard, Replicate, Partial).
Both stand for one object of the core, `_core.dist.Sharding`, of which there is one for each meaning.
"""

from dataclasses import dataclass

from morel import _core

__all__ = ["DeviceMesh", "Layout", "Partial", "Placement", "Replicate", "Shard", "init_device_mesh"]

_dist = _core.dist


class Placement:
    """What happens to a tensor along one axis of a mesh."""

    def is_shard(self, dim=None):
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self):
        return isinstance(self, Replicate)

    def is_partial(self):
        return isinstance(self, Partial)


@dataclass(frozen=True)
class Shard(Placement):
    """Axis `dim` of the tensor is cut into pieces of equal size; the last ones may be shorter or empty."""

    dim: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Every process has a copy."""


@dataclass(frozen=True)
class Partial(Placement):
    """The tensor is the sum ("sum", or "prod", "min", "max", "any", "all") of what the processes have."""

    reduce_op: str = "sum"


def sharding_of_placements(mesh, placements, rank):
    """The core's sharding of placements, one for each axis of the core's mesh, for tensors of `rank` axes."""
    if isinstance(placements, Placement):
        placements = (placements,)
    if len(placements) != len(mesh.shape):
        raise ValueError(f"a mesh of {len(mesh.shape)} axes {mesh} needs as many placements, but got {placements!r}")
    lists, partial, combine = [[] for _ in range(rank)], [], None
    for axis, placement in enumerate(placements):
        if isinstance(placement, Shard):
            if not -rank <= placement.dim < rank:
                raise ValueError(f"{placement} does not fit a tensor of {rank} axes")
            lists[placement.dim].append(axis)
        elif isinstance(placement, Partial):
            if combine not in (None, placement.reduce_op):
                raise ValueError(f"all partial placements must have one reduce_op, but got {placements!r}")
            combine = placement.reduce_op
            partial.append(axis)
        elif not isinstance(placement, Replicate):
            raise TypeError(f"a placement must be Shard, Replicate or Partial, but got {placement!r}")
    return _dist.sharding(mesh, lists, partial, combine or "sum")


def placements_of_sharding(sharding):
    """One placement for each axis of the mesh."""
    out = []
    for axis in range(len(sharding.mesh.shape)):
        cut = [dim for dim, list_ in enumerate(sharding.axes) if axis in list_]
        partial = Partial(sharding.combine) if axis in sharding.partial else Replicate()
        out.append(Shard(cut[0]) if cut else partial)
    return tuple(out)


class DeviceMesh:
    """Processes along named axes.

    Args:
        device_type (str): kept for compatibility.
        mesh (nested list, tuple or Tensor of int): the ranks.
        mesh_dim_names (tuple of str): names of the axes.

    Raises:
        ValueError: names that do not fit, ranks twice or out of range.
    """

    def __init__(self, device_type, mesh, *, mesh_dim_names=None, _core_mesh=None):
        self.device_type = device_type
        if _core_mesh is None:
            import numpy

            ranks = numpy.asarray(mesh.asnumpy() if isinstance(mesh, _core.Tensor) else mesh)
            names = list(mesh_dim_names or (f"dim_{i}" for i in range(ranks.ndim)))
            _core_mesh = _dist.mesh(list(ranks.shape), names, [int(rank) for rank in ranks.reshape(-1)])
        self._mesh = _core_mesh

    @property
    def mesh_dim_names(self):
        return tuple(self._mesh.names)

    @property
    def mesh_shape(self):
        return tuple(self._mesh.shape)

    shape = mesh_shape

    @property
    def ndim(self):
        return len(self._mesh.shape)

    @property
    def rank_list(self):
        return tuple(self._mesh.ranks)

    @property
    def mesh(self):
        """The ranks as a tensor."""
        from morel import Tensor

        return Tensor(list(self._mesh.ranks)).reshape(self.mesh_shape)

    def size(self, mesh_dim=None):
        """Number of processes, or of those along one axis."""
        return len(self._mesh.ranks) if mesh_dim is None else self._mesh.shape[self._axis(mesh_dim)]

    def _axis(self, mesh_dim):
        if isinstance(mesh_dim, str):
            if mesh_dim not in self._mesh.names:
                raise KeyError(f"the mesh {self._mesh} has no axis {mesh_dim!r}")
            return self._mesh.names.index(mesh_dim)
        return mesh_dim if mesh_dim is not None else 0

    def _position(self):
        return self._mesh.position_of(_dist.local_ranks()[0])

    def get_coordinate(self):
        """Where this process is along every axis; None where it is not in the mesh."""
        position = self._position()
        return None if position < 0 else [self._mesh.coordinate(position, axis) for axis in range(self.ndim)]

    def get_local_rank(self, mesh_dim=None):
        """Where this process is along one axis."""
        return self._mesh.coordinate(self._position(), self._axis(mesh_dim))

    def _group_ranks(self, axes):
        return [self._mesh.ranks[position] for position in self._mesh.group(max(0, self._position()), axes)]

    def get_group(self, mesh_dim=None):
        """Name of the group (communication) of the processes along one axis that this one is among."""
        ranks = self._group_ranks([self._axis(mesh_dim)])
        name = "ranks-" + "-".join(map(str, ranks))
        if not _dist.has_group(name):
            _dist.add_group(name, ranks)
        return name

    def __getitem__(self, names):
        """The mesh of some axes that this process is in."""
        names = (names,) if isinstance(names, str) else tuple(names)
        axes = [self._axis(name) for name in names]
        ranks = self._group_ranks(axes)
        return self._of([self._mesh.shape[axis] for axis in axes], names, ranks)

    def flatten(self, mesh_dim_name=None):
        """All processes along one axis."""
        return self._of([len(self._mesh.ranks)], [mesh_dim_name or "_".join(self._mesh.names)], self._mesh.ranks)

    def _of(self, shape, names, ranks):
        return DeviceMesh(self.device_type, None, _core_mesh=_dist.mesh(list(shape), list(names), list(ranks)))

    def __eq__(self, other):
        return isinstance(other, DeviceMesh) and self._mesh is other._mesh

    def __hash__(self):
        return hash(id(self._mesh))

    def __repr__(self):
        return f"DeviceMesh{self._mesh}"


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, rank_list=None, init_backend=True):
    """A mesh of this shape over all processes, or those of `rank_list`; connects the processes first where they are not yet."""
    import os

    from morel.communication import GlobalComm, init

    started = "RANK_SIZE" in os.environ or "MS_WORKER_NUM" in os.environ
    if init_backend and started and not GlobalComm.INITED and _dist.world_size() == 1:
        init()
    shape = list(mesh_shape)
    names = list(mesh_dim_names or (f"dim_{i}" for i in range(len(shape))))
    return DeviceMesh(device_type, None, _core_mesh=_dist.mesh(shape, names, list(rank_list or [])))


class Layout:
    """A mesh and, once it is called, what lies along its axes.

    Args:
        device_matrix (tuple of int): sizes of the mesh's axes.
        alias_name (tuple of str): their names.
        rank_list (list of int, optional): the ranks; by default 0, 1, 2, ...

    A call takes, for every axis of the tensor, the name of the mesh axis that cuts it, a tuple of names of which the first cuts
    into the largest pieces, or "None"; or placements, one for each axis of the mesh.

    Raises:
        TypeError: `device_matrix` or `alias_name` is not a tuple, or holds something else.
        ValueError: lengths differ, sizes are not positive, a name is there twice, unknown, or used twice.

    Example:
        >>> from morel.parallel import Layout
        >>> layout = Layout((2, 4), ("dp", "mp"))
        >>> layout("dp", ("mp",), "None").tensor_map
        (1, 0, -1)
    """

    def __init__(self, device_matrix, alias_name, rank_list=None):
        for name, value, kind in (("device_matrix", device_matrix, int), ("alias_name", alias_name, str)):
            if not isinstance(value, tuple):
                raise TypeError(f"For 'Layout', '{name}' must be a tuple, but got {type(value).__name__}")
            for item in value:
                if not isinstance(item, kind) or isinstance(item, bool):
                    raise TypeError(f"For 'Layout', the elements of '{name}' must be {kind.__name__}, but got {item!r}")
        if rank_list is not None and not isinstance(rank_list, (list, tuple)):
            raise TypeError(f"For 'Layout', 'rank_list' must be a list, but got {type(rank_list).__name__}")
        if "None" in alias_name:
            raise ValueError("For 'Layout', 'None' means no axis and cannot be the name of one")
        self._mesh = _dist.mesh(list(device_matrix), list(alias_name), list(rank_list or []))
        self._lists = None  # mesh axes of every tensor axis
        self._placements = None

    @classmethod
    def of(cls, sharding):
        """The layout of a sharding of the core."""
        out = cls._with(sharding.mesh)
        out._lists = [list(axes) for axes in sharding.axes]
        if sharding.partial:
            out._placements = placements_of_sharding(sharding)
        return out

    @classmethod
    def _with(cls, mesh):
        out = cls.__new__(cls)
        out._mesh, out._lists, out._placements = mesh, None, None
        return out

    def __call__(self, *tensor_map):
        out = self._with(self._mesh)
        if tensor_map and all(isinstance(item, Placement) for item in tensor_map):
            out._placements = tensor_map
            return out
        out._lists = [self._axes_of(item) for item in tensor_map]
        _dist.sharding(self._mesh, out._lists, [], "sum")  # its checks
        return out

    def _axes_of(self, item):
        names = item if isinstance(item, tuple) else (item,)
        axes = []
        for name in names:
            if not isinstance(name, str):
                raise ValueError(
                    f"For 'Layout', an axis is given by a name, a tuple of names or 'None', but got {item!r}"
                )
            if name == "None":
                if len(names) > 1:
                    raise ValueError(f"For 'Layout', 'None' cannot stand among others: {item!r}")
            elif name not in self._mesh.names:
                raise ValueError(f"For 'Layout', {name!r} is not one of the axes {tuple(self._mesh.names)}")
            else:
                axes.append(self._mesh.names.index(name))
        return axes

    def sharding(self, rank):
        """The core's sharding for tensors of `rank` axes."""
        if self._lists is None:
            if self._placements is None:
                raise ValueError(f"For 'Layout', call it first with what lies along its axes: {self!r}")
            return sharding_of_placements(self._mesh, self._placements, rank)
        if len(self._lists) != rank:
            raise ValueError(f"the layout {self!r} is for tensors of {len(self._lists)} axes, but this one has {rank}")
        if self._placements is None:
            return _dist.sharding(self._mesh, self._lists, [], "sum")
        partial = [axis for axis, one in enumerate(self._placements) if one.is_partial()]
        return _dist.sharding(self._mesh, self._lists, partial, self._placements[partial[0]].reduce_op)

    @property
    def device_matrix(self):
        return tuple(self._mesh.shape)

    mesh_shape = device_matrix

    @property
    def alias_name(self):
        return tuple(self._mesh.names)

    @property
    def rank_list(self):
        return tuple(self._mesh.ranks)

    @property
    def mesh(self):
        return DeviceMesh("CPU", None, _core_mesh=self._mesh)

    @property
    def tensor_map(self):
        """For every axis of the tensor the mesh axis, counted from the right; -1 for none, a tuple for several."""
        if self._lists is None:
            return None
        count = len(self._mesh.shape)
        maps = (tuple(count - 1 - axis for axis in axes) for axes in self._lists)
        return tuple(-1 if not one else one[0] if len(one) == 1 else one for one in maps)

    @property
    def placements(self):
        """One placement for each axis of the mesh."""
        if self._placements is not None or self._lists is None:
            return self._placements
        return placements_of_sharding(self.sharding(len(self._lists)))

    def to_dict(self):
        """Its parts, as strategy files have them."""
        if self._lists is None:
            raise ValueError("For 'Layout', call it first with what lies along its axes")
        return {
            "device_matrix": self.device_matrix,
            "tensor_map": self.tensor_map,
            "interleaved_parallel": False,
            "alias_name": self.alias_name,
            "rank_list": self.rank_list,
        }

    def __eq__(self, other):
        return (
            isinstance(other, Layout)
            and self._mesh is other._mesh
            and self._lists == other._lists
            and self.placements == other.placements
        )

    def __hash__(self):
        return hash((id(self._mesh), self.tensor_map, self.placements))

    def __repr__(self):
        if self._lists is not None and self._placements is None:
            return f"Layout{self._mesh}{self.sharding(len(self._lists))}"
        return f"Layout{self._mesh}{self._placements or ''}"
