"""Multi-head attention and the Transformer of Vaswani et al., Attention Is All You Need, 2017."""

import copy
import math

from morel import ops
from morel.common import dtype as mstype
from morel.common.initializer import XavierNormal, XavierUniform, initializer
from morel.common.parameter import Parameter
from morel.nn.cell import Cell
from morel.nn.layer.activation import GELU, ReLU
from morel.nn.layer.basic import Dense, Dropout
from morel.nn.layer.container import CellList
from morel.nn.layer.normalization import LayerNorm

__all__ = [
    "MultiheadAttention",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerDecoder",
    "Transformer",
]


def _check_mask(mask, name, cls):
    if mask is not None and mask.dtype != mstype.bool_ and not mask.dtype.is_floating_point:
        raise ValueError(f"For '{cls}', the dtype of '{name}' must be bool or floating, but got {mask.dtype}.")


def _additive(mask, dtype):
    """A mask to add to the scores: bool masks hide where they are true."""
    if mask is None or mask.dtype != mstype.bool_:
        return mask
    return ops.zeros(mask.shape, dtype).masked_fill(mask, float("-inf"))


def _with_visible_key(mask):
    """The mask for one more key, which is visible."""
    return None if mask is None else ops.pad(mask, (0, 1))


class MultiheadAttention(Cell):
    """Attention in `num_heads` subspaces: ``concat(head_1 ...) @ W_o`` with ``head = softmax(q k^T / sqrt(d)) v``.

    Args:
        embed_dim (int): features of query and output; divisible by `num_heads`.
        num_heads (int): number of heads.
        dropout (float): dropout of the attention weights in training. Default ``0.0``.
        has_bias (bool): biases in the projections. Default ``True``.
        add_bias_kv (bool): append a learnt key and value. Default ``False``.
        add_zero_attn (bool): append a zero key and value. Default ``False``.
        kdim (int): features of the keys. Default ``None``: `embed_dim`.
        vdim (int): features of the values. Default ``None``: `embed_dim`.
        batch_first (bool): [N, L, E] instead of [L, N, E]. Default ``False``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``float32``.

    Inputs:
        - **query** (Tensor) - [L, N, E_q] (or [L, E_q]).
        - **key** (Tensor) - [S, N, E_k].
        - **value** (Tensor) - [S, N, E_v].
        - **key_padding_mask** (Tensor, optional) - [N, S]; true (or -inf) hides a key.
        - **need_weights** (bool) - also return the weights. Default ``True``.
        - **attn_mask** (Tensor, optional) - [L, S] or [N * num_heads, L, S]; true hides, floats are added.
        - **average_attn_weights** (bool) - mean of the heads' weights. Default ``True``.

    Outputs:
        A tuple of the output, [L, N, E], and, with `need_weights`, the weights, [N, L, S] or [N, heads, L, S].

    Raises:
        ValueError: `embed_dim` is not divisible by `num_heads`, or a mask has the wrong dtype or shape.
    """

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        has_bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        dtype=mstype.float32,
    ):
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        self.head_dim = embed_dim // num_heads
        self.dtype = mstype.float32 if dtype is None else dtype
        if self.head_dim * num_heads != embed_dim:
            raise ValueError(
                f"For 'MultiheadAttention', 'embed_dim' must be divisible by 'num_heads', "
                f"but got {embed_dim} and {num_heads}."
            )
        self._packed = self.kdim == embed_dim and self.vdim == embed_dim
        self._create_projections(has_bias)
        self.out_proj = Dense(embed_dim, embed_dim, has_bias=has_bias, dtype=self.dtype)
        self.bias_k = self.bias_v = None
        if add_bias_kv:
            self.bias_k = self._new("bias_k", XavierNormal(), (1, 1, embed_dim))
            self.bias_v = self._new("bias_v", XavierNormal(), (1, 1, embed_dim))

    def _new(self, name, init, shape):
        return Parameter(initializer(init, shape, self.dtype), name)

    def _create_projections(self, has_bias):
        size = self.embed_dim
        self.in_proj_weight = self.q_proj_weight = self.k_proj_weight = self.v_proj_weight = None
        if self._packed:
            self.in_proj_weight = self._new("in_proj_weight", XavierUniform(), (3 * size, size))
        else:
            self.q_proj_weight = self._new("q_proj_weight", XavierUniform(), (size, size))
            self.k_proj_weight = self._new("k_proj_weight", XavierUniform(), (size, self.kdim))
            self.v_proj_weight = self._new("v_proj_weight", XavierUniform(), (size, self.vdim))
        self.in_proj_bias = self._new("in_proj_bias", "zeros", (3 * size,)) if has_bias else None

    def _project(self, query, key, value):
        """The three projections; one product when all inputs are the same tensor."""
        size, bias = self.embed_dim, self.in_proj_bias
        if self._packed and query is key and key is value:
            packed = ops.dense(query, self.in_proj_weight, bias)
            return tuple(packed[..., part * size : (part + 1) * size] for part in range(3))
        if self._packed:
            weights = tuple(self.in_proj_weight[part * size : (part + 1) * size] for part in range(3))
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None,) * 3 if bias is None else tuple(bias[part * size : (part + 1) * size] for part in range(3))
        return tuple(ops.dense(x, w, b) for x, w, b in zip((query, key, value), weights, biases))

    def _heads(self, x):
        """[S, N, E] -> [N, heads, S, E / heads]."""
        length, batch, _ = x.shape
        return x.reshape((length, batch, self.num_heads, self.head_dim)).transpose((1, 2, 0, 3))

    def _merge_masks(self, attn_mask, key_padding_mask, scores_shape, dtype):
        """One mask to add to scores of shape [N, heads, L, S], or None."""
        batch, heads, target, source = scores_shape
        total = None
        if attn_mask is not None:
            total = _additive(attn_mask, dtype)
            if tuple(attn_mask.shape) == (batch * heads, target, source) and attn_mask.ndim == 3:
                total = total.reshape(scores_shape)
            elif tuple(attn_mask.shape) != (target, source):
                raise ValueError(
                    f"For 'MultiheadAttention', the shape of 'attn_mask' must be {(target, source)} or "
                    f"{(batch * heads, target, source)}, but got {tuple(attn_mask.shape)}."
                )
        if key_padding_mask is not None:
            if tuple(key_padding_mask.shape) != (batch, source):
                raise ValueError(
                    f"For 'MultiheadAttention', the shape of 'key_padding_mask' must be "
                    f"{(batch, source)}, but got {tuple(key_padding_mask.shape)}."
                )
            padding = _additive(key_padding_mask, dtype).reshape((batch, 1, 1, source))
            total = padding if total is None else total + padding
        return total

    def _attend(self, query, key, value, key_padding_mask, attn_mask):
        """Output [L, N, E] and weights [N, heads, L, S]."""
        target, batch, _ = query.shape
        q, k, v = self._project(query, key, value)
        if self.bias_k is not None:
            k = ops.cat((k, self.bias_k.broadcast_to((1, batch, self.embed_dim))))
            v = ops.cat((v, self.bias_v.broadcast_to((1, batch, self.embed_dim))))
            attn_mask, key_padding_mask = _with_visible_key(attn_mask), _with_visible_key(key_padding_mask)
        if self.add_zero_attn:
            zero = ops.zeros((1, batch, self.embed_dim), k.dtype)
            k, v = ops.cat((k, zero)), ops.cat((v, zero))
            attn_mask, key_padding_mask = _with_visible_key(attn_mask), _with_visible_key(key_padding_mask)
        q, k, v = self._heads(q), self._heads(k), self._heads(v)
        scores = ops.matmul(q * (1.0 / math.sqrt(self.head_dim)), k.swapaxes(-1, -2))
        mask = self._merge_masks(attn_mask, key_padding_mask, tuple(scores.shape), scores.dtype)
        weights = ops.softmax(scores if mask is None else scores + mask, -1)
        if self.training and self.dropout > 0.0:
            weights = ops.dropout(weights, self.dropout, True)
        mixed = ops.matmul(weights, v).transpose((2, 0, 1, 3)).reshape((target, batch, self.embed_dim))
        return self.out_proj(mixed), weights

    def construct(
        self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True
    ):
        _check_mask(key_padding_mask, "key_padding_mask", self.cls_name)
        _check_mask(attn_mask, "attn_mask", self.cls_name)
        batched = query.ndim == 3
        if not batched and query.ndim != 2:
            raise ValueError(f"For 'MultiheadAttention', 'query' must have 2 or 3 dims, but got {query.ndim}.")
        same = query is key and key is value
        swap = (lambda x: x.swapaxes(0, 1)) if self.batch_first else (lambda x: x)
        arrange = swap if batched else (lambda x: x.expand_dims(1))
        query = arrange(query)
        key, value = (query, query) if same else (arrange(key), arrange(value))
        if key_padding_mask is not None and not batched:
            key_padding_mask = key_padding_mask.expand_dims(0)
        output, weights = self._attend(query, key, value, key_padding_mask, attn_mask)
        output = swap(output) if batched else output.squeeze(1)
        if not need_weights:
            return (output,)
        weights = weights.mean(1) if average_attn_weights else weights
        return output, (weights if batched else weights.squeeze(0))


