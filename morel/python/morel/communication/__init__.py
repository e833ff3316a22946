"""Groups of processes, and the collective operations of scripts (comm_func)."""

from morel.communication.management import *
from morel.communication.management import __all__
