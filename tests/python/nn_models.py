"""Small models as an ordinary MindSpore script writes them; `build` takes the framework's modules."""

import nn_cases
import numpy as np


def build(name, nn, ops, tensor, parameter):
    """(network, inputs, labels) of the model called `name`."""
    return {"lenet": lenet, "resnet": resnet, "gpt": gpt, "transformer": transformer}[name](nn, ops, tensor, parameter)


NAMES = ("lenet", "resnet", "gpt", "transformer")
STEPS = 6


def lenet(nn, ops, tensor, parameter):
    class LeNet(nn.Cell):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 4, 5, pad_mode="valid", has_bias=True)
            self.conv2 = nn.Conv2d(4, 8, 3)
            self.pool = nn.MaxPool2d(2, 2)
            self.relu = nn.ReLU()
            self.flatten = nn.Flatten()
            self.fc1 = nn.Dense(8 * 3 * 3, 24, activation="relu")
            self.fc2 = nn.Dense(24, 10)

        def construct(self, x):
            x = self.pool(self.relu(self.conv1(x)))
            x = self.pool(self.relu(self.conv2(x)))
            return self.fc2(self.fc1(self.flatten(x)))

    rng = nn_cases.generator("lenet")
    return LeNet(), tensor(rng.random_sample((8, 1, 16, 16)).astype(np.float32)), tensor(labels(rng, 8))


def labels(rng, count):
    return rng.randint(0, 10, count).astype(np.int32)


def resnet(nn, ops, tensor, parameter):
    def conv(inputs, outputs, size, stride):
        return nn.Conv2d(inputs, outputs, size, stride, pad_mode="pad", padding=size // 2)

    class Block(nn.Cell):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1, self.norm1 = conv(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
            self.conv2, self.norm2 = conv(outputs, outputs, 3, 1), nn.BatchNorm2d(outputs)
            self.short = (
                nn.SequentialCell([conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)])
                if inputs != outputs
                else nn.Identity()
            )
            self.relu = nn.ReLU()

        def construct(self, x):
            y = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
            return self.relu(y + self.short(x))

    class ResNet(nn.Cell):
        def __init__(self):
            super().__init__()
            self.stem = nn.SequentialCell([conv(3, 8, 3, 1), nn.BatchNorm2d(8), nn.ReLU()])
            self.layers = nn.SequentialCell([Block(8, 8, 1), Block(8, 16, 2), Block(16, 16, 1)])
            self.head = nn.Dense(16, 10)

        def construct(self, x):
            return self.head(self.layers(self.stem(x)).mean((2, 3)))

    rng = nn_cases.generator("resnet")
    return ResNet(), tensor(rng.standard_normal((6, 3, 8, 8)).astype(np.float32)), tensor(labels(rng, 6))


def gpt(nn, ops, tensor, parameter):
    size, heads, length, batch, words = 16, 2, 8, 3, 10
    mask = tensor(np.triu(np.full((length, length), -1e9, np.float32), 1))

    class Block(nn.Cell):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm((size,)), nn.LayerNorm((size,))
            self.qkv, self.out = nn.Dense(size, 3 * size), nn.Dense(size, size)
            self.up, self.down = nn.Dense(size, 4 * size), nn.Dense(4 * size, size)

        def construct(self, x):
            z = self.qkv(self.norm1(x)).reshape(batch, length, 3, heads, size // heads).transpose(2, 0, 3, 1, 4)
            q, k, v = z[0], z[1], z[2]
            p = ops.softmax(ops.matmul(q, k.swapaxes(-1, -2)) * (size // heads) ** -0.5 + mask, -1)
            x = x + self.out(ops.matmul(p, v).transpose(0, 2, 1, 3).reshape(batch, length, size))
            return x + self.down(ops.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class GPT(nn.Cell):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(words, size)
            self.position = parameter(tensor(np.zeros((length, size), np.float32)), name="position")
            self.blocks = nn.SequentialCell([Block() for _ in range(2)])
            self.norm = nn.LayerNorm((size,))
            self.head = nn.Dense(size, words, has_bias=False)

        def construct(self, ids):
            return self.head(self.norm(self.blocks(self.embedding(ids) + self.position))).reshape(-1, words)

    rng = nn_cases.generator("gpt")
    ids = rng.randint(0, words, (batch, length)).astype(np.int32)
    return GPT(), tensor(ids), tensor(np.roll(ids, -1, 1).reshape(-1))


def transformer(nn, ops, tensor, parameter):
    class Classifier(nn.Cell):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(12, 16)
            self.layers = nn.CellList(
                [
                    nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, norm_first=n)
                    for n in (False, True)
                ]
            )
            self.head = nn.Dense(16, 10)

        def construct(self, ids):
            x = self.embedding(ids)
            for layer in self.layers:
                x = layer(x)
            return self.head(x.mean(1))

    rng = nn_cases.generator("transformer")
    return Classifier(), tensor(rng.randint(0, 12, (5, 7)).astype(np.int32)), tensor(labels(rng, 5))


def train(name, ms, nn, ops, tensor, parameter):
    """(names of the parameters, losses of STEPS steps of Adam, sums of squares of the parameters at the end)."""
    net, inputs, targets = build(name, nn, ops, tensor, parameter)
    rng = nn_cases.generator("start " + name)
    for param in net.trainable_params():
        param.set_data(
            tensor((0.2 * rng.standard_normal(param.shape) + (1 if "gamma" in param.name else 0)).astype(np.float32))
        )
    net.set_train()
    optimizer = nn.Adam(net.trainable_params(), 1e-2, weight_decay=1e-3)
    step = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, optimizer.parameters)
    losses = []
    for _ in range(STEPS):
        loss, gradients = step(inputs, targets)
        optimizer(gradients)
        losses.append(float(loss.asnumpy()))
    norms = [float((param.asnumpy().astype(np.float64) ** 2).sum()) for param in net.get_parameters()]
    return [param.name for param in net.get_parameters()], losses, norms
