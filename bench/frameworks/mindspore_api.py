"""Morel and MindSpore: one front for both, since they share their Python API."""

import importlib

import models
import numpy as np
from cases import COLUMNS, Inputs

from frameworks.base import Adapter, Call

GRAPH_MODES = ("jit",)
# The names that these parameters have in cells, and in the shared initial weights.
WEIGHT_NAMES = {"gamma": "weight", "beta": "bias", "embedding_table": "weight"}


class MindSporeApi(Adapter):
    module: str
    # MindSpore 2.8 has no fused attention on CPU: it is composed there of products and a softmax.
    fused_attention: bool

    def __init__(self, mode, threads):
        super().__init__(mode, threads)
        self.ms = ms = importlib.import_module(self.module)
        self.nn, self.ops = ms.nn, ms.ops
        self.functional = ms.mint.nn.functional
        ms.set_context(mode=ms.PYNATIVE_MODE)
        self.limit_threads()
        self.synchronize = getattr(getattr(ms, "runtime", None), "synchronize", None)

    def limit_threads(self):
        self.ms.set_context(runtime_num_threads=self.threads)

    def graph(self, function):
        return self.ms.jit(function) if self.mode in GRAPH_MODES else function

    def tensors(self, arrays: dict[str, np.ndarray]) -> dict:
        return {name: self.ms.Tensor(array) for name, array in arrays.items()}

    def sync(self, result):
        if self.synchronize:
            self.synchronize()
        elif not isinstance(result, float):
            self.arrays(result)

    def arrays(self, result):
        if isinstance(result, (tuple, list)):
            return [array for item in result for array in self.arrays(item)]
        return [result.asnumpy()]

    def call(self, function, inputs: Inputs) -> Call:
        data = tuple(self.tensors(inputs.data).values())
        compiled = self.graph(function)
        return lambda: compiled(*data)

    def attention(self, q, k, v, mask=None):
        """`mask` is added to the scores; the fused operator takes the causal mask by name instead."""
        if self.fused_attention:
            return self.ops.scaled_dot_product_attention(q, k, v, is_causal=mask is not None)
        scores = self.ops.matmul(q, k.swapaxes(-1, -2)) * (1.0 / models.HEAD_SIZE**0.5)
        if mask is not None:
            scores = scores + mask
        return self.ops.matmul(self.ops.softmax(scores, -1), v)

    def add_small(self, inputs):
        def add(a, b):
            return a + b

        if self.mode in GRAPH_MODES:
            return self.call(add, inputs)
        a, b = self.tensors(inputs.data).values()
        return lambda: a + b

    def chain10_small(self, inputs):
        def chain(a, b):
            for _ in range(5):
                a = (a + b) * b
            return a

        return self.call(chain, inputs)

    def mlp_fwdbwd(self, inputs):
        ops = self.ops
        weights = self.tensors(inputs.weights)
        w1, b1, w2, b2 = parameters = [self.ms.Parameter(w, name=name) for name, w in weights.items()]

        def loss_of(x, y):
            return ops.cross_entropy(ops.matmul(ops.relu(ops.matmul(x, w1) + b1), w2) + b2, y)

        value_and_grad = self.ms.value_and_grad(loss_of, None, parameters)

        def call(x, y):
            return value_and_grad(x, y)

        return self.call(call, inputs)

    def elemwise16M(self, inputs):  # noqa: N802 - the case's name
        ops = self.ops

        def gated(a, b, c):
            x = a * b + c
            return x * ops.sigmoid(x * 1.702)

        return self.call(gated, inputs)

    def softmax(self, inputs):
        ops = self.ops

        def softmax(x, weight, bias):
            return ops.softmax(x, -1)

        return self.call(softmax, inputs)

    def layernorm(self, inputs):
        functional = self.functional

        def layer_norm(x, weight, bias):
            return functional.layer_norm(x, (COLUMNS,), weight, bias)

        return self.call(layer_norm, inputs)

    def sdpa_fwd(self, inputs):
        attention = self.attention

        def forward(q, k, v):
            return attention(q, k, v)

        return self.call(forward, inputs)

    def sdpa_fwdbwd(self, inputs):
        attention = self.attention

        def total(q, k, v):
            return attention(q, k, v).sum()

        gradient = self.ms.grad(total, (0, 1, 2))

        def backward(q, k, v):
            return gradient(q, k, v)

        return self.call(backward, inputs)

    def conv3x3_fwd(self, inputs):
        ops = self.ops

        def conv(x, weight):
            return ops.conv2d(x, weight, pad_mode="pad", padding=1)

        return self.call(conv, inputs)

    def train(self, cell, inputs: Inputs) -> Call:
        ms, ops = self.ms, self.ops
        x, y = self.tensors(inputs.data).values()
        weights = dict(inputs.weights)
        for parameter in cell.trainable_params():
            *path, leaf = parameter.name.split(".")
            parameter.set_data(ms.Tensor(weights.pop(".".join((*path, WEIGHT_NAMES.get(leaf, leaf))))))
        assert not weights, f"weights left over: {list(weights)}"
        cell.set_train()
        optimizer = self.nn.Adam(cell.trainable_params(), models.LEARNING_RATE)

        def loss_of(x, y):
            return ops.cross_entropy(cell(x), y)

        value_and_grad = ms.value_and_grad(loss_of, None, optimizer.parameters)

        def step(x, y):
            loss, gradients = value_and_grad(x, y)
            optimizer(gradients)
            return loss

        compiled = self.graph(step)
        return lambda: float(compiled(x, y).asnumpy())

    def train_lenet(self, inputs):
        return self.train(lenet(self), inputs)

    def train_resnet18(self, inputs):
        return self.train(resnet18(self), inputs)

    def train_gpt(self, inputs):
        return self.train(gpt(self), inputs)


