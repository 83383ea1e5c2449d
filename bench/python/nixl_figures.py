"""Measures calls of the package nixl. cpp_floor measures the C++ calls that they make.

    build/release/bench/cpp_floor && python3 bench/python/nixl_figures.py [ROWS]

Each row is the median of several runs. With two threads, the longest time includes the wait for a
core, so run the program on a quiet machine.
"""

import multiprocessing
import statistics
import sys
import time

import numpy as np
from nixl._api import nixl_agent, nixl_agent_config

from figures import machine, say, starts, times_of, together, typical

BLOCK = 4096


class Side:
    def __init__(self, name, size):
        self.agent = nixl_agent(name, nixl_agent_config())
        self.memory = np.zeros(size, np.uint8)
        self.address = self.memory.ctypes.data
        self.agent.register_memory([(self.address, size, 0, "")], "DRAM")


def child(pipe, size):
    side = Side("other", size)
    pipe.send((side.agent.get_agent_metadata(), side.address))
    side.agent.add_remote_agent(pipe.recv())
    while not pipe.poll(0.001):
        if b"ping" in side.agent.get_new_notifs().get("one", ()):
            answer(side.agent)


def answer(agent):
    """Sends each received notification back at once, until it receives "end"."""
    agent.send_notif("one", b"ready")
    while True:
        for message in agent.get_new_notifs().get("one", ()):
            if message == b"end":
                return
            agent.send_notif("one", message)


def preparing(side, rows):
    array = np.empty((rows, 3), np.uint64)
    array[:, 0] = side.address + np.arange(rows, dtype=np.uint64) * 64
    array[:, 1], array[:, 2] = 64, 0
    shuffled = np.random.default_rng(1).permutation(array)
    tuples = [tuple(row) for row in array.tolist()]
    times = {}
    for name, what in (("ascending", array), ("random order", shuffled), ("list of tuples", tuples)):
        times[name] = typical(lambda what=what: side.agent.prep_xfer_dlist("", what, "DRAM"))
        say(f"prep of {rows} descriptors, {name}", times[name] / rows * 1e9, "ns each")
    more = times["list of tuples"] - times["ascending"]
    say("the list of tuples over the array", more / rows * 1e9, "ns each")


def transfers(side, name, rows_there, where):
    agent = side.agent
    local = agent.prep_xfer_dlist(
        "", [(side.address + i * BLOCK, BLOCK, 0) for i in range(1024)], "DRAM"
    )
    remote = agent.prep_xfer_dlist(name, rows_there, "DRAM")
    small = agent.prep_xfer_dlist("", [(side.address, 8, 0)], "DRAM")
    there = agent.prep_xfer_dlist(name, [(rows_there[0][0], 8, 0)], "DRAM")
    handle = agent.make_prepped_xfer("WRITE", small, [0], there, [0])

    def round_trip():
        agent.transfer(handle)
        while agent.check_xfer_state(handle) != "DONE":
            pass

    say(f"transfer + check of 8 bytes, {where}", typical(round_trip, 20_000) * 1e6, "us")
    took = typical(lambda: agent.check_xfer_state(handle), 100_000)
    say(f"check of one that is DONE, {where}", took * 1e6, "us")
    picks = np.random.default_rng(1).permutation(1024)
    few = np.arange(0, 1, dtype=np.int64)
    for count, indices in ((1, few), (1024, picks)):
        took = typical(lambda i=indices: agent.make_prepped_xfer("WRITE", local, i, remote, i), 200)
        say(f"make_prepped_xfer of {count} indices, {where}", took * 1e6, "us")


def requests(side, name, address):
    """The costs of one request of an engine. To compare two builds, run it with PYTHONPATH of each."""
    agent, picks = side.agent, np.random.default_rng(1).permutation(1024).astype(np.uint64)

    def rows(start, order):
        out = np.zeros((len(order), 3), np.uint64)
        out[:, 0], out[:, 1] = start + order * BLOCK, BLOCK
        return out

    lists = [agent.prep_xfer_dlist(to, rows(start, np.arange(1024, dtype=np.uint64)), "DRAM")
             for to, start in (("", side.address), (name, address))]
    handle = lambda: agent.make_prepped_xfer("WRITE", lists[0], [3], lists[1], [5])
    took = typical(lambda: agent.release_xfer_handle(handle()), 1000)
    say("make_prepped_xfer of 1 block + release", took * 1e6, "us")
    for order, how in ((np.arange(1024, dtype=np.uint64), "in order"), (picks, "in random order")):
        here, there = (agent.get_xfer_descs(rows(s, order), "DRAM") for s in (side.address, address))
        took = typical(
            lambda h=here, t=there: agent.release_xfer_handle(
                agent.initialize_xfer("WRITE", h, t, name)
            ),
            200,
        )
        say(f"initialize_xfer of 1,024 blocks {how} + release", took * 1e6, "us")
    tuples = [tuple(row) for row in rows(side.address, picks).tolist()]
    took = typical(lambda: agent.get_xfer_descs(tuples, "DRAM"), 200)
    say("get_xfer_descs of 1,024 tuples", took * 1e6, "us")
    many = np.zeros((8192, 3), np.uint64)
    many[:, 0], many[:, 1] = side.address + np.arange(8192, dtype=np.uint64) * 64, 64
    took = typical(lambda: agent.prep_xfer_dlist("", many, "DRAM"), 50)
    say("prep_xfer_dlist of 8,192 rows", took * 1e6, "us")


