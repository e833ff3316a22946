"""python -m morel.tools.op NAME: everything that is known about one operator. Without a name: all of them, by family."""

import signal
import sys

from morel import _core
from morel.api import load_table


def public_names(operator):
    """["ops.add", "Tensor.add", ...]: the api rows that stand for an operator, and its own name."""
    names = []
    for table, prefix in (("ops", "ops."), ("mint", "mint."), ("tensor", "Tensor."), ("primitives", "ops.")):
        for rows in load_table(table).values():
            names += [prefix + name for name, spec in rows.items() if spec.partition("(")[0].strip() == operator]
    return list(dict.fromkeys(names))


def describe(name):
    """The text for one operator; None where there is none of this name."""
    if name not in _core.operator_names():
        return None
    facts = _core.describe_operator(name)
    public = public_names(name)
    if not facts["hidden"] and f"ops.{name}" not in public:
        public.insert(0, f"ops.{name}")
    lines = [
        f"{name}({facts['args']})",
        f"    {facts['doc']}",
        "",
        f"defined    {facts['file']}:{facts['line']} (family {facts['family']}, version {facts['version']})",
        f"computed   {facts['kind']}"
        + (", in place" if facts["in_place"] else "")
        + (", random" if facts["random"] else ""),
        f"gradient   {facts['grad']}",
        f"batches    {facts['vmap']}; parts {facts['sharding']}",
        f"dtypes     {', '.join(str(dtype) for dtype in facts['dtypes'])}",
        f"public     {', '.join(public) or 'no: internal'}",
    ]
    if facts["axes"]:
        lines.append(f"axes       {facts['axes']}")
    for onnx_name, since, onnx_map in facts["onnx"]:
        lines.append(f"onnx       {onnx_name} (opset {since} on){': ' + onnx_map if onnx_map else ''}")
    loops = [entry for entry in _core.loop_names() if entry.startswith(name + ".")]
    if loops:
        lines.append(
            f"loops      {len(loops)} compiled ahead of time: {', '.join(loops[:6])}{', ...' if len(loops) > 6 else ''}"
        )
    return "\n".join(lines)


def main(arguments):
    """Prints; exit status 1 for an unknown name."""
    if not arguments:
        families = {}
        for name in _core.operator_names():
            families.setdefault(_core.describe_operator(name)["family"], []).append(name)
        for family, names in families.items():
            print(f"{family} ({len(names)}): {', '.join(names)}")
        return 0
    for name in arguments:
        text = describe(name)
        if text is None:
            import difflib

            close = difflib.get_close_matches(name, _core.operator_names())
            print(
                f"there is no operator '{name}'" + (f"; did you mean {', '.join(close)}?" if close else ""),
                file=sys.stderr,
            )
            return 1
        print(text)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader such as head may stop reading
    sys.exit(main(sys.argv[1:]))
