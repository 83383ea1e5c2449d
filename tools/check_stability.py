#!/usr/bin/env python3
"""Fails when something that a release has promised is gone or different: docs/stability.md.

    check_stability.py [ROOT]

compares the tree with tools/stable.txt, which ./dev release writes.

A promise is one line, such as "flag bench --batch". New lines break nothing. Before the first release nothing is
promised, and the file is absent. Without the compiler of cpp_headers.py the C++ interface is not compared.
"""
import ast
import pathlib
import re
import sys

import cpp_headers

STABLE = "tools/stable.txt"
SECTION = re.compile(r"^## `(viaduct [a-z ]+|nixlbench)`\n(.*?)(?=^## |\Z)", re.M | re.S)
ROW = re.compile(r"^\| (`[^|]+?) \|([^|]*)\|([^|]*)\|", re.M)
NAME = re.compile(r"`([^`]+)`")
STRUCT = re.compile(r"typedef struct (\w+) \{\n(.*?)\n\} \w+;", re.S)
FUNCTION = re.compile(r"^VIADUCT_C_API (.*?\));", re.M | re.S)
FINDING = re.compile(r'"([a-z-]+\.[a-z][a-z0-9-]+)"')
TOPIC = re.compile(r'Topic\{"([a-z-]+)"')


def read(root, name):
    return (root / name).read_text(encoding="utf-8")


def one_line(text):
    return " ".join(text.split())


def flags(root):
    for command, text in SECTION.findall(read(root, "docs/bench-flags.md")):
        for flag in re.findall(r"^  (?:-\w,)?(--[a-z][a-z0-9_-]*)", text, re.M):
            yield f"flag {command} {flag}"


def settings(root):
    for names, _, _ in ROW.findall(read(root, "docs/settings.md")):
        yield from (f"setting {name}" for name in NAME.findall(names) if name.startswith("VIADUCT_"))


def metrics(root):
    for names, kind, labels in ROW.findall(read(root, "docs/metrics.md")):
        for name in NAME.findall(names):
            if name.startswith("viaduct_"):
                yield f"metric {name} {kind.strip()} {','.join(NAME.findall(labels))}".rstrip()


def result_fields(root):
    """The fields in the tables of docs/results.md, and the format's own number."""
    section = "file"
    for line in read(root, "docs/results.md").splitlines():
        if heading := re.match(r"## (.+)", line):
            section = heading[1].lower()
        elif row := re.match(r"\| (`[^|]+?) \|", line):
            yield from (f"result {section}: {name}" for name in NAME.findall(row[1]))
    yield from (f"result format {name}" for name in re.findall(r"`(viaduct-\w+/\d+)`", read(root, "docs/results.md")))


def exit_codes(root):
    for name in ("commands", "doctor"):
        for code in re.findall(r"^  kExit(\w+ = \d+)", read(root, f"apps/viaduct/{name}.h"), re.M):
            yield f"exit {name} {code}"


def findings(root):
    topics = set(TOPIC.findall(read(root, "src/diag/topics.cc")))
    for path in sorted((root / "src/diag").glob("check_*.cc")):
        if not path.name.endswith("_test.cc"):
            for code in FINDING.findall(path.read_text(encoding="utf-8")):
                if code.split(".")[0] in topics:
                    yield f"finding {code}"


def c_interface(root):
    text = re.sub(r"/\*.*?\*/", "", read(root, "include/viaduct/c.h"), flags=re.S)
    yield from (f"c {one_line(found)}" for found in FUNCTION.findall(text))
    yield from (f"c {name} = {value}" for name, value in re.findall(r"\b(VIADUCT_[A-Z_]+) = (\d+)", text))
    yield from (f"c typedef {one_line(found)}" for found in re.findall(r"^typedef (?!struct)([^{};]+);", text, re.M))
    for name, fields in STRUCT.findall(text):
        for index, field in enumerate(one_line(one) for one in fields.split(";") if one.strip()):
            yield f"c struct {name} {index} {field}"


def parameters(function):
    """The names of a Python function's parameters. A positional one follows its position: "0 timeout"."""
    words = function.args
    by_place = [one for one in words.posonlyargs + words.args if one.arg not in ("self", "cls")]
    yield from (f"{place} {one.arg}" for place, one in enumerate(by_place))
    yield from (one.arg for one in words.kwonlyargs)


def python_interface(root):
    """The public classes, functions and attributes of the Python package."""
    def names_in(body, prefix):
        for one in body:
            name = getattr(one, "name", None) or getattr(getattr(one, "target", None), "id", "")
            if not name or (name.startswith("_") and name != "__init__"):
                continue
            yield f"python {prefix}{name}"
            if isinstance(one, ast.ClassDef):
                yield from names_in(one.body, f"{name}.")
            elif isinstance(one, ast.FunctionDef):
                yield from (f"python {prefix}{name}: {parameter}" for parameter in parameters(one))

    return names_in(ast.parse(read(root, "python/viaduct/_core.pyi")).body, "")


def promises(root):
    out = set()
    kinds = [flags, settings, metrics, result_fields, exit_codes, findings, c_interface, python_interface]
    for kind in kinds + ([cpp_headers.cpp_interface] if cpp_headers.is_readable() else []):
        found = set(kind(root))
        if not found:
            raise ValueError(f"check_stability.py finds no promise of the kind {kind.__name__}: its source has another form")
        out |= found
    return out


def text_of(root):
    return "".join(f"{line}\n" for line in sorted(promises(root)))


def check(root):
    path = root / STABLE
    if not path.exists():
        return []
    promised = path.read_text(encoding="utf-8").splitlines()
    if not cpp_headers.is_readable():
        print(f"the C++ interface is not compared: there is no {cpp_headers.COMPILER}")
        promised = [line for line in promised if not line.startswith("c++ ")]
    return [f"{line}: promised by a release, and gone or different now"
            for line in sorted(set(promised) - promises(root))]  # fmt: skip


def main():
    found = check(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
