"""Collectives that write into their arguments, and those of Python objects. All of them are made of communication.comm_func."""

import pickle

from morel import _core
from morel.communication import comm_func, management
from morel.communication.comm_func import P2POp
from morel.communication.management import GlobalComm

__all__ = [
    "P2POp",
    "TCPStore",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_into_tensor_uneven",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_uneven",
    "scatter",
    "scatter_object_list",
    "send",
]

_dist = _core.dist
_new_groups = 0


def _group(group):
    return GlobalComm.WORLD_COMM_GROUP if group is None else group


def _ranks(group):
    return management.get_process_group_ranks(_group(group))


def _own(group):
    return management.get_rank(_group(group))


def _handle(async_op):
    return comm_func.CommHandle() if async_op else None


class TCPStore:
    """Keys and values that all processes see.

    Args:
        host_name (str): where the master is.
        port (int): its port; 0 with `is_master`: any free one.
        world_size (int): kept for compatibility.
        is_master (bool): whether this process serves the others.
        timeout (timedelta): how long `get` waits for a key.
    """

    def __init__(self, host_name, port=0, world_size=None, is_master=False, timeout=None, wait_for_workers=True):
        self._server = _core.dist.StoreServer(port) if is_master else None
        self.host, self.port = host_name, self._server.port if is_master else port
        milliseconds = 300_000 if timeout is None else int(timeout.total_seconds() * 1000)
        self._client = _core.dist.StoreClient(host_name, self.port, milliseconds)

    def set(self, key, value):
        self._client.set(key, value if isinstance(value, str) else value.decode())

    def get(self, key):
        return self._client.get(key).encode()

    def add(self, key, amount):
        return self._client.add(key, amount)


def is_available():
    """Whether processes can be connected."""
    return True


def is_initialized():
    """Whether this process is connected."""
    return GlobalComm.INITED


def init_process_group(
    backend="hccl", init_method=None, timeout=None, world_size=-1, rank=-1, store=None, pg_options=None, device_id=None
):
    """Connects this process with the others, as communication.init does. With `init_method` "tcp://host:port", `world_size` and
    `rank`, nothing is taken from the environment; rank 0 then serves the port.
    """
    if init_method in (None, "env://") and store is None:
        return management.init(backend)
    if GlobalComm.INITED:
        return None
    if store is not None:
        host, port = store.host, store.port
    else:
        host, _, port = init_method.removeprefix("tcp://").rpartition(":")
        if not init_method.startswith("tcp://") or not port.isdigit():
            raise ValueError(f"the 'init_method' must be 'env://' or 'tcp://host:port', but got {init_method!r}")
        if rank == 0:
            GlobalComm.server = _core.dist.StoreServer(int(port))
    if rank < 0 or world_size < 1:
        raise ValueError(f"'rank' and 'world_size' must be given, but are {rank} and {world_size}")
    milliseconds = 1_800_000 if timeout is None else int(timeout.total_seconds() * 1000)
    own = "127.0.0.1" if host in ("127.0.0.1", "localhost") else ""
    _core.dist.connect(rank, world_size, host, int(port), own, milliseconds)
    GlobalComm.BACKEND, GlobalComm.INITED = backend, True


def destroy_process_group(group=None):
    """Ends a group; without one, the connection."""
    if group is None or group == GlobalComm.WORLD_COMM_GROUP:
        management.release()
    else:
        management.destroy_group(group)


def new_group(
    ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None
):
    """The name of a new group of these ranks; all processes call it."""
    global _new_groups
    ranks = _ranks(None) if ranks is None else list(ranks)
    _new_groups += 1
    name = f"{group_desc or 'group'}_{_new_groups}"
    if management.get_rank() not in ranks:
        return ""
    management.create_group(name, ranks)
    return name


def get_backend(group=None):
    """Name of the backend, as it was given."""
    _ranks(group)
    return GlobalComm.BACKEND


def get_rank(group=None):
    """Number of this process in the group; -1 where it is not in it."""
    ranks = _ranks(group)
    own = management.get_rank()
    return ranks.index(own) if own in ranks else -1


