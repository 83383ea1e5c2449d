"""Runs Debian's Prometheus against agents and doctors with faults. Each alert fires on its fault and on no other, and
each query of each dashboard has an answer.

usage: alerts_test.py rules | dashboards | live VIADUCT WORK

`live` runs in a network namespace of its own. There a minute of the rules lasts a second, so that the test is short.
exit: 77 skipped; the reason is printed.
"""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

import yaml

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", ".."))
RULES = os.path.join(ROOT, "deploy", "prometheus", "viaduct-rules.yml")
GRAFANA = os.path.join(ROOT, "deploy", "grafana")
PACKAGES = os.environ.get("VIADUCT_PYTHON_INSTALLED", "")
PROMETHEUS = "127.0.0.1:9090"
# After so many seconds a wait has failed; nothing else depends on time.
PATIENCE = int(os.environ.get("VIADUCT_PATIENCE", "120"))


class Failed(Exception):
    pass


def expect(holds, what):
    if not holds:
        raise Failed(what)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rules_of(text):
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def anchors(page):
    heads = re.findall(r"^#+ (.*)$", read(os.path.join(ROOT, page)), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads}


def rules():
    """Runs promtool's unit tests. Every alert has such a test, and a section in the page that it names."""
    tested = os.path.join(os.path.dirname(RULES), "viaduct-rules.test.yml")
    for call in (["check", "rules", RULES], ["test", "rules", tested]):
        ran = subprocess.run(["promtool", *call], check=False, capture_output=True, text=True)
        expect(ran.returncode == 0, f"promtool {' '.join(call)}: {ran.stdout}{ran.stderr}")
    fires = {one["alertname"] for test in yaml.safe_load(read(tested))["tests"] for one in test["alert_rule_test"] if one["exp_alerts"]}
    for rule in rules_of(read(RULES)):
        expect(rule["alert"] in fires, f"{rule['alert']}: no unit test in which it fires")
        page, _, anchor = rule["annotations"]["page"].partition("#")
        expect(anchor in anchors(page), f"{rule['alert']}: {page} has no section {anchor}")


