"""The data pipeline: sources, operations, orders, samplers, transforms, workers, errors."""

import gzip
import os
import signal
import struct
import subprocess
import sys

import morel.dataset as ds
import numpy as np
import pytest
from morel.dataset import transforms, vision

import morel as ms


@pytest.fixture(autouse=True)
def unseeded():
    """Each test starts without a seed and with its own settings."""
    state, kept = np.random.get_state(), dict(ds.config._values)
    ds.config._values["seed"] = ds.config.UNSEEDED
    yield
    np.random.set_state(state)
    ds.config._values.clear()
    ds.config._values.update(kept)


def numbers(dataset, epochs=None):
    """The first column, as numbers; of several passes if `epochs` is given."""
    iterator = dataset.create_tuple_iterator(num_epochs=epochs or 1, output_numpy=True)
    passes = [[row[0].tolist() for row in iterator] for _ in range(epochs or 1)]
    return passes if epochs else passes[0]


def rows(dataset):
    return [{name: value.tolist() for name, value in row.items()} for row in dataset.create_dict_iterator(1, True)]


def counting(count, **arguments):
    return ds.NumpySlicesDataset(np.arange(count), ["x"], **{"shuffle": False, **arguments})


def pairs(count=10):
    return ds.NumpySlicesDataset({"a": np.arange(count), "b": np.arange(count) * 0.5}, shuffle=False)


# --- orders: equal to MindSpore 2.8.0's for the same seed (the lists come from it) ---


def test_shuffled_orders_are_mindspores():
    ds.config.set_seed(3)
    assert numbers(counting(20, shuffle=True), 3) == [
        [3, 10, 8, 17, 11, 6, 19, 7, 18, 4, 1, 2, 9, 0, 13, 16, 14, 5, 15, 12],
        [3, 7, 16, 8, 0, 17, 10, 12, 18, 13, 19, 15, 1, 2, 9, 5, 6, 11, 14, 4],
        [15, 14, 17, 16, 19, 11, 12, 7, 6, 3, 0, 5, 8, 2, 4, 1, 13, 10, 18, 9],
    ]
    assert numbers(counting(20).shuffle(5), 2) == [
        [2, 4, 0, 7, 1, 3, 10, 9, 11, 5, 6, 14, 15, 16, 12, 8, 19, 13, 18, 17],
        [4, 3, 5, 0, 8, 7, 1, 11, 12, 2, 13, 10, 14, 15, 17, 16, 9, 18, 6, 19],
    ]
    assert numbers(counting(10, shuffle=True).shuffle(5)) == [8, 2, 3, 7, 1, 5, 4, 9, 6, 0]
    assert numbers(counting(10).shuffle(5).repeat(2)) == [2, 4, 0, 7, 1, 3, 9, 6, 5, 8, 0, 4, 5, 6, 3, 1, 9, 2, 8, 7]


def test_sampler_orders_are_mindspores():
    ds.config.set_seed(3)

    def order(sampler, epochs=2):
        return numbers(counting(10, shuffle=None, sampler=sampler), epochs)

    assert order(ds.RandomSampler(False, 6)) == [[3, 1, 8, 5, 2, 6], [3, 7, 2, 8, 6, 5]]
    assert order(ds.RandomSampler(True, 8)) == [[5, 0, 7, 8, 2, 1, 5, 5], [9, 9, 5, 1, 9, 8, 7, 6]]
    assert order(ds.SubsetRandomSampler([3, 1, 7, 2, 9, 5])) == [[2, 1, 3, 5, 7, 9], [5, 1, 2, 9, 3, 7]]
    assert order(ds.DistributedSampler(2, 1, shuffle=True)) == [[7, 2, 3, 9, 6], [8, 4, 1, 7, 0]]
    weights = [0.1, 0.2, 0.3, 0.05, 0.05, 0.05, 0.05, 0.1, 0.05, 0.05]
    assert order(ds.WeightedRandomSampler(weights, 10)) == [[0, 7, 1, 2, 2, 0, 0, 1, 0, 4]] * 2
    parts = counting(10).split([0.5, 0.5])
    assert [numbers(part) for part in parts] == [[3, 1, 8, 5, 2], [6, 9, 7, 0, 4]]


