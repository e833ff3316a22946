"""Embedding layers: rows of a table, selected by number."""

from morel import ops
from morel._core import Tensor
from morel.common import dtype as mstype
from morel.common.initializer import Normal, initializer
from morel.common.parameter import Parameter
from morel.nn import _check
from morel.nn.cell import Cell

__all__ = ["Embedding", "EmbeddingExt", "EmbeddingLookup"]


def _zero_row(parameter, row):
    parameter[row] = 0


def _padding_row(padding_idx, rows, cls):
    if padding_idx is not None:
        _check.check_int(padding_idx, "padding_idx", cls)
        if not 0 <= padding_idx < rows:
            raise ValueError(f"For '{cls}', the 'padding_idx' must be in range of [0, {rows}), but got {padding_idx}.")
    return padding_idx


def _limit_rows(rows, max_norm):
    """Scales rows down to the Euclidean norm `max_norm`."""
    norm = ops.sqrt(ops.sum(ops.square(rows), -1, True))
    return rows * (max_norm / ops.maximum(norm, max_norm))


class Embedding(Cell):
    """Selects rows of a learnt table.

    Args:
        vocab_size (int): number of rows.
        embedding_size (int): length of a row.
        use_one_hot (bool): look up by a product with one-hot vectors; same result. Default ``False``.
        embedding_table (Union[Tensor, str, Initializer, Number]): values of the table. Default ``"normal"``.
        dtype (mindspore.dtype): dtype of the table. Default ``float32``.
        padding_idx (int): row that starts as zeros. Default ``None``.

    Inputs:
        - **ids** (Tensor) - integers in [0, vocab_size), any shape.

    Outputs:
        Tensor of shape [*ids.shape, embedding_size].

    Raises:
        ValueError: a size is not positive or `padding_idx` is out of range.

    Example:
        >>> from morel import nn, Tensor
        >>> nn.Embedding(10, 4)(Tensor([[1, 2, 3]])).shape
        (1, 3, 4)
    """

    def __init__(
        self,
        vocab_size,
        embedding_size,
        use_one_hot=False,
        embedding_table="normal",
        dtype=mstype.float32,
        padding_idx=None,
    ):
        super().__init__()
        self.vocab_size = _check.check_type(vocab_size, int, "vocab_size", self.cls_name)
        self.embedding_size = _check.check_type(embedding_size, int, "embedding_size", self.cls_name)
        self.use_one_hot = _check.check_bool(use_one_hot, "use_one_hot", self.cls_name)
        self.dtype = dtype
        self.padding_idx = _padding_row(padding_idx, vocab_size, self.cls_name)
        self.embedding_table = Parameter(
            initializer(embedding_table, (vocab_size, embedding_size), dtype), name="embedding_table"
        )
        if padding_idx is not None:
            _zero_row(self.embedding_table, padding_idx)

    def construct(self, ids):
        return ops.embedding(ids, self.embedding_table)

    def extend_repr(self):
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, "
            f"use_one_hot={self.use_one_hot}, embedding_table={self.embedding_table}, dtype={self.dtype}, "
            f"padding_idx={self.padding_idx}"
        )


