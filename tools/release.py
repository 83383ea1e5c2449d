#!/usr/bin/env python3
"""Prepares a release: refuses what cannot be one, sets the version, cuts the changelog, and commits it.

    release.py VERSION [--dry-run]     exit: 0 done; 2 refused, with the reason

CMakeLists.txt has the version. The other files that show it follow. tools/stable.txt gets the promises of this
release. Where HEAD is the release's commit already,
nothing is left to prepare. --dry-run prints the steps and changes nothing.
"""
import argparse
import datetime
import os
import pathlib
import re
import subprocess
import sys

import check_stability
import cpp_headers

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHANGELOG = "CHANGELOG.md"
OF_TREE = re.compile(r"^project\(viaduct VERSION (\d+\.\d+\.\d+)", re.M)
# The places that show the version: a pattern around it, and the files. Samples of output in documents keep
# theirs.
SHOWN = (
    (r"(?<!\d)(?<!\d\.){old}(?!\.?\d)", "{new}", ("CMakeLists.txt", "deploy", "python/viaduct/nixl/packages")),
    (r"(?P<name>viaduct(-python)?:|newTag: ){old}(?!\.?\d)", r"\g<name>{new}", (":(glob)docs/*.md",)),
    (r"find_package\(viaduct \d+\.\d+", "find_package(viaduct {minor}",
     (":(glob)docs/*.md", "examples/CMakeLists.txt", "tests/install")),
)  # fmt: skip
UNRELEASED = re.compile(r"^## Unreleased(?P<title>[^\n]*)\n(?P<entries>.*?)(?=^## |\Z)", re.M | re.S)


class Refused(Exception):
    """A release that cannot be made. Its text has the reason and the remedy."""


def git(root, *words):
    return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True).stdout


def numbers(version):
    return tuple(int(one) for one in version.split("."))


def version_of(root):
    return OF_TREE.search((root / "CMakeLists.txt").read_text())[1]


def released(root):
    """The versions that tags and sections of the changelog name, each with its place."""
    for tag in git(root, "tag", "--list", "v*").split():
        if re.fullmatch(r"v\d+\.\d+\.\d+", tag):
            yield tag[1:], f"the tag {tag}"
    for version in re.findall(r"^## (\d+\.\d+\.\d+)", (root / CHANGELOG).read_text(), re.M):
        yield version, f"a section of {CHANGELOG}"


def is_prepared(root, version):
    return git(root, "log", "-1", "--format=%s").strip() == f"Release {version}" and version_of(root) == version


def check_version(root, version):
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise Refused(f'"{version}" is no version; write three numbers, such as 0.2.0')
    if changed := git(root, "status", "--porcelain").splitlines():
        names = ", ".join(line[3:] for line in changed[:3]) + (", ..." if len(changed) > 3 else "")
        raise Refused(f"no commit has these changes: {names}; commit or remove them")
    if is_prepared(root, version):
        return
    for known, place in released(root):
        if known == version:
            raise Refused(f"{version} exists: {place} has it; choose a newer version")
        if numbers(known) > numbers(version):
            raise Refused(f"{version} is older than {known}, which {place} has; choose a newer version")
    if numbers(version_of(root)) > numbers(version):
        raise Refused(f"{version} is older than {version_of(root)} in CMakeLists.txt; choose a newer version")


def cut_changelog(text, version, date):
    """The changelog in which the section Unreleased has become the version's, and its count of entries."""
    section = UNRELEASED.search(text)
    entries = re.findall(r"^- ", section["entries"], re.M) if section else []
    if not entries:
        raise Refused(f"{CHANGELOG} has no entries under Unreleased; write what users notice")
    title = re.sub(rf"^:\s*({re.escape(version)},?\s*)?", "", section["title"]).strip()
    heading = f"## Unreleased\n\n## {version}, {date}{': ' + title if title else ''}\n"
    return text[: section.start()] + heading + section["entries"] + text[section.end() :], len(entries)


def changed_files(root, version):
    """The files that the new version changes, with their new texts."""
    words = {"new": version, "minor": version.rpartition(".")[0]}
    old = re.escape(version_of(root))
    changed = {}
    for pattern, new, paths in SHOWN:
        for name in git(root, "ls-files", *paths).split():
            before = changed.get(name) or (root / name).read_text()
            if (after := re.sub(pattern.format(old=old), new.format(**words), before)) != before:
                changed[name] = after
    return changed


def release_date():
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.datetime.now(datetime.timezone.utc)
    return (datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc) if seconds else now).date().isoformat()


def prepare(root, version, dry_run):
    check_version(root, version)
    if is_prepared(root, version):
        print(f"HEAD is the commit of {version}")
        return
    if not cpp_headers.is_readable():
        raise Refused(f"{cpp_headers.COMPILER} records the C++ interface, and is not here; install it, or begin on a system that has it")
    changelog, entries = cut_changelog((root / CHANGELOG).read_text(), version, release_date())
    files = changed_files(root, version)
    print(f"the version becomes {version}, from {version_of(root)}, in {len(files)} files")
    print(f"{CHANGELOG}: {entries} entries become those of {version}")
    print(f"{check_stability.STABLE} gets the promises of {version}")
    print(f'the commit is "Release {version}"')
    if dry_run:
        return
    for name, text in {**files, CHANGELOG: changelog, check_stability.STABLE: check_stability.text_of(root)}.items():
        (root / name).write_text(text)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", f"Release {version}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    asked = parser.parse_args()
    try:
        prepare(asked.root, asked.version, asked.dry_run)
    except Refused as why:
        print(f"./dev release: {why}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
