"""The class that vLLM makes: one in the scheduler, and one in each worker."""

import viaduct
from viaduct.vllm import _engine
from viaduct.vllm._remote import Rank
from viaduct.vllm._scheduler import Scheduler
from viaduct.vllm._worker import Worker


class _Connector(_engine.Base):
    """Moves the KV caches of requests between engines, each as one parcel: docs/vllm.md."""

    def __init__(self, vllm_config, role, kv_cache_config=None):
        if kv_cache_config is None:
            raise viaduct.UnsupportedError(
                "ViaductConnector: this vLLM gives a connector no KVCacheConfig; what to do: use a "
                "later version")
        super().__init__(vllm_config, role, kv_cache_config)
        parallel = vllm_config.parallel_config
        self._scheduler = self._worker = None
        if role == _engine.Role.SCHEDULER:
            self._scheduler = Scheduler(vllm_config, kv_cache_config)
        else:
            pp, tp = _engine.ranks()
            rank = Rank(pp, parallel.pipeline_parallel_size, tp, parallel.tensor_parallel_size)
            self._worker = Worker(vllm_config, kv_cache_config, rank)

    @classmethod
    def get_required_kvcache_layout(cls, vllm_config):
        # Only in HND order are the heads of a rank contiguous, which other TP sizes need.
        return None if vllm_config.model_config.use_mla else "HND"

    # ---- scheduler ----

    def set_xfer_handshake_metadata(self, metadata):
        self._scheduler.set_workers(metadata.values())

    def set_xfer_handshake_metadata_pp_aware(self, metadata):
        self._scheduler.set_workers(metadata.values())

    def on_new_request(self, request):
        self._scheduler.admitted(request)

    def get_num_new_matched_tokens(self, request, num_computed_tokens):
        return self._scheduler.matched(request, num_computed_tokens)

    def update_state_after_alloc(self, request, blocks, num_external_tokens):
        self._scheduler.allocated(request, blocks, num_external_tokens)

    def build_connector_meta(self, scheduler_output):
        return self._scheduler.take_step()

    def request_finished(self, request, block_ids):
        return self._scheduler.finished(request, (block_ids,))

    # ---- worker ----

    def register_kv_caches(self, kv_caches):
        self._worker.register(kv_caches)

    def get_handshake_metadata(self):
        return self._worker.handshake()

    def start_load_kv(self, forward_context, **kwargs):
        self._worker.start(self._get_connector_metadata())

    def wait_for_layer_load(self, layer_name):
        pass  # the scheduler runs a request only once all its layers are there

    def save_kv_layer(self, layer_name, kv_layer, attn_metadata, **kwargs):
        pass  # a request is published when it has finished

    def wait_for_save(self):
        pass

    def get_finished(self, finished_req_ids=None):
        return self._worker.finished()[:2]

    def get_block_ids_with_load_errors(self):
        return self._worker.take_failed_blocks()

    def shutdown(self):
        if self._worker is not None:
            self._worker.shutdown()


if _engine.TransferResults is None:

    class ViaductConnector(_Connector):
        __doc__ = _Connector.__doc__

else:

    class ViaductConnector(_Connector, *filter(None, [_engine.Hybrid])):
        __doc__ = _Connector.__doc__

        def request_finished_all_groups(self, request, block_ids):
            return self._scheduler.finished(request, block_ids)

        def get_transfer_results(self, finished_req_ids=None):
            return _engine.TransferResults(*self._worker.finished())
