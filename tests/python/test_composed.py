"""Functions of morel.ops that are composed in Python, each against NumPy: values, and gradients against differences."""

import itertools
import math

import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, ops

R = np.random.default_rng(5)
A, B = R.normal(size=(3, 4)).astype(np.float32), R.normal(size=(3, 4)).astype(np.float32)
POSITIVE = np.abs(A) + 0.5
IMAGE = R.normal(size=(2, 3, 5, 6)).astype(np.float32)
INTS, MORE_INTS = np.array([[4, -6, 0], [12, 7, 9]], np.int64), np.array([[6, 9, 5], [0, -21, 3]], np.int64)
NAN = np.array([[3, np.nan, 2], [6, 5, 4]], np.float32)
INF = np.array([-np.inf, -2, -0.0, 0.0, 3, np.inf], np.float32)
VECTOR = np.array([0.5, -1.5, 2.0], np.float32)


def _unfolded_mean(x, count):
    size = x.shape[-1]
    ends = [(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]
    return np.stack([x[..., low:high].mean(-1) for low, high in ends], -1)


def _resized(x, sizes, mode, corners=False):
    """One axis at a time by weights from a plain loop."""
    for axis, count in enumerate(sizes, 2):
        extent = x.shape[axis]
        weights = np.zeros((count, extent))
        for k in range(count):
            if mode == "nearest":
                weights[k, min(k * extent // count, extent - 1)] = 1
                continue
            place = k * (extent - 1) / max(count - 1, 1) if corners else max((k + 0.5) * extent / count - 0.5, 0)
            low = min(int(place), extent - 1)
            weights[k, low] += 1 - (place - low)
            weights[k, min(low + 1, extent - 1)] += place - low
        x = np.moveaxis(np.tensordot(weights, x, (1, axis)), 0, axis)
    return x


def _cov(x, **options):
    return np.cov(x, **options)


def _windowed(x, size, axis):
    return np.lib.stride_tricks.sliding_window_view(x, size, axis)


def _lrn(x, radius, bias, alpha, beta):
    padded = np.pad(x**2, [(0, 0), (radius, radius), (0, 0), (0, 0)])
    return x / (bias + alpha * _windowed(padded, 2 * radius + 1, 1).sum(-1)) ** beta


def _scattered(x, index, updates, how):
    x = x.copy()
    for place, update in zip(index, updates):
        x[tuple(place)] = how(x[tuple(place)], update)
    return x


POINTS, UPDATES = np.array([[0, 1], [2, 3], [0, 1]]), np.array([2.0, 3.0, 5.0], np.float32)
SEGMENTS = np.array([2, 0, 2])
M23, M34, M342 = (R.normal(size=size).astype(np.float32) for size in ((2, 3), (3, 4), (3, 4, 2)))
BATCH1, BATCH2 = (R.normal(size=size).astype(np.float32) for size in ((5, 2, 3), (5, 3, 4)))
C, D = A + 1j * B, B - 2j * A

# name, arguments (arrays become tensors), reference
CASES = [
    # elementwise
    ("angle", [C.astype(np.complex64)], np.angle),
    ("angle", [INF[[0, 1, 4, 5]]], np.angle),
    ("approximate_equal", [A, A + np.float32(2e-6)], lambda a, b: abs(a - b) < 1e-5),
    ("arcsin", [np.tanh(A)], np.arcsin),
    ("clip_by_value", [A, -0.5, 0.5], np.clip),
    ("copysign", [A, B], np.copysign),
    ("copysign", [A, -0.0], np.copysign),
    ("copysign", [np.abs(INF), INF], np.copysign),
    ("deg2rad", [A], np.deg2rad),
    ("rad2deg", [A], np.rad2deg),
    ("float_power", [POSITIVE, B], np.float_power),
    ("float_power", [np.array([1, 2]), 0.5], np.float_power),
    ("fmax", [NAN, NAN[::-1].copy()], np.fmax),
    ("fmin", [NAN, NAN[::-1].copy()], np.fmin),
    ("fmax", [INTS, MORE_INTS], np.fmax),
    ("frac", [A * 3], lambda a: a - np.trunc(a)),
    ("gcd", [INTS, MORE_INTS], np.gcd),
    ("lcm", [INTS, MORE_INTS], np.lcm),
    ("heaviside", [np.sign(A) * (np.abs(A) > 0.5), np.full((1,), 0.25, np.float32)], np.heaviside),
    ("heaviside", [NAN, NAN * 0 + 1], np.heaviside),
    ("hypot", [A, B], np.hypot),
    ("hypot", [np.array([3e38, 0, np.inf], np.float32), np.array([2e38, 0, np.nan], np.float32)], np.hypot),
    ("isneginf", [INF], np.isneginf),
    ("isposinf", [INF], np.isposinf),
    ("isreal", [np.array([1, 1j, 2 + 0j], np.complex64)], np.isreal),
    ("isreal", [A], np.isreal),
    ("ldexp", [A, INTS[:1, :1]], np.ldexp),
    ("logaddexp", [A, B], np.logaddexp),
    ("logaddexp", [INF, INF[::-1].copy()], np.logaddexp),
    ("logaddexp", [INF, INF], np.logaddexp),
    ("logaddexp2", [A * 200, B * 200], np.logaddexp2),
    ("logit", [POSITIVE / 5], lambda p: np.log(p / (1 - p))),
    ("logit", [A, 0.1], lambda p, eps: np.log(np.clip(p, eps, 1 - eps) / (1 - np.clip(p, eps, 1 - eps)))),
    ("nan_to_num", [NAN], np.nan_to_num),
    ("nan_to_num", [INF, 1.0, 2.0, -3.0], lambda x, a, b, c: np.nan_to_num(x, nan=a, posinf=b, neginf=c)),
    ("nan_to_num", [INTS], np.nan_to_num),
    ("polar", [POSITIVE, B], lambda r, a: (r * np.exp(1j * a)).astype(np.complex64)),
    ("positive", [A], np.positive),
    ("round", [A * 10], np.round),
    ("sgn", [A], np.sign),
    ("sgn", [np.array([3 + 4j, 0], np.complex64)], lambda z: np.array([0.6 + 0.8j, 0], np.complex64)),
    ("signbit", [INF], np.signbit),
    ("signbit", [INTS], np.signbit),
    ("sinc", [A], np.sinc),
    ("sinc", [np.array([0, 0.5, 1], np.float32)], np.sinc),
    ("softmin", [A], lambda x: np.exp(-x) / np.exp(-x).sum(-1, keepdims=True)),
    ("swiglu", [A], lambda x: x[:, :2] / (1 + np.exp(-x[:, :2])) * x[:, 2:]),
    ("view_as_real", [C.astype(np.complex64)], lambda z: np.stack([z.real, z.imag], -1)),
    ("xdivy", [np.array([0, 0, 2], np.float32), np.array([0, 3, 4], np.float32)], lambda x, y: np.array([0, 0, 0.5])),
    ("xlogy", [np.array([0, 0, 2], np.float32), np.array([0, 3, 4], np.float32)], lambda x, y: [0, 0, 2 * math.log(4)]),
    ("xlogy", [2.0, POSITIVE], lambda x, y: x * np.log(y)),
    ("xlogy", [POSITIVE, POSITIVE + 1], lambda x, y: x * np.log(y)),
    ("xdivy", [POSITIVE, POSITIVE + 1], np.divide),
    ("soft_shrink", [A, 0.5], lambda x, edge: np.sign(x) * np.maximum(abs(x) - edge, 0)),
    ("inv", [POSITIVE], lambda x: 1 / x),
    ("invert", [INTS], np.invert),
    ("population_count", [np.array([7, -1, 0], np.int32)], lambda x: np.array([3, 32, 0], np.uint8)),
    # reductions
    ("aminmax", [A], lambda x: (x.min(0), x.max(0))),
    ("bincount", [np.array([5, 2, 1, 2, 7])], lambda x: np.bincount(x).astype(np.float32)),
    ("bincount", [np.array([5, 2, 2]), VECTOR, 9], np.bincount),
    ("bincount", [np.array([], np.int64), None, 3], lambda x, w, m: np.zeros(3, np.float32)),
    ("cov", [A], _cov),
    ("cov", [A[0]], _cov),
    ("diff", [A], np.diff),
    ("diff", [A, 2, 0], np.diff),
    ("diff", [A, 1, 1, A[:, :1], B[:, :2]], lambda x, n, axis, p, a: np.diff(x, n, axis, p, a)),
    ("diff", [np.array([True, False, False])], np.diff),
    ("dist", [A, B], lambda a, b: np.linalg.norm((a - b).ravel())),
    ("dist", [A, B, 1], lambda a, b, p: np.linalg.norm((a - b).ravel(), p)),
    ("histc", [A, 5], lambda x, n: np.histogram(x, n)[0].astype(np.float32)),
    ("histc", [A, 5, -1.0, 1.0], lambda x, n, low, high: np.histogram(x, n, (low, high))[0].astype(np.float32)),
    ("logcumsumexp", [A, 1], lambda x, axis: np.logaddexp.accumulate(x, axis)),
    ("logcumsumexp", [np.array([-1000.0, 0, 1000, -1000]).astype(np.float32), 0], lambda x, a: np.logaddexp.accumulate(x)),
    ("matrix_norm", [A], np.linalg.norm),
    ("matrix_norm", [A, 1], lambda x, p: np.linalg.norm(x, p)),
    ("matrix_norm", [A, -math.inf], lambda x, p: np.linalg.norm(x, p)),
    ("median", [A[:, :3]], lambda x: (np.median(x, -1), np.argsort(x, -1)[:, 1])),
    ("median", [NAN], lambda x: (np.array([np.nan, 5]), np.array([1, 1]))),
    ("nanmedian", [NAN], lambda x: (np.array([2, 5]), np.array([2, 1]))),
    ("nanmean", [NAN, 1], lambda x, axis: np.nanmean(x, axis)),
    ("nansum", [NAN, 1, True], lambda x, axis, keep: np.nansum(x, axis, keepdims=keep)),
    ("quantile", [A, 0.3], lambda x, q: np.quantile(x, q)),
    ("quantile", [A, np.array([0.1, 0.5, 1]), 1, True], lambda x, q, axis, keep: np.quantile(x, q, axis, keepdims=keep)),
    ("nanquantile", [NAN, 0.4, 1], lambda x, q, axis: np.nanquantile(x, q, axis)),
    ("trace", [A], np.trace),
    ("trapz", [A], np.trapezoid),
    ("trapz", [A, np.array([0, 1, 3, 7], np.float32)], np.trapezoid),
    # arrangement
    ("argwhere", [INTS], np.argwhere),
    ("atleast_1d", [np.float32(3)], np.atleast_1d),
    ("atleast_2d", [VECTOR], np.atleast_2d),
    ("atleast_3d", [A], np.atleast_3d),
    ("atleast_3d", [VECTOR], np.atleast_3d),
    ("bartlett_window", [5, False], lambda n, periodic: np.bartlett(n)),
    ("blackman_window", [5, False], lambda n, periodic: np.blackman(n)),
    ("hamming_window", [5, False], lambda n, periodic: np.hamming(n)),
    ("hann_window", [5, False], lambda n, periodic: np.hanning(n)),
    ("hann_window", [5], lambda n: np.hanning(n + 1)[:-1]),
    ("hann_window", [1], lambda n: np.ones(1)),
    ("bucketize", [A, [-0.5, 0.0, 0.5]], lambda x, edges: np.digitize(x, edges, right=True).astype(np.int32)),
    ("channel_shuffle", [R.normal(size=(2, 4, 3, 2)), 2], lambda x, g: x[:, [0, 2, 1, 3]]),
    ("combinations", [VECTOR], lambda x: np.array(list(itertools.combinations(x, 2)))),
    ("combinations", [VECTOR, 2, True], lambda x, r, w: list(itertools.combinations_with_replacement(x, r))),
    ("diagflat", [VECTOR, 1], np.diagflat),
    ("fill", [ms.float32, (2, 3), 4], lambda t, size, value: np.full(size, value, np.float32)),
    ("fills", [A, 4.0], np.full_like),
    ("fliplr", [A], np.fliplr),
    ("flipud", [A], np.flipud),
    ("matrix_band_part", [A, 1, 0], lambda x, low, high: np.tril(np.triu(x, -low), high)),
    ("matrix_band_part", [A, -1, 0], lambda x, low, high: np.tril(x)),
    ("msort", [A], lambda x: np.sort(x, 0)),
    ("moveaxis", [M342, 0, 2], np.moveaxis),
    ("padding", [A.reshape(12, 1), 3], lambda x, n: np.pad(x, [(0, 0), (0, n - 1)])),
    ("repeat_elements", [A, 2, 1], np.repeat),
    ("reverse", [A, (0, 1)], np.flip),
    ("reverse_sequence", [A, np.array([2, 0, 4]), 1, 0], lambda x, *_: np.stack([[x[0, 1], x[0, 0], *x[0, 2:]], x[1], x[2, ::-1]])),
    *(("rot90", [A, k, (0, 1)], np.rot90) for k in (-1, 0, 1, 2, 3)),
    ("searchsorted", [np.array([1, 3, 5]), np.array([[0, 3], [4, 9]])], np.searchsorted),
    ("searchsorted", [np.array([-np.inf, 1, np.inf, np.nan, np.nan]), np.array([np.nan, np.inf, -np.inf, 7])], np.searchsorted),
    ("searchsorted", [np.zeros(0, np.float32), A[0]], np.searchsorted),
    ("select", [A > 0, A, B], np.where),
    ("select", [A > 0, A, 0.0], np.where),
    ("sequence_mask", [np.array([1, 0, 3]), 4], lambda n, size: np.arange(size) < n[:, None]),
    ("slice", [A, (1, 0), (2, -1)], lambda x, begin, size: x[1:3, 0:]),
    ("slice_scatter", [A, B[:, :2], 1, 0, 4, 2], lambda x, y, *_: np.stack([y[:, 0], x[:, 1], y[:, 1], x[:, 3]], 1)),
    ("select_scatter", [A, VECTOR, 1, -1], lambda x, y, *_: np.concatenate([x[:, :3], y[:, None]], 1)),
    ("diagonal_scatter", [A, VECTOR], lambda x, y: np.where(np.eye(3, 4) > 0, np.append(y, 0), x)),
    ("t", [A], np.transpose),
    ("t", [VECTOR], np.array),
    ("take", [A, np.array([[0, -1]])], np.take),
    ("tril_indices", [3, 4, -1], lambda r, c, k: np.array(np.tril_indices(r, k, c))),
    ("triu_indices", [3, 4, 1], lambda r, c, k: np.array(np.triu_indices(r, k, c))),
    ("unique", [np.array([5, 2, 1, 2, 7, 5])], lambda x: (np.array([5, 2, 1, 7]), np.array([0, 1, 2, 1, 3, 0], np.int32))),
    ("unique_consecutive", [np.array([1, 1, 2, 3, 3, 1])], lambda x: np.array([1, 2, 3, 1])),
    ("unique_consecutive", [np.array([[1, 1, 2], [2, 3, 3]]), True, True],
     lambda x, *_: (np.array([1, 2, 3]), np.array([[0, 0, 1], [1, 2, 2]]), np.array([2, 2, 2]))),
    ("unique_consecutive", [np.array([[1, 1], [1, 1], [2, 2]]), False, True, 0],
     lambda x, *_: (np.array([[1, 1], [2, 2]]), np.array([2, 1]))),
    ("unique_with_pad", [np.array([3, 1, 3]), 9], lambda x, pad: (np.array([3, 1, 9]), np.array([0, 1, 0], np.int32))),
    ("vander", [VECTOR], np.vander),
    ("vander", [VECTOR, 2], np.vander),
    ("pixel_shuffle", [R.normal(size=(1, 8, 2, 3)), 2],
     lambda x, r: x.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6)),
    ("pixel_unshuffle", [R.normal(size=(2, 4, 6)), 2],
     lambda x, r: x.reshape(2, 2, 2, 3, 2).transpose(0, 2, 4, 1, 3).reshape(8, 2, 3)),
    # scatter and gather
    ("gather_nd", [A, POINTS], lambda x, i: x[i[:, 0], i[:, 1]]),
    ("gather_nd", [A, POINTS[:, :1]], lambda x, i: x[i[:, 0]]),
    ("gather_d", [A, 1, np.array([[0], [3], [1]])], lambda x, axis, i: np.take_along_axis(x, i, axis)),
    ("scatter_nd", [POINTS, UPDATES, (3, 4)], lambda i, u, size: _scattered(np.zeros(size, np.float32), i, u, np.add)),
    ("tensor_scatter_add", [A, POINTS, UPDATES], lambda x, i, u: _scattered(x, i, u, np.add)),
    ("tensor_scatter_sub", [A, POINTS, UPDATES], lambda x, i, u: _scattered(x, i, u, np.subtract)),
    ("tensor_scatter_mul", [A, POINTS, UPDATES], lambda x, i, u: _scattered(x, i, u, np.multiply)),
    ("tensor_scatter_div", [A, POINTS, UPDATES], lambda x, i, u: _scattered(x, i, u, np.divide)),
    ("tensor_scatter_max", [A, POINTS, UPDATES], lambda x, i, u: _scattered(x, i, u, np.maximum)),
    ("tensor_scatter_min", [A, POINTS, UPDATES], lambda x, i, u: _scattered(x, i, u, np.minimum)),
    ("tensor_scatter_update", [A, POINTS[:2], UPDATES[:2]], lambda x, i, u: _scattered(x, i, u, lambda old, new: new)),
    ("tensor_scatter_add", [A, np.array([[0], [2]]), B[:2]], lambda x, i, u: _scattered(x, i, u, np.add)),
    ("scatter", [A, 0, np.array([[2, 0, 1, 2]]), B[:1]],
     lambda x, axis, i, u: np.put_along_axis(y := x.copy(), i, u, axis) or y),
    ("scatter", [A, 0, np.array([[2, 0, 1, 2]]), 7.0],
     lambda x, axis, i, u: np.put_along_axis(y := x.copy(), i, u, axis) or y),
    ("tensor_scatter_elements", [A, np.array([[2, 0, 1, 2]]), B[:1], 0, "add"],
     lambda x, i, u, *_: np.put_along_axis(y := x.copy(), i, np.take_along_axis(x, i, 0) + u, 0) or y),
    ("index_fill", [A, 1, np.array([0, 3]), 9.0], lambda x, axis, i, v: np.where(np.isin(np.arange(4), i), v, x)),
    ("index_add", [A, np.array([2, 0, 2]), B, 0], lambda x, i, y, axis: np.add.at(z := x.copy(), i, y) or z),
    ("unsorted_segment_sum", [A, SEGMENTS, 4], lambda x, i, n: np.stack([x[1], x[0] * 0, x[0] + x[2], x[0] * 0])),
    ("unsorted_segment_prod", [A, SEGMENTS, 3], lambda x, i, n: np.stack([x[1], x[0] * 0 + 1, x[0] * x[2]])),
    ("unsorted_segment_max", [A, SEGMENTS, 3],
     lambda x, i, n: np.stack([x[1], np.full(4, np.finfo(np.float32).min), np.maximum(x[0], x[2])])),
    ("unsorted_segment_min", [INTS[0], SEGMENTS, 3], lambda x, i, n: np.array([-6, np.iinfo(np.int64).max, 0])),
    ("inplace_add", [A, B[:2], (0, 2)], lambda x, v, i: np.add.at(y := x.copy(), list(i), v) or y),
    ("inplace_sub", [A, B[:2], (0, 2)], lambda x, v, i: np.subtract.at(y := x.copy(), list(i), v) or y),
    ("inplace_update", [A, B[:1], 1], lambda x, v, i: np.stack([x[0], v[0], x[2]])),
    # products
    ("addbmm", [np.ones((2, 4), np.float32), BATCH1, BATCH2], lambda x, a, b: x + (a @ b).sum(0)),
    ("addmv", [VECTOR[:2], M23, VECTOR], lambda x, a, b: x + a @ b),
    ("addr", [M23, VECTOR[:2], VECTOR], lambda x, a, b: x + np.outer(a, b)),
    ("adjoint", [C.astype(np.complex64)], lambda x: x.conj().T),
    ("batch_dot", [BATCH1, BATCH2], lambda a, b: a @ b),
    ("batch_dot", [BATCH1, BATCH2, (2, 1)], lambda a, b, axes: a @ b),
    ("batch_dot", [M23, M23], lambda a, b: (a * b).sum(1, keepdims=True)),
    ("cdist", [A, B], lambda a, b: np.linalg.norm(a[:, None] - b, axis=-1)),
    ("cdist", [A, B, 1.0], lambda a, b, p: abs(a[:, None] - b).sum(-1)),
    ("cdist", [A, B, math.inf], lambda a, b, p: abs(a[:, None] - b).max(-1)),
    ("cross", [A[:, :3], B[:, :3], 1], lambda a, b, axis: np.cross(a, b, axis=axis)),
    ("cross", [A, B], lambda a, b: np.cross(a, b, axis=0)),
    ("dot", [VECTOR, VECTOR], np.dot),
    ("dot", [M23, M342.transpose(1, 0, 2).copy()], np.dot),
    ("dot", [M23, VECTOR], np.dot),
    ("inner", [A, B], np.inner),
    ("kron", [M23, VECTOR], np.kron),
    ("kron", [M23, M34], np.kron),
    ("tensor_dot", [M23, M342, 1], np.tensordot),
    ("tensor_dot", [M34, M342, ([0, 1], [0, 1])], np.tensordot),
    ("tensor_dot", [M23, M34, 0], np.tensordot),
    ("vecdot", [C, D], lambda a, b: np.vecdot(a, b)),
    *(
        ("einsum", [equation, *operands], np.einsum)
        for equation, operands in [
            ("ij,jk->ik", [M23, M34]),
            ("ij,jk", [M23, M34]),
            ("ij,jkl->lik", [M23, M342]),
            ("ij->ji", [M23]),
            ("ij->", [M23]),
            ("ii->i", [BATCH2[0] @ BATCH2[0].T]),
            ("ii", [BATCH2[0] @ BATCH2[0].T]),
            ("ij,ij->ij", [A, B]),
            ("i,j->ij", [VECTOR, VECTOR]),
            ("bij,bjk->bik", [BATCH1, BATCH2]),
            ("...ij,...jk->...ik", [BATCH1, BATCH2]),
            ("...ij,jk->...ik", [BATCH1, BATCH2[0]]),
            ("ij,jk,kl->il", [M23, M34, M342[0]]),
            ("i...->...", [M342]),
            (" ij , jk -> k i", [M23, M34]),
            ("aij,ajk->k", [BATCH1, BATCH2]),
        ]
    ),
    # networks and images
    ("pad", [IMAGE, [1, 2, 3, 0], "circular"], lambda x, p, mode: np.pad(x, [(0, 0), (0, 0), (3, 0), (1, 2)], "wrap")),
    ("pad", [IMAGE, [1, 2], "constant", 3.0], lambda x, p, *_: np.pad(x, [(0, 0)] * 3 + [(1, 2)], constant_values=3)),
    ("avg_pool1d", [IMAGE[0], 3, 2], lambda x, k, s: _windowed(x, k, 2).mean(-1)[..., ::s]),
    ("avg_pool3d", [IMAGE, (2, 3, 1), 1], lambda x, k, s: _windowed(_windowed(x, 2, 1), 3, 2).mean((-1, -2))[None][0]),
    ("max_pool3d", [IMAGE, 2, 1], lambda x, k, s: _windowed(_windowed(_windowed(x, 2, 1), 2, 2), 2, 3).max((-1, -2, -3))),
    ("adaptive_avg_pool1d", [IMAGE[0], 4], _unfolded_mean),
    ("adaptive_avg_pool3d", [IMAGE, (None, 1, 1)], lambda x, _: x.mean((2, 3), keepdims=True)),
    ("adaptive_max_pool1d", [IMAGE[0], 2], lambda x, n: x.reshape(3, 5, 2, 3).max(-1)),
    ("adaptive_max_pool3d", [IMAGE, 1], lambda x, n: x.max((1, 2, 3), keepdims=True)),
    ("lp_pool1d", [np.abs(IMAGE[0]), 2, 3], lambda x, p, k: np.sqrt((x.reshape(3, 5, 2, 3) ** 2).sum(-1))),
    ("lp_pool2d", [np.abs(IMAGE[..., :4, :]), 2.0, 2],
     lambda x, p, k: np.sqrt((x.reshape(2, 3, 2, 2, 3, 2) ** 2).sum((3, 5)))),
    ("lrn", [IMAGE, 1, 2.0, 0.5, 0.6], _lrn),
    ("conv3d", [IMAGE[:, None], np.ones((1, 1, 2, 2, 2), np.float32)],
     lambda x, w: _windowed(_windowed(_windowed(x, 2, 2), 2, 3), 2, 4).sum((-1, -2, -3))),
    ("max_unpool2d", [np.array([[[[6.0, 8.0]]]]), np.array([[[[5, 7]]]]), 2],
     lambda x, i, k: np.array([[[[0, 0, 0, 0], [0, 6, 0, 8.0]]]])),
    ("max_unpool1d", [np.array([[[6.0, 8.0]]]), np.array([[[1, 2]]]), 2], lambda x, i, k: np.array([[[0, 6, 8, 0.0]]])),
    *(
        ("interpolate", [IMAGE, (count, 9), None, mode, corners], lambda x, size, _, mode, corners: _resized(x, size, mode[2:] if mode == "bilinear" else mode, corners))
        for count in (3, 7)
        for mode, corners in (("nearest", None), ("bilinear", False), ("bilinear", True))
    ),
    ("interpolate", [IMAGE[0], 4, None, "linear"], lambda x, n, *_: _resized(x, (n,), "linear")),
    ("interpolate", [IMAGE[:, None], 4, None, "trilinear"], lambda x, n, *_: _resized(x, (n,) * 3, "linear")),
    ("interpolate", [IMAGE[:, None], 4], lambda x, n: _resized(x, (n,) * 3, "nearest")),
    ("interpolate", [IMAGE, None, 2.0], lambda x, _, factor: x.repeat(2, 2).repeat(2, 3)),
    ("interpolate", [IMAGE[..., :4, :], 2, None, "area"], lambda x, *_: x.reshape(2, 3, 2, 2, 2, 3).mean((3, 5))),
    ("upsample", [IMAGE, None, 2.0, "nearest"], lambda x, *_: x.repeat(2, 2).repeat(2, 3)),
    # questions
    ("intopk", [A, np.array([0, 1, 2], np.int32), 2], lambda x, i, k: (x > x[[0, 1, 2], i][:, None]).sum(1) < k),
    ("type_as", [A, np.zeros(1, np.int32)], lambda x, y: x.astype(np.int32)),
]  # fmt: skip


def _tensors(arguments):
    return [Tensor(value) if isinstance(value, (np.ndarray, np.generic)) else value for value in arguments]


def _close(found, expected, tolerance=2e-5):
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected)
        for one, other in zip(found, expected):
            _close(one, other, tolerance)
        return
    expected, array = np.asarray(expected), found.asnumpy()
    assert array.shape == expected.shape
    assert array.dtype.kind == expected.dtype.kind or (array.dtype.kind, expected.dtype.kind) == ("f", "i")
    np.testing.assert_allclose(array, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "arguments", "reference"), CASES, ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)])