def test_long_shuffle_is_a_permutation():
    ds.config.set_seed(1)
    for count in (0, 1, 2, 3, 1000, 66000):  # above 65535 another way of drawing applies
        order = ds.RandomSampler().orders(count)
        assert sorted(next(order).tolist()) == list(range(count))


def test_seeds():
    ms.set_seed(11)
    assert ds.config.get_seed() == 11
    first = numbers(counting(50, shuffle=True))
    assert first == numbers(counting(50, shuffle=True)) != sorted(first)
    ms.set_seed(12)
    assert numbers(counting(50, shuffle=True)) != first
    ds.config._values["seed"] = ds.config.UNSEEDED
    assert numbers(counting(50, shuffle=True)) != numbers(counting(50, shuffle=True))
    for wrong, error in ((-1, ValueError), (2**32, ValueError), ("a", TypeError)):
        with pytest.raises(error):
            ds.config.set_seed(wrong)


def test_samplers_without_chance():
    def order(sampler=None, **arguments):
        return numbers(counting(10, shuffle=None, sampler=sampler, **arguments))

    assert order(ds.SequentialSampler(2, 5)) == [2, 3, 4, 5, 6]
    assert order(ds.SubsetSampler([3, 1, 7])) == [3, 1, 7]
    assert order(ds.DistributedSampler(3, 1, shuffle=False)) == [1, 4, 7, 0]
    assert [order(ds.DistributedSampler(3, i, shuffle=False, offset=1)) for i in range(3)] == [
        [2, 5, 8],
        [0, 3, 6, 9],
        [1, 4, 7],
    ]
    assert order([3, 4]) == [3, 4]
    chained = ds.SequentialSampler(0, 5)
    chained.add_child(ds.SubsetSampler([9, 8, 7, 6, 5, 4, 3]))
    assert order(chained) == [9, 8, 7, 6, 5]

    class Mine(ds.Sampler):
        def __iter__(self):
            yield from (5, 6, 7)

    assert order(Mine()) == [5, 6, 7]
    assert sorted(order(ds.WeightedRandomSampler([0, 0, 1, 1, 0, 0, 0, 0, 0, 1], 3, False))) == [2, 3, 9]
    assert [numbers(counting(10, num_shards=4, shard_id=i)) for i in range(4)] == [
        [0, 4, 8],
        [1, 5, 9],
        [2, 6, 0],
        [3, 7, 1],
    ]
    for wrong in (ds.SubsetSampler([30]), ds.SubsetSampler([-1]), ds.SequentialSampler(20)):
        with pytest.raises(RuntimeError):
            order(wrong)


@pytest.mark.parametrize(
    "arguments, error",
    [
        (dict(sampler=ds.SequentialSampler(), shuffle=True), ValueError),
        (dict(num_shards=2), ValueError),
        (dict(sampler=ds.SequentialSampler(), num_samples=3), ValueError),
        (dict(num_shards=2, shard_id=2), ValueError),
        (dict(num_samples=-1), ValueError),
        (dict(num_samples="a"), TypeError),
        (dict(shuffle="a"), TypeError),
        (dict(num_parallel_workers=0), ValueError),
        (dict(column_names=["a", "b"]), ValueError),
        (dict(sampler=3), TypeError),
    ],
)
def test_wrong_arguments_of_sources(arguments, error):
    with pytest.raises(error):
        ds.NumpySlicesDataset([1, 2], **arguments)


# --- sources ---


