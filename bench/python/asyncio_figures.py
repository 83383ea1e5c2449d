#!/usr/bin/env python3
"""Measures what a transfer costs in asyncio, by the number of transfers in flight.

    python3 bench/python/asyncio_figures.py [tcp|local] [transfers...]

A task for each transfer posts and awaits it, again and again. The other agent is another process.
The rows "wait" do the same in one thread, without asyncio. Each row is the median of some rounds.
"""

import asyncio
import statistics
import subprocess
import sys
import time

import viaduct
from figures import machine

BLOCK, BLOCKS, TOTAL, ROUNDS = 64 << 10, 256, 16000, 3
SERVER = """
import sys, viaduct
with viaduct.Agent(backends=sys.argv[1], environment=False) as agent:
    inbox = agent.allocate(int(sys.argv[2]), label="inbox")
    print(agent.card.hex(), flush=True)
    sys.stdin.read()
"""


async def awaited(transfers, posts):
    async def move(transfer):
        for _ in range(posts):
            await transfer.post(timeout=60)

    await asyncio.gather(*(move(transfer) for transfer in transfers))


def waited(transfers, posts):
    for transfer in transfers:
        transfer.post(timeout=60)
    for _ in range(posts - 1):
        for transfer in transfers:
            transfer.wait()
            transfer.post(timeout=60)
    for transfer in transfers:
        transfer.wait()


def figures(move, transfers):
    """Returns the time and the processor time of one transfer."""
    posts = max(2, TOTAL // len(transfers))
    began, used = time.perf_counter(), time.process_time()
    move(transfers, posts)
    moved = posts * len(transfers)
    return (time.perf_counter() - began) / moved, (time.process_time() - used) / moved


def main(backend, counts):
    size = BLOCK * BLOCKS
    with subprocess.Popen([sys.executable, "-c", SERVER, backend, str(size)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as server:
        with viaduct.Agent(backends=backend, environment=False) as agent:
            peer = agent.connect(bytes.fromhex(server.stdout.readline()))
            peer.ready(30)
            ours, theirs = agent.allocate(size).blocks(BLOCK), peer.pin("inbox", 30).blocks(BLOCK)
            plans = [agent.plan("write", peer, ours[[i % BLOCKS]], theirs[[i % BLOCKS]])
                     for i in range(max(counts))]
            for count in counts:
                for name, move in (("await", lambda *given: asyncio.run(awaited(*given))),
                                   ("wait", waited)):
                    took = [figures(move, plans[:count]) for _ in range(ROUNDS)]
                    each, used = (1e6 * statistics.median(one) for one in zip(*took))
                    print(f"{backend:6} {count:6} in flight, {name:6}{each:8.1f} us each, "
                          f"{used:8.1f} us of processor", flush=True)
        server.stdin.close()
    machine()


if __name__ == "__main__":
    main((sys.argv[1:] or ["tcp"])[0], [int(text) for text in sys.argv[2:]] or [100, 1000, 16000])