def test_value(name, arguments, reference):
    _close(getattr(ops, name)(*_tensors(arguments)), reference(*arguments))


# Where nothing is differentiable, or the results are complex or the largest numbers.
STEPS = set(
    "approximate_equal heaviside isreal intopk argwhere bucketize nan_to_num signbit sgn round polar type_as "
    "unsorted_segment_max unsorted_segment_min searchsorted".split()
)
# Functions with a second real argument that cannot be moved freely.
FIRST_ONLY = {"quantile"}


def _is_smooth(case):
    name, arguments, _ = case
    first = next((value for value in arguments if isinstance(value, np.ndarray)), None)
    if first is None or first.dtype.kind != "f" or not np.isfinite(first).all() or name in STEPS:
        return False
    return name not in ("xdivy", "xlogy") or first.all()


SMOOTH = [case for case in CASES if _is_smooth(case)]


@pytest.mark.parametrize(
    ("name", "arguments"), [c[:2] for c in SMOOTH], ids=[f"{c[0]}-{n}" for n, c in enumerate(SMOOTH)]
)
def test_gradient(name, arguments):
    """One directional derivative at all real arguments, in float64."""
    arguments = [
        value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value
        for value in arguments
    ]
    places = [n for n, value in enumerate(arguments) if isinstance(value, np.ndarray) and value.dtype.kind == "f"]
    places = places[:1] if name in FIRST_ONLY else places
    random = np.random.default_rng(3)
    directions = [random.normal(size=arguments[place].shape) for place in places]

    def function(*values):
        filled = _tensors(arguments)
        for place, value in zip(places, values):
            filled[place] = value
        outputs = getattr(ops, name)(*filled)
        outputs = [
            item for item in (outputs if isinstance(outputs, tuple) else (outputs,)) if item.dtype.is_floating_point
        ]
        return sum((ops.sin(item) * 2 + item).sum() for item in outputs)

    inputs = [arguments[place] for place in places]
    gradients = ms.grad(function, tuple(range(len(places))))(*_tensors(inputs))
    gradients = gradients if len(places) > 1 else (gradients,)
    found = sum((gradient.asnumpy() * direction).sum() for gradient, direction in zip(gradients, directions))
    step = 1e-6
    high, low = (
        function(*_tensors([value + sign * step * direction for value, direction in zip(inputs, directions)])).item()
        for sign in (1, -1)
    )
    np.testing.assert_allclose(found, (high - low) / (2 * step), rtol=3e-5, atol=1e-6)


