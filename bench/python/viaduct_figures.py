#!/usr/bin/env python3
"""Measures calls of the package viaduct. cpp_floor measures the C++ calls that they make.

    build/release/bench/cpp_floor && python3 bench/python/viaduct_figures.py

Each row is the median of several runs. With two threads, the longest time includes the wait for a
core, so run the program on a quiet machine.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import threading
import time

import numpy

import viaduct

BYTES, BLOCK, INDICES = 1 << 20, 256, 1024


def say(what, value, unit="ns"):
    print(f"{what:48} {value:10.0f} {unit}", flush=True)


def typical(times, call):
    """Returns the time of one call in ns: the median of 21 runs, each of `times` calls."""
    took = []
    for _ in range(21):
        began = time.perf_counter()
        for _ in range(times):
            call()
        took.append((time.perf_counter() - began) / times)
    return statistics.median(took) * 1e9


def program(code):
    return float(subprocess.check_output([sys.executable, "-c", code]))


def imports():
    clock = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"
    say("import viaduct", 1e6 * statistics.median(program(clock.format("import viaduct")) for _ in range(9)), "us")
    first = "import viaduct; " + clock.format("viaduct.Agent()")
    say("the first agent", 1e6 * statistics.median(program(first) for _ in range(9)), "us")
    say("threads before it", program(
        "import os, viaduct; print(len(os.listdir('/proc/self/task')))"), "")


def transfers(here, there, peer, memory, remote):
    small = here.plan("write", peer, (memory.address, 8), (remote.address, 8))

    def post_and_poll():
        small.post()
        small.poll()

    say("post and poll of 8 bytes", typical(20000, post_and_poll))
    say("poll of one that is done", typical(20000, small.poll))
    ours, theirs = memory.blocks(BLOCK), remote.blocks(BLOCK)
    take = numpy.random.default_rng(1).permutation(len(ours))[:INDICES]
    put = numpy.random.default_rng(2).permutation(len(ours))[:INDICES]
    say("plan with 1024 indices on each side",
        typical(500, lambda: here.plan("write", peer, (ours, take), (theirs, put))))
    say("take a note when there is none", typical(20000, here.take_note))

    def note():
        peer.note(b"12345678" * 4)
        while not there.take_note():
            there.poll()

    say("a note of 32 bytes, sent and taken", typical(2000, note))

    async def awaited():
        began = time.perf_counter()
        for _ in range(1000):
            await large.post()
        return (time.perf_counter() - began) / 1000

    large = here.plan("write", peer, memory, remote, require="backend:tcp")
    waited = typical(1000, lambda: large.post().wait())
    say("1 MiB over tcp, post and wait", waited)
    say("1 MiB over tcp, awaited", statistics.median(asyncio.run(awaited()) for _ in range(5)) * 1e9)


def two_threads(here, peer, memory, remote):
    longest = []

    def copy(number):
        transfer = here.plan("write", peer, (memory.address + number * 65536, 4096),
                             (remote.address + number * 65536, 4096))
        took = []
        for _ in range(10000):
            began = time.perf_counter()
            transfer.post()
            while not transfer.poll():
                pass
            took.append(time.perf_counter() - began)
        longest.append(max(took))

    for count in (1, 2):
        rounds = []
        for _ in range(5):
            longest.clear()
            threads = [threading.Thread(target=copy, args=(number,)) for number in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            rounds.append(max(longest) * 1e6)
        say(f"longest of 10,000 transfers, {count} at once, median", statistics.median(rounds), "us")
        say(f"    and largest of {len(rounds)} rounds", max(rounds), "us")


def rate(transfers):
    """Returns how many transfers a second as many threads finish together."""
    start, spans = threading.Barrier(len(transfers)), []

    def repeat(transfer):
        start.wait()
        began = time.perf_counter()
        for _ in range(2000):
            transfer.post()
            transfer.wait()
        spans.append((began, time.perf_counter()))

    threads = [threading.Thread(target=repeat, args=(transfer,)) for transfer in transfers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    began, ended = zip(*spans)
    return 2000 * len(transfers) / (max(ended) - min(began))


def a_second_thread(here, peer, memory, remote):
    """Takes turns: one thread, two threads that each post a transfer of their own, one thread again."""
    for size in (4096, 256 << 10):
        first, second = (
            here.plan("write", peer, (memory.address + place, size), (remote.address + place, size))
            for place in (0, 512 << 10))
        ones, twos, ratios = [], [], []
        for _ in range(15):
            ones.append(rate([first]))
            twos.append(rate([first, second]))
            ratios.append(twos[-1] / ones[-1])
        say(f"{size} bytes, one thread", 1e9 / statistics.median(ones))
        say(f"{size} bytes, two threads", 1e9 / statistics.median(twos))
        say("    of one thread's rate", 100 * statistics.median(ratios), "%")


def main():
    imports()
    with viaduct.Agent(name="here") as here, viaduct.Agent(name="there") as there:
        inbox = there.allocate(BYTES, label="inbox")
        memory = here.allocate(BYTES)
        peer = here.connect(there.card)
        peer.ready(10)
        remote = peer.pin("inbox", 10)
        transfers(here, there, peer, memory, remote)
        two_threads(here, peer, memory, remote)
        a_second_thread(here, peer, memory, remote)
        inbox.release()
    print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
