"""A cluster of network namespaces: pods with an address, a name, volumes and a read-only root of their own."""

import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pods

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
DOMAIN = "bench.svc.cluster.local"
GATEWAY = "10.88.0.1"
# The installed Python packages, which pods of the Python image have in /python.
PYTHON_PACKAGES = os.environ.get("VIADUCT_PYTHON_INSTALLED", "")
# A library that behaves as CUDA's, which NVIDIA's runtime would mount into pods with GPUs.
FAKE_CUDA = os.environ.get("VIADUCT_FAKE_CUDA", "")
# The folder of programs of each of our images.
PROGRAMS = {"viaduct": "bin", "viaduct-python": "bin-python"}
SECRETS = {"viaduct": {"token": "swordfish"}}
NAMESPACES = ["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]

# Makes a pod's root from this system's files. Then waits for a line, so that all pods start at
# once.
SANDBOX = r"""
set -e
name=$1 root=$2 files=$3 bin=$4 packages=$5 volumes=$6; shift 6
hostname "$name"
ip link set lo up
mount -t tmpfs -o mode=755 root "$root"
for folder in usr etc dev proc sys tmp run viaduct data python; do mkdir "$root/$folder"; done
for folder in bin sbin lib lib64; do
  if [ -L "/$folder" ]; then ln -s "usr/$folder" "$root/$folder"; fi
done
mount --bind /usr "$root/usr"
mount --bind /etc "$root/etc"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t sysfs sys "$root/sys"
for file in hosts resolv.conf nsswitch.conf; do mount --bind "$files/$file" "$root/etc/$file"; done
mount --bind "$bin" "$root/usr/local/bin"
if [ -n "$packages" ]; then mount --bind "$packages" "$root/python"; fi
for volume in $volumes; do mount --bind "${volume%:*}" "$root${volume#*:}"; done
mount -o remount,ro,bind "$root" 2>/dev/null || mount -o remount,ro "$root"
echo made
read -r go
exec chroot "$root" "$@"
"""


class Refused(Exception):
    """Namespaces may not be made here."""


class Pod:
    """One container of a pod. Its output has the time of each line, in seconds from `go`."""

    def __init__(self, name, files, container, words, environment, user, volumes):
        self.name = name
        self.volumes = volumes or tempfile.mkdtemp(dir=files)
        os.chmod(self.volumes, 0o755)
        mounts = []
        for one in container.get("volumeMounts", []):
            path = os.path.join(self.volumes, one["name"])
            os.makedirs(path, exist_ok=True)
            os.chmod(path, 0o1777)
            mounts.append(f"{path}:{one['mountPath']}")
        # Only our image contains our programs.
        image = container["image"].split(":")[0]
        programs = os.path.join(files, PROGRAMS.get(image, "nothing"))
        packages = PYTHON_PACKAGES if image == "viaduct-python" else ""
        mount = tempfile.mkdtemp(dir=files)
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all"]
        become += ["--bounding-set=-all", "--no-new-privs"]
        self.process = subprocess.Popen(
            NAMESPACES
            + ["sh", "-c", SANDBOX, "sh", name, mount, os.path.join(files, "etc"), programs, packages, " ".join(mounts)]
            + become
            + words,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines, self.unread = [], queue.Queue()
        self.started = None
        if self.process.stdout.readline() != "made\n":
            self.process.kill()
            raise Refused("namespaces may not be made here")
        threading.Thread(target=self.collect, daemon=True).start()

    def collect(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic() - self.started, line.rstrip("\n")))
            self.unread.put(line)
        self.unread.put(None)

    def go(self):
        self.started = time.monotonic()
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def text(self):
        return "".join(f"{at:7.2f} {self.name}: {line}\n" for at, line in self.lines)

    def wait_for(self, part, seconds=60):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                line = self.unread.get(timeout=max(0.01, until - time.monotonic()))
            except queue.Empty:
                break
            if line is None:
                break
            if part in line:
                return True
        return False

    def seconds_to(self, part):
        """The time of the last line that contains `part`, or None."""
        return max((at for at, line in self.lines if part in line), default=None)

    def finish(self, seconds=120):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self):
        """Ends the first process of its PID namespace, and with that one all others."""
        parent = self.process.pid
        with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as file:
            for child in file.read().split():
                os.kill(int(child), signal.SIGKILL)
        self.process.wait()


