"""Names of MindSpore's private modules that scripts import."""

import numpy as np
import pytest
from morel.common.api import _cell_graph_executor, _JitExecutor, _pynative_executor
from morel.nn.grad import Jvp, Vjp
from morel.ops.operations import _grad_ops, _sequence_ops

import morel as ms
from morel import Parameter, Tensor, _checkparam, nn, ops
from morel.ops import auto_generate, vm_impl_registry


def t(*values):
    return Tensor(np.array(values, np.float32))


# Gradient Primitives of (input or output, gradient of the output), against the gradient of the operator.
@pytest.mark.parametrize(
    "name", ["Asinh", "Reciprocal", "Rsqrt", "Sigmoid", "Sqrt", "Tanh", "Abs", "Asin", "Atan", "ACos"]
)
def test_gradients_by_formula(name):
    x, dy = t(0.25, 0.5), t(3, -2)
    operator = getattr(ops, name)()
    given = x if name in ("Abs", "Asin", "Atan", "ACos") else operator(x)
    wanted = ms.grad(lambda value: operator(value) * dy)(x)
    np.testing.assert_allclose(getattr(_grad_ops, name + "Grad")()(given, dy).asnumpy(), wanted.asnumpy(), rtol=1e-5)


@pytest.mark.parametrize("name", ["GeLU", "HSigmoid", "HSwish", "ReLU6", "SiLU", "Softplus"])
def test_gradients_by_pullback(name):
    x, dy = t(0.25, -0.5), t(3, -2)
    wanted = ms.grad(lambda value: getattr(ops, name)()(value) * dy)(x)
    np.testing.assert_allclose(getattr(_grad_ops, name + "Grad")()(dy, x).asnumpy(), wanted.asnumpy(), rtol=1e-5)


def test_gradients_of_layers():
    image, grown = ops.arange(16.0).reshape(1, 1, 4, 4), t(1, 2, 3, 4).reshape(1, 1, 2, 2)
    found = _grad_ops.MaxPoolGrad(2, 2)(image, None, grown).asnumpy()
    assert found[0, 0, 1::2, 1::2].tolist() == [[1, 2], [3, 4]] and found.sum() == 10
    assert _grad_ops.AvgPoolGrad(2, 2)(image, None, grown).asnumpy()[0, 0, 0].tolist() == [0.25, 0.25, 0.5, 0.5]
    assert _grad_ops.BiasAddGrad()(image).asnumpy().tolist() == [120]
    assert _grad_ops.ConcatOffset(2, 1)((t(1, 2).reshape(1, 2), t(1).reshape(1, 1))) == ((0, 0), (0, 2))
    weight = _grad_ops.Conv2DBackpropFilter(1, 2, stride=2)(grown, image, (1, 1, 2, 2))
    assert weight.asnumpy().reshape(-1).tolist() == [68, 78, 108, 118]
    at_x, at_y = _grad_ops.MaximumGrad(grad_y=False)(t(1, 5), t(2, 3), t(7, 7))
    assert at_x.asnumpy().tolist() == [0, 7] and at_y.asnumpy().tolist() == [0, 0]


def test_operators_as_they_are_generated():
    assert auto_generate.SumExt()(t(1, 2)).item() == 3
    assert auto_generate.AddExt()(t(1, 2), t(1, 1), 2).asnumpy().tolist() == [3, 4]
    assert auto_generate.sub_ext(t(1, 2), t(1, 1)).asnumpy().tolist() == [0, 1]
    assert ops.EqualCount()(Tensor([1, 2, 3]), Tensor([1, 4, 3])).asnumpy().tolist() == [2]
    x = t(1, 2)
    auto_generate.InplaceAddExt()(x, t(1, 1), alpha=3)
    assert x.asnumpy().tolist() == [4, 5]


def test_sequences():
    assert _sequence_ops.SequenceAdd()((1,), (2,)) == (1, 2)
    assert _sequence_ops.SequenceAddOffset()((1, 2), (3,)) == (0, 2)
    assert _sequence_ops.SequenceSliceSetItem()((1, 2, 3), (7, 8), 0, 2, 1) == (7, 8, 3)
    assert [x.item() for x in _sequence_ops.SequenceUnstack()(t(1, 2))] == [1, 2]


def test_apply_momentum():
    p, v = Parameter(t(1, 2), name="p"), Parameter(t(1, 1), name="v")
    ops.ApplyMomentum()(p, v, 0.5, t(2, 4), 0.5)
    assert v.asnumpy().tolist() == [2.5, 4.5] and p.asnumpy().tolist() == [-0.25, -0.25]


def test_products_with_jacobians():
    for product in (Jvp, Vjp):
        output, found = product(nn.ReLU())(t(1, -2), t(3, 3))
        assert output.asnumpy().tolist() == [1, 0] and found.asnumpy().tolist() == [3, 0]


def test_a_users_operator_runs_what_the_registry_has():
    class Doubled(ops.PrimitiveWithInfer):
        def __init__(self):
            super().__init__("Doubled")

    with pytest.raises(NotImplementedError, match="has no computation"):
        Doubled()(t(1))

    @vm_impl_registry.vm_impl_registry.register(Doubled)
    def getter(_primitive):
        return lambda x: x * 2

    assert Doubled()(t(1)).asnumpy().tolist() == [2]
    assert vm_impl_registry.get_vm_impl_fn(Doubled) is getter


def test_executors_compile_without_running():
    seen = []

    class Net(nn.Cell):
        def construct(self, x):
            seen.append(1)
            return x + 1

    net = Net()
    assert _cell_graph_executor.compile(net, t(1)) == _cell_graph_executor.compile(net, t(2))
    assert seen == [1]
    executor = _JitExecutor(net.construct, 0)
    assert executor.compile("construct", t(1)) == executor.compile("construct", t(2))
    _pynative_executor.sync()


@pytest.mark.parametrize(
    ("check", "good", "bad", "error"),
    [
        (_checkparam.check_positive_int, 1, 0, ValueError),
        (_checkparam.check_negative_int, -1, 0, ValueError),
        (_checkparam.check_non_positive_int, 0, True, TypeError),
        (_checkparam.check_non_negative_float, 0.0, -1.0, ValueError),
        (_checkparam.check_is_int, 3, 3.0, TypeError),
        (_checkparam.check_bool, True, 1, TypeError),
        (lambda value: _checkparam.check_int_range(value, 0, 2, _checkparam.INC_LEFT), 0, 2, ValueError),
        (lambda value: _checkparam.check_string(value, ["a"], "x"), "a", "b", ValueError),
        (_checkparam.twice, (1, 2), (1, 2, 3), TypeError),
        (_checkparam.check_input_format, "NCHW", "NHWC", ValueError),
    ],
)
def test_argument_checks(check, good, bad, error):
    assert check(good) == good
    with pytest.raises(error):
        check(bad)


def test_types_of_arguments():
    @_checkparam.args_type_check(a=int, b=str)
    def function(a, b=None):
        return a

    assert function(1) == 1 and function(1, b="x") == 1
    with pytest.raises(TypeError, match="'b' must be"):
        function(1, 2)


def test_numbers_of_types():
    from morel._c_expression import typing

    assert all(typing.type_id_to_type(typing.type_to_type_id(kind)) == kind for kind in ms.dtype.all_types)
