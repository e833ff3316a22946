"""Wishes about compilation that scripts set; none changes values."""

RECURSIVE_EVAL = 0
