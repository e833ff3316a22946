"""Source code of functions as syntax trees, and errors that show the user's line."""

import ast
import contextlib
import inspect
import linecache
import os
import sysconfig

from morel import _core

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_INSTALLED = tuple(os.path.join(_LIBRARY, name) + os.sep for name in ("site-packages", "dist-packages"))


def _is_pythons_own(code):
    return code.co_filename.startswith(_LIBRARY) and not code.co_filename.startswith(_INSTALLED)


class Unsupported(NotImplementedError):
    """Syntax or an operation that a compiled function cannot contain."""


_KEYWORDS = {
    "AsyncFor": "async",
    "AsyncFunctionDef": "async",
    "AsyncWith": "async",
    "Await": "await",
    "ClassDef": "class",
    "Match": "match",
    "Try": "try",
    "TryStar": "try",
    "Yield": "yield",
    "YieldFrom": "yield",
}


def refuse_syntax(node):
    kind = type(node).__name__
    raise Unsupported(
        f"'{_KEYWORDS.get(kind, kind)}' is not supported in a compiled function; call a function that contains it outside of "
        "the compiled one and pass what it gives as an argument"
    )


class FunctionSource:
    """A function as the interpreter runs it: its syntax tree, where it comes from, its defaults and closure."""

    _cache = {}  # code object -> its syntax tree, or None

    def __init__(self, node, name, file, globals, closure, defaults, keyword_defaults):
        self.node, self.name, self.file = node, name, file
        self.globals, self.closure = globals, closure
        self.defaults, self.keyword_defaults = defaults, keyword_defaults

    @classmethod
    def of(cls, function):
        """The source of a Python function; None for what is called as it is: functions of Morel (but `construct` and
        those with ``__interpreted__``) and of Python's library, functions without source, generators."""
        code = function.__code__
        read = function.__name__ == "construct" or hasattr(function, "__interpreted__")
        if code.co_filename.startswith(_PACKAGE) and not read or _is_pythons_own(code):
            return None
        if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            return None
        if code not in cls._cache:
            cls._cache[code] = _parse(function)
        found = cls._cache[code]
        if found is None:
            return None
        closure = dict(zip(code.co_freevars, function.__closure__ or ()))
        return cls(
            found,
            function.__qualname__,
            code.co_filename,
            function.__globals__,
            closure,
            function.__defaults__ or (),
            function.__kwdefaults__ or {},
        )

    @classmethod
    def nested(cls, node, frame, interpreter):
        """A function or lambda defined within interpreted code."""
        defaults = tuple(interpreter.evaluate(default, frame) for default in node.args.defaults)
        keyword_defaults = {
            arg.arg: interpreter.evaluate(default, frame)
            for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults)
            if default is not None
        }
        name = getattr(node, "name", "<lambda>")
        source = frame.source
        return cls(node, name, source.file, source.globals, source.closure, defaults, keyword_defaults)

    def bind(self, args, kwargs):
        """Arguments of a call by the names of the parameters, as Python binds them."""
        spec = self.node.args
        positional = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        out = dict(zip(positional, args))
        kwargs = dict(kwargs)
        if spec.vararg is not None:
            out[spec.vararg.arg] = tuple(args[len(positional) :])
        elif len(args) > len(positional):
            raise TypeError(f"{self.name}() takes {len(positional)} positional arguments but {len(args)} were given")
        names = {arg.arg for arg in (*spec.args, *spec.kwonlyargs)}
        for name in list(kwargs):
            if name in names:
                if name in out:
                    raise TypeError(f"{self.name}() got multiple values for argument '{name}'")
                out[name] = kwargs.pop(name)
        if spec.kwarg is not None:
            out[spec.kwarg.arg] = kwargs
        elif kwargs:
            raise TypeError(f"{self.name}() got an unexpected keyword argument '{next(iter(kwargs))}'")
        for name, default in zip(positional[len(positional) - len(self.defaults) :], self.defaults):
            out.setdefault(name, default)
        for name, default in self.keyword_defaults.items():
            out.setdefault(name, default)
        for name in (*positional, *(arg.arg for arg in spec.kwonlyargs)):
            if name not in out:
                raise TypeError(f"{self.name}() missing the argument '{name}'")
        return out


