"""Parallel training. Not there yet, but for what scripts of one process ask."""
