"""How long a training step takes to compile, stage by stage, against the depth of the model: a GPT of small width.

Every depth is compiled in processes of its own, with an empty cache of kernels on disk; figures are minima over rounds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import report

DEPTHS = (1, 2, 4, 8, 12, 24, 48)
# Small: what is measured is the compiler, whose work does not depend on sizes.
SIZES = {"VOCABULARY": 256, "WIDTH": 64, "HEADS": 2, "HEAD_SIZE": 32, "SEQUENCE": 16, "GPT_BATCH": 2}
PASSES = ("simplify", "fold", "expand", "fuse", "schedule", "recompute")  # transform/passes.cc
STAGES = ("front end", "gradient", *PASSES, "executor", "kernels, first run")
COLOURS = (
    *("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860"),
    *("#64b5cd", "#da8bc3", "#ccb974", "#b0b0b0"),
)
PICTURE = Path(__file__).parent.parent / "docs" / "compile_time.svg"


def measure(depth: int) -> dict[str, float]:
    """Seconds of each stage in this process, and the number of nodes."""
    import models

    for name, size in SIZES.items():
        setattr(models, name, size)
    models.LAYERS = depth
    models.GPT.batch = SIZES["GPT_BATCH"]
    from cases import CASES
    from frameworks.mindspore_api import Morel
    from morel.compiler import CompiledFunction

    from morel import _core

    seconds = dict.fromkeys(STAGES, 0.0)

    def timed(owner, name, add):
        inner = getattr(owner, name)

        def call(*args, **kwargs):
            began = time.perf_counter()
            result = inner(*args, **kwargs)
            add(time.perf_counter() - began, result, args)
            return result

        setattr(owner, name, call)

    def compiled(_, stages, args):
        assert stages.keys() <= seconds.keys(), stages
        seconds.update(stages)
        seconds["nodes"] = args[0].num_nodes

    def front_end(total, _result, _args):
        seconds["front end"] = total - sum(seconds[stage] for stage in STAGES)

    timed(_core, "graph_gradients", lambda total, _, __: seconds.update(gradient=total))
    timed(_core.Graph, "compile", compiled)
    timed(CompiledFunction, "_compile", front_end)
    adapter = Morel("jit", 1)
    step = adapter.train_gpt(CASES["train_gpt"].make_inputs())

    def once():
        began = time.perf_counter()
        step()
        return time.perf_counter() - began

    first = once()
    compiling = sum(seconds[stage] for stage in STAGES)
    seconds["kernels, first run"] = max(first - compiling - min(once() for _ in range(3)), 0.0)
    return seconds


def measured_apart(depth: int, rounds: int) -> dict[str, float]:
    best: dict[str, float] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            out = subprocess.run(
                [sys.executable, __file__, "--depth", str(depth)],
                env=os.environ | {"MOREL_CACHE_DIR": folder, "MOREL_JIT": "now"},
                cwd=folder,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        found = json.loads(out)
        best = {name: min(value, best.get(name, value)) for name, value in found.items()}
    return best


def table(rows: dict[int, dict[str, float]]) -> str:
    """Milliseconds; the last column is the total for each layer beyond the depth above it."""
    lines = [
        "| layers | nodes | " + " | ".join(STAGES) + " | total | each further layer |",
        "|---|---|" + "---|" * (len(STAGES) + 2),
    ]
    before = None
    for depth, row in rows.items():
        total = sum(row[stage] for stage in STAGES)
        further = report.EMPTY if before is None else report.figure(1e3 * (total - before[1]) / (depth - before[0]))
        cells = [str(depth), f"{row['nodes']:.0f}", *(report.figure(1e3 * row[stage]) for stage in STAGES)]
        lines.append("| " + " | ".join([*cells, report.figure(1e3 * total), further]) + " |")
        before = depth, total
    return "\n".join(lines)


def picture(rows: dict[int, dict[str, float]]) -> str:
    """Stacked areas, one for each stage: straight lines where the time is linear in the depth."""
    width, height, left, bottom, right, top = 720, 400, 60, 40, 170, 20
    depths = list(rows)
    totals = [sum(row[stage] for stage in STAGES) for row in rows.values()]
    across, up = (width - left - right) / max(depths), (height - bottom - top) / max(totals)

    def point(depth, seconds):
        return f"{left + depth * across:.1f},{height - bottom - seconds * up:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    below = dict.fromkeys(depths, 0.0)
    for i, (stage, colour) in enumerate(zip(STAGES, COLOURS)):
        above = {depth: below[depth] + rows[depth][stage] for depth in depths}
        outline = [point(d, above[d]) for d in depths] + [point(d, below[d]) for d in reversed(depths)]
        parts.append(f'<polygon points="{" ".join(outline)}" fill="{colour}"/>')
        line = height - bottom - 20 * i
        parts.append(f'<rect x="{width - right + 15}" y="{line - 11}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{width - right + 33}" y="{line}">{stage}</text>')
        below = above
    base, axis = height - bottom, 'stroke="black" fill="none"'
    parts.append(f'<path d="M{left},{top} V{base} H{width - right}" {axis}/>')
    for depth in depths[2:] if len(depths) > 4 else depths:
        parts.append(f'<text x="{left + depth * across:.1f}" y="{base + 16}" text-anchor="middle">{depth}</text>')
    for share in (0.25, 0.5, 0.75, 1):
        seconds = share * max(totals)
        y = base - seconds * up
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{report.figure(1e3 * seconds)}</text>')
    parts.append(f'<text x="{(left + width - right) / 2}" y="{height - 6}" text-anchor="middle">layers</text>')
    parts.append(f'<text x="4" y="{top - 6}">ms</text></svg>')
    return "\n".join(parts) + "\n"


def run(depths, rounds: int, update_docs: bool) -> None:
    rows = {}
    for depth in depths:
        rows[depth] = measured_apart(depth, rounds)
        print(f"{depth} layers done", file=sys.stderr, flush=True)
    print(table(rows))
    if update_docs:
        report.replace_section("compile time", "Milliseconds; the least of several processes.\n\n" + table(rows))
        PICTURE.write_text(picture(rows), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", type=int, required=True, help="measure this depth here and print JSON")
    print(json.dumps(measure(parser.parse_args().depth)))
