"""Prints how long the calls of the package nixl stand still beside a dead or frozen peer.

    PYTHONPATH=build/release/python/tests/installed python3 bench/python/dead_peer_figures.py
"""

import base64
import os
import signal
import subprocess
import sys
import time

import numpy as np
from nixl._api import nixl_agent

REQUESTS = 100
BYTES = 1 << 20

PEER = """
import base64, sys
import numpy as np
from nixl._api import nixl_agent
agent = nixl_agent(sys.argv[1])
memory = np.zeros(1 << 20, np.uint8)
for line in sys.stdin:
    if line == "register\\n":
        registered = agent.register_memory([(memory.ctypes.data, memory.size, 0, "")], "DRAM")
    elif line == "deregister\\n":
        agent.deregister_memory(registered)
    print(base64.b64encode(agent.get_agent_metadata()).decode(), memory.ctypes.data, flush=True)
"""


class Peer:
    """An agent in another process."""

    count = 0

    def __init__(self):
        Peer.count += 1
        self.name = f"peer-{os.getpid()}-{Peer.count}"
        self.process = subprocess.Popen([sys.executable, "-c", PEER, self.name], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.blob, self.address = self.ask("register")

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        blob, address = self.process.stdout.readline().split()
        return base64.b64decode(blob), int(address)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Engine:
    def __init__(self):
        self.agent = nixl_agent(f"engine-{os.getpid()}")
        self.memory = np.zeros(BYTES, np.uint8)
        self.agent.register_memory([(self.memory.ctypes.data, BYTES, 0, "")], "DRAM")
        self.longest = 0.0

    def call(self, function, *arguments):
        began = time.perf_counter()
        try:
            return function(*arguments)
        except Exception as error:  # most calls fail here
            return error
        finally:
            self.longest = max(self.longest, time.perf_counter() - began)

    def request(self, peer):
        agent, call = self.agent, self.call
        here = agent.get_xfer_descs([(self.memory.ctypes.data, 4096, 0)], "DRAM")
        there = agent.get_xfer_descs([(peer.address, 4096, 0)], "DRAM")
        local, remote = agent.prep_xfer_dlist("", here), agent.prep_xfer_dlist(peer.name, there)
        handles = [call(agent.initialize_xfer, "READ", here, there, peer.name, b"read"),
                   call(agent.make_prepped_xfer, "READ", local, [0], remote, [0], b"read")]
        call(agent.send_notif, peer.name, b"hello")
        handles = [handle for handle in handles if not isinstance(handle, Exception)]
        return [handle for handle in handles if call(agent.transfer, handle) == "PROC"]

    def measure(self, what, peer, before=lambda: None):
        self.longest, handles = 0.0, []
        began = time.monotonic()
        for _ in range(REQUESTS):
            self.call(before)
            handles += self.request(peer)
            if time.monotonic() - began > 20:
                break
        while handles:
            states = [(handle, self.call(self.agent.check_xfer_state, handle))
                      for handle in handles]
            for handle, state in states:
                if state != "PROC":
                    self.call(self.agent.release_xfer_handle, handle)
            handles = [handle for handle, state in states if state == "PROC"]
            time.sleep(0.002)
        print(f"{what:50} {self.longest * 1e3:9.2f} ms", flush=True)
        peer.kill()

    def connect(self, peer):
        self.agent.add_remote_agent(peer.blob)
        self.agent.make_connection(peer.name)

    def again(self, peer):
        self.agent.remove_remote_agent(peer.name)
        self.agent.add_remote_agent(peer.blob)


def main():
    engine = Engine()
    add = engine.agent.add_remote_agent
    peer = Peer()
    peer.kill()
    add(peer.blob)
    engine.measure("killed before it was connected", peer)
    for again in (False, True):
        peer = Peer()
        engine.connect(peer)
        peer.kill()
        time.sleep(0.2)  # the agent learns of it
        if again:
            engine.measure("killed, then removed and added for each request", peer,
                           lambda: engine.again(peer))
        else:
            engine.measure("killed after that", peer)
    peer = Peer()
    engine.connect(peer)
    peer.process.stdin.close()
    peer.process.wait()
    time.sleep(0.2)
    engine.measure("closed, then removed and added for each request", peer,
                   lambda: engine.again(peer))
    for connected in (False, True):
        peer = Peer()
        if connected:
            engine.connect(peer)
        peer.process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        add(peer.blob)
        engine.measure(f"frozen {'after' if connected else 'before'} the connection", peer)
    peer = Peer()
    peer.ask("deregister")
    add(peer.blob)
    engine.measure("memory deregistered before the connection", peer)
    peer = Peer()
    peer.ask("deregister")
    engine.connect(peer)
    peer.blob, _ = peer.ask("register")
    peer.ask("deregister")
    time.sleep(0.2)
    add(peer.blob)
    engine.measure("memory deregistered during the connection", peer)


if __name__ == "__main__":
    main()
