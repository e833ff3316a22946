"""Products of vectors, matrices and more."""

import math

from morel import _core, ops
from morel.api import make_operator
from morel.ops.composed import _check

__all__ = [
    "addbmm",
    "addmv",
    "addr",
    "adjoint",
    "batch_dot",
    "cdist",
    "cross",
    "dot",
    "einsum",
    "ger",
    "inner",
    "kron",
    "tensor_dot",
    "vecdot",
]


_dot = make_operator("dot", "dot")


def dot(input, other):
    """Products summed along the last axis of input and the last but one of other (the only one of a vector)."""
    _check.tensor(input, "input", "dot"), _check.tensor(other, "other", "dot")
    if input.ndim == other.ndim == 1:
        return _dot(input, other)
    if input.ndim == 0 or other.ndim == 0:
        raise ValueError(f"For 'dot', both must have an axis, but got shapes {input.shape} and {other.shape}.")
    axis = max(other.ndim - 2, 0)
    if input.shape[-1] != other.shape[axis]:
        raise ValueError(f"For 'dot', the axes that are summed differ for shapes {input.shape} and {other.shape}.")
    return tensor_dot(input, other, ([input.ndim - 1], [axis]))


def _scaled(input, beta, product, alpha):
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return ops.broadcast_to(product, (input + product).shape)
    return (input if beta == 1 else input * beta) + product


def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """beta * input + alpha * the sum over the batch of batch1[b] @ batch2[b]."""
    if _check.tensor(batch1, "batch1", "addbmm").ndim != 3 or _check.tensor(batch2, "batch2", "addbmm").ndim != 3:
        raise ValueError(f"For 'addbmm', batches must have 3 axes, but got shapes {batch1.shape} and {batch2.shape}.")
    return _scaled(_check.tensor(input, "input", "addbmm"), beta, ops.sum(ops.bmm(batch1, batch2), 0), alpha)


def addmv(input, mat, vec, *, beta=1, alpha=1):
    """beta * input + alpha * mat @ vec."""
    return _scaled(_check.tensor(input, "input", "addmv"), beta, ops.mv(mat, vec), alpha)


def addr(x, vec1, vec2, *, beta=1, alpha=1):
    """beta * x + alpha * the outer product of two vectors."""
    return _scaled(_check.tensor(x, "x", "addr"), beta, ops.outer(vec1, vec2), alpha)


def adjoint(x):
    """Conjugate transpose of matrices."""
    if _check.tensor(x, "x", "adjoint").ndim < 2:
        raise ValueError(f"For 'adjoint', 'x' must have at least 2 axes, but got shape {x.shape}.")
    x = x.swapaxes(-1, -2)
    return ops.conj(x) if x.dtype.is_complex else x


def ger(input, vec2):
    """Outer product of two vectors."""
    return ops.outer(input, vec2)


def inner(input, other):
    """Products of rows summed along the last axes of both; numbers simply multiply."""
    _check.tensor(input, "input", "inner"), _check.tensor(other, "other", "inner")
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise ValueError(f"For 'inner', the last axes must agree, but got shapes {input.shape} and {other.shape}.")
    return tensor_dot(input, other, ([input.ndim - 1], [other.ndim - 1]))


def kron(input, other):
    """Kronecker product: blocks input[i, j, ...] * other."""
    _check.tensor(input, "input", "kron"), _check.tensor(other, "other", "kron")
    rank = max(input.ndim, other.ndim)
    first, second = ((1,) * (rank - x.ndim) + tuple(x.shape) for x in (input, other))
    a = input.reshape(tuple(size for extent in first for size in (extent, 1)))
    b = other.reshape(tuple(size for extent in second for size in (1, extent)))
    return (a * b).reshape(tuple(x * y for x, y in zip(first, second)))


