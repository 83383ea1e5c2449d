"""The scheduler side: decides what is published and loaded. Nothing here blocks or talks to a peer.
Threads: vLLM's scheduler thread makes all calls."""

import logging
import uuid

from viaduct.vllm import _pages
from viaduct.vllm._messages import Claim, Load, Publish, Source, Step

log = logging.getLogger("viaduct.vllm")

# Statuses of a request whose KV cache is complete. Other statuses hand nothing over.
COMPLETE = ("FINISHED_LENGTH_CAPPED", "FINISHED_STOPPED")
# A source serves 4,096 fetches to one worker at a time, and loads need some of them.
MOST_CLAIMS = 1024


class Scheduler:
    def __init__(self, config, kv_cache_config):
        self._engine = config.kv_transfer_config.engine_id
        self._tp = config.parallel_config.tensor_parallel_size
        self._block_sizes = [group.kv_cache_spec.block_size
                             for group in kv_cache_config.kv_cache_groups]
        self._workers, self._rows = [], ()
        self._known = {}  # maps requests to the number of tokens that they have here already
        self._claimed = {}  # maps requests that wait, of which the source knows, to their source
        self._loads = set()  # requests whose load has begun, until they finish
        self._step = Step()

    def set_workers(self, handshakes):
        self._workers = sorted(handshakes, key=lambda one: (one.pp, one.tp))
        self._rows = tuple((one.pp, one.tp, one.address, one.agent) for one in self._workers)

    def admitted(self, request):
        """Notes that the request waits here. The call may be repeated."""
        source = self._source(request)
        if source is not None and request.request_id not in self._claimed \
                and len(self._claimed) < MOST_CLAIMS:
            self._claimed[request.request_id] = source
            self._step.claim.append(Claim(request.request_id, source))

    def matched(self, request, known):
        source = self._source(request)
        if source is None:
            return 0, False
        self.admitted(request)
        self._known[request.request_id] = known
        count = min(request.num_prompt_tokens, source.tokens) - known
        return (count, True) if count > 0 else (0, False)

    def allocated(self, request, blocks, count):
        source = self._source(request)
        if source is None:
            return
        request.kv_transfer_params["do_remote_prefill"] = False
        known = self._known.pop(request.request_id, 0)
        if count == 0:
            return self._release(request, source)
        load = Load(request.request_id, source, known, known + count,
                    self._end_claim(request.request_id))
        for ids, size in zip(blocks.get_block_ids(), self._block_sizes):
            first = known // size
            taken = ids[first:_pages.blocks_of(load.tokens, size)]
            empty = next((i for i, one in enumerate(taken) if one != 0), len(taken))
            load.blocks.append((first + empty, list(taken[empty:])))
        self._loads.add(request.request_id)
        self._step.load.append(load)

    def finished(self, request, block_ids):
        self._known.pop(request.request_id, None)
        if request.request_id in self._loads:
            self._loads.remove(request.request_id)
            self._step.cancel.append(request.request_id)
        params = request.kv_transfer_params or {}
        source = self._source(request)
        if source is not None:  # the request was aborted before it had blocks
            params["do_remote_prefill"] = False
            self._release(request, source)
            return False, None
        if not params.get("do_remote_decode"):
            return False, None
        complete = request.status.name in COMPLETE and any(block_ids)
        if not complete and not params.get("transfer_id"):
            return False, None
        if not self._workers:
            log.error("request %s is not handed over, because this vLLM has told the connector no "
                      "worker; what to do: use a vLLM that calls set_xfer_handshake_metadata()",
                      request.request_id)
            return False, None
        answer = self._publish(request, params, block_ids if complete else ())
        return (True, answer) if complete else (False, None)

    def take_step(self):
        step, self._step = self._step, Step()
        return step

    def _publish(self, request, params, block_ids):
        parcel = params.get("transfer_id") or f"{request.request_id[:180]}/{uuid.uuid4().hex}"
        tokens = request.num_prompt_tokens
        rows, blocks = _pages.all_pages(tokens, self._block_sizes), []
        if block_ids:
            rows = []
            for ids, size in zip(block_ids, self._block_sizes):
                ids = list(ids[:_pages.blocks_of(tokens, size)])
                # A window's blocks that were freed already have the number of the null block, 0.
                first = next((i for i, one in enumerate(ids) if one != 0), len(ids))
                rows.append((first, len(ids) - first))
                blocks.append(ids[first:])
        rows = tuple(rows)
        parts = {stacks: _pages.parts_of(stacks, rows)
                 for stacks in {worker.stacks for worker in self._workers}}
        named = [(worker.pp * self._tp + worker.tp, part.component) for worker in self._workers
                 for part in parts[worker.stacks]]
        self._step.publish.append(Publish(request.request_id, parcel, rows, blocks, named,
                                          self._workers[0].address))
        source = Source(self._engine, parcel, tokens, self._rows, rows)
        return source.params(request.request_id, self._tp)

    def _end_claim(self, request):
        """Returns whether the workers know of a claim already."""
        if self._claimed.pop(request, None) is None:
            return False
        before = len(self._step.claim)
        self._step.claim = [one for one in self._step.claim if one.request != request]
        return len(self._step.claim) == before

    def _release(self, request, source):
        self._end_claim(request.request_id)
        self._step.release.append(Claim(request.request_id, source))

    def _source(self, request):
        params = request.kv_transfer_params or {}
        if not params.get("do_remote_prefill"):
            return None
        if request.request_id in self._claimed:
            return self._claimed[request.request_id]
        try:
            return Source.of(params, request.num_prompt_tokens)
        except (KeyError, TypeError, ValueError) as error:
            log.error("request %s: its kv_transfer_params name no KV cache (%r), so it is computed "
                      "here; what to do: pass the params of the prefill's answer unchanged",
                      request.request_id, error)
            params["do_remote_prefill"] = False
            return None
