"""Makes the package's loggers. NIXL_LOG_LEVEL sets the level: TRACE, DEBUG, INFO, WARN or ERROR. The
lines go to standard error, unless the program has set up Python's logging."""

from __future__ import annotations

import logging as _logging
import os as _os
import sys as _sys


class _Handler(_logging.Handler):
    """Writes to standard error if no other handler would write the line."""

    def emit(self, record: _logging.LogRecord) -> None:
        if not _logging.getLogger().handlers:
            print(self.format(record), file=_sys.stderr, flush=True)


def _root() -> _logging.Logger:
    root = _logging.getLogger("nixl")
    asked = _os.environ.get("NIXL_LOG_LEVEL", "").upper().replace("TRACE", "DEBUG")
    level = _logging.getLevelName(asked)  # a text, if there is no such level
    if isinstance(level, int) and root.level == _logging.NOTSET:
        root.setLevel(level)
        if not root.handlers:
            handler = _Handler()
            handler.setFormatter(_logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
            root.addHandler(handler)
    return root


def get_logger(name: str = "nixl") -> _logging.Logger:
    """Returns the logger of that name, as a child of the logger "nixl"."""
    root = _root()
    if name == "nixl" or name.startswith("nixl."):
        return _logging.getLogger(name)
    return root.getChild(name)
