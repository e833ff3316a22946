"""Values that are no tensors in compiled functions: sequences as operands, keyword arguments, dynamic lengths, functions."""

import collections

import numpy as np
import pytest
from morel.common import dtype as mstype
from test_graph_control import check, same, tensor

import morel as ms
from morel import Tensor, nn, ops

# --- sequences as operands ---


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + (1, 2, 3),
        lambda x: [1, 2, 3] - x,
        lambda x: (1.5, 2, 3) * x,
        lambda x: x / [1, 2, 4],
        lambda x: x + [[1], [2]],
        lambda x: x + (x[0], x[1]),
        lambda x: sum([x, x], [1, 2, 3]),
        lambda x: x + x.shape[-1:],
    ],
)
def test_sequences_of_numbers_and_tensors_are_operands(function):
    x = tensor([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    np.testing.assert_allclose(function(x).asnumpy(), function(x.asnumpy()))
    same(ms.jit(function)(x), function(x))


def test_gradients_flow_through_sequences():
    def function(x, y):
        return (x * (y, 2.0)).sum()

    x, y = tensor(3.0, 4.0), tensor(5.0)
    for found in (ms.grad(function, (0, 1))(x, y), ms.jit(lambda x, y: ms.grad(function, (0, 1))(x, y))(x, y)):
        same(found[0], tensor(5.0, 2.0))
        assert found[1].item() == 3


def test_sequences_in_place():
    x = tensor(1.0, 2.0)
    alias = x
    x += (1, 2)
    same(alias, tensor(2.0, 4.0))

    @ms.jit
    def appended(x):
        items = [1, 2]
        items += x
        return items

    same(appended(x), tensor(3.0, 6.0))


def test_sequences_are_not_compared():
    assert (tensor(1.0) == (1,)) is False
    with pytest.raises(TypeError):
        assert tensor(1.0) < [1]
    with pytest.raises(TypeError):
        assert tensor(1.0) + ("a",)


def test_sum_of_what_is_no_sequence():
    with pytest.raises(TypeError, match="not iterable"):
        ms.jit(lambda: sum(1))()


# --- keyword arguments of gradients ---


def test_gradients_at_keyword_arguments():
    class Product(nn.Cell):
        def construct(self, x, *, a, b):
            return x * a * b

    class Gradients(nn.Cell):
        def construct(self, *args, **kwargs):
            return ops.GradOperation(get_all=True)(Product())(*args, **kwargs)

    x, a, b = tensor(2.0), tensor(3.0), tensor(5.0)
    compiled = ms.jit(lambda x, a, b: ms.grad(Product(), (0, 2))(x, a=a, b=b))
    same(compiled(x, a, b), (tensor(15.0), tensor(6.0)))
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        same(Gradients()(x, a=a, b=b), (tensor(15.0), tensor(10.0), tensor(6.0)))
        same(Gradients()(x, b=5, a=a), (tensor(15.0), tensor(10.0)))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    with pytest.raises(IndexError, match="argument 3"):
        ms.jit(lambda x, a, b: ms.grad(Product(), 3)(x, a=a, b=b))(x, a, b)


# --- calls ---


def test_functions_of_a_multitype_graph_are_compiled():
    choose = ops.MultitypeFuncGraph("choose")

    @choose.register("Tensor", "Number")
    def _(x, factor):
        return x * factor if x.sum() > 0 else -x

    def function(x, y):
        return ops.HyperMap(choose)((x, y), (2, 3))

    check(function, tensor(1.0, 2.0), tensor(-1.0, -2.0))


def nested(x, depth):
    return x if depth == 0 else nested(x + 1, depth - 1)


def test_the_limit_of_nested_calls():
    x = tensor(0.0)
    same(ms.jit(lambda x: nested(x, 900))(x), tensor(900.0))
    with pytest.raises(RuntimeError, match="nested more than 1000 deep"):
        ms.jit(lambda x: nested(x, 1100))(x)
    ms.set_recursion_limit(3000)
    try:
        same(ms.jit(lambda x: nested(x, 2900))(x), tensor(2900.0))
        ms.set_recursion_limit(20)
        with pytest.raises(RuntimeError, match="nested more than 20 deep"):
            ms.jit(lambda x: nested(x, 30))(x)
    finally:
        ms.set_recursion_limit()
    with pytest.raises(ValueError, match="greater than 0"):
        ms.set_recursion_limit(0)
    with pytest.raises(TypeError, match="recursion_limit"):
        ms.set_recursion_limit("many")


# --- sequences of dynamic length ---


def test_sequences_of_dynamic_length():
    @ms.jit
    def function(x):
        items = ms.mutable([1, 2], True)
        more = [0] + items + [3]
        known = ops.is_sequence_shape_unknown(more), ops.is_sequence_shape_unknown([1])
        return more, known, ops.is_sequence_value_unknown([1]), ops.is_sequence_value_unknown([x])

    assert function(tensor(1.0)) == ([0, 1, 2, 3], (True, False), False, True)
    assert ms.mutable((1, 2), True) + (3,) == (1, 2, 3)


@pytest.mark.parametrize(
    "kind, make",
    [
        (TypeError, lambda: ms.mutable(3, True)),
        (TypeError, lambda: ms.mutable([1], [1])),
        (TypeError, lambda: ms.mutable([1, np.zeros(2)])),
        (ValueError, lambda: ms.mutable([1, 2.5], True)),
        (ValueError, lambda: ms.mutable([(1, 2), (1,)], True)),
        (RuntimeError, lambda: ms.mutable(ms.mutable([1, 2], True))),
        (TypeError, lambda: ms.mutable([1], True) + [Tensor(1)]),
        (TypeError, lambda: [(1, 2)] + ms.mutable([(1, 2, 3)], True)),
    ],
)
def test_what_mutable_refuses(kind, make):
    for call in (make, ms.jit(make)):
        with pytest.raises(kind):
            call()


def test_mutable_refuses_what_contains_itself():
    items = [1]
    items.append({"items": items})
    with pytest.raises(TypeError, match="self-reference"):
        ms.mutable(items)
    twice = [1]
    assert ms.mutable([twice, twice]) == [[1], [1]]


@pytest.mark.parametrize(
    "call",
    [enumerate, lambda items: zip(items, [1, 2]), lambda items: map(abs, items)],
    ids=["enumerate", "zip", "map"],
)
def test_functions_that_need_a_length(call):
    with pytest.raises(RuntimeError, match="dynamic length"):
        ms.jit(lambda: call(ms.mutable([1, 2], True)))()


# --- strings ---


def test_strings_with_tensors_have_their_values_where_a_function_gives_them():
    @ms.jit
    def function(x):
        y = x * 2
        name = "y"
        return (
            "{} is {}".format(name, y),  # noqa: UP032
            f"{y} {1:>3} {y}",
            f"{[x, y][1]} {x.shape} {{}}",
            f"{name}: {f'<{y}>'}",
            "{} {!r}".format(1, "a"),  # noqa: UP032
        )

    for values in ([1.0, 2.0], [3.0, 4.0]):
        x = tensor(*values)
        y = x * 2
        assert function(x) == (f"y is {y}", f"{y}   1 {y}", f"{y} (2,) {{}}", f"y: <{y}>", "1 'a'")
    assert function.__compiled__.compiled == 1


def test_a_string_chosen_by_a_tensor():
    @ms.jit
    def function(x):
        found = f"sum {x.sum()}" if x.sum() > 0 else f"sum {-x.sum()}"
        return found

    assert function(tensor(1.0, 2.0)) == function(tensor(-1.0, -2.0)) == "sum 3.0"


def test_strings_are_put_together():
    def function(x):
        text = "x" + f" {x}" + "!"
        return text, ", ".join([text, str(x), "end"]), str(text), "-".join("ab"), str(3), ""

    x = tensor(1.0, 2.0)
    assert ms.jit(function)(x) == function(x)
    with pytest.raises(TypeError, match="expected str"):
        ms.jit(lambda x: ", ".join([f"{x}", 1]))(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda text: text.upper(),
        lambda text: len(text),
        lambda text: text[0],
        lambda text: text == "a",
        lambda text: "a" in text,
        lambda text: text * 2,
        lambda text: 1 if text else 2,
        lambda text: list(text),
    ],
)
def test_what_depends_on_the_characters_of_a_tensor_is_refused(function):
    with pytest.raises(NotImplementedError, match="has its characters when the graph runs"):
        ms.jit(lambda x: function(f"{x}"))(tensor(1.0))


def test_formats_of_tensors_cannot_be_chosen():
    with_format = lambda x: "{:.2f}".format(x), lambda x: "{!r}".format(x)  # noqa: UP032
    for function in (lambda x: f"{x:.2f}", *with_format):
        with pytest.raises(NotImplementedError, match="how a tensor is written"):
            ms.jit(function)(tensor(1.0))


def test_print_as_a_primitive(capfd):
    show = ops.Print()

    def function(x):
        show("values", x, 3)
        return x

    compiled, x = ms.jit(function), tensor(1.0, 2.0)
    function(x)
    wanted = capfd.readouterr().out
    for _ in range(2):
        compiled(x)
        assert capfd.readouterr().out == wanted


# --- Python's library, indices, choices ---


def test_named_tuples_are_made():
    def function(x):
        pair = collections.namedtuple("pair", ["first", "second"])
        made = pair(x * 2, second=1)
        return made.first + made.second, made

    total, made = ms.jit(function)(tensor(1.0, 2.0))
    same(total, tensor(3.0, 5.0))
    same(made.first, tensor(2.0, 4.0))
    assert made.second == 1 and made._fields == ("first", "second")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[[True, False, True]],
        lambda x: x[np.array([[True, False], [False, True], [True, True]])],
        lambda x: x[[False, False, False]],
        lambda x: x[[0, 2], [True, True]],
        lambda x: x[:, [False, True]],
    ],
)
def test_masks_that_are_lists(function):
    x = tensor([1.0, 2.0], [3.0, 4.0], [5.0, 6.0])
    np.testing.assert_array_equal(function(x).asnumpy(), function(x.asnumpy()))
    check(function, x)


