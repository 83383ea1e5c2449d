#!/usr/bin/env python3
"""Collects the artifacts of a release in a folder, and lists them.

    artifacts.py FOLDER [--debs DIR] [--wheels DIR] [--headers DIR ...] [--doctor FILE ...] [--images DIR]

The folder gets the source archive of HEAD, what the arguments name, an apt repository of the packages, a list of
contents as SPDX 2.3, and the file SHA256SUMS. --headers names the folder python-X.Y whose headers the wheel of that
Python has. Equal inputs make equal bytes: every date is that of the commit.
"""
import argparse
import datetime
import gzip
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import licences
import release

# Libraries inside viaduct-doctor and the wheels beside those of ./dev, with their licences.
STATIC_ONLY = (("libc6-dev", "LGPL-2.1-or-later"), ("libstdc++-12-dev", "GPL-3.0-or-later WITH GCC-exception-3.1"))
IN_DOCTOR = {"libfmt-dev", "libssl-dev", "nlohmann-json3-dev", "libarchive-dev", "libacl1-dev", "zlib1g-dev"}
IN_WHEEL = {"libfmt-dev", "nlohmann-json3-dev", "pybind11-dev", "libstdc++-12-dev"}


def run(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, **more).stdout


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_gzip(path, data):
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(data)


def add_source(folder, root, version):
    name = f"viaduct-{version}"
    tar = run("git", "-C", str(root), "archive", "--format=tar", f"--prefix={name}/", "HEAD")
    write_gzip(folder / f"{name}.tar.gz", tar)


def add_apt(folder, debs, epoch):
    """An apt repository: the packages, their index, and a Release file that a maintainer signs."""
    apt = folder / "apt"
    apt.mkdir()
    for deb in sorted(debs.glob("*.deb")):
        shutil.copy(deb, apt)
    index = run("dpkg-scanpackages", "--multiversion", ".", cwd=apt, stderr=subprocess.DEVNULL)
    (apt / "Packages").write_bytes(index)
    write_gzip(apt / "Packages.gz", index)
    architectures = sorted({line.split()[1] for line in index.decode().splitlines() if line.startswith("Architecture:")})
    date = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S UTC")
    rows = (f" {digest(apt / name)} {(apt / name).stat().st_size} {name}\n" for name in ("Packages", "Packages.gz"))
    (apt / "Release").write_text(
        f"Origin: Viaduct\nLabel: Viaduct\nSuite: stable\nDate: {date}\nArchitectures: {' '.join(architectures)}\n"
        f"SHA256:\n{''.join(rows)}"
    )


def machine_of(file):
    """The processor of a program, in Debian's words."""
    number = int.from_bytes(file.read_bytes()[18:20], "little")
    return {62: "amd64", 183: "arm64"}[number]


def installed_version(package):
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False)
    return asked.stdout if asked.returncode == 0 and asked.stdout else "NOASSERTION"


def spdx_id(name):
    return "SPDXRef-" + "".join(one if one.isalnum() or one in ".-" else "-" for one in name)


def library_id(name, version):
    return spdx_id(f"{name}-{version}" if version else name)


