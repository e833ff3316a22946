"""Are two frameworks' results of a case equal? Only then are they timed against each other."""

from pathlib import Path

import numpy as np


def load(path: Path) -> list[np.ndarray]:
    with np.load(path) as arrays:
        return [arrays[name] for name in arrays.files]


def difference(results: list[np.ndarray], reference: list[np.ndarray], tolerance: float) -> str | None:
    """What differs, or None. Each array may differ by `tolerance` times the reference's largest magnitude."""
    if len(results) != len(reference):
        return f"{len(results)} results where the reference has {len(reference)}"
    for i, (result, expected) in enumerate(zip(results, reference, strict=True)):
        # The numpy reference has fewer steps of a training case.
        if result.ndim == expected.ndim == 1 and result.size > expected.size:
            result = result[: expected.size]
        if result.shape != expected.shape:
            return f"result {i} has shape {result.shape}, the reference {expected.shape}"
        scale = np.abs(expected).max(initial=0.0) or 1.0
        error = np.abs(result.astype(np.float64) - expected).max(initial=0.0) / scale
        # A NaN fails too.
        if not error <= tolerance:
            return f"result {i} differs from the reference by {error:.2g} of its largest value, allowed {tolerance:g}"
    return None
