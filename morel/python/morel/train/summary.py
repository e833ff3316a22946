"""Summary files, not supported yet."""

__all__ = ["SummaryRecord"]


def SummaryRecord(*args, **kwargs):  # noqa: N802 - a class in MindSpore
    """Not supported yet."""
    raise NotImplementedError("'SummaryRecord' is not supported yet; use the callback History, or print.")
