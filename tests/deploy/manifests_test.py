"""manifests_test.py CHECK VIADUCT WORK: one check of deploy/ without a cluster.

exit: 0 fine; 1 faults, each in a line; 77 skipped, with the reason.
"""

import glob
import os
import re
import subprocess
import sys

import kustomize
import pods
import schemas

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
K8S = os.path.join(ROOT, "deploy", "k8s")
SECRETS = {"viaduct": {"token": "swordfish"}}  # made by hand, as in docs/kubernetes.md
FIELDS = {"metadata.name": "pod-0", "spec.nodeName": "node0", "status.podIP": "10.88.1.1", "metadata.uid": "77-88",
          "metadata.namespace": "viaduct"}
RDMA = ("eks-efa", "eks-dra", "eks-p5", "openshift-sriov", "bare-metal-rdma", "gpu-rdma")


class Skipped(Exception):
    pass


def documented(work, name, heading):
    """The kustomization below a heading of docs/kubernetes.md, over an overlay that needs no RDMA."""
    folder = os.path.join(work, name)
    os.makedirs(folder, exist_ok=True)
    page = kustomize.read(os.path.join(ROOT, "docs", "kubernetes.md"))
    text = re.split(f"\n##+ {heading}\n", page)[1].split("```yaml\n")[1].split("```")[0]
    up = os.path.relpath(K8S, os.path.realpath(folder))
    with open(os.path.join(folder, "kustomization.yaml"), "w", encoding="utf-8") as file:
        file.write(text.replace("../viaduct/deploy/k8s", up).replace("eks-efa", "generic-tcp"))
    return folder


def folders(work):
    return sorted(glob.glob(os.path.join(K8S, "overlays", "*"))) + [
        os.path.join(K8S, "cluster-openshift"),
        os.path.join(K8S, "meeting"),
        documented(work, "host-network", "The network of the node"),
        documented(work, "metrics", "Watch a run"),
        documented(work, "registry", "Quick start: Python"),
        documented(work, "gpu-rdma", "GPU memory"),
        documented(work, "gpu-same-node", "GPUs of one node"),
    ]


def renderings(work):
    return {os.path.basename(one): kustomize.render(one) for one in folders(work)}


def check_render(_, work):
    """Each file parses and says what it is for; our renderer and kustomize agree."""
    for path in glob.glob(os.path.join(K8S, "**", "*.yaml"), recursive=True):
        text = kustomize.read(path)
        kustomize.load(text)
        if not text.startswith("# "):
            yield f"{path}: the first line does not say what the file is for"
    command = kustomize.installed()
    for folder in folders(work):
        ours = kustomize.render(folder)
        key = lambda one: (one["kind"], one["metadata"]["name"])
        if len({key(one) for one in ours}) != len(ours):
            yield f"{folder}: two objects have one name"
        if command:
            theirs = {key(one): one for one in kustomize.render_by(command, folder)}
            for one in ours:
                if theirs.pop(key(one), None) != one:
                    yield f"{folder}: {key(one)} differs from {' '.join(command)}"
            for name in theirs:
                yield f"{folder}: {' '.join(command)} has {name}, too"
    if command:
        print(f"compared with {' '.join(command)}")
    else:
        print("not compared with kustomize: neither kustomize nor kubectl 1.21 or newer is installed")


def check_schemas(_, work):
    """Kinds, fields and types are those of Kubernetes."""
    try:
        known = schemas.Schemas(schemas.fetch(work))
    except schemas.Missing as why:
        raise Skipped(f"no schemas of Kubernetes: {why}") from why
    unchecked, count = set(), 0
    for name, objects in renderings(work).items():
        for one in objects:
            if known.knows(one):
                count += 1
                yield from (f"{name}: {fault}" for fault in known.check(one))
            else:
                unchecked.add(one["kind"])
    print(f"{count} objects checked; kinds without a schema, unchecked: {', '.join(sorted(unchecked))}")


def faults_of_meeting(objects, workload, words):
    pod = pods.pod_of(workload)
    for word in words:
        if word.startswith("--meet="):
            host, _, service = word[len("--meet=") :].split(":")[0].partition(".")
            job, _, index = host.rpartition("-")
            served = pods.named(objects, "Service", service)
            target = pods.named(objects, "Job", job)
            if not target or int(index) >= target["spec"].get("completions", 1):
                yield f"{word}: no pod has this name"
            elif pods.pod_of(target).get("subdomain") != service or pod.get("subdomain") != service:
                yield f"{word}: the pods are not in the subdomain {service}"
            if not served or served["spec"].get("clusterIP") != "None" or not served["spec"]["publishNotReadyAddresses"]:
                yield f"{word}: no headless service {service} that names pods before they are ready"
        if word.startswith(("--etcd_endpoints=", "http://")):
            if not pods.named(objects, "Service", word.split("//")[1].split(":")[0]):
                yield f"{word}: no such service"