def test_numpy_slices():
    assert rows(ds.NumpySlicesDataset([1, 2], shuffle=False)) == [{"column_0": 1}, {"column_0": 2}]
    assert rows(ds.NumpySlicesDataset(([1, 2], ["a", "b"]), ["x", "y"], shuffle=False))[1] == {"x": 2, "y": "b"}
    data = ds.NumpySlicesDataset({"a": [[1, 2], [3, 4]], "b": np.array([3, 4], np.float32)}, shuffle=False)
    assert data.output_shapes() == [[2], []] and [t.name for t in data.output_types()] == ["int64", "float32"]
    assert [len(v["column_0"]) for v in rows(ds.NumpySlicesDataset([[1, 2], [3]], shuffle=False))] == [2, 1]
    for wrong, error in (([], ValueError), (3, TypeError), (([1, 2], [3]), ValueError)):
        with pytest.raises(error):
            ds.NumpySlicesDataset(wrong)


def test_rows_do_not_share_memory_with_the_source():
    array = np.zeros((4, 3), np.float32)
    for data in (
        ds.NumpySlicesDataset(array, shuffle=False),
        ds.NumpySlicesDataset(array, shuffle=False).batch(2),
        ds.GeneratorDataset(list(array), ["x"], shuffle=False),
        ds.GeneratorDataset(list(array), ["x"]).batch(2),
    ):
        for row in data:
            row[0].fill_(1)
    numbers(ds.NumpySlicesDataset(array, shuffle=False).map(lambda x: np.add(x, 1, out=x)))
    assert not array.any()


class Accessible:
    def __getitem__(self, index):
        return np.array([index]), index

    def __len__(self):
        return 10


def generator():
    for i in range(3):
        yield i, float(i), [i, i + 1], f"a{i}", ms.Tensor([1.0]), True


def test_generator_forms():
    row = next(iter(ds.GeneratorDataset(generator, list("abcdef")).create_dict_iterator(1, True)))
    assert [str(value.dtype) for value in row.values()] == ["int64", "float64", "int64", "<U2", "float32", "bool"]
    assert numbers(ds.GeneratorDataset(lambda: iter([1, 2]), "x").repeat(2)) == [1, 2, 1, 2]
    data = ds.GeneratorDataset(Accessible(), ["a", "b"], shuffle=False)
    assert len(data) == 10 and rows(data)[3] == {"a": [3], "b": 3}
    assert rows(
        ds.GeneratorDataset(Accessible(), ["a", "b"], num_shards=3, shard_id=2, shuffle=False, num_samples=2)
    ) == [{"a": [2], "b": 2}, {"a": [5], "b": 5}]
    assert numbers(ds.GeneratorDataset([4, 5], "x", shuffle=False)) == [4, 5]
    assert ds.GeneratorDataset(generator, list("abcdef")).get_dataset_size() == 3
    for workers in (1, 3):
        for processes in (False, True):
            data = ds.GeneratorDataset(
                Accessible(), ["a", "b"], shuffle=False, num_parallel_workers=workers, python_multiprocessing=processes
            )
            assert [value[0] for value in numbers(data)] == list(range(10))
    batches = ds.GeneratorDataset(Accessible(), ["a", "b"], batch_sampler=[[1, 2], [7]])
    assert [row["b"] for row in rows(batches)] == [[1, 2], [7]]


def test_generator_errors():
    def failing():
        yield (np.array(1),)
        raise ValueError("boom")

    def two():
        yield np.array(1), np.array(2)

    for source, names, error, text in [
        (3, ["a"], TypeError, "random accessible"),
        (failing, ["a"], RuntimeError, "boom"),
        (two, ["a"], RuntimeError, "number of returned NumPy array is:2"),
        (lambda: iter([None]), ["a"], RuntimeError, "None"),
        (two, None, ValueError, "Neither columns_names"),
    ]:
        with pytest.raises(error, match=text):
            numbers(ds.GeneratorDataset(source, names))
    with pytest.raises(RuntimeError, match="should be same with specified column_types"):
        numbers(ds.GeneratorDataset(lambda: iter([np.array(1)]), ["a"], column_types=[ms.float32]))
    with pytest.raises(ValueError, match="sampler is not supported"):
        ds.GeneratorDataset(two, ["a", "b"], sampler=ds.SequentialSampler())


