"""pods_test.py SCENARIO VIADUCT WORK: runs the commands of the rendered manifests in pods of network namespaces.

exit: 0 fine; 1 not; 77 skipped, with the reason.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time

import cluster
import kustomize
import pods

K8S = os.path.join(cluster.ROOT, "deploy", "k8s")


class Failed(Exception):
    pass


def expect(truth, what, *shown):
    if not truth:
        raise Failed(what + "\n" + "".join(pod.text() for pod in shown))


def overlay(work, name, text):
    """Renders a kustomization that a user writes beside the source tree."""
    folder = os.path.join(work, name)
    os.makedirs(folder, exist_ok=True)
    up = os.path.relpath(K8S, os.path.realpath(folder))
    with open(os.path.join(folder, "kustomization.yaml"), "w", encoding="utf-8") as file:
        file.write(text.replace("../viaduct/deploy/k8s", up))
    return kustomize.render(folder)


def documented(heading):
    """The first YAML below a heading of docs/kubernetes.md."""
    page = kustomize.read(os.path.join(cluster.ROOT, "docs", "kubernetes.md"))
    return page.split(f"\n## {heading}\n")[1].split("```yaml\n")[1].split("```")[0]


def settings(**values):
    lines = "".join(f"          {name}: '{value}'\n" for name, value in values.items())
    # Indents the lines like the documented patches, to which the text is joined.
    head = "  - patch: |-\n      apiVersion: v1\n      kind: ConfigMap\n      metadata: {name: viaduct}\n      data:\n"
    return head + lines.replace("          ", "        ")


PLAIN = "resources: [../viaduct/deploy/k8s/overlays/generic-tcp]\n"


def finish_all(members):
    codes = [pod.finish() for pod in members]
    expect(codes == [0] * len(codes), f"exit codes {codes}", *members)


def rows_of(pod, seconds_allowed, members):
    """Prints how long the rows took, and returns their number."""
    rows = [line for _, line in pod.lines if re.match(r"^ *[\d.]+ (KiB|MiB) ", line) or re.match(r"^\d+ +\d+ +[\d.]+ ", line)]
    expect(rows, "no rows", pod)
    first, last = pod.seconds_to(rows[0]), pod.seconds_to(rows[-1])
    print(f"{members} members: first row after {first:.1f} s, last of {len(rows)} after {last:.1f} s (to reach {seconds_allowed} s)")
    return len(rows)


def start(members):
    for pod in members:
        pod.go()


def job(objects, name):
    return pods.named(objects, "Job", name)


def pair(objects, make, made):
    members = [make(job(objects, "viaduct-prefill")), make(job(objects, "viaduct-decode"))]
    start(members)
    finish_all(members)
    expect(rows_of(members[0], 10, 2) == 3, "three block sizes", *members)
    said = "".join(pod.text() for pod in members)
    expect("tcp/socket+frames on eth0, proven" in said, "TCP between the pods, proven", *members)
    late = kustomize.read(os.path.join(made.files, "zone.late"))
    expect("viaduct-prefill-0.viaduct-pair." in late, "the name came late", *members)


def python(objects, make, made):
    initiator = make(job(objects, "viaduct-python-initiator"))
    target = make(job(objects, "viaduct-python-target"))
    start([initiator, target])
    finish_all([initiator])
    rows = [line for _, line in initiator.lines if re.match(r" +\d+[KM] +100 .* tcp/socket", line)]
    expect(len(rows) == 3, "three block sizes over TCP between the pods", initiator, target)
    expect(target.wait_for("has left"), "the target notices the end of the initiator", initiator, target)
    late = kustomize.read(os.path.join(made.files, "zone.late"))
    expect("viaduct-python-target-0.viaduct-python." in late, "the name came late", initiator, target)


def group(objects, make, _):
    """A pod that dies while it waits is replaced. A pod that dies in the run ends the run, and all pods try again."""
    one = job(objects, "viaduct-group")
    waiting = [make(one, index) for index in range(3)]
    start(waiting)
    expect(waiting[0].wait_for("still waiting"), "it waits for the missing member", *waiting)
    waiting[1].kill()
    members = [waiting[0], make(one, 1), waiting[2], make(one, 3)]
    start([members[1], members[3]])
    expect(members[0].wait_for("64 KiB"), "rows after a pod was replaced", *members)
    members[2].kill()
    codes = [members[index].finish() for index in (0, 1, 3)]
    expect(codes == [3, 3, 3], f"the others end with 3: {codes}", *members)
    expect("rank 2" in members[0].text(), "they name the dead one", *members)
    again = [make(one, index) for index in range(4)]
    start(again)
    finish_all(again)
    expect(rows_of(again[0], 15, 4) == 3, "three block sizes", *again)


FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"


def metrics(objects, make, made):
    """Scrapes as Prometheus does, from outside of the pods, while a member waits for the other."""
    prefill = make(job(objects, "viaduct-prefill"))
    notes = job(objects, "viaduct-prefill")["spec"]["template"]["metadata"]["annotations"]
    [address] = {where for name, where in made.names.items() if name.startswith("viaduct-prefill-0.")}
    url = f"http://{address}:{notes['prometheus.io/port']}{notes['prometheus.io/path']}"
    fetch = ["nsenter", f"--net=/proc/{made.switch.pid}/ns/net", sys.executable, "-c", FETCH, url]
    prefill.go()
    expect(prefill.wait_for("still waiting"), "it waits for the other member", prefill)
    got = subprocess.run(fetch, check=False, capture_output=True, text=True)
    expect("viaduct_agent_info{" in got.stdout and got.stdout.endswith("# EOF\n\n"), got.stdout + got.stderr, prefill)
    decode = make(job(objects, "viaduct-decode"))
    decode.go()
    finish_all([prefill, decode])


def etcd(objects, make, _):
    one = job(objects, "viaduct-group-etcd")
    members = [make(one, index) for index in range(4)]
    start(members)
    server = make(pods.named(objects, "Deployment", "viaduct-etcd"))
    server.go()  # later than all pods
    finish_all(members)
    expect(sum("Block Size (B)" in pod.text() for pod in members) == 1, "one of them is rank 0", *members)
    lead = next(pod for pod in members if "Block Size (B)" in pod.text())
    expect(rows_of(lead, 15, 4) == 5, "five block sizes", *members)


def vram(objects, make, _):
    """nixlbench's command for two nodes of eight GPUs, over fake GPUs and TCP, with less memory and fewer transfers."""
    one = job(objects, "viaduct-vram")
    small = {"--total_buffer_size": 8 << 20, "--max_block_size": 8 << 10}
    container = pods.pod_of(one)["containers"][0]
    container["args"] = [f"{flag}={small[flag]}" if (flag := word.split("=")[0]) in small else word for word in container["args"]]
    container["args"] += ["--num_iter=4", "--warmup_iter=1"]
    members = [make(one, index) for index in range(2)]
    start(members)
    server = make(pods.named(objects, "Deployment", "viaduct-etcd"))
    server.go()  # later than both pods
    finish_all(members)
    lead = next(pod for pod in members if "Block Size (B)" in pod.text())
    expect(rows_of(lead, 60, 2) == 2, "two block sizes", *members)
    expect("staged through host memory, because ofi" in lead.text(), "GPU memory, through libfabric", *members)


