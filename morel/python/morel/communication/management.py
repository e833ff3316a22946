"""The names of morel.communication under their older home."""

from morel.communication import *
