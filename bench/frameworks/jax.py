"""JAX with jit."""

import jax
import jax.numpy as jnp
import models
import numpy as np
from cases import Inputs
from jax import lax

from frameworks.base import Adapter, Call

POOL = (1, 1, 2, 2)
STATISTICS_MOMENTUM = 0.1
# What Adam updates for every weight.
PARTS = ("weights", "mean", "square")


def conv(x, weight, stride=1, padding=0):
    layout = ("NCHW", "OIHW", "NCHW")
    return lax.conv_general_dilated(x, weight, (stride, stride), ((padding, padding),) * 2, dimension_numbers=layout)


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, POOL, POOL, "VALID")


def per_channel(vector):
    return vector[:, None, None]


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def layer_norm(x, weight, bias):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + models.NORM_EPSILON) * weight + bias


def attention(q, k, v, causal=False):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * (q.shape[-1] ** -0.5)
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e30)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)


def linear(weights, name, x):
    return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


def norm(weights, name, x):
    return layer_norm(x, weights[f"{name}.weight"], weights[f"{name}.bias"])


def batch_norm(weights, name, x, statistics):
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    statistics[f"{name}.mean"], statistics[f"{name}.variance"] = mean, variance
    scale = weights[f"{name}.weight"] * lax.rsqrt(variance + models.NORM_EPSILON)
    return (x - per_channel(mean)) * per_channel(scale) + per_channel(weights[f"{name}.bias"])


def lenet(weights, x, statistics):
    for name in ("conv1", "conv2"):
        x = conv(x, weights[f"{name}.weight"]) + per_channel(weights[f"{name}.bias"])
        x = max_pool(jax.nn.relu(x))
    x = x.reshape(x.shape[0], -1)
    x = jax.nn.relu(linear(weights, "fc1", x))
    return linear(weights, "fc3", jax.nn.relu(linear(weights, "fc2", x)))


def resnet18(weights, x, statistics):
    def conv_norm(conv_name, norm_name, x, stride=1, padding=1):
        return batch_norm(weights, norm_name, conv(x, weights[f"{conv_name}.weight"], stride, padding), statistics)

    x = jax.nn.relu(conv_norm("stem.conv", "stem.norm", x))
    for i, (inputs, outputs, stride) in enumerate(models.RESNET_BLOCKS):
        block = f"blocks.{i}"
        y = jax.nn.relu(conv_norm(f"{block}.conv1", f"{block}.norm1", x, stride))
        y = conv_norm(f"{block}.conv2", f"{block}.norm2", y)
        if inputs != outputs:
            x = conv_norm(f"{block}.shortcut.conv", f"{block}.shortcut.norm", x, stride, padding=0)
        x = jax.nn.relu(x + y)
    return linear(weights, "head", x.mean((2, 3)))


def gpt(weights, tokens, statistics):
    batch, sequence = tokens.shape
    x = weights["token.weight"][tokens] + weights["position"]
    for i in range(models.LAYERS):
        block = f"blocks.{i}"
        qkv = linear(weights, f"{block}.qkv", norm(weights, f"{block}.norm1", x))
        heads = qkv.reshape(batch, sequence, 3, models.HEADS, models.HEAD_SIZE).transpose(2, 0, 3, 1, 4)
        y = attention(*heads, causal=True).transpose(0, 2, 1, 3).reshape(batch, sequence, models.WIDTH)
        x = x + linear(weights, f"{block}.proj", y)
        y = jax.nn.gelu(linear(weights, f"{block}.up", norm(weights, f"{block}.norm2", x)), approximate=True)
        x = x + linear(weights, f"{block}.down", y)
    return (norm(weights, "norm", x) @ weights["head.weight"]).reshape(-1, models.VOCABULARY)


def adam(weight, gradient, mean, square, step):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient * gradient
    corrected = jnp.sqrt(square / (1 - 0.999**step))
    return weight - models.LEARNING_RATE * (mean / (1 - 0.9**step)) / (corrected + 1e-8), mean, square


