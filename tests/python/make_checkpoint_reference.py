"""Writes mindspore.ckpt and mindspore.safetensors into data/, or into the folder that is given. Run it in the environment of
MindSpore 2.8.0.
"""

import os
import sys

os.environ["GLOG_v"] = "4"

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402

NUMBERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64".split()


def entries():
    """One parameter of every dtype; the same values as in test_checkpoint.py."""
    values = np.arange(6, dtype=np.float32).reshape(2, 3) * 3
    made = {name: ms.Tensor(values).astype(getattr(ms, name)) for name in NUMBERS}
    made["bool_"] = ms.Tensor(values % 2 == 1)
    made["scalar"] = ms.Tensor(2.5, ms.float32)
    return [{"name": name, "data": tensor} for name, tensor in made.items()]


folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
more = {"epoch": 3, "rate": 0.25, "flag": True, "note": "Grüße"}
ms.save_checkpoint(entries(), os.path.join(folder, "mindspore.ckpt"), append_dict=more, crc_check=True)
ms.save_checkpoint(entries(), os.path.join(folder, "mindspore.safetensors"), format="safetensors")
for name in ("mindspore.ckpt", "mindspore.safetensors"):
    os.chmod(os.path.join(folder, name), 0o644)
print("written by MindSpore", ms.__version__)
