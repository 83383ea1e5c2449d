#!/usr/bin/env python3
"""Fails when a file uses a layer above its own, or a product file names a backend.

usage: check_layers.py [ROOT]

A layer is a folder, and each sub-folder is a layer of its own. The table is the design (docs/tour.md).
"""
import pathlib
import re
import sys

# The layers that each layer may include besides itself. All may include <viaduct/...>, the public
# API.
NET = {"base", "base/net"}
MAY_USE = {
    "base": set(),
    "base/net": {"base"},
    "host": {"base"},
    "core": NET,
    "kv": {"base", "core"},
    "move": {"base", "host", "core"},
    "move/staging": {"base", "core", "move"},
    "s3": NET | {"core"},
    "cuda": {"base", "core"},
    "backends": NET | {"host", "core", "s3", "cuda", "move"},
    "meet": {"base"},
    "meet/http": NET,
    # A new place is one new folder, so the places share a row.
    "meet/*": NET | {"meet", "meet/http"},
    "meet/groups": NET | {"meet", "meet/embedded"},
    "agent/session": NET | {"core"},
    "agent/metrics": NET,
    "agent/faults": {"base", "core"},
    "agent/progress": {"base"},
    "agent/basis": {
        "base", "host", "core", "move", "agent/faults", "agent/progress", "agent/session"},
    "agent/peers": NET | {"core", "host", "agent/basis", "agent/progress", "agent/session"},
    "agent/traffic": {
        "base", "core", "host", "move", "move/staging", "agent/basis", "agent/peers",
        "agent/progress"},
    "agent/parcels": {
        "base", "core", "agent/basis", "agent/peers", "agent/progress", "agent/session",
        "agent/traffic"},
    "agent": NET
    | {"core", "host", "meet", "move/staging", "agent/basis", "agent/metrics", "agent/parcels",
       "agent/peers", "agent/progress", "agent/session", "agent/traffic"},
    "agent/c": {"base"},
    # The Python package and libnixl_capi contain this layer, and libviaduct does not. It uses only
    # the map of pins of `core`.
    "nixl": NET | {"core"},
    "nixl/c": {"base", "nixl"},
    "causes": {"base", "host"},
    # Each layer of measure/ uses only layers of measure/ that stand above it in this table.
    "measure/result": {"base", "host"},
    "measure/workload": NET | {"cuda", "host", "measure/result"},
    "measure/proof": {
        "base", "causes", "cuda", "host", "measure/result", "measure/workload"},
    "measure/run": NET
    | {"causes", "cuda", "host", "meet", "meet/groups", "measure/result", "measure/workload", "measure/proof"},
    "measure/p2p": NET
    | {"host", "meet", "meet/groups", "measure/result", "measure/workload", "measure/proof",
       "measure/run"},
    "measure/report": {"base", "measure/result", "measure/proof", "measure/run"},
    "diag/explain": {"base"},
    "diag": NET | {"causes", "host", "s3", "diag/explain"},
    "apps": NET | {"meet", "meet/groups", "measure/*", "diag", "diag/explain"},
    "python": NET | {"core", "nixl"},
    "examples": set(),
}
# Layers outside src/, and the one whose sub-folders may not include each other.
TOPS = ("apps", "python", "examples")
SIBLINGS = "backends"
SOURCES = {".h", ".c", ".cc", ".cu"}
INCLUDE = re.compile(r'\s*#\s*include\s*["<]([\w/]+)/[\w.]+[">]')
# The files that may read the list of all backends: the agent, and the header that declares it.
CATALOGUE = re.compile(r"\bbackendCatalogue\b")
CATALOGUE_READERS = ("src/agent/", "src/core/backend.h")
# Most of libcrypto reads its configuration at the first call, which takes a millisecond. The
# functions that base/net/crypto.h uses do not.
OPENSSL = re.compile(r"\s*#\s*include\s*<openssl/")
OPENSSL_USER = "src/base/net/"


