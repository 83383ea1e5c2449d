"""Tests the commands `python -m viaduct.verify` and `verify_nixl_setup`."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest
import viaduct
from viaduct import _loopback, verify


def run_command(*command, folder, **environment):
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


def make_distribution(folder, name, version, packages):
    """Creates the files of an installed distribution whose packages are empty."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for package in packages:
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text("raise SystemExit('it must not be run')\n")
    (info / "RECORD").write_text("".join(f"{one}/__init__.py,,\n" for one in packages))


def test_report_of_this_host(tmp_path):
    ran = run_command("-m", "viaduct.verify", "--json", folder=tmp_path)
    report = json.loads(ran.stdout)
    assert ran.returncode == 0
    assert report["viaduct"] == viaduct.__version__
    assert pathlib.Path(report["file"]) == pathlib.Path(viaduct.__file__)
    assert report["python"]["executable"] == sys.executable
    assert report["packages"]["numpy"] == importlib.import_module("numpy").__version__
    assert {one["name"] for one in report["backends"] if one["open"]} >= {"local", "tcp"}
    assert all(one["text"] for one in report["backends"] if not one["open"])
    copied = report["loopback"]
    assert copied["ok"] and copied["error"] is None
    assert copied["bytes"] == _loopback.BYTES and copied["gigabytes_per_second"] > 0
    assert copied["path"].startswith("local/")


def test_report_for_people_names_what_carried_the_bytes(tmp_path):
    ran = run_command("-m", "viaduct.verify", folder=tmp_path, VIADUCT_BACKENDS="tcp")
    assert ran.returncode == 0, ran.stdout
    assert f"viaduct            {viaduct.__version__} in " in ran.stdout
    assert "backend local      not open: " in ran.stdout
    assert "over tcp/" in ran.stdout


def test_failure_is_an_exit_code_and_a_reason(tmp_path):
    ran = run_command("-m", "viaduct.verify", folder=tmp_path, VIADUCT_BACKENDS="no-such")
    assert ran.returncode == 1
    assert "FAILED: " in ran.stdout and "no-such" in ran.stdout
    assert "Traceback" not in ran.stderr


def test_current_folder_is_not_where_the_second_process_imports_from(tmp_path):
    (tmp_path / "viaduct").mkdir()
    (tmp_path / "viaduct" / "__init__.py").write_text("raise SystemExit('from the folder')\n")
    installed = pathlib.Path(viaduct.__file__).parents[1]
    code = f"import sys; sys.path[0] = {str(installed)!r}\nfrom viaduct import _loopback\n"
    ran = run_command("-c", code + "print(_loopback.loopback()['ok'])", folder=tmp_path)
    assert ran.stdout == "True\n"


def as_target(monkeypatch, code):
    monkeypatch.setattr(
        _loopback, "command_of", lambda module, function: [sys.executable, "-c", code]
    )


def test_second_process_that_dies_is_quoted(monkeypatch):
    as_target(monkeypatch, "raise SystemExit('no memory left')")
    result = _loopback.loopback()
    assert result == {"ok": False, "error": "the second process ended: no memory left"}


def test_wrong_bytes_are_seen(monkeypatch):
    as_target(
        monkeypatch,
        "import hashlib, types, viaduct._loopback as it\n"
        "without_first = lambda pin: hashlib.sha256(memoryview(pin)[1:])\n"
        "it.hashlib = types.SimpleNamespace(sha256=without_first)\n"
        "it.target()",
    )
    result = _loopback.loopback()
    assert not result["ok"]
    assert result["error"] == "the second process holds other bytes than the first one wrote"


def test_host_without_a_gpu_driver(tmp_path):
    found = verify.gpus(tmp_path)
    assert found["count"] == 0 and found["driver"] is None and "no NVIDIA driver" in found["why"]


FAKE_DRIVERS = {
    "two GPUs": ("int cuInit(unsigned f) { return 0; }", "*n = 2; return 0;", 2, None),
    "no device": ("int cuInit(unsigned f) { return 100; }", "return 0;", 0, "error 100"),
    "crash": ("#include <stdlib.h>\nint cuInit(unsigned f) { abort(); }", "return 0;", 0, "answer"),
}


@pytest.mark.parametrize("name", FAKE_DRIVERS)
def test_gpus_are_counted_by_the_driver(tmp_path, monkeypatch, name):
    init, count, gpus, why = FAKE_DRIVERS[name]
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text("NVRM version: 570.1\nGCC version: 12\n")
    (tmp_path / "cuda.c").write_text(f"{init}\nint cuDeviceGetCount(int *n) {{ {count} }}\n")
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "cuda.c"], check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    found = verify.gpus(tmp_path)
    assert found["driver"] == "NVRM version: 570.1" and found["count"] == gpus
    assert found["why"] is None if why is None else why in found["why"]


