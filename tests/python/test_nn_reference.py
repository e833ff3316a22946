"""Layers, losses, schedules and optimizers against what MindSpore 2.8 computed (nn_reference.npz)."""

import json
import os
import re
from collections import OrderedDict  # noqa: F401  (used by the expressions)

import nn_cases
import numpy as np
import pytest

import morel as ms
from morel import Tensor, mint, nn, ops  # noqa: F401

# The reference keeps 14 bits of mantissa.
TOLERANCE = {"rtol": 3e-4, "atol": 2e-5}


def load_reference():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nn_reference.npz")
    with np.load(path) as file:
        values, index, structures = file["values"], json.loads(str(file["index"])), json.loads(str(file["structures"]))
    found, start = {}, 0
    for name, shape, dtype in index:
        count = int(np.prod(shape))
        found[name] = values[start : start + count].reshape(shape).astype(dtype)
        start += count
    return found, structures


REFERENCE, STRUCTURES = load_reference()


def compare(name, mine, tolerance=None):
    wanted = REFERENCE[name]
    assert mine.shape == wanted.shape and mine.dtype == wanted.dtype, name
    np.testing.assert_allclose(mine, wanted, err_msg=name, **(tolerance or TOLERANCE))


def set_values(cell, name):
    params = list(cell.get_parameters())
    for param, value in zip(params, nn_cases.fixed_values(name, [param.shape for param in params])):
        if param.requires_grad:
            param.set_data(Tensor(value))
    return params


def tensors(arrays):
    made = {}
    return [made.setdefault(id(array), Tensor(array)) for array in arrays]


CASES = [
    case
    for case in nn_cases.LAYERS + nn_cases.LOSSES + nn_cases.SCHEDULES
    if nn_cases.label(case) + "|out0" in REFERENCE
]


@pytest.mark.parametrize("case", CASES, ids=nn_cases.label)
def test_outputs_and_gradients(case):
    name = nn_cases.label(case)
    cell = eval(case[0])
    params = set_values(cell, case[0])
    arrays = nn_cases.inputs_of(case)
    outputs = cell(*tensors(arrays))
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    for number, output in enumerate(outputs):
        compare(f"{name}|out{number}", output.asnumpy())
    assert f"{name}|out{len(outputs)}" not in REFERENCE
    for param in params:
        if not param.requires_grad:
            compare(f"{name}|state {param.name}", param.asnumpy())
    if f"{name}|grad" not in REFERENCE:
        return
    weights = Tensor(nn_cases.generator("seed " + case[0]).standard_normal(outputs[0].shape).astype(np.float32))
    repeats = any(isinstance(entry, int) for entry in case[1:])

    def scalar(*args):
        result = cell(*(args * 3 if repeats else args))
        return ((result[0] if isinstance(result, tuple) else result) * weights).sum()

    trained = [param for param in params if param.requires_grad]
    args = tensors(arrays)[:1] if repeats else tensors(arrays)
    found = ms.grad(scalar, 0, trained or None)(*args)
    at_input, at_params = found if trained else (found, ())
    compare(f"{name}|grad", at_input.asnumpy())
    for param, gradient in zip(trained, at_params):
        compare(f"{name}|grad {param.name}", gradient.asnumpy())


@pytest.mark.parametrize("text", [text for text in nn_cases.OPTIMIZERS if text + "|weight" in REFERENCE])
def test_optimizer_steps(text):
    net = nn.Dense(3, 4)
    params = set_values(net, text)
    optimizer = eval(text)
    rng = nn_cases.generator("gradients " + text)
    for _ in range(3):
        optimizer(tuple(Tensor(rng.standard_normal(param.shape).astype(np.float32)) for param in optimizer.parameters))
    assert int(optimizer.global_step.asnumpy()[0]) == 3
    for param in params:
        # MindSpore's CPU kernels take approximate roots here: 5e-4 away from the formula in float64.
        compare(f"{text}|{param.name}", param.asnumpy(), {"rtol": 1.5e-3, "atol": 2e-5})


@pytest.mark.parametrize("text", nn_cases.LISTS)
def test_learning_rate_lists(text):
    np.testing.assert_allclose(np.array(eval(text)), REFERENCE[text], rtol=1e-4)


@pytest.mark.parametrize("text", nn_cases.STRUCTURES)
def test_structure(text):
    """Printed form; path, name, shape, dtype and trainability of the parameters; keys of the state dict."""
    wanted = STRUCTURES[text]
    cell = eval(text)
    printed = re.sub(r" at 0x[0-9a-f]+", "", repr(cell)).replace("morel.", "")
    assert printed == wanted["repr"]
    rows = [
        [name, param.name, list(param.shape), str(param.dtype), param.requires_grad]
        for name, param in cell.parameters_and_names()
    ]
    assert rows == wanted["parameters"]
    assert list(cell.state_dict()) == wanted["state"]