WRONG = [
    (TypeError, "addbmm", [3, Tensor(BATCH1), Tensor(BATCH2)]),
    (TypeError, "angle", [3.0]),
    (ValueError, "bincount", [Tensor(np.array([-1]))]),
    (TypeError, "bincount", [Tensor(A[0])]),
    (TypeError, "bucketize", [Tensor(A), 3.0]),
    (ValueError, "channel_shuffle", [Tensor(IMAGE), 2]),
    (ValueError, "clip_by_global_norm", [[Tensor(A)], -1.0]),
    (TypeError, "clip_by_global_norm", [Tensor(A)]),
    (ValueError, "clip_by_value", [Tensor(A)]),
    (ValueError, "cross", [Tensor(A), Tensor(B), 1]),
    (ValueError, "ctc_loss", [Tensor(IMAGE), Tensor(INTS), Tensor([1]), Tensor([1])]),
    (TypeError, "dist", [Tensor(A), Tensor(B), "2"]),
    (ValueError, "diagonal_scatter", [Tensor(A), Tensor(B)]),
    (ValueError, "dot", [Tensor(A), Tensor(B)]),
    (ValueError, "dropout2d", [Tensor(A)]),
    (ValueError, "dropout2d", [Tensor(IMAGE), 1.5]),
    (ValueError, "einsum", ["ij,jk->ik", Tensor(A), Tensor(A)]),
    (ValueError, "einsum", ["ij->ijk", Tensor(A)]),
    (ValueError, "einsum", ["ij,jk", Tensor(A)]),
    (ValueError, "einsum", ["ijk", Tensor(A)]),
    (TypeError, "einsum", [3, Tensor(A)]),
    (TypeError, "gcd", [Tensor(A), Tensor(B)]),
    (ValueError, "gather_nd", [Tensor(A), Tensor(np.array([[0, 0, 0]]))]),
    (ValueError, "grid_sample", [Tensor(IMAGE), Tensor(A)]),
    (ValueError, "gumbel_softmax", [Tensor(A), -1.0]),
    (ValueError, "hsplit", [Tensor(np.float32(1)), 2]),
    (ValueError, "index_add", [Tensor(A), Tensor([0]), Tensor(B), 0]),
    (ValueError, "interpolate", [Tensor(IMAGE)]),
    (ValueError, "interpolate", [Tensor(IMAGE), 3, 2.0]),
    (ValueError, "interpolate", [Tensor(IMAGE), 3, None, "linear"]),
    (ValueError, "interpolate", [Tensor(IMAGE), 3, None, "cubic"]),
    (ValueError, "interpolate", [Tensor(IMAGE), 3, None, "nearest", True]),
    (ValueError, "interpolate", [Tensor(IMAGE), (1, 2, 3)]),
    (ValueError, "interpolate", [Tensor(IMAGE), 0]),
    (TypeError, "interpolate", [Tensor(IMAGE), "3"]),
    (TypeError, "is_tensor", []),
    (ValueError, "is_nonzero", [Tensor(A)]),
    (TypeError, "logaddexp", [Tensor(INTS), Tensor(INTS)]),
    (NotImplementedError, "matrix_norm", [Tensor(A), "nuc"]),
    (NotImplementedError, "max_pool3d", [Tensor(IMAGE), 2, None, 0, 1, False, True]),
    (ValueError, "multinomial", [Tensor([0.0, 0.0]), 1]),
    (ValueError, "multinomial", [Tensor([0.0, 1.0]), 2, False]),
    (ValueError, "pad", [Tensor(IMAGE), [7, 0], "circular"]),
    (ValueError, "pad", [Tensor(IMAGE), [1, 0], "circular", 2.0]),
    (ValueError, "pixel_shuffle", [Tensor(IMAGE), 2]),
    (TypeError, "positive", [Tensor([True])]),
    (ValueError, "quantile", [Tensor(A), 1.5]),
    (TypeError, "quantile", [Tensor(A), 1]),
    (ValueError, "randint", [3, 3, (2,)]),
    (ValueError, "reverse_sequence", [Tensor(A), Tensor([1, 2, 9]), 1, 0]),
    (ValueError, "rot90", [Tensor(A), 1, (0, 0)]),
    (ValueError, "scatter_nd", [Tensor([[0]]), Tensor([1.0, 2.0]), (3,)]),
    (ValueError, "slice", [Tensor(A), (0, 0), (9, 1)]),
    (ValueError, "swiglu", [Tensor(VECTOR)]),
    (ValueError, "tensor_dot", [Tensor(A), Tensor(B), 1]),
    (ValueError, "tensor_scatter_add", [Tensor(A), Tensor(POINTS), Tensor(A)]),
    (ValueError, "trace", [Tensor(VECTOR)]),
    (ValueError, "unsorted_segment_sum", [Tensor(A), Tensor([0, 1, 5]), 3]),
    (TypeError, "view_as_real", [Tensor(A)]),
    (TypeError, "hstack", [3]),
    (ValueError, "hstack", [[]]),
]


