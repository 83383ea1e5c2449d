#!/usr/bin/env python3
"""Fails when a file uses what lies above its own layer. The table is the design (docs/tour.md).

usage: check_layers.py [ROOT]
"""
import pathlib
import re
import sys

# The layers that each layer may include besides itself. All may include <viaduct/...>.
MAY_USE = {
    "base": set(),
    "host": {"base"},
    "core": {"base", "host"},
    "meet": {"base", "host", "core"},
    "move": {"base", "host", "core"},
    "backends": {"base", "host", "core", "move"},
    "agent": {"base", "host", "core", "meet"},
    "measure": {"base", "host", "meet"},
    "diag": {"base", "host"},
    "apps": {"base", "measure", "diag", "meet"},
    "python": {"base", "core", "agent"},
    "examples": set(),
}
SOURCES = {".h", ".c", ".cc", ".cu"}
INCLUDE = re.compile(r'\s*#\s*include\s*["<](\w+)/(?:(\w+)/)?')
# The files that may read the list of all backends: the agent, and the header that declares it.
CATALOGUE = re.compile(r"\bbackendCatalogue\b")
CATALOGUE_READERS = ("src/agent/", "src/core/backend.h")
# Most of libcrypto reads its configuration at the first call, which takes a millisecond. The
# functions that base/net/crypto.h uses do not.
OPENSSL = re.compile(r"\s*#\s*include\s*<openssl/")
OPENSSL_USER = "src/base/net/"


def layer_of(path):
    """The layer of a file and, for a backend, its folder."""
    parts = path.parts
    if parts[0] == "src" and len(parts) > 2:
        return parts[1], parts[2] if parts[1] == "backends" else None
    if parts[0] in ("apps", "python", "examples"):
        return parts[0], None
    if parts[0] == "include":
        return "include", None
    return None, None


def complaint(layer, folder, used, used_folder):
    """Why this include is wrong, or nothing."""
    if used not in MAY_USE:
        return None
    if layer == "include":
        return f"the public API must not use {used}/"
    if used == layer:
        if layer == "backends" and used_folder != folder:
            return f"backend {folder} must not use backend {used_folder}"
        return None
    return None if used in MAY_USE[layer] else f"{layer} must not use {used}/"


def check(root):
    found = []
    for top in ("include", "src", "apps", "python", "examples"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SOURCES:
                continue
            path = file.relative_to(root)
            layer, folder = layer_of(path)
            if layer is not None and layer != "include" and layer not in MAY_USE:
                found.append(f"{path}: {layer}/ is in no layer")
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                used = INCLUDE.match(line)
                why = complaint(layer, folder, used[1], used[2]) if used and layer else None
                if CATALOGUE.search(line) and not str(path).startswith(CATALOGUE_READERS):
                    why = "only the agent reads the catalogue of backends"
                if OPENSSL.match(line) and not str(path).startswith(OPENSSL_USER):
                    why = "use base/net/crypto.h, which starts without a configuration"
                if why:
                    found.append(f"{path}:{number}: {why}")
    return found


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    found = check(root)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
