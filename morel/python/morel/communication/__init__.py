"""Groups of processes. Not there yet: scripts may import the names, and each call says so."""

__all__ = [
    "GlobalComm",
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


class GlobalComm:
    """Names of the group of all processes, and whether there is one."""

    BACKEND = ""
    WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    INITED = False
    CHECK_ENVS = True


def _refusal(name):
    def refuse(*_args, **_kwargs):
        raise NotImplementedError(f"'{name}': distributed training is not supported yet; run one process without it.")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


for _name in __all__[1:]:
    globals()[_name] = _refusal(_name)