@pytest.mark.parametrize(("error", "name", "arguments"), WRONG, ids=[f"{c[1]}-{n}" for n, c in enumerate(WRONG)])
def test_wrong_arguments(error, name, arguments):
    with pytest.raises(error, match=name):
        getattr(ops, name)(*arguments)


def test_joining_and_splitting():
    parts = [A, B, A]
    for name, reference in (
        ("hstack", np.hstack),
        ("vstack", np.vstack),
        ("dstack", np.dstack),
        ("row_stack", np.vstack),
        ("column_stack", np.column_stack),
    ):
        for arrays in (parts, [VECTOR, VECTOR]):
            _close(getattr(ops, name)(_tensors(arrays)), reference(arrays))
    for name, array, reference in (
        ("hsplit", A, np.hsplit),
        ("vsplit", A.T, np.vsplit),
        ("dsplit", A.reshape(1, 3, 4), np.dsplit),
    ):
        for where in (2, [1, 3]):
            _close(getattr(ops, name)(Tensor(array), where), tuple(reference(array, where)))
    blocks = ops.block_diag(Tensor(M23), Tensor(VECTOR), Tensor(np.float32(4)))
    assert blocks.shape == (4, 7) and blocks[2, 3:6].asnumpy().tolist() == VECTOR.tolist() and blocks[3, 6].item() == 4
    assert ops.cartesian_prod(Tensor([1, 2]), Tensor([3, 4])).asnumpy().tolist() == [[1, 3], [1, 4], [2, 3], [2, 4]]
    _close(ops.meshgrid(Tensor(VECTOR), Tensor(A[0])), tuple(np.meshgrid(VECTOR, A[0])))
    _close(ops.meshgrid(Tensor(VECTOR), Tensor(A[0]), indexing="ij"), tuple(np.meshgrid(VECTOR, A[0], indexing="ij")))
    _close(ops.nonzero(Tensor(INTS), as_tuple=True), np.nonzero(INTS))
    assert ops.round(Tensor([1.26, -14.0]), decimals=1).asnumpy().tolist() == pytest.approx([1.3, -14])
    assert ops.round(Tensor([126.0]), decimals=-1).item() == 130
    _close(ops.subtract(Tensor(A), Tensor(B), alpha=2), A - 2 * B)


