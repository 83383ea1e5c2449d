"""What all Python tests share: they test the installed packages."""

import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
# pytest has put this folder in front, where its folders `viaduct` and `nixl` look like packages.
sys.path[:] = [one for one in sys.path if pathlib.Path(one).resolve() != HERE]


def pytest_configure():
    """Ends the run when `viaduct` does not come from the folder that the tests are for."""
    installed = os.environ.get("VIADUCT_PYTHON_INSTALLED")
    if installed is None:
        return
    import viaduct

    if pathlib.Path(installed).resolve() not in pathlib.Path(viaduct.__file__).resolve().parents:
        raise pytest.UsageError(f"viaduct comes from {viaduct.__file__}, not from {installed}")
