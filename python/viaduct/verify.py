"""Shows the devices and packages that Viaduct can use on this host, and how to add missing ones.

    python -m viaduct.verify [--json]
    verify_nixl_setup [--json]          also fails if `import nixl` imports another package

The exit status is 0 if a transfer between two processes worked, and 1 otherwise.
"""

import argparse
import ctypes
import importlib.metadata
import importlib.util
import json
import pathlib
import platform
import subprocess
import sys

import viaduct
from viaduct._loopback import command_of, loopback

NIXL_NAMES = ("nixl", "nixl_cu12", "nixl_cu13")
OUR_DISTRIBUTION = "viaduct-nixl"


def package_version(name):
    """Returns a package's version without importing it, or None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def backends(gpus_found):
    """Returns an agent's backends as dicts of name, open and text. The text gives the reason why a
    backend is not open. The backend `fake` is for tests and left out."""
    with viaduct.Agent() as agent:
        found = {name: row for name, row in agent.backends.items() if name != "fake"}
    # The agent opens this backend also without a driver, because one may be loaded later.
    if found.get("cuda", (False,))[0] and gpus_found["count"] == 0:
        found["cuda"] = (False, gpus_found["why"] or "the driver finds no GPU")
    return [{"name": name, "open": is_open, "text": text} for name, (is_open, text) in found.items()]


def count_gpus():
    """Prints the number of GPUs that libcuda reports, or the reason why it reports none. Runs in
    its own process, because a broken driver can hang or crash its caller."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        print(json.dumps({"count": 0, "why": str(error)}))
        return
    count = ctypes.c_int(0)
    for call in (lambda: library.cuInit(0), lambda: library.cuDeviceGetCount(ctypes.byref(count))):
        code = call()
        if code != 0:
            print(json.dumps({"count": 0, "why": f"the driver's library returns error {code}"}))
            return
    print(json.dumps({"count": count.value, "why": None}))