def test_lists_of_one_are_tuples():
    x = Tensor(A[:1])
    for found in (
        ops.split(x, 1),
        ops.chunk(x, 1),
        ops.unbind(x),
        ops.unstack(x),
        ops.tensor_split(x, 1),
        ops.meshgrid(Tensor(VECTOR)),
        x.split(1),
        x.chunk(1),
        x.unbind(),
        ms.mint.split(x, 1),
        ms.mint.chunk(x, 1),
    ):
        assert isinstance(found, tuple) and len(found) == 1


def test_weighted_covariance():
    weights = {"fweights": np.array([1, 2, 3, 1]), "aweights": np.array([0.1, 0.2, 0.3, 0.4])}
    for chosen in ({}, {"fweights": weights["fweights"]}, {"aweights": weights["aweights"]}, weights):
        for correction in (0, 1):
            found = ops.cov(Tensor(A), correction=correction, **{key: Tensor(value) for key, value in chosen.items()})
            _close(found, np.cov(A, ddof=correction, **chosen))


def test_clipping_of_norms():
    tensors = [Tensor(A * 10), Tensor(B * 10)]
    norm = float(np.sqrt((A**2).sum() + (B**2).sum()) * 10)
    first, second = ops.clip_by_global_norm(tensors, 2.0)
    _close(first, A * 20 / norm), _close(second, B * 20 / norm)
    (same,) = ops.clip_by_global_norm([Tensor(A)], 1e6)
    _close(same, A)
    _close(ops.clip_by_norm(tensors, 2.0)[0], A * 20 / norm)
    _close(ops.clip_by_norm(Tensor(A), 1.0, math.inf), A / abs(A).max())
    with pytest.raises(RuntimeError, match="the norm is inf"):
        ops.clip_by_norm(Tensor(INF), 1.0, error_if_nonfinite=True)


