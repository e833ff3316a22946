"""morel.mint.distributed: collective operations in PyTorch's form, which write into the tensors they are given."""

from morel.mint.distributed.distributed import *
from morel.mint.distributed.distributed import __all__
