"""Functions of layouts."""

from morel.parallel.dtensor import distribute_tensor

__all__ = ["reshard"]


def reshard(tensor, layout):
    """The same values, laid out as `layout` says. A plain tensor, which all processes have, becomes a distributed one.

    Args:
        tensor (Tensor): distributed or plain.
        layout (Layout): called with what lies along its axes.

    Raises:
        TypeError: `layout` is not a Layout.
    """
    from morel.parallel.layout import Layout

    if not isinstance(layout, Layout):
        raise TypeError(f"Reshard only support type mindspore.parallel.Layout, but got {type(layout).__name__}")
    return distribute_tensor(tensor, layout)