class Cluster:
    def __init__(self, objects, viaduct, work):
        self.objects, self.count, self.pods, self.names = objects, 0, [], {}
        self.files = tempfile.mkdtemp(dir=work)
        os.chmod(self.files, 0o755)
        for folder in ("etc", "bin", "bin-python", "nothing"):
            os.mkdir(os.path.join(self.files, folder))
        scripts = os.path.join(ROOT, "deploy", "docker", "bin")
        for name in os.listdir(scripts):
            shutil.copy(os.path.join(scripts, name), os.path.join(self.files, "bin", name))
        shutil.copy(viaduct, os.path.join(self.files, "bin", "viaduct"))
        os.symlink("viaduct", os.path.join(self.files, "bin", "nixlbench"))
        if FAKE_CUDA:
            shutil.copy(FAKE_CUDA, os.path.join(self.files, "bin", "libcuda.so.1"))
        program = os.path.join(self.files, "bin-python", "viaduct-p2p")
        shutil.copy(os.path.join(ROOT, "examples", "python", "p2p.py"), program)
        os.chmod(program, 0o755)
        self.write("etc/hosts", "127.0.0.1 localhost\n")
        self.write("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
        search = f"{DOMAIN} svc.cluster.local cluster.local"
        self.write("etc/resolv.conf", f"nameserver {GATEWAY}\nsearch {search}\noptions ndots:5 timeout:1\n")
        self.write("zone", "")
        self.switch = self.make_switch()

    def write(self, name, text):
        path = os.path.join(self.files, name)
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(text)
        os.rename(path + ".new", path)

    def make_switch(self):
        # Gives the bridge an address, because it would otherwise take the lowest of its ports and
        # change it with each new port.
        bridge = "ip link set lo up; ip link add br0 address 02:00:00:00:00:01 type bridge; "
        bridge += f"ip address add {GATEWAY}/16 dev br0; ip link set br0 up"
        server = [sys.executable, "-B", os.path.join(ROOT, "tests", "deploy", "names.py"), GATEWAY]
        switch = subprocess.Popen(
            ["unshare", "--net", "sh", "-ec", bridge + '; exec "$@"', "sh"] + server + [os.path.join(self.files, "zone")],
            stdout=subprocess.PIPE,
            text=True,
        )
        if switch.stdout.readline() != "serves\n":
            switch.kill()
            raise Refused("network namespaces may not be made here")
        return switch

    def connect(self, pod, address):
        port = f"p{self.count}"
        commands = [
            f"link add eth0 type veth peer name {port} netns {self.switch.pid}",
            f"address add {address}/16 dev eth0",
            "link set eth0 up",
        ]
        inside = ["nsenter", f"--net=/proc/{pod.process.pid}/ns/net", "ip", "-batch", "-"]
        subprocess.run(inside, input="\n".join(commands), text=True, check=True)
        outside = ["nsenter", f"--net=/proc/{self.switch.pid}/ns/net", "ip", "link", "set", port, "master", "br0", "up"]
        subprocess.run(outside, check=True)

    def make(self, workload, index=0, container=None, volumes=None):
        """The pod of a Job's index, or of a Deployment; it waits for go(). Containers of one pod share volumes."""
        pod = pods.pod_of(workload)
        container = container or pod["containers"][0]
        name = workload["metadata"]["name"]
        if workload["kind"] == "Job":
            name = f"{name}-{index}"
        self.count += 1
        address = f"10.88.1.{self.count}"
        fields = {"metadata.name": f"{name}-x{self.count}", "spec.nodeName": f"node{index}", "status.podIP": address}
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOSTNAME": name, "PYTHONPATH": "/python"}
        environment.update(pods.environment(self.objects, container, SECRETS, fields))
        environment.update({"KUBERNETES_SERVICE_HOST": "10.96.0.1", "JOB_COMPLETION_INDEX": str(index)})
        on_host = pod.get("hostNetwork")
        if on_host and pod.get("dnsPolicy") != "ClusterFirstWithHostNet":
            environment["LOCALDOMAIN"] = "."  # a node's resolver searches no cluster domain
        words = pods.command(container, environment)
        made = Pod(f"node{index}" if on_host else name, self.files, container, words, environment, pod["securityContext"]["runAsUser"], volumes)
        self.pods.append(made)
        self.connect(made, address)
        self.publish(workload, name, address)
        return made

    def publish(self, workload, name, address):
        """Names a pod in the subdomain of a headless service. The name of any other service leads to its pod."""
        subdomain = pods.pod_of(workload).get("subdomain")
        if subdomain:
            self.names[f"{name}.{subdomain}.{DOMAIN}"] = address
        for service in pods.of_kind(self.objects, "Service"):
            if service["spec"]["selector"].items() <= pods.labels_of(workload).items():
                self.names[f"{service['metadata']['name']}.{DOMAIN}"] = address
        self.write("zone", "".join(f"{one} {where}\n" for one, where in self.names.items()))

    def close(self):
        for pod in self.pods:
            if pod.process.poll() is None:
                pod.kill()
        self.switch.kill()
        self.switch.wait()
        shutil.rmtree(self.files)
