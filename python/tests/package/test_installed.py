"""Tests the installed distribution: its folder, its version and its metadata."""

import importlib.metadata
import os
import pathlib
import re
import sys

import pytest
import viaduct

SOURCE = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture
def installed():
    folder = os.environ.get("VIADUCT_PYTHON_INSTALLED")
    if folder is None:
        pytest.skip("VIADUCT_PYTHON_INSTALLED names no installation; ctest sets it")
    return pathlib.Path(folder).resolve()


def test_package_and_module_come_from_the_installation(installed):
    assert installed in pathlib.Path(viaduct.__file__).resolve().parents
    assert installed in pathlib.Path(viaduct._core.__file__).resolve().parents
    assert SOURCE / "python" not in pathlib.Path(viaduct.__file__).resolve().parents


def test_nothing_is_imported_from_the_source(installed):
    assert not [one for one in sys.path if one and pathlib.Path(one).resolve() == SOURCE / "python"]


def test_one_version():
    text = (SOURCE / "CMakeLists.txt").read_text()
    version = re.search(r"^project\(viaduct VERSION ([0-9.]+)", text, re.MULTILINE).group(1)
    assert viaduct.__version__ == version
    assert importlib.metadata.version("viaduct") == version


def test_nixl_has_the_version_of_its_viaduct():
    version = f"1.4.0+viaduct.{viaduct.__version__}"
    assert importlib.metadata.version("viaduct-nixl") == version
    # `python -m viaduct.nixl run` puts this package first on the Python path.
    packages = pathlib.Path(viaduct.__file__).parent / "nixl" / "packages"
    [found] = importlib.metadata.distributions(path=[str(packages)])
    assert (found.metadata["Name"], found.version) == ("nixl", version)


def test_needs_no_other_distribution():
    assert not importlib.metadata.requires("viaduct")
    assert importlib.metadata.metadata("viaduct")["License"] == "Apache-2.0"
