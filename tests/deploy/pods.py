"""The pods of a rendering: what a cluster would start, with which command and which environment."""

import re

REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


def of_kind(objects, *kinds):
    return [one for one in objects if one["kind"] in kinds]


def named(objects, kind, name):
    for one in of_kind(objects, kind):
        if one["metadata"]["name"] == name:
            return one
    return None


def workloads(objects):
    return of_kind(objects, "Job", "Deployment", "DaemonSet", "StatefulSet")


def pod_of(workload):
    return workload["spec"]["template"]["spec"]


def labels_of(workload):
    return workload["spec"]["template"]["metadata"]["labels"]


def containers(workload):
    pod = pod_of(workload)
    return pod.get("initContainers", []) + pod["containers"]


def environment(objects, container, secrets, fields):
    """The container's environment, as the kubelet makes it: envFrom first, then env."""
    out = {}
    for source in container.get("envFrom", []):
        out.update(named(objects, "ConfigMap", source["configMapRef"]["name"])["data"])
    for one in container.get("env", []):
        origin = one.get("valueFrom")
        if origin is None:
            out[one["name"]] = one.get("value", "")
        elif "secretKeyRef" in origin:
            out[one["name"]] = secrets.get(origin["secretKeyRef"]["name"], {}).get(origin["secretKeyRef"]["key"], "")
        else:
            out[one["name"]] = fields[origin["fieldRef"]["fieldPath"]]
    return out


def command(container, variables):
    """The container's command with $(NAME) expanded. A name that nobody set stays, as in a cluster."""
    words = container.get("command", []) + container.get("args", [])
    return [REFERENCE.sub(lambda m: variables.get(m[1], m[0]), word) for word in words]
