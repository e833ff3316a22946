"""python -m morel.tools.pages FOLDER: writes the API pages, one for each family of operators, made from the entries."""

import re
import sys
from pathlib import Path

from morel import _core
from morel.api import load_table, make_operator
from morel.tools.op import public_names

GRADIENTS = {
    "none": "no gradient",
    "rule": "gradient by a rule; forward mode from it",
    "derivative": "gradient and forward mode from the derivative",
    "compose": "gradient and forward mode from what it is composed of",
}
COMPUTED = {
    "loop": "element by element; fused with neighbours in compiled functions",
    "rows": "along one axis; fused with neighbours in compiled functions",
    "reduce": "reduction",
    "view": "a view of its input",
    "kernel": "kernel of its own",
    "compose": "composed of other operators",
}
# How batches (vmap) and parts (sharding) of a call come about.
SOURCES = {
    "derived": "derived from its kind or its axes",
    "compose": "those of what it is composed of",
    "rule": "by a rule",
    "loop": "one by one",
}
# dtypes by the sets that entries usually name.
DTYPES = {
    "halves": ("Float16", "BFloat16"),
    "floats": ("Float16", "BFloat16", "Float32", "Float64"),
    "integers": ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
    "complex": ("Complex64", "Complex128"),
    "bool": ("Bool",),
}


def dtypes_in_words(dtypes):
    """ "floats, integers": whole sets by their names, the rest one by one."""
    left, out = [str(dtype) for dtype in dtypes], []
    for name in ("floats", "integers", "complex", "bool"):
        if set(DTYPES[name]) <= set(left):
            out.append(name)
            left = [dtype for dtype in left if dtype not in DTYPES[name]]
    return ", ".join(out + left)


def signatures(operator):
    """["ops.sum(input, dim=None, ...)", ...]: one line for each public name, each signature once."""
    specs, out = {f"ops.{operator}": operator}, {}
    for table, prefix in (("ops", "ops."), ("mint", "mint."), ("tensor", "Tensor.")):
        for rows in load_table(table).values():
            specs |= {prefix + name: spec for name, spec in rows.items() if spec.partition("(")[0].strip() == operator}
    for name, spec in specs.items():
        call = make_operator(name.rpartition(".")[2], spec)
        out.setdefault(getattr(call, "__wrapped__", call).__text_signature__, []).append(name)
    return [f"{', '.join(names)}{signature}" for signature, names in out.items()]


def section(name):
    """What a page says of one operator."""
    facts = _core.describe_operator(name)
    notes = [
        COMPUTED[facts["kind"]],
        GRADIENTS[facts["grad"]],
        *(
            f"{what}: {SOURCES[facts[key]]}"
            for what, key in (("vmap", "vmap"), ("sharding", "sharding"))
            if facts[key] in SOURCES
        ),
        "changes its first argument in place" if facts["in_place"] else "",
        "draws random numbers: the same for any number of threads" if facts["random"] else "",
        f"dtypes: {dtypes_in_words(facts['dtypes'])}",
        "ONNX: " + ", ".join(f"{onnx} from opset {since} on" for onnx, since, _ in facts["onnx"])
        if facts["onnx"]
        else "",
    ]
    primitives = [public for public in public_names(name) if re.match(r"ops\.[A-Z]", public)]
    if primitives:
        notes.append(f"as a class: {', '.join(primitives)}")
    place = re.sub(r"^.*?(?=morel/ops/)", "", facts["file"])
    return "\n".join(
        [
            f"## {name}",
            "```",
            *signatures(name),
            "```",
            facts["doc"].replace("<", "&lt;"),
            "",
            *(f"- {note}" for note in notes if note),
            f"- entry: {place}:{facts['line']}",
            "",
        ]
    )


def write(folder):
    """Writes a page for each family that has public operators, and their index; returns the pages."""
    families = {}
    for name in sorted(_core.public_operator_names()):
        families.setdefault(_core.describe_operator(name)["family"], []).append(name)
    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    for family, names in sorted(families.items()):
        pages.append(folder / f"{family}.md")
        text = f"# Operators: {family}\n\n" + "\n".join(map(section, names))
        pages[-1].write_text(text, encoding="utf-8")
    lines = [f"- [{page.stem}]({page.name}): {', '.join(families[page.stem])}" for page in pages]
    (folder / "README.md").write_text("# Operators by family\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return pages


if __name__ == "__main__":
    write(Path(sys.argv[1]))
