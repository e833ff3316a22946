"""`./m prove`: one operator entry, every consumer. Runs all consumers over a dozen operators chosen to hurt and prints what each of
them checked.

A consumer is a module of this folder with a function ``prove() -> {"cells": {operator: text}, "numbers": {name: number}}`` that
really runs the checks and raises where one fails. A text is what was checked, in a few words, or "- " and why it does not apply. It
runs in a process of its own, with ``morel``, ``prove`` and the tests' ``samples`` to import.
"""

# Broadcast, contraction, reduction, rows, a composite of several results, irregular access, windows, a list of operands, a
# result that has no gradient, a scan, random numbers, control flow, in place, views.
OPERATORS = (
    "add",
    "matmul",
    "sum",
    "softmax",
    "layer_norm",
    "gather",
    "conv2d",
    "concat",
    "topk",
    "cumsum",
    "dropout",
    "while/if",
    "scatter_add_",
    "split",
)
