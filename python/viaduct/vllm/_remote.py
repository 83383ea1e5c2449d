"""The workers of another engine, as one worker here reads from them. Threads: the loop's only."""

import asyncio
import json
from typing import NamedTuple

import viaduct
from viaduct.vllm import _pages

# Each worker publishes its description under this name, as one part of fixed size.
DESCRIPTION = "viaduct.vllm/layers"
DESCRIPTION_BYTES = 64 << 10
DESCRIPTION_PART = (0, 0)


class Rank(NamedTuple):
    """A worker of an engine: its pipeline rank and size, and its tensor-parallel rank and size."""

    pp: int
    pp_size: int
    tp: int
    tp_size: int

    @property
    def number(self):
        """Counts all workers of the engine."""
        return self.pp * self.tp_size + self.tp

    @property
    def workers(self):
        return self.pp_size * self.tp_size

    def __str__(self):
        stage = f" of stage {self.pp} of {self.pp_size}" if self.pp_size > 1 else ""
        return f"rank {self.tp} of {self.tp_size}{stage}"


def describe(layers, rank, block_sizes):
    """Returns the description of a worker's layers as bytes of that size."""
    stacks = _pages.stacks_of(layers)
    text = json.dumps({
        "rank": rank, "block_sizes": block_sizes,
        "stacks": [[stack[0].group, stack[0].per_block, list(vars(stack[0].kind).values()),
                    [layer.name for layer in stack]] for stack in stacks]}).encode()
    if len(text) > DESCRIPTION_BYTES:
        raise viaduct.UnsupportedError(
            f"register_kv_caches: {len(layers)} layers need {len(text)} bytes of description, of "
            f"at most {DESCRIPTION_BYTES}")
    return text.ljust(DESCRIPTION_BYTES)


class RemoteStack(NamedTuple):
    group: int
    per_block: int
    kind: _pages.Kind
    names: list

    @property
    def row(self):
        return self.group, self.per_block * self.kind.tensors, len(self.names)


class Remote:
    """A worker of another engine."""

    def __init__(self, peer, agent, description):
        told = json.loads(bytes(description))
        self.peer, self.agent = peer, agent
        self.rank = Rank(*told["rank"])
        self._block_sizes = told["block_sizes"]
        self.stacks = [RemoteStack(group, per_block, _pages.Kind(*kind), names)
                       for group, per_block, kind, names in told["stacks"]]
        self._plans = {}

    def pages(self, source):
        """Returns a row (first block, blocks) for each group of the request at the source."""
        return source.pages or _pages.all_pages(source.tokens, self._block_sizes)

    def parts(self, pages):
        return _pages.parts_of([stack.row for stack in self.stacks], pages)

    def key(self, part):
        return self.rank.number, part.component

    def select(self, load, part, here, rank):
        """Returns the slice of the part to take, and the memory for it. None: nothing is needed.
        `here` maps names to the layers that this worker takes from there."""
        stack = self.stacks[part.stack]
        have = self.pages(load.source)[stack.group]
        pages = have[1] * stack.per_block
        known, layers, rows = {}, [], []
        for number, name in enumerate(stack.names[part.first:part.first + part.layers]):
            if name not in here:
                continue
            layer = here[name]
            layers.append(layer)
            key = layer.group, layer.per_block, layer.kind.tokens
            if key not in known:
                known[key] = _pages.row_of(load, layer, stack.kind, stack.per_block, have)
            row, at = known[key], number * pages
            rows.append(row and (range(at + row.first, at + row.end), row.here, row.token))
        if not any(rows):
            return None
        return self._plan(part, layers, rank).select(rows)

    def _plan(self, part, layers, rank):
        plan = self._plans.get(part)
        if plan is None:
            kind = self.stacks[part.stack].kind
            theirs = kind.part_layout(self.rank.tp_size, self.rank.tp, len(layers))
            ours = layers[0].kind.layout(rank.tp_size, rank.tp,
                                         [(layer.places(), layer.count) for layer in layers])
            try:
                plan = self._plans[part] = viaduct.KvReshard(theirs, ours)
            except viaduct.Error as error:
                raise _misfit(layers[0], self, rank, str(error)) from None
        return plan

    def taken_by(self, layers, rank):
        """Returns the layers, by their names, that a worker takes from here."""
        out = {}
        ours = {layer.name: layer for layer in layers}
        for stack in self.stacks:
            first = None
            for name in stack.names:
                layer = ours.get(name)
                if layer is None:
                    continue
                _check_alike(layer, stack.kind, self, rank)
                first = first or layer
                if layer.kind != first.kind:
                    raise _misfit(layer, self, rank, f"it differs from {first.name} here only")
                if self.rank.tp in viaduct.kv_source_ranks(
                        stack.kind.bare(self.rank.tp_size, 0),
                        layer.kind.bare(rank.tp_size, rank.tp)):
                    out[name] = layer
        return out


