"""Products with Jacobians and whole Jacobians: jvp, vjp, jacfwd, jacrev, linearize.

All stand on `Trace`: a function is run once, and what it left behind (the tape, or nodes of the graph that is being built) is
then gone through backwards or forwards as often as needed.
"""

from morel import _core
from morel.api import make_operator
from morel.ops.autograd import _positions, _trained, _weights

__all__ = ["jacfwd", "jacrev", "jvp", "linearize", "vjp"]

_eye, _movedim, _stack = (make_operator(name, name) for name in ("eye", "movedim", "stack"))
_fresh, _zeros_like = (make_operator(name, name) for name in ("view_as_self", "zeros_like"))


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
    return value if _core.graph_active() or _core.grad_depth() else _map_tensors(_core.detach, value)


def _graph_depth():
    return _core.graph_depth() if _core.graph_active() else 0


def _call(fn, args):
    """A call of a function of the user, which is interpreted while a graph is built."""
    if not _core.graph_active():
        return fn(*args)
    from morel.compiler import call_in_graph

    return call_in_graph(fn, args)


class Trace:
    """Runs ``fn(*inputs)`` once; what moves at its inputs and outputs follows from that.

    With `has_aux` the output is the first of those that fn returns. `aux` holds the others: one as it is, several as a tuple.
    A trace for `push` is two gradient scopes deep, so that compiled functions run in PyNative mode there: the tape knows how
    to go through them backwards alone.
    """

    def __init__(self, fn, inputs, has_aux, name, pushes, weights=()):
        self._name, self._inputs, self._again = name, inputs, (fn, inputs, has_aux, name, pushes)
        self._depth, self._draws = _graph_depth(), False
        if self._depth:
            self._variables = [*map(_fresh, inputs), *weights]
            first = _core.graph_num_nodes()
            output = _call(fn, self._variables[: len(inputs)])
            self._draws = _core.graph_draws_since(first)
        else:
            self._variables, output = _core.trace(fn, inputs, weights, 2 if pushes else 1)
        if has_aux:
            if not isinstance(output, tuple) or len(output) < 2:
                raise ValueError(f"For '{name}' with has_aux=True, 'fn' must return a tuple of two outputs or more.")
            output, *aux = output
            self.aux = _outside(aux[0] if len(aux) == 1 else tuple(aux))
        self._outputs = _tensors(output)
        self.output = _outside(output)
        self.outputs = _tensors(self.output)

    def pull(self, cotangents):
        """The gradients at the inputs, then at the weights, for one cotangent of each tensor of the output."""
        self._check(cotangents, self.outputs, "a tensor")
        pull = _core.graph_gradients if self._depth else _core.pull_back
        return _outside(tuple(pull(self._outputs, [*cotangents], self._variables)))

    def push(self, tangents):
        """How each tensor of the output moves for one tangent of each input."""
        self._check(tangents, self._inputs, "an input")
        push = _core.graph_tangents if self._depth else _core.push_forward
        return _outside(tuple(push(self._outputs, self._variables, tangents)))

    def at_each(self, kind, vectors, like):
        """The products ("pull" or "push") with each row of the stacked vectors, stacked; they are like the tensors `like`.

        In a graph they are one batch: the function runs again beside it, for one example, and what does not depend on the
        vectors is computed once. Not where it draws random numbers, of which there would be others.
        """
        if self._depth and not self._draws:
            from morel.ops.vectorisation import vmap

            try:
                return vmap(lambda *rows: getattr(Trace(*self._again), kind)(rows))(*vectors)
            except NotImplementedError:  # functions that call themselves, changes of what is outside
                pass
        found = [getattr(self, kind)([rows[idx] for rows in vectors]) for idx in range(vectors[0].shape[0])]
        if not found:
            return [_zeros_like(tensor).reshape((-1,))[:0].reshape((0, *tensor.shape)) for tensor in like]
        return [_stack(list(part), 0) for part in zip(*found)]

    def _check(self, vectors, of, what):
        for vector, value in zip(vectors, of):
            if tuple(vector.shape) != tuple(value.shape):
                raise ValueError(
                    f"For '{self._name}', a vector of shape {vector.shape} is given for {what} of shape {value.shape}."
                )
            if vector.dtype != value.dtype:
                raise TypeError(
                    f"For '{self._name}', a vector of dtype {vector.dtype} is given for {what} of {value.dtype}."
                )
        if self._depth != _graph_depth():
            raise NotImplementedError(
                f"For '{self._name}', the product is taken in another 'if', 'while' or compiled function than the function "
                "was run in, which is not supported."
            )


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
    trace = Trace(fn, inputs, has_aux, "jvp", pushes=True)
    product = _like(trace.output, trace.push(vectors))
    return (trace.output, product, trace.aux) if has_aux else (trace.output, product)


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
    trace = Trace(fn, inputs, False, "linearize", pushes=True)

    def product(*v):
        vectors = _checked_tensors(v[0] if len(v) == 1 else v, "the vector", "linearize")
        if len(inputs) != len(vectors):
            raise ValueError(f"For 'linearize', {len(inputs)} vectors are needed, but got {len(vectors)}.")
        return _like(trace.output, trace.push(vectors))

    return trace.output, product


