"""Sums of gradients over processes. Not there yet."""

from morel.nn.cell import Cell

__all__ = ["DistributedGradReducer"]


class DistributedGradReducer(Cell):
    """Says that distributed training is not there yet when it is made."""

    def __init__(self, parameters, mean=None, degree=None, fusion_type=1, group="hccl_world_group"):
        super().__init__()
        raise NotImplementedError("'DistributedGradReducer': distributed training is not supported yet.")
