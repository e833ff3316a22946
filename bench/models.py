"""The three training models: sizes, data, initial weights by name, and the floating-point operations of one step.

Layouts of the weights: linear (out, in), convolution (out, in, height, width), norms weight and bias.
"""

from dataclasses import dataclass

import numpy as np

LEARNING_RATE = 1e-3
NORM_EPSILON = 1e-5
CLASSES = 10

# Input channels, output channels, stride of the eight residual blocks of ResNet-18.
RESNET_BLOCKS = (
    (64, 64, 1),
    (64, 64, 1),
    (64, 128, 2),
    (128, 128, 1),
    (128, 256, 2),
    (256, 256, 1),
    (256, 512, 2),
    (512, 512, 1),
)

VOCABULARY, WIDTH, HEADS, LAYERS, SEQUENCE, GPT_BATCH = 8192, 384, 6, 6, 256, 4
HEAD_SIZE = WIDTH // HEADS


class Weights(dict):
    """Initial weights in the order of the layers; without a generator they have shapes, but no memory."""

    def __init__(self, generator: np.random.Generator | None):
        super().__init__()
        self.generator = generator

    def normal(self, name: str, shape: tuple[int, ...], deviation: float) -> None:
        if self.generator is None:
            self[name] = np.broadcast_to(np.float32(0), shape)
        else:
            self[name] = self.generator.standard_normal(shape, dtype=np.float32) * np.float32(deviation)

    def linear(self, name: str, outputs: int, inputs: int, deviation: float | None = None, bias: bool = True) -> None:
        deviation = deviation or inputs**-0.5
        self.normal(f"{name}.weight", (outputs, inputs), deviation)
        if bias:
            self.normal(f"{name}.bias", (outputs,), deviation)

    def conv(self, name: str, outputs: int, inputs: int, kernel: int, bias: bool = False) -> None:
        deviation = (2.0 / (inputs * kernel * kernel)) ** 0.5
        self.normal(f"{name}.weight", (outputs, inputs, kernel, kernel), deviation)
        if bias:
            self.normal(f"{name}.bias", (outputs,), 0.1)

    def norm(self, name: str, size: int) -> None:
        self[f"{name}.weight"] = np.ones(size, np.float32)
        self[f"{name}.bias"] = np.zeros(size, np.float32)


@dataclass(frozen=True)
class Layer:
    """A matrix product or convolution: `outputs` values per sample, each of `terms` products."""

    outputs: int
    terms: int
    first: bool = False  # no gradient with respect to the model's input is needed

    def step_flops(self) -> int:
        return (2 if self.first else 3) * 2 * self.outputs * self.terms


class Model:
    batch: int

    def data(self, generator: np.random.Generator) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def weights(self, generator: np.random.Generator | None) -> Weights:
        raise NotImplementedError

    def layers(self) -> list[Layer]:
        raise NotImplementedError

    def step_flops(self) -> int:
        return self.batch * sum(layer.step_flops() for layer in self.layers())

    def weight_count(self) -> int:
        return sum(array.size for array in self.weights(None).values())


class Lenet(Model):
    batch = 32

    def data(self, generator):
        images = generator.random((self.batch, 1, 28, 28), dtype=np.float32)
        return {"x": images, "y": generator.integers(0, CLASSES, self.batch).astype(np.int32)}

    def weights(self, generator):
        weights = Weights(generator)
        weights.conv("conv1", 6, 1, 5, bias=True)
        weights.conv("conv2", 16, 6, 5, bias=True)
        weights.linear("fc1", 120, 256)
        weights.linear("fc2", 84, 120)
        weights.linear("fc3", CLASSES, 84)
        return weights

    def layers(self):
        return [
            Layer(6 * 24 * 24, 25, first=True),
            Layer(16 * 8 * 8, 6 * 25),
            Layer(120, 256),
            Layer(84, 120),
            Layer(CLASSES, 84),
        ]


class Resnet18(Model):
    """The CIFAR form: 32x32 images, a 3x3 stem and no first pooling."""

    batch = 32
    side = 32

    def data(self, generator):
        images = generator.standard_normal((self.batch, 3, self.side, self.side), dtype=np.float32)
        return {"x": images, "y": generator.integers(0, CLASSES, self.batch).astype(np.int32)}

    def weights(self, generator):
        weights = Weights(generator)
        weights.conv("stem.conv", 64, 3, 3)
        weights.norm("stem.norm", 64)
        for i, (inputs, outputs, _) in enumerate(RESNET_BLOCKS):
            for j, channels in ((1, inputs), (2, outputs)):
                weights.conv(f"blocks.{i}.conv{j}", outputs, channels, 3)
                weights.norm(f"blocks.{i}.norm{j}", outputs)
            if inputs != outputs:
                weights.conv(f"blocks.{i}.shortcut.conv", outputs, inputs, 1)
                weights.norm(f"blocks.{i}.shortcut.norm", outputs)
        weights.linear("head", CLASSES, 512)
        return weights

    def layers(self):
        side = self.side
        layers = [Layer(64 * side * side, 3 * 9, first=True)]
        for inputs, outputs, stride in RESNET_BLOCKS:
            side //= stride
            values = outputs * side * side
            layers += [Layer(values, inputs * 9), Layer(values, outputs * 9)]
            if inputs != outputs:
                layers.append(Layer(values, inputs))
        return [*layers, Layer(CLASSES, 512)]


class Gpt(Model):
    """Pre-norm decoder with learned positions and an untied head."""

    batch = GPT_BATCH

    def data(self, generator):
        tokens = generator.integers(0, VOCABULARY, (self.batch, SEQUENCE)).astype(np.int32)
        return {"x": tokens, "y": generator.integers(0, VOCABULARY, self.batch * SEQUENCE).astype(np.int32)}

    def weights(self, generator):
        deviation = 0.02
        weights = Weights(generator)
        weights.normal("token.weight", (VOCABULARY, WIDTH), deviation)
        weights.normal("position", (SEQUENCE, WIDTH), deviation)
        for i in range(LAYERS):
            weights.norm(f"blocks.{i}.norm1", WIDTH)
            weights.linear(f"blocks.{i}.qkv", 3 * WIDTH, WIDTH, deviation)
            weights.linear(f"blocks.{i}.proj", WIDTH, WIDTH, deviation)
            weights.norm(f"blocks.{i}.norm2", WIDTH)
            weights.linear(f"blocks.{i}.up", 4 * WIDTH, WIDTH, deviation)
            weights.linear(f"blocks.{i}.down", WIDTH, 4 * WIDTH, deviation)
        weights.norm("norm", WIDTH)
        weights.linear("head", VOCABULARY, WIDTH, deviation, bias=False)
        return weights

    def layers(self):
        block = [
            Layer(SEQUENCE * 3 * WIDTH, WIDTH),
            # The causal mask leaves half of Q K^T and of P V to compute.
            Layer(HEADS * SEQUENCE * SEQUENCE // 2, HEAD_SIZE),
            Layer(SEQUENCE * WIDTH, SEQUENCE // 2),
            Layer(SEQUENCE * WIDTH, WIDTH),
            Layer(SEQUENCE * 4 * WIDTH, WIDTH),
            Layer(SEQUENCE * WIDTH, 4 * WIDTH),
        ]
        return block * LAYERS + [Layer(SEQUENCE * VOCABULARY, WIDTH)]


LENET, RESNET18, GPT = Lenet(), Resnet18(), Gpt()