def notes(side, name):
    say("get_new_notifs, idle", typical(side.agent.get_new_notifs, 100_000) * 1e6, "us")
    took = typical(lambda: side.agent.send_notif(name, b"x" * 32), 1000)
    say("send_notif, same host", took * 1e6, "us")


def pings(side, name):
    """Measures a notification and its answer, while both sides poll get_new_notifs."""
    side.agent.send_notif(name, b"ping")
    times = []
    for _ in range(3000):
        while not side.agent.get_new_notifs():
            pass
        began = time.perf_counter()
        side.agent.send_notif(name, b"x")
        while not side.agent.get_new_notifs():
            pass
        times.append(time.perf_counter() - began)
        side.agent.send_notif(name, b"y")
    side.agent.send_notif(name, b"end")
    say("a notification and its answer, median", sorted(times)[len(times) // 2] * 1e6, "us")


def metadata():
    for regions in (1, 10_000):
        agent = nixl_agent(f"of {regions} regions", nixl_agent_config())
        memory = np.zeros(regions * BLOCK, np.uint8)
        rows = np.empty((regions, 3), np.uint64)
        rows[:, 0] = memory.ctypes.data + np.arange(regions, dtype=np.uint64) * BLOCK
        rows[:, 1], rows[:, 2] = BLOCK, 0
        began = time.perf_counter()
        agent.register_memory(rows, "DRAM")
        took = time.perf_counter() - began
        say(f"registering {regions} regions", took / regions * 1e6, "us each")
        blob = agent.get_agent_metadata()
        say(f"metadata of {regions} regions", len(blob) / regions, "B each")
        other = nixl_agent(f"reads {regions} regions", nixl_agent_config())
        began = time.perf_counter()
        other.add_remote_agent(blob)
        say("  added for the first time", (time.perf_counter() - began) * 1e6, "us")
        say("  added again", typical(lambda b=blob, o=other: o.add_remote_agent(b), 10) * 1e6, "us")


def two_threads(side, name, rows_there):
    """Measures 10,000 transfers in each of two threads, and prints the slowest of them."""
    agent = side.agent

    def work(first):
        local = agent.prep_xfer_dlist("", [(side.address + first * BLOCK, BLOCK, 0)], "DRAM")
        remote = agent.prep_xfer_dlist(name, [rows_there[first]], "DRAM")
        handle = agent.make_prepped_xfer("WRITE", local, [0], remote, [0])

        def move():
            agent.transfer(handle)
            while agent.check_xfer_state(handle) != "DONE":
                pass

        return times_of(move, 10_000)

    longest = together([lambda: work(0), lambda: work(1)])
    for part, text in ((0.5, "median"), (0.999, "99.9 %"), (1, "longest")):
        worst = max(times[min(int(len(times) * part), len(times) - 1)] for times in longest)
        say(f"two threads, 10,000 transfers of 4 KiB each: {text}", worst * 1e6, "us")


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    starts("nixl", "nixl.nixl_agent('a')")
    side = Side("one", max(rows * 64, 1024 * BLOCK))
    preparing(side, rows)
    metadata()
    near = Side("near", 1024 * BLOCK)
    side.agent.add_remote_agent(near.agent.get_agent_metadata())
    rows_near = [(near.address + i * BLOCK, BLOCK, 0) for i in range(1024)]
    transfers(side, "near", rows_near, "one process")
    requests(side, "near", near.address)
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=child, args=(theirs, 1024 * BLOCK))
    process.start()
    blob, address = mine.recv()
    mine.send(side.agent.get_agent_metadata())
    side.agent.add_remote_agent(blob)
    rows_there = [(address + i * BLOCK, BLOCK, 0) for i in range(1024)]
    transfers(side, "other", rows_there, "two processes")
    notes(side, "other")
    pings(side, "other")
    two_threads(side, "other", rows_there)
    mine.send("end")
    process.join()


if __name__ == "__main__":
    machine()
    main()
