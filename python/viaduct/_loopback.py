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
    return b"".join(hashlib.sha256(number.to_bytes(8, "little")).digest() * 128 for number in range(size // 4096))


def target():
    """The process that is written to. It says its card, and for each line that it reads, what its memory
    holds."""
    with viaduct.Agent() as agent, agent.allocate(BYTES, label="loopback") as pin:
        print(agent.export_card().hex(), flush=True)
        for _ in sys.stdin:
            print(hashlib.sha256(pin).hexdigest(), flush=True)


def start_target():
    # The path of this process, not the child's own: that one would begin with the current folder.
    code = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); import viaduct._loopback as it; it.target()"
    return subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def copy_to(target_process):
    """Writes to the target, and asks it what has arrived."""
    card = target_process.stdout.readline().strip()
    if not card:
        return {"ok": False, "error": f"the second process ended: {target_process.stderr.read().strip()}"}
    data = pattern(BYTES)
    with viaduct.Agent() as agent, agent.allocate(BYTES) as pin:
        memoryview(pin)[:] = data
        peer = agent.import_card(bytes.fromhex(card))
        peer.ready(SECONDS)
        transfer = agent.write(peer, pin, peer.pin("loopback"))
        transfer.wait(SECONDS)
        start = time.monotonic()
        for _ in range(ROUNDS):
            transfer.post()
            transfer.wait(SECONDS)
        seconds = time.monotonic() - start
        path = transfer.path
        print("sum", file=target_process.stdin, flush=True)
        arrived = target_process.stdout.readline().strip()
    right = arrived == hashlib.sha256(data).hexdigest()
    return {
        "ok": right,
        "error": None if right else "the bytes in the second process are not those that were written",
        "bytes": BYTES,
        "path": str(path),
        "gigabytes_per_second": ROUNDS * BYTES / seconds / 1e9,
    }


def loopback():
    """The result of a transfer, as a dict with `ok` and `error`. Raises nothing."""
    process = start_target()
    watch = threading.Timer(SECONDS, process.kill)
    watch.start()
    try:
        return copy_to(process)
    except (viaduct.Error, OSError) as error:
        return {"ok": False, "error": str(error)}
    finally:
        watch.cancel()
        process.stdin.close()
        process.wait()
        process.stdout.close()
        process.stderr.close()
