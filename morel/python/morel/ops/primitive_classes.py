"""Primitive classes that are more than a row of api/primitives.toml."""

from morel import _core, ops
from morel.api import make_operator
from morel.common import dtype as mstype
from morel.ops.primitive import Primitive

__all__ = [
    "AddExt",
    "ArgMaxWithValue",
    "ArgMinWithValue",
    "Argmax",
    "Argmin",
    "AvgPool",
    "BatchNorm",
    "Bernoulli",
    "BiasAdd",
    "Conv2D",
    "Conv2DBackpropInput",
    "Conv2DTranspose",
    "Conv3D",
    "Cross",
    "CumProd",
    "CumSum",
    "DType",
    "Depend",
    "DepthToSpace",
    "DivNoNan",
    "Dropout",
    "Einsum",
    "EqualCount",
    "HookBackward",
    "Identity",
    "Im2Col",
    "InsertGradientOf",
    "InvertPermutation",
    "L2Loss",
    "LayerNorm",
    "MaxPool",
    "MaxPoolWithArgmax",
    "Meshgrid",
    "MirrorPad",
    "MulNoNan",
    "NLLLoss",
    "NMSWithMask",
    "OneHot",
    "Pad",
    "RandomShuffle",
    "ReduceStd",
    "ReduceSum",
    "ResizeBilinearV2",
    "ResizeNearestNeighbor",
    "Shape",
    "SigmoidCrossEntropyWithLogits",
    "SoftmaxCrossEntropyWithLogits",
    "SpaceToDepth",
    "SparseSoftmaxCrossEntropyWithLogits",
    "Split",
    "StandardLaplace",
    "StandardNormal",
    "SubExt",
    "TensorShape",
    "UniformReal",
    "Unstack",
]

_log_softmax = make_operator("log_softmax", "log_softmax")


class Attributes(Primitive):
    """Keeps the constructor's arguments as attributes: subclasses name them and their defaults in `_defaults`."""

    _defaults = {}

    def __init__(self, *args, **kwargs):
        name = type(self).__name__
        super().__init__(name)
        values = dict(zip(self._defaults, args))
        if len(args) > len(self._defaults):
            raise TypeError(f"For '{name}', at most {len(self._defaults)} attributes are taken, but got {len(args)}.")
        for key, value in kwargs.items():
            if key not in self._defaults or key in values:
                raise TypeError(f"For '{name}', got an unexpected keyword argument '{key}'.")
            values[key] = value
        for key, default in self._defaults.items():
            value = values.get(key, default)
            if value is REQUIRED:
                raise TypeError(f"For '{name}', the attribute '{key}' is missing.")
            self.attrs[key] = value
        self.__dict__.update(self.attrs)
        self._check()

    def _check(self):
        """Refuses attributes that make no sense."""

    def _choose(self, attribute, choices):
        value = self.attrs[attribute]
        if value not in choices:
            raise ValueError(f"For '{self.name}', '{attribute}' must be one of {choices}, but got {value!r}.")


REQUIRED = object()


class Argmax(Attributes):
    """Where the largest element along an axis is."""

    _defaults = {"axis": -1, "output_type": mstype.int32}

    def __call__(self, x):
        return ops.argmax(x, self.axis).astype(self.output_type)


class Argmin(Attributes):
    """Where the smallest element along an axis is."""

    _defaults = {"axis": -1, "output_type": mstype.int32}

    def __call__(self, x):
        return ops.argmin(x, self.axis).astype(self.output_type)


class ArgMaxWithValue(Attributes):
    """(where the largest element along an axis is, the element)"""

    _defaults = {"axis": 0, "keep_dims": False}

    def __call__(self, x):
        return ops.max(x, self.axis, self.keep_dims)[::-1]


class ArgMinWithValue(Attributes):
    """(where the smallest element along an axis is, the element)"""

    _defaults = {"axis": 0, "keep_dims": False}

    def __call__(self, x):
        return ops.min(x, self.axis, self.keep_dims)[::-1]


class BiasAdd(Attributes):
    """Adds a vector to each position, along the channels."""

    _defaults = {"data_format": "NCHW"}

    def _check(self):
        self._choose("data_format", ("NCHW", "NCDHW"))

    def __call__(self, x, bias):
        return ops.bias_add(x, bias)


