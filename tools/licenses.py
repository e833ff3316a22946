"""Licence texts of what a wheel of Morel carries beside Morel: grafted libraries, and headers compiled in.

They come from where the build took the code: Debian's copyright files and the metadata of Python packages.
"""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

COMMON = Path("/usr/share/common-licenses")
COMPILED_IN = ["nlohmann-json3-dev", "llvm-19-dev"]  # Debian packages of headers and static libraries


def debian_text(package: str) -> str:
    """The copyright file of a Debian package, with the licences it only points to."""
    query = ["dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", package]
    source = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    text = Path(f"/usr/share/doc/{package}/copyright").read_text()
    pointed_at = {(COMMON / name).resolve() for name in re.findall(rf"{COMMON}/([A-Za-z]+(?:-[0-9.]*\d)?)", text)}
    parts = [f"Debian package {package}, from Debian's source package {source}", text]
    parts += [f"{path}:\n\n{path.read_text()}" for path in sorted(pointed_at)]
    return ("\n" + "=" * 80 + "\n").join(parts)


def debian_package(library: str) -> str:
    shown = subprocess.run(["dpkg-query", "-S", f"*/{library}"], capture_output=True, text=True).stdout
    if not shown:
        raise FileNotFoundError(f"no Debian package holds {library}")
    return re.split("[:,]", shown)[0]


def nanobind_texts() -> dict[str, str]:
    """nanobind's licence, and that of the robin_map which it contains (the first comment of its header)."""
    found = {}
    for path in importlib.metadata.files("nanobind") or []:
        if path.name == "LICENSE":
            found["nanobind.txt"] = path.locate().read_text()
        if path.name == "robin_map.h":
            comment = path.locate().read_text().split("*/")[0]
            found["robin_map.txt"] = re.sub(r"^(/\*\*| \* ?)", "", comment, flags=re.MULTILINE).strip() + "\n"
    return found


def original_name(grafted: str) -> str:
    """auditwheel puts a hash into the names of the libraries: libdnnl-1a2b3c4d.so.2.6."""
    return re.sub(r"-[0-9a-f]{8,}(?=\.so)", "", grafted)


def texts(grafted: list[str]) -> dict[str, str]:
    """File name: text, for the grafted libraries of these names and for what is compiled in."""
    found = nanobind_texts()
    for name in [*COMPILED_IN, *grafted]:
        try:
            package = name if name in COMPILED_IN else debian_package(original_name(name))
            found[f"{package}.txt"] = debian_text(package)
        except (OSError, subprocess.CalledProcessError) as error:
            # Elsewhere than on Debian whoever gives the wheel away must add them.
            print(f"warning: the wheel lacks the licence text of {name}: {error}", file=sys.stderr)
    return found


def add(wheel_root: Path) -> None:
    """Into dist-info/licenses/third_party of an unpacked wheel, and into its metadata."""
    (information,) = wheel_root.glob("*.dist-info")
    grafted = sorted(path.name for path in wheel_root.glob("*.libs/*"))
    folder = information / "licenses/third_party"
    folder.mkdir(parents=True, exist_ok=True)
    found = texts(grafted)
    for name, text in found.items():
        (folder / name).write_text(text)
    metadata = information / "METADATA"
    head, separator, body = metadata.read_text().partition("\n\n")
    head += "".join(f"\nLicense-File: third_party/{name}" for name in sorted(found))
    metadata.write_text(head + separator + body)