@pytest.mark.parametrize("how", ["add", "sub", "mul", "div", "max", "min", "update"])
def test_parameters_are_scattered_in_place(how):
    function = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "max": np.maximum,
        "min": np.minimum,
    }
    combine = function.get(how, lambda old, new: new)
    parameter = Parameter(Tensor(A), name="p")
    assert getattr(ops, f"scatter_nd_{how}")(parameter, Tensor(POINTS), Tensor(UPDATES)) is parameter
    _close(parameter, _scattered(A, POINTS, UPDATES, combine))
    if how != "sub":
        parameter = Parameter(Tensor(A), name="p")
        getattr(ops, f"scatter_{how}")(parameter, Tensor([2, 0, 2]), Tensor(B))
        _close(parameter, _scattered(A, [[2], [0], [2]], B, combine))


def test_assignment():
    parameter = Parameter(Tensor(A), name="p")
    assert ops.assign(parameter, Tensor(B)) is parameter
    _close(parameter, B)
    ops.assign_add(parameter, Tensor(A)), ops.assign_sub(parameter, Tensor(B))
    _close(parameter, A)
    ops.index_add(parameter, Tensor([0]), Tensor(B[:1]), 0)
    _close(parameter, np.concatenate([A[:1] + B[:1], A[1:]]))


