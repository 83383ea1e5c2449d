"""Runs stand-ins of engines: the scheduler's part here, and each worker in a process of its own."""

import collections
import pickle
import signal
import subprocess
import sys
import time
import types

import standin

LONG = 60  # seconds; a longer wait means that something hangs, even on a busy machine
WORKER = standin.__file__


class Died(Exception):
    """A worker process is gone."""


_modules = {}  # maps versions of vLLM to their modules, with those of the connector


def use(version):
    """Makes `import` and pickle find the modules of this version."""
    if version not in _modules:
        for name in [name for name in sys.modules if name.startswith(("vllm", "viaduct.vllm"))]:
            del sys.modules[name]
        standin.install(version)
        from viaduct.vllm import ViaductConnector  # noqa: F401: it imports the stand-in

        _modules[version] = {name: module for name, module in sys.modules.items()
                             if name.startswith(("vllm", "viaduct.vllm"))}
    sys.modules.update(_modules[version])
    return sys.modules["viaduct.vllm"].ViaductConnector


class Engine:
    def __init__(self, shape, version=standin.USUAL):
        self.shape, self.version = shape, version
        places = [(pp, tp) for pp in range(shape.pp) for tp in range(shape.tp)]
        self.workers = [subprocess.Popen([sys.executable, "-B", WORKER], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE) for _ in places]
        self.connector = use(version)(shape.config(), standin.KVConnectorRole.SCHEDULER,
                                      kv_cache_config=shape.caches(range(shape.layers)))
        for place, worker in zip(places, self.workers):
            self._send(worker, (shape, *place, version))
        told = dict(zip(places, self.ask("handshake")))
        if version.by_stage:
            self.connector.set_xfer_handshake_metadata_pp_aware(told)
        else:
            self.connector.set_xfer_handshake_metadata({tp: one for (_, tp), one in told.items()})
        self.free = list(range(1, shape.blocks))
        self.requests = {}
        self.scribble, self.compute, self.finished = [], [], set()
        self.counts = {"sent": collections.Counter(), "received": collections.Counter()}
        self.failed_blocks, self.failed = set(), collections.Counter()
        self.sent, self.received = set(), set()
        self.times, self.idle_times = [], []  # of the connector's calls in steps of workers
        self.scheduler_times, self.scheduler_seconds = [], 0.0

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
        use(self.version)
        try:
            pickle.dump(what, worker.stdin)
            worker.stdin.flush()
        except OSError:
            raise Died from None

    def _call(self, name, *arguments):
        """Calls the connector in the scheduler's thread, which may not wait."""
        began = time.perf_counter()
        out = getattr(self.connector, name)(*arguments)
        self.scheduler_seconds += time.perf_counter() - began
        return out

    def send_step(self):
        """Begins a step and does not wait for its end."""
        metadata = self._call("build_connector_meta", None)
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
        metadata = self._call("build_connector_meta", None)
        if not metadata.is_empty():
            self.scheduler_times.append(self.scheduler_seconds)
        self.scheduler_seconds = 0.0
        scribble, compute, finished = self.scribble, self.compute, self.finished
        self.scribble, self.compute, self.finished = [], [], set()
        for sent, received, failed, blocks, seconds in self.ask("step", scribble, compute, metadata,
                                                                finished):
            (self.idle_times if metadata.is_empty() else self.times).append(seconds)
            self.failed.update(failed)
            self.failed_blocks |= blocks
            self._count("sent", sent, self.sent)
            self._count("received", received, self.received)
        self._free_sent()

    def _count(self, what, requests, done):
        for request in requests or ():
            assert request in self.requests, f"{what} names {request}, which would end the engine"
            self.counts[what][request] += 1
            if self.counts[what][request] == len(self.workers):
                del self.counts[what][request]
                done.add(request)

    def _free_sent(self):
        for request in self.sent:
            assert self.requests[request].delayed, f"{request} was never delayed"
            self.release(self.requests.pop(request))
        self.sent.clear()

    def workers_of_answers(self):
        """The workers as the answers of this engine name them."""
        return [[one.pp, one.tp, one.address, one.agent]
                for one in self.connector._scheduler._workers]

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

    def _arrive(self, name, tokens, seed, params):
        request = types.SimpleNamespace(
            request_id=name, num_prompt_tokens=tokens, kv_transfer_params=params, seed=seed,
            tables=[[] for _ in self.shape.windows], delayed=False, is_loading=False,
            failed_ranks=0, status=types.SimpleNamespace(name="RUNNING"))
        if self.version.new_request:
            self._call("on_new_request", request)
        return request

    def prefill(self, name, tokens, seed, params=None, status="FINISHED_LENGTH_CAPPED"):
        """Computes a prompt in one step. Returns the kv_transfer_params of the answer."""
        params = {"do_remote_decode": True, "do_remote_prefill": False, **(params or {})}
        tables = self.tables(tokens)
        if tables is None:
            return None
        request = self.requests[name] = self._arrive(name, tokens, seed, params)
        request.tables = tables
        self.compute.append((rows_of(request.tables), seed, tokens))
        self.step()
        return self.end(request, status)

    def end(self, request, status):
        request.status.name = status
        if self.version.results:
            delayed, params = self._call("request_finished_all_groups", request,
                                         tuple(request.tables))
        else:
            delayed, params = self._call("request_finished", request, request.tables[0])
        self.finished.add(request.request_id)
        request.delayed = delayed
        if not delayed and not request.is_loading:
            self.release(self.requests.pop(request.request_id))
        return params

    def arrive(self, name, tokens, seed, params):
        """A request whose KV cache another engine has, and which waits here."""
        request = self.requests[name] = self._arrive(name, tokens, seed, dict(params))
        return request

    def admit(self, request, known=0):
        """Gives blocks to a waiting request, of which `known` tokens are here. False: there are too
        few blocks."""
        answer = self._call("get_num_new_matched_tokens", request, known)
        again = self._call("get_num_new_matched_tokens", request, known)
        assert answer == again, "a repeated question changed the answer"
        tables = self.tables(request.num_prompt_tokens)
        if tables is None:
            return False
        request.tables = tables
        if known:
            self.compute.append((rows_of([ids[:known // self.shape.block]
                                          for ids in request.tables]), request.seed, known))
        count, later = answer
        assert later == (count > 0)
        blocks = types.SimpleNamespace(get_block_ids=lambda: tuple(request.tables))
        self._call("update_state_after_alloc", request, blocks, count)
        request.is_loading = later
        return True

    def decode(self, name, tokens, seed, params, known=0):
        request = self.arrive(name, tokens, seed, params)
        assert self.admit(request, known), "too few blocks"
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
        failed = bool(ids & self.failed_blocks)
        self.failed_blocks -= ids
        request.failed_ranks = self.failed.pop(request.request_id, 0)
        failed = failed or request.failed_ranks != 0
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


def run(engines, done, seconds=LONG, pause=0.001):
    """Steps the engines in turn until `done` is true. vLLM pauses so long when nothing runs."""
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until, "it hangs"
        for engine in engines:
            engine.step()
        time.sleep(pause)
