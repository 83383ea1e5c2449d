"""Moves many requests between engines, while requests are aborted, and workers are killed, stopped
and started again under the same names. Blocks that become free are overwritten at once.

    python storm.py [requests] [seed]

Fails if a wrong value is used, if a request never ends, or if blocks stay taken."""

import collections
import random
import signal
import sys
import time

from engines import Engine
from standin import Shape

LONG = 120  # seconds without any end of a request mean that something hangs
EXTRA = {"life": 3, "timeout": 5,
         "viaduct": {"secret": "swordfish", "environment": False, "detect": 0.5, "grace": 0.5}}


class Storm:
    def __init__(self, seed, tp):
        self.random = random.Random(seed)
        self.shapes = [Shape("p", extra=EXTRA, tp=tp[0], blocks=96),
                       Shape("d", extra=EXTRA, tp=tp[1], blocks=96)]
        self.engines = [Engine(shape) for shape in self.shapes]
        self.waiting = []  # (name, tokens, seed, params) that decode has not admitted
        self.loading = []
        self.results = collections.Counter()
        self.stopped_until = [0.0, 0.0]
        self.number, self.last_end = 0, time.monotonic()

    def run(self, requests):
        while self.number < requests or self.waiting or self.loading:
            if self.number < requests:
                self._fault()
                self._prefill()
            self._admit()
            self._step()
            self._collect()
            assert time.monotonic() < self.last_end + LONG, f"it hangs: {self.results}"
        self._settle()
        return self.results

    def close(self):
        for engine in self.engines:
            engine.kill()

    def _fault(self):
        roll = self.random.random()
        which = self.random.randrange(2)
        if roll < 0.004:
            self._restart(which)
        elif roll < 0.01 and not self.stopped_until[which]:
            self.results["stops"] += 1
            self.engines[which].signal(signal.SIGSTOP)
            self.stopped_until[which] = time.monotonic() + self.random.choice((0.1, 1.0))
        elif roll < 0.05 and self.loading and not self.stopped_until[1]:
            request = self.random.choice(self.loading)
            if request.is_loading and request.status.name == "RUNNING":
                self.results["aborts"] += 1
                self.engines[1].abort(request)

    def _restart(self, which):
        self.results["kills"] += 1
        self.engines[which].kill()
        self.stopped_until[which] = 0.0
        self.engines[which] = Engine(self.shapes[which])
        if which == 1:
            self.results["lost with decode"] += len(self.loading)
            self.loading = []

    def _prefill(self):
        if self.stopped_until[0] or len(self.waiting) > 8:
            return
        name, tokens = f"r{self.number}", self.random.randrange(1, 400)
        status = "FINISHED_ABORTED" if self.random.random() < 0.03 else "FINISHED_LENGTH_CAPPED"
        params = self.engines[0].prefill(name, tokens, self.number, status=status)
        if params is not None:
            self.waiting.append((name, tokens, self.number, params))
        elif status == "FINISHED_LENGTH_CAPPED":
            return  # too few blocks are free
        else:
            self.results["aborted at prefill"] += 1
        self.number += 1

    def _admit(self):
        while self.waiting and not self.stopped_until[1]:
            name, tokens, seed, params = self.waiting[0]
            known = self.random.randrange(0, tokens // 16 + 1) * 16
            request = self.engines[1].decode(name, tokens, seed, params, known)
            if request is None:
                return
            self.waiting.pop(0)
            self.loading.append(request)

    def _step(self):
        for which, engine in enumerate(self.engines):
            until = self.stopped_until[which]
            if until and time.monotonic() >= until:
                engine.signal(signal.SIGCONT)
                self.stopped_until[which] = until = 0.0
            if not until:
                engine.step()

    def _collect(self):
        if self.stopped_until[1]:
            return
        for request in list(self.loading):
            end = self.engines[1].loaded(request)
            if end is not None:
                self.loading.remove(request)
                self.last_end = time.monotonic()
                self.results[end[0] if request.status.name != "FINISHED_ABORTED" else "ended"] += 1
                assert end[1] == 0, f"{request.request_id} used {end[1]} wrong values"

    def _settle(self):
        """All blocks become free."""
        until = time.monotonic() + LONG
        while any(engine.requests for engine in self.engines) or any(self.stopped_until):
            assert time.monotonic() < until, [list(engine.requests) for engine in self.engines]
            self._step()
        for engine in self.engines:
            assert sorted(engine.free) == list(range(1, engine.shape.blocks))


def main(requests=1000, seed=1):
    for tp in ((1, 1), (2, 2)):
        storm = Storm(seed, tp)
        try:
            began = time.monotonic()
            results = storm.run(requests)
            seconds = time.monotonic() - began
        finally:
            storm.close()
        print(f"TP {tp[0]} to TP {tp[1]}: {requests} requests in {seconds:.1f} s: {dict(results)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