class EmbeddingExt(Cell):
    """`Embedding` in the interface of ``mint``.

    Args:
        num_embeddings (int): number of rows.
        embedding_dim (int): length of a row.
        padding_idx (int): row that starts as zeros and gets no gradient; may be negative. Default ``None``.
        max_norm (float): rows with a larger norm are scaled down, in the table, when used. Default ``None``.
        norm_type (float): the p of that norm. Default ``2.0``.
        scale_grad_by_freq (bool): divide gradients by how often the row occurs. Default ``False``.
        sparse (bool): only ``False``.
        _weight (Tensor): the table. Default ``None``: standard normal.
        _freeze (bool): do not train the table. Default ``False``.
        dtype (mindspore.dtype): dtype of the table. Default ``None``: float32.
    """

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        _freeze=False,
        dtype=None,
    ):
        super().__init__()
        cls = self.cls_name
        if sparse:
            raise ValueError(f"For '{cls}', 'sparse' must be False: sparse gradients are not supported.")
        self.num_embeddings = _check.check_positive_int(num_embeddings, "num_embeddings", cls)
        self.embedding_dim = _check.check_positive_int(embedding_dim, "embedding_dim", cls)
        self.dtype = mstype.float32 if dtype is None else dtype
        if padding_idx is not None:
            _check.check_int(padding_idx, "padding_idx", cls)
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(
                    f"For '{cls}', the 'padding_idx' must be in range of [{-num_embeddings}, "
                    f"{num_embeddings}), but got {padding_idx}."
                )
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        shape = (num_embeddings, embedding_dim)
        if _weight is None:
            self.weight = Parameter(
                initializer(Normal(1.0), shape, self.dtype), name="weight", requires_grad=not _freeze
            )
            if padding_idx is not None:
                _zero_row(self.weight, padding_idx)
        else:
            if not isinstance(_weight, Tensor) or tuple(_weight.shape) != shape:
                raise ValueError(f"For '{cls}', '_weight' must be a Tensor of shape {shape}.")
            self.weight = Parameter(_weight, name="weight", requires_grad=not _freeze)

    def construct(self, input):
        return ops.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq
        )

    def extend_repr(self):
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"padding_idx={self.padding_idx}, max_norm={self.max_norm}, norm_type={self.norm_type}, "
            f"scale_grad_by_freq={self.scale_grad_by_freq}, dtype={self.dtype}"
        )


class EmbeddingLookup(Cell):
    """Selects rows of a learnt table that may be sharded over devices.

    Args:
        vocab_size (int): number of rows.
        embedding_size (int): length of a row.
        param_init (Union[Tensor, str, Initializer, Number]): values of the table. Default ``"normal"``.
        target (str): ``"CPU"`` or ``"DEVICE"``. Default ``"CPU"``.
        slice_mode (str): how a parallel run would cut the table; kept for compatibility.
        manual_shapes (tuple): kept for compatibility.
        max_norm (Union[float, None]): limit for the norm of the result's rows. Default ``None``.
        sparse (bool): ask for sparse gradients; gradients here are always dense. Default ``True``.
        dtype (mindspore.dtype): dtype of the table. Default ``float32``.

    Inputs:
        - **indices** (Tensor) - integers, any shape.

    Outputs:
        Tensor of shape [*indices.shape, embedding_size].
    """

    BATCH_SLICE = "batch_slice"
    FIELD_SLICE = "field_slice"
    TABLE_ROW_SLICE = "table_row_slice"
    TABLE_COLUMN_SLICE = "table_column_slice"

    def __init__(
        self,
        vocab_size,
        embedding_size,
        param_init="normal",
        target="CPU",
        slice_mode="batch_slice",
        manual_shapes=None,
        max_norm=None,
        sparse=True,
        dtype=mstype.float32,
    ):
        super().__init__()
        cls = self.cls_name
        self.vocab_size = _check.check_positive_int(vocab_size, "vocab_size", cls)
        self.embedding_size = _check.check_positive_int(embedding_size, "embedding_size", cls)
        self.sparse = _check.check_bool(sparse, "sparse", cls)
        self.target = _check.check_string(target, ["CPU", "DEVICE"], "target", cls)
        _check.check_string(
            slice_mode,
            [self.BATCH_SLICE, self.FIELD_SLICE, self.TABLE_ROW_SLICE, self.TABLE_COLUMN_SLICE],
            "slice_mode",
            cls,
        )
        self.embedding_table = Parameter(
            initializer(param_init, (vocab_size, embedding_size), dtype), name="embedding_table"
        )
        self.max_norm = None if max_norm is None else _check.check_float(max_norm, "max_norm", cls, 0, None, "()")

    def construct(self, indices):
        rows = ops.embedding(indices, self.embedding_table)
        return rows if self.max_norm is None else _limit_rows(rows, self.max_norm)