def dashboards_module():
    spec = importlib.util.spec_from_file_location("dashboards", os.path.join(GRAFANA, "dashboards.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dashboards():
    """The files are those of dashboards.py, and each query uses metrics of docs/metrics.md."""
    module = dashboards_module()
    known = set(re.findall(r"^\| `(viaduct_\w+)` \|", read(os.path.join(ROOT, "docs", "metrics.md")), re.MULTILINE))
    for name, one in module.dashboards().items():
        expect(read(os.path.join(GRAFANA, name)) == module.text_of(one), f"{name} is old: run deploy/grafana/dashboards.py")
    texts = [query for _, _, query in queries()] + [rule["expr"] for rule in rules_of(read(RULES))]
    for text in texts:
        for metric in re.findall(r"viaduct_\w+", text):
            expect(re.sub(r"_(total|info|bucket)$", "", metric) in known, f"docs/metrics.md has no {metric}: {text}")


def queries():
    for name in sorted(one for one in os.listdir(GRAFANA) if one.endswith(".json")):
        for panel in json.loads(read(os.path.join(GRAFANA, name)))["panels"]:
            for target in panel["targets"]:
                yield name, panel["title"], target["expr"]


# --- live

FAULTY = {"VIADUCT_FAULTS_ALLOWED": "yes"}
TCP = {"VIADUCT_BACKENDS": "tcp"}
ENCRYPTED = {"VIADUCT_PRIVACY": "encrypted"}
RAILS = {"VIADUCT_RAILS": "10.77.0.1,10.77.1.1", "VIADUCT_LISTEN": "10.77.0.1:0,10.77.1.1:0", **TCP}
# The name of the agents: the role that has the fault, its environment, that of its target, and the alerts.
SCENARIOS = {
    "healthy": ("initiator", {**ENCRYPTED, **RAILS}, {**ENCRYPTED, **RAILS}, set()),
    "fallback": ("initiator", {"VIADUCT_BACKENDS": "fake,tcp"}, {"VIADUCT_BACKENDS": "fake,tcp"}, {"ViaductFallback"}),
    "rdma": ("initiator", TCP, TCP, {"ViaductTcpDespiteRdma"}),
    "rail": ("initiator", {"VIADUCT_FAULTS": "drop-rail@op:50", **FAULTY, **RAILS}, RAILS, {"ViaductRailSilent"}),
    "loss": ("initiator", TCP, {"VIADUCT_TCP_PORTS": "7001", **TCP}, {"ViaductRetransmits"}),
    "flaps": ("initiator", {"VIADUCT_FAULTS": "kill-peer@0.02", **FAULTY, **TCP}, TCP, {"ViaductPeerFlaps"}),
    "dead": ("initiator", TCP, TCP, {"ViaductPeerLost"}),
    "errors": ("initiator", {"VIADUCT_FAULTS": "stop@0.05", "VIADUCT_DEADLINE": "500ms", **FAULTY, **TCP}, TCP, {"ViaductErrors"}),
    "lease": ("owner", {"VIADUCT_FAULTS": "late-lease=20ms", **FAULTY, **TCP}, TCP, {"ViaductLeasesExpire"}),
    "old": ("initiator", {"VIADUCT_FAULTS": "stop@op:20", "VIADUCT_DEADLINE": "1h", **FAULTY, **TCP}, TCP, {"ViaductQueueOld"}),
}
NODES = {"node-well": set(), "node-ill": {"ViaductNodeFailure"}}
# Two rails over one network namespace, and a port on which every twentieth frame is lost.
NETWORK = """
set -e
mount -t sysfs sys /sys
ip link set lo up
ip link add rail0 type veth peer name rail1
ip addr add 10.77.0.1/24 dev rail0
ip addr add 10.77.1.1/24 dev rail1
ip link set rail0 up
ip link set rail1 up
ip link set rail1 up
nft add table ip loss
nft 'add chain ip loss input { type filter hook input priority 0; }'
nft add rule ip loss input tcp dport 7001 numgen random mod 20 == 0 drop
"""
# Shows an RDMA port to the agent, beside the interfaces.
RDMA_PORT = """
set -e
mkdir -p "$1/net"
mount --bind /sys/class/net "$1/net"
mount -t tmpfs class /sys/class
mkdir -p /sys/class/net /sys/class/infiniband/mlx5_0/ports/1
mount --bind "$1/net" /sys/class/net
shift
exec "$@"
"""


class Live:
    """Agents, doctors and a Prometheus, which end with this object."""

    def __init__(self, viaduct, work):
        self.viaduct, self.work, self.processes, self.targets = viaduct, work, [], []

    def address(self):
        """The metrics address of the next process. Each is its own scrape target, so that none waits for another."""
        self.targets.append(f"127.0.0.1:{27180 + len(self.targets)}")
        return self.targets[-1]

    def start(self, name, call, env=None, **pipes):
        log = open(os.path.join(self.work, f"{name}.log"), "wb")
        process = subprocess.Popen(call, env={**os.environ, **(env or {})}, stderr=log, **{"stdout": log, "stdin": subprocess.DEVNULL, **pipes})
        log.close()
        self.processes.append(process)
        return process

    def close(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()

    def agent(self, name, role, env, before=()):
        call = [*before, sys.executable, "-B", os.path.join(HERE, "alert_agents.py"), role]
        # A peer that a busy machine delays must not count as lost.
        common = {"VIADUCT_DETECT": "60s", "VIADUCT_GRACE": "60s", "VIADUCT_NAME": name, "VIADUCT_METRICS": self.address(), "PYTHONPATH": PACKAGES}
        return self.start(name, call, {**common, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def scenario(self, name):
        role, env, targets_env, _ = SCENARIOS[name]
        before = ()
        if name == "rdma":
            before = ("unshare", "--mount", "--", "sh", "-c", RDMA_PORT, "sh", os.path.join(self.work, "sys"))
        target = self.agent(f"{name}-target", "target", targets_env)
        agent = self.agent(name, role, env, before)
        card = target.stdout.readline()
        expect(card, f"{name}: the target has no card: {read(os.path.join(self.work, name + '-target.log'))}")
        agent.stdin.write(card)
        agent.stdin.flush()
        return target

    def doctor(self, name):
        call = [self.viaduct, "doctor", "--node", "--root", node_folder(self.work, name), "--only", "rdma", "--serve", self.address(), "--every", "1s"]
        self.start(name, call, {"VIADUCT_METRICS": ""})

    def prometheus(self):
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "500ms"},
            "rule_files": [os.path.join(self.work, "rules.yml")],
            "scrape_configs": [{"job_name": "viaduct", "metrics_path": "/agent", "static_configs": [{"targets": self.targets}]}],
        }
        for name, text in (("prometheus.yml", yaml.safe_dump(config)), ("rules.yml", sooner(read(RULES)))):
            with open(os.path.join(self.work, name), "w", encoding="utf-8") as file:
                file.write(text)
        self.start("prometheus", [
            "prometheus", f"--config.file={self.work}/prometheus.yml", f"--storage.tsdb.path={self.work}/data",
            f"--web.listen-address={PROMETHEUS}", "--query.lookback-delta=5s"])


def sooner(text):
    """The rules, with a second for each minute."""
    return re.sub(r"(\[|for: )(\d+)m\b", r"\1\2s", text)


def node_folder(work, name):
    """A node with an RDMA port, which is up or down."""
    up = name == "node-well"
    port = "sys/class/infiniband/mlx5_0/ports/1"
    files = {
        "viaduct/live.json": json.dumps({"hostname": name, "kernel": "6.1.0", "machine": "x86_64"}), "proc/net/dev": "",
        "proc/net/snmp": "Tcp: OutSegs RetransSegs\nTcp: 1000 1",
        "sys/class/infiniband/mlx5_0/node_type": "1: CA", "sys/class/infiniband/mlx5_0/fw_ver": "28.39.1002",
        "sys/class/infiniband_verbs/uverbs0/ibdev": "mlx5_0", "dev/infiniband/uverbs0": "", f"{port}/lid": "0x1", f"{port}/sm_lid": "0x1",
        f"{port}/state": "4: ACTIVE" if up else "1: DOWN", f"{port}/phys_state": "5: LinkUp" if up else "3: Disabled",
        f"{port}/rate": "400 Gb/sec (4X NDR)", f"{port}/link_layer": "InfiniBand",
        f"{port}/counters/port_xmit_data": "1000", f"{port}/counters/port_rcv_data": "1000",
    }
    folder = os.path.join(work, name)
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
            file.write(text + "\n")
    return folder


def ask(query):
    address = f"http://{PROMETHEUS}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    with urllib.request.urlopen(address, timeout=10) as answer:
        return json.load(answer)["data"]["result"]


def fired():
    """The alerts that have ever fired, by the scenario or node."""
    found = {}
    for series in ask('last_over_time(ALERTS{alertstate="firing"}[1h])'):
        labels = series["metric"]
        who = labels.get("node") or re.sub("-target$", "", labels["agent"])
        found.setdefault(who, set()).add(labels["alertname"])
    return found


def until(holds, what):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            if holds():
                return
        except OSError:
            pass  # Prometheus does not listen yet
        expect(time.monotonic() < end, what() if callable(what) else what)
        time.sleep(0.2)


def all_fire(live):
    wanted = {name: alerts for name, (_, _, _, alerts) in SCENARIOS.items()} | NODES
    for name in NODES:
        live.doctor(name)
    targets = {name: live.scenario(name) for name in SCENARIOS}
    live.prometheus()
    until(lambda: ask('viaduct_peers{agent="dead",state="ready"} == 1'), "the agents meet")
    targets["dead"].kill()
    until(lambda: all(alerts <= fired().get(name, set()) for name, alerts in wanted.items()),
          lambda: f"not every alert fires: {fired()} of {wanted}")
    return wanted


def no_other_fired(wanted):
    """Every rule has had its whole time since the slowest wanted alert fired."""
    text, end = sooner(read(RULES)), float(ask("time()")[1])
    end += sum(max(map(int, re.findall(before + r"(\d+)s", text))) for before in (r"\[", "for: "))
    until(lambda: float(ask("time()")[1]) > end, "the clock of Prometheus stands")
    got = fired()
    expect(got == {name: alerts for name, alerts in wanted.items() if alerts}, f"fired: {got}")


def all_answer():
    for name, title, query in queries():
        query = query.replace("$__rate_interval", "5s")
        query = re.sub(r'=~"\$\w+"', '=~".*"', query)
        until(lambda query=query: ask(query), f"{name}: {title}: no series: {query}")


def live(viaduct, work):
    folder = tempfile.mkdtemp(dir=work)
    running = Live(viaduct, folder)
    try:
        subprocess.run(["sh", "-c", NETWORK], check=True)
        wanted = all_fire(running)
        all_answer()
        no_other_fired(wanted)
    except Failed:
        print(f"logs: {folder}")
        raise
    finally:
        running.close()
    shutil.rmtree(folder)


def why_not():
    for program in ("prometheus", "promtool"):
        if not shutil.which(program):
            return f"no {program} on this machine"
    if sys.argv[1] != "live":
        return None
    if "VIADUCT_ALERTS" not in os.environ:
        return "rules that wait for a rate need a machine of their own; ./dev check --long runs it"
    if os.geteuid() != 0:
        return "no right to make network namespaces"
    if not PACKAGES:
        return "VIADUCT_PYTHON_INSTALLED names no folder with the Python packages; ctest sets it"
    return None


def main():
    what = sys.argv[1]
    if what != "dashboards" and (why := why_not()):
        print(f"skipped: {why}")
        return 77
    try:
        if what == "live":
            if "VIADUCT_ALERTS_INSIDE" not in os.environ:
                os.environ["VIADUCT_ALERTS_INSIDE"] = "yes"
                os.execvp("unshare", ["unshare", "--net", "--mount", "--", sys.executable, "-B", *sys.argv])
            live(os.path.realpath(sys.argv[2]), os.path.realpath(sys.argv[3]))
        else:
            {"rules": rules, "dashboards": dashboards}[what]()
    except Failed as why:
        print(why)
        return 1
    return 0


sys.exit(main())
