"""Products with Jacobians and whole Jacobians: jvp, vjp, jacfwd, jacrev, linearize.

All stand on `Pullback`: a function is run once, and its tape is then used as often as needed. A pullback is linear in its
cotangents, and its own pullback is the product with the Jacobian itself, so forward-mode products need no rules of their own.
"""

from morel import _core
from morel.api import make_operator
from morel.ops.autograd import _is_variable, _positions, _weights, differentiate

__all__ = ["jacfwd", "jacrev", "jvp", "linearize", "vjp"]

_zeros_like, _stack = make_operator("zeros_like", "zeros_like"), make_operator("stack", "stack")


def _tensors(value):
    """The tensors of an output, depth first."""
    if isinstance(value, _core.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [found for item in value for found in _tensors(item)] if isinstance(value, (tuple, list)) else []


def _map_tensors(function, value):
    if isinstance(value, _core.Tensor):
        return function(value)
    if isinstance(value, dict):
        return {key: _map_tensors(function, item) for key, item in value.items()}
    return type(value)(_map_tensors(function, item) for item in value) if type(value) in (tuple, list) else value


def _outside(value):
    """What leaves to a caller who records nothing carries no tape along."""
    return value if _core.grad_depth() else _map_tensors(_core.detach, value)


class Pullback:
    """Runs ``fn(*inputs)`` once; a call with one cotangent for each tensor of the output gives the gradients at the inputs.

    With `has_aux` the output is the first of those that fn returns. `aux` holds the others: one as it is, several as a tuple.
    """

    def __init__(self, fn, inputs, has_aux, name):
        if _core.graph_active():
            raise NotImplementedError(f"'{name}' is not supported within jit yet; call it outside.")
        self._name = name

        def run(*variables):
            output = fn(*variables)
            if has_aux:
                if not isinstance(output, tuple) or len(output) < 2:
                    raise ValueError(
                        f"For '{name}' with has_aux=True, 'fn' must return a tuple of two outputs or more."
                    )
                output, *self.aux = output
            self._variables, self._output = variables, output
            # Nothing flows into what is returned, so that this run's own backward pass finds nothing to use up.
            return _map_tensors(_core.detach, output)

        _core.value_and_grad(run, [*range(len(inputs))], None, False, tuple(inputs), {})
        if has_aux:
            self.aux = _outside(self.aux[0] if len(self.aux) == 1 else tuple(self.aux))
        self.output = _outside(self._output)
        self.outputs = _tensors(self.output)

    def __call__(self, cotangents):
        for cotangent, output in zip(cotangents, self.outputs):
            if cotangent.dtype != output.dtype:
                raise TypeError(
                    f"For '{self._name}', a vector of dtype {cotangent.dtype} is given for a tensor of {output.dtype}."
                )
        depth = _core.pause_grad()
        _core.resume_grad(depth + 1)  # within a further scope a backward pass leaves the tape as it is
        try:
            found = _core.value_and_grad(lambda: self._output, [], self._variables, False, (), {}, tuple(cotangents))
        finally:
            _core.resume_grad(depth)
        return _outside(tuple(found[2]))


class Pushforward:
    """The product of fn's Jacobian with vectors in the space of its inputs, from fn's `Pullback`."""

    def __init__(self, pullback, inputs, name):
        self._inputs, self._name = inputs, name
        self._places = [idx for idx, output in enumerate(pullback.outputs) if _is_variable(output)]
        self._fixed = [_zeros_like(output) for output in pullback.outputs]
        self._transposed = Pullback(
            lambda *cotangents: pullback(self._filled(cotangents)),
            [self._fixed[idx] for idx in self._places],
            False,
            name,
        )

    def _filled(self, values):
        filled = list(self._fixed)
        for idx, value in zip(self._places, values):
            filled[idx] = value
        return filled

    def __call__(self, vectors):
        for vector, value in zip(vectors, self._inputs):
            if vector.shape != value.shape:
                raise ValueError(
                    f"For '{self._name}', a vector of shape {vector.shape} is given for an input of shape {value.shape}."
                )
        return self._filled(self._transposed(vectors))


def _check_function(fn, name):
    if not callable(fn):
        raise TypeError(f"For '{name}', 'fn' must be a function or a Cell, but got {type(fn).__name__}.")


def _checked_tensors(values, what, name):
    if isinstance(values, _core.Tensor):
        return (values,)
    if isinstance(values, (tuple, list)) and all(isinstance(value, _core.Tensor) for value in values):
        return tuple(values)
    raise TypeError(f"For '{name}', {what} must be a Tensor, or a tuple or list of Tensors, but got {values!r}.")


def _like(structure, tensors):
    remaining = iter(tensors)
    return _map_tensors(lambda _: next(remaining), structure)


def jvp(fn, inputs, v, has_aux=False):
    """The Jacobian of ``fn`` times a vector: how the output changes when the inputs move along v.

    Args:
        fn (function, Cell): takes tensors; returns a tensor or a tuple of tensors.
        inputs (Tensor, tuple[Tensor], list[Tensor]): where to differentiate; floating or complex.
        v (Tensor, tuple[Tensor], list[Tensor]): one vector of each input's shape and dtype.
        has_aux (bool): only the first output is differentiated, others are returned as they are.
    Returns:
        tuple: output, product (like the output); with ``has_aux`` also the other outputs, one as it is, several as a tuple.
    Raises:
        TypeError: inputs or v are no tensors, or of dtypes that do not go together. ValueError: v has another number or other
        shapes than the inputs.
    Example:
        >>> ms.jvp(lambda x: x * x, ms.Tensor([1., 2.]), ms.Tensor([1., 0.]))[1]
    """
    _check_function(fn, "jvp")
    inputs, vectors = _checked_tensors(inputs, "'inputs'", "jvp"), _checked_tensors(v, "'v'", "jvp")
    if len(inputs) != len(vectors):
        raise ValueError(f"For 'jvp', 'v' must hold {len(inputs)} tensors as 'inputs' does, but got {len(vectors)}.")
    pullback = Pullback(fn, inputs, has_aux, "jvp")
    product = _like(pullback.output, Pushforward(pullback, inputs, "jvp")(vectors))
    return (pullback.output, product, pullback.aux) if has_aux else (pullback.output, product)


def linearize(fn, inputs):
    """``fn`` at a point, and the linear function that it is near there.

    Args:
        fn (function, Cell): takes tensors; returns a tensor or a tuple of tensors.
        inputs (Tensor, tuple[Tensor], list[Tensor]): where to differentiate.
    Returns:
        tuple: output, function of one vector for each input that gives the product as :func:`jvp` does, without another run
        of fn.
    Raises:
        TypeError: inputs are no tensors.
    Example:
        >>> ms.ops.linearize(lambda x: x * x, ms.Tensor([1., 2.]))[1](ms.Tensor([1., 0.]))
    """
    _check_function(fn, "linearize")
    inputs = _checked_tensors(inputs, "'inputs'", "linearize")
    pullback = Pullback(fn, inputs, False, "linearize")
    push = Pushforward(pullback, inputs, "linearize")

    def product(*v):
        vectors = _checked_tensors(v[0] if len(v) == 1 else v, "the vector", "linearize")
        if len(inputs) != len(vectors):
            raise ValueError(f"For 'linearize', {len(inputs)} vectors are needed, but got {len(vectors)}.")
        return _like(pullback.output, push(vectors))

    return pullback.output, product


def _distinct(tensors):
    """The tensors without those that come again, and for each of `tensors` its place among them."""
    slots = {}
    places = [slots.setdefault(id(tensor), len(slots)) for tensor in tensors]
    return [tensors[places.index(slot)] for slot in range(len(slots))], places


def vjp(fn, *inputs, weights=None, has_aux=False):
    """``fn`` at a point, and the function that multiplies a vector with its Jacobian.

    Args:
        fn (function, Cell): takes tensors; returns a tensor or a tuple of tensors.
        inputs (Tensor): where to differentiate; floating or complex. One tensor object given twice is one variable.
        weights (Parameter, ParameterTuple, list, optional): parameters to differentiate at. With them fn runs again, with the
            same random numbers, for each product.
        has_aux (bool): only the first output is differentiated, others are returned as they are.
    Returns:
        tuple: output, function of one vector for each tensor of the output; with ``has_aux`` also the other outputs, one as it
        is, several as a tuple. The function returns a tuple with a gradient for each input, or with ``weights`` the pair of
        this tuple and the gradients of the weights: one for a Parameter, otherwise a tuple.
    Raises:
        TypeError: inputs are no tensors. ValueError: the number of vectors or their shapes differ from the output's.
    Example:
        >>> ms.vjp(lambda x: x * x, ms.Tensor([1., 2.]))[1](ms.Tensor([1., 1.]))
    """
    _check_function(fn, "vjp")
    inputs = _checked_tensors(inputs, "each input", "vjp")
    parameters, single_weight = _weights(weights, "vjp")
    state = _core.generator_state()
    variables, places = _distinct(inputs)
    pullback = Pullback(lambda *given: fn(*(given[place] for place in places)), variables, has_aux, "vjp")

    def gradients(*v):
        vectors = _checked_tensors(v[0] if len(v) == 1 else v, "the vector", "vjp")
        if len(vectors) != len(pullback.outputs):
            raise ValueError(f"For 'vjp', {len(pullback.outputs)} vectors are needed, but got {len(vectors)}.")
        if parameters is None:
            found = pullback(vectors)
            return tuple(found[place] for place in places)
        later = _core.generator_state()
        _core.set_generator_state(*state)
        try:
            _, by_input, by_weight = differentiate(
                fn, [*range(len(inputs))], parameters, has_aux, inputs, {}, tuple(vectors)
            )
        finally:
            _core.set_generator_state(*later)
        return tuple(by_input), by_weight[0] if single_weight else tuple(by_weight)

    return (pullback.output, gradients, pullback.aux) if has_aux else (pullback.output, gradients)


def _unit_vectors(tensors):
    """For each element of each tensor: vectors that are zero but for a one at that element."""
    fixed = [_zeros_like(tensor) for tensor in tensors]
    for idx, tensor in enumerate(tensors):
        for element in range(tensor.size):
            unit = _zeros_like(tensor).reshape((-1,))
            unit[element] = 1
            yield [*fixed[:idx], unit.reshape(tensor.shape), *fixed[idx + 1 :]]


def _jacobian_function(fn, grad_position, has_aux, name, jacobian):
    _check_function(fn, name)
    positions = _positions(grad_position, name)

    def compute(*args):
        if max(positions) >= len(args):
            raise ValueError(
                f"For '{name}', 'grad_position' must be in [0, {len(args)}) for {len(args)} arguments, but got "
                f"{grad_position}."
            )
        for position in positions:
            if not isinstance(args[position], _core.Tensor):
                raise TypeError(f"For '{name}', argument {position} must be a Tensor, but got {args[position]!r}.")

        def at_positions(*variables):
            filled = list(args)
            for position, variable in zip(positions, variables):
                filled[position] = variable
            return fn(*filled)

        inputs = [args[position] for position in positions]
        pullback = Pullback(at_positions, inputs, has_aux, name)
        blocks = jacobian(pullback, inputs, name)  # one list for each output, of one tensor for each input
        blocks = [row[0] if len(positions) == 1 else tuple(row) for row in blocks]
        found = blocks[0] if isinstance(pullback.output, _core.Tensor) else tuple(blocks)
        return (found, pullback.aux) if has_aux else found

    return compute


def _by_columns(pullback, inputs, name):
    push = Pushforward(pullback, inputs, name)
    columns = [push(vectors) for vectors in _unit_vectors(inputs)]
    blocks = []
    for row, output in enumerate(pullback.outputs):
        first, blocks_of_row = 0, []
        for value in inputs:
            part = [column[row] for column in columns[first : first + value.size]]
            first += value.size
            shape = (*output.shape, *value.shape)
            blocks_of_row.append(_stack(part, -1).reshape(shape) if part else _empty_block(output, shape))
        blocks.append(blocks_of_row)
    return blocks


def _by_rows(pullback, inputs, name):
    rows, blocks = [pullback(vectors) for vectors in _unit_vectors(pullback.outputs)], []
    first = 0
    for output in pullback.outputs:
        part = rows[first : first + output.size]
        first += output.size
        shapes = [(*output.shape, *value.shape) for value in inputs]
        blocks.append(
            [
                _stack([row[idx] for row in part], 0).reshape(shape) if part else _empty_block(inputs[idx], shape)
                for idx, shape in enumerate(shapes)
            ]
        )
    return blocks


def _empty_block(like, shape):
    return _zeros_like(like).reshape((-1,))[:0].reshape(shape)


def jacfwd(fn, grad_position=0, has_aux=False):
    """A function that computes the Jacobian of ``fn`` column by column: best where fn has fewer inputs than outputs.

    Args:
        fn (function, Cell): takes tensors; returns a tensor or a tuple of tensors. It runs once.
        grad_position (int, tuple[int]): arguments to differentiate at.
        has_aux (bool): only the first output is differentiated, others are returned as they are.
    Returns:
        function: (\\*args) -> Jacobian of shape (\\*output.shape, \\*argument.shape); a tuple of them for several positions, and a
        tuple of what one output gives for several outputs. With ``has_aux`` the pair of this and the other outputs.
    Raises:
        TypeError: ``grad_position`` is no int or tuple of ints, or an argument there no tensor. ValueError: a position that
        does not exist.
    Example:
        >>> ms.jacfwd(lambda x: x * x)(ms.Tensor([1., 2.]))
    """
    return _jacobian_function(fn, grad_position, has_aux, "jacfwd", _by_columns)


def jacrev(fn, grad_position=0, has_aux=False):
    """A function that computes the Jacobian of ``fn`` row by row: best where fn has fewer outputs than inputs.

    See :func:`jacfwd` for arguments and results.

    Example:
        >>> ms.jacrev(lambda x: (x * x).sum())(ms.Tensor([1., 2.]))
    """
    return _jacobian_function(fn, grad_position, has_aux, "jacrev", _by_rows)