def device_weights(weights: dict[str, np.ndarray]) -> dict:
    """Linear layers are (in, out) in JAX; convolutions and embeddings keep their layout."""

    def convert(name, array):
        is_linear = array.ndim == 2 and name.endswith(".weight") and name != "token.weight"
        return jnp.asarray(np.ascontiguousarray(array.T) if is_linear else array)

    return {name: convert(name, array) for name, array in weights.items()}


class Jax(Adapter):
    def sync(self, result):
        jax.block_until_ready(result)

    def arrays(self, result):
        return [np.asarray(leaf) for leaf in (result if isinstance(result, tuple) else (result,))]

    def call(self, function, inputs: Inputs) -> Call:
        data = [jnp.asarray(array) for array in inputs.data.values()]
        compiled = jax.jit(function)
        return lambda: compiled(*data)

    def add_small(self, inputs):
        return self.call(lambda a, b: a + b, inputs)

    def chain10_small(self, inputs):
        def chain(a, b):
            for _ in range(5):
                a = (a + b) * b
            return a

        return self.call(chain, inputs)

    def mlp_fwdbwd(self, inputs):
        x, y = (jnp.asarray(array) for array in inputs.data.values())
        weights = tuple(jnp.asarray(array) for array in inputs.weights.values())

        def loss_of(weights, x, y):
            w1, b1, w2, b2 = weights
            return cross_entropy(jax.nn.relu(x @ w1 + b1) @ w2 + b2, y)

        def flat(weights, x, y):
            loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
            return loss, *gradients

        compiled = jax.jit(flat)
        return lambda: compiled(weights, x, y)

    def elemwise16M(self, inputs):  # noqa: N802 - the case's name
        def gated(a, b, c):
            x = a * b + c
            return x * jax.nn.sigmoid(x * 1.702)

        return self.call(gated, inputs)

    def softmax(self, inputs):
        return self.call(lambda x, weight, bias: jax.nn.softmax(x, -1), inputs)

    def layernorm(self, inputs):
        return self.call(layer_norm, inputs)

    def sdpa_fwd(self, inputs):
        return self.call(attention, inputs)

    def sdpa_fwdbwd(self, inputs):
        return self.call(jax.grad(lambda q, k, v: attention(q, k, v).sum(), (0, 1, 2)), inputs)

    def conv3x3_fwd(self, inputs):
        return self.call(lambda x, weight: conv(x, weight, padding=1), inputs)

    def train(self, model, inputs: Inputs) -> Call:
        x, y = (jnp.asarray(array) for array in inputs.data.values())
        weights = device_weights(inputs.weights)

        def loss_of(weights, x, y):
            statistics = {}
            return cross_entropy(model(weights, x, statistics), y), statistics

        def step(state, x, y):
            (loss, batch_statistics), gradients = jax.value_and_grad(loss_of, has_aux=True)(state["weights"], x, y)
            number = state["number"] + 1
            updated = {
                name: adam(weight, gradients[name], state["mean"][name], state["square"][name], number)
                for name, weight in state["weights"].items()
            }
            running = {
                name: old + STATISTICS_MOMENTUM * (batch_statistics[name] - old)
                for name, old in state["statistics"].items()
            }
            parts = {part: {name: u[i] for name, u in updated.items()} for i, part in enumerate(PARTS)}
            return {**parts, "statistics": running, "number": number}, loss

        names = jax.eval_shape(loss_of, weights, x, y)[1]
        state = {
            "weights": weights,
            "mean": jax.tree.map(jnp.zeros_like, weights),
            "square": jax.tree.map(jnp.zeros_like, weights),
            "statistics": {name: jnp.zeros(s.shape) + name.endswith("variance") for name, s in names.items()},
            "number": jnp.float32(0),
        }
        compiled = jax.jit(step, donate_argnums=0)

        def call():
            nonlocal state
            state, loss = compiled(state, x, y)
            return float(loss)

        return call

    def train_lenet(self, inputs):
        return self.train(lenet, inputs)

    def train_resnet18(self, inputs):
        return self.train(resnet18, inputs)

    def train_gpt(self, inputs):
        return self.train(gpt, inputs)
