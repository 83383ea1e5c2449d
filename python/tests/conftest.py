"""Makes all Python tests import the installed packages instead of the source folders."""

import os
import pathlib
import subprocess
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


class FakeS3:
    """Runs tests/object/fake_s3.py, a strict S3 server. It obeys the commands that it documents."""

    def __init__(self):
        program = HERE.parents[1] / "tests" / "object" / "fake_s3.py"
        self._process = subprocess.Popen([sys.executable, "-B", program], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)
        self.endpoint = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def ask(self, command):
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self):
        self._process.stdin.close()
        self._process.wait()


@pytest.fixture
def fake_s3(monkeypatch):
    from viaduct._core import nixl

    if "OBJ" not in nixl.plugins():
        pytest.skip("this build has no backend object: it had no headers of libcurl")
    monkeypatch.setenv("no_proxy", "*")  # the server is on loopback
    server = FakeS3()
    yield server
    server.close()