def _ctc(log_probs, target, blank):
    """The sum over all alignments, one by one."""
    steps, classes = log_probs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        merged = [symbol for symbol, _ in itertools.groupby(path) if symbol != blank]
        if merged == list(target):
            total += math.exp(sum(log_probs[step, symbol] for step, symbol in enumerate(path)))
    return -math.log(total) if total else math.inf


def test_ctc_loss_counts_all_alignments():
    scores = R.normal(size=(4, 3, 3))
    log_probs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    targets, steps, lengths = np.array([[1, 2], [1, 1], [2, 2]]), [4, 3, 2], [2, 2, 2]
    expected = [
        _ctc(log_probs[:count, n], targets[n][:length], 0) for n, (count, length) in enumerate(zip(steps, lengths))
    ]
    assert expected[2] == math.inf  # two equal symbols need a blank between them
    arguments = Tensor(log_probs), Tensor(targets), Tensor(steps), Tensor(lengths)
    found, alpha = ops.ctc_loss(*arguments, reduction="none")
    np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)
    assert alpha.shape == (3, 4, 5)
    finite = np.array([*expected[:2], 0])
    assert ops.ctc_loss(*arguments, reduction="sum", zero_infinity=True)[0].item() == pytest.approx(finite.sum())
    assert ops.ctc_loss(*arguments, zero_infinity=True)[0].item() == pytest.approx((finite / 2).mean())
    joined, _ = ops.ctc_loss(Tensor(log_probs), Tensor(targets.ravel()), steps, lengths, reduction="none")
    np.testing.assert_allclose(joined.asnumpy(), expected, rtol=1e-6)
    gradient = ms.grad(lambda x: ops.ctc_loss(x, *arguments[1:], reduction="sum", zero_infinity=True)[0])(arguments[0])
    step = np.zeros_like(log_probs)
    step[1, 0, 2] = 1e-6
    slope = (_ctc((log_probs + step)[:, 0], [1, 2], 0) - _ctc((log_probs - step)[:, 0], [1, 2], 0)) / 2e-6
    assert gradient[1, 0, 2].item() == pytest.approx(slope, rel=1e-4)
    assert np.isfinite(gradient.asnumpy()).all() and not gradient[:, 2].asnumpy().any()


def test_sampling_at_the_centres_of_pixels_gives_the_image():
    theta = Tensor(np.array([[[1, 0, 0], [0, 1, 0]]] * 2, np.float32))
    for corners in (False, True):
        grid = ops.affine_grid(theta, (2, 3, 5, 6), corners)
        for mode in ("bilinear", "nearest"):
            for padding in ("zeros", "border", "reflection"):
                _close(ops.grid_sample(Tensor(IMAGE), grid, mode, padding, corners), IMAGE)
    half = ops.affine_grid(theta * 0.5, (2, 3, 5, 6), True)
    _close(
        ops.grid_sample(Tensor(IMAGE), half, align_corners=True)[:, :, 2, :1],
        0.75 * IMAGE[:, :, 2, 1:2] + 0.25 * IMAGE[:, :, 2, 2:3],
    )
    outside = Tensor(np.full((2, 1, 1, 2), 3.0, np.float32))
    assert not ops.grid_sample(Tensor(IMAGE), outside).asnumpy().any()
    _close(ops.grid_sample(Tensor(IMAGE), outside, padding_mode="border"), IMAGE[:, :, -1:, -1:])
    volume = IMAGE[:, None]
    theta = Tensor(np.tile(np.eye(3, 4, dtype=np.float32), (2, 1, 1)))
    _close(ops.grid_sample(Tensor(volume), ops.affine_grid(theta, (2, 1, 3, 5, 6))), volume)


def test_bicubic_resizing_keeps_cubics():
    place = np.arange(12.0)
    signal = np.tile(place**2 / 20 - place, (1, 1, 12, 1))
    found = ops.interpolate(Tensor(signal), (12, 23), mode="bicubic", align_corners=False)
    wanted = (np.arange(23) + 0.5) * 12 / 23 - 0.5
    inner = slice(4, -4)
    np.testing.assert_allclose(found.asnumpy()[0, 0, 5, inner], (wanted**2 / 20 - wanted)[inner], atol=1e-12)


