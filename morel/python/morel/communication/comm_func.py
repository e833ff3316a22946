"""Collective operations on whole tensors, made by all processes of a group together. Sums are made in the order of ranks, so
every process gets the same bits on every run. Gradients do not pass through them: distributed tensors (morel.parallel) have those.
"""

from morel import _core
from morel.common.dtype import int64
from morel.communication.management import GlobalComm, _check_inited, _own_rank

__all__ = [
    "CommHandle",
    "P2POp",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all_single_with_output_shape",
    "all_to_all_v_c",
    "all_to_all_with_output_shape",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "gather_into_tensor",
    "irecv",
    "isend",
    "recv",
    "reduce",
    "reduce_scatter_tensor",
    "scatter_tensor",
    "send",
]

_WORLD = GlobalComm.WORLD_COMM_GROUP
_dist = _core.dist


class CommHandle:
    """What an operation with async_op=True returns. The operation has ended already: it runs when it is called."""

    def wait(self):
        return True

    def is_completed(self):
        return True


def _handle(async_op):
    return CommHandle() if async_op else None


def _ranks(name, group):
    _check_inited(name)
    return _dist.group_ranks(_WORLD if group is None else group)


def _check_tensor(name, tensor):
    if not isinstance(tensor, _core.Tensor):
        raise TypeError(f"For '{name}', the operand must be a Tensor, but got {type(tensor).__name__}")


def _check_op(name, op):
    if op not in ("sum", "prod", "min", "max"):
        raise ValueError(f"For '{name}', the 'op' must be 'sum', 'prod', 'min' or 'max', but got {op!r}")
    return op


def all_reduce(tensor, op="sum", group=_WORLD, async_op=False):
    """(sum over the group, handle)."""
    ranks = _ranks("all_reduce", group)
    _check_tensor("all_reduce", tensor)
    return _dist.all_reduce(tensor, _check_op("all_reduce", op), ranks), _handle(async_op)


def reduce(tensor, dst, op="sum", group=_WORLD):
    """The sum over the group at rank `dst`; the tensor itself at the others."""
    ranks = _ranks("reduce", group)
    _check_tensor("reduce", tensor)
    total = _dist.all_reduce(tensor, _check_op("reduce", op), ranks)
    return total if _own_rank() == dst else tensor


def all_gather_into_tensor(tensor, group=_WORLD, async_op=False):
    """(the tensors of all processes along axis 0, handle)."""
    ranks = _ranks("all_gather_into_tensor", group)
    _check_tensor("all_gather_into_tensor", tensor)
    return _dist.all_gather(tensor, ranks), _handle(async_op)


def reduce_scatter_tensor(tensor, op="sum", group=_WORLD, async_op=False):
    """(this process' piece along axis 0 of the sum over the group, handle)."""
    ranks = _ranks("reduce_scatter_tensor", group)
    _check_tensor("reduce_scatter_tensor", tensor)
    return _dist.reduce_scatter(tensor, _check_op("reduce_scatter_tensor", op), ranks), _handle(async_op)


def broadcast(tensor, src=0, group=_WORLD):
    """The tensor of rank `src`; the others give one of its shape and dtype."""
    ranks = _ranks("broadcast", group)
    _check_tensor("broadcast", tensor)
    return _dist.broadcast(tensor, src, ranks)


def scatter_tensor(tensor, src=0, group=_WORLD):
    """This process' piece along axis 0 of the tensor of rank `src`."""
    ranks = _ranks("scatter_tensor", group)
    _check_tensor("scatter_tensor", tensor)
    if tensor.shape[0] % len(ranks):
        raise ValueError(f"For 'scatter_tensor', axis 0 of {tensor.shape} cannot be cut into {len(ranks)} equal pieces")
    return _dist.broadcast(tensor, src, ranks).chunk(len(ranks))[ranks.index(_own_rank())].contiguous()


def gather_into_tensor(tensor, dst=0, group=_WORLD):
    """The tensors of all processes along axis 0 at rank `dst`; zeros at the others."""
    ranks = _ranks("gather_into_tensor", group)
    _check_tensor("gather_into_tensor", tensor)
    gathered = _dist.all_gather(tensor, ranks)
    return gathered if _own_rank() == dst else gathered * 0


def all_to_all_with_output_shape(output_shape_list, input_tensor_list, group=None, async_op=False):
    """(tensors of these shapes, the i-th from process i, handle); the i-th tensor goes to process i."""
    ranks = _ranks("all_to_all_with_output_shape", group)
    shapes = [list(getattr(shape, "shape", shape)) for shape in output_shape_list]
    tensors = list(input_tensor_list)
    return tuple(_dist.all_to_all(tensors, shapes, tensors[0].dtype, ranks)), _handle(async_op)


