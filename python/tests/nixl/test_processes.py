"""Tests two processes: vLLM's calls, dead and frozen peers, threads, forks and exits."""

import os
import signal
import subprocess
import sys
import threading
import time

import nixl._bindings as b
import numpy as np
import pytest
from nixl_testing import Side, finish, new_notes, other_process, run, until

BLOCK = 4096


def decoder(pipe):
    """Reads blocks of the other process. Sends a notification with each read."""
    side = Side(size=64 * BLOCK, capture_telemetry=True)
    blob, address = pipe.recv()
    name = side.agent.add_remote_agent(blob).decode()
    local = side.agent.prep_xfer_dlist(
        "NIXL_INIT_AGENT", np.array(side.blocks(64), np.uint64), "DRAM"
    )
    rows = np.array([(address + i * BLOCK, BLOCK, 0) for i in range(64)], np.uint64)
    remote = side.agent.prep_xfer_dlist(name, rows, "DRAM")
    for request in range(20):
        picks = np.arange(request, 64, 3)
        handle = side.agent.make_prepped_xfer(
            "READ", local, picks, remote, picks, f"{request}:1".encode()
        )
        run(side.agent, handle)
        assert side.agent.get_xfer_telemetry(handle).totalBytes == len(picks) * BLOCK
        assert all(side.memory[p * BLOCK] == p for p in picks)
        side.agent.release_xfer_handle(handle)
    pipe.send(side.name)
    pipe.recv()


def test_a_decoder_pulls_from_a_prefiller():
    side = Side(size=64 * BLOCK)
    side.memory.reshape(64, BLOCK)[:] = np.arange(64, dtype=np.uint8)[:, None]
    with other_process(decoder) as (pipe, process):
        pipe.send((side.agent.get_agent_metadata(), side.address))
        name = pipe.recv()
        notes = []
        while len(notes) < 20:
            notes += new_notes(side.agent, name)
        assert notes == [f"{i}:1".encode() for i in range(20)]
        side.agent.send_notif(name, b"thanks")
        pipe.send("end")
    assert process.exitcode == 0


def server(pipe, size):
    side = Side(size=size, fill=7)
    pipe.send((side.agent.get_agent_metadata(), side.address))
    pipe.recv()


def connected(pipe, side):
    """Connects to the agent in the other process. Returns its name, and a list for each side."""
    blob, address = pipe.recv()
    name = side.agent.add_remote_agent(blob)
    local = side.agent.prep_xfer_dlist("", [(side.address, side.memory.size, 0)], "DRAM")
    remote = side.agent.prep_xfer_dlist(name, [(address, side.memory.size, 0)], "DRAM")
    return local, remote, name


def test_release_in_flight_fences():
    side = Side(size=128 << 20)
    with other_process(server, side.memory.size) as (pipe, process):
        local, remote, _ = connected(pipe, side)
        for _ in range(3):
            handle = side.agent.make_prepped_xfer("READ", local, [0], remote, [0])
            side.agent.transfer(handle)
            side.agent.release_xfer_handle(handle)
            side.memory[:] = 1
            # A transfer that still wrote would write bytes of the value 7.
            for _ in range(3):
                assert not (side.memory == 7).any()
        pipe.send("end")
    assert process.exitcode == 0


def test_a_post_while_it_runs_is_refused():
    side = Side(size=256 << 20)
    with other_process(server, side.memory.size) as (pipe, _):
        local, remote, _ = connected(pipe, side)
        handle = side.agent.make_prepped_xfer("READ", local, [0], remote, [0])
        assert side.agent.transfer(handle) == "PROC"
        with pytest.raises(b.nixlRepostActiveError):
            side.agent.transfer(handle)
        finish(side.agent, handle)
        assert (side.memory[:: 1 << 20] == 7).all()
        pipe.send("end")


def test_a_killed_peer_is_a_disconnect():
    side = Side(size=256 << 20)
    with other_process(server, side.memory.size) as (pipe, process):
        local, remote, name = connected(pipe, side)
        handle = side.agent.make_prepped_xfer("READ", local, [0], remote, [0])
        side.agent.transfer(handle)
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(b.nixlRemoteDisconnectError):
            while True:  # posts again if a transfer was done before the signal
                finish(side.agent, handle)
                side.agent.transfer(handle)
        with pytest.raises(b.nixlRemoteDisconnectError):
            side.agent.check_xfer_state(handle)
        side.agent.release_xfer_handle(handle)

        def refused():
            try:
                side.agent.make_prepped_xfer("READ", local, [0], remote, [0])
            except b.nixlRemoteDisconnectError:
                return True
            return False

        until("the loss of the session", refused)
        began = time.monotonic()
        assert all(refused() for _ in range(20))
        assert time.monotonic() - began < 3, "calls waited for a peer that is dead"
        side.agent.remove_remote_agent(name)


@pytest.mark.parametrize("backend", ["local", "tcp"])
def test_a_frozen_peer_does_not_hold_up_a_release(backend, monkeypatch):
    monkeypatch.setenv("VIADUCT_BACKENDS", backend)
    side = Side(size=64 << 20)
    with other_process(server, side.memory.size) as (pipe, process):
        local, remote, name = connected(pipe, side)
        handle = side.agent.make_prepped_xfer("READ", local, [0], remote, [0])
        os.kill(process.pid, signal.SIGSTOP)
        try:
            state = side.agent.transfer(handle)
            # Over tcp the frozen peer would have to send. The backend local needs no peer.
            assert state == "PROC" or backend == "local"
            side.agent.release_xfer_handle(handle)
            side.memory[:] = 1
        finally:
            os.kill(process.pid, signal.SIGCONT)
        # The peer runs again. Its remaining bytes must not arrive in the released memory.
        until("the peer, which goes on", lambda: sends(side.agent, name))
        assert (side.memory == 1).all()
        pipe.send("end")


