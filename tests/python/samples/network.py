"""Convolution, pooling, normalisation, attention, losses."""

import numpy as np

from samples import FLOATS, HALVES, Sample, distinct, indices, normal, positive


def _conv2d(x, w, b=None, stride=1, padding=0, groups=1, **_):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    n, c, h, width = x.shape
    o, k, kh, kw = w.shape
    oh, ow = (h - kh) // stride + 1, (width - kw) // stride + 1
    out = np.zeros((n, o, oh, ow), np.result_type(x, w))
    for group in range(groups):
        xs, ws = x[:, group * k : (group + 1) * k], w[group * o // groups : (group + 1) * o // groups]
        for i in range(oh):
            for j in range(ow):
                patch = xs[:, :, i * stride : i * stride + kh, j * stride : j * stride + kw]
                out[:, group * o // groups : (group + 1) * o // groups, i, j] = np.einsum("nckl,ockl->no", patch, ws)
    return out if b is None else out + b[None, :, None, None]


def _windows(x, size, stride, function):
    n, c, h, w = x.shape
    oh, ow = (h - size) // stride + 1, (w - size) // stride + 1
    return np.stack(
        [
            np.stack(
                [
                    function(
                        x[:, :, i * stride : i * stride + size, j * stride : j * stride + size].reshape(n, c, -1), -1
                    )
                    for j in range(ow)
                ],
                -1,
            )
            for i in range(oh)
        ],
        -2,
    )


def _layer_norm(input, weight, bias, normalized_shape, eps):
    x, w, b = input, weight, bias
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + eps) * w + b


def _attention(q, k, v, is_causal=False):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def _cross_entropy(x, target, reduction="mean", **_):
    logp = x - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)) - x.max(-1, keepdims=True)
    loss = -logp[np.arange(len(target)), target]
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


_SLACK = 16
SAMPLES = [
    Sample(
        "ops.conv2d",
        (normal(2, 3, 6, 5), normal(4, 3, 3, 3), normal(4)),
        _conv2d,
        {"pad_mode": "pad", "padding": 1, "stride": 2},
        tolerance=_SLACK,
    ),
    Sample("ops.conv2d", (normal(2, 3, 6, 5), normal(4, 3, 2, 3)), _conv2d, tolerance=_SLACK),
    Sample("ops.conv2d", (normal(1, 4, 5, 5), normal(6, 2, 3, 3)), _conv2d, {"groups": 2}, tolerance=_SLACK),
    Sample(
        "ops.conv2d",
        (normal(2, 64, 6, 6), normal(64, 64, 3, 3)),
        _conv2d,
        {"pad_mode": "pad", "padding": 1},
        dtypes=("float32",),
        grad=False,
        tolerance=4 * _SLACK,
    ),
    Sample(
        "ops.max_pool2d",
        (distinct(2, 3, 6, 6),),
        lambda x, kernel_size: _windows(x, kernel_size, kernel_size, np.max),
        {"kernel_size": 2},
    ),
    Sample(
        "ops.max_pool2d",
        (distinct(2, 3, 7, 6),),
        lambda x, kernel_size, stride: _windows(x, kernel_size, stride, np.max),
        {"kernel_size": 3, "stride": 2},
    ),
    Sample(
        "ops.avg_pool2d",
        (normal(2, 3, 6, 6),),
        lambda x, kernel_size, stride: _windows(x, kernel_size, stride, np.mean),
        {"kernel_size": 2, "stride": 2},
        tolerance=4,
    ),
    Sample(
        "ops.layer_norm",
        (normal(3, 4, 8), positive(8), normal(8)),
        _layer_norm,
        {"normalized_shape": (8,), "eps": 1e-5},
        names=("input", "weight", "bias"),
        tolerance=_SLACK,
    ),
    Sample("ops.mse_loss", (normal(3, 4), normal(3, 4)), lambda x, y: ((x - y) ** 2).mean(), tolerance=4),
    Sample(
        "ops.scaled_dot_product_attention",
        (normal(2, 3, 5, 4), normal(2, 3, 6, 4), normal(2, 3, 6, 4)),
        _attention,
        dtypes=FLOATS + HALVES,
        tolerance=_SLACK,
    ),
    Sample(
        "ops.scaled_dot_product_attention",
        (normal(2, 3, 5, 4), normal(2, 3, 5, 4), normal(2, 3, 5, 4)),
        _attention,
        {"is_causal": True},
        dtypes=FLOATS + HALVES,
        tolerance=_SLACK,
    ),
    Sample("ops.cross_entropy", (normal(6, 5), indices(5, 6)), _cross_entropy, dtypes=FLOATS, tolerance=4),
    Sample(
        "ops.cross_entropy",
        (normal(6, 5), indices(5, 6, dtype="int32")),
        _cross_entropy,
        {"reduction": "sum"},
        dtypes=FLOATS,
        tolerance=4,
    ),
    Sample("ops.l1_loss", (distinct(3, 4), normal(3, 4)), lambda x, y: np.abs(x - y).mean(), tolerance=4),
    Sample(
        "ops.kl_div",
        (normal(3, 4), positive(3, 4)),
        lambda x, y: (y * (np.log(y) - x)).mean(),
        dtypes=FLOATS,
        tolerance=4,
    ),
]
