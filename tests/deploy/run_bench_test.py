"""run_bench_test.py VIADUCT WORK: deploy/run-bench.sh over a fake kubectl: a run, and everything that goes wrong."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import kustomize  # without a YAML module it skips the test; the fake kubectl needs it

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
SCRIPT = os.path.join(ROOT, "deploy", "run-bench.sh")
FAKE = os.path.join(ROOT, "tests", "deploy", "fake_kubectl.py")
VIADUCT = os.path.realpath(sys.argv.pop(1))
WORK = os.path.realpath(sys.argv.pop(1))
LOGS = os.path.join(WORK, "bench-logs")
MEMBERS = ("viaduct-bench-0-aaaaa", "viaduct-bench-1-bbbbb")
EFA = {"vpc.amazonaws.com/efa": "4", "memory": "1Gi"}

PENDING = {"phase": "Pending"}
RUNNING = {"phase": "Running"}
DONE = {"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}]}


def waiting(reason, message):
    return {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}]}


def both(status):
    return {name: status for name in MEMBERS}


def node(name, allocatable, architecture="amd64"):
    return {"metadata": {"name": name}, "status": {"nodeInfo": {"architecture": architecture}, "allocatable": allocatable}}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def make_logs():
    """Makes the output of two pods. The suite really runs here; a raw tool's output that no reader knows follows."""
    os.makedirs(LOGS, exist_ok=True)
    programs = os.path.join(WORK, "run-bench-bin")
    os.makedirs(programs, exist_ok=True)
    link = os.path.join(programs, "viaduct")
    if os.path.lexists(link):
        os.remove(link)
    os.symlink(VIADUCT, link)
    # Names the interpreter directly, because a shell may find python3 through wrappers.
    with open(os.path.join(programs, "kubectl"), "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec "{sys.executable}" -S -B "{FAKE}" "$@"\n')
    os.chmod(os.path.join(programs, "kubectl"), 0o755)
    scripts = os.path.join(ROOT, "deploy", "docker", "bin")
    path = f"{programs}:{scripts}:{os.environ['PATH']}"
    port, started = free_port(), []
    for index, name in enumerate(MEMBERS):
        more = {"PATH": path, "BACKEND": "tcp", "BASELINES": "", "VIADUCT_SECRET": "swordfish", "POD_NAME": name}
        with open(os.path.join(LOGS, name), "w", encoding="utf-8") as log:
            command = ["viaduct-suite", f"--meet=127.0.0.1:{port}", "--block-sizes=4K", "--duration=20ms"]
            environment = dict(os.environ, JOB_COMPLETION_INDEX=str(index), **more)
            started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT))
    for one in started:
        one.wait(120)
    return path