def test_errors_keep_their_cause():
    def failing(x):
        raise ZeroDivisionError("here")

    with pytest.raises(RuntimeError, match="ZeroDivisionError: here") as caught:
        numbers(counting(2).map(failing))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


# --- operations ---


def test_map_columns():
    def first(dataset):
        return rows(dataset)[1]

    assert first(pairs().map(lambda x: x + 1)) == {"a": 2, "b": 0.5}
    assert first(pairs().map(lambda x: (x, x + 1), "b", ["c", "d"])) == {"c": 0.5, "d": 1.5, "a": 1}
    assert list(first(pairs().map(lambda x: x, "b", ["c"]))) == ["a", "c"]
    assert first(pairs().map(lambda x: x, "b", ["a"])) == {"a": 0.5}
    assert first(pairs().map([lambda x, y: (x, y), lambda x, y: x + y], ["a", "b"], ["c"])) == {"c": 1.5}
    assert first(pairs().map(lambda x, y: (x, y), ["b", "a"], ["d", "c"])) == {"c": 1, "d": 0.5}
    for arguments, error in [
        ((lambda x: x, "z"), RuntimeError),
        ((lambda x: x, "a", ["c", "d"]), RuntimeError),
        (("x",), ValueError),
        (([],), ValueError),
        ((lambda x: x, 3), TypeError),
    ]:
        with pytest.raises(error):
            numbers(pairs().map(*arguments))
    with pytest.raises(TypeError):
        pairs().map(lambda x: x, column_order=["a"])


def test_batch():
    assert [row["a"] for row in rows(pairs().batch(4))] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(rows(pairs().batch(4, drop_remainder=True))) == 2
    assert (
        pairs().batch(4).get_dataset_size(),
        pairs().batch(4, True).get_dataset_size(),
        pairs().batch(4).get_batch_size(),
        pairs().repeat(3).get_dataset_size(),
        pairs().repeat(3).get_repeat_count(),
    ) == (3, 2, 4, 30, 3)
    assert [len(row["a"]) for row in rows(pairs().batch(lambda info: info.get_batch_num() + 1))] == [1, 2, 3, 4]
    shifted = pairs().batch(4, per_batch_map=lambda a, b, info: ([x + info.get_batch_num() for x in a], b))
    assert rows(shifted)[1]["a"] == [5, 6, 7, 8]
    split = pairs().batch(
        4, per_batch_map=lambda a, info: (a, [x + 2 for x in a]), input_columns=["a"], output_columns=["p", "q"]
    )
    assert list(rows(split)[0]) == ["p", "q", "b"] and rows(split)[0]["q"] == [2, 3, 4, 5]
    ragged = ds.GeneratorDataset([np.ones(2), np.ones(3)], ["a"], shuffle=False)
    with pytest.raises(RuntimeError, match="different shapes in column 'a'"):
        numbers(ragged.batch(2))
    assert numbers(ragged.padded_batch(2, pad_info={"a": ([4], -1)})) == [[[1, 1, -1, -1], [1, 1, 1, -1]]]
    assert numbers(ragged.padded_batch(2)) == [[[1, 1, 0], [1, 1, 1]]]
    for wrong, error in ((0, ValueError), ("a", TypeError), (True, TypeError)):
        with pytest.raises(error):
            pairs().batch(wrong)


