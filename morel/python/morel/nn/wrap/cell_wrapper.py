"""Cells around a network: with a loss, with gradients, with an optimizer."""

from morel import ops
from morel._core import Tensor
from morel.common.parameter import Parameter, ParameterTuple
from morel.context import ParallelMode, get_auto_parallel_context
from morel.nn.cell import Cell
from morel.nn.layer.basic import Identity
from morel.nn.wrap.grad_reducer import DistributedGradReducer

__all__ = [
    "WithLossCell",
    "WithGradCell",
    "WithEvalCell",
    "ForwardValueAndGrad",
    "TrainOneStepCell",
    "GradAccumulationCell",
    "ParameterUpdate",
]


class WithLossCell(Cell):
    """A network and its loss: ``loss_fn(backbone(data), label)``.

    Args:
        backbone (Cell): the network.
        loss_fn (Cell): the loss.

    Inputs:
        - **data** (Tensor) - input of the network.
        - **label** (Tensor) - second input of the loss.

    Outputs:
        What the loss gives.
    """

    def __init__(self, backbone, loss_fn):
        super().__init__(auto_prefix=False)
        self._backbone = backbone
        self._loss_fn = loss_fn

    def construct(self, data, label):
        return self._loss_fn(self._backbone(data), label)

    @property
    def backbone_network(self):
        """The network."""
        return self._backbone


class WithEvalCell(Cell):
    """Loss, output and label, as metrics want them.

    Args:
        network (Cell): the network.
        loss_fn (Cell): the loss.
        add_cast_fp32 (bool): cast output and label to float32 first. Default ``False``.

    Inputs:
        - **data** (Tensor) - input of the network.
        - **label** (Tensor) - second input of the loss.

    Outputs:
        The tuple (loss, output, label).
    """

    def __init__(self, network, loss_fn, add_cast_fp32=False):
        super().__init__(auto_prefix=False)
        if not isinstance(add_cast_fp32, bool):
            raise TypeError(
                f"For 'WithEvalCell', 'add_cast_fp32' must be bool, but got {type(add_cast_fp32).__name__}."
            )
        self._network = network
        self._loss_fn = loss_fn
        self.add_cast_fp32 = add_cast_fp32

    def construct(self, data, label):
        output = self._network(data)
        if self.add_cast_fp32:
            from morel.common import dtype as mstype

            label = label.astype(mstype.float32) if label.dtype == mstype.float16 else label
            output = output.astype(mstype.float32)
        return self._loss_fn(output, label), output, label


class WithGradCell(Cell):
    """The gradients of a network's trainable parameters.

    Args:
        network (Cell): the network.
        loss_fn (Cell): the loss; ``None`` if the network gives the loss itself. Default ``None``.
        sens (Union[None, Tensor, Number]): factor of the gradients. Default ``None``: 1.

    Outputs:
        tuple[Tensor], in the order of ``network.trainable_params()``.
    """

    def __init__(self, network, loss_fn=None, sens=None):
        super().__init__(auto_prefix=False)
        self.network = network
        self.loss_fn = loss_fn
        self.weights = ParameterTuple(network.trainable_params())
        self.sens = sens
        self.grad = ops.GradOperation(get_by_list=True, sens_param=sens is not None)
        self.network_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)
        self.network_with_loss.set_train()

    def construct(self, *inputs):
        return loss_and_gradients(self.network_with_loss, self.weights, inputs, self.sens)[1]


def loss_and_gradients(network, weights, inputs, sens=None):
    """(output of the network, gradients at the weights); with `sens` the gradients of ``sens * output``."""
    if sens is None:
        return ops.value_and_grad(network, None, weights)(*inputs)

    def scaled(*args):
        loss = network(*args)
        factor = sens.astype(loss.dtype) if isinstance(sens, Tensor) else sens
        return loss * factor, loss

    (_, loss), gradients = ops.value_and_grad(scaled, None, weights, has_aux=True)(*inputs)
    return loss, gradients


class ForwardValueAndGrad(Cell):
    """Output and gradients of a network.

    Args:
        network (Union[Cell, Function]): the network.
        weights (Union[ParameterTuple, tuple, list]): for `get_by_list`. Default ``None``.
        get_all (bool): gradients of all inputs, not only of the first. Default ``False``.
        get_by_list (bool): gradients of `weights`. Default ``False``.
        sens_param (bool): the last input is the sensitivity of the output. Default ``False``.

    Outputs:
        The tuple (output, gradients).

    Raises:
        TypeError: an argument has the wrong type.
    """

    def __init__(self, network, weights=None, get_all=False, get_by_list=False, sens_param=False):
        super().__init__(auto_prefix=False)
        if not callable(network):
            raise TypeError(
                f"For 'ForwardValueAndGrad', the argument 'network' must be cell, function type or method "
                f"type, but got '{type(network)}'."
            )
        for name, value in (("get_all", get_all), ("get_by_list", get_by_list)):
            if not isinstance(value, bool):
                raise TypeError(
                    f"For 'ForwardValueAndGrad', the type of '{name}' must be bool, but got '{type(value)}'."
                )
        if get_by_list and not isinstance(weights, (tuple, list)):
            raise TypeError(
                f"For 'ForwardValueAndGrad', when 'get_by_list' is set to True, the argument 'weights' "
                f"must be Parameters array, but got '{type(weights)}'."
            )
        self.network = network
        if isinstance(network, Cell):
            network.set_grad()
        self.weights = weights
        self.get_all = get_all
        self.get_by_list = get_by_list
        self.sens_param = sens_param
        self.grad = ops.GradOperation(get_all=get_all, get_by_list=get_by_list, sens_param=sens_param)

    def construct(self, *inputs):
        kept = []

        def forward(*args):
            output = self.network(*args)
            kept.append(output)
            return output

        gradients = self.grad(forward, self.weights) if self.get_by_list else self.grad(forward)
        found = gradients(*inputs)
        return kept[0], found


