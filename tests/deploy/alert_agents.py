"""One agent of the alerts' test: `target` serves its memory, `initiator` moves blocks to it until its input ends.

usage: alert_agents.py target | initiator | owner     a line of the card is printed, or read

A fault ends a transfer or a session; the agent then goes on, as an engine does.
"""
import sys
import threading
import time

import viaduct

BYTES = 1 << 20


def target():
    with viaduct.Agent() as agent, agent.allocate(BYTES, label="inbox"):
        print(agent.card.hex(), flush=True)
        sys.stdin.read()


def connected(agent):
    peer = agent.connect(bytes.fromhex(sys.stdin.readline()))
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    return peer, ended


def initiator():
    with viaduct.Agent() as agent:
        here = agent.allocate(BYTES)
        peer, ended = connected(agent)
        while not ended.is_set():
            try:
                peer.ready()
                agent.write(peer, here, peer.pin("inbox"))
            except viaduct.Error:
                pass
            time.sleep(0.01)


def owner():
    """Lends its memory and never takes it back: `late-lease` ends the leases."""
    with viaduct.Agent() as agent:
        blocks = agent.allocate(BYTES).blocks(4096)
        peer, ended = connected(agent)
        peer.ready()
        while not ended.is_set():
            try:
                agent.lease(peer, blocks[0:1], duration=30).wait(timeout=30)
            except viaduct.Error:
                pass
            time.sleep(0.05)


{"target": target, "initiator": initiator, "owner": owner}[sys.argv[1]]()
