"""PyTorch, eager or with torch.compile."""

import models
import numpy as np
import torch
from cases import COLUMNS, Inputs
from torch import nn
from torch.nn import functional as F

from frameworks.base import Adapter, Call


def tensors(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    # PyTorch wants int64 labels; converting them beforehand is part of no timing.
    return {k: torch.from_numpy(a.astype(np.int64) if a.dtype == np.int32 else a) for k, a in arrays.items()}


class Lenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(256, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, models.CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class ConvNorm(nn.Module):
    def __init__(self, inputs, outputs, kernel, stride):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return self.norm(self.conv(x))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity() if inputs == outputs else ConvNorm(inputs, outputs, 1, stride)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class Resnet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = ConvNorm(3, 64, 3, 1)
        self.blocks = nn.Sequential(*(Block(*block) for block in models.RESNET_BLOCKS))
        self.head = nn.Linear(512, models.CLASSES)

    def forward(self, x):
        return self.head(self.blocks(F.relu(self.stem(x))).mean((2, 3)))


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        width = models.WIDTH
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, sequence, width = x.shape
        heads = (batch, sequence, models.HEADS, models.HEAD_SIZE)
        q, k, v = (part.view(heads).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(width, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, sequence, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(models.VOCABULARY, models.WIDTH)
        self.position = nn.Parameter(torch.empty(models.SEQUENCE, models.WIDTH))
        self.blocks = nn.Sequential(*(DecoderLayer() for _ in range(models.LAYERS)))
        self.norm = nn.LayerNorm(models.WIDTH)
        self.head = nn.Linear(models.WIDTH, models.VOCABULARY, bias=False)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.token(tokens) + self.position))).view(-1, models.VOCABULARY)


class Torch(Adapter):
    def __init__(self, mode, threads):
        super().__init__(mode, threads)
        torch.set_num_threads(threads)

    def graph(self, function):
        return torch.compile(function) if self.mode == "compile" else function

    def arrays(self, result):
        return [t.detach().numpy() for t in (result if isinstance(result, tuple) else (result,))]

    def call(self, function, inputs: Inputs) -> Call:
        data = tensors(inputs.data)
        compiled = self.graph(function)
        return lambda: compiled(**data)

    def add_small(self, inputs):
        a, b = tensors(inputs.data).values()
        return (lambda: a + b) if self.mode == "eager" else self.call(lambda a, b: a + b, inputs)

    def chain10_small(self, inputs):
        def chain(a, b):
            for _ in range(5):
                a = (a + b) * b
            return a

        return self.call(chain, inputs)

    def mlp_fwdbwd(self, inputs):
        data = tensors(inputs.data)
        w1, b1, w2, b2 = weights = [w.requires_grad_() for w in tensors(inputs.weights).values()]
        loss_of = self.graph(lambda x, y: F.cross_entropy(torch.relu(x @ w1 + b1) @ w2 + b2, y))

        def call():
            loss = loss_of(**data)
            return loss, *torch.autograd.grad(loss, weights)

        return call

    def elemwise16M(self, inputs):  # noqa: N802 - the case's name
        def gated(a, b, c):
            x = a * b + c
            return x * torch.sigmoid(x * 1.702)

        return self.call(gated, inputs)

    def softmax(self, inputs):
        return self.call(lambda x, weight, bias: F.softmax(x, -1), inputs)

    def layernorm(self, inputs):
        return self.call(lambda x, weight, bias: F.layer_norm(x, (COLUMNS,), weight, bias), inputs)

    def sdpa_fwd(self, inputs):
        return self.call(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), inputs)

    def sdpa_fwdbwd(self, inputs):
        leaves = [t.requires_grad_() for t in tensors(inputs.data).values()]
        attention = self.graph(lambda q, k, v: F.scaled_dot_product_attention(q, k, v))
        return lambda: torch.autograd.grad(attention(*leaves).sum(), leaves)

    def conv3x3_fwd(self, inputs):
        return self.call(lambda x, weight: F.conv2d(x, weight, padding=1), inputs)

    def train(self, model: nn.Module, inputs: Inputs) -> Call:
        x, y = tensors(inputs.data).values()
        # Only the running statistics of the batch norms are not given.
        missing, unexpected = model.load_state_dict(tensors(inputs.weights), strict=False)
        assert not unexpected and not {name for name, _ in model.named_parameters()} & set(missing)
        optimizer = torch.optim.Adam(model.parameters(), models.LEARNING_RATE)
        loss_of = self.graph(lambda x, y: F.cross_entropy(model(x), y))

        def step():
            optimizer.zero_grad()
            loss = loss_of(x, y)
            loss.backward()
            optimizer.step()
            return loss.item()

        return step

    def train_lenet(self, inputs):
        return self.train(Lenet(), inputs)

    def train_resnet18(self, inputs):
        return self.train(Resnet18(), inputs)

    def train_gpt(self, inputs):
        return self.train(Gpt(), inputs)
