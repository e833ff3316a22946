"""Memory, streams and threads of the device."""

import os

__all__ = [
    "synchronize",
    "empty_cache",
    "memory_stats",
    "memory_reserved",
    "memory_allocated",
    "max_memory_reserved",
    "max_memory_allocated",
    "reset_peak_memory_stats",
    "reset_max_memory_reserved",
    "reset_max_memory_allocated",
    "memory_summary",
    "set_memory",
    "launch_blocking",
    "dispatch_threads_num",
    "set_cpu_affinity",
    "Stream",
    "Event",
    "StreamCtx",
    "current_stream",
    "default_stream",
    "communication_stream",
    "set_cur_stream",
]


def synchronize():
    """Waits until all operators are done; they already are when they return."""


def _stats():
    from morel import _core

    return _core.memory_stats()


def empty_cache():
    """Returns memory that is kept for later tensors to the system."""
    from morel import _core

    _core.empty_cache()


def memory_allocated():
    """Bytes of all tensors."""
    return _stats()["in_use"]


def max_memory_allocated():
    """Largest `memory_allocated` since the start or the last reset."""
    return _stats()["peak_in_use"]


def memory_reserved():
    """Bytes held from the system: tensors and memory kept for later ones."""
    return _stats()["reserved"]


def max_memory_reserved():
    """Largest `memory_reserved` since the start or the last reset."""
    return _stats()["peak_reserved"]


def reset_peak_memory_stats():
    """Lets both maxima start anew."""
    from morel import _core

    _core.reset_peak_memory_stats()


def reset_max_memory_allocated():
    """The same as `reset_peak_memory_stats`."""
    reset_peak_memory_stats()


def reset_max_memory_reserved():
    """The same as `reset_peak_memory_stats`."""
    reset_peak_memory_stats()


def memory_stats():
    """All figures as a dictionary, in bytes."""
    stats = _stats()
    pool = {"block_unit_size": 0, "block_counts": 0, "blocks_info": {}}
    return {
        "total_reserved_memory": stats["reserved"],
        "total_allocated_memory": stats["in_use"],
        "total_idle_memory": stats["reserved"] - stats["in_use"],
        "total_eager_free_memory": 0,
        "max_reserved_memory": stats["peak_reserved"],
        "max_allocated_memory": stats["peak_in_use"],
        "common_mem_pool_stats": dict(pool),
        "persistent_mem_pool_stats": dict(pool),
    }


def _readable(size):
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024


def memory_summary():
    """The figures as a table."""
    stats = memory_stats()
    rows = [
        ("Reserved memory", "total_reserved_memory"),
        ("Allocated memory", "total_allocated_memory"),
        ("Idle memory", "total_idle_memory"),
        ("Eager free memory", "total_eager_free_memory"),
        ("Max reserved memory", "max_reserved_memory"),
        ("Max allocated memory", "max_allocated_memory"),
    ]
    double, single = f"|{'=' * 45}|", f"|{'-' * 45}|"
    lines = [f"| {name:<20} | {_readable(stats[key]):>20} |" for name, key in rows]
    body = f"\n{single}\n".join([f"| {'Metric':<20} | {'Data':<20} |", *lines])
    return f"{double}\n|{'Memory summary':^45}|\n{double}\n{body}\n{double}\n"


def set_memory(
    init_size="2GB", increase_size="2GB", max_size="1024GB", optimize_level="O0", huge_page_reserve_size="0GB"
):
    """Sizes of the memory pool, such as ``"2GB"``; kept for scripts, memory is taken as needed."""
    from morel.context import _in, _memory_size

    for value, name in (
        (init_size, "init_size"),
        (increase_size, "increase_size"),
        (max_size, "max_size"),
        (huge_page_reserve_size, "huge_page_reserve_size"),
    ):
        if not isinstance(value, str):
            raise TypeError(f"The parameter '{name}' must be <class 'str'>, but got {type(value)}")
        _memory_size(name)(value)
    _in("optimize_level", "O0", "O1")(optimize_level)


