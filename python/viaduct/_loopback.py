"""A transfer between two processes of this host, for viaduct.verify."""

import hashlib
import json
import subprocess
import sys
import threading
import time

import viaduct

BYTES = 64 << 20
ROUNDS = 8
# Ends a process that hangs, and none that is only slow.
SECONDS = 120


def pattern(size):
    """Bytes of which no two blocks of 4 KiB are equal."""
    numbers = range(size // 4096)
    return b"".join(hashlib.sha256(one.to_bytes(8, "little")).digest() * 128 for one in numbers)


def command_of(module, function):
    """The command that calls a function in a process of its own, with the search path of this one.
    The path of a child would begin with the current folder."""
    code = "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[1])\n"
    code += "getattr(importlib.import_module(sys.argv[2]), sys.argv[3])()"
    return [sys.executable, "-c", code, json.dumps(sys.path), module, function]


def target():
    """The process that is written to. It prints its card, and a hash of its memory for each line
    that it reads."""
    with viaduct.Agent() as agent, agent.allocate(BYTES, "loopback") as pin:
        print(agent.card.hex(), flush=True)
        for _ in sys.stdin:
            print(hashlib.sha256(pin).hexdigest(), flush=True)


def copy_to(process):
    """Writes to the target, and asks it what has arrived."""
    card = process.stdout.readline().strip()
    if not card:
        return {"ok": False, "error": f"the second process ended: {process.stderr.read().strip()}"}
    data = pattern(BYTES)
    with viaduct.Agent() as agent, agent.allocate(BYTES) as pin:
        memoryview(pin)[:] = data
        peer = agent.connect(bytes.fromhex(card))
        peer.ready(SECONDS)
        with agent.plan("write", peer, pin, peer.pin("loopback", SECONDS)) as transfer:
            transfer.post().wait()  # the first one maps the memory
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
        "error": None if right else "the second process does not have the bytes that were written",
        "bytes": BYTES,
        "path": path,
        "gigabytes_per_second": ROUNDS * BYTES / seconds / 1e9,
    }


def loopback():
    """The result of a transfer, as a dict with `ok` and `error`."""
    with subprocess.Popen(
        command_of("viaduct._loopback", "target"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        watch = threading.Timer(SECONDS, process.kill)
        watch.start()
        try:
            return copy_to(process)
        except (viaduct.Error, OSError) as error:
            return {"ok": False, "error": str(error)}
        finally:
            watch.cancel()
