#!/usr/bin/env python3
"""Moves blocks of a KV cache from a prefill process to a decode process, by block number.

kv_blocks.py    starts both processes

The cache is a numpy array of (layers, blocks, tokens * heads * head size). A request has
different block numbers in each process. One read moves all blocks of the request in all layers. The
note of the read tells the prefill process that the read is done.
"""

import multiprocessing
import sys

import viaduct

try:
    import numpy
except ImportError:
    sys.exit("this example needs numpy: pip install numpy, or apt-get install python3-numpy")

LAYERS, BLOCKS, WIDTH = 4, 1024, 16 * 8 * 64
REQUEST = 48  # blocks of one request


def cache_blocks(base):
    """Describes the blocks of all layers. Block n of layer l has the index l * BLOCKS + n."""
    return viaduct.Blocks.strided(base, bytes=WIDTH * 2, count=LAYERS * BLOCKS)


def of_all_layers(numbers):
    return (numpy.arange(LAYERS)[:, None] * BLOCKS + numbers).ravel()


def prefill(pipe):
    cache = numpy.random.default_rng(1).random((LAYERS, BLOCKS, WIDTH)).astype("float16")
    with viaduct.Agent(name="prefill") as agent, agent.pin(cache, label="cache"):
        pipe.send(agent.card)
        note = agent.wait_note(timeout=30)  # arrives when the decode process has read its blocks
        ours = numpy.frombuffer(note.data, "int64")
        pipe.send(cache[:, ours].sum(dtype="float64"))
        agent.peer(note.sender).over(timeout=30)


def decode(pipe):
    cache = numpy.zeros((LAYERS, BLOCKS, WIDTH), "float16")
    random = numpy.random.default_rng(2)
    theirs = random.permutation(BLOCKS)[:REQUEST]  # block numbers in the prefill process
    ours = random.permutation(BLOCKS)[:REQUEST]
    with viaduct.Agent(name="decode") as agent, agent.pin(cache):
        peer = agent.connect(pipe.recv())
        peer.ready(timeout=30)
        there = cache_blocks(peer.pin("cache", timeout=30).address)
        here = cache_blocks(cache.ctypes.data)
        transfer = agent.read(peer, here[of_all_layers(ours)], there[of_all_layers(theirs)],
                              note=theirs.tobytes(), timeout=30)
        expected = pipe.recv()
        if cache[:, ours].sum(dtype="float64") != expected:
            sys.exit("the blocks differ")
        print(f"{LAYERS} layers of {REQUEST} blocks: {transfer.path}")


def main():
    spawn = multiprocessing.get_context("spawn")  # an agent does not survive fork()
    one, other = spawn.Pipe()
    processes = [spawn.Process(target=prefill, args=(one,)),
                 spawn.Process(target=decode, args=(other,))]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(any(process.exitcode for process in processes))


if __name__ == "__main__":
    main()
