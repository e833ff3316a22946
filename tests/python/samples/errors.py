"""Calls that must fail, and how."""

import numpy as np

from samples import ErrorSample


def _t(*shape, dtype=np.float32):
    import morel

    return morel.Tensor(np.zeros(shape, dtype))


ERRORS = [
    ErrorSample("ops.add", lambda: ((_t(2, 3), _t(4, 3)), {}), ValueError, r"axis 0 has 2 and 4"),
    ErrorSample("ops.add", lambda: ((_t(2),), {}), TypeError, r"argument 'other' is missing"),
    ErrorSample("ops.add", lambda: ((_t(2), _t(2), _t(2)), {}), TypeError, r"at most 2 positional arguments"),
    ErrorSample("ops.add", lambda: ((_t(2), _t(2)), {"alhpa": 1}), TypeError, r"unexpected keyword argument 'alhpa'"),
    ErrorSample(
        "ops.add", lambda: ((_t(2), "x"), {}), TypeError, r"type of 'other' must be Tensor\|number, but got str: 'x'"
    ),
    ErrorSample("ops.add", lambda: ((_t(2), _t(2)), {"other": _t(2)}), TypeError, r"'other' is given twice"),
    ErrorSample(
        "ops.matmul",
        lambda: ((_t(2, 3), _t(4, 5)), {}),
        ValueError,
        r"axis k differs: 'input' f32\[2,3\].*has 3, 'mat2' f32\[4,5\].*has 4",
    ),
    ErrorSample("ops.matmul", lambda: ((_t(), _t(4, 5)), {}), ValueError, r"at least one dimension"),
    ErrorSample("ops.softmax", lambda: ((_t(2, 3),), {"axis": 2}), ValueError, r"must be in \[-2, 2\)"),
    ErrorSample("mint.sum", lambda: ((_t(2, 3), (0, 0)), {}), ValueError, r"names axis 0 twice"),
    ErrorSample("ops.reshape", lambda: ((_t(2, 3), (4, 2)), {}), ValueError, r"reshape|Reshape"),
    ErrorSample("ops.concat", lambda: (((_t(2, 3), _t(2, 4)),), {"axis": 0}), ValueError, r"Concat"),
    ErrorSample("ops.gather", lambda: ((_t(2, 3), _t(1, dtype=np.int64) + 7, 0), {}), IndexError, r"7"),
    ErrorSample("ops.gather", lambda: ((_t(2, 3), _t(1), 0), {}), TypeError, r"must hold integers"),
    ErrorSample("ops.conv2d", lambda: ((_t(1, 3, 5, 5), _t(4, 2, 3, 3)), {}), ValueError, r"axis C differs"),
    ErrorSample(
        "ops.conv2d",
        lambda: ((_t(1, 3, 5, 5), _t(4, 3, 3, 3)), {"pad_mode": "what"}),
        ValueError,
        r"'pad_mode' must be",
    ),
    ErrorSample("ops.max_pool2d", lambda: ((_t(1, 3, 2, 2), 3), {}), ValueError, r"does not fit"),
    ErrorSample("ops.cross_entropy", lambda: ((_t(2, 3), _t(2, dtype=np.int64) + 3), {}), ValueError, r"class 3"),
    ErrorSample("ops.dropout", lambda: ((_t(2),), {"p": 1.5}), ValueError, r"'p' must be in \[0, 1\]"),
    ErrorSample("ops.topk", lambda: ((_t(3), 5), {}), ValueError, r"'k' must be in \[0, 3\]"),
    ErrorSample(
        "ops.sin", lambda: ((_t(2, dtype=np.complex64).astype(np.complex64), 1), {}), TypeError, r"at most 1 positional"
    ),
    ErrorSample("ops.bitwise_and", lambda: ((_t(2), _t(2)), {}), TypeError, r"Float32 is not supported"),
    ErrorSample("ops.masked_fill", lambda: ((_t(2), _t(2), 1.0), {}), TypeError, r"'mask' must be Bool"),
]
