"""Makes all Python tests import the installed packages instead of the source folders."""

import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
# pytest puts this folder first on sys.path. Python would then import the folders `viaduct` and
# `nixl` of the tests in place of the installed packages.
sys.path[:] = [one for one in sys.path if pathlib.Path(one).resolve() != HERE]


def pytest_configure():
    """Ends the run if `viaduct` does not come from the folder of the installation under test."""
    installed = os.environ.get("VIADUCT_PYTHON_INSTALLED")
    if installed is None:
        return
    import viaduct

    if pathlib.Path(installed).resolve() not in pathlib.Path(viaduct.__file__).resolve().parents:
        raise pytest.UsageError(f"viaduct comes from {viaduct.__file__}, not from {installed}")