def faults_of_references(objects, workload, container):
    pod = pods.pod_of(workload)
    for source in container.get("envFrom", []):
        if not pods.named(objects, "ConfigMap", source["configMapRef"]["name"]):
            yield f"no ConfigMap {source['configMapRef']['name']}"
    for one in container.get("env", []):
        secret = one.get("valueFrom", {}).get("secretKeyRef")
        if secret and secret["key"] not in SECRETS.get(secret["name"], {}):
            yield f"no secret {secret['name']} with {secret['key']} is documented"
        if "value" in one and re.search("SECRET|TOKEN|PASSW", one["name"]):
            yield f"{one['name']} is in clear"
    volumes = {one["name"] for one in pod.get("volumes", [])}
    for one in container.get("volumeMounts", []):
        if one["name"] not in volumes:
            yield f"no volume {one['name']}"
    claims = {one["name"] for one in pod.get("resourceClaims", [])}
    for one in container["resources"].get("claims", []):
        if one["name"] not in claims:
            yield f"no claim {one['name']}"


def devices_of(words):
    """The devices of the initiators and of the targets, where the command names them."""
    return [int(word.split("=")[1]) for word in words if re.match(r"--num.(initiator|target).dev=\d+$", word)]


def faults_of_workload(objects, workload, cluster):
    pod, spec = pods.pod_of(workload), workload["spec"]
    if not pods.named(objects, "ServiceAccount", pod["serviceAccountName"]):
        yield f"no ServiceAccount {pod['serviceAccountName']}"
    for claim in pod.get("resourceClaims", []):
        if not pods.named(objects, "ResourceClaimTemplate", claim["resourceClaimTemplateName"]):
            yield f"no ResourceClaimTemplate {claim['resourceClaimTemplateName']}"
    selector = spec.get("selector", {}).get("matchLabels", {})
    if not selector.items() <= pods.labels_of(workload).items():
        yield "the selector does not match its pods"
    networks = spec["template"]["metadata"].get("annotations", {}).get("k8s.v1.cni.cncf.io/networks", "")
    for network in filter(None, networks.split(",")):
        if not pods.named(cluster, "SriovNetwork", network):
            yield f"no SriovNetwork {network}"
    for container in pods.containers(workload):
        yield from faults_of_references(objects, workload, container)
        for name in container["resources"]["limits"]:
            policies = [one["spec"]["resourceName"] for one in pods.of_kind(cluster, "SriovNetworkNodePolicy")]
            if name.startswith("openshift.io/") and name.split("/")[1] not in policies:
                yield f"no SriovNetworkNodePolicy makes {name}"
        words = pods.command(container, pods.environment(objects, container, SECRETS, FIELDS))
        yield from (f"{word}: not set" for word in words if pods.REFERENCE.search(word))
        yield from faults_of_meeting(objects, workload, words)
        members = devices_of(words)
        if "--mode=MG" in words:
            members = [1] * len(members)  # one process for all devices of a side
        if members and not sum(members) == spec["completions"] == spec["parallelism"]:
            yield f"{sum(members)} members, {spec['completions']} completions, parallelism {spec['parallelism']}"


def check_names(_, work):
    """Every referenced object is in the same rendering."""
    everything = renderings(work)
    cluster = everything.pop("cluster-openshift")
    for name, objects in everything.items():
        for one in objects:
            if one["kind"] == "Secret":
                yield f"{name}: a Secret is in clear"
            if "part" not in one["metadata"].get("labels", {}):
                yield f"{name}: {one['kind']} {one['metadata']['name']} has no label part"
        all_labels = [pods.labels_of(one) for one in pods.workloads(objects)]
        for service in pods.of_kind(objects, "Service"):
            if not any(service["spec"]["selector"].items() <= labels.items() for labels in all_labels):
                yield f"{name}: Service {service['metadata']['name']} selects no pod"
        for workload in pods.workloads(objects):
            for fault in faults_of_workload(objects, workload, cluster):
                yield f"{name}: {workload['metadata']['name']}: {fault}"


