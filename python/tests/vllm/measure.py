"""Times a request from its end at the prefill engine until the connector of the decode engine has
loaded it, beside a bare read of the same pages, in turns. Prints medians.

    python measure.py [rounds]

Llama-3.1-8B, 1,024 tokens, TP 1, pages of 16 tokens, one host."""

import statistics
import sys
import time

from engines import Engine, run
from standin import Shape

TOKENS = 1024
STEP = 0.005  # seconds between the steps of the decode engine; 0 for the times of the steps
EXTRA = {"viaduct": {"secret": "swordfish", "environment": False}}


def shape(engine):
    return Shape(engine, layers=32, heads=8, head_size=128, blocks=140, extra=EXTRA)


def request(prefill, decode, number, pause=STEP):
    """Returns the seconds from the end at prefill to the end of loading at decode."""
    name = f"r{number}"
    params = prefill.prefill(name, TOKENS, number)
    began = time.monotonic()
    prefill.step()
    one = decode.decode(name, TOKENS, number, params)
    run([decode], lambda: name in decode.received, pause=pause)
    seconds = decode.ask("ended_at", name)[0] - began
    assert decode.loaded(one) == ("ok", 0)
    run([prefill, decode], lambda: not prefill.requests)
    return seconds


def bare(prefill, decode):
    ids = prefill.tables(TOKENS)[0], decode.tables(TOKENS)[0]
    theirs, = prefill.ask("rows", ids[0])
    seconds, = decode.ask("read", theirs, ids[1])
    prefill.free += ids[0]
    decode.free += ids[1]
    return seconds


def told(what, times):
    times = sorted(times)
    print(f"{what}: median {times[len(times) // 2] * 1e6:.0f} us, "
          f"p99 {times[len(times) * 99 // 100] * 1e6:.0f} us, most {times[-1] * 1e6:.0f} us, "
          f"{len(times)} steps")


def main(rounds=9):
    with Engine(shape("p")) as prefill, Engine(shape("d")) as decode:
        request(prefill, decode, 0)
        bare(prefill, decode)
        pairs = [(request(prefill, decode, 1 + i), bare(prefill, decode)) for i in range(rounds)]
        through, plain = (statistics.median(column) for column in zip(*pairs))
        print(f"request {through * 1e3:.2f} ms, bare read {plain * 1e3:.2f} ms, "
              f"1.2 x bare + 0.2 ms = {plain * 1.2e3 + 0.2:.2f} ms, {rounds} rounds")
        for engine in (prefill, decode):
            for times in (engine.times, engine.idle_times, engine.scheduler_times):
                times.clear()
        for i in range(rounds):
            request(prefill, decode, 1 + rounds + i, 0)
        print("the connector's calls of a step:")
        told("worker, nothing to do", prefill.idle_times + decode.idle_times)
        told("worker, requests begin or end", prefill.times + decode.times)
        told("scheduler, requests begin or end", prefill.scheduler_times + decode.scheduler_times)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
