"""``python -m morel script.py [arguments]``: runs a MindSpore script on Morel.

The script runs as ``python script.py`` would run it, except that ``import mindspore`` gives Morel.
"""

import io
import os
import sys
import types

_USAGE = """usage: python -m morel [-h] [--version] SCRIPT [ARGUMENTS ...]
       python -m morel -m MODULE [ARGUMENTS ...]

Runs a Python script (or module) in which `import mindspore` means Morel."""


def _script(path):
    """(function that gives the code, namespace) of a script."""
    if os.path.isdir(path):
        path = os.path.join(path, "__main__.py")
    try:
        with io.open_code(path) as handle:
            source = handle.read()
    except OSError as error:
        sys.exit(f"python -m morel: can't open file '{path}': [Errno {error.errno}] {error.strerror}")
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    return lambda: compile(source, path, "exec"), {
        "__file__": path,
        "__cached__": None,
        "__package__": None,
        "__spec__": None,
    }


def _module(name):
    """(function that gives the code, namespace) of a module that is run with -m."""
    import importlib.util

    sys.path[0] = os.getcwd()
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(name + ".__main__")
    if spec is None or spec.loader is None:
        sys.exit(f"python -m morel: no module named {name}")
    sys.argv[0] = spec.origin
    names = {"__file__": spec.origin, "__cached__": spec.cached, "__package__": spec.parent, "__spec__": spec}
    return lambda: spec.loader.get_code(spec.name), names


def _run(get_code, names):
    """Executes the program as `__main__`; error reports start with its own frames."""
    program = types.ModuleType("__main__")
    program.__dict__.update(names, __builtins__=sys.modules["builtins"])
    sys.modules["__main__"] = program
    try:
        code = get_code()
    except SyntaxError as error:
        error.__traceback__ = None
        sys.excepthook(type(error), error, None)
        sys.exit(1)
    try:
        exec(code, program.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        error.__traceback__ = error.__traceback__.tb_next
        sys.excepthook(type(error), error, error.__traceback__)
        sys.stdout.flush()
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)
    return program  # kept by the caller: threads of the script may outlive this call


def main(arguments):
    """Runs what the command line names."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE)
        return 0 if arguments else 2
    if arguments[0] == "--version":
        import morel

        print(f"morel {morel.__version__}")
        return 0
    from morel import alias  # noqa: F401 - from here on, mindspore is Morel

    if arguments[0] == "-m" and len(arguments) > 1:
        sys.argv = arguments[1:]
        code, names = _module(arguments[1])
    elif arguments[0].startswith("-"):
        print(_USAGE, file=sys.stderr)
        return 2
    else:
        sys.argv = list(arguments)
        code, names = _script(arguments[0])
    global _program
    _program = _run(code, names)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
