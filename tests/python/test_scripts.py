"""What training scripts of older style use: names under their older homes, mapped functions, cells that train."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import morel as ms
from morel import Parameter, Tensor, mint, ops


def t(*values):
    return Tensor(np.array(values, np.float32))


SCRIPT = """
    import numpy as np
    import mindspore.common.dtype as mstype2
    from mindspore import Tensor, context, dtype as mstype, nn
    from mindspore.common.initializer import Normal, initializer
    from mindspore.common.parameter import Parameter, ParameterTuple
    from mindspore.communication.management import get_group_size, get_rank, init
    from mindspore.context import ParallelMode
    from mindspore.ops import composite as C, functional as F, operations as P
    from mindspore.ops.function.nn_func import softmax
    from mindspore.ops.primitive import constexpr
    from mindspore.parallel._utils import _get_device_num, _get_gradients_mean, _get_parallel_mode

    assert mstype is mstype2 and _get_device_num() == 1 and not _get_gradients_mean()
    context.set_context(mode=context.PYNATIVE_MODE, device_target="CPU")

    grad_scale = C.MultitypeFuncGraph("grad_scale")
    clip_grad = C.MultitypeFuncGraph("clip_grad")

    @grad_scale.register("Tensor", "Tensor")
    def tensor_grad_scale(scale, grad):
        return grad * F.cast(P.Reciprocal()(scale), F.dtype(grad))

    @clip_grad.register("Number", "Number", "Tensor")
    def clip(kind, value, grad):
        if kind == 0:
            return C.clip_by_value(grad, -F.scalar_to_tensor(value), F.scalar_to_tensor(value))
        return nn.ClipByNorm()(grad, F.scalar_to_tensor(value))

    @constexpr
    def depth():
        return 3

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(initializer(Normal(0.1), (4, depth())), name="weight")
            self.matmul, self.softmax, self.one_hot = P.MatMul(), P.Softmax(), P.OneHot()
            self.on, self.off = Tensor(1.0, mstype.float32), Tensor(0.0, mstype.float32)

        def construct(self, x, label):
            p = self.softmax(self.matmul(x, self.weight))
            hot = self.one_hot(label, depth(), self.on, self.off)
            return -P.ReduceMean()(P.ReduceSum()(P.Log()(p) * hot, -1))

    class TrainOneStep(nn.Cell):
        def __init__(self, network, optimizer, scale):
            super().__init__(auto_prefix=False)
            self.network, self.optimizer = network, optimizer
            self.weights = ParameterTuple(network.trainable_params())
            self.grad = C.GradOperation(get_by_list=True, sens_param=True)
            self.hyper_map, self.scale = C.HyperMap(), Tensor(scale, mstype.float32)
            self.reducer_flag = _get_parallel_mode() in (ParallelMode.DATA_PARALLEL, ParallelMode.HYBRID_PARALLEL)

        def construct(self, x, label):
            loss = self.network(x, label)
            sens = P.Fill()(P.DType()(loss), P.Shape()(loss), 1.0) * self.scale
            grads = self.grad(self.network, self.weights)(x, label, sens)
            grads = self.hyper_map(F.partial(grad_scale, self.scale), grads)
            grads = self.hyper_map(F.partial(clip_grad, 0, 5.0), grads)
            return F.depend(loss, self.optimizer(grads))

    random = np.random.RandomState(0)
    x = random.randn(60, 4).astype(np.float32)
    label = Tensor((x @ random.randn(4, 3)).argmax(1).astype(np.int32))
    net = Net()
    step = TrainOneStep(net, nn.Momentum(net.trainable_params(), 0.5, 0.9), 1024.0)
    losses = [float(step(Tensor(x), label).asnumpy()) for _ in range(60)]
    assert losses[-1] < 0.25 < 0.7 < losses[0], losses
    try:
        init()
    except RuntimeError as error:
        print("trained", error)
    """


def test_a_script_of_older_style_trains():
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    code = "import morel.alias\n" + textwrap.dedent(SCRIPT)
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("trained For 'init', the environment does not say how many processes there are")


def test_mapped_functions():
    add = ops.MultitypeFuncGraph("add")

    @add.register("Number", "Number")
    def _(x, y):
        return x + y

    @add.register("Tensor", "Tensor")
    def _(x, y):
        return x + y + 100

    @add.register("Number", "Tensor")
    def _(x, y):
        return x * y

    x, y = t(1, 2), t(3, 4)

    def listed(value):
        return tuple(map(listed, value)) if isinstance(value, tuple) else getattr(value, "tolist", lambda: value)()

    assert add(1, 2) == add(True, 2) == 3 and listed(add(x, y)) == [104, 106] and listed(add(2, y)) == [6, 8]
    assert listed(ops.HyperMap(add)((x, (y, 1)), [y, (x, 2)])) == ([104, 106], ([104, 106], 3))
    assert listed(ops.HyperMap()(ops.partial(add, 2), (x, y))) == ([2, 4], [6, 8])
    assert ops.HyperMap(add)(1, 2) == 3 and ops.Partial()(add, 1)(2) == 3
    assert listed(ops.Map(lambda pair, z: z * pair[0])(((2, 0), (3, 0)), (x, y))) == ([2, 4], [9, 12])
    order = []
    ops.HyperMap(order.append, reverse=True)((1, 2, 3))
    assert order == [3, 2, 1]
    assert listed(ops.HyperMap()(lambda a: a * 2, {"a": x})) == ([2, 4],)
    with pytest.raises(ValueError, match=r"For 'add', no implementation is registered for \(Tensor, int\)"):
        add(x, 2)
    with pytest.raises(ValueError, match="the same length"):
        ops.HyperMap(add)((x, y), (y,))
    with pytest.raises(TypeError, match="is not one of Tensor"):
        add.register("Matrix")
    with pytest.raises(TypeError, match="must be callable"):
        ops.HyperMap(3)
    with pytest.raises(TypeError, match="the first argument must be a function"):
        ops.Map()((x,))
    kinds = ops.MultitypeFuncGraph("kinds")
    for kind in ("Bool", "Int", "Float", "String", "None", "Tuple", "List", "Dict", "Function"):
        kinds.register(kind)(lambda value, kind=kind: kind)
    values = (True, 1, 1.5, "a", None, (), [], {}, len)
    assert [kinds(value) for value in values] == "Bool Int Float String None Tuple List Dict Function".split()


def test_mapped_functions_in_graph_mode():
    double = ops.MultitypeFuncGraph("double")

    @double.register("Tensor")
    def _(x):
        return x * 2

    @ms.jit
    def function(x, y):
        return ops.HyperMap(double)((x, y))[1]

    assert function(t(1), t(3)).item() == 6


def test_homes_of_names():
    assert ms.dtype is ms.common.dtype and ops.functional.relu is ops.operations.relu is ops.relu
    assert ops.composite.GradOperation is ops.GradOperation and ops.function.math_func.matmul is ops.matmul
    with pytest.raises(AttributeError):
        ops.functional.no_such_name
    with pytest.raises(NotImplementedError):
        ms.Profiler()


def test_operators_of_users():
    class Scale(ops.PrimitiveWithInfer):
        @ops.prim_attr_register
        def __init__(self, factor, axis=1):
            self.more = factor + axis

    scale = Scale(3)
    assert scale.name == "Scale" and scale.attrs == {"factor": 3, "axis": 1} and scale.more == 4
    with pytest.raises(NotImplementedError, match="'Scale' has no computation"):
        scale(t(1))


def test_small_functions_of_older_scripts():
    x = t(3, 1, 2)
    assert ops.dtype(x) == ms.float32 and ops.identity(x) is x and ops.depend(x, 3) is x
    assert ops.scalar_to_tensor(2).dtype == ms.float32 and ops.scalar_cast(2.7, ms.int32) == 2
    assert ops.reduce_max(x).item() == 3 and ops.reduce_sum(x, 0).item() == 6 and ops.pows(x, 2)[0].item() == 9
    for wrong in (lambda: ops.scalar_to_tensor(x), lambda: ops.scalar_cast("2", ms.int32)):
        with pytest.raises(TypeError, match="must be a number"):
            wrong()


def test_gather_with_several_shared_axes():
    x, indices = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5), np.array([[[3, 0], [1, 1], [2, 0]]] * 2)
    expected = np.stack([[x[a, b][indices[a, b]] for b in range(3)] for a in range(2)])
    assert (ops.gather(Tensor(x), Tensor(indices), 2, 2).asnumpy() == expected).all()
    assert (Tensor(x).gather(Tensor(indices), 2, 2).asnumpy() == expected).all()
    expected = np.stack([[x[a, b][:, indices[a, b]] for b in range(3)] for a in range(2)])
    assert (ops.gather(Tensor(x), Tensor(indices), -1, 2).asnumpy() == expected).all()
    with pytest.raises(ValueError, match="the first 2 axes must agree"):
        ops.gather(Tensor(x), Tensor(indices[:, :2]), 2, 2)


def test_embedding_with_limited_rows_and_shared_gradients():
    weight = Parameter(Tensor(np.array([[3, 4], [0.3, 0.4], [6, 8], [30, 40]], np.float32)), name="weight")
    positions = Tensor([0, 1, 0, 2])
    found = ops.embedding(positions, weight, None, 1.0)
    np.testing.assert_allclose(found.asnumpy(), [[0.6, 0.8], [0.3, 0.4], [0.6, 0.8], [0.6, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(weight.asnumpy()[3], [30, 40])  # not used, not changed
    gradient = ms.grad(lambda: ops.embedding(positions, weight, 2, scale_grad_by_freq=True).sum(), None, weight)()
    assert gradient.asnumpy().tolist() == [[1, 1], [1, 1], [0, 0], [0, 0]]
    plain = ms.grad(lambda: ops.embedding(positions, weight).sum(), None, weight)()
    assert plain.asnumpy()[0].tolist() == [2, 2]
    found = mint.nn.functional.embedding(Tensor([3]), weight, max_norm=5.0, norm_type=1.0)
    np.testing.assert_allclose(np.abs(found.asnumpy()).sum(), 5, rtol=1e-6)
    with pytest.raises(TypeError, match="'max_norm' must be float"):
        ops.embedding(positions, weight, max_norm="1")


def test_convolution_with_circular_padding():
    layer = mint.nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular")
    x = np.random.default_rng(0).normal(size=(1, 2, 4, 5)).astype(np.float32)
    padded = Tensor(np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], "wrap"))
    expected = ops.conv2d(padded, layer.weight, layer.bias)
    np.testing.assert_allclose(layer(Tensor(x)).asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)