class RunBench(unittest.TestCase):
    def setUp(self):
        self.state = tempfile.mkdtemp(dir=WORK)
        os.mkdir(os.path.join(self.state, "objects"))
        self.output = os.path.join(self.state, "results")
        self.cluster = {
            "namespaces": ["bench"],
            "nodes": [node("node0", {"memory": "1Gi"}), node("node1", {"memory": "1Gi"})],
            "pods": [both(PENDING), both(RUNNING), both(DONE)],
            "end": "Complete",
            "logs": {name: os.path.join(LOGS, name) for name in MEMBERS},
        }
        self.add("Secret", "viaduct", data={"token": "c3dvcmRmaXNo"})

    def tearDown(self):
        shutil.rmtree(self.state)

    def add(self, kind, name, part=None, **more):
        one = {"kind": kind, "metadata": {"name": name, "labels": {"part": part}}, **more}
        with open(os.path.join(self.state, "objects", f"{kind}-{name}.json"), "w", encoding="utf-8") as file:
            json.dump(one, file)

    def objects(self):
        return sorted(name.removesuffix(".json") for name in os.listdir(os.path.join(self.state, "objects")))

    def start(self, *words, **more):
        with open(os.path.join(self.state, "cluster.json"), "w", encoding="utf-8") as file:
            json.dump(self.cluster, file)
        environment = dict(os.environ, PATH=PATH, FAKE_CLUSTER=self.state, FAKE_RENDERINGS=RENDERINGS, RUN_BENCH_POLL="0.05")
        usual = ["--image", "registry/viaduct:0.1.0", "--namespace", "bench", "--output", self.output]
        command = [SCRIPT] + (list(words) if more.get("alone") else usual + list(words))
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run_it(self, code, *words, says=(), **more):
        one = self.start(*words, **more)
        text = one.communicate(timeout=120)[0]
        self.assertEqual(one.returncode, code, text)
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, text)
        return text

    def refused(self, *words, says, left=("Secret-viaduct",)):
        """Expects exit code 1 with the text `says`, and no objects in the cluster but `left`."""
        text = self.run_it(1, *words, says=says)
        self.assertEqual(self.objects(), sorted(left), text)

    def test_a_run_leaves_results_and_a_report_and_nothing_in_the_cluster(self):
        text = self.run_it(0, says="report.html")
        for name in ["tcp-write.json", "tcp-read.json", "tcp-latency.json", "report.html"] + [f"doctor-{m}.json" for m in MEMBERS]:
            self.assertTrue(os.path.getsize(os.path.join(self.output, name)), text)
        self.assertEqual(self.objects(), ["Secret-viaduct"])

    def test_shared_objects_of_others_stay(self):
        self.add("ConfigMap", "viaduct", "shared")
        self.run_it(0)
        for name in ("ConfigMap-viaduct", "Secret-viaduct"):
            self.assertIn(name, self.objects())
        self.assertNotIn("Job-viaduct-bench", self.objects())

    def test_keep_keeps_and_the_next_run_replaces_it(self):
        self.run_it(0, "--keep")
        self.assertIn("Job-viaduct-bench", self.objects())
        self.run_it(0, says="the run of before has ended")
        self.assertNotIn("Job-viaduct-bench", self.objects())

    def test_baselines_that_no_reader_knows_do_not_cost_the_report(self):
        log = os.path.join(self.state, "log")
        shutil.copy(self.cluster["logs"][MEMBERS[1]], log)
        script = 'f=$1; mkdir -p "$f.d"; echo unknown >"$f.d/other_tool.txt"; h=$(sha256sum <"$f.d/other_tool.txt");'
        script += 'printf -- "-----BEGIN VIADUCT FILE other_tool.txt 8 %s-----\\nunknown\\n\\n-----END VIADUCT FILE other_tool.txt-----\\n" "${h%% *}" >>"$f"'
        subprocess.run(["bash", "-c", script, "bash", log], check=True)
        self.cluster["logs"][MEMBERS[1]] = log
        self.run_it(0, says="report: ")
        self.assertTrue(os.path.exists(os.path.join(self.output, "other_tool.txt")))

    def test_dry_run_prints_the_manifests_and_creates_nothing(self):
        text = self.run_it(0, "--dry-run", "--type", "single", "--baselines", "none")
        for part in ("registry/viaduct:0.1.0", "podAffinity", '"BASELINES": ""'):
            self.assertIn(part, text)
        self.assertNotIn("DaemonSet", text)
        self.assertEqual(self.objects(), ["Secret-viaduct"])

    def test_wrong_words_are_refused(self):
        for words, says in (
            ([], "--image is"),
            (["--image", "registry:5000/viaduct"], "--image is"),
            (["--image", "viaduct@sha256:00"], "--image is"),
            (["--image", "a:1", "--mode", "ib"], '--mode is tcp or rdma, not "ib"'),
            (["--image", "a:1", "--type", "all"], '--type is multi or single, not "all"'),
            (["--image", "a:1", "--overlay", "gke"], 'there is no overlay "gke"'),
            (["--image", "a:1", "--timeout", "soon"], "--timeout is a number"),
            (["--image"], "--image needs a value"),
            (["--images", "a:1"], "there is no option --images"),
            (["--image", "a:1", "--mode", "rdma", "--dry-run"], "name the overlay"),
        ):
            with self.subTest(words=words):
                self.run_it(2, *words, says=says, alone=True)

    def test_no_namespace(self):
        self.refused("--namespace", "other", says=("there is no namespace other", "kubectl create namespace other"))

    def test_no_secret(self):
        os.remove(os.path.join(self.state, "objects", "Secret-viaduct.json"))
        self.refused(says=("no secret viaduct with the key token", "create secret generic"), left=())

    def test_no_device_plugin(self):
        self.refused("--mode", "rdma", says=("no node offers a device for RDMA", "device plugin does not run"))
        self.refused("--overlay", "eks-efa", says="no node offers vpc.amazonaws.com/efa")

    def test_a_plugin_without_devices(self):
        self.cluster["nodes"] = [node("node0", {"vpc.amazonaws.com/efa": "0"})]
        self.refused("--mode", "rdma", says="no node offers a device for RDMA")

    def test_one_node_with_devices_is_too_few_for_two_nodes(self):
        self.cluster["nodes"][0] = node("node0", EFA)
        self.refused("--mode", "rdma", says="only one node offers vpc.amazonaws.com/efa")
        self.run_it(0, "--mode", "rdma", "--type", "single", says="overlay eks-efa, single")

    def test_a_user_who_may_not_list_nodes_names_the_overlay(self):
        self.cluster["nodes"] = None
        self.refused("--mode", "rdma", says=("the nodes cannot be listed", "--overlay"))
        self.run_it(0, "--overlay", "eks-efa", says="overlay eks-efa, multi")

    def test_the_overlay_fits_the_nodes(self):
        self.cluster["nodes"] = [node(f"node{i}", {"openshift.io/rdma": "8"}) for i in range(2)]
        self.run_it(0, "--mode", "rdma", says="overlay openshift-sriov, multi")

    def test_another_run_goes_on(self):
        self.add("Job", "viaduct-bench", "bench")
        self.refused(says="another run goes on", left=("Job-viaduct-bench", "Secret-viaduct"))

    def test_another_run_began_at_the_same_moment(self):
        self.cluster["race"] = True
        self.refused(says="another run began at the same moment")

    def test_a_service_that_was_left_behind_is_no_run(self):
        self.add("Service", "viaduct-bench", "bench")
        self.run_it(0, says="report.html")
        self.assertEqual(self.objects(), ["Secret-viaduct"])

    def test_an_image_that_is_not_there(self):
        self.cluster["pods"] = [both(PENDING), both(waiting("ErrImagePull", "not found"))]
        self.refused(says=("the image cannot be pulled: ErrImagePull not found", "pull secret"))

    def test_an_image_for_another_architecture(self):
        self.cluster["nodes"] = [node("node0", {}, "arm64")]
        self.cluster["pods"] = [both(waiting("ErrImagePull", "no match for platform in manifest: not found"))]
        self.refused(says=("another architecture than the nodes (arm64)", "build.sh"))

    def test_a_program_for_another_architecture(self):
        log = os.path.join(self.state, "log")
        with open(log, "w", encoding="ascii") as file:
            file.write("exec /usr/local/bin/viaduct: exec format error\n")
        self.cluster["logs"] = {name: log for name in MEMBERS}
        failed = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"reason": "Error", "exitCode": 255}}}]}
        self.cluster["pods"] = [both(RUNNING), both(failed)]
        self.refused(says=("another architecture than the nodes (amd64)", "exec format error"))

    def test_a_secret_with_another_key(self):
        self.cluster["pods"] = [both(waiting("CreateContainerConfigError", "couldn't find key token in Secret"))]
        self.refused(says=("a pod cannot start", "couldn't find key token"))

    def test_a_pod_that_died_half_way(self):
        whole = self.cluster["logs"][MEMBERS[0]]
        cut = os.path.join(self.state, "cut")
        with open(whole, encoding="utf-8") as file, open(cut, "w", encoding="utf-8") as out:
            text = file.read()
            out.write(text[: text.index("BEGIN VIADUCT FILE tcp-read.json") + 900])
        self.cluster["logs"][MEMBERS[0]] = cut
        self.cluster["end"] = "Failed"
        self.refused(says=("tcp-read.json: left out", "its pod died half-way", "report.html"))
        self.assertFalse(os.path.exists(os.path.join(self.output, "tcp-read.json")))

    def test_pods_without_a_node_are_told_of_at_the_end_of_the_time(self):
        reason = {"reason": "Unschedulable", "message": "0/2 nodes are available: 2 Insufficient memory."}
        self.cluster["pods"] = [both({"phase": "Pending", "conditions": [reason]})]
        self.cluster["end"] = None
        self.refused("--timeout", "1", says=("did not end within 1 s", "Insufficient memory"))

    def test_an_interrupt_removes_what_was_made(self):
        self.cluster["pods"] = [both(RUNNING)]
        self.cluster["end"] = None
        one = self.start()
        for line in one.stdout:
            if "Running" in line:
                break
        one.send_signal(signal.SIGINT)
        one.communicate(timeout=60)
        self.assertEqual(one.returncode, 130)
        self.assertEqual(self.objects(), ["Secret-viaduct"])


os.makedirs(WORK, exist_ok=True)
PATH = make_logs()
with tempfile.TemporaryDirectory(dir=WORK) as RENDERINGS:
    ran = unittest.main(exit=False).result
sys.exit(0 if ran.wasSuccessful() else 1)