def test_rows_that_move():
    assert numbers(counting(10).take(3)) == [0, 1, 2] and numbers(counting(10).skip(8)) == [8, 9]
    assert numbers(counting(3) + counting(2)) == [0, 1, 2, 0, 1]
    assert (counting(10).take(20).get_dataset_size(), counting(10).skip(20).get_dataset_size()) == (10, 0)
    assert rows(pairs().project(["b", "a"]).take(1)) == [{"b": 0.0, "a": 0}]
    assert rows(pairs().rename(["a"], ["q"]).take(1)) == [{"q": 0, "b": 0.0}]
    assert rows(ds.zip((pairs().project("a"), pairs().project("b").rename("b", "z"))).take(2).skip(1)) == [
        {"a": 1, "z": 0.5}
    ]
    assert numbers(counting(10).filter(lambda x: x > 7, ["x"])) == [8, 9]
    assert counting(10).filter(lambda x: x > 7).get_dataset_size() == 2
    assert [part.get_dataset_size() for part in counting(10).split([3, 7], randomize=False)] == [3, 7]
    assert list(itertools_islice(counting(2).repeat(), 5)) == [0, 1, 0, 1, 0]
    assert numbers(counting(4).apply(lambda data: data.take(1))) == [0]
    with pytest.raises(RuntimeError, match="duplicate column"):
        numbers(ds.zip((pairs(), pairs())))
    for make, error in [
        (lambda d: d.take(0), ValueError),
        (lambda d: d.shuffle(1), ValueError),
        (lambda d: d.repeat(0), ValueError),
        (lambda d: d.skip(-1), ValueError),
        (lambda d: d.split([3, 8]), RuntimeError),
        (lambda d: d.split([0.5, 0.6]), ValueError),
        (lambda d: numbers(d.rename("z", "y")), RuntimeError),
        (lambda d: numbers(d.filter(lambda x: "yes")), RuntimeError),
        (lambda d: ds.zip((d,)), ValueError),
    ]:
        with pytest.raises(error):
            make(counting(10))


def itertools_islice(dataset, count):
    import itertools

    return [
        row[0].tolist()
        for row in itertools.islice(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True), count)
    ]


def test_iterators():
    iterator = counting(3).create_tuple_iterator()
    assert len(list(iterator)) == len(list(iterator)) == 3
    iterator = counting(3).create_dict_iterator(num_epochs=1)
    row = next(iter(iterator))
    assert isinstance(row["x"], ms.Tensor) and row["x"].dtype == ms.int64
    list(iterator)
    with pytest.raises(RuntimeError, match="beyond the specified number of epochs"):
        next(iterator)
    assert [len(row) for row in pairs().create_tuple_iterator(columns=["b"], num_epochs=1)] == [1] * 10
    assert isinstance(next(iter(ds.NumpySlicesDataset(["a"])))[0], np.ndarray)  # text stays NumPy
    for wrong, error in ((0, ValueError), ("a", TypeError)):
        with pytest.raises(error):
            counting(3).create_dict_iterator(num_epochs=wrong)
    resumed = counting(5)
    resumed.set_init_step(7)
    assert numbers(resumed) == [2, 3, 4]


# --- transforms ---

IMAGE = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)


def test_values():
    assert vision.Rescale(1 / 255, 0.0)(IMAGE).dtype == np.float32
    assert np.array_equal(vision.Normalize([1.0, 2, 3], [2.0, 2, 2])(IMAGE)[0, 0], [-0.5, -0.5, -0.5])
    assert vision.HWC2CHW()(IMAGE).shape == (3, 2, 3) and vision.HWC2CHW()(IMAGE[..., 0]).shape == (2, 3)
    assert vision.ToTensor()(IMAGE).shape == (3, 2, 3) and vision.ToTensor()(IMAGE[..., 0]).shape == (1, 2, 3)
    assert vision.ToTensor()(IMAGE)[1, 0, 0] == np.float32(0.003921568859368563)
    assert transforms.TypeCast(ms.float16)(IMAGE).dtype == np.float16
    assert transforms.OneHot(4)(np.array([2, 1])).tolist() == [[0, 0, 1, 0], [0, 1, 0, 0]]
    assert np.allclose(transforms.OneHot(4, 0.1)(np.array(2)), [0.025, 0.025, 0.925, 0.025])
    assert transforms.Mask(transforms.Relational.EQ, 3)(np.array([1, 2, 3])).tolist() == [False, False, True]
    assert transforms.Concatenate(0, np.array([7]), np.array([8]))(np.array([1])).tolist() == [7, 1, 8]
    assert transforms.PadEnd([5], -1)(np.array([1, 2, 3])).tolist() == [1, 2, 3, -1, -1]
    assert transforms.Slice(slice(0, 1))(np.array([1, 2, 3])).tolist() == [1]
    composed = transforms.Compose([vision.Rescale(1 / 255, 0), lambda x: x + 1, vision.HWC2CHW()])
    assert composed(IMAGE).shape == (3, 2, 3)
    for make, error in [
        (lambda: vision.Normalize([1.0], [2.0, 3]), ValueError),
        (lambda: vision.Normalize([1.0], [0.0]), ValueError),
        (lambda: vision.Normalize([1.0, 2], [2.0, 3])(IMAGE), RuntimeError),
        (lambda: vision.Resize(0), ValueError),
        (lambda: vision.Resize("a"), TypeError),
        (lambda: vision.HWC2CHW()([[1]]), TypeError),
        (lambda: vision.RandomCrop(5)(IMAGE), RuntimeError),
        (lambda: vision.RandomHorizontalFlip(1.1), ValueError),
        (lambda: transforms.OneHot(4)(np.array(7)), RuntimeError),
        (lambda: transforms.Compose([]), ValueError),
        (lambda: vision.RandomRotation(3), NotImplementedError),
    ]:
        with pytest.raises(error):
            make()


