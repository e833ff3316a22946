"""The reference where PyTorch is absent: plain numpy, whose training cases give the loss of the first step only."""

import models
import numpy as np

from frameworks.base import Adapter


def cross_entropy(logits, labels):
    shifted = logits - logits.max(-1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return -log_probabilities[np.arange(len(labels)), labels].mean(), np.exp(log_probabilities)


def softmax(x):
    exponentials = np.exp(x - x.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def layer_norm(x, weight, bias):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + models.NORM_EPSILON) * weight + bias


def attention_weights(q, k, causal=False):
    scores = q @ k.swapaxes(-1, -2) * np.float32(q.shape[-1] ** -0.5)
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    return softmax(scores)


def conv(x, weight, stride=1, padding=0):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    return np.tensordot(windows, weight, ((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


def max_pool(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))


def relu(x):
    return np.maximum(x, 0)


def per_channel(vector):
    return vector[:, None, None]


def lenet(weights, x):
    for name in ("conv1", "conv2"):
        x = max_pool(relu(conv(x, weights[f"{name}.weight"]) + per_channel(weights[f"{name}.bias"])))
    x = x.reshape(len(x), -1)
    for name in ("fc1", "fc2", "fc3"):
        x = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        x = x if name == "fc3" else relu(x)
    return x


def resnet18(weights, x):
    def conv_norm(conv_name, norm_name, x, stride=1, padding=1):
        x = conv(x, weights[f"{conv_name}.weight"], stride, padding)
        mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
        scale = weights[f"{norm_name}.weight"] / np.sqrt(variance + models.NORM_EPSILON)
        return (x - per_channel(mean)) * per_channel(scale) + per_channel(weights[f"{norm_name}.bias"])

    x = relu(conv_norm("stem.conv", "stem.norm", x))
    for i, (inputs, outputs, stride) in enumerate(models.RESNET_BLOCKS):
        block = f"blocks.{i}"
        y = relu(conv_norm(f"{block}.conv1", f"{block}.norm1", x, stride))
        y = conv_norm(f"{block}.conv2", f"{block}.norm2", y)
        if inputs != outputs:
            x = conv_norm(f"{block}.shortcut.conv", f"{block}.shortcut.norm", x, stride, padding=0)
        x = relu(x + y)
    return x.mean((2, 3)) @ weights["head.weight"].T + weights["head.bias"]


def gpt(weights, tokens):
    def linear(name, x):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(name, x):
        return layer_norm(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    batch, sequence = tokens.shape
    x = weights["token.weight"][tokens] + weights["position"]
    for i in range(models.LAYERS):
        block = f"blocks.{i}"
        qkv = linear(f"{block}.qkv", norm(f"{block}.norm1", x))
        q, k, v = qkv.reshape(batch, sequence, 3, models.HEADS, models.HEAD_SIZE).transpose(2, 0, 3, 1, 4)
        y = (attention_weights(q, k, causal=True) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = x + linear(f"{block}.proj", y)
        y = linear(f"{block}.up", norm(f"{block}.norm2", x))
        gelu = 0.5 * y * (1 + np.tanh(np.float32((2 / np.pi) ** 0.5) * (y + np.float32(0.044715) * y**3)))
        x = x + linear(f"{block}.down", gelu)
    return (norm("norm", x) @ weights["head.weight"].T).reshape(-1, models.VOCABULARY)


def first_loss(model, inputs):
    loss, _ = cross_entropy(model(inputs.weights, inputs.data["x"]), inputs.data["y"])
    return lambda: float(loss)


class Numpy(Adapter):
    def arrays(self, result):
        return list(result) if isinstance(result, tuple) else [result]

    def add_small(self, inputs):
        return lambda: inputs.data["a"] + inputs.data["b"]

    def chain10_small(self, inputs):
        def chain():
            a, b = inputs.data.values()
            for _ in range(5):
                a = (a + b) * b
            return a

        return chain

    def mlp_fwdbwd(self, inputs):
        def call():
            x, y = inputs.data.values()
            w1, b1, w2, b2 = inputs.weights.values()
            hidden = relu(x @ w1 + b1)
            loss, logit_gradient = cross_entropy(hidden @ w2 + b2, y)
            logit_gradient[np.arange(len(y)), y] -= 1
            logit_gradient /= len(y)
            hidden_gradient = (logit_gradient @ w2.T) * (hidden > 0)
            products = x.T @ hidden_gradient, hidden_gradient.sum(0), hidden.T @ logit_gradient, logit_gradient.sum(0)
            return loss, *products

        return call

    def elemwise16M(self, inputs):  # noqa: N802 - the case's name
        def gated():
            x = inputs.data["a"] * inputs.data["b"] + inputs.data["c"]
            return x / (1 + np.exp(x * np.float32(-1.702)))

        return gated

    def softmax(self, inputs):
        return lambda: softmax(inputs.data["x"])

    def layernorm(self, inputs):
        return lambda: layer_norm(*inputs.data.values())

    def sdpa_fwd(self, inputs):
        q, k, v = inputs.data.values()
        return lambda: attention_weights(q, k) @ v

    def sdpa_fwdbwd(self, inputs):
        def call():
            q, k, v = inputs.data.values()
            probabilities = attention_weights(q, k)
            upstream = np.ones_like(q)
            probability_gradient = upstream @ v.swapaxes(-1, -2)
            row_sums = (probability_gradient * probabilities).sum(-1, keepdims=True)
            scores = probabilities * (probability_gradient - row_sums) * np.float32(q.shape[-1] ** -0.5)
            return scores @ k, scores.swapaxes(-1, -2) @ q, probabilities.swapaxes(-1, -2) @ upstream

        return call

    def conv3x3_fwd(self, inputs):
        return lambda: conv(inputs.data["x"], inputs.data["weight"], padding=1)

    def train_lenet(self, inputs):
        return first_loss(lenet, inputs)

    def train_resnet18(self, inputs):
        return first_loss(resnet18, inputs)

    def train_gpt(self, inputs):
        return first_loss(gpt, inputs)
