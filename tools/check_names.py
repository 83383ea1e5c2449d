#!/usr/bin/env python3
"""Fails when a type name means two things in the folders that move bytes or read machines.

usage: check_names.py [ROOT]

The name of a class, struct, union, enum or alias in FOLDERS is the name of no other type there or
in the public API, nested types included. A forward declaration and an alias that only shortens a
name, such as `using Phase = core::LinkState::Phase`, are no types of their own.

A type also has one fields() (base/fields.h) and one describe() (base/json.h) in all folders. The templates that call
a second one have the same name in the linker's eyes, which takes either of them.
"""
import collections
import pathlib
import re
import sys

FOLDERS = ("src/agent", "src/move", "src/backends", "src/core", "src/host", "src/diag")
PUBLIC = "include"
SOURCES = {".h", ".c", ".cc", ".cu"}
MACHINE = "base::Machine reads it in the description of each state machine"
# Names that several types may have, each with the reason.
SHARED = {"State": MACHINE, "Event": MACHINE}

TYPE = re.compile(
    r"^\s*(?:template\s*<.*>\s*)?(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+"
    r"(?:(?:VIADUCT_\w+|alignas)(?:\([^)]*\))?\s+|\[\[[^\]]*\]\]\s+)*"
    r"(?:\w+::)*(?P<name>\w+)\s*(?:final\s*)?(?::(?!:)[^;{]*)?\{",
    re.MULTILINE,
)
ALIAS = re.compile(r"^\s*using\s+(?P<name>\w+)\s*=\s*(?P<meaning>[^;]+);", re.MULTILINE)
LISTED = re.compile(r"\b(?P<list>fields|describe)\((?:auto& \w+, )?(?:base::)?Is<(?:\w+::)*(?P<name>\w+)> auto&")
LISTING = ("src", "apps")
COMMENT = re.compile(r"//[^\n]*")


def is_product(path):
    return path.suffix in SOURCES and not path.stem.endswith(("_test", "_testing"))


def types(text):
    """The name and the line of each type that a source defines."""
    text = COMMENT.sub("", text)
    for found in [*TYPE.finditer(text), *ALIAS.finditer(text)]:
        meaning = found.groupdict().get("meaning", "")
        if meaning.split("::")[-1].split("<")[0].strip() != found["name"]:
            yield found["name"], text.count("\n", 0, found.start("name")) + 1


def definitions(root):
    """The lines that define a type of each name."""
    out = collections.defaultdict(list)
    for folder in (PUBLIC, *FOLDERS):
        for file in sorted((root / folder).rglob("*")):
            if is_product(file):
                for name, line in types(file.read_text()):
                    out[name].append(f"{file.relative_to(root)}:{line}")
    return out


def second_lists(root):
    """Complaints about types with two lists of fields."""
    places = collections.defaultdict(list)
    for folder in LISTING:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in SOURCES:
                text = COMMENT.sub("", file.read_text())
                for found in LISTED.finditer(text):
                    line = text.count("\n", 0, found.start()) + 1
                    places[found["list"], found["name"]].append(f"{file.relative_to(root)}:{line}")
    return [f"{lines[-1]}: {name} already has a {kind}() at {', '.join(lines[:-1])}"
            for (kind, name), lines in places.items() if len(lines) > 1]  # fmt: skip


def check(root):
    found = second_lists(root)
    for name, lines in definitions(root).items():
        ours = [line for line in lines if line.startswith(FOLDERS)]
        if ours and len(lines) > 1 and name not in SHARED:
            others = ", ".join(line for line in lines if line != ours[-1])
            found.append(f"{ours[-1]}: {name} is already a type at {others}")
    return sorted(found)


def missing(root):
    """Complaints about exceptions that the tree does not need."""
    defined = definitions(root)
    return [f"{name} is in SHARED, and is not the name of two types"
            for name in SHARED if len(defined[name]) < 2]


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    found = missing(root) + check(root)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
