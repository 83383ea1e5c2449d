#!/usr/bin/env python3
"""Checks the wheels in a folder without installing them.

    contents.py FOLDER cp311 ... [--for-this-host]     exit: 0 if all checks passed, else 1 with the errors

The folder has a wheel of the module for each of these Pythons, and one of viaduct-nixl. With --for-this-host, the module
may need libraries that few other hosts have.
"""

import base64
import csv
import email
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# Every system with python3 and OpenSSL 3 has these libraries.
COMMON = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libcrypto.so.3"}
LOADER = re.compile(r"ld-linux-[^/]*\.so\.\d+")
# The wheel has the library, four backends and the code of fmt. Its size must stay below this limit.
MOST_BYTES = 8_000_000

wrong = []


def expect(condition, text):
    if not condition:
        wrong.append(text)


def tool(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def in_dist_info(wheel, name):
    """Returns the path of a file in *.dist-info at the top of the wheel, not in a package."""
    paths = [one for one in wheel.namelist() if re.fullmatch(rf"[^/]+\.dist-info/{name}", one)]
    if len(paths) != 1:
        sys.exit(f"{wheel.filename} has not one {name}: {paths}")
    return paths[0]


def check_record(wheel, name):
    """Checks that RECORD lists every file with its hash and size."""
    record = in_dist_info(wheel, "RECORD")
    rows = {row[0]: row for row in csv.reader(wheel.read(record).decode().splitlines())}
    expect(set(rows) == set(wheel.namelist()), f"{name}: RECORD and the files differ")
    for path in set(wheel.namelist()) & set(rows) - {record}:
        data = wheel.read(path)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        expect(
            rows[path][1:] == [f"sha256={digest}", str(len(data))],
            f"{name}: RECORD is wrong about {path}",
        )


def check_metadata(wheel, name, want):
    fields = email.message_from_string(wheel.read(in_dist_info(wheel, "METADATA")).decode())
    for field, value in want.items():
        expect(
            fields.get_all(field, []) == value,
            f"{name}: {field} is {fields.get_all(field)}, not {value}",
        )
    in_dist_info(wheel, "LICENSE")


def check_files(wheel, name, packages):
    tops = {path.split("/")[0] for path in wheel.namelist() if ".dist-info/" not in path}
    expect(tops == packages, f"{name} has {sorted(tops)}, not {sorted(packages)}")
    for path in wheel.namelist():
        odd = re.search(r"__pycache__|\.pyc$|(^|/)tests?/|\.cc$|\.h$|\.(a|o)$", path)
        expect(not odd, f"{name} has {path}, which is not for users")
    missing = [
        path.relative_to(parent).as_posix()
        for parent in (SOURCE / "python", SOURCE / "python/nixl")
        for package in packages
        for pattern in ("*.py", "*.pyi", "py.typed", "METADATA")
        for path in (parent / package).rglob(pattern)
        if path.relative_to(parent).as_posix() not in wheel.namelist()
        and (parent / package / "__init__.py").exists()
    ]
    expect(not missing, f"{name} lacks {missing}")


def check_tag(wheel, name):
    """Checks that the name of the file and the wheel agree for which Python and system it is."""
    tag = "-".join(name.removesuffix(".whl").split("-")[2:])
    fields = email.message_from_string(wheel.read(in_dist_info(wheel, "WHEEL")).decode())
    expect(fields.get_all("Tag") == [tag], f"{name}: the wheel's tag is {fields.get_all('Tag')}")
    return tag


def check_module(wheel, name, for_this_host):
    """Checks that the module is stripped, needs only known libraries, exports only its entry, and fits the tag."""
    python, _, platform = check_tag(wheel, name).partition("-")
    modules = [path for path in wheel.namelist() if ".so" in path]
    expect(len(modules) == 1, f"{name} has not one compiled module: {modules}")
    with tempfile.TemporaryDirectory() as folder:
        module = wheel.extract(modules[0], folder)
        expect(
            ".debug_" not in tool("readelf", "--section-headers", "--wide", module),
            f"{name}: not stripped",
        )
        dynamic = tool("readelf", "--dynamic", "--wide", module)
        symbols = tool("readelf", "--version-info", "--wide", module)
        exported = tool(
            "nm", "--dynamic", "--defined-only", "--format=just-symbols", module
        ).split()
    minor = python.removeprefix("cp3")
    expect(f".cpython-3{minor}-" in modules[0], f"{name}: {modules[0]} is for another Python")
    if found := re.search(r"manylinux_2_(\d+)_", platform):
        newest = max(int(one) for one in re.findall(r"\bGLIBC_2\.(\d+)", symbols))
        expect(int(found[1]) == newest, f"{name}: the module needs glibc 2.{newest}")
    expect(exported == ["PyInit__core"], f"{name}: the module shows others {exported[:5]}")
    if not for_this_host:
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
        foreign = {one for one in needed - COMMON if not LOADER.fullmatch(one)}
        expect(not foreign, f"{name}: the module needs {sorted(foreign)}, which few hosts have")
        expect(
            not re.search(r"R(UN)?PATH", dynamic),
            f"{name}: the module looks for libraries in a fixed folder",
        )


def main():
    folder, *words = sys.argv[1:]
    pythons = [word for word in words if word.startswith("cp")]
    version = re.search(
        r"^project\(viaduct VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text(), re.M
    ).group(1)
    common = {"License": ["Apache-2.0"], "Requires-Python": [">=3.9"]}
    expected = {
        **{
            f"viaduct-{version}-{python}-{python}-": (
                {"viaduct"},
                {"Name": ["viaduct"], "Version": [version], "Requires-Dist": []},
            )
            for python in pythons
        },
        f"viaduct_nixl-1.4.0+viaduct.{version}-py3-none-any": (
            {"nixl", "nixl_cu12", "nixl_cu13"},
            {
                "Name": ["viaduct-nixl"],
                "Version": [f"1.4.0+viaduct.{version}"],
                "Requires-Dist": [f"viaduct (=={version})"],
            },
        ),
    }
    files = sorted(pathlib.Path(folder).glob("*.whl"))
    for start in expected:
        expect(
            sum(one.name.startswith(start) for one in files) == 1,
            f"{folder} has not one {start}*: {[one.name for one in files]}",
        )
    for path in files:
        matches = [value for start, value in expected.items() if path.name.startswith(start)]
        expect(matches, f"{path.name} is called otherwise than a wheel of this version")
        expect(path.stat().st_size <= MOST_BYTES, f"{path.name} has more than {MOST_BYTES} bytes")
        if not matches:
            continue
        packages, metadata = matches[0]
        with zipfile.ZipFile(path) as wheel:
            check_record(wheel, path.name)
            check_metadata(wheel, path.name, {**metadata, **common})
            check_files(wheel, path.name, packages)
            if packages == {"viaduct"}:
                check_module(wheel, path.name, "--for-this-host" in words)
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")
    for text in wrong:
        print(text, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
