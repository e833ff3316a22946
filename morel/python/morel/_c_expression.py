"""Names of MindSpore's native module that scripts use."""

import types

from morel.common import typing
from morel.common.tensor import Tensor

__all__ = ["TensorPy", "security", "typing"]

TensorPy = Tensor
# Builds of MindSpore can leave out what writes files; Morel has one build.
security = types.SimpleNamespace(enable_security=lambda: False)
