"""Checks the includes of morel/ against tools/layers.toml, and that every folder has a README.

Run by `./m lint`. A problem is a line `file:line: text`.
"""

import graphlib
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SKIPPED = {"__pycache__", "bind", "c", "llvm"}  # no README of their own below these


def folder_of(path: Path, rows: dict) -> str:
    """The row of a file of morel/: its first folder, or two where these have a row of their own; "" for morel/morel.h,
    which includes all for C++ users."""
    parts = path.relative_to(ROOT / "morel").parts[:-1]
    two = "/".join(parts[:2])
    return two if two in rows else "/".join(parts[:1])


def sources(top: str = "morel") -> list[Path]:
    return sorted(path for path in (ROOT / top).rglob("*") if path.suffix in (".h", ".cc", ".inc"))


def starts_with(include: str, pattern: str) -> bool:
    return include == pattern or include.startswith(pattern)


def check_table(table: dict) -> list[str]:
    """The table must be without cycles, and name every folder that exists."""
    problems = []
    rows = {name: [other for other in row if other != "*"] for name, row in table["may_include"].items()}
    try:
        graphlib.TopologicalSorter(rows).prepare()
    except graphlib.CycleError as error:
        problems.append(f"tools/layers.toml: a cycle of folders: {' -> '.join(error.args[1])}")
    for folder in sorted(path.name for path in (ROOT / "morel").iterdir() if path.is_dir()):
        if folder not in rows and folder not in SKIPPED:
            problems.append(f"tools/layers.toml: folder morel/{folder} is missing")
    return problems


def check_include(table: dict, path: Path, quote: str, include: str) -> str | None:
    folder = folder_of(path, table["may_include"])
    if include.startswith("morel/"):
        target = folder_of(ROOT / include, table["may_include"])
        if target and folder:
            allowed = table["may_include"].get(folder, [])
            if target != folder and target not in allowed and "*" not in allowed:
                return f"{folder}/ may not include {target}/ ({include})"
        if quote == "<":
            return f'write #include "{include}"'
        return None if (ROOT / include).exists() else f"no such file: {include}"
    if quote == '"':
        if path.parent.relative_to(ROOT / "morel").as_posix() in table["standalone"]["folders"]:
            return None if (path.parent / include).exists() else f"no such file: {include}"
        return f'own headers are included as "morel/folder/file.h", not "{include}"'
    inside = path.relative_to(ROOT / "morel").as_posix()
    for pattern, folders in table["only_in"].items():
        if starts_with(include, pattern) and not any(inside.startswith(name + "/") for name in folders):
            return f"<{include}> belongs in {' or '.join(folders)} only"
    if path.suffix == ".h" and any(starts_with(include, p) for p in table["source_files_only"]["includes"]):
        return f"<{include}> is too heavy for a header; include it in a .cc file"
    return None


def check_includes(table: dict) -> list[str]:
    problems = []
    for path in sources():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = INCLUDE.match(line)
            problem = found and check_include(table, path, found[1], found[2])
            if problem:
                problems.append(f"{path.relative_to(ROOT)}:{number}: {problem}")
    return problems


def check_readmes() -> list[str]:
    folders = [path for path in (ROOT / "morel").iterdir() if path.is_dir() and path.name not in SKIPPED]
    folders += [ROOT / name for name in ("bench", "docs", "examples", "tests", "tools")]
    return [f"{path.relative_to(ROOT)}: no README.md" for path in sorted(folders) if not (path / "README.md").exists()]


def check() -> list[str]:
    table = tomllib.loads((ROOT / "tools/layers.toml").read_text())
    return check_table(table) + check_includes(table) + check_readmes()


if __name__ == "__main__":
    found = check()
    print(*found, sep="\n")
    raise SystemExit(1 if found else 0)