def _misfit(layer, remote, rank, why):
    return viaduct.InvalidError(
        f"layer {layer.name} of {remote.rank} at the source does not fit {rank} here: {why}; what "
        "to do: start both engines with one model, dtype, cache dtype and attention backend")


def _check_alike(layer, theirs, remote, rank):
    for field in ("tensors", "heads", "head_size", "dtype", "element_bytes"):
        there, here = getattr(theirs, field), getattr(layer.kind, field)
        if there != here:
            raise _misfit(layer, remote, rank, f"{field} is {there} there and {here} here")


async def find(agent, name, timeout):
    return await viaduct.awaitable(agent.find, name, timeout)


async def open_remote(agent, row, timeout):
    """Connects to a worker and reads its description. `row` is (pp, tp, address, agent), or the
    name of its agent at the meeting place."""
    memory = agent.allocate(DESCRIPTION_BYTES)
    if isinstance(row, str):
        peer, owner = await find(agent, row, timeout), None
    else:
        peer, owner = agent.connect(row[2]), bytes.fromhex(row[3])
    await viaduct.awaitable(peer.ready, timeout)
    await agent.fetch(peer, DESCRIPTION, {DESCRIPTION_PART: memory}, timeout=timeout, owner=owner)
    return Remote(peer, owner, memory)


class Engine:
    """The workers of another engine. The first one decides about its parcels."""

    def __init__(self, workers, layers, rank):
        self.owner = workers[0]
        self.takes = []  # a row (worker, layers by name) for each one that this worker reads from
        self.why = None  # the reason for which this worker cannot read from the engine
        try:
            self._take(workers, layers, rank)
        except viaduct.Error as why:
            self.takes, self.why = [], why

    def _take(self, workers, layers, rank):
        failed = next((one for one in workers if isinstance(one, Exception)), None)
        if failed is not None:
            raise failed
        missing = {layer.name for layer in layers}.difference(
            *(stack.names for worker in workers for stack in worker.stacks))
        if missing:
            raise viaduct.InvalidError(
                f"layer {min(missing)} of {rank} is at no worker of the source; what to do: start "
                "both engines with the same model")
        for worker in workers:
            taken = worker.taken_by(layers, rank)
            if taken:
                self.takes.append((worker, taken))

    def is_open(self):
        used = [self.owner, *(worker for worker, _ in self.takes)]
        return self.why is None and all(one.peer.state in ("ready", "draining") for one in used)

    def close(self):
        """Stops connecting to workers that are gone."""
        for worker, _ in [(self.owner, ()), *self.takes]:
            if worker.peer.state in ("connecting", "lost", "gone"):
                worker.peer.forget()


async def open_engine(agent, source, layers, rank, timeout):
    """Connects to the workers of the engine. Raises only the error of the first worker: those of
    the others are in Engine.why."""
    rows = source.workers or [f"{source.engine}/0/0"]
    owner = await open_remote(agent, rows[0], timeout)
    if not source.workers:
        rows = [f"{source.engine}/{stage}/{tp}" for stage in range(owner.rank.pp_size)
                for tp in range(owner.rank.tp_size)]
    others = await asyncio.gather(*(open_remote(agent, row, timeout) for row in rows[1:]),
                                  return_exceptions=True)
    return Engine([owner, *others], layers, rank)