def _axes_pair(axes, first, second, name):
    if isinstance(axes, int) and not isinstance(axes, bool):
        if axes < 0 or axes > min(first.ndim, second.ndim):
            raise ValueError(f"For '{name}', 'axes' must be in [0, {min(first.ndim, second.ndim)}], but got {axes}.")
        return [*range(first.ndim - axes, first.ndim)], [*range(axes)]
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise TypeError(f"For '{name}', 'axes' must be an int or two ints or lists of ints, but got {axes!r}.")
    left, right = ([part] if isinstance(part, int) else list(part) for part in axes)
    if len(left) != len(right):
        raise ValueError(f"For '{name}', 'axes' must name as many axes of both tensors, but got {axes}.")
    left = [_check.axis(axis, first.ndim, "axes", name) for axis in left]
    return left, [_check.axis(axis, second.ndim, "axes", name) for axis in right]


def tensor_dot(x1, x2, axes):
    """Products summed over axes of both tensors.

    Args:
        x1 (Tensor): first factor.
        x2 (Tensor): second factor.
        axes (int, tuple, list): the last `axes` of x1 with the first ones of x2, or a pair: axes of x1, axes of x2.
    """
    _check.tensor(x1, "x1", "tensor_dot"), _check.tensor(x2, "x2", "tensor_dot")
    left, right = _axes_pair(axes, x1, x2, "tensor_dot")
    if [x1.shape[axis] for axis in left] != [x2.shape[axis] for axis in right]:
        raise ValueError(f"For 'tensor_dot', the sizes along {axes} differ for shapes {x1.shape} and {x2.shape}.")
    rest1 = [axis for axis in range(x1.ndim) if axis not in left]
    rest2 = [axis for axis in range(x2.ndim) if axis not in right]
    shape = (*(x1.shape[axis] for axis in rest1), *(x2.shape[axis] for axis in rest2))
    depth = math.prod(x1.shape[axis] for axis in left)
    a = _permuted(x1, rest1 + left).reshape((math.prod(x1.shape[axis] for axis in rest1), depth))
    b = _permuted(x2, right + rest2).reshape((depth, math.prod(x2.shape[axis] for axis in rest2)))
    return ops.matmul(a, b).reshape(shape)


def _permuted(x, axes):
    return ops.permute(x, tuple(axes)) if axes != [*range(x.ndim)] else x


def batch_dot(x1, x2, axes=None):
    """Products summed over one axis of both for each element of the batch, their first axis.

    Args:
        x1 (Tensor): [N, ...].
        x2 (Tensor): [N, ...].
        axes (int, tuple, list, optional): the axis of both, or of each. None: the last of x1 and the last but one of x2 (the
            last of [N, C]).
    Returns:
        Tensor: [N, ...]; [N, 1] where nothing else is left.
    """
    _check.tensor(x1, "x1", "batch_dot"), _check.tensor(x2, "x2", "batch_dot")
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[0] != x2.shape[0]:
        raise ValueError(f"For 'batch_dot', shapes [N, ...] are needed, but got {x1.shape} and {x2.shape}.")
    if axes is None:
        axes = (x1.ndim - 1, x2.ndim - 1 if x2.ndim == 2 else x2.ndim - 2)
    axes = (axes, axes) if isinstance(axes, int) else tuple(axes)
    left, right = (_check.axis(axis, x.ndim, "axes", "batch_dot") for axis, x in zip(axes, (x1, x2)))
    if left == 0 or right == 0:
        raise ValueError("For 'batch_dot', 'axes' must not name the batch, axis 0.")
    if x1.shape[left] != x2.shape[right]:
        raise ValueError(f"For 'batch_dot', the sizes along {axes} differ for shapes {x1.shape} and {x2.shape}.")
    rest1 = [axis for axis in range(1, x1.ndim) if axis != left]
    rest2 = [axis for axis in range(1, x2.ndim) if axis != right]
    batch, depth = x1.shape[0], x1.shape[left]
    a = _permuted(x1, [0, *rest1, left]).reshape((batch, -1, depth))
    b = _permuted(x2, [0, right, *rest2]).reshape((batch, depth, -1))
    shape = (batch, *(x1.shape[axis] for axis in rest1), *(x2.shape[axis] for axis in rest2))
    return ops.bmm(a, b).reshape(shape if len(shape) > 1 else (batch, 1))