def faults_of_rights(name, workload):
    pod = pods.pod_of(workload)
    rdma = name in RDMA and workload["kind"] == "Job"
    if pod["automountServiceAccountToken"] != (name == "meeting"):
        yield "it gets a token of the API server, or has none to meet there"
    if not rdma and not pod["securityContext"]["runAsNonRoot"]:
        yield "it runs as root"
    if pod.get("hostIPC") and name != "gpu-same-node":
        yield "it shares the IPC namespace of the node"
    if pod.get("hostNetwork") and pod.get("dnsPolicy") != "ClusterFirstWithHostNet":
        yield "names of services do not resolve in the network of the host"
    if name == "host-network" and workload["kind"] == "Job" and not pod.get("hostNetwork"):
        yield "the component does not reach it"
    for container in pods.containers(workload):
        rights, resources = container["securityContext"], container["resources"]
        extra = ["IPC_LOCK"] if rdma and container["name"] == "viaduct" else []
        if rights["capabilities"].get("add", []) != extra or rights["capabilities"]["drop"] != ["ALL"]:
            yield f"{container['name']}: capabilities {rights['capabilities']}"
        if rights["allowPrivilegeEscalation"] or not rights["readOnlyRootFilesystem"]:
            yield f"{container['name']}: {rights}"
        if "memory" not in resources["limits"] or {"cpu", "memory"} - set(resources["requests"]):
            yield f"{container['name']}: requests or limits are missing"
        for resource, amount in resources["limits"].items():
            if "/" in resource and resources["requests"].get(resource) != amount:
                yield f"{container['name']}: request and limit of {resource} differ"


def check_rights(_, work):
    """Pods have no more rights than they need, and say how much they take."""
    for name, objects in renderings(work).items():
        for workload in pods.workloads(objects):
            for fault in faults_of_rights(name, workload):
                yield f"{name}: {workload['metadata']['name']}: {fault}"


def faults_of_gpus(objects, workload, container):
    environment = pods.environment(objects, container, SECRETS, FIELDS)
    limits = container["resources"]["limits"]
    # The GPUs that the scheduler counts: of the device plugin, or of a claim.
    counted = "nvidia.com/gpu" in limits or "claims" in container["resources"]
    uncounted = "NVIDIA_VISIBLE_DEVICES" in environment
    moves = environment.get("SEG_TYPE") == "VRAM" and container["name"] == "viaduct"
    if moves and not (counted or uncounted):
        yield "it moves GPU memory, and gets no GPU"
    if counted and uncounted:
        yield "it sees more GPUs than its limit"
    shared = bool(pods.pod_of(workload).get("hostIPC"))
    if workload["kind"] == "Job" and container["name"] == "viaduct" and uncounted != shared:
        yield "it sees GPUs that the scheduler gives to others" if uncounted else "it does not see the other pod's GPU"
    if workload["kind"] == "DaemonSet" and counted:
        yield "it waits on nodes without a free GPU"
    if (moves or uncounted) and "compute" not in environment.get("NVIDIA_DRIVER_CAPABILITIES", ""):
        yield "NVIDIA_DRIVER_CAPABILITIES has no compute, which brings libcuda.so.1"
    words = pods.command(container, environment)
    if moves and "--mode=MG" in words and 1 < limits.get("nvidia.com/gpu", 1) < max(devices_of(words)):
        yield f"{limits['nvidia.com/gpu']} GPUs for {max(devices_of(words))} devices"


def check_gpus(_, work):
    """Pods that move GPU memory get GPUs and the driver's library; the others take none."""
    counts = {}
    for name, objects in renderings(work).items():
        for workload in pods.workloads(objects):
            for container in pods.containers(workload):
                counts[name] = counts.get(name, 0) + ("nvidia.com/gpu" in container["resources"]["limits"])
                for fault in faults_of_gpus(objects, workload, container):
                    yield f"{name}: {workload['metadata']['name']}: {fault}"
    for name in ("gpu-tcp", "gpu-rdma", "eks-p5"):
        if not counts.get(name):
            yield f"{name}: no pod gets a GPU"
    if counts["generic-tcp"]:
        yield "generic-tcp: a pod asks for a GPU"
    for one in ("slim", "slim-python"):
        text = kustomize.read(os.path.join(ROOT, "deploy", "docker", f"{one}.Dockerfile"))
        steps = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
        if "\nENV NVIDIA_DRIVER_CAPABILITIES=compute,utility\n" not in steps:
            yield f"{one}: the image does not ask for libcuda.so.1"
        if re.search("NVIDIA_VISIBLE_DEVICES|cuda", steps):
            yield f"{one}: the image brings CUDA, or takes GPUs that nobody gave it"