class _Scan(Attributes):
    _defaults = {"exclusive": False, "reverse": False}

    def __call__(self, x, axis):
        axis = axis.item() if isinstance(axis, _core.Tensor) else axis
        axis = axis % x.ndim
        x = ops.flip(x, (axis,)) if self.reverse else x
        output = self._scan(x, axis)
        if self.exclusive:
            first = ops.full_like(ops.narrow(output, axis, 0, 1), self._empty)
            output = ops.concat((first, ops.narrow(output, axis, 0, x.shape[axis] - 1)), axis)
        return ops.flip(output, (axis,)) if self.reverse else output


class CumSum(_Scan):
    """Running sum; exclusive: without the element itself; reverse: from the end."""

    _empty = 0

    def _scan(self, x, axis):
        return ops.cumsum(x, axis)


class CumProd(_Scan):
    """Running product; exclusive: without the element itself; reverse: from the end."""

    _empty = 1

    def _scan(self, x, axis):
        return ops.cumprod(x, axis)


class ReduceSum(Attributes):
    """Sum along axes, () and None: of all elements, with skip_mode: of none."""

    _defaults = {"keep_dims": False, "skip_mode": False}

    def __call__(self, x, axis=()):
        if self.skip_mode and (axis is None or axis == ()):
            return x
        return ops.sum(x, None if axis == () else axis, self.keep_dims, dtype=x.dtype)


class ReduceStd(Attributes):
    """(standard deviation, mean) along axes, [] of all elements; unbiased: divided by n - 1."""

    _defaults = {"axis": [], "unbiased": True, "keep_dims": False}

    def __call__(self, x):
        axis = self.axis if isinstance(self.axis, int) else tuple(self.axis) or None
        return ops.std(x, axis, int(self.unbiased), self.keep_dims), ops.mean(x, axis, self.keep_dims)


class Unstack(Attributes):
    """The slices along an axis, a tuple."""

    _defaults = {"axis": 0, "num": None}

    def __call__(self, x):
        if self.num is not None and self.num != x.shape[self.axis]:
            raise ValueError(f"For 'Unstack', 'num' is {self.num}, but the axis has {x.shape[self.axis]} elements.")
        return ops.unbind(x, self.axis)