def test_rdma_devices_and_their_ports(tmp_path):
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    port.mkdir(parents=True)
    (port / "state").write_text("4: ACTIVE\n")
    (port / "rate").write_text("400 Gb/sec (4X NDR)\n")
    (tmp_path / "sys/class/infiniband/mlx5_1/ports/1").mkdir(parents=True)
    first, second = verify.rdma_devices(tmp_path)
    assert first == {
        "name": "mlx5_0",
        "ports": [{"port": "1", "state": "ACTIVE", "rate": "400 Gb/sec (4X NDR)"}],
    }
    assert second["ports"][0]["state"].startswith("unreadable: ")
    assert verify.rdma_devices(tmp_path / "no-such") == []


def problems():
    return verify.nixl_problems([verify.nixl_module(name) for name in verify.NIXL_NAMES])


def test_another_nixl_in_front_is_named_with_the_command_that_helps(tmp_path, monkeypatch):
    make_distribution(tmp_path, "nixl-cu12", "1.2.0", ["nixl"])
    monkeypatch.syspath_prepend(tmp_path)
    module = verify.nixl_module("nixl")
    assert module["distribution"] == "nixl-cu12" and module["version"] == "1.2.0"
    assert not module["ours"] and module["file"] == str(tmp_path / "nixl" / "__init__.py")
    [problem] = [one for one in problems() if one["problem"].startswith("import nixl gets")]
    assert str(tmp_path) in problem["problem"] and "nixl-cu12 1.2.0" in problem["problem"]
    assert "python -m viaduct.nixl run -- COMMAND" in problem["fix"]
    assert "pip uninstall nixl-cu12" in problem["fix"]


def test_another_nixl_cu13_beside_ours_is_named(tmp_path, monkeypatch):
    make_distribution(tmp_path, "nixl-cu13", "1.5.0", ["nixl_cu13"])
    monkeypatch.syspath_prepend(tmp_path)
    assert any(one["problem"].startswith("import nixl_cu13 gets") for one in problems())


def test_viaduct_nixl_of_another_version_is_named(tmp_path, monkeypatch):
    make_distribution(tmp_path, "viaduct-nixl", "1.4.0+viaduct.9.9.9", list(verify.NIXL_NAMES))
    monkeypatch.syspath_prepend(tmp_path)
    [problem] = problems()
    assert f"9.9.9 is not for viaduct {viaduct.__version__}" in problem["problem"]


def test_missing_nixl_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    [problem] = problems()
    assert problem["problem"].startswith("import nixl fails")
    assert "pip install viaduct-nixl" in problem["fix"]


def test_verify_nixl_setup_fails_where_another_nixl_is_in_front(tmp_path):
    make_distribution(tmp_path, "nixl", "1.2.0", ["nixl"])
    command = pathlib.Path(viaduct.__file__).parents[1] / "bin" / "verify_nixl_setup"
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    ran = run_command(str(command), "--json", folder=tmp_path, PYTHONPATH=path)
    assert ran.returncode == 1
    report = json.loads(ran.stdout)
    assert report["loopback"]["ok"] and report["nixl"]["modules"][0]["version"] == "1.2.0"


def test_verify_nixl_setup_is_content_with_ours(tmp_path):
    command = pathlib.Path(viaduct.__file__).parents[1] / "bin" / "verify_nixl_setup"
    ran = run_command(str(command), folder=tmp_path)
    assert ran.returncode == 0, ran.stdout
    assert f"import nixl        viaduct-nixl 1.4.0+viaduct.{viaduct.__version__}, " in ran.stdout


def test_verify_nixl_setup_is_content_with_the_packages_of_run(tmp_path):
    make_distribution(tmp_path, "nixl", "1.2.0", ["nixl"])
    command = pathlib.Path(viaduct.__file__).parents[1] / "bin" / "verify_nixl_setup"
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    run = ["-m", "viaduct.nixl", "run", "--", sys.executable, str(command)]
    ran = run_command(*run, folder=tmp_path, PYTHONPATH=path)
    assert ran.returncode == 0, ran.stdout
    assert f"import nixl        viaduct {viaduct.__version__}, " in ran.stdout


def test_the_backend_cuda_is_not_open_without_a_gpu():
    found = {one["name"]: one for one in verify.backends({"count": 0, "why": "no driver"})}
    assert (found["cuda"]["open"], found["cuda"]["text"]) == (False, "no driver")
    found = {one["name"]: one for one in verify.backends({"count": 1, "why": None})}
    assert found["cuda"]["open"]
