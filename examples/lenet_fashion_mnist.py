"""LeNet on Fashion-MNIST in PyNative and in graph mode: an ordinary MindSpore script.

    python -m morel examples/lenet_fashion_mnist.py        # on Morel
    python examples/lenet_fashion_mnist.py                 # on MindSpore 2.8

Trains in both modes with a progress bar, prints the test accuracy and the speed, saves a checkpoint, loads it into a fresh network and checks
that it answers alike, and draws the loss curve with some predictions. The last line is one JSON object.
"""

import argparse
import gzip
import json
import os
import shutil
import sys
import tempfile
import time

import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn, ops

MEAN, STD = 0.2860, 0.3530  # of the training images, in [0, 1]
CLASSES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot")


class LeNet(nn.Cell):
    """After LeNet-5 (LeCun et al., 1998), with ReLU, max pooling and twice its channels: [N, 1, 28, 28] -> [N, 10]."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 5, pad_mode="pad", padding=2, has_bias=True)
        self.conv2 = nn.Conv2d(12, 32, 5, pad_mode="valid", has_bias=True)
        self.pool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(32 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, 10)

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.flatten(x)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


def unpacked(source, target):
    """The four IDX files of ``source``, unpacked into ``target`` for readers that want them so."""
    for name in sorted(os.listdir(source)):
        if name.endswith(".gz"):
            with (
                gzip.open(os.path.join(source, name), "rb") as packed,
                open(os.path.join(target, name[:-3]), "wb") as plain,
            ):
                shutil.copyfileobj(packed, plain)
    return target


def images(folder, usage, batch_size, shuffle):
    """Batches of (image float32 [N, 1, 28, 28] of mean 0 and deviation 1, label int32 [N])."""
    data = ds.MnistDataset(folder, usage=usage, shuffle=shuffle)
    data = data.map([ds.vision.Rescale(1 / 255 / STD, -MEAN / STD), ds.vision.HWC2CHW()], input_columns="image")
    data = data.map(ds.transforms.TypeCast(ms.int32), input_columns="label")
    return data.batch(batch_size, drop_remainder=shuffle)


def show_progress(epoch, epochs, step, steps, loss, speed):
    filled = 24 * (step + 1) // steps
    bar = "#" * filled + "." * (24 - filled)
    end = "\n" if step + 1 == steps else ""
    sys.stdout.write(f"\repoch {epoch + 1}/{epochs} [{bar}] loss {loss:.4f}  {speed:6.0f} images/s{end}")
    sys.stdout.flush()


def train(network, data, epochs, learning_rate):
    """Trains in place; returns (losses of all steps, images per second)."""
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.Adam(network.trainable_params(), learning_rate)

    def forward(image, label):
        return loss_fn(network(image), label)

    loss_and_gradients = ms.value_and_grad(forward, None, optimizer.parameters)
    network.set_train(True)
    losses, seen, steps = [], 0, data.get_dataset_size()
    start = time.perf_counter()
    for epoch in range(epochs):
        for step, (image, label) in enumerate(data.create_tuple_iterator()):
            loss, gradients = loss_and_gradients(image, label)
            optimizer(gradients)
            losses.append(loss)
            seen += image.shape[0]
            if step % 100 == 99 or step + 1 == steps:
                show_progress(epoch, epochs, step, steps, float(loss.asnumpy()), seen / (time.perf_counter() - start))
    speed = seen / (time.perf_counter() - start)
    return [float(loss.asnumpy()) for loss in losses], speed


def predictions(network, data):
    """(predicted classes, labels) of a whole data set, as lists."""
    network.set_train(False)
    predicted, labels = [], []
    for image, label in data.create_tuple_iterator(num_epochs=1):
        predicted += ops.argmax(network(image), 1).asnumpy().tolist()
        labels += label.asnumpy().tolist()
    return predicted, labels


def draw(path, losses, data, predicted):
    """A picture: the loss of every step, and twelve test images with their predictions."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=(9, 8), constrained_layout=True)
    top, bottom = figure.subfigures(2, 1, height_ratios=(2, 3))
    axes = top.subplots()
    axes.plot(losses, linewidth=0.6, color="#3060a0")
    axes.set(xlabel="step", ylabel="loss", title="LeNet on Fashion-MNIST", yscale="log")
    image, label = next(data.create_tuple_iterator(num_epochs=1))
    image, label = image.asnumpy(), label.asnumpy()
    for idx, cell in enumerate(bottom.subplots(3, 4).flat):
        right = predicted[idx] == label[idx]
        cell.imshow(image[idx, 0], cmap="gray_r")
        cell.set_title(
            CLASSES[predicted[idx]] + ("" if right else f" (is {CLASSES[label[idx]]})"),
            fontsize=9,
            color="black" if right else "#b02020",
        )
        cell.axis("off")
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="folder of the (packed) IDX files")
    parser.add_argument("--out", default="demo_out", help="folder for the checkpoint and the picture")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    begin = time.perf_counter()
    os.makedirs(options.out, exist_ok=True)
    findings = {}
    with tempfile.TemporaryDirectory() as folder:
        unpacked(options.data, folder)
        test_data = images(folder, "test", 500, False)
        for mode, name in ((ms.GRAPH_MODE, "jit"), (ms.PYNATIVE_MODE, "pynative")):
            ms.set_context(mode=mode)
            ms.set_seed(options.seed)
            network = LeNet()
            losses, speed = train(
                network, images(folder, "train", options.batch_size, True), options.epochs, options.learning_rate
            )
            predicted, labels = predictions(network, test_data)
            accuracy = sum(guess == label for guess, label in zip(predicted, labels)) / len(labels)
            print(f"{name}: test accuracy {accuracy:.4f}, {speed:.0f} images/s")
            findings |= {f"accuracy_{name}": round(accuracy, 4), f"images_per_s_{name}": round(speed, 1)}

        checkpoint = os.path.join(options.out, "lenet.ckpt")
        ms.save_checkpoint(network, checkpoint)
        restored = LeNet()
        ms.load_param_into_net(restored, ms.load_checkpoint(checkpoint))
        if predictions(restored, test_data)[0] != predicted:
            raise RuntimeError("the network loaded from the checkpoint answers differently")
        print(f"{checkpoint} saved and loaded back")
        try:
            draw(os.path.join(options.out, "lenet.png"), losses, test_data, predicted)
            print(f"{os.path.join(options.out, 'lenet.png')} drawn")
        except ImportError:
            print("no picture: matplotlib is not installed")
    print(json.dumps({**findings, "seconds": round(time.perf_counter() - begin, 2)}))


if __name__ == "__main__":
    main()
