"""The messages from the scheduler side to the worker side, and between engines. Plain values."""

import dataclasses

from viaduct.vllm import _engine


@dataclasses.dataclass
class Handshake(_engine.Handshake):
    """The address of a worker's agent. `agent` is new in each life of the worker."""

    pp: int
    tp: int
    address: str
    agent: str


@dataclasses.dataclass(frozen=True)
class Source:
    """A request's KV cache at the engine that computed it, from the request's kv_transfer_params.

    `workers` has rows (pp, tp, address, agent). Empty: the agents are found by name, and the parcel
    may not be published yet. `pages` has a row (first page, pages) for each group of caches."""

    engine: str
    parcel: str
    tokens: int = 0
    workers: tuple = ()
    pages: tuple = ()

    @classmethod
    def of(cls, params):
        rows = [params.get("viaduct_workers") or (), params.get("viaduct_pages") or ()]
        workers, pages = (tuple(tuple(row) for row in table) for table in rows)
        return cls(str(params["remote_engine_id"]), str(params["transfer_id"]),
                   int(params.get("remote_num_tokens") or 0), workers, pages)

    def params(self, request_id, tp_size):
        host, _, port = self.workers[0][2].rpartition(":") if self.workers else ("", "", "0")
        return {"do_remote_prefill": True, "do_remote_decode": False,
                "remote_engine_id": self.engine, "remote_request_id": request_id,
                "remote_host": host, "remote_port": int(port), "tp_size": tp_size,
                "remote_num_tokens": self.tokens, "transfer_id": self.parcel,
                "viaduct_workers": [list(row) for row in self.workers],
                "viaduct_pages": [list(row) for row in self.pages]}


@dataclasses.dataclass
class Publish:
    """A finished request: its blocks in each group, from the group's first page on."""

    request: str
    parcel: str
    blocks: list  # a row (first page, block ids) for each group


@dataclasses.dataclass
class Load:
    """Blocks to fill, in each group from the block with `first_token` on. Without blocks, the
    worker tells the source that it needs nothing."""

    request: str
    source: Source
    first_token: int = 0
    tokens: int = 0
    blocks: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Step(_engine.Metadata):
    """The metadata of a step."""

    publish: list = dataclasses.field(default_factory=list)
    cancel: list = dataclasses.field(default_factory=list)  # requests that have ended
    refuse: list = dataclasses.field(default_factory=list)  # parcels that will never be published
    load: list = dataclasses.field(default_factory=list)