def test_resize_has_mindspores_values():
    image = np.arange(16, dtype=np.uint8).reshape(4, 4, 1) * 10
    expected = {
        "NEAREST": [[0, 20], [40, 60], [80, 100]],
        "BILINEAR": [[11, 32], [65, 85], [118, 138]],
        "BICUBIC": [[9, 31], [64, 86], [119, 141]],
        "AREA": [[15, 35], [65, 85], [115, 135]],
    }
    for name, values in expected.items():
        assert vision.Resize((3, 2), vision.Inter[name])(image)[..., 0].tolist() == values, name
    assert vision.Resize((6, 6))(image)[0, :, 0].tolist() == [0, 5, 11, 18, 25, 30]
    assert vision.Resize(3)(np.zeros((4, 8, 3), np.uint8)).shape == (3, 6, 3)


def test_geometry():
    image = np.arange(16, dtype=np.uint8).reshape(4, 4, 1)
    assert (
        vision.Crop((1, 1), 2)(image)[..., 0].tolist()
        == [[5, 6], [9, 10]]
        == vision.CenterCrop(2)(image)[..., 0].tolist()
    )
    assert vision.CenterCrop(6)(image).shape == (6, 6, 1) and vision.Pad((1, 2, 3, 4))(image).shape == (10, 8, 1)
    assert vision.Pad(1, padding_mode=vision.Border.REFLECT)(image)[0, 0, 0] == 5
    assert vision.HorizontalFlip()(image)[0, :, 0].tolist() == [3, 2, 1, 0]
    assert vision.RandomVerticalFlip(1.0)(image)[0, 0, 0] == 12
    assert vision.RandomCrop(4, 2)(image).shape == (4, 4, 1) and vision.RandomResizedCrop(3)(image).shape == (3, 3, 1)
    assert (vision.CutOut(2)(np.ones((5, 5, 3), np.uint8)) == 0).sum() == 12
    mixed, labels = vision.MixUpBatch()(np.ones((4, 2, 2, 3), np.float32), np.eye(4)[[0, 1, 2, 3]])
    assert mixed.shape == (4, 2, 2, 3) and np.allclose(labels.sum(1), 1)
    colours = vision.RandomColorAdjust(0.2, 0.2, 0.2, 0.1)(np.full((2, 2, 3), 100, np.uint8))
    assert colours.dtype == np.uint8


