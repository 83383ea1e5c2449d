"""The workers of another engine, as one worker here reads from them. Threads: the loop's only."""

import asyncio
import json
import zlib

import viaduct
from viaduct.vllm import _pages

# Each worker publishes its description under this name, as one part of fixed size.
DESCRIPTION = "viaduct.vllm/layers"
DESCRIPTION_BYTES = 64 << 10
DESCRIPTION_PART = (0, 0)


def describe(layers, pp, pp_size, tp, tp_size):
    """Returns the description of a worker's layers as bytes of that size."""
    kinds = list(dict.fromkeys(layer.kind for layer in layers))
    text = json.dumps({
        "pp": [pp, pp_size], "tp": [tp, tp_size],
        "kinds": [[kind.tensors, kind.heads, kind.head_size, kind.element_bytes, kind.tokens,
                   kind.order] for kind in kinds],
        "layers": [[layer.name, layer.group, kinds.index(layer.kind), layer.per_block]
                   for layer in layers]}).encode()
    if len(text) > DESCRIPTION_BYTES:
        raise viaduct.UnsupportedError(
            f"register_kv_caches: {len(layers)} layers need {len(text)} bytes of description, of "
            f"at most {DESCRIPTION_BYTES}")
    return text.ljust(DESCRIPTION_BYTES)


def signature(description):
    """Returns a number for the layouts of a worker. Each of its parcels has it."""
    return zlib.crc32(description) or 1


class Remote:
    """A worker of another engine."""

    def __init__(self, peer, agent, description):
        text = bytes(description)
        told = json.loads(text)
        self.peer, self.agent, self.signature = peer, agent, signature(text)
        (self.pp, self.pp_size), (self.tp, self.tp_size) = told["pp"], told["tp"]
        self.kinds = [_pages.Kind(*row) for row in told["kinds"]]
        # The position of a layer in the list is its component in each parcel.
        self.layers = {name: (component, group, self.kinds[kind], per_block)
                       for component, (name, group, kind, per_block) in enumerate(told["layers"])}
        self._plans = {}

    def first_part(self, pages):
        """Returns the component of a layer that has pages."""
        groups = [group for _, group, _, _ in self.layers.values()]
        return next((i for i, group in enumerate(groups) if not pages or pages[group][1]), 0)

    def plan(self, layer, tp, rank):
        """Returns the plan from the part of a request to this layer here."""
        plan = self._plans.get(layer.name)
        if plan is None:
            theirs = _pages.part_layout(self.layers[layer.name][2], self.tp_size, self.tp)
            ours = layer.kind.layout(tp, rank, layer.places(), layer.count)
            try:
                plan = self._plans[layer.name] = viaduct.KvReshard(theirs, ours)
            except viaduct.Error as error:
                raise viaduct.InvalidError(
                    f"layer {layer.name} of rank {self.tp} of {self.tp_size} at the source does "
                    f"not fit rank {rank} of {tp} here: {error}") from None
        return plan


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
    """The workers of another engine that this worker takes parcels from, and its readers."""

    def __init__(self, remotes, layers, pp, pp_size, tp, tp_size):
        first = remotes[0]
        here = {layer.name: layer.kind for layer in layers}
        common = [(kind, here[name]) for remote in remotes
                  for name, (_, _, kind, _) in remote.layers.items() if name in here]
        missing = set(here) - {name for remote in remotes for name in remote.layers}
        if missing:
            raise viaduct.InvalidError(
                f"layer {min(missing)} is at no worker of the source, of {first.pp_size} stages; "
                "what to do: start both engines with the same model and pipeline_parallel_size")
        taken = _pages.readers(sorted(set(common), key=repr), first.tp_size, tp_size)
        # Both ends have the same stages, or one end has one stage.
        stages = range(pp_size) if first.pp_size == 1 else None
        self.sources = []
        for remote in remotes:
            group = [(stage, rank) for stage in (stages or [remote.pp if pp_size > 1 else 0])
                     for rank in taken[remote.tp]]
            if (pp, tp) in group:
                self.sources.append((remote, len(group), group.index((pp, tp))))
        self.takes = {}  # the layers that this worker reads from each of them
        for remote, _, _ in self.sources:
            self.takes[remote.pp, remote.tp] = [
                layer for layer in layers if layer.name in remote.layers and
                remote.tp in viaduct.kv_source_ranks(
                    remote.layers[layer.name][2].bare(remote.tp_size, 0),
                    layer.kind.bare(tp_size, tp))]


    def is_open(self):
        return all(remote.peer.state in ("ready", "draining") for remote, _, _ in self.sources)

    def close(self):
        """Stops to connect to the workers that are gone."""
        for remote, _, _ in self.sources:
            if remote.peer.state in ("connecting", "lost", "gone"):
                remote.peer.forget()


async def open_engine(agent, source, layers, place, timeout):
    """Connects to those workers of the engine that this worker may need."""
    pp, pp_size, tp, tp_size = place
    rows = source.workers
    if not rows:
        first = await open_remote(agent, f"{source.engine}/0/0", timeout)
        rows = [f"{source.engine}/{stage}/{rank}" for stage in range(first.pp_size)
                for rank in range(first.tp_size)]
        stages = first.pp_size
    else:
        stages = 1 + max(row[0] for row in rows)
        if stages > 1 and pp_size > 1:
            rows = [row for row in rows if row[0] == pp]
    if stages > 1 and pp_size > 1 and stages != pp_size:
        raise viaduct.InvalidError(f"the source has {stages} pipeline stages, and this engine "
                                   f"{pp_size}; what to do: give both the same number, or one of "
                                   "them 1")
    remotes = await asyncio.gather(*(open_remote(agent, row, timeout) for row in rows))
    return Engine([one for one in remotes if stages == 1 or pp_size == 1 or one.pp == pp],
                  layers, pp, pp_size, tp, tp_size)