def crowd(objects, make, work):
    one = job(objects, "viaduct-group")
    members = [make(one, index) for index in range(one["spec"]["completions"])]
    expect(len(members) == 16, "the patch makes 16 members")
    start(members)
    finish_all(members)
    rows_of(members[0], 30, 16)


def bench(objects, make, made):
    """Both logs together hold all result files, also of a raw tool where it is installed."""
    one = job(objects, "viaduct-bench")
    members = [make(one, index) for index in range(2)]
    start(members)
    finish_all(members)
    results = os.path.join(made.files, "results")
    log = "".join(line + "\n" for pod in members for _, line in pod.lines)
    script = [os.path.join(cluster.ROOT, "deploy", "collect-results.sh"), results]
    collected = subprocess.run(script, input=log, capture_output=True, text=True, check=False)
    expect(collected.returncode == 0, collected.stderr, *members)
    wanted = {"tcp-write.json", "tcp-read.json", "tcp-latency.json"}
    for tool in ("iperf3", "ucx_perftest"):
        if shutil.which(tool):
            wanted |= {f"{tool}-65536.txt", f"{tool}-1048576.txt"}
        else:
            expect(f"{tool} is not in this image" in log, "the missing tool is named", *members)
    here = set(os.listdir(results))
    expect(wanted <= here, f"{wanted - here} are missing", *members)
    expect(len([name for name in here if name.startswith("doctor-")]) == 2, "a doctor's file of each pod", *members)
    read_baselines(os.path.join(made.files, "bin", "viaduct"), results, here)


def read_baselines(viaduct, results, names):
    """Each output of a raw tool has the row of its size, which `viaduct compare` finds among ours."""
    ours = os.path.join(results, "batch-1.json")
    call = [viaduct, "bench", "--backend=tcp", "--batch=1", "--block-sizes=64K,1M", "--duration=20ms", f"--json={ours}"]
    subprocess.run(call, check=True, capture_output=True)
    for name in (one for one in names if one.endswith(".txt")):
        call = [viaduct, "compare", ours, os.path.join(results, name), "--across-settings", "--across-machines", "--json"]
        ran = subprocess.run(call, check=False, capture_output=True, text=True)
        rows = json.loads(ran.stdout)["rows"] if ran.stdout else []
        expect([str(row["block_size"]) for row in rows] == [name.split("-")[1].split(".")[0]], f"{name}: {rows} {ran.stderr}")


def node_metrics(objects, make, made):
    """The doctor of the component `metrics` serves the findings of its node."""
    daemon = pods.named(objects, "DaemonSet", "viaduct-doctor")
    notes = daemon["spec"]["template"]["metadata"]["annotations"]
    one = make(daemon)
    one.go()
    expect(one.wait_for("metrics: http://"), "it serves its metrics", one)
    fetch = ["nsenter", f"--net=/proc/{one.process.pid}/ns/net", sys.executable, "-c", FETCH,
             f"http://127.0.0.1:{notes['prometheus.io/port']}{notes['prometheus.io/path']}"]
    got = subprocess.run(fetch, check=False, capture_output=True, text=True)
    expect("viaduct_node_findings{" in got.stdout, got.stdout + got.stderr, one)