@pytest.mark.parametrize(
    ("operation", "channels"),
    [
        *(
            (operation, channels)
            for operation in (
                vision.Rescale(1 / 255.0, -0.1),
                vision.Normalize([0.5], [0.25]),
                vision.HWC2CHW(),
                vision.ToTensor(),
                transforms.TypeCast(ms.int32),
                vision.Invert(),
            )
            for channels in (1, 3)
        ),
        (vision.Normalize([1.0, 2.0, 3.0], [2.0, 3.0, 4.0]), 3),
    ],
)
def test_a_whole_batch_gives_the_values_of_its_rows(operation, channels):
    images = np.random.RandomState(0).randint(0, 256, (6, 5, 4, channels)).astype(np.uint8)
    for column in (images, images.astype(np.float32)):
        together = operation._apply_batch(column)
        one_by_one = np.stack([operation(image) for image in column])
        assert together.dtype == one_by_one.dtype and together.tobytes() == np.ascontiguousarray(one_by_one).tobytes()


def test_fast_and_slow_ways_agree():
    images = np.random.RandomState(0).randint(0, 256, (50, 6, 6, 1)).astype(np.uint8)

    def batches(extra):
        ds.config.set_seed(5)
        data = ds.NumpySlicesDataset((images, np.arange(50)), ["image", "label"], shuffle=True)
        operations = [vision.Rescale(1 / 255.0, 0.0), vision.Normalize([0.1307], [0.3081]), vision.HWC2CHW()]
        data = (
            data.map(operations + extra, "image")
            .map(transforms.TypeCast(ms.int32), "label")
            .shuffle(10)
            .repeat(2)
            .batch(8)
        )
        return [
            (row[0].tobytes(), row[1].tolist()) for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)
        ]

    assert batches([]) == batches([lambda x: x])  # a user's function forces row by row


def test_random_transforms_do_not_depend_on_workers():
    images = np.random.RandomState(0).randint(0, 256, (40, 8, 8, 3)).astype(np.uint8)

    def result(workers, processes=False):
        ms.set_seed(7)
        data = ds.NumpySlicesDataset(images, ["image"], shuffle=True)
        operations = [vision.RandomCrop(8, 2), vision.RandomHorizontalFlip(), vision.RandomColorAdjust(0.3, 0.3, 0.3)]
        data = data.map(operations, "image", num_parallel_workers=workers, python_multiprocessing=processes)
        iterator = data.create_tuple_iterator(num_epochs=2, output_numpy=True)
        return [[row[0].tobytes() for row in iterator] for _ in range(2)]

    one = result(1)
    assert one[0] != one[1] and one == result(4) == result(2, True)


def test_a_dead_worker_process_is_an_error(tmp_path):
    def dies(x):
        if x == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    with pytest.raises(RuntimeError, match="worker process .* ended unexpectedly"):
        numbers(counting(10).map(dies, num_parallel_workers=2, python_multiprocessing=True))
    assert numbers(counting(3)) == [0, 1, 2]


# --- folders ---


def write_mnist(folder, count=20, compress=False, usage="t10k"):
    images = np.arange(count * 784, dtype=np.int64).astype(np.uint8)
    for name, head, data in (
        ("images-idx3", struct.pack(">iiii", 2051, count, 28, 28), images),
        ("labels-idx1", struct.pack(">ii", 2049, count), np.arange(count, dtype=np.uint8) % 10),
    ):
        opener = gzip.open if compress else open
        with opener(os.path.join(folder, f"{usage}-{name}-ubyte" + (".gz" if compress else "")), "wb") as handle:
            handle.write(head + data.tobytes())


@pytest.mark.parametrize("compress", [False, True])
def test_mnist(tmp_path, compress):
    write_mnist(tmp_path, 20, compress)
    data = ds.MnistDataset(str(tmp_path), usage="test", shuffle=False)
    row = next(iter(data.create_dict_iterator(1, True)))
    assert row["image"].shape == (28, 28, 1) and row["image"].dtype == np.uint8 and row["label"].dtype == np.uint32
    assert data.output_shapes() == [[28, 28, 1], []] and data.get_col_names() == ["image", "label"]
    write_mnist(tmp_path, 30, compress, "train")
    sizes = [ds.MnistDataset(str(tmp_path), usage=usage).get_dataset_size() for usage in ("train", "test", "all", None)]
    assert sizes == [30, 20, 50, 50]
    picked = ds.MnistDataset(str(tmp_path), usage="test", sampler=ds.PKSampler(1))
    assert [int(row[1]) for row in picked.create_tuple_iterator(num_epochs=1, output_numpy=True)] == list(range(10))
    ds.config.set_seed(3)
    order = [
        int(row[1])
        for row in ds.MnistDataset(str(tmp_path), "test").create_tuple_iterator(num_epochs=1, output_numpy=True)
    ]
    assert order == [3, 0, 8, 7, 1, 6, 9, 7, 8, 4, 1, 2, 9, 0, 3, 6, 4, 5, 5, 2]  # as MindSpore 2.8.0


