"""The profiler. Not there yet."""

__all__ = ["Profiler"]


class Profiler:
    """Says that it is not there yet when it is made."""

    def __init__(self, *_args, **_kwargs):
        raise NotImplementedError("'Profiler' is not supported yet.")
