"""Training functions that take their data themselves."""

from morel.train._check import int_at_least

__all__ = ["data_sink"]


def data_sink(fn, dataset, sink_size=1, jit_config=None, input_signature=None):
    """A function that takes the next batches from `dataset` and calls `fn` with each.

    Args:
        fn (Callable): the training step, called with the columns of a batch.
        dataset (Dataset): the batches.
        sink_size (int): batches per call; the result of the last one is returned. Default ``1``.
        jit_config: kept for scripts.
        input_signature: kept for scripts.

    Returns:
        A function without arguments.
    """
    int_at_least(sink_size, 1, "sink_size")
    iterator = dataset.create_tuple_iterator()

    def batches():
        while True:
            empty = True
            for row in iterator:
                empty = False
                yield row
            if empty:
                raise ValueError("For 'data_sink', the dataset has no rows.")

    source = batches()

    def sink_process():
        out = None
        for _ in range(sink_size):
            out = fn(*next(source))
        return out

    return sink_process
