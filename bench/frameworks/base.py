"""What the worker asks of a framework."""

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Inputs

Call = Callable[[], Any]


class Adapter:
    """One framework in one mode with a number of threads.

    A method named as a case takes the case's Inputs and returns the call to time; a framework without the method does
    not take part in the case. A call of a training case makes one step and returns the loss as a float.
    """

    def __init__(self, mode: str, threads: int):
        self.mode = mode
        self.threads = threads

    def build(self, case: str, inputs: Inputs) -> Call | None:
        method = getattr(self, case, None)
        return method(inputs) if method else None

    def sync(self, result: Any) -> None:
        """Waits until the result of a call is there."""

    def arrays(self, result: Any) -> list[np.ndarray]:
        """The result of a call as numpy arrays."""
        raise NotImplementedError
