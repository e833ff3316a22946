"""link_package.py SOURCE DESTINATION: makes DESTINATION show the entries of SOURCE as symbolic links.

The build folder's package then holds our Python sources beside the compiled extension. Links whose source is gone are
removed; compiled files are left alone.
"""

import sys
from pathlib import Path


def link_package(source: Path, destination: Path) -> None:
    destination.mkdir(parents=True, exist_ok=True)
    wanted = {path.name: path.resolve() for path in source.iterdir() if path.name != "__pycache__"}
    for path in destination.iterdir():
        if path.is_symlink() and wanted.get(path.name) != path.readlink():
            path.unlink()
    for name, target in wanted.items():
        if not (destination / name).is_symlink():
            (destination / name).symlink_to(target)


if __name__ == "__main__":
    link_package(Path(sys.argv[1]), Path(sys.argv[2]))
