"""What the layers of `mint.nn` share."""

from morel.nn.cell import Cell


class InplaceActivation(Cell):
    """An activation that may overwrite its input; a subclass defines `_compute`."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def _compute(self, input):
        raise NotImplementedError

    def construct(self, input):
        output = self._compute(input)
        return input.copy_(output) if self.inplace else output