def _at_places(fn, places):
    """fn of some variables, each at its places; fn itself where each has one."""
    return fn if places == [*range(len(places))] else lambda *given: _call(fn, [given[place] for place in places])


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
        weights (Parameter, ParameterTuple, list, optional): parameters to differentiate at.
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
    trained = [*filter(_trained, parameters or ())]
    variables, places = _distinct(inputs)
    trace = Trace(_at_places(fn, places), variables, has_aux, "vjp", False, trained)

    def gradients(*v):
        vectors = _checked_tensors(v[0] if len(v) == 1 else v, "the vector", "vjp")
        if len(vectors) != len(trace.outputs):
            raise ValueError(f"For 'vjp', {len(trace.outputs)} vectors are needed, but got {len(vectors)}.")
        found = trace.pull(vectors)
        by_input = tuple(found[place] for place in places)
        if parameters is None:
            return by_input
        known = {id(weight): gradient for weight, gradient in zip(trained, found[len(variables) :])}
        by_weight = [known[id(weight)] if id(weight) in known else _zeros_like(weight) for weight in parameters]
        return by_input, by_weight[0] if single_weight else tuple(by_weight)

    return (trace.output, gradients, trace.aux) if has_aux else (trace.output, gradients)


def _unit_vectors(tensors):
    """For each tensor: one for each element of all of them, stacked; zero but for a one at that element."""
    total, first, out = sum(tensor.size for tensor in tensors), 0, []
    for tensor in tensors:
        with _core.DeviceScope(tensor.device):
            units = _eye(total, total, tensor.dtype)[:, first : first + tensor.size]
        out.append(units.reshape((total, *tensor.shape)))
        first += tensor.size
    return out


def _pieces(stacked, tensors):
    """The rows that belong to each tensor, as an axis for each of its axes."""
    first, out = 0, []
    for tensor in tensors:
        rows = stacked[first : first + tensor.size]
        out.append(rows.reshape((*tensor.shape, *stacked.shape[1:])))
        first += tensor.size
    return out


def _check_real(tensor, what, name):
    if tensor.is_complex():
        raise TypeError(
            f"For '{name}', {what} must be real, but is of {tensor.dtype}: a function of complex numbers has no one Jacobian; use "
            "'jvp' or 'vjp'."
        )


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
            _check_real(args[position], f"argument {position}", name)

        def at_positions(*variables):
            filled = list(args)
            for position, variable in zip(positions, variables):
                filled[position] = variable
            return _call(fn, filled)

        inputs = [args[position] for position in positions]
        trace = Trace(at_positions, inputs, has_aux, name, jacobian is _by_columns)
        for output in trace.outputs:
            _check_real(output, "the output", name)
        blocks = jacobian(trace, inputs)  # one list for each output, of one tensor for each input
        blocks = [row[0] if len(positions) == 1 else tuple(row) for row in blocks]
        found = _like(trace.output, blocks)
        return (found, trace.aux) if has_aux else found

    return compute


def _by_columns(trace, inputs):
    columns = trace.at_each("push", _unit_vectors(inputs), trace.outputs)
    return [
        [
            _movedim(piece, [*range(value.ndim)], [*range(-value.ndim, 0)])
            for value, piece in zip(inputs, _pieces(stacked, inputs))
        ]
        for stacked in columns
    ]


def _by_rows(trace, inputs):
    rows = trace.at_each("pull", _unit_vectors(trace.outputs), inputs)
    return [list(row) for row in zip(*(_pieces(stacked, trace.outputs) for stacked in rows))]


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
        TypeError: ``grad_position`` is no int or tuple of ints, an argument there no tensor, or something complex. ValueError:
        a position that does not exist.
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