class TrainOneStepCell(Cell):
    """One training step: loss, gradients, update.

    Args:
        network (Cell): gives the loss.
        optimizer (Union[Cell]): updates the parameters.
        sens (numbers.Number): factor of the gradients, the loss scale. Default ``None``: 1.
        return_grad (bool): also return the gradients by parameter name. Default ``False``.

    Inputs:
        - **inputs** (tuple[Tensor]) - inputs of the network.

    Outputs:
        The loss, or (loss, {name: gradient}).

    Raises:
        ValueError: `sens` is 0.

    Example:
        >>> import numpy as np
        >>> from morel import nn, Tensor
        >>> net = nn.Dense(2, 1)
        >>> optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
        >>> step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
        >>> step.set_train()(Tensor(np.ones((4, 2), np.float32)), Tensor(np.ones((4, 1), np.float32))).shape
        ()
    """

    def __init__(self, network, optimizer, sens=None, return_grad=False):
        super().__init__(auto_prefix=False)
        if sens is not None and not isinstance(sens, Tensor) and sens == 0:
            raise ValueError("For 'TrainOneStepCell', the input argument of 'sens' can not be 0.")
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.grad = ops.GradOperation(get_by_list=True, sens_param=True)
        self.grad_no_sens = ops.GradOperation(get_by_list=True)
        self.sense_flag = sens is not None
        self.sens = 1.0 if sens is None else sens
        self.return_grad = return_grad
        mode = get_auto_parallel_context("parallel_mode")
        self.reducer_flag = mode in (ParallelMode.DATA_PARALLEL, ParallelMode.HYBRID_PARALLEL)
        self.grad_reducer = DistributedGradReducer(self.weights) if self.reducer_flag else Identity()

    def construct(self, *inputs):
        loss, gradients = loss_and_gradients(self.network, self.weights, inputs, self.sens if self.sense_flag else None)
        gradients = self.grad_reducer(gradients)
        self.optimizer(gradients)
        if self.return_grad:
            return loss, {param.name: gradient for param, gradient in zip(self.weights, gradients)}
        return loss


class GradAccumulationCell(Cell):
    """Runs the network on `micro_size` equal parts of the batch and adds the results.

    Args:
        network (Cell): the network.
        micro_size (int): number of parts; divides the batch.
    """

    def __init__(self, network, micro_size):
        super().__init__(auto_prefix=False)
        if not isinstance(network, Cell):
            raise TypeError(
                f"For 'GradAccumulationCell', the argument 'network' must cell type, but got the type : "
                f"{type(network)}."
            )
        if isinstance(micro_size, bool) or not isinstance(micro_size, int):
            raise TypeError(
                f"For 'GradAccumulationCell', the argument 'micro_size' must be integer, but got the type "
                f": {type(micro_size)}."
            )
        if micro_size <= 0:
            raise ValueError(
                f"For 'GradAccumulationCell', the argument 'micro_size' must be large than 0, but got {micro_size}."
            )
        self.network = network
        self.micro_size = micro_size

    def construct(self, *inputs):
        total = None
        for part in range(self.micro_size):
            chosen = []
            for value in inputs:
                size, rest = divmod(value.shape[0], self.micro_size)
                if rest:
                    raise ValueError(
                        f"For 'GradAccumulationCell', the 0th dimension of the inputs, {value.shape[0]}, "
                        f"must be divisible by {self.micro_size}."
                    )
                chosen.append(value[part * size : (part + 1) * size])
            output = self.network(*chosen)
            total = output if total is None else total + output
        return total


class ParameterUpdate(Cell):
    """Sets a parameter to its input.

    Args:
        param (Parameter): the parameter.

    Raises:
        TypeError: `param` is not a Parameter.
    """

    def __init__(self, param):
        super().__init__(auto_prefix=False)
        if not isinstance(param, Parameter):
            raise TypeError(f"For 'ParameterUpdate', 'param' must be 'Parameter', but got {type(param)}.")
        self.__dict__["_param"] = param

    def construct(self, x):
        self._param.set_data(x)
        return x