def doctor(objects, make, made):
    daemon = pods.named(objects, "DaemonSet", "viaduct-doctor")
    one = make(daemon)
    one.go()
    worst = os.path.join(one.volumes, "tmp", "worst")
    expect(one.wait_for("facts in order"), "it diagnoses the node", one)
    until = time.monotonic() + 60
    while not (os.path.exists(worst) and os.path.getsize(worst)):
        expect(time.monotonic() < until, "it writes its exit code", one)
        time.sleep(0.05)
    code = int(kustomize.read(worst))
    probe = daemon["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["exec"]["command"]
    ready = subprocess.run([word.replace("/tmp/worst", worst) for word in probe], check=False).returncode == 0
    expect(ready == (code < 2), f"ready: {ready}, with the exit code {code}", one)
    expect(one.process.poll() is None, "it stays", one)
    expect(one.wait_for("END VIADUCT FILE"), "it prints its result", one)
    log = "".join(f"{line}\n" for _, line in one.lines)
    folder = os.path.join(one.volumes, "results")
    collect = [os.path.join(cluster.ROOT, "deploy", "collect-results.sh"), folder]
    names = subprocess.run(collect, input=log, check=True, capture_output=True, text=True).stdout.split()
    expect(len(names) == 1, f"one result in the log: {names}", one)
    call = [os.path.join(made.files, "bin", "viaduct"), "doctor", "nodes", *names, "--expect", "node9"]
    ran = subprocess.run(call, check=False, capture_output=True, text=True)
    expect(ran.returncode == max(code, 1) and "NO ANSWER  node9" in ran.stdout, f"{ran.returncode}: {ran.stdout}{ran.stderr}", one)


def your_image(objects, make, _):
    one = job(objects, "viaduct-your-image")
    copy = make(one, 0, pods.pod_of(one)["initContainers"][0])
    copy.go()
    finish_all([copy])
    main_one = make(one, 0, None, copy.volumes)
    main_one.go()
    finish_all([main_one])
    expect("this program runs with NCCL_IB_HCA=" in main_one.text(), "viaduct exec starts the program", main_one)
    expect("no fault found" in main_one.text(), "viaduct doctor looks at the pod", main_one)


SCENARIOS = {
    "pair": (pair, PLAIN),
    "python": (python, PLAIN),
    "group": (group, PLAIN + "patches:\n" + settings(DURATION="200ms")),
    "etcd": (etcd, PLAIN),
    "vram": (
        vram,
        "resources: [../viaduct/deploy/k8s/overlays/gpu-tcp]\npatches:\n"
        + settings(VIADUCT_OFI_PROVIDER="tcp", VIADUCT_CUDA_LIBRARY="/usr/local/bin/libcuda.so.1", FAKE_CUDA_DEVICES="8"),
    ),
    "crowd": (crowd, documented("More members") + settings(BLOCK_SIZES="64K", DURATION="200ms")),
    "bench": (bench, PLAIN + "patches:\n" + settings(BLOCK_SIZES="64K,1M", DURATION="100ms", BASELINES="iperf3,ucx_perftest", UCX_TLS="tcp,self")),
    "doctor": (doctor, PLAIN),
    "node-metrics": (node_metrics, documented("Watch a run").replace("eks-efa", "generic-tcp")),
    "your-image": (your_image, PLAIN),
    "host-network": (pair, documented("The network of the node").replace("eks-efa", "generic-tcp")),
    "metrics": (metrics, documented("Watch a run").replace("eks-efa", "generic-tcp")),
}


def why_not(scenario):
    if os.geteuid() != 0:
        return "no right to make network namespaces"
    if scenario == "vram" and not cluster.FAKE_CUDA:
        return "VIADUCT_FAKE_CUDA names no library; ctest sets it"
    if scenario in ("etcd", "vram") and not any(os.access(os.path.join(p, "etcd"), os.X_OK) for p in ("/usr/bin", "/usr/local/bin")):
        return "etcd is not installed"
    if scenario == "python" and not cluster.PYTHON_PACKAGES:
        return "VIADUCT_PYTHON_INSTALLED names no folder with the Python packages; ctest sets it"
    return None


def main():
    scenario, viaduct, work = sys.argv[1], os.path.realpath(sys.argv[2]), os.path.realpath(sys.argv[3])
    if why := why_not(scenario):
        print(f"skipped: {why}")
        return 77
    os.makedirs(work, exist_ok=True)
    run, text = SCENARIOS[scenario]
    objects = overlay(work, f"overlay-{scenario}", text)
    try:
        made = cluster.Cluster(objects, viaduct, work)
    except cluster.Refused as why:
        print(f"skipped: {why}")
        return 77
    try:
        run(objects, made.make, made)
    except Failed as why:
        print(why)
        return 1
    finally:
        made.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