def _pieces(name, size, sizes, count):
    if sizes is None or len(sizes) == 0:
        if size % count:
            raise ValueError(f"For '{name}', an axis of {size} cannot be cut into {count} equal pieces; give the sizes")
        return [size // count] * count
    if len(sizes) != count or sum(sizes) != size:
        raise ValueError(f"For '{name}', the sizes {sizes} must be {count} that add up to {size}")
    return list(sizes)


def all_to_all_single_with_output_shape(
    output_shape, tensor, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False
):
    """(a tensor of this shape: pieces along axis 0 from all processes, handle); the pieces of `tensor` go to them."""
    name = "all_to_all_single_with_output_shape"
    ranks = _ranks(name, group)
    _check_tensor(name, tensor)
    shape = list(getattr(output_shape, "shape", output_shape))
    sent = _pieces(name, tensor.shape[0], input_split_sizes, len(ranks))
    received = _pieces(name, shape[0], output_split_sizes, len(ranks))
    got = _dist.all_to_all(_split(tensor, sent), [[size, *shape[1:]] for size in received], tensor.dtype, ranks)
    return _core.make_operator("concat", "concat")(got), _handle(async_op)


def _split(tensor, sizes):
    out, begin = [], 0
    for size in sizes:
        out.append(tensor[begin : begin + size])
        begin += size
    return out


def all_to_all_v_c(output, input, send_count_matrix, group=None, async_op=False):
    """Process i sends element `i * size + j` of the matrix's number of elements to process j; `output` gets them in place."""
    ranks = _ranks("all_to_all_v_c", group)
    own, size = ranks.index(_own_rank()), len(ranks)
    sent = [send_count_matrix[own * size + j] for j in range(size)]
    received = [send_count_matrix[i * size + own] for i in range(size)]
    got = _dist.all_to_all(_split(input.reshape(-1), sent), [[count] for count in received], input.dtype, ranks)
    output.copy_(_core.make_operator("concat", "concat")(got).reshape(output.shape))
    return _handle(async_op)


def barrier(group=_WORLD):
    """Returns when all processes of the group have called it."""
    _dist.barrier(_ranks("barrier", group))


def send(tensor, dst=0, group=_WORLD, tag=0):
    """Sends to rank `dst`."""
    _ranks("send", group)
    _check_tensor("send", tensor)
    _dist.send(tensor, dst)


def recv(tensor, src=0, group=_WORLD, tag=0):
    """A tensor of this shape and dtype from rank `src`."""
    _ranks("recv", group)
    _check_tensor("recv", tensor)
    return _dist.receive(list(tensor.shape), tensor.dtype, src)


def isend(tensor, dst=0, group=_WORLD, tag=0):
    """send, and a handle."""
    send(tensor, dst, group, tag)
    return CommHandle()


def irecv(tensor, src=0, group=_WORLD, tag=0):
    """(recv, handle)."""
    return recv(tensor, src, group, tag), CommHandle()


class P2POp:
    """One send or receive for `batch_isend_irecv`. op: "isend" or "irecv"; tensor: what is sent, or like what is received."""

    def __init__(self, op, tensor, peer, group=None, tag=0, *, recv_dtype=None):
        self.op = getattr(op, "__name__", op)
        if self.op not in ("isend", "irecv"):
            raise TypeError(f"For 'P2POp', the 'op' must be isend or irecv, but got {op!r}")
        self.tensor, self.peer, self.group, self.tag, self.recv_dtype = tensor, peer, group, tag, recv_dtype


def batch_isend_irecv(p2p_op_list):
    """All these sends and receives; the received tensors, and for a send a tensor that says nothing."""
    _check_inited("batch_isend_irecv")
    ranks = _dist.group_ranks(_WORLD)
    sent = [_core.make_operator("zeros", "zeros")((0,)) for _ in ranks]
    shapes = [[0] for _ in ranks]
    dtype = p2p_op_list[0].tensor.dtype
    for operation in p2p_op_list:
        if operation.op == "isend":
            sent[operation.peer] = operation.tensor
        else:
            shapes[operation.peer] = list(operation.tensor.shape)
    got = _dist.all_to_all(sent, shapes, dtype, ranks, in_pairs=True)
    nothing = _core.make_operator("zeros", "zeros")((1,), int64)
    return [got[operation.peer] if operation.op == "irecv" else nothing for operation in p2p_op_list]
