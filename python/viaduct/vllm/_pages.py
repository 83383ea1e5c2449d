"""The places of the pages of a KV cache, and plans between the pages of two engines. A page is one
block of one layer, as the kernels see blocks. Plain values: needs no agent and no vLLM."""

import array
import dataclasses

import viaduct

FAR = 1 << 40  # more pages than any pool has


@dataclasses.dataclass(frozen=True)
class Kind:
    """Layers that are alike. `heads` counts those of the model, and `tokens` those of a page."""

    tensors: int
    heads: int
    head_size: int
    element_bytes: int
    tokens: int
    order: str

    def layout(self, tp, rank, places, blocks):
        cache = viaduct.KvCache([0], self.head_size, kv_heads=self.heads, tensors=self.tensors,
                                element_bytes=self.element_bytes)
        group = viaduct.KvGroup([cache], block_tokens=self.tokens, blocks=blocks, places=places)
        return viaduct.KvLayout([group], order=self.order, tp=tp, rank=rank)

    def bare(self, tp, rank):
        return self.layout(tp, rank, (), 0)

    def page_bytes(self, tp):
        return self.bare(tp, 0).page_bytes()


class Layer:
    """The cache of one layer of this worker, from its tensor."""

    def __init__(self, name, tensor, group, tokens, heads, tp):
        if isinstance(tensor, (list, tuple)):
            raise viaduct.InvalidError(f"register_kv_caches: layer {name} has the state of a "
                                       "recurrent layer (Mamba), which this connector does not "
                                       "move; what to do: choose another connector")
        self.name, self.group = name, group
        self.device = tensor.device.index if getattr(tensor, "is_cuda", False) else None
        shape, strides = tuple(tensor.shape), tuple(tensor.stride())
        bytes_of = tensor.element_size()
        self.address = tensor.data_ptr()
        steps = [step * bytes_of for step in strides]
        self.apart = 0  # the distance from K to V
        if len(shape) == 5:  # K and V
            both = 1 if shape[1] == 2 else 0
            if shape[both] != 2:
                raise _unknown(name, shape)
            self.apart = steps[both]
            rest, step = shape[2:], steps[2:]
            self.count, self.stride = shape[1 - both], steps[1 - both]
            tensors = 2
        elif len(shape) == 4:  # K and V of an entry side by side
            rest, step = shape[1:], steps[1:]
            self.count, self.stride, tensors = shape[0], steps[0], 1
        elif len(shape) == 3:  # MLA
            rest, step = (shape[1], 1, shape[2]), (steps[1], bytes_of, steps[2])
            self.count, self.stride, tensors, heads = shape[0], steps[0], 1, 1
        else:
            raise _unknown(name, shape)
        # The axes are (tokens, heads, elements), or (heads, tokens, elements) in a packed cache.
        heads_here = heads // tp if heads >= tp else 1
        swapped = len(shape) == 4 and rest[0] == heads_here
        page_tokens, page_heads = (rest[1], rest[0]) if swapped else (rest[0], rest[1])
        by_token, by_head = (step[1], step[0]) if swapped else (step[0], step[1])
        if page_heads != heads_here or tokens % page_tokens != 0:
            raise _unknown(name, shape)
        order = "nhd" if page_heads == 1 or by_token > by_head else "hnd"
        self.kind = Kind(tensors, heads, rest[2], bytes_of, page_tokens, order)
        self.bytes = self.kind.page_bytes(tp)
        self.per_block = tokens // page_tokens  # pages of a block of the scheduler
        self.touching = tensors == 1 or self.apart == self.bytes  # K and V

    @property
    def extent(self):
        return (self.address, self.address + self.apart + (self.count - 1) * self.stride
                + self.bytes)

    def places(self):
        places = [(self.address, self.stride)]
        if self.kind.tensors == 2:
            places.append((self.address + self.apart, self.stride))
        return places

    def blocks(self):
        """Returns all pages as Blocks. If K and V do not touch, those of V follow those of K."""
        if self.touching:
            size = self.bytes * self.kind.tensors
            return viaduct.Blocks.list([(self.address, size, 0, self.stride, self.count)])
        return viaduct.Blocks.list([(place, self.bytes, 0, self.stride, self.count)
                                    for place, _ in self.places()])

    def numbers(self, ids):
        """Returns the numbers in blocks() of these pages, K before V."""
        if self.touching:
            return ids
        return array.array("I", [one for page in ids for one in (page, self.count + page)])


def _unknown(name, shape):
    return viaduct.UnsupportedError(
        f"register_kv_caches: the cache of layer {name} has the unknown shape {shape}; what to do: "
        "choose another attention backend, or another connector")


def pages_of(ids, per_block):
    """Returns the numbers of the pages of these blocks of the scheduler."""
    if per_block == 1:
        return array.array("I", ids)
    return array.array("I", [one * per_block + i for one in ids for i in range(per_block)])


def tables(load, layer, group, kind, per_block):
    """Returns the pages to take from a part, those to fill here, and the first token. None: there
    are none. `group`, `kind` and `per_block` are those of the layer at the source."""
    theirs, ours = kind.tokens, layer.kind.tokens
    block, ids = load.blocks[layer.group]
    if not ids:
        return None
    if load.source.pages:
        have = [number * per_block for number in load.source.pages[group]]
    else:
        have = [0, -(-load.tokens // (theirs * per_block)) * per_block]
    filled = block * layer.per_block
    first = max(filled * ours, have[0] * theirs)
    if have[0] * theirs >= filled * ours + ours or -(-load.tokens // theirs) > sum(have):
        raise viaduct.InvalidError(
            f"layer {layer.name}: the source has the tokens {have[0] * theirs} to "
            f"{sum(have) * theirs}, and {filled * ours} to {load.tokens} are needed; what to do: "
            "give both engines the same prompt, and the same sliding window")
    source = range(first // theirs - have[0], -(-load.tokens // theirs) - have[0])
    here = pages_of(ids, layer.per_block)[first // ours - filled:-(-load.tokens // ours) - filled]
    return source, here, first


def part_layout(kind, tp, rank):
    """Returns the layout of a part, which has the pages of a request one after the other."""
    size = kind.page_bytes(tp)
    places = [(i * size, kind.tensors * size) for i in range(kind.tensors)]
    return kind.layout(tp, rank, places, FAR // (kind.tensors * size))


def readers(kinds, source_tp, tp):
    """Returns for each tensor-parallel rank of the source the ranks here that take its parcel. A
    rank whose heads are needed nowhere still has one, so that its blocks become free."""
    out = [set() for _ in range(source_tp)]
    for theirs, ours in kinds:
        for rank in range(tp):
            for source in viaduct.kv_source_ranks(theirs.bare(source_tp, 0), ours.bare(tp, rank)):
                out[source].add(rank)
    return [sorted(some) or [source * tp // source_tp] for source, some in enumerate(out)]