def vecdot(x, y, *, axis=-1):
    """Sum of conj(x) * y along axis."""
    _check.tensor(x, "x", "vecdot"), _check.tensor(y, "y", "vecdot")
    return ops.sum((ops.conj(x) if x.dtype.is_complex else x) * y, axis).astype((x + y).dtype)


def cross(input, other, dim=None):
    """Cross product along dim, which has 3 elements; None: the first axis of that size."""
    _check.tensor(input, "input", "cross"), _check.tensor(other, "other", "cross")
    shape = (input + other).shape
    input, other = ops.broadcast_to(input, shape), ops.broadcast_to(other, shape)
    if dim is None:
        dim = next((axis for axis, size in enumerate(shape) if size == 3), None)
        if dim is None:
            raise ValueError(f"For 'cross', an axis must have 3 elements, but the shape is {shape}.")
    dim = _check.axis(dim, len(shape), "dim", "cross")
    if shape[dim] != 3:
        raise ValueError(f"For 'cross', axis {dim} must have 3 elements, but the shape is {shape}.")
    a, b = ops.unbind(input, dim), ops.unbind(other, dim)
    parts = [a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3] for k in range(3)]
    return ops.stack(parts, dim)


def cdist(x1, x2, p=2.0):
    """p-norm distances between the rows of x1 [..., P, M] and of x2 [..., R, M]: [..., P, R]."""
    _check.floating(x1, "x1", "cdist"), _check.floating(x2, "x2", "cdist")
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise TypeError(f"For 'cdist', 'p' must be float, but got {type(p).__name__}.")
    if p < 0:
        raise ValueError(f"For 'cdist', 'p' must not be negative, but got {p}.")
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"For 'cdist', shapes [..., P, M] and [..., R, M] are needed, but got {x1.shape}, {x2.shape}.")
    return ops.vector_norm(x1.expand_dims(-2) - x2.expand_dims(-3), float(p), -1)


class _Term:
    """An operand of einsum with one letter for each axis."""

    def __init__(self, tensor, letters):
        self.tensor, self.letters = tensor, letters

    def merge_repeated(self):
        """Takes the diagonal of axes with the same letter."""
        for letter in dict.fromkeys(self.letters):
            while self.letters.count(letter) > 1:
                first = self.letters.index(letter)
                second = self.letters.index(letter, first + 1)
                if self.tensor.shape[first] != self.tensor.shape[second]:
                    raise ValueError(f"For 'einsum', the axes '{letter}' of one operand differ in size.")
                self.tensor = ops.diagonal(self.tensor, 0, first, second)  # the diagonal comes last
                self.letters = [x for at, x in enumerate(self.letters) if at not in (first, second)] + [letter]

    def sum_out(self, kept):
        """Sums over letters that are not kept."""
        axes = tuple(at for at, letter in enumerate(self.letters) if letter not in kept)
        if axes:
            self.tensor = ops.sum(self.tensor, axes).astype(self.tensor.dtype)
            self.letters = [letter for letter in self.letters if letter in kept]

    def order(self, letters):
        """The tensor with axes in the order of `letters`, size 1 where it has none."""
        present = [letter for letter in letters if letter in self.letters]
        tensor = _permuted(self.tensor, [self.letters.index(letter) for letter in present])
        sizes = dict(zip(present, tensor.shape))
        return tensor.reshape(tuple(sizes.get(letter, 1) for letter in letters))

    def size(self, letter):
        return self.tensor.shape[self.letters.index(letter)] if letter in self.letters else 1


def _contract(a, b, kept):
    """One term from two: shared letters that are not kept are summed by a matrix product."""
    for one, other in ((a, b), (b, a)):
        one.sum_out({*other.letters, *kept})
    both = [x for x in a.letters if x in b.letters]
    # Letters of which one operand has only one element broadcast; they cannot be summed by a product.
    depth = [x for x in both if x not in kept and a.size(x) == b.size(x)]
    batch = [x for x in both if x not in depth]
    left = [x for x in a.letters if x not in both]
    right = [x for x in b.letters if x not in both]
    x, y = a.order(batch + left + depth), b.order(batch + depth + right)
    sizes = [math.prod(term.size(letter) for letter in group) for term, group in ((a, left), (a, depth), (b, right))]
    x = x.reshape((*x.shape[: len(batch)], sizes[0], sizes[1]))
    y = y.reshape((*y.shape[: len(batch)], sizes[1], sizes[2]))
    found = ops.matmul(x, y)
    outer = [*(a.size(letter) for letter in left), *(b.size(letter) for letter in right)]
    return _Term(found.reshape((*found.shape[: len(batch)], *outer)), batch + left + right)


