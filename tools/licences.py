#!/usr/bin/env python3
"""Writes docs/licences.md: the licences of what Viaduct is built with and runs with.

usage: licences.py                writes the page
       licences.py --check        fails when the page is old, or when ./dev installs a package without a row
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "licences.md"
# Debian's package, its licence as SPDX writes it, and how Viaduct uses it.
LIBRARIES = [
    ("libfmt-dev", "MIT", "linked into the library and the programs"),
    ("libssl-dev", "Apache-2.0", "libcrypto, linked into the library and the programs"),
    ("nlohmann-json3-dev", "MIT", "compiled into the programs and the library's meeting at etcd"),
    ("libarchive-dev", "BSD-2-Clause", "linked into the programs `viaduct` and `viaduct-doctor`"),
    ("libcurl4-openssl-dev", "curl", "its headers; the library is loaded at run time by etcd and objects"),
    ("libucx-dev", "BSD-3-Clause", "its headers; the library is loaded at run time by the backend ucx"),
    ("libfabric-dev", "BSD-2-Clause OR GPL-2.0-only", "its headers; the library is loaded at run time by the backend ofi"),
    ("libacl1-dev", "LGPL-2.1-or-later", "linked into the static file `viaduct-doctor`"),
    ("zlib1g-dev", "Zlib", "linked into the static file `viaduct-doctor`"),
    ("python3-dev", "PSF-2.0", "the Python module"),
    ("pybind11-dev", "BSD-3-Clause", "compiled into the Python module"),
]
# Programs that build and test Viaduct. No part of them is delivered with Viaduct.
TOOLS = {"g++", "cmake", "ninja-build", "ccache"}
HEAD = """<!-- Generated: tools/licences.py -->

# Licences of dependencies

Viaduct itself is under Apache-2.0 ([LICENSE](../LICENSE)). No source of others is in this repository. A library whose licence has two
choices is used under the first one.

| Debian package | licence | use |
|---|---|---|
"""
TAIL = """
CUDA's driver is loaded at run time where a GPU is there. It belongs to NVIDIA, is under NVIDIA's licence, and is not delivered with Viaduct.
`viaduct-doctor` also contains the GNU C library, under LGPL-2.1-or-later. `./dev doctor` links the file again with another version of it.
The tools that build and test Viaduct (`./dev help`) leave nothing of their own in what is delivered, except the run-time libraries of
GCC. Their exception allows programs of any licence.

`/usr/share/doc/PACKAGE/copyright` has the whole text of each licence on Debian and Ubuntu.
"""


def page():
    return HEAD + "".join(f"| `{name}` | {licence} | {use} |\n" for name, licence, use in LIBRARIES) + TAIL


def packages(text):
    """The packages of what is built: three lists of ./dev."""
    for name in ("run_packages", "python_packages", "doctor_packages"):
        block = re.search(rf"^{name}=\((.*?)^\)", text, re.S | re.M)[1]
        yield from re.findall(r'^\s*"(\S+) ', block, re.M)


def complaints(dev, there):
    known = {name for name, _, _ in LIBRARIES}
    for name in packages(dev):
        if name not in known | TOOLS:
            yield f"./dev installs {name}, which has no licence in tools/licences.py"
    for name in known - set(packages(dev)):
        yield f"tools/licences.py has {name}, which ./dev does not install"
    if there != page():
        yield "docs/licences.md is old: run tools/licences.py"


if __name__ == "__main__":
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(page())
        sys.exit(0)
    found = list(complaints((ROOT / "dev").read_text(), PAGE.read_text()))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
