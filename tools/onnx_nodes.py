"""The node tests of onnx.backend.test, run by Morel's importer: `python tools/onnx_nodes.py [part of a name]`.

Prints how many ran and passed, which failed, and what was refused, by operator.
"""

import collections
import functools
import re
import sys
import warnings

import numpy as np

# Two steps from one number of the type to the next: what onnx's own runner allows bfloat16, where the expected values are
# rounded after every operator of a chain, Morel's once. float16 the same.
_TWO_STEPS = {"bfloat16": 2**-6, "float16": 2**-9}


@functools.cache
def cases():
    """All node tests."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_model_tests(kind="node")


@functools.cache
def operators():
    """{name of a test: the operator that it is about}; tests of a function written out are about that function."""
    plain = {case.name: case.model.graph.node[-1].op_type for case in cases()}
    return {name: plain.get(re.sub(r"_expanded(_ver\d+)?$", "", name), operator) for name, operator in plain.items()}


def run(case, jit):
    """None, or why a case fails; NotImplementedError where it is refused."""
    from morel.onnx import backend

    prepared = backend.prepare(case.model, jit=jit)
    for inputs, outputs in case.data_sets:
        actual = prepared.run(inputs)
        if len(actual) < len(outputs):
            return f"{len(actual)} outputs instead of {len(outputs)}"
        for mine, wanted in zip(actual, outputs):
            if isinstance(wanted, (list, dict)) or wanted is None:
                raise NotImplementedError("outputs that are no tensors")
            wanted = backend.as_array(wanted)
            if mine.dtype != wanted.dtype or mine.shape != wanted.shape:
                return f"{mine.dtype}{mine.shape} instead of {wanted.dtype}{wanted.shape}"
            rtol = max(case.rtol, _TWO_STEPS.get(mine.dtype.name, 0))
            with np.errstate(all="ignore"):
                exact = [
                    array.astype(np.float32) if array.dtype.name == "bfloat16" else array for array in (mine, wanted)
                ]
                same = np.allclose(*exact, rtol=rtol, atol=case.atol, equal_nan=True)
            if not same:
                return "other values"
    return None


class Result:
    """What became of each case: "passed", "refused" (with the reason) or "failed" (with what)."""

    def __init__(self, part=""):
        self.outcome = {}
        for case in cases():
            if part in case.name:
                self.outcome[case.name] = (operators()[case.name], *self.of(case))

    @staticmethod
    def of(case):
        for jit in (True, False):  # shapes that depend on values need the second
            try:
                problem = run(case, jit)
                return ("passed", "") if problem is None else ("failed", problem)
            except NotImplementedError as error:
                reason = str(error)
            except Exception as error:  # a failure is a result here
                return "failed", f"{type(error).__name__}: {error}"
        return "refused", reason

    def count(self, outcome, operators=None):
        return sum(
            kind == outcome and (operators is None or operator in operators)
            for operator, kind, _ in self.outcome.values()
        )

    def refused(self):
        """{operator: number of its tests that were refused}"""
        return dict(
            sorted(collections.Counter(op for op, kind, _ in self.outcome.values() if kind == "refused").items())
        )


def main(part=""):
    result = Result(part)
    for name, (operator, kind, reason) in sorted(result.outcome.items(), key=lambda item: item[1][1]):
        if kind != "passed":
            print(f"{kind:8} {operator:28} {name}: {' '.join(reason.split())[:200]}")
    print("refused:", ", ".join(f"{name} ({count})" for name, count in result.refused().items()))
    print({kind: result.count(kind) for kind in ("passed", "failed", "refused")}, "of", len(result.outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
