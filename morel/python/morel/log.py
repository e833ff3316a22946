"""Messages to standard error, by level: the environment variable GLOG_v says from which level on.

Levels: 0 debug, 1 info, 2 warning (default), 3 error, 4 critical.
"""

import datetime
import os
import sys
import threading

__all__ = ["get_level", "get_log_config", "debug", "info", "warning", "error", "critical"]

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def get_level():
    """The lowest level that is shown, as a string.

    Example:
        >>> from morel import log
        >>> log.get_level() in "01234"
        True
    """
    value = os.environ.get("GLOG_v", "2")
    return value if value in ("0", "1", "2", "3", "4") else "2"


def get_log_config():
    """The settings as a dictionary."""
    return {"GLOG_v": get_level(), "GLOG_logtostderr": "1"}


def _place():
    """File and line of the caller outside of this module."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _write(level, message, arguments):
    if level < int(get_level()):
        return
    text = str(message) % arguments if arguments else str(message)
    now = datetime.datetime.now()
    when = f"{now:%Y-%m-%d-%H:%M:%S}.{now.microsecond // 1000:03d}.{now.microsecond % 1000:03d}"
    who = f"{os.getpid()}:{threading.get_ident()},MainProcess"
    print(f"[{_LEVELS[level]}] ME({who}):{when} [{_place()}] {text}", file=sys.stderr, flush=True)


def debug(msg, *args, **kwargs):
    """Shows `msg % args` at level 0."""
    _write(0, msg, args)


def info(msg, *args, **kwargs):
    """Shows `msg % args` at level 1."""
    _write(1, msg, args)


def warning(msg, *args, **kwargs):
    """Shows `msg % args` at level 2."""
    _write(2, msg, args)


def error(msg, *args, **kwargs):
    """Shows `msg % args` at level 3."""
    _write(3, msg, args)


def critical(msg, *args, **kwargs):
    """Shows `msg % args` at level 4."""
    _write(4, msg, args)
