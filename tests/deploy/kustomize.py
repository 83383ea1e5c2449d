"""Renders a kustomization into objects, with exactly the features that deploy/k8s uses.

`render` is for machines without kustomize. Where one is installed, manifests_test.py compares the two.
"""

import os
import re
import shutil
import subprocess
import sys

try:
    import yaml
except ImportError:
    print("skipped: there is no YAML module for Python (Debian: python3-yaml)")
    sys.exit(77)

# Lists of objects that a patch merges by a key. A patch replaces every other list.
MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
}


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is ten times as fast


class Unsupported(Exception):
    pass


def load(text):
    return [one for one in yaml.load_all(text, Loader=LOADER) if one is not None]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def merge_lists(ours, theirs, key):
    """The elements of the patch come first, as kustomize puts them."""
    before = {one[key]: one for one in ours}
    out = [merge(before.pop(one[key], None), one) for one in theirs]
    return out + list(before.values())


def merge(ours, theirs, field=None):
    """A strategic merge: `theirs` over `ours`, where null removes."""
    if isinstance(theirs, dict):
        out = dict(ours) if isinstance(ours, dict) else {}
        for name, value in theirs.items():
            if value is None:
                out.pop(name, None)
            else:
                out[name] = merge(out.get(name), value, name)
        return out
    if isinstance(theirs, list) and isinstance(ours, list) and field in MERGE_KEYS:
        return merge_lists(ours, theirs, MERGE_KEYS[field])
    return theirs


def is_target(one, target):
    selector = re.fullmatch(r"(\w+) notin \(([\w,-]+)\)", target.get("labelSelector", "part notin (none)"))
    if set(target) - {"kind", "name", "labelSelector"} or not selector:
        raise Unsupported(f"target {target}")
    return (
        target.get("kind", one["kind"]) == one["kind"]
        and target.get("name", one["metadata"]["name"]) == one["metadata"]["name"]
        and one["metadata"].get("labels", {}).get(selector[1]) not in selector[2].split(",")
    )


def patch_all(objects, patch, folder):
    known = {"path", "patch", "target"}
    if set(patch) - known:
        raise Unsupported(f"fields of a patch: {set(patch) - known}")
    [content] = load(patch.get("patch") or read(os.path.join(folder, patch["path"])))
    target = patch.get("target") or {"kind": content["kind"], "name": content["metadata"]["name"]}
    hits = [one for one in objects if is_target(one, target)]
    if not hits:
        raise ValueError(f"a patch in {folder} has no target: {target}")
    for one in hits:
        if content.get("$patch") == "delete":
            objects.remove(one)
            continue
        name = one["metadata"]["name"]
        patched = merge(one, content)
        patched["metadata"]["name"] = name
        objects[objects.index(one)] = patched


def set_images(objects, images):
    def walk(node):
        if isinstance(node, list):
            for one in node:
                walk(one)
        elif isinstance(node, dict):
            for name, value in node.items():
                if name == "image" and isinstance(value, str):
                    for image in images:
                        if value.split(":")[0] == image["name"]:
                            node[name] = image.get("newName", image["name"]) + ":" + image["newTag"]
                else:
                    walk(value)

    walk(objects)


def build(folder, objects):
    known = {"apiVersion", "kind", "resources", "components", "patches", "images"}
    kustomization = yaml.load(read(os.path.join(folder, "kustomization.yaml")), Loader=LOADER)
    if set(kustomization) - known:
        raise Unsupported(f"fields of a kustomization: {set(kustomization) - known}")
    for resource in kustomization.get("resources", []):
        path = os.path.join(folder, resource)
        objects.extend(build(path, []) if os.path.isdir(path) else load(read(path)))
    for component in kustomization.get("components", []):
        build(os.path.join(folder, component), objects)
    for patch in kustomization.get("patches", []):
        patch_all(objects, patch, folder)
    set_images(objects, kustomization.get("images", []))
    return objects


def render(folder):
    return build(folder, [])


def installed():
    """The command of a kustomize that knows components, or None."""
    for command, version in (
        (["kustomize", "build"], ["kustomize", "version"]),
        (["kubectl", "kustomize"], ["kubectl", "version", "--client"]),
    ):
        if shutil.which(command[0]):
            said = subprocess.run(version, capture_output=True, text=True, check=False).stdout
            if "v4." in said or "v5." in said:
                return command
    return None


def render_by(command, folder):
    return load(subprocess.run(command + [folder], capture_output=True, text=True, check=True).stdout)
