"""doctor_file_test.py DOCTOR VIADUCT CLASS: viaduct-doctor is one static file, and works where nothing else is."""

import ctypes
import json
import os
import platform
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

DOCTOR = os.path.realpath(sys.argv.pop(1))
VIADUCT = os.path.realpath(sys.argv.pop(1))
MOST_BYTES = 15_000_000
MOST_SECONDS = 30
OLDEST_KERNEL = (4, 18)
LOG = "n1:77:99 [0] NCCL WARN NET/IB: Got completion from peer with status=IBV_WC_LOC_PROT_ERR(4) vendor_err=81\n"
# Changing the root folder needs root, or a user namespace.
AS_ROOT = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def read_elf(*flags):
    return subprocess.run(["readelf", "--wide", *flags, DOCTOR], capture_output=True, text=True, check=True).stdout


class Container:
    """A root folder that holds the doctor alone, and the files that a test adds."""

    def __init__(self, files=()):
        self.root = tempfile.mkdtemp()
        shutil.copy(DOCTOR, self.root)
        for name, text in dict(files).items():
            path = os.path.join(self.root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def run(self, *words, stdin="", variables=None):
        return subprocess.run(
            [*AS_ROOT, shutil.which("chroot"), self.root, "/viaduct-doctor", *words],
            input=stdin, env=variables or {}, capture_output=True, text=True, timeout=MOST_SECONDS, check=False,
        )  # fmt: skip

    def close(self):
        shutil.rmtree(self.root)


class Form(unittest.TestCase):
    def test_it_needs_no_other_file(self):
        self.assertNotIn("INTERP", read_elf("--program-headers"))
        self.assertIn("no dynamic section", read_elf("--dynamic"))

    def test_it_is_small(self):
        self.assertLessEqual(os.path.getsize(DOCTOR), MOST_BYTES)

    def test_its_c_library_starts_on_old_kernels(self):
        found = re.search(r"OS: Linux, ABI: (\d+)\.(\d+)\.", read_elf("--notes"))
        self.assertLessEqual(tuple(map(int, found.groups())), OLDEST_KERNEL)


class AloneInAContainer(unittest.TestCase):
    def setUp(self):
        self.container = Container()
        self.addCleanup(self.container.close)

    def test_findings_come_soon_after_the_copy(self):
        start = time.monotonic()
        container = Container()
        self.addCleanup(container.close)
        ran = container.run()
        self.assertLessEqual(time.monotonic() - start, MOST_SECONDS)
        self.assertIn(ran.returncode, (0, 1, 2), ran.stderr)
        self.assertRegex(ran.stdout, r"^viaduct \S+ doctor: ")
        self.assertIn("INFO  libraries.one-file", ran.stdout)
        self.assertRegex(ran.stdout.splitlines()[-1], r"in order$")

    def test_it_prints_json(self):
        ran = self.container.run("--json")
        found = json.loads(ran.stdout)
        self.assertEqual((found["format"], found["exit_code"]), ("viaduct-doctor/1", ran.returncode))
        self.assertIn("libraries.one-file", [one["code"] for one in found["findings"]])

    def test_a_snapshot_is_read_again(self):
        self.assertEqual(self.container.run("snapshot", "-o", "/node.tar.gz").returncode, 0, "also without /proc and /sys")
        container = Container({"proc/meminfo": "MemTotal: 1024 kB\n"})
        self.addCleanup(container.close)
        written = container.run("snapshot", "-o", "/node.tar.gz")
        self.assertEqual(written.returncode, 0, written.stderr)
        self.assertIn("viaduct-doctor --root /node.tar.gz", written.stdout)
        read = container.run("--root", "/node.tar.gz", "--json", variables={"TMPDIR": "/"})
        self.assertIn("libraries.one-file", [one["code"] for one in json.loads(read.stdout)["findings"]], read.stderr)
        refused = container.run("--root", "/node.tar.gz")
        self.assertEqual(refused.returncode, 3)
        self.assertIn("set TMPDIR to a writable folder", refused.stderr)

    def test_it_explains_a_log(self):
        ran = self.container.run("--explain", "-", stdin=LOG)
        self.assertIn("log.loc-prot-err", ran.stdout, ran.stderr)
        self.assertEqual(ran.returncode, 1)

    def test_env_prints_variables(self):
        ran = self.container.run("env", "--format", "json")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        json.loads(ran.stdout)

    def test_exec_starts_a_program(self):
        ran = self.container.run("exec", "--", "/viaduct-doctor", "--version")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertRegex(ran.stdout, r"^viaduct \d")
        self.assertEqual(self.container.run("exec", "--", "/absent").returncode, 127)

    def test_commands_have_the_names_that_a_user_types(self):
        for words in ((), ("env",), ("exec",), ("snapshot",)):
            page = self.container.run(*words, "--help").stdout
            self.assertTrue(page.startswith("usage: " + " ".join(("viaduct-doctor", *words))), page)
            self.assertNotRegex(page, "viaduct (doctor|env|exec)")
        wrong = self.container.run("env", "--frm", "1")
        self.assertEqual(wrong.returncode, 2)
        self.assertTrue(wrong.stderr.startswith("viaduct-doctor env: "), wrong.stderr)

    def test_it_says_what_a_static_file_cannot_do(self):
        store = self.container.run("--bucket", "kv", "--only", "storage", "--json",
                                   variables={"VIADUCT_OBJECT_ENDPOINT": "http://127.0.0.1:9",
                                              "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})  # fmt: skip
        self.assertIn("one static file, which loads no library", store.stdout, store.stderr)
        nixl = self.container.run("exec", "--nixl", "--", "/viaduct-doctor")
        self.assertEqual(nixl.returncode, 126)
        self.assertIn("libnixl_capi.so is not installed beside this program", nixl.stderr)


class OnThisMachine(unittest.TestCase):
    def codes(self, *command):
        ran = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, text=True, timeout=MOST_SECONDS, check=False)
        found = json.loads(ran.stdout)
        return {one["code"] for one in found["findings"]} - {"libraries.one-file", "privacy.no-ipsec-mb"}

    def test_it_finds_what_the_whole_program_finds(self):
        self.assertEqual(self.codes(DOCTOR), self.codes(VIADUCT, "doctor"))

    def test_two_measure_their_path(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            where = f"127.0.0.1:{free.getsockname()[1]}"
        with subprocess.Popen([DOCTOR, "--listen", where], stdout=subprocess.PIPE, text=True) as listener:
            self.addCleanup(listener.kill)
            for line in listener.stdout:
                if where in line:
                    break
            ran = subprocess.run([DOCTOR, "--peer", where, "--json"], stdout=subprocess.PIPE, text=True, timeout=60,
                                 check=False)  # fmt: skip
            listener.terminate()
            listener.stdout.read()
        self.assertTrue(json.loads(ran.stdout)["path"], ran.stdout)


class DnsServer:
    """Answers each question for an IPv4 address with 10.1.2.3, on the port of DNS."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            question, peer = self.socket.recvfrom(512)
            end = question.index(b"\0", 12) + 5
            wants_v4 = question[end - 4 : end - 2] == b"\0\1"
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4\x0a\1\2\3" if wants_v4 else b""
            head = question[:2] + b"\x81\x80\0\1" + struct.pack(">H", 1 if wants_v4 else 0) + b"\0\0\0\0"
            self.socket.sendto(head + question[12:end] + answer, peer)


class Names(unittest.TestCase):
    """Runs in a network namespace of its own, because DNS has a fixed port."""

    def test_names_come_from_the_hosts_file_and_dns(self):
        server = DnsServer()
        self.addCleanup(server.socket.close)
        container = Container({
            "etc/hosts": "10.9.9.9 inhosts.example\n",
            "etc/resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
            "etc/nsswitch.conf": "hosts: nowhere\n",
        })  # fmt: skip
        self.addCleanup(container.close)
        ran = container.run("--only", "names", "--verbose", "--resolve", "inhosts.example,indns.example")
        self.assertIn("inhosts.example resolves to 10.9.9.9", " ".join(ran.stdout.split()), ran.stderr)
        self.assertIn("indns.example resolves to 10.1.2.3", " ".join(ran.stdout.split()), ran.stderr)


# The last system call of Linux 4.18, by processor. Newer ones have higher numbers.
LAST_CALL = {"x86_64": 334, "aarch64": 293}


def refuse_newer_calls():
    """Makes every newer system call fail with ENOSYS in this process and its children, as an old kernel does."""
    load_number, jump_if_greater, ret = 0x20, 0x25, 0x06
    allow, no_such_call = 0x7FFF0000, 0x00050000 | 38
    rows = [(load_number, 0, 0, 0), (jump_if_greater, 0, 1, LAST_CALL[platform.machine()]), (ret, 0, 0, no_such_call),
            (ret, 0, 0, allow)]  # fmt: skip
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("HL", len(rows), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_rights, seccomp, filter_mode = 38, 22, 2
    for call in ((no_new_rights, 1, 0, 0, 0), (seccomp, filter_mode, program, 0, 0)):
        if libc.prctl(*call) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


class OldKernel(unittest.TestCase):
    def test_it_needs_no_call_that_is_newer_than_linux_4_18(self):
        ran = subprocess.run([DOCTOR, "--json"], preexec_fn=refuse_newer_calls, capture_output=True, text=True,
                             timeout=MOST_SECONDS, check=False)  # fmt: skip
        self.assertIn(ran.returncode, (0, 1, 2), ran.stderr)
        self.assertTrue(json.loads(ran.stdout)["findings"])


def main():
    what = sys.argv[1]
    if what == "OldKernel" and platform.machine() not in LAST_CALL:
        skip("no number of a system call is known for this processor")
    if what in ("AloneInAContainer", "Names"):
        if subprocess.run([*AS_ROOT, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            skip("no right to change the root folder: neither root nor user namespaces")
    if what == "Names" and "VIADUCT_OWN_NETWORK" not in os.environ:
        inside = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, "-B", __file__, DOCTOR, VIADUCT, what]
        alone = ["unshare", "--net", *AS_ROOT[1:]]
        if subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            skip("no right to make a network namespace")
        os.execvpe(alone[0], [*alone, *inside], {**os.environ, "VIADUCT_OWN_NETWORK": "yes"})
    unittest.main(argv=sys.argv)


if __name__ == "__main__":
    main()
