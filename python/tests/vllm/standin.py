"""Stands for vLLM: the modules and classes that the connector touches, written from its contract.

As a program, it is a worker: it reads pickled commands from stdin, and answers on stdout."""

import collections
import dataclasses
import enum
import pickle
import sys
import time
import types

import numpy

import viaduct

state = types.SimpleNamespace(pp=0, tp=0)


@dataclasses.dataclass(frozen=True)
class Version:
    """The parts of vLLM's contract that not every version has."""

    results: str = ""  # the module that has KVConnectorTransferResults; empty: none
    hybrid: bool = True  # SupportsHMA
    handshake: bool = True  # KVConnectorHandshakeMetadata
    by_stage: bool = True  # set_xfer_handshake_metadata_pp_aware() is called
    new_request: bool = True  # on_new_request() is called
    named: bool = True  # get_finished() is called with the requests that have finished


OLDER = Version(hybrid=False, handshake=False, by_stage=False, new_request=False, named=False)
USUAL = Version()
NEWER = Version(results="base")
NEWEST = Version(results="outputs")


class KVConnectorRole(enum.Enum):
    SCHEDULER = 0
    WORKER = 1


class KVConnectorBase_V1:  # noqa: N801: the name is vLLM's
    def __init__(self, vllm_config, role, kv_cache_config):
        self._vllm_config, self._role, self._kv_cache_config = vllm_config, role, kv_cache_config
        self._connector_metadata = None

    def bind_connector_metadata(self, metadata):
        self._connector_metadata = metadata

    def clear_connector_metadata(self):
        self._connector_metadata = None

    def _get_connector_metadata(self):
        assert self._connector_metadata is not None
        return self._connector_metadata


@dataclasses.dataclass
class KVConnectorTransferResults:
    finished_sending: set
    finished_recving: set
    failed_recving: set


def install(version):
    """Makes `import vllm` find these classes, as this version has them."""
    base = types.ModuleType("base")
    base.KVConnectorBase_V1, base.KVConnectorRole = KVConnectorBase_V1, KVConnectorRole
    has = {"KVConnectorMetadata": True, "KVConnectorHandshakeMetadata": version.handshake,
           "SupportsHMA": version.hybrid}
    for name in filter(has.get, has):
        setattr(base, name, type(name, (), {"__module__": __name__}))
    ranks = types.ModuleType("parallel_state")
    ranks.get_pp_group = lambda: types.SimpleNamespace(rank_in_group=state.pp)
    ranks.get_tensor_model_parallel_rank = lambda: state.tp
    v1 = "vllm.distributed.kv_transfer.kv_connector.v1"
    parts = v1.split(".")
    for module in (".".join(parts[:i + 1]) for i in range(len(parts))):
        sys.modules[module] = types.ModuleType(module)
    sys.modules["vllm.v1"] = types.ModuleType("vllm.v1")
    outputs = types.ModuleType("outputs")
    sys.modules["vllm.v1.outputs"] = sys.modules["vllm.v1"].outputs = outputs
    if version.results:
        {"base": base, "outputs": outputs}[version.results].KVConnectorTransferResults = \
            KVConnectorTransferResults
    sys.modules[f"{v1}.base"] = sys.modules[v1].base = base
    sys.modules["vllm.distributed"].parallel_state = ranks