def test_random_functions():
    ms.set_seed(7)
    x = ops.zeros((20000,), ms.float32)
    for numbers, mean, deviation in (
        (ops.uniform((20000,), Tensor(-1.0), Tensor(3.0)), 1, 4 / math.sqrt(12)),
        (ops.normal((20000,), 2.0, 3.0), 2, 3),
        (ops.standard_normal((20000,)), 0, 1),
        (ops.standard_laplace((20000,)), 0, math.sqrt(2)),
        (ops.laplace((20000,), Tensor(1.0), Tensor(2.0)), 1, 2 * math.sqrt(2)),
        (ops.rand(20000), 0.5, 1 / math.sqrt(12)),
        (ops.rand_like(x), 0.5, 1 / math.sqrt(12)),
        (ops.randn(20000), 0, 1),
        (ops.randn_like(x), 0, 1),
        (ops.randint(0, 5, (20000,)).float(), 2, math.sqrt(2)),
        (ops.randint_like(x, 0, 5).float(), 2, math.sqrt(2)),
        (ops.bernoulli(x, 0.3), 0.3, math.sqrt(0.21)),
        (ops.uniform((20000,), Tensor(0, ms.int32), Tensor(5, ms.int32), dtype=ms.int32).float(), 2, math.sqrt(2)),
    ):
        array = numbers.asnumpy()
        assert array.shape == (20000,)
        assert array.mean() == pytest.approx(mean, abs=5 * deviation / 140) and array.std() == pytest.approx(
            deviation, rel=0.05
        )
    assert sorted(ops.randperm(9).asnumpy().tolist()) == list(range(9))
    assert sorted(ops.shuffle(Tensor(A))[:, 0].asnumpy().tolist()) == sorted(A[:, 0].tolist())
    counts = np.bincount(ops.multinomial(Tensor([1.0, 0.0, 3.0]), 8000).asnumpy(), minlength=3)
    assert counts[1] == 0 and counts[2] / 8000 == pytest.approx(0.75, abs=0.03)
    rows = ops.multinomial(Tensor(np.ones((50, 4), np.float32)), 4, False).asnumpy()
    assert (np.sort(rows, 1) == np.arange(4)).all()
    hard = ops.gumbel_softmax(Tensor(A), hard=True).asnumpy()
    assert set(hard.ravel().tolist()) <= {0, 1} and (hard.sum(1) == 1).all()
    _close(ops.gumbel_softmax(Tensor(A)).sum(-1), np.ones(3))
    slopes = ops.rrelu(Tensor([-1.0] * 1000)).asnumpy()
    assert -1 / 3 <= slopes.min() < slopes.max() <= -0.125


def test_seeds_of_functions():
    def draw():
        return [ops.rand(3, seed=5).asnumpy().tolist() for _ in range(2)]

    ms.set_seed(1)
    outer = ops.rand(3).asnumpy().tolist()
    ms.set_seed(1)
    first = draw()
    assert first[0] != first[1] and ops.rand(3).asnumpy().tolist() == outer  # others do not notice
    ms.set_seed(1)
    assert draw() == first
    ms.set_seed(2)
    assert draw() != first
    assert ops.dropout(ops.ones((8,)), 0.5, True, seed=3).shape == (8,)
    with pytest.raises(TypeError, match="'seed' must be int"):
        ops.rand(3, seed=1.5)


def test_dropout_of_channels():
    for name, shape in (("dropout1d", (50, 8, 3)), ("dropout2d", (50, 8, 3, 3)), ("dropout3d", (50, 8, 2, 2, 2))):
        dropped = getattr(ops, name)(ops.ones(shape), 0.25).asnumpy().reshape(50, 8, -1)
        assert (dropped.min(-1) == dropped.max(-1)).all() and dropped.mean() == pytest.approx(1, abs=0.1)
        assert (getattr(ops, name)(ops.ones(shape), 0.25, False).asnumpy() == 1).all()


def test_questions():
    x = Tensor(A)
    assert ops.is_tensor(x) and not ops.is_tensor(A) and ops.is_floating_point(x) and not ops.is_complex(x)
    assert ops.numel(x) == ops.size(x) == 12 and ops.rank(x) == 2 and ops.shape(x) == (3, 4)
    assert ops.is_nonzero(Tensor([2.0])) and not ops.is_nonzero(Tensor(0))
    assert ops.allclose(x, x) is True and ops.allclose(x, x + 1) is False
    boxes, truth = Tensor([[0.0, 0, 2, 2], [1, 1, 3, 3]]), Tensor([[1.0, 1, 2, 2]])
    np.testing.assert_allclose(ops.iou(boxes, truth).asnumpy(), [[4 / 9, 4 / 9]])
    np.testing.assert_allclose(ops.iou(boxes, truth, "iof").asnumpy(), [[1, 1]])


def test_transposed_convolutions_are_gradients_of_convolutions():
    x, w = Tensor(R.normal(size=(2, 3, 5, 6))), Tensor(R.normal(size=(4, 3, 3, 2)))
    y = ops.conv2d(x, w, None, 2, "pad", 1)
    dy = Tensor(R.normal(size=y.shape))
    expected = ms.grad(lambda x: (ops.conv2d(x, w, None, 2, "pad", 1) * dy).sum())(x)
    _close(ops.conv_transpose2d(dy, w, None, 2, 1, (0, 0)), expected.asnumpy(), 1e-9)
    x, w = Tensor(R.normal(size=(1, 2, 4, 5, 6))), Tensor(R.normal(size=(3, 2, 2, 2, 2)))
    y = ops.conv3d(x, w, None, 2, "pad", 0)
    dy = Tensor(R.normal(size=y.shape))
    expected = ms.grad(lambda x: (ops.conv3d(x, w, None, 2, "pad", 0) * dy).sum())(x)
    _close(ops.conv3d_transpose(dy, w, "pad", 0, 2, 1, 1, (0, 1, 0)), expected.asnumpy(), 1e-9)
    assert ops.conv3d(x, w, None, 2, "same").shape == (1, 3, 2, 3, 3)
    assert ops.conv3d_transpose(dy, w, "same", 0, 2).shape == (1, 2, 4, 4, 6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ops.interpolate(x.reshape(1, 1, 3, 4), (6, 8), mode="bilinear"),
        lambda x: ops.einsum("ij,kj->ik", x, x),
        lambda x: ops.grid_sample(x.reshape(1, 1, 3, 4), x.reshape(1, 2, 3, 2) * 0.3),
        lambda x: ops.logaddexp(x, -x),
        lambda x: ops.quantile(x, 0.3),
        lambda x: ops.unsorted_segment_sum(x, Tensor(SEGMENTS), 3),
        lambda x: ops.clip_by_global_norm([x])[0],
        lambda x: ops.pad(x, [1, 1], "circular"),
        lambda x: ops.split(x, 3)[0] + x.max(dim=0)[0] + x.std(0) + x.sum(axis=0, keepdims=True),
        lambda x: ops.gather_nd(x, Tensor(POINTS)),
    ],
)
def test_compiled_functions_give_the_same(function):
    _close(ms.jit(function)(Tensor(A)), function(Tensor(A)).asnumpy())
