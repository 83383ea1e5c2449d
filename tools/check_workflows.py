#!/usr/bin/env python3
"""Fails when a workflow or template for GitHub does more than call ./dev, or calls what ./dev does not have.

A workflow may use actions/checkout and run commands of ./dev. It reads the repository and writes nothing: it has no
secret, no write permission, and no text of an issue or pull request within a command. Each template of an issue is a
form with unique fields. Those for faults, and that of a pull request, ask for the version and the doctor.

usage: check_workflows.py [ROOT]
"""
import pathlib
import re
import subprocess
import sys

import yaml

MAY_USE = re.compile(r"actions/checkout@v\d+$")
MAY_RUN = re.compile(r"\./dev ([a-z]+)((?: (?:--)?[a-z0-9]+| \$\{\{ matrix\.[a-z]+ \}\})*)$")
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
MAY_EXPAND = re.compile(r"(matrix\.[a-z]+|github\.ref)$")
ASKS = ("ISSUE_TEMPLATE/fault.yml", "ISSUE_TEMPLATE/slow.yml", "pull_request_template.md")
ASKED_FOR = ("viaduct version --json", "viaduct doctor snapshot")


def load(path):
    """A file of YAML, in which `on` is a word and no truth value."""
    return yaml.load(path.read_text(), Loader=yaml.BaseLoader)


def calls(job):
    """The commands of a job, with each value of its matrix."""
    matrix = job.get("strategy", {}).get("matrix", {})
    for step in job.get("steps", []):
        lines = [line for line in step.get("run", "").split("\n") if line.strip()]
        for line in lines:
            names = re.findall(r"\$\{\{ matrix\.([a-z]+) \}\}", line)
            variants = [line]
            for name in names:
                variants = [one.replace("${{ matrix.%s }}" % name, value) for one in variants for value in matrix.get(name, ["?"])]
            yield from variants


def help_of(root):
    return subprocess.run([str(root / "dev"), "help"], capture_output=True, text=True, check=True).stdout


def dev_takes(dev_help, call):
    """Whether the help has a row with the command and its options."""
    words = call.split()[1:]
    rows = [row.translate(str.maketrans("[]", "  ")).split() for row in re.findall(r"^  ([a-z]+(?: .*)?)$", dev_help, re.MULTILINE)]
    return any(row[0] == words[0] and set(words[1:]) <= set(row) for row in rows)


def workflow(dev_help, path):
    document = load(path)
    if document.get("permissions") != {"contents": "read"}:
        yield "permissions are not `contents: read` alone"
    if "pull_request_target" in document.get("on", {}):
        yield "pull_request_target runs code of strangers with rights"
    for expression in EXPRESSION.findall(path.read_text()):
        if not MAY_EXPAND.match(expression):
            yield f"the expression {expression} is not allowed"
    for name, job in document.get("jobs", {}).items():
        if "permissions" in job or "timeout-minutes" not in job:
            yield f"{name}: a job has a timeout, and no permissions of its own"
        for step in job.get("steps", []):
            if "uses" in step and not MAY_USE.match(step["uses"]):
                yield f"{name}: may not use {step['uses']}"
            for line in step.get("run", "").split("\n"):
                if line.strip() and not MAY_RUN.match(line.strip()):
                    yield f"{name}: runs more than ./dev: {line.strip()}"
        for call in calls(job):
            if MAY_RUN.match(call) and not dev_takes(dev_help, call):
                yield f"{name}: ./dev has no such command: {call}"


def template(path):
    document = load(path)
    if path.name == "config.yml":
        return
    for field in ("name", "description", "body"):
        if not document.get(field):
            yield f"no {field}"
    ids = [field["id"] for field in document.get("body", []) if "id" in field]
    if len(ids) != len(set(ids)):
        yield "two fields have one id"


def complaints(root, dev_help):
    folder = root / ".github"
    for path in sorted(folder.glob("workflows/*.y*ml")):
        yield from (f"{path.relative_to(root)}: {one}" for one in workflow(dev_help, path))
    for path in sorted(folder.glob("ISSUE_TEMPLATE/*.y*ml")):
        yield from (f"{path.relative_to(root)}: {one}" for one in template(path))
    for name in ASKS:
        text = (folder / name).read_text() if (folder / name).exists() else ""
        yield from (f".github/{name}: does not ask for `{words}`" for words in ASKED_FOR if words not in text)


if __name__ == "__main__":
    where = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    found = list(complaints(where, help_of(where)))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