def _activation_function(activation):
    """ReLU or GELU, given by name, function or cell."""
    named = {"relu": ops.relu, "gelu": ops.gelu}
    if isinstance(activation, str):
        if activation not in named:
            raise ValueError(f"For 'Transformer', the 'activation' must be 'relu' or 'gelu', but got '{activation}'.")
        return named[activation]
    if isinstance(activation, (ReLU, GELU)) or any(activation is function for function in named.values()):
        return activation
    raise ValueError(
        f"For 'Transformer', the 'activation' must be ReLU or GELU as str, function or Cell, but got {activation}."
    )


class _Layer(Cell):
    """What encoder and decoder layers share: arguments, self-attention and the feed-forward block."""

    def _keep_arguments(
        self, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype
    ):
        self.__dict__["_arguments"] = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            dtype,
        )
        self.d_model, self.nhead, self.norm_first = d_model, nhead, norm_first
        self.batch_first = batch_first

    def _feed_forward(self, x):
        return self.dense2(self.dropout(self.activation(self.dense1(x))))

    def _attention(self, attention, x, memory, mask, padding_mask):
        return attention(x, memory, memory, key_padding_mask=padding_mask, need_weights=False, attn_mask=mask)[0]


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward block, each with a residual connection and layer normalisation.

    Args:
        d_model (int): features.
        nhead (int): heads.
        dim_feedforward (int): features inside the feed-forward block. Default ``2048``.
        dropout (float): dropout. Default ``0.1``.
        activation (Union[str, callable, Cell]): ReLU or GELU. Default ``"relu"``.
        layer_norm_eps (float): epsilon of the normalisations. Default ``1e-5``.
        batch_first (bool): [N, L, E] instead of [L, N, E]. Default ``False``.
        norm_first (bool): normalise before each block instead of after. Default ``False``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``float32``.

    Inputs:
        - **src** (Tensor) - the sequence.
        - **src_mask** (Tensor, optional) - see `MultiheadAttention`, attn_mask.
        - **src_key_padding_mask** (Tensor, optional) - see `MultiheadAttention`.

    Outputs:
        Tensor like `src`.
    """

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        dtype=mstype.float32,
    ):
        super().__init__()
        self._keep_arguments(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype
        )
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, dtype=dtype)
        self.dense1 = Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, dtype=dtype)
        self.norm1 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.norm2 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.dropout1 = Dropout(p=dropout)
        self.dropout2 = Dropout(p=dropout)
        self.activation = _activation_function(activation)

    def construct(self, src, src_mask=None, src_key_padding_mask=None):
        if self.norm_first:
            x = self.norm1(src)
            src = src + self.dropout1(self._attention(self.self_attn, x, x, src_mask, src_key_padding_mask))
            return src + self.dropout2(self._feed_forward(self.norm2(src)))
        x = self.norm1(src + self.dropout1(self._attention(self.self_attn, src, src, src_mask, src_key_padding_mask)))
        return self.norm2(x + self.dropout2(self._feed_forward(x)))


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output and a feed-forward block; arguments as the encoder layer's.

    Inputs:
        - **tgt** (Tensor) - the sequence.
        - **memory** (Tensor) - the encoder's output.
        - **tgt_mask**, **memory_mask** (Tensor, optional) - see `MultiheadAttention`, attn_mask.
        - **tgt_key_padding_mask**, **memory_key_padding_mask** (Tensor, optional) - see `MultiheadAttention`.

    Outputs:
        Tensor like `tgt`.
    """

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        dtype=mstype.float32,
    ):
        super().__init__()
        self._keep_arguments(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype
        )
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, dtype=dtype)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, dtype=dtype)
        self.dense1 = Dense(d_model, dim_feedforward, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.dense2 = Dense(dim_feedforward, d_model, dtype=dtype)
        self.norm1 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.norm2 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.norm3 = LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)
        self.dropout1 = Dropout(p=dropout)
        self.dropout2 = Dropout(p=dropout)
        self.dropout3 = Dropout(p=dropout)
        self.activation = _activation_function(activation)

    def construct(
        self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None
    ):
        def own(x):
            return self.dropout1(self._attention(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask))

        def cross(x):
            return self.dropout2(self._attention(self.multihead_attn, x, memory, memory_mask, memory_key_padding_mask))

        if self.norm_first:
            tgt = tgt + own(self.norm1(tgt))
            tgt = tgt + cross(self.norm2(tgt))
            return tgt + self.dropout3(self._feed_forward(self.norm3(tgt)))
        tgt = self.norm1(tgt + own(tgt))
        tgt = self.norm2(tgt + cross(tgt))
        return self.norm3(tgt + self.dropout3(self._feed_forward(tgt)))