def test_masks_that_are_lists_must_fit():
    with pytest.raises(IndexError, match="does not fit axis 0 with size 3"):
        tensor(1.0, 2.0, 3.0)[[True, False]]  # noqa: B018

    def assigned(x):
        x[[True, False, True]] = 0
        return x * 1

    same(ms.jit(assigned)(tensor(1.0, 2.0, 3.0)), tensor(0.0, 2.0, 0.0))


def test_switch():
    def function(x, y):
        first = ops.switch(x.sum() > 0, x, y)
        return first, ops.switch(x.sum() > 0, ops.sin, ops.cos)(x), ops.switch(True, 1, 2)

    x, y = tensor(1.0, 2.0), tensor(-3.0, 4.0)
    for args in ((x, y), (-x, y)):
        same(ms.jit(function)(*args), function(*args))


# --- questions ---


def test_types_and_constants():
    @ms.jit
    def function(x):
        kind = ops.typeof(x)
        return (
            isinstance(kind, mstype.TensorType),
            kind.element_type() == ms.float32,
            mstype.issubclass_(kind, mstype.tensor_type),
            [ops.isconstant(value) for value in (x, 1, (x,), (1, "a"), {"x": x})],
        )

    assert function(tensor(1.0)) == (True, True, True, [False, True, False, True, False])
    assert ops.typeof("a") is mstype.string and ops.typeof([1]) is mstype.list_
    assert ops.typeof(1) == ms.int64 and ops.typeof(None) is mstype.type_none
    assert ops.typeof(tensor(1.0)) == mstype.TensorType(ms.float32) != mstype.tensor_type
    assert not ms.float32 == None  # noqa: E711
