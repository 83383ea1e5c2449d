"""Makes the package's loggers. NIXL_LOG_LEVEL sets the level: TRACE, DEBUG, INFO, WARN or ERROR."""

from __future__ import annotations

import logging as _logging
import os as _os

_LEVELS = {
    "TRACE": _logging.DEBUG,
    "DEBUG": _logging.DEBUG,
    "INFO": _logging.INFO,
    "WARN": _logging.WARNING,
    "WARNING": _logging.WARNING,
    "ERROR": _logging.ERROR,
    "FATAL": _logging.CRITICAL,
}


def _root() -> _logging.Logger:
    root = _logging.getLogger("nixl")
    level = _LEVELS.get(_os.environ.get("NIXL_LOG_LEVEL", "").upper())
    if level is not None and root.level == _logging.NOTSET:
        root.setLevel(level)
    return root


def get_logger(name: str = "nixl") -> _logging.Logger:
    """Returns the logger of that name, as a child of the logger "nixl"."""
    root = _root()
    if name == "nixl" or name.startswith("nixl."):
        return _logging.getLogger(name)
    return root.getChild(name)
