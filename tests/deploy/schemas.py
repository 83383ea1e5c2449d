"""Types of Kubernetes' objects, read from the declarations of its client for JavaScript."""

import os
import re
import shutil
import subprocess
import tarfile

PACKAGE = "@kubernetes/client-node"
VERSION = "2.0.1"  # Kubernetes 1.36
FIELD = re.compile(r"^    '(\w+)'(\?)?: (.+)$")
NUMBERS = (int, float)


class Missing(Exception):
    pass


def fetch(folder):
    """The folder of the declarations; npm brings the package when it is not there yet."""
    models = os.path.join(folder, f"client-node-{VERSION}", "package", "dist", "gen", "models")
    if os.path.isdir(models):
        return models
    if not shutil.which("npm"):
        raise Missing("npm is not installed")
    os.makedirs(folder, exist_ok=True)
    packed = subprocess.run(
        ["npm", "pack", "--silent", "--fetch-retries=0", "--fetch-timeout=30000", f"{PACKAGE}@{VERSION}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if packed.returncode != 0:
        raise Missing(f"npm did not get {PACKAGE} {VERSION}")
    part = os.path.join(folder, f"part-{os.getpid()}")
    with tarfile.open(os.path.join(folder, packed.stdout.split()[-1])) as archive:
        wanted = [one for one in archive if one.name.startswith("package/dist/gen/models/") and one.name.endswith(".d.ts")]
        archive.extractall(part, members=wanted)
    whole = os.path.join(folder, f"client-node-{VERSION}")
    try:
        os.rename(part, whole)
    except OSError:  # another test has made the file meanwhile
        shutil.rmtree(part)
    return models


class Schemas:
    def __init__(self, models):
        self.models = models
        self.types = {}

    def fields(self, name):
        """{field: (type, required)} of a class, or None."""
        if name not in self.types:
            path = os.path.join(self.models, name + ".d.ts")
            self.types[name] = self.parse(path) if os.path.exists(path) else None
        return self.types[name]

    @staticmethod
    def parse(path):
        out = {}
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
        for i, line in enumerate(lines):
            match = FIELD.match(line)
            if match:
                kind = match[3].rstrip(";")
                if kind == "{":  # { [key: string]: type; }, spread over three lines
                    kind = "map " + lines[i + 1].split("]: ")[1].rstrip(";")
                out[match[1].lstrip("_")] = (kind, match[2] is None)
        return out

    def knows(self, one):
        return self.fields(self.class_of(one)) is not None

    @staticmethod
    def class_of(one):
        version = one["apiVersion"].split("/")[-1]
        return version[0].upper() + version[1:] + one["kind"]

    def check(self, one):
        """Returns the faults of an object, each as a line."""
        return list(self.value(one, self.class_of(one), one["kind"] + " " + one["metadata"]["name"]))

    def value(self, value, kind, where):
        if kind.startswith("Array<"):
            if not isinstance(value, list):
                yield f"{where}: not a list"
                return
            for i, item in enumerate(value):
                yield from self.value(item, kind[6:-1], f"{where}[{i}]")
        elif kind.startswith("map "):
            if not isinstance(value, dict):
                yield f"{where}: not a map"
                return
            for name, item in value.items():
                # A quantity is a string, but the server also accepts a number.
                quantity = where.endswith((".limits", ".requests")) and isinstance(item, NUMBERS)
                if not quantity:
                    yield from self.value(item, kind[4:], f"{where}.{name}")
        elif kind == "any" or kind == "Date":
            return
        elif kind in ("string", "number", "boolean", "IntOrString"):
            fits = {
                "string": isinstance(value, str) or (where.endswith(("sizeLimit", ".divisor")) and isinstance(value, NUMBERS)),
                "number": isinstance(value, NUMBERS) and not isinstance(value, bool),
                "boolean": isinstance(value, bool),
                "IntOrString": isinstance(value, (int, str)),
            }[kind]
            if not fits:
                yield f"{where}: {value!r} is no {kind}"
        else:
            yield from self.object(value, kind, where)

    def object(self, value, kind, where):
        fields = self.fields(kind)
        if fields is None:
            yield f"{where}: no declaration of {kind}"
            return
        if not isinstance(value, dict):
            yield f"{where}: not a {kind}"
            return
        for name, item in value.items():
            if name not in fields:
                yield f"{where}.{name}: {kind} has no such field"
            else:
                yield from self.value(item, fields[name][0], f"{where}.{name}")
        for name, (_, required) in fields.items():
            if required and name not in value:
                yield f"{where}: {name} is missing"
