"""Sums of gradients over processes."""

from morel.nn.cell import Cell

__all__ = ["DistributedGradReducer"]


class DistributedGradReducer(Cell):
    """Adds up gradients over the processes of a group, each of which has made them from other data.

    Args:
        parameters (list[Parameter]): what the gradients are of.
        mean (bool): whether to divide by `degree`. Default ``None``: as ``gradients_mean`` of `set_auto_parallel_context` says.
        degree (int): by what to divide. Default ``None``: the number of processes.
        fusion_type (int): kept for compatibility.
        group (str): the group.

    Inputs:
        - **grads** (tuple[Tensor]) - the gradients.

    Outputs:
        The sums or means, the same at all processes.
    """

    def __init__(self, parameters, mean=None, degree=None, fusion_type=1, group="hccl_world_group"):
        from morel.communication import get_group_size
        from morel.context import get_auto_parallel_context

        super().__init__(auto_prefix=False)
        self.mean = get_auto_parallel_context("gradients_mean") if mean is None else mean
        self.degree = get_group_size(group) if degree is None else degree
        if not isinstance(self.degree, int) or self.degree <= 0:
            raise ValueError(f"For 'DistributedGradReducer', 'degree' must be a positive integer, but got {degree}")
        self.group = group

    def construct(self, grads):
        from morel.communication.comm_func import all_reduce

        totals = (all_reduce(gradient, "sum", self.group)[0] for gradient in grads)
        return tuple(total / self.degree if self.mean else total for total in totals)
