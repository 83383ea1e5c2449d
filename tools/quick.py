#!/usr/bin/env python3
"""quick.py BUILD LAYER|FILE... [-j N]: builds the tests of layers, or of the layers of files, and runs them.

A layer is a folder of src/, with or without that prefix, such as backends/tcp; or a folder of tests/, such as
tests/process; or python. A file of tests runs with its own program, or, in Python, alone. A file of apps/ runs
with the files of tests/app that have its name, or begin with its first word.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read_table(build):
    """Each source, and the programs that test it."""
    table = {}
    with open(os.path.join(build, "tested_by.txt"), encoding="utf-8") as rows:
        for source, program in (row.split() for row in rows):
            table.setdefault(source, []).append(program)
    return table


def in_tree(name):
    """The path of a layer or file below the root, or None."""
    for path in (name, os.path.join("src", name), os.path.join("tests", name)):
        full = os.path.abspath(os.path.join(ROOT, path)) if not os.path.isabs(path) else path
        if os.path.exists(full):
            return os.path.relpath(full, ROOT)
    return None


def programs_of(path, table):
    """The programs that test a file or a folder: its own ones, or those of the nearest folder that has any."""
    if path in table:
        return table[path]
    folder = path if os.path.isdir(os.path.join(ROOT, path)) else os.path.dirname(path)
    while folder:
        for place in (folder, folder.replace("src/", "tests/", 1)):
            found = {p for source, ps in table.items() if os.path.dirname(source) == place for p in ps}
            if found:
                return sorted(found)
        folder = os.path.dirname(folder)
    return []


def python_tests(path):
    """A pattern for the names that ctest gives to one file of Python tests, or to all."""
    parts = path.split("/")
    if parts[-1].startswith("test_"):
        return rf"^Python\.{parts[-2]}\.{parts[-1][len('test_'):-len('.py')]}$"
    return r"^Python\."


def tests_of_app(path):
    """The files of tests/app for a file of apps/."""
    stem = os.path.splitext(os.path.basename(path))[0]
    folder = os.path.join(ROOT, "tests/app")
    found = glob.glob(f"{folder}/{stem}_test.cc") or glob.glob(f"{folder}/{stem.split('_')[0]}*_test.cc")
    return [os.path.relpath(file, ROOT) for file in found]


def suites_in(file):
    """The names of GoogleTest's suites in a file."""
    with open(os.path.join(ROOT, file), encoding="utf-8") as text:
        return set(re.findall(r"^TEST(?:_F|_P)?\((\w+),", text.read(), re.MULTILINE))


def numbers_of(build, programs, suites):
    """The numbers that ctest gives to the tests of programs, all or those of some suites."""
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, check=True)
    tests = json.loads(shown.stdout)["tests"]
    return [n for n, test in enumerate(tests, 1)
            if os.path.basename((test.get("command") or [""])[0]) in programs
            and (not suites or suites & set(re.split(r"[./]", test["name"])))]


def main():
    parser = argparse.ArgumentParser(prog="./dev quick", add_help=False)
    parser.add_argument("build")
    parser.add_argument("what", nargs="*")
    parser.add_argument("-j", type=int, default=1)
    args = parser.parse_args()
    if not args.what:
        sys.exit("./dev quick: name a layer or a file: ./dev quick backends/tcp, ./dev quick src/base/sizes.cc")
    if not os.path.exists(os.path.join(args.build, "tested_by.txt")):
        sys.exit(f"./dev quick: {args.build} has no tests: type ./dev build once")
    table = read_table(args.build)
    programs, python, suites = set(), [], set()
    for name in args.what:
        path = in_tree(name)
        if path is None:
            sys.exit(f"./dev quick: there is no layer or file {name}: a layer is a folder of src/, such as backends/tcp")
        if path.startswith("python"):
            python.append(python_tests(path))
            continue
        files = tests_of_app(path) if path.startswith("apps/") else [path]
        found = [program for file in files for program in programs_of(file, table)]
        if path.startswith("apps/"):
            suites.update(*map(suites_in, files))
        if not found:
            sys.exit(f"./dev quick: nothing in tests/ tests {path} alone: type ./dev test")
        programs.update(found)
    targets = sorted(programs) + (["viaduct_python_installed"] if python else [])
    print("./dev quick:", *targets, flush=True)
    if subprocess.run(["cmake", "--build", args.build, "-j", str(os.cpu_count()), "--target", *targets],
                      check=False).returncode:
        sys.exit(1)
    selections = [["--tests-regex", pattern] for pattern in python]
    if programs:
        selections.append(["--tests-information", ",".join(map(str, [0, 0, 0] + numbers_of(args.build, programs, suites)))])
    ctest = ["ctest", "--test-dir", args.build, "--output-on-failure", "--progress", "-j", str(args.j)]
    codes = [subprocess.run(ctest + which, check=False).returncode for which in selections]
    sys.exit(1 if any(codes) else 0)


if __name__ == "__main__":
    main()
