"""Times a request from its end at the prefill engine until the decode engine has loaded it, beside
a bare read of the same pages, in turns. Prints medians.

    python measure.py [rounds]

Llama-3.1-8B, 1,024 tokens, TP 1, pages of 16 tokens, one host."""

import statistics
import sys
import time

from engines import Engine
from standin import Shape

TOKENS = 1024
EXTRA = {"viaduct": {"secret": "swordfish", "environment": False}}


def shape(engine):
    return Shape(engine, layers=32, heads=8, head_size=128, blocks=140, extra=EXTRA)


def request(prefill, decode, number):
    """Returns the seconds from the end at prefill to the end of loading at decode."""
    name = f"r{number}"
    params = prefill.prefill(name, TOKENS, number)
    began = time.perf_counter()
    prefill.step()
    one = decode.decode(name, TOKENS, number, params)
    while name not in decode.received:
        decode.step()
    seconds = time.perf_counter() - began
    assert decode.loaded(one) == ("ok", 0)
    while prefill.requests:
        prefill.step()
    decode.step()
    return seconds


def bare(prefill, decode):
    ids = prefill.tables(TOKENS)[0], decode.tables(TOKENS)[0]
    theirs, = prefill.ask("rows", ids[0])
    seconds, = decode.ask("read", theirs, ids[1])
    prefill.free += ids[0]
    decode.free += ids[1]
    return seconds


def main(rounds=9):
    with Engine(shape("p")) as prefill, Engine(shape("d")) as decode:
        request(prefill, decode, 0)
        bare(prefill, decode)
        decode.times.clear(), prefill.times.clear()
        pairs = [(request(prefill, decode, 1 + i), bare(prefill, decode)) for i in range(rounds)]
        steps = sorted(prefill.times + decode.times)
        through, plain = (statistics.median(column) for column in zip(*pairs))
        print(f"request {through * 1e3:.2f} ms, bare read {plain * 1e3:.2f} ms, "
              f"1.2 x bare + 0.2 ms = {plain * 1.2e3 + 0.2:.2f} ms, {rounds} rounds")
        print(f"the connector's calls of a step: median {steps[len(steps) // 2] * 1e6:.0f} us, "
              f"p99 {steps[len(steps) * 99 // 100] * 1e6:.0f} us, {len(steps)} steps")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
