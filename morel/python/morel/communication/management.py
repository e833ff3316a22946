"""The processes that work together, and groups of them.

`init` connects this process with the others as `msrun` (morel.parallel.launch) sets them up: RANK_ID, RANK_SIZE or
MS_WORKER_NUM, MS_SCHED_HOST, MS_SCHED_PORT and MS_ROLE. All of MindSpore's names of backends mean the same one here: TCP.
"""

import atexit
import os
import sys
import zlib

from morel import _core

__all__ = [
    "GlobalComm",
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "create_group",
    "destroy_group",
    "get_comm_name",
    "get_group_rank_from_world_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_process_group_ranks",
    "get_rank",
    "get_world_rank_from_group_rank",
    "init",
    "release",
]

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"
_BACKENDS = ("hccl", "nccl", "mccl", "gloo")
_MINUTES_TO_WAIT = 30


class GlobalComm:
    """Names of the group of all processes, and whether there is one."""

    BACKEND = ""
    WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    INITED = False
    CHECK_ENVS = True


def _serve_as_scheduler(workers, port):
    """What the process of role MS_SCHED does: it lets the workers find each other, and ends with them."""
    server = _core.dist.StoreServer(port)
    server.wait_until_done(workers)
    sys.exit(0)


def _number(name, default=None):
    text = os.environ.get(name, default)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise RuntimeError(f"the environment variable {name} must be an integer, but is {text!r}") from None


def init(backend_name=None):
    """Connects this process with the others, which must all call it.

    Args:
        backend_name (str, optional): "hccl", "nccl", "mccl" or "gloo"; all mean processes that talk over TCP.

    Raises:
        TypeError: `backend_name` is not a string.
        RuntimeError: unknown backend; the environment does not say which of how many processes this is; others do not answer.
    """
    if backend_name is not None and not isinstance(backend_name, str):
        raise TypeError(f"For 'init', the 'backend_name' must be a string, but got {type(backend_name).__name__}")
    if backend_name is not None and backend_name not in _BACKENDS:
        raise RuntimeError(f"For 'init', the 'backend_name' must be one of {_BACKENDS}, but got {backend_name!r}")
    if GlobalComm.INITED:
        return
    size = _number("RANK_SIZE") or _number("MS_WORKER_NUM")
    if not size:
        raise RuntimeError(
            "For 'init', the environment does not say how many processes there are (RANK_SIZE or MS_WORKER_NUM); start the "
            "script with msrun: python -m morel.parallel.launch --worker_num=2 --local_worker_num=2 script.py"
        )
    host, port = os.environ.get("MS_SCHED_HOST", "127.0.0.1"), _number("MS_SCHED_PORT", "8118")
    if os.environ.get("MS_ROLE") == "MS_SCHED":
        _serve_as_scheduler(size, port)
    timeout = 1000 * _number("MS_TOPO_TIMEOUT", str(60 * _MINUTES_TO_WAIT))
    rank = _number("RANK_ID")
    rank = _number("MS_NODE_ID") if rank is None else rank
    if rank is None:
        rank = 0 if size == 1 else _core.dist.StoreClient(host, port, timeout).add("ranks", 1) - 1
    # How the others reach this machine.
    own = os.environ.get("MS_WORKER_IP") or ("127.0.0.1" if host in ("127.0.0.1", "localhost") else "")
    _core.dist.connect(rank, size, host, port, own, timeout)
    GlobalComm.BACKEND, GlobalComm.INITED = backend_name or "hccl", True
    atexit.register(release)  # threads of the connection must have ended before the process does


def release():
    """Ends the connection."""
    _core.dist.disconnect()
    GlobalComm.BACKEND, GlobalComm.INITED = "", False


def _check_inited(name):
    if not GlobalComm.INITED:
        raise RuntimeError(f"For '{name}', call 'init' first: this process is not connected with others")


def _own_rank():
    return _core.dist.local_ranks()[0]


def get_process_group_ranks(group=HCCL_WORLD_COMM_GROUP):
    """Ranks of the group's processes in the world."""
    if not isinstance(group, str):
        raise TypeError(f"For 'get_process_group_ranks', the 'group' must be a string, but got {type(group).__name__}")
    _check_inited("get_process_group_ranks")
    return list(_core.dist.group_ranks(group))


