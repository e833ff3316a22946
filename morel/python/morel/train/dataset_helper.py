"""Iterating over a dataset in a training loop."""

from morel.train._check import int_at_least, is_bool

__all__ = ["DatasetHelper", "connect_network_with_dataset"]


class DatasetHelper:
    """Gives the batches of a dataset, again and again.

    Args:
        dataset (Dataset): the dataset.
        dataset_sink_mode (bool): kept for scripts: a CPU has no queue to feed. Default ``True``.
        sink_size (int): kept for scripts. Default ``-1``.
        epoch_num (int): passes; 0 or -1: without limit. Default ``1``.
    """

    def __init__(self, dataset, dataset_sink_mode=True, sink_size=-1, epoch_num=1):
        is_bool(dataset_sink_mode)
        if not isinstance(sink_size, int) or isinstance(sink_size, bool):
            raise TypeError(f"The 'sink_size' must be int, but got '{type(sink_size).__name__}'")
        if sink_size < -1 or sink_size == 0:
            raise ValueError(f"The 'sink_size' must be -1 or positive, but got sink_size {sink_size}.")
        self._dataset = dataset
        self.iter = dataset.create_tuple_iterator(num_epochs=epoch_num if epoch_num > 0 else -1)
        self._sink_size = 1 if sink_size == -1 else sink_size

    def __iter__(self):
        return iter(self.iter)

    def types_shapes(self):
        """Types and shapes of the columns."""
        return self._dataset.output_types(), self._dataset.output_shapes()

    def sink_size(self):
        """Batches per step of the network: 1."""
        return 1

    def stop_send(self):
        """Ends the workers."""
        self.iter.stop()

    def release(self):
        """Ends the workers."""
        self.iter.stop()

    def continue_send(self):
        """Kept for scripts."""


def connect_network_with_dataset(network, dataset_helper):
    """Kept for scripts: connects a network with a queue of a device; a CPU has none, so the network itself is returned."""
    if not isinstance(dataset_helper, DatasetHelper):
        raise TypeError(f"The 'dataset_helper' must be a DatasetHelper, but got {type(dataset_helper)}.")
    int_at_least(dataset_helper.sink_size(), 1)
    return network