def launch_blocking():
    """Lets every operator finish before the next starts, which is always so."""


def dispatch_threads_num(threads_num):
    """Number of threads for operators.

    Args:
        threads_num (int): at least 1.
    """
    if not isinstance(threads_num, int) or isinstance(threads_num, bool):
        raise TypeError(f"The parameter 'threads_num' must be <class 'int'>, but got {type(threads_num)}")
    if threads_num < 1:
        raise ValueError(f"The parameter 'threads_num' must be at least 1, but got {threads_num}.")
    from morel.context import set_context

    set_context(runtime_num_threads=threads_num)


def set_cpu_affinity(enable_affinity, affinity_cpu_list=None, module_to_cpu_dict=None):
    """Binds this process to CPUs.

    Args:
        enable_affinity (bool): ``False`` changes nothing.
        affinity_cpu_list (list[str], optional): ranges such as ``["0-3", "8-9"]``. Default: leave the choice to the system.
        module_to_cpu_dict: kept for scripts.
    """
    if not isinstance(enable_affinity, bool):
        raise TypeError(f"The parameter 'enable_affinity' must be <class 'bool'>, but got {type(enable_affinity)}")
    if not enable_affinity or not affinity_cpu_list:
        return
    cpus = set()
    for part in affinity_cpu_list:
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    os.sched_setaffinity(0, cpus)


class Stream:
    """A queue of operators. A CPU has one."""

    def __init__(self, priority=0, **kwargs):
        self.priority = priority
        self.id = 0

    def synchronize(self):
        """Nothing is ever waiting."""

    def query(self):
        """Whether all is done: always."""
        return True

    def record_event(self, event=None):
        """Marks this point of time."""
        event = event or Event(enable_timing=True)
        event.record(self)
        return event

    def wait_event(self, event):
        """Nothing to wait for."""

    def wait_stream(self, stream):
        """Nothing to wait for."""

    def __eq__(self, other):
        return isinstance(other, Stream)

    def __hash__(self):
        return 0

    def __repr__(self):
        return f"Stream(device_name=CPU, device_id:0, stream id:{self.id})"


class Event:
    """A point of time in a stream.

    Args:
        enable_timing (bool): whether `elapsed_time` will be asked. Default ``False``.
        blocking (bool): kept for scripts. Default ``False``.
    """

    def __init__(self, enable_timing=False, blocking=False):
        self.enable_timing, self.blocking, self._time = enable_timing, blocking, None

    def record(self, stream=None):
        """Takes the time."""
        import time

        self._time = time.perf_counter()

    def wait(self, stream=None):
        """Nothing to wait for."""

    def synchronize(self):
        """Nothing to wait for."""

    def query(self):
        """Whether all before it is done: always."""
        return True

    def elapsed_time(self, end_event):
        """Milliseconds from this event to `end_event`."""
        if self._time is None or end_event._time is None:
            raise RuntimeError("For 'elapsed_time', both events must have been recorded.")
        return (end_event._time - self._time) * 1000

    def __repr__(self):
        return f"Event(enable_timing={self.enable_timing:d}, blocking:{self.blocking:d}, is_created:{self._time is not None:d})"


class StreamCtx:
    """Context manager that makes a stream the current one."""

    def __init__(self, ctx_stream):
        self.stream = ctx_stream

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        return None


_stream = Stream()


def current_stream():
    """The only stream."""
    return _stream


default_stream = communication_stream = current_stream


def set_cur_stream(stream):
    """Kept for scripts: there is one stream."""


def _later(name):
    def later(*args, **kwargs):
        raise NotImplementedError(f"'runtime.{name}' is not supported on CPU.")

    later.__name__ = name
    return later


for _name in (
    "memory_replay",
    "set_kernel_launch_group",
    "set_kernel_launch_capture",
    "get_device_limit",
    "set_device_limit",
    "get_stream_limit",
    "set_stream_limit",
    "reset_stream_limit",
    "StreamLimitCtx",
    "MemPool",
    "PluggableAllocator",
    "use_mem_pool",
):
    globals()[_name] = _later(_name)
