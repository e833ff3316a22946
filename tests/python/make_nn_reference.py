"""Writes nn_reference.npz: what MindSpore 2.8 computes for nn_cases.py. Run it in MindSpore's own environment."""

import json
import os
import re

os.environ["GLOG_v"] = "4"

import mindspore as ms  # noqa: E402
import nn_cases  # noqa: E402
import nn_models  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, mint, nn, ops  # noqa: E402,F401


def set_values(cell, name):
    """Random parameters from the case, constant ones kept."""
    params = list(cell.get_parameters())
    for param, value in zip(params, nn_cases.fixed_values(name, [param.shape for param in params])):
        if param.requires_grad:
            param.set_data(Tensor(value))
    return params


def tensors(arrays):
    """One tensor per array; the same array gives the same tensor."""
    made = {}
    return [made.setdefault(id(array), Tensor(array)) for array in arrays]


def run_case(case, store):
    name = nn_cases.label(case)
    cell = eval(case[0])  # noqa: S307
    params = set_values(cell, case[0])
    arrays = nn_cases.inputs_of(case)
    places = [i for i, array in enumerate(arrays) if array.dtype == np.float32 and case[1:][i] not in (0, 1)]
    outputs = cell(*tensors(arrays))
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    for number, output in enumerate(outputs):
        store[f"{name}|out{number}"] = output.asnumpy().copy()
    for param in params:
        if not param.requires_grad:
            store[f"{name}|state {param.name}"] = param.asnumpy().copy()
    if 0 not in places or outputs[0].dtype != ms.float32 or case[0] in nn_cases.WRONG_GRADIENTS:
        return
    weights = nn_cases.generator("seed " + case[0]).standard_normal(outputs[0].shape).astype(np.float32)

    def scalar(*args):
        result = cell(*args)
        return ((result[0] if isinstance(result, tuple) else result) * Tensor(weights)).sum()

    trained = [param for param in params if param.requires_grad]
    same = any(isinstance(entry, int) for entry in case[1:])
    if same:
        inner = scalar
        scalar_args = tensors(arrays)[:1]

        def scalar(x):  # noqa: F811
            return inner(x, x, x)
    else:
        scalar_args = tensors(arrays)
    found = ms.grad(scalar, 0, trained or None)(*scalar_args)
    at_input, at_params = found if trained else (found, ())
    store[f"{name}|grad"] = at_input.asnumpy()
    for param, gradient in zip(trained, at_params):
        store[f"{name}|grad {param.name}"] = gradient.asnumpy()


def run_optimizer(text, store):
    net = nn.Dense(3, 4)
    params = set_values(net, text)
    optimizer = eval(text)  # noqa: S307
    rng = nn_cases.generator("gradients " + text)
    for _ in range(3):
        optimizer(tuple(Tensor(rng.standard_normal(param.shape).astype(np.float32)) for param in optimizer.parameters))
    for param in params:
        store[f"{text}|{param.name}"] = param.asnumpy().copy()


def structure(text):
    cell = eval(text)  # noqa: S307
    printed = re.sub(r" at 0x[0-9a-f]+", "", repr(cell)).replace("mindspore.", "")
    rows = [
        [name, param.name, list(param.shape), str(param.dtype), param.requires_grad]
        for name, param in cell.parameters_and_names()
    ]
    return {"repr": printed, "parameters": rows, "state": list(cell.state_dict())}


def attempt(function, what, *args):
    try:
        return function(*args)
    except Exception as error:  # noqa: BLE001  (what MindSpore's CPU device lacks)
        print("without reference:", what, type(error).__name__, str(error)[:60].replace("\n", " "))
        return None


def shortened(array):
    """Float32 with 14 bits of mantissa: enough for the comparison, and it compresses."""
    return ((np.ascontiguousarray(array).view(np.uint32) + 0x100) & np.uint32(0xFFFFFE00)).view(np.float32)


def main():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    store = {}
    for case in nn_cases.LAYERS + nn_cases.LOSSES + nn_cases.SCHEDULES:
        attempt(run_case, case[0], case, store)
    for text in nn_cases.OPTIMIZERS:
        attempt(run_optimizer, text, text, store)
    for text in nn_cases.LISTS:
        store[text] = np.array(eval(text))  # noqa: S307
    trained = {name: nn_models.train(name, ms, nn, ops, Tensor, ms.Parameter) for name in nn_models.NAMES}
    found = {text: attempt(structure, text, text) for text in nn_cases.STRUCTURES}
    arrays = [shortened(np.asarray(array, np.float32)) for array in store.values()]
    index = [[name, list(array.shape), str(array.dtype)] for name, array in store.items()]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nn_reference.npz")
    np.savez_compressed(
        path,
        values=np.concatenate([array.ravel() for array in arrays]),
        index=json.dumps(index),
        training=json.dumps(trained),
        structures=json.dumps({text: row for text, row in found.items() if row}),
    )
    print(len(store), "entries")


if __name__ == "__main__":
    main()
