"""Mixed precision: which cells compute in a half type, and the training step with a loss scale."""

from morel.common import dtype as mstype

__all__ = ["auto_mixed_precision", "build_train_network", "custom_mixed_precision", "get_white_list", "get_black_list"]

_LEVELS = ("O0", "O1", "O2", "O3", "auto")


def _white_cells():
    from morel import nn

    return [
        nn.Conv1d,
        nn.Conv2d,
        nn.Conv3d,
        nn.Conv1dTranspose,
        nn.Conv2dTranspose,
        nn.Conv3dTranspose,
        nn.Dense,
        *(getattr(nn, name) for name in ("LSTMCell", "RNNCell", "GRUCell") if hasattr(nn, name)),
    ]


def _black_cells():
    from morel import nn

    return [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm]


def get_white_list():
    """The classes of cells that compute in the half type at level O1."""
    return _white_cells()


def get_black_list():
    """The classes of cells that keep computing in float32 at level O2."""
    return _black_cells()


def _cast_output(cell, dtype):
    """Makes `cell` return floating tensors as `dtype`."""
    from morel.nn._mixed_precision import cast_float
    from morel.ops import cast

    cell.register_forward_hook(lambda _, inputs, output: cast_float(output, dtype, cast))


def _matching(network, classes):
    """The cells of these classes, without those inside of others of them."""
    found = []

    def visit(cell):
        if type(cell) in classes:
            found.append(cell)
            return
        for child in cell.cells():
            visit(child)

    visit(network)
    return found


def _use_half_in(network, classes, dtype):
    for cell in _matching(network, classes):
        cell.to_float(dtype)
        _cast_output(cell, mstype.float32)


def _use_half_except(network, classes, dtype):
    network.to_float(dtype)
    for cell in _matching(network, classes):
        cell.to_float(mstype.float32)
        _cast_output(cell, dtype)
    _cast_output(network, mstype.float32)


def _check_half(dtype):
    if dtype not in (mstype.float16, mstype.bfloat16):
        raise ValueError(f"The dtype should be one of (mstype.float16, mstype.bfloat16), but got {dtype}.")


def auto_mixed_precision(network, amp_level="O0", dtype=mstype.float16):
    """Lets parts of a network compute in a half type. Parameters stay float32, and so do the outputs of the network.

    Args:
        network (Cell): changed in place.
        amp_level (str): ``"O0"``: nothing; ``"O1"`` and ``"auto"``: the cells of `get_white_list` in the half type; ``"O2"``: all
            but those of `get_black_list`; ``"O3"``: all.
        dtype (mindspore.dtype): float16 (default) or bfloat16.

    Returns:
        The network.

    Raises:
        TypeError: `network` is not a Cell.
        ValueError: unknown level or another dtype.
    """
    from morel.nn.cell import Cell

    if not isinstance(network, Cell):
        raise TypeError(f"For amp_level '{amp_level}', the network type should be Cell.")
    _check_half(dtype)
    if amp_level in ("O1", "auto"):
        _use_half_in(network, _white_cells(), dtype)
    elif amp_level == "O2":
        _use_half_except(network, _black_cells(), dtype)
    elif amp_level == "O3":
        _use_half_except(network, [], dtype)
    elif amp_level != "O0":
        raise ValueError(f"The amp level {amp_level} is not supported")
    return network


def custom_mixed_precision(network, *, white_list=None, black_list=None, dtype=mstype.float16):
    """Mixed precision with classes of one's own.

    Args:
        network (Cell): changed in place.
        white_list (list[type], optional): classes of cells that compute in the half type.
        black_list (list[type], optional): instead of `white_list`: classes that do not, while all others do.
        dtype (mindspore.dtype): float16 (default) or bfloat16.

    Returns:
        The network.
    """
    from morel.nn.cell import Cell

    if not isinstance(network, Cell):
        raise TypeError(f"The network type should be Cell, but got {type(network)}.")
    if white_list is None and black_list is None:
        raise ValueError("For custom_mixed_precision, one of white_list and black_list must be provided.")
    if white_list is not None and black_list is not None:
        raise ValueError(
            "For custom_mixed_precision, the white_list or black_list cannot be provided at the same time, please "
            "provide one or the other."
        )
    _check_half(dtype)
    classes = white_list if white_list is not None else black_list
    for cls in classes:
        if not isinstance(cls, type) or not issubclass(cls, Cell):
            raise NotImplementedError(
                f"For custom_mixed_precision, only classes of cells are supported in the lists, but got {cls}."
            )
    (_use_half_in if white_list is not None else _use_half_except)(network, classes, dtype)
    return network


# Per level: the level of auto_mixed_precision, and whether the loss is scaled dynamically unless told otherwise.
_DEFAULT_SCALING = {"O0": False, "O1": False, "O2": True, "O3": False, "auto": False}


def build_train_network(network, optimizer, loss_fn=None, level="O0", boost_level="O0", **kwargs):
    """The cell that makes one training step.

    Args:
        network (Cell): the network.
        optimizer (Optimizer): updates its parameters.
        loss_fn (Cell, optional): compares outputs with labels. Default: the network's output is the loss.
        level (str): as in `auto_mixed_precision`; ``"O2"`` also scales the loss dynamically.
        boost_level (str): only ``"O0"``.
        kwargs: `loss_scale_manager` (LossScaleManager or ``None``), `keep_batchnorm_fp32` (bool), `cast_model_type`.

    Returns:
        A TrainOneStepCell, or a TrainOneStepWithLossScaleCell.
    """
    from morel import nn

    if not isinstance(network, nn.Cell):
        raise TypeError(f"The type of 'network' should be 'Cell', but got type '{type(network).__name__}'.")
    if not isinstance(optimizer, nn.Optimizer):
        raise TypeError(
            f"The type of 'optimizer' should be one of '['Optimizer', 'FreezeOpt']', but got type "
            f"'{type(optimizer).__name__}'."
        )
    if level not in _LEVELS:
        raise ValueError(f"The 'level' should be in : {list(_LEVELS)}, but got {level}.")
    if boost_level != "O0":
        raise NotImplementedError(f"boost_level '{boost_level}' is not supported; use 'O0'.")
    wrong = sorted(set(kwargs) - {"loss_scale_manager", "keep_batchnorm_fp32", "cast_model_type"})
    if wrong:
        raise ValueError(f"Unsupported arg '{wrong[0]}'")
    if level != "O0":
        if kwargs.get("keep_batchnorm_fp32") is False and level == "O2":
            level = "O3"
        elif kwargs.get("keep_batchnorm_fp32") and level == "O3":
            level = "O2"
        auto_mixed_precision(network, level)
    manager = kwargs.get("loss_scale_manager", _default_manager(level))
    if loss_fn is not None:
        network = nn.WithLossCell(network, loss_fn)
    return _train_cell(network, optimizer, manager)


def _default_manager(level):
    from morel.train.loss_scale_manager import DynamicLossScaleManager

    return DynamicLossScaleManager() if _DEFAULT_SCALING[level] else None


def _train_cell(network, optimizer, manager):
    from morel import nn

    if manager is None:
        return nn.TrainOneStepCell(network, optimizer).set_train()
    update_cell = manager.get_update_cell()
    if update_cell is not None:
        return nn.TrainOneStepWithLossScaleCell(network, optimizer, update_cell).set_train()
    return nn.TrainOneStepCell(network, optimizer, float(manager.get_loss_scale())).set_train()
