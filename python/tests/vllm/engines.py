"""Runs stand-ins of engines: the scheduler's part here, and each worker in a process of its own."""

import collections
import pickle
import signal
import subprocess
import sys
import time
import types

import standin

standin.install(results=True)
from viaduct.vllm import ViaductConnector  # noqa: E402: it imports the stand-in

LONG = 60  # seconds; a longer wait means that something hangs, even on a busy machine
WORKER = standin.__file__


class Died(Exception):
    """A worker process is gone."""


class Engine:
    """`results` says whether this vLLM has get_transfer_results()."""

    def __init__(self, shape, results=False):
        self.shape, self.results = shape, results
        self.workers = [subprocess.Popen([sys.executable, "-B", WORKER], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE) for _ in range(shape.tp)]
        self.connector = ViaductConnector(shape.config(), standin.KVConnectorRole.SCHEDULER,
                                          shape.caches())
        for rank, worker in enumerate(self.workers):
            self._send(worker, (shape, rank, results))
        self.connector.set_xfer_handshake_metadata_pp_aware(
            {(0, rank): one for rank, one in enumerate(self.ask("handshake"))})
        self.free = list(range(1, shape.blocks))
        self.requests = {}
        self.scribble, self.compute, self.finished = [], [], set()
        self.counts = {"sent": collections.Counter(), "received": collections.Counter()}
        self.failed_blocks, self.failed = set(), set()
        self.sent, self.received = set(), set()
        self.times = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        for worker in self.workers:
            worker.kill()
            worker.communicate()

    def signal(self, number):
        for worker in self.workers:
            worker.send_signal(number)
        if number == signal.SIGSTOP:
            for worker in self.workers:  # until the kernel has stopped all its threads
                while open(f"/proc/{worker.pid}/stat").read().rpartition(")")[2].split()[0] != "T":
                    pass

    def _send(self, worker, what):
        try:
            pickle.dump(what, worker.stdin)
            worker.stdin.flush()
        except OSError:
            raise Died from None

    def send_step(self):
        """Begins a step and does not wait for its end."""
        metadata = self.connector.build_connector_meta(None)
        for worker in self.workers:
            self._send(worker, ("step", ([], [], metadata, set())))

    def ask(self, name, *arguments):
        for worker in self.workers:
            self._send(worker, (name, arguments))
        try:
            return [pickle.load(worker.stdout) for worker in self.workers]
        except EOFError:
            raise Died from None

    def step(self):
        """One step. Blocks that were freed are overwritten before anything else happens."""
        metadata = self.connector.build_connector_meta(None)
        scribble, compute, finished = self.scribble, self.compute, self.finished
        self.scribble, self.compute, self.finished = [], [], set()
        for sent, received, failed, blocks, seconds in self.ask("step", scribble, compute, metadata,
                                                                finished):
            self.times.append(seconds)
            self.failed |= failed
            self.failed_blocks |= blocks
            self._count("sent", sent, self.sent)
            self._count("received", received, self.received)
        self._free_sent()

    def _count(self, what, requests, done):
        for request in requests or ():
            assert request in self.requests, f"{what} names {request}, which would end the engine"
            self.counts[what][request] += 1
            if self.counts[what][request] == self.shape.tp:
                del self.counts[what][request]
                done.add(request)

    def _free_sent(self):
        for request in self.sent:
            assert self.requests[request].delayed, f"{request} was never delayed"
            self.release(self.requests.pop(request))
        self.sent.clear()

    # ---- blocks ----

    def tables(self, tokens):
        """Takes blocks for so many tokens: a list for each group, with 0 for those before a window.
        None: there are too few."""
        size, out, taken = self.shape.block, [], []
        for window in self.shape.windows:
            count = -(-tokens // size)
            first = max(0, count - (-(-window // size) + 1)) if window else 0
            if len(self.free) < count - first:
                self.free += taken
                return None
            ids = [self.free.pop() for _ in range(count - first)]
            taken += ids
            out.append([0] * first + ids)
        return out

    def release(self, request):
        rows = rows_of(request.tables)
        self.scribble.append(rows)
        self.free += [block for _, ids in rows for block in ids]

    # ---- requests ----

    def _request(self, name, tokens, seed, params):
        request = types.SimpleNamespace(
            request_id=name, num_prompt_tokens=tokens, kv_transfer_params=params, seed=seed,
            tables=self.tables(tokens), delayed=False, known=0,
            status=types.SimpleNamespace(name="RUNNING"))
        return request if request.tables is not None else None

    def prefill(self, name, tokens, seed, params=None, status="FINISHED_LENGTH_CAPPED"):
        """Computes a prompt in one step. Returns the kv_transfer_params of the answer."""
        params = {"do_remote_decode": True, "do_remote_prefill": False, **(params or {})}
        request = self._request(name, tokens, seed, params)
        if request is None:
            return None
        self.requests[name] = request
        self.compute.append((rows_of(request.tables), seed, tokens))
        self.step()
        return self.end(request, status)

    def end(self, request, status):
        request.status.name = status
        if self.results:
            delayed, params = self.connector.request_finished_all_groups(
                request, tuple(request.tables))
        else:
            delayed, params = self.connector.request_finished(request, request.tables[0])
        self.finished.add(request.request_id)
        request.delayed = delayed
        if not delayed and not self.loading(request):
            self.release(self.requests.pop(request.request_id))
        return params

    def loading(self, request):
        return getattr(request, "is_loading", False)

    def decode(self, name, tokens, seed, params, known=0):
        """Admits a request whose KV cache another engine has, but for `known` tokens, which are
        here. None: there are too few blocks."""
        request = self._request(name, tokens, seed, dict(params))
        if request is None:
            return None
        self.requests[name] = request
        request.known = known
        if known:
            self.compute.append((rows_of([ids[:known // self.shape.block]
                                          for ids in request.tables]), seed, known))
        count, later = self.connector.get_num_new_matched_tokens(request, known)
        again = self.connector.get_num_new_matched_tokens(request, known)
        assert (count, later) == again, "a repeated question changed the answer"
        assert later == (count > 0)
        blocks = types.SimpleNamespace(get_block_ids=lambda: tuple(request.tables))
        self.connector.update_state_after_alloc(request, blocks, count)
        request.is_loading, request.count = later, count
        return request

    def abort(self, request):
        self.end(request, "FINISHED_ABORTED")

    def loaded(self, request):
        """Whether the load has ended. Then returns ("ok", wrong values), or ("failed", 0)."""
        if self.compute or request.is_loading and request.request_id not in self.received:
            return None
        self.received.discard(request.request_id)
        request.is_loading = False
        ids = {block for table in request.tables for block in table}
        failed = bool(ids & self.failed_blocks) or request.request_id in self.failed
        self.failed_blocks -= ids
        self.failed.discard(request.request_id)
        wrong = 0
        if not failed and request.status.name == "RUNNING":
            wrong = sum(self.ask("check", rows_of(request.tables), request.seed, 0,
                                 request.num_prompt_tokens))
        if request.status.name == "RUNNING":
            self.end(request, "FINISHED_STOPPED")
        else:
            self.release(self.requests.pop(request.request_id))
        return ("failed" if failed else "ok", wrong)


def rows_of(tables):
    """Returns (first block, ids) for each group, without the null blocks in front."""
    return [(table.count(0), [one for one in table if one != 0]) for table in tables]


def run(engines, done, seconds=LONG):
    """Steps the engines in turn until `done` is true."""
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until, "it hangs"
        for engine in engines:
            engine.step()
        time.sleep(0.001)  # as the loop of vLLM does when nothing runs
