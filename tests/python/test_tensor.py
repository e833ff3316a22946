"""The Tensor type: construction, conversions, indexing, operators with Python numbers, copying and pickling."""

import copy
import pickle

import numpy as np
import pytest

import morel as ms
from morel import Tensor

RNG = np.random.default_rng(5)


@pytest.mark.parametrize(
    "value,dtype,shape",
    [
        (1.5, "Float32", ()),
        (2, "Int64", ()),
        (True, "Bool", ()),
        (1 + 2j, "Complex64", ()),
        ([1.0, 2.0], "Float32", (2,)),
        ([[1, 2]], "Int64", (1, 2)),
        ((True, False), "Bool", (2,)),
        (np.float64(2), "Float64", ()),
        (np.arange(3, dtype=np.int16), "Int16", (3,)),
        ([], "Float32", (0,)),
    ],
)
def test_construction(value, dtype, shape):
    made = Tensor(value)
    assert (str(made.dtype), made.shape) == (dtype, shape)


def test_construction_with_dtype_and_errors():
    assert Tensor([1, 2], ms.float16).dtype == ms.float16
    assert Tensor(np.arange(3), ms.bfloat16).astype(ms.float32).asnumpy().tolist() == [0, 1, 2]
    assert Tensor(Tensor([1.0]), ms.int32).dtype == ms.int32
    for bad in (object(), "text", {1: 2}):
        with pytest.raises(TypeError, match="input_data"):
            Tensor(bad)
    with pytest.raises(ValueError, match="sequence"):
        Tensor([[1, 2], [3]])
    with pytest.raises(ValueError, match="must be given"):
        Tensor()


@pytest.mark.parametrize(
    "dtype",
    [
        "bool_",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ],
)
def test_round_trip_through_numpy(dtype):
    array = (RNG.standard_normal((3, 4)) * 5).astype(dtype.rstrip("_"))
    tensor = Tensor(array)
    assert tensor.asnumpy().dtype == array.dtype
    np.testing.assert_array_equal(tensor.asnumpy(), array)


def test_asnumpy_and_from_numpy_share_memory():
    array = np.zeros((2, 3), np.float32)
    shared = Tensor.from_numpy(array)
    array[0, 1] = 7
    assert shared[0, 1].item() == 7
    view = shared.asnumpy()
    shared.add_(1)
    assert view[1, 2] == 1
    copied = Tensor(array)
    array[0, 0] = 9
    assert copied[0, 0].item() == 1


KEYS = [
    0,
    -1,
    slice(1, 3),
    slice(None, None, 2),
    (1, 2),
    (slice(None), 1),
    (Ellipsis, 0),
    (None, slice(1, 2)),
    (slice(0, 2), None, 1),
    ([0, 2],),
    ([0, 2], slice(None), [1, 3]),
    (slice(None), [0, 1], [2, 0]),
    (np.array([[0, 1], [2, 0]]),),
    (1, [0, 2]),
    Ellipsis,
    (slice(5, 2),),
    (True,),
    (False,),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_get_and_set_item_as_numpy(key):
    array = RNG.standard_normal((3, 4, 5)).astype(np.float32)
    np.testing.assert_array_equal(Tensor(array)[key].asnumpy(), array[key])
    tensor, changed = Tensor(array), array.copy()
    changed[key] = 2.5
    tensor[key] = 2.5
    np.testing.assert_array_equal(tensor.asnumpy(), changed)


def test_boolean_masks():
    array = RNG.standard_normal((3, 4)).astype(np.float32)
    tensor, mask = Tensor(array), array > 0
    np.testing.assert_array_equal(tensor[Tensor(mask)].asnumpy(), array[mask])
    np.testing.assert_array_equal(tensor[Tensor(mask[:, 0])].asnumpy(), array[mask[:, 0]])
    tensor[tensor > 0] = 0.0
    np.testing.assert_array_equal(tensor.asnumpy(), np.where(mask, 0, array))


@pytest.mark.parametrize(
    "key,match",
    [
        (3, "out of bounds for axis 0 with size 3"),
        ((0, 0, 0, 0), "too many indices"),
        ((Ellipsis, Ellipsis), "single ellipsis|one ellipsis"),
        (Tensor([0.5]), "must be integers or booleans"),
        (Tensor([7]), "7"),
    ],
)
def test_bad_indices(key, match):
    with pytest.raises(IndexError, match=match):
        Tensor(np.zeros((3, 4, 5), np.float32))[key]


def test_operators_with_python_numbers():
    x = Tensor(np.array([1, -2, 3], np.float32))
    for actual, expected in [
        (x + 1, [2, -1, 4]),
        (1 - x, [0, 3, -2]),
        (2 * x, [2, -4, 6]),
        (6 / x, [6, -3, 2]),
        (x**2, [1, 4, 9]),
        (-x, [-1, 2, -3]),
        (abs(x), [1, 2, 3]),
        (x // 2, [0, -1, 1]),
        (x % 2, [1, 0, 1]),
        (x > 0, [True, False, True]),
        (x == 3, [False, False, True]),
    ]:
        assert actual.asnumpy().tolist() == expected
    i = Tensor([5, 6])
    assert str((i + 1).dtype) == "Int64" and str((i + 1.5).dtype) == "Float32" and str((i / 2).dtype) == "Float32"
    assert (i & 4).asnumpy().tolist() == [4, 4] and (~Tensor([True, False])).asnumpy().tolist() == [False, True]
    with pytest.raises(TypeError):
        x + "a"
    assert (x == None) is not True  # noqa: E711


def test_python_protocols():
    x = Tensor([3.5])
    assert float(x) == 3.5 and int(x) == 3 and bool(x) and len(Tensor([1, 2])) == 2 and [1, 2, 3][Tensor(1)] == 2
    assert [int(v) for v in Tensor([4, 5])] == [4, 5] and 4 in Tensor([4, 5])
    for bad in (lambda: bool(Tensor([1, 2])), lambda: float(Tensor([1, 2]))):
        with pytest.raises(ValueError):
            bad()
    with pytest.raises(TypeError):
        len(Tensor(1))
    assert hash(x) == hash(x) and x in {x: 1}


def test_copies_and_pickles():
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    deep = copy.deepcopy(x)
    deep.add_(1)
    assert x[0, 0].item() == 0
    again = pickle.loads(pickle.dumps(x.astype(ms.bfloat16)))
    assert again.dtype == ms.bfloat16 and again.shape == (2, 3)
    assert pickle.loads(pickle.dumps(ms.float32)) == ms.float32


def test_views_share_storage():
    x = Tensor(np.zeros((2, 3), np.float32))
    for view in (x[0], x.reshape(3, 2), x.transpose(), x[:, ::2], x.view(6), x.swapaxes(0, 1)):
        before = x._version
        view.add_(1)
        assert x._version == before + 1
    assert x.asnumpy().sum() == 3 + 6 + 6 + 4 + 6 + 6


def test_random_bits():
    ms.set_seed(1)
    assert 20 < Tensor(np.zeros(64, bool)).random_().sum() < 44


def test_writing_where_nothing_lies():
    x = Tensor(np.zeros((3, 0), np.float32))
    x[:] = 1
    x[x > 0] = 1
    x[1:] += 2
    x.copy_(x + 1)
    assert x.fill_(1).zero_().uniform_().shape == (3, 0)


def test_printing():
    assert str(Tensor([1.0, 2.0])) == "[1. 2.]"
    assert repr(Tensor([1, 2])).startswith("Tensor(shape=[2], dtype=Int64, value=")
    assert str(ms.float32) == "Float32"
