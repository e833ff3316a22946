"""`./m setup`: Debian packages (tools/apt.txt) and the virtual environment .venv (tools/requirements.txt).

A stamp in .venv holds a hash of both lists and of the interpreter, so a second call costs milliseconds.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / ".setup-stamp"
LISTS = [ROOT / "tools/apt.txt", ROOT / "tools/requirements.txt"]


def venv_python() -> str:
    return str(VENV / "bin/python")


def run(command, env=None, check=True, cwd=ROOT) -> int:
    """Runs a command from the root of the checkout, showing it; exits with its status when it fails."""
    print("+", " ".join(map(str, command)), flush=True)
    code = subprocess.run([str(part) for part in command], cwd=cwd, env=env).returncode
    if check and code != 0:
        sys.exit(code)
    return code


def base_python() -> str:
    """The interpreter that runs ./m, not the virtual environment that may be active around it."""
    return sys.executable if sys.prefix == sys.base_prefix else sys._base_executable


def stamp_text() -> str:
    state = hashlib.sha256()
    for path in LISTS:
        state.update(path.read_bytes())
    return f"{state.hexdigest()} {base_python()} {sys.version.split()[0]}"


def read_list(path: Path) -> list[str]:
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def missing_packages() -> list[str]:
    if not shutil.which("dpkg-query"):
        sys.exit("m: setup is made for Debian; docs/dependencies.md lists what else a system must have")
    wanted = read_list(ROOT / "tools/apt.txt")
    query = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted]
    shown = subprocess.run(query, capture_output=True, text=True).stdout.split("\n")
    installed = {line.split()[0] for line in shown if line.endswith(" installed")}
    return [name for name in wanted if name not in installed]


def install_packages() -> None:
    missing = missing_packages()
    if not missing:
        return
    prefix = [] if os.geteuid() == 0 else ["sudo"]
    if prefix and not shutil.which("sudo"):
        sys.exit(f"m: these Debian packages are missing and this is neither root nor has sudo: {' '.join(missing)}")
    # `env` because sudo drops the caller's variables.
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"]
    run([*apt, "update"])
    run([*apt, "install", "-y", "--no-install-recommends", *missing])


def setup(force: bool = False) -> None:
    text = stamp_text()
    if not force and STAMP.exists() and STAMP.read_text() == text:
        return
    start = time.monotonic()
    install_packages()
    fresh = not (VENV / "bin/python").exists()
    if fresh or not STAMP.exists() or STAMP.read_text().split()[1:] != text.split()[1:]:
        run([base_python(), "-m", "venv", "--clear", VENV])
    run([venv_python(), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", "tools/requirements.txt"])
    STAMP.write_text(text)
    print(f"setup: done in {time.monotonic() - start:.0f} s")