def library_package(name, licence, version=None):
    own = library_id(name, version)
    version = version or installed_version(name)
    return {"SPDXID": own, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:deb/debian/{name}@{version}"}]}  # fmt: skip


def artifact_package(folder, path, version):
    name = str(path.relative_to(folder))
    return {"SPDXID": spdx_id(name), "name": name, "versionInfo": version, "packageFileName": path.name,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "Apache-2.0",
            "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION",
            "checksums": [{"algorithm": "SHA256", "checksumValue": digest(path)}]}  # fmt: skip


def header_versions(folder):
    """The versions of the libraries that a wheel holds if it was built with this folder of tools/debian_files.sh."""
    rows = (line.split() for line in (folder / "versions").read_text().splitlines())
    return {name: version for name, version in rows if name in IN_WHEEL}


def contained_in(path, headers):
    """The libraries whose code an artifact holds, each with its version if it is not the installed one."""
    if path.name.startswith("viaduct-doctor-"):
        return [(name, None) for name in sorted(IN_DOCTOR | {name for name, _ in STATIC_ONLY})]
    if not path.name.startswith("viaduct-") or path.suffix != ".whl":
        return []
    python = path.name.split("-")[2]
    other = next((header_versions(one) for one in headers if f"cp{one.name.split('-')[1].replace('.', '')}" == python), {})
    return [(name, other.get(name)) for name in sorted(IN_WHEEL)]


def contents(folder, version, epoch, headers):
    """The list of contents as SPDX 2.3: every artifact, and every library that it holds or was built with."""
    files = artifacts(folder)
    rows = [(name, licence) for name, licence, _ in licences.LIBRARIES] + list(STATIC_ONLY)
    source = f"viaduct-{version}.tar.gz"
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", spdx_id(str(one.relative_to(folder)))) for one in files]
    relations += [(spdx_id(name), "BUILD_DEPENDENCY_OF", spdx_id(source)) for name, _ in rows]
    libraries = [library_package(*row) for row in rows]
    others = set()
    for one in files:
        own = spdx_id(str(one.relative_to(folder)))
        if one.name != source:
            relations.append((own, "GENERATED_FROM", spdx_id(source)))
        inside = contained_in(one, headers)
        relations += [(own, "STATIC_LINK", library_id(*each)) for each in inside]
        others |= {each for each in inside if each[1]}
    libraries += [library_package(name, dict(rows)[name], its_version) for name, its_version in sorted(others)]
    sums = hashlib.sha256("".join(map(digest, files)).encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"viaduct-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/viaduct-{version}-{sums}",
        "creationInfo": {"created": datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: viaduct-tools-artifacts"]},
        "packages": [artifact_package(folder, one, version) for one in files] + libraries,
        "relationships": [{"spdxElementId": a, "relationshipType": how, "relatedSpdxElement": b} for a, how, b in relations],
    }  # fmt: skip


def artifacts(folder):
    """The delivered files, without those that list them."""
    lists = {"SHA256SUMS", "Packages", "Packages.gz", "Release"}
    files = (one for one in folder.rglob("*") if one.is_file())
    return sorted(one for one in files if one.name not in lists and not one.name.endswith(".spdx.json"))


def write_sums(folder):
    files = sorted(one for one in folder.rglob("*") if one.is_file() and one.name != "SHA256SUMS")
    (folder / "SHA256SUMS").write_text("".join(f"{digest(one)}  {one.relative_to(folder)}\n" for one in files))


def collect(asked):
    version = release.version_of(asked.root)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", str(asked.root), "log", "-1", "--format=%ct"))
    shutil.rmtree(asked.folder, ignore_errors=True)
    asked.folder.mkdir(parents=True)
    add_source(asked.folder, asked.root, version)
    if asked.debs:
        add_apt(asked.folder, asked.debs, epoch)
    for wheel in sorted(asked.wheels.glob("*.whl")) if asked.wheels else ():
        shutil.copy(wheel, asked.folder)
    for image in sorted(asked.images.glob("*.tar")) if asked.images else ():
        shutil.copy(image, asked.folder)
    for doctor in asked.doctor:
        shutil.copy(doctor, asked.folder / f"viaduct-doctor-{version}-{machine_of(doctor)}")
    text = json.dumps(contents(asked.folder, version, epoch, asked.headers), indent=2) + "\n"
    (asked.folder / f"viaduct-{version}.spdx.json").write_text(text)
    write_sums(asked.folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--root", type=pathlib.Path, default=release.ROOT)
    for kind in ("--doctor", "--headers"):
        parser.add_argument(kind, type=pathlib.Path, action="append", default=[])
    for kind in ("--debs", "--wheels", "--images"):
        parser.add_argument(kind, type=pathlib.Path)
    asked = parser.parse_args()
    collect(asked)
    sys.stdout.write((asked.folder / "SHA256SUMS").read_text())


if __name__ == "__main__":
    main()
