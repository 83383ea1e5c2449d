"""The scheduler side: decides what is published and loaded. Nothing here blocks or talks to a peer.
Threads: those calls come from vLLM's scheduler thread only."""

import logging
import uuid

from viaduct.vllm._messages import Load, Publish, Source, Step

log = logging.getLogger("viaduct.vllm")

# Statuses of a request whose KV cache is complete. Other statuses hand nothing over.
COMPLETE = ("FINISHED_LENGTH_CAPPED", "FINISHED_STOPPED")


def pages(tokens, block):
    return -(-tokens // block)


class Scheduler:
    def __init__(self, config, kv_cache_config):
        self._engine = config.kv_transfer_config.engine_id
        self._tp = config.parallel_config.tensor_parallel_size
        self._block_sizes = [group.kv_cache_spec.block_size
                             for group in kv_cache_config.kv_cache_groups]
        self._workers = ()
        self._known = {}  # maps requests to the number of tokens that they have here already
        self._loads = set()  # requests whose load has begun, until they finish
        self._step = Step()

    def set_workers(self, handshakes):
        self._workers = tuple(sorted((one.pp, one.tp, one.address, one.agent)
                                     for one in handshakes))

    def matched(self, request, known):
        source = self._source(request)
        if source is None:
            return 0, False
        self._known[request.request_id] = known
        prompt = request.num_prompt_tokens
        count = min(prompt, source.tokens or prompt) - known
        return (count, True) if count > 0 else (0, False)

    def allocated(self, request, blocks, count):
        source = self._source(request)
        if source is None:
            return
        request.kv_transfer_params["do_remote_prefill"] = False
        load = Load(request.request_id, source)
        known = self._known.pop(request.request_id, 0)
        if count > 0:
            load.first_token, load.tokens = known, known + count
            for ids, size in zip(blocks.get_block_ids(), self._block_sizes):
                first = known // size
                taken = ids[first:pages(load.tokens, size)]
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
        if source is not None:  # aborted before it had blocks: the source need not wait
            params["do_remote_prefill"] = False
            self._step.load.append(Load(request.request_id, source))
            return False, None
        if not params.get("do_remote_decode"):
            return False, None
        if request.status.name not in COMPLETE or not any(block_ids):
            if params.get("transfer_id"):
                self._step.refuse.append(params["transfer_id"])
            return False, None
        return True, self._publish(request, params, block_ids)

    def _publish(self, request, params, block_ids):
        parcel = params.get("transfer_id") or f"{request.request_id[:180]}/{uuid.uuid4().hex}"
        tokens, rows = request.num_prompt_tokens, []
        for ids, size in zip(block_ids, self._block_sizes):
            ids = list(ids[:pages(tokens, size)])
            # A window's blocks that were freed already have the number of the null block, 0.
            first = next((i for i, one in enumerate(ids) if one != 0), len(ids))
            rows.append((first, ids[first:]))
        self._step.publish.append(Publish(request.request_id, parcel, rows))
        source = Source(self._engine, parcel, tokens, self._workers,
                        tuple((first, len(ids)) for first, ids in rows))
        return source.params(request.request_id, self._tp)

    def take_step(self):
        step, self._step = self._step, Step()
        return step

    def _source(self, request):
        params = request.kv_transfer_params or {}
        if not params.get("do_remote_prefill"):
            return None
        try:
            return Source.of(params)
        except (KeyError, TypeError, ValueError) as error:
            log.error("request %s: its kv_transfer_params name no KV cache (%r), so it is computed "
                      "here; what to do: pass the params of the prefill's answer unchanged",
                      request.request_id, error)
            params["do_remote_prefill"] = False
            return None