def get_world_size(group=None):
    """Number of processes of the group."""
    return management.get_group_size(_group(group))


def get_global_rank(group, group_rank):
    """Rank in the world of process `group_rank` of the group."""
    return management.get_world_rank_from_group_rank(_group(group), group_rank)


def get_group_rank(group, global_rank):
    """Number in the group of the process of rank `global_rank` in the world."""
    return management.get_group_rank_from_world_rank(global_rank, _group(group))


def get_process_group_ranks(group=None):
    """Ranks of the group's processes in the world."""
    return _ranks(group)


def all_reduce(tensor, op="sum", group=None, async_op=False):
    """The tensor becomes its sum over the group."""
    tensor.copy_(comm_func.all_reduce(tensor, op, _group(group))[0])
    return _handle(async_op)


def reduce(tensor, dst, op="sum", group=None, async_op=False):
    """The tensor of rank `dst` becomes the sum over the group."""
    tensor.copy_(comm_func.reduce(tensor, dst, op, _group(group)))
    return _handle(async_op)


def broadcast(tensor, src, group=None, async_op=False):
    """The tensor becomes that of rank `src`."""
    tensor.copy_(comm_func.broadcast(tensor, src, _group(group)))
    return _handle(async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """`output_tensor` gets the tensors of all processes along axis 0."""
    output_tensor.copy_(comm_func.all_gather_into_tensor(input_tensor, _group(group))[0].reshape(output_tensor.shape))
    return _handle(async_op)


def _exchanged(tensors, shapes, group):
    return _dist.all_to_all(tensors, [list(shape) for shape in shapes], tensors[0].dtype, _ranks(group))


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """`tensor_list[i]` gets the tensor of process i."""
    shapes = [one.shape for one in tensor_list]
    for target, got in zip(tensor_list, _exchanged([tensor] * len(tensor_list), shapes, group)):
        target.copy_(got)
    return _handle(async_op)


def all_gather_into_tensor_uneven(output, input, output_split_sizes=None, group=None, async_op=False):
    """`output` gets the tensors of all processes, of these sizes along axis 0."""
    ranks = _ranks(group)
    sizes = comm_func._pieces("all_gather_into_tensor_uneven", output.shape[0], output_split_sizes, len(ranks))
    targets = comm_func._split(output, sizes)
    return all_gather(targets, input, group, async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """`output_tensor_list[i]` gets what process i has for this one."""
    shapes = [one.shape for one in output_tensor_list]
    for target, got in zip(output_tensor_list, _exchanged(list(input_tensor_list), shapes, group)):
        target.copy_(got)
    return _handle(async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """The same with pieces along axis 0."""
    output.copy_(
        comm_func.all_to_all_single_with_output_shape(
            output.shape, input, output_split_sizes, input_split_sizes, _group(group)
        )[0]
    )
    return _handle(async_op)


def _combined(tensors, op):
    total = tensors[0]
    for one in tensors[1:]:
        total = {
            "sum": total.add,
            "prod": total.mul,
            "min": total.minimum,
            "max": total.maximum,
        }[op](one)
    return total


def reduce_scatter(output, input_list, op="sum", group=None, async_op=False):
    """`output` gets the sum over the group of what all have for this process."""
    comm_func._check_op("reduce_scatter", op)
    got = _exchanged(list(input_list), [output.shape] * len(input_list), group)
    output.copy_(_combined(got, op))
    return _handle(async_op)


def reduce_scatter_tensor(output, input, op="sum", group=None, async_op=False):
    """The same with pieces along axis 0."""
    output.copy_(comm_func.reduce_scatter_tensor(input, op, _group(group))[0].reshape(output.shape))
    return _handle(async_op)


def reduce_scatter_tensor_uneven(output, input, input_split_sizes=None, op="sum", group=None, async_op=False):
    """The same with pieces of these sizes."""
    ranks = _ranks(group)
    sizes = comm_func._pieces("reduce_scatter_tensor_uneven", input.shape[0], input_split_sizes, len(ranks))
    return reduce_scatter(output, comm_func._split(input, sizes), op, group, async_op)


def gather(tensor, gather_list, dst=0, group=None, async_op=False):
    """At rank `dst`, `gather_list[i]` gets the tensor of process i."""
    ranks = _ranks(group)
    got = [comm_func.all_gather_into_tensor(tensor.unsqueeze(0), _group(group))[0][i] for i in range(len(ranks))]
    if management.get_rank() == dst:
        for target, one in zip(gather_list, got):
            target.copy_(one)
    return _handle(async_op)


def scatter(tensor, scatter_list, src=0, group=None, async_op=False):
    """The tensor becomes what rank `src` has for this process."""
    ranks = _ranks(group)
    empty = tensor.reshape(-1)[:0]
    is_source = management.get_rank() == src
    sent = list(scatter_list) if is_source else [empty] * len(ranks)
    shapes = [tensor.shape if rank == src else (0,) for rank in ranks]
    tensor.copy_(_exchanged(sent, shapes, group)[ranks.index(src)])
    return _handle(async_op)


def send(tensor, dst=0, group=None, tag=0):
    """Sends to rank `dst`; 0."""
    comm_func.send(tensor, dst, _group(group), tag)
    return 0


def recv(tensor, src=0, group=None, tag=0):
    """The tensor becomes what rank `src` sends; 0."""
    tensor.copy_(comm_func.recv(tensor, src, _group(group), tag))
    return 0


def isend(tensor, dst=0, group=None, tag=0):
    """send, and a handle."""
    send(tensor, dst, group, tag)
    return comm_func.CommHandle()


def irecv(tensor, src=0, group=None, tag=0):
    """recv, and a handle."""
    recv(tensor, src, group, tag)
    return comm_func.CommHandle()


def batch_isend_irecv(p2p_op_list):
    """All these sends and receives; received tensors are written in place. Handles."""
    for operation, got in zip(p2p_op_list, comm_func.batch_isend_irecv(p2p_op_list)):
        if operation.op == "irecv":
            operation.tensor.copy_(got)
    return [comm_func.CommHandle() for _ in p2p_op_list]


def barrier(group=None, async_op=False, device_ids=None):
    """Returns when all processes of the group have called it."""
    comm_func.barrier(_group(group))
    return _handle(async_op)


# -- objects of Python, as bytes --
def _as_bytes(obj):
    from numpy import frombuffer, uint8

    from morel import Tensor

    return Tensor(frombuffer(pickle.dumps(obj), uint8).copy())


def _objects(group, sent):
    """What every process sends to this one; `sent`: one object for each."""
    from morel import Tensor

    ranks = _ranks(group)
    tensors = [_as_bytes(obj) for obj in sent]
    lengths = _dist.all_to_all(
        [Tensor([int(one.size)]) for one in tensors], [[1]] * len(ranks), Tensor([1]).dtype, ranks
    )
    shapes = [[int(length.item())] for length in lengths]
    got = _dist.all_to_all(tensors, shapes, tensors[0].dtype, ranks)
    return [pickle.loads(one.asnumpy().tobytes()) for one in got]


def all_gather_object(object_list, obj, group=None):
    """`object_list[i]` becomes the object of process i."""
    object_list[:] = _objects(group, [obj] * len(_ranks(group)))


def gather_object(obj, object_gather_list=None, dst=0, group=None):
    """The same at rank `dst` alone."""
    got = _objects(group, [obj] * len(_ranks(group)))
    if management.get_rank() == dst:
        object_gather_list[:] = got


def broadcast_object_list(object_list, src=0, group=None, device=None):
    """The objects become those of rank `src`."""
    ranks = _ranks(group)
    object_list[:] = _objects(group, [list(object_list)] * len(ranks))[ranks.index(src)]


def scatter_object_list(scatter_object_output_list, scatter_object_input_list, src=0, group=None):
    """`scatter_object_output_list[0]` becomes the object that rank `src` has for this process."""
    ranks = _ranks(group)
    sent = scatter_object_input_list if management.get_rank() == src else [None] * len(ranks)
    scatter_object_output_list[0] = _objects(group, sent)[ranks.index(src)]