class Split(Attributes):
    """output_num equal parts along an axis, a tuple."""

    _defaults = {"axis": 0, "output_num": 1}

    def __call__(self, x):
        size = x.shape[self.axis]
        if size % self.output_num:
            raise ValueError(f"For 'Split', {size} elements cannot be split into {self.output_num} equal parts.")
        return ops.split(x, size // self.output_num, self.axis)


class Meshgrid(Attributes):
    """Coordinate arrays of a grid from a tuple of vectors."""

    _defaults = {"indexing": "xy"}

    def __call__(self, inputs):
        return ops.meshgrid(*inputs, indexing=self.indexing)


class OneHot(Attributes):
    """Integers as vectors with on_value at their place and off_value elsewhere."""

    _defaults = {"axis": -1}

    def __call__(self, indices, depth, on_value, off_value):
        dtype = next((value.dtype for value in (on_value, off_value) if isinstance(value, _core.Tensor)), None)
        output = ops.one_hot(indices, depth, on_value, off_value, self.axis)
        return output if dtype is None else output.astype(dtype)


class Pad(Attributes):
    """Zeros around: ((before, after), ...) for each axis."""

    _defaults = {"paddings": REQUIRED}

    def __call__(self, input_x):
        return ops.pad(input_x, [side for pair in reversed(self.paddings) for side in pair])


class MirrorPad(Attributes):
    """Mirrored values around: 'REFLECT' without the edge, 'SYMMETRIC' with it."""

    _defaults = {"mode": "REFLECT"}

    def _check(self):
        self._choose("mode", ("REFLECT", "SYMMETRIC"))

    def __call__(self, input_x, paddings):
        pairs = paddings.asnumpy().tolist() if isinstance(paddings, _core.Tensor) else paddings
        skip = int(self.mode == "REFLECT")
        for axis, (before, after) in enumerate(pairs):
            size = input_x.shape[axis]
            if max(before, after) > size - skip:
                raise ValueError(f"For 'MirrorPad', {max(before, after)} elements are not there on axis {axis}.")
            parts = [
                ops.flip(ops.narrow(input_x, axis, skip, before), (axis,)),
                input_x,
                ops.flip(ops.narrow(input_x, axis, size - skip - after, after), (axis,)),
            ]
            input_x = ops.concat([part for part in parts if part.shape[axis]], axis)
        return input_x


class Shape(Attributes):
    """Sizes along the axes, a tuple."""

    def __call__(self, x):
        return x.shape


class TensorShape(Attributes):
    """Sizes along the axes, a tensor."""

    def __call__(self, x):
        return _core.Tensor(list(x.shape), mstype.int64)


class DType(Attributes):
    """The element type."""

    def __call__(self, x):
        return x.dtype


class Identity(Attributes):
    """The value itself."""

    def __call__(self, x):
        return x


class Depend(Attributes):
    """The value itself, after expr has been computed."""

    def __call__(self, value, expr):
        return value


class AddExt(Attributes):
    """input + alpha * other"""

    def __call__(self, input, other, alpha=1):
        return ops.add(input, other if alpha == 1 else other * alpha)


class SubExt(Attributes):
    """input - alpha * other"""

    def __call__(self, input, other, alpha=1):
        return ops.sub(input, other if alpha == 1 else other * alpha)


class EqualCount(Attributes):
    """How many elements of two tensors are equal, as a tensor of one element of their dtype."""

    def __call__(self, x, y):
        return ops.equal(x, y).sum().astype(x.dtype).reshape(1)


class InvertPermutation(Attributes):
    """The permutation that undoes a permutation of 0 to n - 1, given as a tuple or list."""

    def __call__(self, input_x):
        if sorted(input_x) != list(range(len(input_x))):
            raise ValueError(f"For 'InvertPermutation', 'input_x' must be a permutation, but got {input_x}.")
        return tuple(sorted(range(len(input_x)), key=input_x.__getitem__))


class InsertGradientOf(Attributes):
    """The value itself; its gradient goes through the function f."""

    _defaults = {"f": REQUIRED}

    def __call__(self, x):
        return _core.custom_backward(self.name, [x], [x], lambda gradient: (self.f(gradient),))[0]


class HookBackward(Attributes):
    """The values themselves; hook_fn sees the tuple of their gradients, and may return others."""

    _defaults = {"hook_fn": REQUIRED, "cell_id": ""}

    def _check(self):
        if not callable(self.hook_fn):
            raise TypeError(f"For 'HookBackward', 'hook_fn' must be callable, but got {type(self.hook_fn).__name__}.")

    def __call__(self, *inputs):
        def backward(*gradients):
            found = self.hook_fn(gradients)
            if found is None:
                return gradients
            return found if isinstance(found, tuple) else (found,)

        outputs = _core.custom_backward(self.name, list(inputs), list(inputs), backward)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


class DivNoNan(Attributes):
    """x / y, and 0 where y is 0."""

    def __call__(self, x, y):
        zero = ops.equal(y, 0)
        return ops.where(zero, 0, ops.true_divide(x, ops.where(zero, 1, y)))


class MulNoNan(Attributes):
    """x * y, and 0 where y is 0, even if x is infinite or NaN."""

    def __call__(self, x, y):
        zero = ops.equal(y, 0)
        return ops.where(zero, 0, ops.where(zero, 0, x) * y)


class Cross(Attributes):
    """Cross product along dim; by default the first axis of 3 elements."""

    _defaults = {"dim": -65530}

    def __call__(self, input, other):
        return ops.cross(input, other, None if self.dim == -65530 else self.dim)


class Einsum(Attributes):
    """Sums of products of a tuple of tensors; see :func:`morel.ops.einsum`."""

    _defaults = {"equation": REQUIRED}

    def __call__(self, inputs):
        return ops.einsum(self.equation, *inputs)


# -- networks --


def _pads(pad, count, name):
    pads = (pad,) * count if isinstance(pad, int) else tuple(pad)
    if len(pads) != count:
        raise ValueError(f"For '{name}', 'pad' must be an int or {count} ints, but got {pad}.")
    return pads


class Conv2D(Attributes):
    """2-D convolution of [N, C, H, W] with [O, C / group, kH, kW].

    pad_mode: 'valid', 'same' or 'pad' with `pad` zeros (top, bottom, left, right).
    """

    _defaults = {
        "out_channel": REQUIRED,
        "kernel_size": REQUIRED,
        "mode": 1,
        "pad_mode": "valid",
        "pad": 0,
        "stride": 1,
        "dilation": 1,
        "group": 1,
        "data_format": "NCHW",
    }
    _sides = 4

    def _check(self):
        self._choose("mode", (1,))
        self._choose("data_format", ("NCHW", "NCDHW"))
        self.pad_mode = self.attrs["pad_mode"] = self.pad_mode.lower()
        self._choose("pad_mode", ("valid", "same", "pad"))
        self._pad = _pads(self.pad, self._sides, self.name)
        if self.pad_mode != "pad" and any(self._pad):
            raise ValueError(f"For '{self.name}', 'pad' must be 0 where 'pad_mode' is '{self.pad_mode}'.")

    def __call__(self, x, weight):
        if weight.shape[0] != self.out_channel:
            raise ValueError(
                f"For '{self.name}', 'weight' must have {self.out_channel} output channels, but has shape {weight.shape}."
            )
        return self._run(x, weight)

    def _run(self, x, weight):
        padding = self._pad if self.pad_mode == "pad" else 0
        return ops.conv2d(x, weight, None, self.stride, self.pad_mode, padding, self.dilation, self.group)


class Conv3D(Conv2D):
    """3-D convolution of [N, C, D, H, W] with [O, C / group, kD, kH, kW]; pad: an int or two ints for each axis."""

    _defaults = {**Conv2D._defaults, "data_format": "NCDHW"}
    _sides = 6

    def _run(self, x, weight):
        return ops.conv3d(x, weight, None, self.stride, self.pad_mode, self._pad, self.dilation, self.group)


class Conv2DTranspose(Attributes):
    """The gradient of a 2-D convolution at its input: from that at its output, the weight and the input's shape."""

    # The same as of the convolution, in another order.
    _defaults = {
        name: Conv2D._defaults.get(name)
        for name in (
            *("out_channel", "kernel_size", "pad_mode", "pad", "pad_list"),
            *("mode", "stride", "dilation", "group", "data_format"),
        )
    }

    def _check(self):
        self._choose("mode", (1,))
        self._choose("data_format", ("NCHW",))
        self.pad_mode = self.pad_mode.lower()
        self._choose("pad_mode", ("valid", "same", "pad"))
        self._pad = _pads(self.pad if self.pad_list is None else self.pad_list, 4, self.name)

    def __call__(self, dout, weight, input_size):
        from morel.nn import _window
        from morel.nn._check import int_tuple

        stride, dilation = (
            int_tuple(tuple(value) if isinstance(value, list) else value, 2, what, self.name)
            for value, what in ((self.stride, "stride"), (self.dilation, "dilation"))
        )
        sides = self._pad if self.pad_mode == "pad" else (0, 0, 0, 0)
        if self.pad_mode == "same":
            pairs = _window.same_sides(input_size[2:], weight.shape[2:], stride, dilation)
            sides = tuple(side for pair in pairs for side in pair)
        grad = make_operator(self.name, "convolution_input_grad")
        return grad(dout, weight, tuple(input_size), stride, sides, dilation, self.group)


class Conv2DBackpropInput(Conv2DTranspose):
    """Another name of `Conv2DTranspose`."""


class _Pool(Attributes):
    _defaults = {"kernel_size": 1, "strides": 1, "pad_mode": "valid", "data_format": "NCHW"}

    def _check(self):
        self.pad_mode = self.pad_mode.lower()
        if self.pad_mode not in ("valid", "same"):
            raise ValueError(f"For '{self.name}', 'pad_mode' must be 'valid' or 'same', but got {self.pad_mode!r}.")
        self._choose("data_format", ("NCHW",))

    def __call__(self, x):
        from morel import nn

        layer = getattr(nn, self._layer)
        return layer(self.kernel_size, self.strides, self.pad_mode)(x)


class MaxPool(_Pool):
    """Maximum over windows of [N, C, H, W]."""

    _layer = "MaxPool2d"


class MaxPoolWithArgmax(_Pool):
    """(maximum over windows of [N, C, H, W], where in H * W it is)."""

    def __call__(self, x):
        if self.pad_mode == "same":
            raise NotImplementedError("For 'MaxPoolWithArgmax', 'pad_mode' 'same' is not supported.")
        return ops.max_pool2d(x, self.kernel_size, self.strides, return_indices=True)


class AvgPool(_Pool):
    """Mean over windows of [N, C, H, W]; the padding of 'same' does not count."""

    _layer = "AvgPool2d"


class BatchNorm(Attributes):
    """Normalises over the batch: (output, mean, variance, mean, variance), the statistics that were used."""

    _defaults = {"is_training": False, "epsilon": 1e-5, "momentum": 0.1, "data_format": "NCHW"}

    def _check(self):
        self._choose("data_format", ("NCHW",))

    def __call__(self, input_x, scale, bias, mean, variance):
        if self.is_training:
            axes = (0, *range(2, input_x.ndim))
            used = ops.mean(input_x, axes), ops.var(input_x, axes)
        else:
            used = mean, variance
        output = ops.batch_norm(input_x, mean, variance, scale, bias, self.is_training, self.momentum, self.epsilon)
        return (output, *used, *used)


class LayerNorm(Attributes):
    """Normalises the axes from begin_norm_axis on: (output, mean, variance)."""

    _defaults = {"begin_norm_axis": 1, "begin_params_axis": 1, "epsilon": 1e-7}

    def __call__(self, input_x, gamma, beta):
        first = self.begin_norm_axis % input_x.ndim
        axes = tuple(range(first, input_x.ndim))
        mean, variance = ops.mean(input_x, axes, True), ops.var(input_x, axes, 0, True)
        shape = input_x.shape[first:]
        if gamma.shape == beta.shape == shape:
            output = ops.layer_norm(input_x, shape, gamma, beta, self.epsilon)
        else:
            output = (input_x - mean) * ops.rsqrt(variance + self.epsilon) * gamma + beta
        return output, mean, variance


class Dropout(Attributes):
    """(output, mask): elements are kept with probability keep_prob and scaled by its inverse."""

    _defaults = {"keep_prob": 0.5, "Seed0": 0, "Seed1": 0}

    def _check(self):
        if not 0 < self.keep_prob <= 1:
            raise ValueError(f"For 'Dropout', 'keep_prob' must be in (0, 1], but got {self.keep_prob}.")

    def __call__(self, x):
        mask = ops.dropout(ops.ones_like(x), 1 - self.keep_prob, True, self.Seed0 or self.Seed1 or None)
        return x * mask, (mask != 0).astype(x.dtype)


class _Drawn(Attributes):
    _defaults = {"seed": 0, "seed2": 0}

    def _own_seed(self):
        return self.seed or self.seed2 or None


class StandardNormal(_Drawn):
    """Normal numbers with mean 0 and deviation 1."""

    def __call__(self, shape):
        return ops.standard_normal(shape, self._own_seed())


class StandardLaplace(_Drawn):
    """Laplace numbers with mean 0 and scale 1."""

    def __call__(self, shape):
        return ops.standard_laplace(shape, self._own_seed())


class UniformReal(_Drawn):
    """Uniform numbers in [0, 1)."""

    def __call__(self, shape):
        return ops.rand(*shape, seed=self._own_seed())


class RandomShuffle(_Drawn):
    """The slices along the first axis in a random order."""

    def __call__(self, x):
        return ops.shuffle(x, self._own_seed())


class Bernoulli(Attributes):
    """1 with the probability p, else 0, in the shape and dtype of x."""

    _defaults = {"seed": -1, "offset": 0}

    def __call__(self, x, p=0.5):
        return ops.bernoulli(x, p, None if self.seed in (-1, 0) else self.seed)


class L2Loss(Attributes):
    """Half the sum of squares."""

    def __call__(self, input_x):
        return ops.sum(ops.square(input_x)) / 2


class NMSWithMask(Attributes):
    """(boxes [N, 5] by falling score, where each was, which stay): of two boxes that overlap by more than iou_threshold the one
    with the lower score goes. A box is x0, y0, x1, y1, score."""

    _defaults = {"iou_threshold": 0.5}

    def __call__(self, bboxes):
        if not isinstance(bboxes, _core.Tensor) or bboxes.dtype not in (mstype.float16, mstype.float32):
            raise TypeError(f"For 'NMSWithMask', 'bboxes' must be a Tensor of float16 or float32, but got {bboxes!r}.")
        if bboxes.ndim != 2 or bboxes.shape[1] != 5:
            raise ValueError(f"For 'NMSWithMask', the shape of 'bboxes' must be (N, 5), but got {tuple(bboxes.shape)}.")
        order = ops.argsort(bboxes[:, 4], descending=True)
        boxes = bboxes[order]
        low, high = boxes[:, :2], boxes[:, 2:4]
        sizes = ops.clamp(ops.minimum(high[:, None], high[None]) - ops.maximum(low[:, None], low[None]), 0)
        common, areas = ops.prod(sizes, -1), ops.prod(high - low, -1)
        overlaps = common / (areas[:, None] + areas[None] - common) > self.iou_threshold
        places = ops.arange(boxes.shape[0])
        kept = places >= 0
        for place in range(boxes.shape[0]):
            kept = kept & ~(overlaps[place] & kept[place] & (places > place))
        return boxes, order.astype(mstype.int32), kept


class NLLLoss(Attributes):
    """(loss, sum of the weights): negative log likelihood of [N, C] log probabilities."""

    _defaults = {"reduction": "mean", "ignore_index": -100}

    def __call__(self, logits, labels, weight):
        loss = ops.nll_loss(logits, labels, weight, self.ignore_index, self.reduction)
        kept = labels != self.ignore_index
        weights = ops.gather(weight, ops.where(kept, labels, 0), 0) * kept.astype(weight.dtype)
        return loss, weights.sum()


class SoftmaxCrossEntropyWithLogits(Attributes):
    """(loss [N], its gradient at the logits [N, C]) for labels that are probabilities [N, C]."""

    def __call__(self, logits, labels):
        log_p = _log_softmax(logits, -1)
        return -ops.sum(log_p * labels, -1), ops.stop_gradient(ops.exp(log_p) - labels)


class SparseSoftmaxCrossEntropyWithLogits(Attributes):
    """Mean cross entropy of logits [N, C] and classes [N]; is_grad: its gradient at the logits."""

    _defaults = {"is_grad": False}

    def __call__(self, logits, labels):
        if not self.is_grad:
            return ops.cross_entropy(logits, labels)
        hot = ops.one_hot(labels, logits.shape[-1], 1, 0, -1).astype(logits.dtype)
        return (ops.softmax(logits, -1) - hot) / logits.shape[0]


class SigmoidCrossEntropyWithLogits(Attributes):
    """Cross entropy of each element of logits with a probability as label."""

    def __call__(self, logits, label):
        return ops.relu(logits) - logits * label + ops.log1p(ops.exp(-ops.abs(logits)))


class ResizeNearestNeighbor(Attributes):
    """Resizes images [N, C, H, W] to the nearest elements."""

    _defaults = {"size": REQUIRED, "align_corners": False, "half_pixel_centers": False}

    def __call__(self, input_x):
        if self.align_corners or self.half_pixel_centers:
            raise NotImplementedError(
                "For 'ResizeNearestNeighbor', 'align_corners' and 'half_pixel_centers' are not supported; see ops.interpolate."
            )
        return ops.interpolate(input_x, tuple(self.size))


class ResizeBilinearV2(Attributes):
    """Resizes images [N, C, H, W] bilinearly."""

    _defaults = {"align_corners": False, "half_pixel_centers": False}

    def __call__(self, image, size):
        if self.align_corners and self.half_pixel_centers:
            raise ValueError("For 'ResizeBilinearV2', 'align_corners' and 'half_pixel_centers' exclude each other.")
        if not self.align_corners and not self.half_pixel_centers:
            raise NotImplementedError(
                "For 'ResizeBilinearV2', 'half_pixel_centers' or 'align_corners' must be True; see ops.interpolate."
            )
        return ops.interpolate(image, tuple(size), mode="bilinear", align_corners=self.align_corners)


class DepthToSpace(Attributes):
    """[N, C * b * b, H, W] -> [N, C, H * b, W * b]; the blocks are the outer part of the channels."""

    _defaults = {"block_size": REQUIRED}

    def __call__(self, x):
        block, (batch, channels, height, width) = self.block_size, x.shape
        if channels % (block * block):
            raise ValueError(f"For 'DepthToSpace', {channels} channels are no multiple of {block * block}.")
        split = x.reshape((batch, block, block, channels // (block * block), height, width))
        return split.permute((0, 3, 4, 1, 5, 2)).reshape((batch, -1, height * block, width * block))


class SpaceToDepth(Attributes):
    """[N, C, H * b, W * b] -> [N, C * b * b, H, W]; the blocks are the outer part of the channels."""

    _defaults = {"block_size": REQUIRED}

    def __call__(self, x):
        block, (batch, channels, height, width) = self.block_size, x.shape
        if height % block or width % block:
            raise ValueError(f"For 'SpaceToDepth', height and width must be multiples of {block}, but got {x.shape}.")
        split = x.reshape((batch, channels, height // block, block, width // block, block))
        return split.permute((0, 3, 5, 1, 2, 4)).reshape((batch, -1, height // block, width // block))


class Im2Col(Attributes):
    """Sliding windows of images [N, C, H, W] as columns: [N, C, elements of a window, windows]."""

    _defaults = {"ksizes": REQUIRED, "strides": 1, "dilations": 1, "pads": 0}

    def __call__(self, x):
        columns = ops.unfold(x, self.ksizes, self.dilations, self.pads, self.strides)
        return columns.reshape((x.shape[0], x.shape[1], -1, columns.shape[-1]))