def sends(agent, name):
    try:
        agent.send_notif(name, b"are you there?")
    except b.nixlRemoteDisconnectError:
        return False
    return True


def test_threads_share_an_agent():
    """Lets one thread write and take notifications while another thread sends and checks."""
    one, other = Side(), Side()
    one.agent.add_remote_agent(other.agent.get_agent_metadata())
    other.agent.add_remote_agent(one.agent.get_agent_metadata())
    rounds, failures = 2000, []

    def transfers(first):
        try:
            local = one.agent.prep_xfer_dlist("", one.blocks(8, first=first), "DRAM")
            remote = one.agent.prep_xfer_dlist(other.name, other.blocks(8, first=first), "DRAM")
            for i in range(rounds):
                handle = one.agent.make_prepped_xfer("WRITE", local, [i % 8], remote, [i % 8], b"w")
                run(one.agent, handle)
                one.agent.send_notif(other.name, b"heartbeat")
                one.agent.release_xfer_handle(handle)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=transfers, args=(8 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    notes = []
    while len(notes) < 2 * rounds * len(threads) and not failures:
        notes += other.agent.get_new_notifs().get(one.name, [])
    for thread in threads:
        thread.join()
    assert not failures
    assert notes.count(b"w") == notes.count(b"heartbeat") == rounds * len(threads)


def test_ten_agents_in_one_process():
    sides = [Side(fill=i) for i in range(10)]
    for one in sides:
        for other in sides:
            if one is not other:
                one.agent.add_remote_agent(other.agent.get_agent_metadata())
    for one in sides:
        for other in sides:
            there = one.agent.prep_xfer_dlist(other.name, other.blocks(1, first=1), "DRAM")
            here = one.agent.prep_xfer_dlist("", one.blocks(1), "DRAM")
            run(one.agent, one.agent.make_prepped_xfer("READ", here, [0], there, [0]))
            assert (one.memory[:BLOCK] == other.memory[BLOCK]).all()


def refused_after_fork(call):
    try:
        call()
    except b.nixlInvalidParamError as error:
        return "fork()" in str(error)
    return False


def test_a_forked_child_is_told_so():
    side = Side()
    local = side.agent.prep_xfer_dlist("", side.blocks(1), "DRAM")
    remote = side.agent.prep_xfer_dlist(side.name, side.blocks(1, first=1), "DRAM")
    handle = side.agent.make_prepped_xfer("WRITE", local, [0], remote, [0])
    child = os.fork()
    if child == 0:
        code = 1
        calls = (
            lambda: side.agent.transfer(handle),
            side.agent.get_new_notifs,
            side.agent.get_agent_metadata,
            lambda: side.agent.prep_xfer_dlist("", side.blocks(1), "DRAM"),
            lambda: side.agent.deregister_memory(side.registered),
        )
        try:
            code = len([call for call in calls if not refused_after_fork(call)])
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    run(side.agent, handle)


def child_of(code):
    """Runs the code in a new interpreter, which must exit by itself within a minute."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


SETUP = """
import os, sys
sys.path.insert(0, {here!r})
from nixl_testing import Side
one, other = Side(size=256 << 20), Side(size=256 << 20)
one.agent.add_remote_agent(other.agent.get_agent_metadata())
local = one.agent.prep_xfer_dlist("", [(one.address, one.memory.size, 0)], "DRAM")
remote = one.agent.prep_xfer_dlist(other.name, [(other.address, other.memory.size, 0)], "DRAM")
handle = one.agent.make_prepped_xfer("READ", local, [0], remote, [0])
"""


# The thread ends quietly: Python itself aborts if a daemon thread prints an exception while the
# interpreter ends.
POLLING_THREAD = """
import threading
def check():
    try:
        while True:
            one.agent.check_xfer_state(handle)
    except Exception:
        pass
one.agent.transfer(handle)
threading.Thread(target=check, daemon=True).start()
"""


@pytest.mark.parametrize(
    "end",
    [
        "one.agent.transfer(handle)",
        "one.agent.transfer(handle); sys.exit(0)",
        POLLING_THREAD,
        "import builtins; builtins.kept = (one, other, handle); one.agent.transfer(handle)",
        "del one; del other",
    ],
)
def test_the_interpreter_exits_with_transfers_in_flight(end):
    here = os.path.dirname(os.path.abspath(__file__))
    done = child_of(SETUP.format(here=here) + end)
    assert done.returncode == 0, done.stderr


def test_ctrl_c_ends_a_wait():
    """Sends Ctrl-C while make_connection waits for a peer that does not exist."""
    code = """
import os, signal, socket, sys, threading, time
sys.path.insert(0, {here!r})
os.environ["VIADUCT_LISTEN"] = "127.0.0.1:0"
from nixl_testing import Side
one, other = Side(), Side()
blob, name = other.agent.get_agent_metadata(), other.name
del other  # nobody is there any more
one.agent.add_remote_agent(blob)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    one.agent.make_connection(name)
except KeyboardInterrupt:
    print("heard")
"""
    done = child_of(code.format(here=os.path.dirname(os.path.abspath(__file__))))
    assert done.stdout == "heard\n", done.stderr