@dataclasses.dataclass
class Shape:
    """An engine: its model, its parallelism, and how its attention backend lays out the cache."""

    engine: str
    tp: int = 1
    pp: int = 1
    layers: int = 3
    heads: int = 4
    head_size: int = 8
    block: int = 16       # tokens of a block of the scheduler
    page: int = 16        # tokens of a page, which the kernels use
    blocks: int = 64
    kind: str = "together"  # or "apart", "packed", "mla"
    order: str = "hnd"
    dtype: str = "uint16"
    cache_dtype: str = "auto"
    windows: tuple = (0,)   # of each group; 0: all tokens
    part_pages: int = 0     # the most pages of a part; 0: the default
    extra: dict = dataclasses.field(default_factory=dict)

    def config(self):
        space = types.SimpleNamespace
        transfer = space(engine_id=self.engine, kv_connector_extra_config=self.extra,
                         kv_buffer_device="cuda", kv_role="kv_both")
        model = space(get_total_num_kv_heads=lambda: self.heads, use_mla=self.kind == "mla")
        return space(kv_transfer_config=transfer, model_config=model,
                     cache_config=space(cache_dtype=self.cache_dtype), parallel_config=space(
                         tensor_parallel_size=self.tp, pipeline_parallel_size=self.pp))

    def caches(self, layers):
        groups = [types.SimpleNamespace(
            layer_names=[name_of(i) for i in layers if i % len(self.windows) == g],
            kv_cache_spec=types.SimpleNamespace(block_size=self.block))
            for g in range(len(self.windows))]
        return types.SimpleNamespace(num_blocks=self.blocks, kv_cache_groups=groups)

    def stage(self, pp):
        """The layers of a pipeline stage."""
        return range(pp * self.layers // self.pp, (pp + 1) * self.layers // self.pp)

    def heads_of(self, rank):
        """The heads of the model that this rank has."""
        if self.kind == "mla":
            return [0]
        if self.heads < self.tp:
            return [rank * self.heads // self.tp]
        here = self.heads // self.tp
        return list(range(rank * here, (rank + 1) * here))


def name_of(layer):
    return f"model.layers.{layer}.self_attn.attn"


class Tensor:
    """The part of a torch.Tensor that the connector uses, over a view of a numpy array."""

    def __init__(self, view):
        self.shape, self.dtype, self.view = view.shape, view.dtype, view

    def stride(self):
        return tuple(step // self.view.itemsize for step in self.view.strides)

    def data_ptr(self):
        return self.view.ctypes.data

    def element_size(self):
        return self.view.itemsize


class Cache:
    """The tensors of a layer, and its values as an array (page, K and V, token, head, element)."""

    def __init__(self, shape, rank):
        pages, heads = shape.blocks * shape.block // shape.page, len(shape.heads_of(rank))
        size, tokens = shape.head_size, shape.page
        if shape.kind == "mla":
            self.view = numpy.zeros((pages, tokens, size), shape.dtype)
            self.values = self.view[:, None, :, None]
        elif shape.kind == "packed":  # (page, head, token, K then V)
            self.view = numpy.zeros((pages, heads, tokens, 2 * size), shape.dtype)
            self.values = self.view.reshape(pages, heads, tokens, 2, size).transpose(0, 3, 2, 1, 4)
        else:
            inner = (heads, tokens) if shape.order == "hnd" else (tokens, heads)
            outer = (2, pages) if shape.kind == "apart" else (pages, 2)
            memory = numpy.zeros((*outer, *inner, size), shape.dtype)
            self.view = memory.swapaxes(2, 3) if shape.order == "hnd" else memory
            self.values = self.view.swapaxes(0, 1) if shape.kind == "apart" else self.view


def value(seed, layer, tokens, tensors, heads, size):
    """The values of tokens [first, end), which depend on all of their coordinates."""
    first, end = tokens
    axes = numpy.ogrid[first:end, 0:tensors, 0:len(heads), 0:size]
    head = numpy.asarray(heads)[axes[2]]
    return ((seed * 7919 + layer * 977 + axes[0] * 131 + axes[1] * 31 + head * 17 + axes[3]) % 65521
            + 1).astype("uint16")


class Stamped(collections.deque):
    """Remembers when each request ended."""

    def __init__(self):
        super().__init__()
        self.times = {}

    def append(self, ended):
        self.times[ended.request] = time.monotonic()
        super().append(ended)


class Worker:
    def __init__(self, shape, pp, tp, version):
        install(version)
        from viaduct.vllm import ViaductConnector, _pages

        _pages.MOST_PAGES = shape.part_pages or _pages.MOST_PAGES
        state.pp, state.tp = pp, tp
        self.shape, self.rank, self.version = shape, tp, version
        layers = shape.stage(pp)
        self.tables = {layer: Cache(shape, tp) for layer in layers}
        self.connector = ViaductConnector(shape.config(), KVConnectorRole.WORKER,
                                          kv_cache_config=shape.caches(layers))
        self.ended = self.connector._worker._ended = Stamped()
        self.connector.register_kv_caches(
            {name_of(layer): Tensor(cache.view) for layer, cache in self.tables.items()})

    def handshake(self):
        return self.connector.get_handshake_metadata()

    def step(self, scribble, compute, metadata, finished):
        """One step of the engine. The connector's calls are timed."""
        for blocks in scribble:
            self._fill(blocks, None)
        for blocks, seed, tokens in compute:
            self._fill(blocks, seed, tokens)
        connector = self.connector
        began = time.perf_counter()
        connector.bind_connector_metadata(metadata)
        connector.start_load_kv(None)
        connector.wait_for_save()
        if self.version.results:
            ended = connector.get_transfer_results(finished)
            out = ended.finished_sending, ended.finished_recving, ended.failed_recving, set()
        else:
            names = (finished,) if self.version.named else ()
            out = *connector.get_finished(*names), set(), \
                connector.get_block_ids_with_load_errors()
        connector.clear_connector_metadata()
        return *out, time.perf_counter() - began

    def lent(self):
        """The leases of the worker's agent, by their state."""
        return self.connector._worker._transfers.agent.statistics()["lent"]

    def ended_at(self, request):
        """The moment at which the connector had loaded or sent a request, by the host's clock."""
        return self.ended.times[request]

    def claims(self):
        """Returns the number of waiting requests that this worker has claimed at their source."""
        return len(self.connector._worker._transfers._claims)

    def live(self, seconds):
        """From now on, requests wait for a decode engine for so many seconds."""
        self.connector._worker._transfers._life = seconds

    def rows(self, blocks):
        """Returns the pages of these blocks as rows for Blocks.list()."""
        layers = self.connector._worker._transfers._layers
        return [(layer.address + page * layer.stride, layer.bytes * layer.kind.tensors)
                for layer in layers for page in self._pages(blocks)]

    def read(self, theirs, blocks):
        """Reads these pages from the other engine without a connector. Returns the seconds."""
        transfers = self.connector._worker._transfers
        peer = next(iter(transfers._engines.values())).result().owner.peer
        ours = viaduct.Blocks.list(self.rows(blocks))
        remote = viaduct.Blocks.list(theirs)
        began = time.perf_counter()
        transfers.agent.plan("read", peer, ours, remote).post().wait(60)
        return time.perf_counter() - began

    def check(self, groups, seed, first, end):
        """Returns how many values of the tokens [first, end) are wrong."""
        wrong = 0
        for layer, cache in self.tables.items():
            start, blocks = groups[layer % len(groups)]
            begin = max(first, start * self.shape.block)
            if begin < end:
                told = self._expected(layer, seed, (begin, end))
                at = begin - start * self.shape.block
                wrong += int((self._tokens(cache, blocks)[at:at + end - begin] != told).sum())
        return wrong

    def _pages(self, blocks):
        per = self.shape.block // self.shape.page
        return [block * per + i for block in blocks for i in range(per)]

    def _tokens(self, cache, blocks):
        values = cache.values[self._pages(blocks)]  # (page, K and V, token, head, element)
        pages, tensors, tokens, heads, size = values.shape
        return values.transpose(0, 2, 1, 3, 4).reshape(pages * tokens, tensors, heads, size)

    def _expected(self, layer, seed, tokens):
        tensors = 1 if self.shape.kind == "mla" else 2
        return value(seed, layer, tokens, tensors, self.shape.heads_of(self.rank),
                     self.shape.head_size)

    def _fill(self, groups, seed, tokens=None):
        for layer, cache in self.tables.items():
            start, blocks = groups[layer % len(groups)]
            pages = self._pages(blocks)
            if seed is None:
                cache.values[pages] = 0
                continue
            begin = start * self.shape.block
            end = begin + len(pages) * self.shape.page
            told = self._expected(layer, seed, (begin, end))
            shape = (len(pages), self.shape.page, *told.shape[1:])
            cache.values[pages] = told.reshape(shape).transpose(0, 2, 1, 3, 4)


def main():
    commands, answers = sys.stdin.buffer, sys.stdout.buffer
    worker = Worker(*pickle.load(commands))
    while True:
        try:
            name, arguments = pickle.load(commands)
        except EOFError:
            worker.connector.shutdown()
            return
        pickle.dump(getattr(worker, name)(*arguments), answers)
        answers.flush()


if __name__ == "__main__":
    sys.modules["standin"] = sys.modules["__main__"]
    main()