_trees = {}  # file and its lines -> its syntax tree


def _tree_of(file):
    lines = linecache.getlines(file)
    key = (file, len(lines), hash(tuple(lines)))
    if key not in _trees:
        try:
            _trees[key] = ast.parse("".join(lines))
        except SyntaxError:
            return ast.Module([], [])
    return _trees[key]


def _at_line(node, line):
    """The functions and lambdas whose source contains a line, outer ones first."""
    for child in ast.iter_child_nodes(node):
        first = min((decorator.lineno for decorator in getattr(child, "decorator_list", ())), default=line)
        if not min(first, getattr(child, "lineno", line)) <= line <= getattr(child, "end_lineno", line):
            continue
        if isinstance(child, (ast.FunctionDef, ast.Lambda)):
            yield child
        yield from _at_line(child, line)


def _parse_block(code):
    """The ``def`` at the first line of some code, parsed alone: files may be long. None where its lines do not tell."""
    lines = linecache.getlines(code.co_filename)
    start = code.co_firstlineno - 1
    define = next((i for i in range(start, len(lines)) if lines[i].lstrip().startswith("def ")), None)
    if define is None:
        return None
    indent = len(lines[define]) - len(lines[define].lstrip())
    end = define + 1
    while end < len(lines):
        text = lines[end].lstrip()
        if text and not text.startswith("#") and len(lines[end]) - len(text) <= indent:
            break
        end += 1
    # Empty lines in front keep the numbers of the lines. A string or bracket that goes on at the margin leaves a syntax error:
    # then the whole file is parsed.
    block = "".join(lines[start:end])
    try:
        tree = ast.parse("\n" * (start - 1) + "if 1:\n" + block if indent else "\n" * start + block)
    except SyntaxError:
        return None
    return tree.body[0].body[0] if indent else tree.body[0]


def _parse(function):
    """The syntax tree of a function; None where there is no source."""
    code = function.__code__
    linecache.checkcache(code.co_filename)  # a module may have been changed and loaded again
    if code.co_name != "<lambda>":
        node = _parse_block(code)
        if node is not None and _is_of(node, code):
            return node
    found = [node for node in _at_line(_tree_of(code.co_filename), code.co_firstlineno) if _is_of(node, code)]
    return found[-1] if found else None  # of nested lambdas the innermost


def _is_of(node, code):
    if isinstance(node, ast.FunctionDef):
        first = min((decorator.lineno for decorator in node.decorator_list), default=node.lineno)
        return node.name == code.co_name and code.co_firstlineno in (first, node.lineno)
    if code.co_name != "<lambda>" or not node.lineno <= code.co_firstlineno <= node.end_lineno:
        return False
    # Several lambdas may be on one line: the one that covers the places of the code.
    begin, end = (node.body.lineno, node.body.col_offset), (node.body.end_lineno, node.body.end_col_offset)
    places = [(line, column) for line, _, column, _ in code.co_positions() if line is not None and column is not None]
    # The first instruction of a code object has the place of the definition's line, column 0.
    places = [place for place in places if place[1] > 0] or places
    return all(begin <= place < end for place in places)


def place_of(source, node):
    """The user's line with a caret, as errors show it; None within Morel."""
    line = None if source.file.startswith(_PACKAGE) else getattr(node, "lineno", None)
    if line is None:
        return None
    text = linecache.getline(source.file, line).rstrip("\n")
    caret = max(getattr(node, "col_offset", 0), len(text) - len(text.lstrip()))
    return f"\nin a compiled function, {source.file}:{line}, in {source.name}\n{text}\n{' ' * caret}^"


@contextlib.contextmanager
def annotated(source, node):
    """Adds the user's line with a caret to errors raised within, and gives nodes made within their place."""
    if not source.file.startswith(_PACKAGE) and hasattr(node, "lineno"):
        _core.graph_place(f"{os.path.basename(source.file)}:{node.lineno}")
    try:
        yield
    except Exception as error:
        note = None if getattr(error, "_has_place", False) else place_of(source, node)
        if note is not None:
            error._has_place = True
            if isinstance(error, OSError):  # its text comes from its number
                error.add_note(note)
            else:
                error.args = (f"{error.args[0] if len(error.args) == 1 else error}{note}",)
        raise
