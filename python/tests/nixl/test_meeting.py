"""Tests agents that find each other by name in etcd, and agents on two hosts."""

import os
import re
import shutil
import subprocess
import sys
import threading

import nixl._bindings as b
import numpy as np
import pytest
from nixl_testing import Side, run, until

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture
def etcd(tmp_path):
    """Starts an etcd for one test. Yields its address."""
    if shutil.which("etcd") is None:
        pytest.skip("no etcd (package etcd-server)")
    # etcd cannot choose a free port, so each test process uses its own loopback address.
    pid = os.getpid()
    host = f"127.{64 + (pid >> 16 & 63)}.{pid >> 8 & 255}.{pid & 255}"
    clients, peers = f"http://{host}:2379", f"http://{host}:2380"
    process = subprocess.Popen(
        ["etcd", "--data-dir", tmp_path / "etcd", "--initial-cluster", f"default={peers}"]
        + ["--listen-client-urls", clients, "--advertise-client-urls", clients]
        + ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        for line in process.stdout:
            if re.search(r"serving .*client", line):
                break
        else:
            raise AssertionError("etcd ended before it served")
        # etcd keeps logging, and would block on a full pipe.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield clients
    finally:
        process.kill()
        process.wait()


def test_agents_are_found_by_name(etcd, monkeypatch):
    monkeypatch.delenv("VIADUCT_MEET", raising=False)
    monkeypatch.setenv("NIXL_ETCD_ENDPOINTS", etcd)
    monkeypatch.setenv("NIXL_ETCD_NAMESPACE", "/this/test")
    one, other = Side(fill=1), Side(fill=2)
    other.agent.send_local_metadata()
    assert not one.agent.check_remote_metadata(other.name)
    one.agent.fetch_remote_metadata(other.name)
    until("the other agent", lambda: one.agent.check_remote_metadata(other.name))
    here = one.agent.get_xfer_descs(one.blocks(1), "DRAM")
    there = one.agent.get_xfer_descs(other.blocks(1), "DRAM")
    assert one.agent.check_remote_metadata(other.name, there)
    run(one.agent, one.agent.initialize_xfer("READ", here, there, other.name))
    assert (one.memory[:4096] == 2).all()


def test_a_part_is_found_by_its_label(etcd, monkeypatch):
    monkeypatch.setenv("NIXL_ETCD_ENDPOINTS", etcd)
    one, other = Side(), Side(fill=2)
    more = np.full(4096, 9, np.uint8)
    part = other.agent.register_memory([(more.ctypes.data, 4096, 0, "")], "DRAM")
    rows = {"all": other.registered.trim(), "part": part.trim()}
    other.agent.send_partial_agent_metadata(part, True, ["UCX"], label="part 1")
    one.agent.fetch_remote_metadata(other.name, label="part 1")
    until("the part", lambda: one.agent.check_remote_metadata(other.name, rows["part"]))
    assert not one.agent.check_remote_metadata(other.name, rows["all"])
    here = one.agent.get_xfer_descs(one.blocks(1), "DRAM")
    with pytest.raises(b.nixlNotFoundError):
        one.agent.initialize_xfer("READ", one.registered.trim(), rows["all"], other.name)
    run(one.agent, one.agent.initialize_xfer("READ", here, rows["part"], other.name))
    assert (one.memory[:4096] == 9).all()
    # The same label names another part from now on, and parts add up.
    other.agent.send_partial_agent_metadata(other.registered, False, label="part 1")
    one.agent.fetch_remote_metadata(other.name, label="part 1")
    until("the rest", lambda: one.agent.check_remote_metadata(other.name, rows["all"]))
    assert one.agent.check_remote_metadata(other.name, rows["part"])
    other.agent.invalidate_local_metadata()
    one.agent.remove_remote_agent(other.name)
    one.agent.fetch_remote_metadata(other.name)
    until("all", lambda: one.agent.check_remote_metadata(other.name, rows["all"]))


def test_an_agent_that_was_found_and_restarted_is_another_one(etcd, monkeypatch):
    monkeypatch.delenv("VIADUCT_MEET", raising=False)
    monkeypatch.setenv("NIXL_ETCD_ENDPOINTS", etcd)
    monkeypatch.setenv("NIXL_ETCD_NAMESPACE", "/this/test")
    one, first = Side(fill=1), Side(fill=2)
    first.agent.send_local_metadata()
    one.agent.fetch_remote_metadata(first.name)
    until("the other agent", lambda: one.agent.check_remote_metadata(first.name))
    local = one.agent.prep_xfer_dlist("", one.blocks(1), "DRAM")
    old = one.agent.prep_xfer_dlist(first.name, first.blocks(1), "DRAM")
    run(one.agent, one.agent.make_prepped_xfer("READ", local, [0], old, [0]))
    memory = first.memory
    first.agent = None  # closes the first agent
    second = Side(name=first.name, fill=9)
    # The second agent registers the same address, so only the restart tells the two agents apart.
    second.agent.register_memory([(memory.ctypes.data, memory.size, 0, "")], "DRAM")
    second.agent.add_remote_agent(one.agent.get_agent_metadata())
    second.agent.make_connection(one.name)
    with pytest.raises(b.nixlRemoteDisconnectError):
        run(one.agent, one.agent.make_prepped_xfer("READ", local, [0], old, [0]))


def test_another_namespace_is_another_place(etcd, monkeypatch, caplog):
    monkeypatch.delenv("VIADUCT_MEET", raising=False)
    monkeypatch.setenv("NIXL_ETCD_ENDPOINTS", etcd)
    monkeypatch.setenv("NIXL_ETCD_NAMESPACE", "/one")
    one = Side()
    monkeypatch.setenv("NIXL_ETCD_NAMESPACE", "/other")
    other = Side()
    one.agent.fetch_remote_metadata(other.name)
    until("the warning", lambda: "find agent" in caplog.text)
    assert not one.agent.check_remote_metadata(other.name)


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def hosts():
    """Creates two network namespaces with a link between them."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("no network namespaces without root and ip")
    names = [f"nixl{os.getpid()}{side}" for side in "ab"]
    made = []
    try:
        for name in names:
            try:
                ip("netns", "add", name)
            except subprocess.CalledProcessError as error:
                pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
            made.append(name)
            ip("-n", name, "link", "set", "lo", "up")
        ip(
            "link",
            "add",
            "va",
            "netns",
            names[0],
            "type",
            "veth",
            "peer",
            "name",
            "vb",
            "netns",
            names[1],
        )
        for number, (name, device) in enumerate(zip(names, ("va", "vb"))):
            ip("-n", name, "addr", "add", f"10.9.0.{number + 1}/24", "dev", device)
            ip("-n", name, "link", "set", device, "up")
        yield names
    finally:
        for name in made:
            ip("netns", "del", name)


SERVER = """
import sys
from nixl_testing import Side, new_notes
side = Side(fill=9, enable_listen_thread=True, listen_port=8888, name="server")
print(side.address, flush=True)
assert new_notes(side.agent, "client") == [b"read"]
side.agent.send_notif("client", b"end")
sys.stdin.read()
"""
CLIENT = """
import sys
from nixl_testing import Side, new_notes, run, until
side = Side(name="client")
side.agent.fetch_remote_metadata("server", "10.9.0.2", 8888)
until("the server", lambda: side.agent.check_remote_metadata("server"))
address = int(sys.argv[1])
here = side.agent.get_xfer_descs(side.blocks(100), "DRAM")
there = side.agent.get_xfer_descs([(address + i * 4096, 4096, 0) for i in range(100)], "DRAM")
run(side.agent, side.agent.initialize_xfer("READ", here, there, "server", b"read"))
assert (side.memory[: 100 * 4096] == 9).all()
assert new_notes(side.agent, "server") == [b"end"]
"""


def test_agents_of_two_hosts_need_no_setting(hosts):
    environment = {
        name: text for name, text in os.environ.items() if not name.startswith("VIADUCT_")
    }
    environment["PYTHONPATH"] = os.pathsep.join([HERE, environment.get("PYTHONPATH", "")])

    def start(host, code, *words):
        return subprocess.Popen(
            ["ip", "netns", "exec", host, sys.executable, "-c", code, *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    with start(hosts[1], SERVER) as server:
        try:
            with start(hosts[0], CLIENT, server.stdout.readline().strip()) as client:
                client.communicate(timeout=60)
            assert client.returncode == 0
            server.communicate("", timeout=60)
            assert server.returncode == 0
        finally:
            server.kill()
