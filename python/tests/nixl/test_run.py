"""Tests `python -m viaduct.nixl run`, which puts this nixl first on a command's Python path."""

import os
import subprocess
import sys

import viaduct


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "viaduct.nixl", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


WHERE = (
    "import importlib.metadata, importlib.util, nixl\n"
    "for name in ('nixl', 'nixl_cu12', 'nixl_cu13'):\n"
    "    print(importlib.util.find_spec(name).origin)\n"
    "print(importlib.metadata.version('nixl'))\n"
)


def test_a_command_gets_the_packages_first(tmp_path):
    for name in ("nixl", "nixl_cu13"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise ImportError('the other one')\n")
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    done = run("run", "--", sys.executable, "-c", WHERE, PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    *places, version = done.stdout.split()
    folder = run("path").stdout.strip()
    assert [os.path.dirname(os.path.dirname(place)) for place in places] == [folder] * 3
    assert version == f"1.4.0+viaduct.{viaduct.__version__}"
    major, minor = version.split(".")[:2]
    assert (int(major), int(minor)) >= (1, 4)


def test_the_status_of_the_command_is_passed_on():
    assert run("run", "--", sys.executable, "-c", "raise SystemExit(7)").returncode == 7
    assert run("run", sys.executable, "-c", "raise SystemExit(7)").returncode == 7


def test_a_folder_that_may_not_be_read_hides_no_command(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    path = f"{closed}{os.pathsep}{os.environ['PATH']}"
    done = run("run", "--", "no-such-command-here", PATH=path)
    assert done.returncode == 127 and "no command no-such-command-here" in done.stderr
    assert run("run", "--", "true", PATH=path).returncode == 0


def test_wrong_calls_say_what_to_do(tmp_path):
    done = run("run")
    assert done.returncode == 2 and "no command" in done.stderr
    done = run("run", "--", "no-such-command-here")
    assert done.returncode == 127 and "no command no-such-command-here" in done.stderr
    done = run("run", "--", str(tmp_path / "nowhere"))
    assert done.returncode == 127 and "nowhere" in done.stderr
    done = run("run", "--", str(tmp_path))
    assert done.returncode == 126 and "cannot run" in done.stderr
    assert run().returncode == 2
