"""The messages from the scheduler side to the worker side, and between engines. Plain values."""

import dataclasses

from viaduct.vllm import _engine


@dataclasses.dataclass
class Handshake(_engine.Handshake):
    """A worker: the address of its agent, and its stacks as _pages.parts_of() takes them.

    `agent` is new in each life of the worker."""

    pp: int
    tp: int
    address: str
    agent: str
    stacks: tuple


@dataclasses.dataclass(frozen=True)
class Source:
    """A request's KV cache at the engine that computed it, from the request's kv_transfer_params.

    `workers` has rows (pp, tp, address, agent). Empty: the agents are found by name. `pages` has a
    row (first block, blocks) for each group of caches. Empty: all blocks of the tokens."""

    engine: str
    parcel: str
    tokens: int
    workers: tuple = ()
    pages: tuple = ()

    @classmethod
    def of(cls, params, prompt):
        rows = [params.get("viaduct_workers") or (), params.get("viaduct_pages") or ()]
        workers, pages = (tuple(tuple(row) for row in table) for table in rows)
        return cls(str(params["remote_engine_id"]), str(params["transfer_id"]),
                   int(params.get("remote_num_tokens") or prompt), workers, pages)

    def params(self, request_id, tp_size):
        host, _, port = self.workers[0][2].rpartition(":")
        return {"do_remote_prefill": True, "do_remote_decode": False,
                "remote_engine_id": self.engine, "remote_request_id": request_id,
                "remote_host": host, "remote_port": int(port), "tp_size": tp_size,
                "remote_num_tokens": self.tokens, "transfer_id": self.parcel,
                "viaduct_workers": [list(row) for row in self.workers],
                "viaduct_pages": [list(row) for row in self.pages]}


@dataclasses.dataclass
class Publish:
    """A finished request. All workers publish one parcel, which the first worker decides about.
    Without blocks, the parcel ends at once, and engines that wait for it are told."""

    request: str
    parcel: str
    pages: tuple  # as in Source
    blocks: list  # the block ids of each group
    parts: list  # of all workers
    owner: str  # the address of the first worker


@dataclasses.dataclass
class Claim:
    """A request that waits here. Its source learns that this engine will ask, or has died."""

    request: str
    source: Source


@dataclasses.dataclass
class Load:
    """Blocks to fill, in each group from the block with `first_token` on."""

    request: str
    source: Source
    first_token: int
    tokens: int
    claimed: bool  # in an earlier step
    blocks: list = dataclasses.field(default_factory=list)  # (first block, block ids)


@dataclasses.dataclass
class Step(_engine.Metadata):
    """The metadata of a step."""

    publish: list = dataclasses.field(default_factory=list)
    claim: list = dataclasses.field(default_factory=list)
    load: list = dataclasses.field(default_factory=list)
    cancel: list = dataclasses.field(default_factory=list)  # names of requests that have ended
    release: list = dataclasses.field(default_factory=list)  # claims whose requests need no load

    def is_empty(self):
        return not any((self.publish, self.claim, self.load, self.cancel, self.release))
