"""`./m lint` and `./m fmt`. Errors fail the lint; hints (sizes) are only printed."""

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import layers
from environment import ROOT, VENV, read_list, run

FILE_LINES = 800
FUNCTION_LINES = 60
PYTHON_FOLDERS = ["morel", "tests", "bench", "examples", "tools"]
CPP_FOLDERS = ["morel", "tests", "bench", "examples", "tools"]
NO_FUNCTION = re.compile(r"(inline )?(namespace|class|struct|union|enum|extern|constexpr|static const|const)\b")


def cpp_files() -> list[Path]:
    return [path for folder in CPP_FOLDERS for path in layers.sources(folder)]


def python_files() -> list[Path]:
    return sorted(path for folder in PYTHON_FOLDERS for path in (ROOT / folder).rglob("*.py"))


def relative(paths) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def ruff(*arguments: str, check: bool = True) -> int:
    return run([VENV / "bin/ruff", *arguments, "."], check=check)


def fmt() -> None:
    ruff("check", "--fix", "--quiet", check=False)
    ruff("format", "--quiet")
    files = relative(cpp_files())
    print(f"+ clang-format -i ({len(files)} files)")
    subprocess.run(["clang-format", "-i", *files], cwd=ROOT, check=True)


def check_clang_format() -> list[str]:
    files = relative(cpp_files())
    command = ["clang-format", "--dry-run", "--ferror-limit=1", *files]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stderr
    wrong = sorted(set(re.findall(r"^([^:\n]+):\d+:\d+: (?:warning|error)", shown, re.MULTILINE)))
    return [f"{name}: not formatted; run ./m fmt" for name in wrong]


def check_pins() -> list[str]:
    """pyproject.toml builds with the same versions as the checkout's virtual environment."""
    pins = set(read_list(ROOT / "tools/requirements.txt"))
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    return [f"pyproject.toml: {name} differs from tools/requirements.txt" for name in wanted if name not in pins]


def check_links() -> list[str]:
    """Relative links of the Markdown files lead somewhere."""
    problems = []
    files = [
        *ROOT.glob("*.md"),
        *(path for folder in [*PYTHON_FOLDERS, "docs"] for path in (ROOT / folder).rglob("*.md")),
    ]
    for path in sorted(files):
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose):
            if "://" not in target and not (path.parent / target).exists():
                problems.append(f"{path.relative_to(ROOT)}: the link to {target} leads nowhere")
    return problems


def long_cpp_functions(path: Path) -> list[tuple[int, int]]:
    """(first line, lines) of long functions at namespace level: a block that opens and closes at the left margin."""
    found = []
    start = None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if start is None and re.match(r"[A-Za-z].*\{$", line):
            if not NO_FUNCTION.match(line):
                start = number
        elif start is not None and line.startswith("}"):
            if number - start + 1 > FUNCTION_LINES and line == "}":
                found.append((start, number - start + 1))
            start = None
    return found


def long_python_functions(path: Path) -> list[tuple[int, int]]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    sizes = [(node.lineno, node.end_lineno - node.lineno + 1)
             for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, functions)]  # fmt: skip
    return [(line, size) for line, size in sizes if size > FUNCTION_LINES]


def hints() -> list[str]:
    out = []
    for path in cpp_files() + python_files():
        name = path.relative_to(ROOT)
        size = path.read_text().count("\n")
        if size >= FILE_LINES:
            out.append(f"hint: {name}: {size} lines; split it (below {FILE_LINES})")
        long_functions = long_python_functions if path.suffix == ".py" else long_cpp_functions
        out += [f"hint: {name}:{line}: a function of {size} lines" for line, size in long_functions(path)]
    return out


def lint() -> int:
    problems = layers.check() + check_pins() + check_links() + check_clang_format()
    failed = ruff("check", check=False) | ruff("format", "--check", check=False)
    print(*hints(), *problems, sep="\n")
    print(f"lint: {len(problems)} problems" + (" and those of ruff" if failed else ""))
    return 1 if problems or failed else 0