def _parse(equation, operands):
    """Letters of each operand and of the result; the axes of an ellipsis are numbers, counted from the last."""
    equation = equation.replace(" ", "")
    given, arrow, output = equation.partition("->")
    inputs = given.split(",")
    if len(inputs) != len(operands):
        raise ValueError(f"For 'einsum', '{equation}' has {len(inputs)} terms for {len(operands)} operands.")
    letters = []
    for text, operand in zip(inputs, operands):
        before, dots, after = text.partition("...")
        if not all(letter.isalpha() for letter in before + after):
            raise ValueError(f"For 'einsum', '{equation}' must consist of letters, ',', '...' and one '->'.")
        count = operand.ndim - len(before) - len(after)
        if count < 0 or (count and not dots):
            raise ValueError(f"For 'einsum', the term '{text}' does not fit an operand of shape {operand.shape}.")
        letters.append([*before, *range(-count, 0), *after])
    most = max((sum(isinstance(x, int) for x in term) for term in letters), default=0)
    everything = [x for term in letters for x in term]
    if not arrow:
        once = sorted(x for x in dict.fromkeys(everything) if not isinstance(x, int) and everything.count(x) == 1)
        return letters, [*range(-most, 0), *once]
    before, dots, after = output.partition("...")
    result = [*before, *(range(-most, 0) if dots else ()), *after]
    if len(set(result)) != len(result) or not set(result) <= set(everything):
        raise ValueError(f"For 'einsum', the result '{output}' must name letters of the operands once each.")
    return letters, result


def _sublist_form(args):
    """equation and operands from einsum(operand, axes, operand, axes, ..., axes of the result)."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def text(axes):
        return "".join("..." if axis is Ellipsis else letters[axis] for axis in axes)

    equation = ",".join(text(axes) for axes in args[1::2][: len(args) // 2])
    return equation + ("->" + text(args[-1]) if len(args) % 2 else ""), args[: len(args) // 2 * 2 : 2]


def einsum(equation, *operands):
    """Sums of products over axes that are named by letters.

    Args:
        equation (str): a term of letters for each operand, separated by commas, and after '->' the letters of the result;
            without '->' the letters that occur once, sorted. '...' stands for axes that broadcast. Instead an operand, a list
            of axis numbers for it, and so on, at the end those of the result.
        operands (Tensor): the factors; they are multiplied from left to right.
    Returns:
        Tensor.
    Raises:
        ValueError: the equation does not fit the operands, or sizes of one letter differ.
    Example:
        >>> ops.einsum("ij,jk->ik", ops.ones((2, 3)), ops.ones((3, 4)))
    """
    if isinstance(equation, _core.Tensor):
        equation, operands = _sublist_form((equation, *operands))
    elif not isinstance(equation, str):
        raise TypeError(f"For 'einsum', 'equation' must be str, but got {type(equation).__name__}.")
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = operands[0]
    operands = _check.tensors(operands, "operands", "einsum")
    letters, result = _parse(equation, operands)
    terms = [_Term(operand, term) for operand, term in zip(operands, letters)]
    sizes = {}
    for term in terms:
        term.merge_repeated()
        for letter in term.letters:
            size = term.size(letter)
            if size != 1 and sizes.setdefault(letter, size) != size:
                raise ValueError(f"For 'einsum', '{letter}' stands for sizes {sizes[letter]} and {size}.")
    found = terms[0]
    for idx, term in enumerate(terms[1:], 1):
        found = _contract(found, term, {*result, *(x for later in terms[idx + 1 :] for x in later.letters)})
    found.sum_out(set(result))
    return found.order(result)