class Morel(MindSporeApi):
    module = "morel"
    fused_attention = True


class MindSpore(MindSporeApi):
    module = "mindspore"
    fused_attention = False

    def limit_threads(self):
        # Its own pinning of threads would tie processes that run side by side to the same core.
        self.ms.runtime.set_cpu_affinity(False)
        super().limit_threads()

    def layernorm(self, inputs):
        # The functional form is not on CPU.
        primitive = self.ops.LayerNorm(begin_norm_axis=-1, begin_params_axis=-1, epsilon=models.NORM_EPSILON)

        def layer_norm(x, weight, bias):
            return primitive(x, weight, bias)[0]

        return self.call(layer_norm, inputs)


def lenet(api: MindSporeApi):
    nn = api.nn

    class Lenet(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True)
            self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
            self.fc1 = nn.Dense(256, 120)
            self.fc2 = nn.Dense(120, 84)
            self.fc3 = nn.Dense(84, models.CLASSES)
            self.relu = nn.ReLU()
            self.pool = nn.MaxPool2d(2, 2)
            self.flatten = nn.Flatten()

        def construct(self, x):
            x = self.pool(self.relu(self.conv1(x)))
            x = self.flatten(self.pool(self.relu(self.conv2(x))))
            return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))

    return Lenet()


def resnet18(api: MindSporeApi):
    nn = api.nn

    def conv(inputs, outputs, kernel, stride):
        return nn.Conv2d(inputs, outputs, kernel, stride, pad_mode="pad", padding=kernel // 2, has_bias=False)

    class ConvNorm(nn.Cell):
        def __init__(self, inputs, outputs, kernel, stride):
            super().__init__()
            self.conv = conv(inputs, outputs, kernel, stride)
            self.norm = nn.BatchNorm2d(outputs)

        def construct(self, x):
            return self.norm(self.conv(x))

    class Block(nn.Cell):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = conv(inputs, outputs, 3, stride)
            self.norm1 = nn.BatchNorm2d(outputs)
            self.conv2 = conv(outputs, outputs, 3, 1)
            self.norm2 = nn.BatchNorm2d(outputs)
            self.shortcut = nn.Identity() if inputs == outputs else ConvNorm(inputs, outputs, 1, stride)
            self.relu = nn.ReLU()

        def construct(self, x):
            y = self.relu(self.norm1(self.conv1(x)))
            return self.relu(self.norm2(self.conv2(y)) + self.shortcut(x))

    class Resnet18(nn.Cell):
        def __init__(self):
            super().__init__()
            self.stem = ConvNorm(3, 64, 3, 1)
            self.blocks = nn.SequentialCell([Block(*block) for block in models.RESNET_BLOCKS])
            self.head = nn.Dense(512, models.CLASSES)
            self.relu = nn.ReLU()

        def construct(self, x):
            return self.head(self.blocks(self.relu(self.stem(x))).mean((2, 3)))

    return Resnet18()


def gpt(api: MindSporeApi):
    ms, nn, ops, attention = api.ms, api.nn, api.ops, api.attention
    width, sequence = models.WIDTH, models.SEQUENCE
    causal_mask = ms.Tensor(np.triu(np.full((sequence, sequence), -1e9, np.float32), 1))

    class DecoderLayer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.norm1 = nn.LayerNorm((width,), epsilon=models.NORM_EPSILON)
            self.qkv = nn.Dense(width, 3 * width)
            self.proj = nn.Dense(width, width)
            self.norm2 = nn.LayerNorm((width,), epsilon=models.NORM_EPSILON)
            self.up = nn.Dense(width, 4 * width)
            self.down = nn.Dense(4 * width, width)
            self.mask = causal_mask

        def construct(self, x):
            heads = self.qkv(self.norm1(x)).reshape(-1, sequence, 3, models.HEADS, models.HEAD_SIZE)
            heads = heads.transpose(2, 0, 3, 1, 4)
            y = attention(heads[0], heads[1], heads[2], self.mask)
            x = x + self.proj(y.transpose(0, 2, 1, 3).reshape(-1, sequence, width))
            return x + self.down(ops.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Gpt(nn.Cell):
        def __init__(self):
            super().__init__()
            self.token = nn.Embedding(models.VOCABULARY, width)
            self.position = ms.Parameter(ms.Tensor(np.zeros((sequence, width), np.float32)), name="position")
            self.blocks = nn.SequentialCell([DecoderLayer() for _ in range(models.LAYERS)])
            self.norm = nn.LayerNorm((width,), epsilon=models.NORM_EPSILON)
            self.head = nn.Dense(width, models.VOCABULARY, has_bias=False)

        def construct(self, tokens):
            x = self.norm(self.blocks(self.token(tokens) + self.position))
            return self.head(x).reshape(-1, models.VOCABULARY)

    return Gpt()