def _copies(layer, count):
    """`count` layers like `layer`, all with the same first values."""
    fresh = type(layer)(*layer._arguments)
    return CellList([copy.deepcopy(fresh) for _ in range(count)])


class TransformerEncoder(Cell):
    """A stack of `num_layers` layers like `encoder_layer`.

    Args:
        encoder_layer (Cell): gives the arguments of the layers.
        num_layers (int): number of layers.
        norm (Cell): applied at the end. Default ``None``.
    """

    def __init__(self, encoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def construct(self, src, src_mask=None, src_key_padding_mask=None):
        _check_mask(src_key_padding_mask, "src_key_padding_mask", self.cls_name)
        for layer in self.layers:
            src = layer(src, src_mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Cell):
    """A stack of `num_layers` layers like `decoder_layer`.

    Args:
        decoder_layer (Cell): gives the arguments of the layers.
        num_layers (int): number of layers.
        norm (Cell): applied at the end. Default ``None``.
    """

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def construct(
        self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None
    ):
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Cell):
    """Encoder and decoder.

    Args:
        d_model (int): features. Default ``512``.
        nhead (int): heads. Default ``8``.
        num_encoder_layers (int): layers of the encoder. Default ``6``.
        num_decoder_layers (int): layers of the decoder. Default ``6``.
        dim_feedforward (int): features inside the feed-forward blocks. Default ``2048``.
        dropout (float): dropout. Default ``0.1``.
        activation (Union[str, callable, Cell]): ReLU or GELU. Default ``"relu"``.
        custom_encoder (Cell): replaces the encoder. Default ``None``.
        custom_decoder (Cell): replaces the decoder. Default ``None``.
        layer_norm_eps (float): epsilon of the normalisations. Default ``1e-5``.
        batch_first (bool): [N, L, E] instead of [L, N, E]. Default ``False``.
        norm_first (bool): normalise before each block instead of after. Default ``False``.
        dtype (mindspore.dtype): dtype of the parameters. Default ``float32``.

    Inputs:
        - **src**, **tgt** (Tensor) - the two sequences; masks as in the encoder and decoder.

    Outputs:
        Tensor like `tgt`.
    """

    def __init__(
        self,
        d_model=512,
        nhead=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        dtype=mstype.float32,
    ):
        super().__init__()
        arguments = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            dtype,
        )

        def norm():
            return LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)

        self.encoder = (
            custom_encoder
            if custom_encoder is not None
            else TransformerEncoder(TransformerEncoderLayer(*arguments), num_encoder_layers, norm())
        )
        self.decoder = (
            custom_decoder
            if custom_decoder is not None
            else TransformerDecoder(TransformerDecoderLayer(*arguments), num_decoder_layers, norm())
        )
        for param in self.get_parameters():
            if param.ndim > 1:
                param.set_data(initializer("xavier_uniform", param.shape, param.dtype))
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def construct(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        memory_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):
        batch_axis = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch_axis] != tgt.shape[batch_axis]:
            raise ValueError(
                f"For 'Transformer', 'src' and 'tgt' must have the same batch size, but got "
                f"{src.shape[batch_axis]} and {tgt.shape[batch_axis]}."
            )
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ValueError(
                f"For 'Transformer', 'src' and 'tgt' must have {self.d_model} features, but got "
                f"{src.shape[-1]} and {tgt.shape[-1]}."
            )
        memory = self.encoder(src, src_mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
        )
