"""Models as C99 for microcontrollers."""

import pathlib
from types import SimpleNamespace

from morel import _core


def to_c(model, directory, name="model"):
    """Writes a model for devices as a folder of C99 that needs nothing else: no library, no allocation.

    Args:
        model (str): a file that ``convert`` wrote. Of a model of many sizes, those of its example are used.
        directory (str): where the sources go; made where it is not there.
        name (str): prefix of files and names: ``NAME.h`` declares ``NAME_run()`` and where inputs and outputs lie.
    Returns:
        SimpleNamespace: ``files`` (their names), ``arena_bytes`` and ``variable_bytes`` (RAM), ``weight_bytes`` (flash).
    Raises:
        NotImplementedError: there is no C for a step; the message names all of these.
    """
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"For 'to_c', 'name' must be an identifier of C, but got {name!r}.")
    made = _core.plan_to_c(pathlib.Path(model).read_bytes(), name)
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for file, text in made["files"].items():
        (directory / file).write_text(text)
    return SimpleNamespace(**{**made, "files": sorted(made["files"])})
