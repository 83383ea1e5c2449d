"""Moves blocks of memory between processes and hosts."""

from viaduct._core import __version__

__all__ = ["__version__"]
