#!/usr/bin/env python3
"""Measures calls of the package viaduct. cpp_floor measures the C++ calls that they make.

    build/release/bench/cpp_floor && python3 bench/python/viaduct_figures.py

Each row is the median of several runs. With two threads, the longest time includes the wait for a
core, so run the program on a quiet machine.
"""

import asyncio
import ctypes
import statistics
import threading
import time

import numpy

import viaduct
from figures import machine, say, starts, times_of, together, typical

BYTES, BLOCK, INDICES = 1 << 20, 256, 1024


def ns(times, call):
    return 1e9 * typical(call, times, repeats=21)


def transfers(here, there, peer, memory, remote):
    small = here.plan("write", peer, (memory.address, 8), (remote.address, 8))

    def post_and_poll():
        small.post()
        small.poll()

    say("post and poll of 8 bytes", ns(20000, post_and_poll))
    say("poll of one that is done", ns(20000, small.poll))
    ours, theirs = memory.blocks(BLOCK), remote.blocks(BLOCK)
    take = numpy.random.default_rng(1).permutation(len(ours))[:INDICES]
    put = numpy.random.default_rng(2).permutation(len(ours))[:INDICES]
    say("plan with 1024 indices on each side",
        ns(500, lambda: here.plan("write", peer, (ours, take), (theirs, put))))
    say("take a note when there is none", ns(20000, here.take_note))

    def note():
        peer.note(b"12345678" * 4)
        while not there.take_note():
            there.poll()

    say("a note of 32 bytes, sent and taken", ns(2000, note))

    async def awaited():
        began = time.perf_counter()
        for _ in range(1000):
            await large.post()
        return (time.perf_counter() - began) / 1000

    large = here.plan("write", peer, (memory.address, BYTES), (remote.address, BYTES),
                      require="backend:tcp")
    waited = ns(1000, lambda: large.post().wait())
    say("1 MiB over tcp, post and wait", waited)
    say("1 MiB over tcp, awaited", statistics.median(asyncio.run(awaited()) for _ in range(5)) * 1e9)


def two_threads(here, peer, memory, remote):
    def copier(number):
        transfer = here.plan("write", peer, (memory.address + number * 65536, 4096),
                             (remote.address + number * 65536, 4096))

        def copy():
            transfer.post()
            while not transfer.poll():
                pass

        return lambda: times_of(copy, 10000)[-1]

    for count in (1, 2):
        calls = [copier(number) for number in range(count)]
        rounds = [1e6 * max(together(calls)) for _ in range(5)]
        say(f"longest of 10,000 transfers, {count} at once, median", statistics.median(rounds), "us")
        say(f"    and largest of {len(rounds)} rounds", max(rounds), "us")


def rate(calls):
    """Returns how many calls a second as many threads make together, each thread its own call."""
    start = threading.Barrier(len(calls))

    def repeat(call):
        start.wait()
        began = time.perf_counter()
        for _ in range(1000):
            call()
        return began, time.perf_counter()

    began, ended = zip(*together([lambda call=call: repeat(call) for call in calls]))
    return 1000 * len(calls) / (max(ended) - min(began))


def a_second_thread(here, peer, memory, remote):
    """Compares two threads with one, for transfers and for memmove, which take turns.

    memmove is the floor: ctypes releases the GIL during the call, as post() does.
    """
    def mover(place, size):
        transfer = here.plan("write", peer, (memory.address + place, size), (remote.address + place, size))
        return lambda: transfer.post().wait()

    def copier(place, size):
        into, source = target.address + place, memory.address + place
        return lambda: ctypes.memmove(into, source, size)

    target = here.allocate(2 * BYTES)
    for size in (4096, 64 << 10, 256 << 10, BYTES):
        took, ratios = {}, {}
        for _ in range(15):
            for name, make in (("transfers", mover), ("memmove", copier)):
                first, second = make(0, size), make(BYTES, size)
                one, two = rate([first]), rate([first, second])
                took.setdefault(name, []).append(one)
                ratios.setdefault(name, []).append(two / one)
        for name in took:
            say(f"{size} bytes, {name}, one thread", 1e9 / statistics.median(took[name]))
            say("    two threads, of one thread's rate", 100 * statistics.median(ratios[name]), "%")


def main():
    starts("viaduct", "viaduct.Agent()")
    with viaduct.Agent(name="here") as here, viaduct.Agent(name="there") as there:
        inbox = there.allocate(2 * BYTES, label="inbox")
        memory = here.allocate(2 * BYTES)
        peer = here.connect(there.card)
        peer.ready(10)
        remote = peer.pin("inbox", 10)
        transfers(here, there, peer, memory, remote)
        two_threads(here, peer, memory, remote)
        a_second_thread(here, peer, memory, remote)
        inbox.release()
    machine()


if __name__ == "__main__":
    main()