def get_rank(group=HCCL_WORLD_COMM_GROUP):
    """Number of this process in the group; 0 before `init`."""
    if not isinstance(group, str):
        raise TypeError(f"For 'get_rank', the 'group' must be a string, but got {type(group).__name__}")
    if not GlobalComm.INITED:
        return 0
    ranks = _core.dist.group_ranks(group)
    if _own_rank() not in ranks:
        raise RuntimeError(f"For 'get_rank', rank {_own_rank()} is not in the group '{group}' of {ranks}")
    return ranks.index(_own_rank())


def get_group_size(group=HCCL_WORLD_COMM_GROUP):
    """Number of processes in the group; 1 before `init`."""
    if not isinstance(group, str):
        raise TypeError(f"For 'get_group_size', the 'group' must be a string, but got {type(group).__name__}")
    return len(_core.dist.group_ranks(group)) if GlobalComm.INITED else 1


def _on_this_machine(group):
    """Ranks of the group on this machine, told by the machines' names."""
    import socket

    from morel import Tensor
    from morel.common import dtype as mstype

    ranks = _core.dist.group_ranks(group)
    name = Tensor([zlib.crc32(socket.gethostname().encode())], mstype.int64)
    names = _core.dist.all_gather(name, ranks).asnumpy()
    return [rank for rank, other in zip(ranks, names) if other == names[ranks.index(_own_rank())]]


def get_local_rank(group=HCCL_WORLD_COMM_GROUP):
    """Number of this process among those of the group on its machine. All processes of the group call it together."""
    _check_inited("get_local_rank")
    return _on_this_machine(group).index(_own_rank())


def get_local_rank_size(group=HCCL_WORLD_COMM_GROUP):
    """How many processes of the group are on this machine. All processes of the group call it together."""
    _check_inited("get_local_rank_size")
    return len(_on_this_machine(group))


def get_world_rank_from_group_rank(group, group_rank_id):
    """Rank in the world of process `group_rank_id` of the group."""
    ranks = get_process_group_ranks(group)
    if not isinstance(group_rank_id, int):
        raise TypeError(f"the 'group_rank_id' must be an integer, but got {type(group_rank_id).__name__}")
    if not 0 <= group_rank_id < len(ranks):
        raise ValueError(f"the group '{group}' has {len(ranks)} processes, but number {group_rank_id} is asked for")
    return ranks[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id, group):
    """Number in the group of the process that has `world_rank_id` in the world."""
    ranks = get_process_group_ranks(group)
    if not isinstance(world_rank_id, int):
        raise TypeError(f"the 'world_rank_id' must be an integer, but got {type(world_rank_id).__name__}")
    if world_rank_id not in ranks:
        raise ValueError(f"rank {world_rank_id} is not in the group '{group}' of {ranks}")
    return ranks.index(world_rank_id)


def get_comm_name(group=HCCL_WORLD_COMM_GROUP):
    """Name by which the group is known inside; it is the group's own."""
    get_process_group_ranks(group)
    return group


def create_group(group, rank_ids, options=None):
    """A new group of these ranks, in this order. Every process that is in it calls this."""
    if not isinstance(group, str) or not group:
        raise TypeError(f"For 'create_group', the 'group' must be a name, but got {group!r}")
    if not isinstance(rank_ids, (list, tuple, range)) or not all(isinstance(rank, int) for rank in rank_ids):
        raise TypeError(f"For 'create_group', the 'rank_ids' must be a list of integers, but got {rank_ids!r}")
    if not rank_ids:
        raise ValueError("For 'create_group', the 'rank_ids' must not be empty")
    _check_inited("create_group")
    _core.dist.add_group(group, list(rank_ids))


def destroy_group(group):
    """The group is no more."""
    if group == GlobalComm.WORLD_COMM_GROUP:
        raise ValueError("the group of all processes cannot be destroyed; 'release' ends the connection")
    _check_inited("destroy_group")
    _core.dist.remove_group(group)
