"""Runs a test transfer between two processes of this host, for viaduct.verify."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time

import viaduct

BYTES = 64 << 20
ROUNDS = 8
# Long enough for a slow process: only a process that hangs is killed.
SECONDS = 120


def command_of(module, function):
    """Makes the command that calls a function in a new process, with this process's module search
    path. Without that path, the new process would search the current folder first."""
    code = "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[1])\n"
    code += "getattr(importlib.import_module(sys.argv[2]), sys.argv[3])()"
    return [sys.executable, "-c", code, json.dumps(sys.path), module, function]


def target():
    """Runs in the process whose memory the test writes. Prints the agent's card, then a hash of the
    memory for each line from stdin."""
    with viaduct.Agent() as agent, agent.allocate(BYTES, "loopback") as pin:
        print(agent.card.hex(), flush=True)
        for _ in sys.stdin:
            print(hashlib.sha256(pin).hexdigest(), flush=True)


def copy_to(process):
    """Writes to the target process, and compares the target's hash with the hash of the data."""
    card = process.stdout.readline().strip()
    if not card:
        return {"ok": False, "error": f"the second process ended: {process.stderr.read().strip()}"}
    data = os.urandom(BYTES)
    with viaduct.Agent() as agent, agent.allocate(BYTES) as pin:
        memoryview(pin)[:] = data
        peer = agent.connect(bytes.fromhex(card))
        peer.ready(SECONDS)
        with agent.plan("write", peer, pin, peer.pin("loopback", SECONDS)) as transfer:
            transfer.post().wait()  # not timed: the first post maps the memory
            start = time.monotonic()
            for _ in range(ROUNDS):
                transfer.post().wait()
            seconds = time.monotonic() - start
            path = str(transfer.path)
        print("what has arrived?", file=process.stdin, flush=True)
        arrived = process.stdout.readline().strip()
    right = arrived == hashlib.sha256(data).hexdigest()
    return {
        "ok": right,
        "error": None if right else "the second process holds other bytes than the first one wrote",
        "bytes": BYTES,
        "path": path,
        "gigabytes_per_second": ROUNDS * BYTES / seconds / 1e9,
    }


def loopback():
    """Runs the test transfer, and returns its result as a dict with `ok` and `error`."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = command_of("viaduct._loopback", "target")
    with subprocess.Popen(command, **pipes, text=True) as process:
        watch = threading.Timer(SECONDS, process.kill)
        watch.start()
        try:
            return copy_to(process)
        except (viaduct.Error, OSError) as error:
            return {"ok": False, "error": str(error)}
        finally:
            watch.cancel()
