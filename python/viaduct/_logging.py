"""Hands the lines that the library logs to the logger "viaduct" of Python's logging.

The library's threads never run Python code. A thread of Python takes the lines from a queue. While
no handler is there for the logger, the lines go to stderr, as in programs of other languages.
"""

import atexit
import os
import sys
import threading

from viaduct import _core

_LEVELS = (10, 20, 30, 40)  # those of logging from DEBUG to ERROR, by the library's number
_STUCK_S = 5  # a handler that takes longer loses the last lines of the program

_lock = threading.Lock()
_thread = None


def start():
    """Begins to log in Python. Each Agent calls this function before it opens."""
    global _thread
    _follow_level()
    with _lock:
        if _thread is not None and _thread.is_alive():
            return
        if _thread is None:
            atexit.register(_stop)
        _core._start_log()
        _thread = threading.Thread(target=_run, name="viaduct-log", daemon=True)
        _thread.start()


def _logger():
    import logging  # only here: it takes longer than to open an agent

    return logging.getLogger("viaduct")


def _follow_level():
    """Lets the library make the lines that the logger wants, unless VIADUCT_LOG says which."""
    if "logging" in sys.modules and not os.environ.get("VIADUCT_LOG"):
        wanted = _logger().getEffectiveLevel()
        _core._set_log_level(next((number for number, level in enumerate(_LEVELS)
                                   if level >= wanted), len(_LEVELS)))


def _run():
    while lines := _core._take_log():
        _hand_on(lines)


def _hand_on(lines):
    for number, text in lines:
        if "logging" in sys.modules and _logger().hasHandlers():
            _logger().log(_LEVELS[number], "%s", text)
        else:
            _core._write_log(number, text)


def _stop():
    # Python runs this before it closes the agents, whose last lines go to stderr.
    _core._stop_log()
    _thread.join(_STUCK_S)