def gpus(root="/"):
    """Returns the version of NVIDIA's driver and the number of usable GPUs."""
    path = pathlib.Path(root, "proc/driver/nvidia/version")
    try:
        driver = path.read_text(encoding="utf-8", errors="replace").splitlines()[0]
    except (OSError, IndexError):
        return {"driver": None, "count": 0, "why": f"no NVIDIA driver: there is no {path}"}
    try:
        command = command_of("viaduct.verify", "count_gpus")
        answer = json.loads(subprocess.run(command, capture_output=True, timeout=60).stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        answer = {"count": 0, "why": f"libcuda did not answer: {error}"}
    return {"driver": driver, **answer}


def rdma_devices(root="/"):
    """Returns the RDMA devices, with the state and rate of each port."""
    devices = []
    for device in sorted(pathlib.Path(root, "sys/class/infiniband").glob("*")):
        ports = []
        for port in sorted((device / "ports").glob("*")):
            try:
                state = (port / "state").read_text().split(":")[-1].strip()
                rate = (port / "rate").read_text().strip()
            except OSError as error:
                state, rate = f"unreadable: {error.strerror}", ""
            ports.append({"port": port.name, "state": state, "rate": rate})
        devices.append({"name": device.name, "ports": ports})
    return devices


def owner_of(origin):
    """Returns the (name, version) of the distribution that installed the file. Searches only
    distributions with `nixl` in their name, because reading all file lists takes seconds."""
    for one in importlib.metadata.distributions():
        name = one.metadata["Name"] or ""
        if "nixl" in name.lower() and any(
            origin == pathlib.Path(one.locate_file(file)) for file in one.files or []
        ):
            return name, one.version
    return None, None


def nixl_module(name):
    """Finds the file that `import NAME` would run, and its distribution. Does not run the file."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        return {"module": name, "file": None, "distribution": None, "version": None, "ours": False}
    origin = pathlib.Path(spec.origin)
    distribution, version = owner_of(origin)
    inside = pathlib.Path(viaduct.__file__).parent in origin.parents
    return {
        "module": name,
        "file": str(origin),
        "distribution": distribution or ("viaduct" if inside else None),
        "version": version or (viaduct.__version__ if inside else None),
        "ours": inside or distribution == OUR_DISTRIBUTION,
    }


def owner_text(module):
    """Formats the distribution and version in a result of nixl_module()."""
    return f"{module['distribution'] or 'no distribution'} {module['version'] or ''}".strip()


def nixl_problems(modules):
    """Lists the reasons why `import nixl` would not import Viaduct's nixl, each with a command that
    fixes the problem."""
    run = "python -m viaduct.nixl run -- COMMAND"
    found = []
    foreign = [one for one in modules if one["file"] and not one["ours"]]
    right = f"viaduct.{viaduct.__version__}"
    if foreign:
        names = sorted({one["distribution"] or one["file"] for one in foreign})
        fix = f"{run}  (for one command), or pip uninstall {' '.join(names)}"
        found = [f"import {one['module']} gets {one['file']} of {owner_text(one)}"
                 for one in foreign]  # fmt: skip
    elif not modules[0]["file"]:
        fix = f"pip install viaduct-nixl, or for one command {run}"
        found = ["import nixl fails: no package has that name"]
    elif modules[0]["distribution"] == OUR_DISTRIBUTION and right not in modules[0]["version"]:
        fix = "pip install viaduct and viaduct-nixl of one version"
        found = [f"{owner_text(modules[0])} is not for viaduct {viaduct.__version__}"]
    return [{"problem": problem, "fix": fix} for problem in found]


def report():
    """Runs all checks, and returns their results as a dict."""
    modules = [nixl_module(name) for name in NIXL_NAMES]
    result = {
        "viaduct": viaduct.__version__,
        "file": viaduct.__file__,
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "packages": {name: package_version(name) for name in ("numpy", "torch")},
        "backends": [],
        "gpus": gpus(),
        "rdma": rdma_devices(),
        "nixl": {"modules": modules, "problems": nixl_problems(modules)},
    }
    try:
        result["backends"] = backends(result["gpus"])
    except viaduct.Error as error:
        result["loopback"] = {"ok": False, "error": str(error)}
    else:
        result["loopback"] = loopback()
    return result


def rows_of(found):
    """Formats the report as (title, text) rows to print."""
    packages = [f"{name} {there or 'not installed'}" for name, there in found["packages"].items()]
    python = found["python"]
    yield "viaduct", f"{found['viaduct']} in {pathlib.Path(found['file']).parent}"
    yield "Python", f"{python['version']} ({python['executable']}); {', '.join(packages)}"
    for one in found["backends"]:
        state = "open" if one["open"] else "not open"
        yield f"backend {one['name']}", f"{state}{': ' if one['text'] else ''}{one['text']}"
    cuda = found["gpus"]
    yield "GPUs", f"{cuda['count']}, {cuda['why'] or cuda['driver']}"
    for device in found["rdma"]:
        ports = [f"port {one['port']} {one['state']}, {one['rate']}" for one in device["ports"]]
        yield f"RDMA {device['name']}", "; ".join(ports) or "no ports"
    if not found["rdma"]:
        yield "RDMA", "no device in /sys/class/infiniband"
    for one in found["nixl"]["modules"]:
        origin = f"{owner_text(one)}, {one['file']}" if one["file"] else "not installed"
        yield f"import {one['module']}", origin
    for one in found["nixl"]["problems"]:
        yield "nixl", f"{one['problem']}\nto change it: {one['fix']}"
    copied = found["loopback"]
    if copied["ok"]:
        rate = copied["gigabytes_per_second"]
        size = f"{copied['bytes'] >> 20} MiB"
        yield "two processes", f"{size} arrived, {rate:.1f} GB/s, over {copied['path']}"
    else:
        yield "two processes", f"FAILED: {copied['error']}"


def check(arguments, nixl_needed):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    flags = parser.parse_args(arguments)
    found = report()
    if flags.json:
        print(json.dumps(found, indent=2))
    else:
        for title, text in rows_of(found):
            print(f"{title:18} " + text.replace("\n", "\n" + " " * 19))
    good = found["loopback"]["ok"] and not (nixl_needed and found["nixl"]["problems"])
    return 0 if good else 1


def verify_nixl_setup():
    """Runs the command verify_nixl_setup, and returns its exit status."""
    return check(None, nixl_needed=True)


if __name__ == "__main__":
    sys.exit(check(None, nixl_needed=False))
