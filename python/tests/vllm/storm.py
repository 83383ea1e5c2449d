"""Moves many requests between engines, while requests are aborted, and workers are killed, stopped
and started again under the same names. Blocks that become free are overwritten at once.

    python storm.py [requests] [seed]

Fails if a wrong value is used, if a request never ends, or if blocks stay taken."""

import collections
import random
import signal
import sys
import time

import standin
from engines import Engine
from standin import Shape

LONG = 120  # seconds without any end of a request mean that something hangs
EXTRA = {"life": 3, "timeout": 5,
         "viaduct": {"secret": "swordfish", "environment": False, "detect": 1, "grace": 0.5}}


class Storm:
    """Each `shapes` row has fields of the prefill engine's Shape and of the decode engine's."""

    def __init__(self, seed, shapes, version=standin.NEWER):
        self.random, self.version = random.Random(seed), version
        self.shapes = [Shape(name, extra=EXTRA, blocks=96, **fields)
                       for name, fields in zip("pd", shapes)]
        self.engines = [Engine(shape, version) for shape in self.shapes]
        self.answers = []  # (name, tokens, seed, params) that the proxy has
        self.pushed = []  # (name, tokens, seed) that decode has asked for and prefill has not begun
        self.queue, self.loading = [], []  # requests at decode
        self.results = collections.Counter()
        self.stopped_until = [0.0, 0.0]
        self.number, self.last_end = 0, time.monotonic()

    def run(self, requests):
        while self.number < requests or self.answers or self.pushed or self.queue or self.loading:
            if self.number < requests:
                self._fault()
                self._next()
            self._push()
            self._arrive()
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
            self.stopped_until[which] = time.monotonic() + self.random.choice((0.1, 2.0))
        elif roll < 0.06 and not self.stopped_until[1]:
            self._abort()

    def _abort(self):
        request = self.random.choice(self.queue + self.loading or [None])
        if request in self.queue:
            self.queue.remove(request)
            self.results["aborts in the queue"] += 1
            self.engines[1].abort(request)
        elif request and request.is_loading and request.status.name == "RUNNING":
            self.results["aborts"] += 1
            self.engines[1].abort(request)

    def _restart(self, which):
        self.results["kills"] += 1
        self.engines[which].kill()
        self.stopped_until[which] = 0.0
        self.engines[which] = Engine(self.shapes[which], self.version)
        if which == 1:
            self.results["lost with decode"] += len(self.loading) + len(self.queue)
            self.loading, self.queue = [], []

    def _next(self):
        """Begins a request: at prefill, or at decode if both legs are sent at once."""
        if len(self.answers) + len(self.pushed) + len(self.queue) > 8:
            return
        one = f"r{self.number}", self.random.randrange(1, 400), self.number
        if not any(self.stopped_until) and self.random.random() < 0.2 and \
                len(self.shapes[0].windows) == 1:
            self.queue.append(self.engines[1].arrive(*one, {
                "do_remote_prefill": True, "remote_engine_id": "p", "transfer_id": one[0],
                "viaduct_workers": self.engines[0].workers_of_answers()}))
            self.pushed.append(one)
            self.number += 1
        elif not self.stopped_until[0] and self._prefill(*one):
            self.number += 1

    def _push(self):
        if self.pushed and not self.stopped_until[0]:
            name, tokens, seed = self.pushed[0]
            if self._prefill(name, tokens, seed, {"transfer_id": name}):
                self.pushed.pop(0)

    def _prefill(self, name, tokens, seed, params=None):
        """Computes a prompt at the prefill engine. Returns False if too few blocks are free."""
        status = "FINISHED_ABORTED" if self.random.random() < 0.03 else "FINISHED_LENGTH_CAPPED"
        answer = self.engines[0].prefill(name, tokens, seed, params, status)
        if answer is not None and params is None:
            self.answers.append((name, tokens, seed, answer))
        if answer is None and status == "FINISHED_LENGTH_CAPPED":
            return False
        self.results["aborted at prefill"] += status == "FINISHED_ABORTED"
        return True

    def _arrive(self):
        while self.answers and not self.stopped_until[1] and self.random.random() < 0.7:
            self.queue.append(self.engines[1].arrive(*self.answers.pop(0)))

    def _admit(self):
        while self.queue and not self.stopped_until[1] and self.random.random() < 0.7:
            request = self.queue[0]
            size = self.shapes[1].block
            known = self.random.randrange(0, request.num_prompt_tokens // size + 1) * size
            if not self.engines[1].admit(request, known):
                return
            self.loading.append(self.queue.pop(0))

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
        """Waits until all requests have ended, and checks that all blocks are free again."""
        until = time.monotonic() + LONG
        while any(engine.requests for engine in self.engines) or any(self.stopped_until):
            assert time.monotonic() < until, [list(engine.requests) for engine in self.engines]
            self._step()
        for engine in self.engines:
            assert sorted(engine.free) == list(range(1, engine.shape.blocks))


ENGINES = {
    "TP 1 to TP 1": ({}, {}),
    "TP 2 to TP 2": ({"tp": 2}, {"tp": 2}),
    "TP 2 to TP 1, larger blocks": ({"tp": 2}, {"block": 32, "page": 32}),
    "MLA, TP 1 to TP 2": ({"kind": "mla", "heads": 1}, {"kind": "mla", "heads": 1, "tp": 2}),
    "windows, TP 1 to TP 2": ({"windows": (0, 32)}, {"windows": (0, 32), "tp": 2}),
}


def main(requests=1000, seed=1):
    for name, shapes in ENGINES.items():
        storm = Storm(seed, shapes)
        try:
            began = time.monotonic()
            results = storm.run(requests)
            seconds = time.monotonic() - began
        finally:
            storm.close()
        print(f"{name}: {requests} requests in {seconds:.1f} s: {dict(results)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