def faults_of_leaving(workload, container, words):
    """SIGKILL comes when the grace is over; preStop, the drain, and 1 s to end the rest have to fit into it."""
    grace = pods.pod_of(workload)["terminationGracePeriodSeconds"]
    sleep = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["sleep", "0"])
    if sleep[0] != "sleep":
        yield f"preStop is {sleep}, and no sleep"
        return
    drains = [float(word.split("=")[1]) for word in words if word.startswith("--drain=")]
    if "--mode=target" in words and not drains:
        yield "it serves peers, and says no time for its drain"
    if drains and int(sleep[1]) == 0:
        yield "it serves peers, and no preStop lets the endpoints forget it first"
    if drains and int(sleep[1]) + drains[0] + 1 > grace:
        yield f"preStop {sleep[1]} s and a drain of {drains[0]:g} s do not fit into {grace} s"


def check_leaving(_, work):
    """Pods that serve peers have the time to drain."""
    servers = 0
    for name, objects in renderings(work).items():
        for workload in pods.of_kind(objects, "Job"):
            for container in pods.pod_of(workload)["containers"]:
                words = pods.command(container, pods.environment(objects, container, SECRETS, FIELDS))
                servers += "--mode=target" in words
                for fault in faults_of_leaving(workload, container, words):
                    yield f"{name}: {workload['metadata']['name']}: {fault}"
    if not servers:
        yield "no pod serves peers"


def without_gpus(words):
    """The same flags for host memory of this machine, which has neither the GPUs nor 60 GiB."""
    if "VRAM" not in " ".join(words):
        return words
    small = {"--total_buffer_size": 64 << 20, "--max_block_size": 1 << 20}
    out = [word.replace("VRAM", "DRAM") for word in words]
    return [f"{flag}={small[flag]}" if (flag := word.split("=")[0]) in small else word for word in out]


def command_lines(objects):
    """Every call of the program, as (program, words)."""
    for workload in pods.workloads(objects):
        for container in pods.containers(workload):
            words = pods.command(container, pods.environment(objects, container, SECRETS, FIELDS))
            if words[:3] == ["viaduct", "exec", "--"] or words[:3] == ["/viaduct/viaduct", "exec", "--"]:
                words = words[3:]
            if words[0] == "viaduct-suite":
                words = ["viaduct", "bench"] + words[1:]
            if words[0] == "viaduct-doctor-node":
                words = ["viaduct", "doctor", "--node"] + words[1:]
            if words[0] == "sh":
                for call in re.findall(r"viaduct ((?:doctor|env|bench)[^;|&]*)", words[2]):
                    yield ["viaduct"] + call.split()
            elif words[0] in ("viaduct", "nixlbench"):
                yield words


def check_commands(viaduct, work):
    """The program takes every command line of the manifests: 2 and 3 are its exit codes for a wrong one."""
    bin_folder = os.path.join(work, "bin")
    os.makedirs(bin_folder, exist_ok=True)
    for name in ("viaduct", "nixlbench"):
        link = os.path.join(bin_folder, name)
        if not os.path.islink(link) or os.readlink(link) != viaduct:
            if os.path.lexists(link):
                os.remove(link)
            os.symlink(viaduct, link)
    lines = set()
    for objects in renderings(work).values():
        lines |= {tuple(without_gpus(words)) for words in command_lines(objects)}
    environment = dict(os.environ, VIADUCT_SECRET="swordfish")
    for words in sorted(lines):
        call = [os.path.join(bin_folder, words[0])] + list(words[1:])
        if words[0] == "nixlbench" or words[1] == "bench":
            call.append("--explain")
        ran = subprocess.run(call, capture_output=True, text=True, env=environment, check=False, timeout=60)
        if ran.returncode in (2, 3) and "doctor" not in words or ran.returncode == 3:
            yield f"{' '.join(words)}: {ran.returncode}: {ran.stderr.strip()}"
    print(f"{len(lines)} command lines")
    if len(lines) < 8:
        yield "commands were not found in the manifests"


CHECKS = {
    "render": check_render,
    "schemas": check_schemas,
    "names": check_names,
    "rights": check_rights,
    "gpus": check_gpus,
    "commands": check_commands,
    "leaving": check_leaving,
}


def main():
    check, viaduct = sys.argv[1], os.path.realpath(sys.argv[2])
    work = os.path.join(os.path.realpath(sys.argv[3]), check)  # the checks run at the same time
    os.makedirs(work, exist_ok=True)
    try:
        faults = list(CHECKS[check](viaduct, work))
    except Skipped as why:
        print(f"skipped: {why}")
        return 77
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
