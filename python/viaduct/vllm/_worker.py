"""The worker side: hands values to a thread of its own, because a step of the engine must not wait.
Threads: vLLM's worker thread makes all calls."""

import collections

import viaduct
from viaduct.vllm import _pages
from viaduct.vllm._messages import Handshake
from viaduct.vllm._transfers import Transfers


class Worker:
    def __init__(self, config, kv_cache_config, rank):
        self._config, self._rank = config, rank
        self._groups = kv_cache_config.kv_cache_groups
        self._ended = collections.deque()  # of Ended, appended by the other thread
        self._failed_blocks = set()
        self._transfers = None

    def register(self, caches):
        transfer = self._config.kv_transfer_config
        heads = self._config.model_config.get_total_num_kv_heads()
        stored = getattr(getattr(self._config, "cache_config", None), "cache_dtype", "auto")
        group_of = {name: number for number, group in enumerate(self._groups)
                    for name in group.layer_names}
        layers = []
        for name, tensor in caches.items():
            group = group_of.get(name, 0)
            tokens = self._groups[group].kv_cache_spec.block_size
            layers.append(_pages.Layer(name, tensor, group, tokens, heads, self._rank.tp_size,
                                       stored))
        if transfer.kv_buffer_device == "cpu" and any(one.device is not None for one in layers):
            raise viaduct.UnsupportedError(
                "register_kv_caches: kv_buffer_device is cpu, and the KV cache is on a GPU; what "
                "to do: leave kv_buffer_device out, because GPU memory is moved directly")
        extra = dict(transfer.kv_connector_extra_config or {})
        block_sizes = [group.kv_cache_spec.block_size for group in self._groups]
        self._transfers = Transfers(layers, self._rank, block_sizes, transfer.engine_id,
                                    self._ended, **extra)

    def handshake(self):
        if self._transfers is None:
            return None
        agent = self._transfers.agent
        stacks = tuple(stack.row for stack in self._transfers.stacks)
        return Handshake(self._rank.pp, self._rank.tp, agent.addresses[0], agent.id.hex(), stacks)

    def start(self, step):
        if not step.is_empty():
            self._transfers.take(step)

    def finished(self):
        """Returns (sent, received, failed): sets of requests."""
        sent, received, failed = set(), set(), set()
        while self._ended:
            ended = self._ended.popleft()
            (sent if ended.sent else received).add(ended.request)
            if ended.failed_blocks:
                failed.add(ended.request)
                self._failed_blocks |= ended.failed_blocks
        return sent, received, failed

    def take_failed_blocks(self):
        failed, self._failed_blocks = self._failed_blocks, set()
        return failed

    def shutdown(self):
        if self._transfers is not None:
            self._transfers.close()
            self._transfers = None