# Finds a backend's name in product code. A new backend is one new folder, with its facts in its
# facts.h.
BACKEND_NAME = re.compile(r'"(ofi|ucx|tcp|local)"')
NAMES_IN = ("include/", "src/", "apps/", "python/csrc/")
# Literals that are not a backend's name, each with its meaning.
OTHER_MEANINGS = {
    ("python/csrc/agent_py.cc", "local"): "the local side of a transfer",
    ("python/csrc/lease_py.cc", "local"): "the local side of a transfer",
    ("src/nixl/prepared.cc", "local"): "the local side of a transfer",
    ("python/csrc/values_py.cc", "local"): "an example in a text of help",
    ("src/agent/session/socket_facts.cc", "tcp"): "the protocol of a socket",
    ("src/core/plan.cc", "local"): "the local side of a transfer",
    ("src/diag/variable_switches.cc", "ucx"): "a provider of libfabric",
    ("src/measure/run/explain_output.cc", "tcp"): "a field of JSON",
}


def split(folder):
    """The layer of a folder, and the name of the backend that has it, if one does."""
    first, _, rest = folder.partition("/")
    return (first, rest.partition("/")[0]) if first == SIBLINGS else (folder, None)


def layer_of(path):
    """The layer of a file and, for a backend, its folder."""
    parts = path.parts
    if parts[0] == "src" and len(parts) > 2:
        return split("/".join(parts[1:-1]))
    if parts[0] in (*TOPS, "include"):
        return parts[0], None
    return None, None


def row_of(layer):
    """The layers that this one may include: its own row, or the row of all its siblings."""
    return MAY_USE.get(layer, MAY_USE.get(layer.rpartition("/")[0] + "/*"))


def may_use(layer, used):
    allowed = row_of(layer)
    return used in allowed or used.split("/")[0] + "/*" in allowed


def complaint(layer, folder, included):
    """Why this include is wrong, or nothing."""
    used, used_folder = split(included)
    if used.split("/")[0] not in {one.split("/")[0] for one in MAY_USE}:
        return None
    if layer == "include":
        return f"the public API must not use {used}/"
    if used == layer:
        if layer == SIBLINGS and used_folder != folder:
            return f"backend {folder} must not use backend {used_folder}"
        return None
    return None if may_use(layer, used) else f"{layer} must not use {used}/"


def names_backend(path, line):
    """Why a literal in this line is wrong, or nothing."""
    if not path.startswith(NAMES_IN) or path.startswith(f"src/{SIBLINGS}/") or "_test" in path:
        return None
    found = BACKEND_NAME.search(line.split("//")[0])
    if not found or (path, found[1]) in OTHER_MEANINGS:
        return None
    return f'product code must not name the backend "{found[1]}": its facts are in facts.h'


def missing(root):
    """Complaints about names in the tables that the tree does not have."""
    found = [
        f"there is no folder of the layer {layer}"
        for layer in MAY_USE
        if not (root / (layer if layer in TOPS else f"src/{layer.removesuffix('/*')}")).is_dir()
    ]
    for path, word in OTHER_MEANINGS:
        file = root / path
        if not file.exists() or f'"{word}"' not in file.read_text():
            found.append(f'{path} has no "{word}", and OTHER_MEANINGS names it')
    return found


def check(root):
    found = []
    for top in ("include", "src", *TOPS):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SOURCES:
                continue
            path = file.relative_to(root)
            layer, folder = layer_of(path)
            if layer is not None and layer != "include" and row_of(layer) is None:
                found.append(f"{path}: {layer}/ is in no layer")
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                used = INCLUDE.match(line)
                why = complaint(layer, folder, used[1]) if used and layer else None
                why = why or names_backend(str(path), line)
                if CATALOGUE.search(line) and not str(path).startswith(CATALOGUE_READERS):
                    why = "only the agent reads the catalogue of backends"
                if OPENSSL.match(line) and not str(path).startswith(OPENSSL_USER):
                    why = "use base/net/crypto.h, which starts without a configuration"
                if why:
                    found.append(f"{path}:{number}: {why}")
    return found


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    found = missing(root) + check(root)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