def test_mnist_errors(tmp_path):
    for folder, usage, error in [
        ("/none", None, ValueError),
        (3, None, TypeError),
        (str(tmp_path), "foo", ValueError),
        (str(tmp_path), 3, TypeError),
        (str(tmp_path), None, RuntimeError),
    ]:
        with pytest.raises(error):
            ds.MnistDataset(folder, usage).get_dataset_size()
    with pytest.raises(NotImplementedError):
        ds.MnistDataset(str(tmp_path), cache=object())
    write_mnist(tmp_path)
    path = tmp_path / "t10k-images-idx3-ubyte"
    content = path.read_bytes()
    for wrong, text in [
        (content[:-1], f"{path}: byte 16: "),
        (content + b"x", "goes on"),
        (b"hello", "not an IDX file"),
        (b"", "byte 0"),
    ]:
        path.write_bytes(wrong)
        with pytest.raises(RuntimeError, match=text):
            ds.MnistDataset(str(tmp_path)).get_dataset_size()


def test_cifar(tmp_path):
    record = np.arange(3 * 3073, dtype=np.int64).astype(np.uint8)
    record[0::3073] = [1, 2, 3]
    (tmp_path / "data_batch_1.bin").write_bytes(record.tobytes())
    data = ds.Cifar10Dataset(str(tmp_path), usage="train", shuffle=False)
    row = rows(data.project("label"))
    assert [r["label"] for r in row] == [1, 2, 3] and data.output_shapes()[0] == [32, 32, 3]
    (tmp_path / "data_batch_1.bin").write_bytes(record.tobytes()[:-1])
    with pytest.raises(RuntimeError, match="truncated at byte 9218"):
        ds.Cifar10Dataset(str(tmp_path)).get_dataset_size()


FASHION = "/usr/share/datasets/fashion-mnist"


@pytest.mark.skipif(not os.path.isdir(FASHION), reason="Debian's dataset-fashion-mnist is not installed")
def test_fashion_mnist():
    data = ds.FashionMnistDataset(FASHION, usage="test")
    data = data.map([vision.Rescale(1 / 255.0, 0.0), vision.HWC2CHW()], "image").batch(100)
    image, label = next(iter(data))
    assert image.shape == (100, 1, 28, 28) and image.dtype == ms.float32 and label.shape == (100,)
    assert data.get_dataset_size() == 100


# --- the rest ---


def test_what_is_to_come_says_so():
    for make in (
        lambda: ds.ImageFolderDataset("x"),
        lambda: counting(2).bucket_batch_by_length("x", [1], [1, 1]),
        lambda: ds.TFRecordDataset("x"),
    ):
        with pytest.raises(NotImplementedError, match="not supported yet"):
            make()
    with pytest.raises(AttributeError):
        ds.NoSuchDataset


def test_interrupted_iteration_ends_cleanly():
    """Ctrl-C in the middle of a pipeline with worker threads ends the process at once."""
    code = (
        "import os, signal, threading, time, morel.dataset as ds\n"
        "def slow(x):\n    time.sleep(0.01)\n    return x\n"
        "data = ds.NumpySlicesDataset(list(range(10000))).map(slow, num_parallel_workers=4)\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    [row for row in data]\nexcept KeyboardInterrupt:\n    print('stopped')\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert out.stdout == "stopped\n" and out.returncode == 0
