"""The places of the pages of a KV cache, and plans between the pages of two engines. A page is one
block of one layer, as the kernels see blocks. Plain values: needs no agent and no vLLM.

A stack is the layers of a worker that are alike. A part of a parcel has the pages of some layers of
one stack: layer after layer, and page after page in each layer, K before V."""

import array
import dataclasses
import zlib
from typing import NamedTuple

import numpy  # which vLLM needs as well

import viaduct

MOST_PAGES = 1 << 16  # of a part, because one message lists them
POOL = 1 << 26  # more pages than any part has


@dataclasses.dataclass(frozen=True)
class Kind:
    """Layers that are alike. `heads` counts those of the model, and `tokens` those of a page."""

    tensors: int
    heads: int
    head_size: int
    element_bytes: int
    dtype: str
    tokens: int
    order: str

    def layout(self, tp, rank, pools):
        """Returns the layout of layers, of which each has a row (places, pages) in `pools`."""
        cache = viaduct.KvCache([0], self.head_size, kv_heads=self.heads, tensors=self.tensors,
                                element_bytes=self.element_bytes)
        groups = [viaduct.KvGroup([cache], block_tokens=self.tokens, blocks=pages, places=places)
                  for places, pages in pools]
        return viaduct.KvLayout(groups, order=self.order, tp=tp, rank=rank)

    def bare(self, tp, rank):
        return self.layout(tp, rank, [((), 0)])

    def page_bytes(self, tp):
        return self.bare(tp, 0).page_bytes()

    def part_layout(self, tp, rank, layers):
        """Returns the layout of a part with so many layers. The pages of all are in one pool."""
        size = self.page_bytes(tp)
        places = [(i * size, self.tensors * size) for i in range(self.tensors)]
        return self.layout(tp, rank, [(places, POOL)] * layers)


class Layer:
    """The cache of one layer of this worker, from its tensor."""

    def __init__(self, name, tensor, group, tokens, heads, tp, dtype="auto"):
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
        self.kind = Kind(tensors, heads, rest[2], bytes_of, _dtype(tensor, dtype), page_tokens,
                         order)
        self.bytes = self.kind.page_bytes(tp)
        self.per_block = tokens // page_tokens  # pages of a block of the scheduler

    @property
    def extent(self):
        return (self.address, self.address + self.apart + (self.count - 1) * self.stride
                + self.bytes)

    def places(self):
        places = [(self.address, self.stride)]
        if self.kind.tensors == 2:
            places.append((self.address + self.apart, self.stride))
        return places


def _unknown(name, shape):
    return viaduct.UnsupportedError(
        f"register_kv_caches: the cache of layer {name} has the unknown shape {shape}; what to do: "
        "choose another attention backend, or another connector")


def _dtype(tensor, stored):
    """Returns the type of the elements. Quantized ones are bytes, and `stored` says their type."""
    if tensor.element_size() == 1 and stored != "auto":
        return {"fp8": "fp8_e4m3"}.get(stored, stored)
    return str(tensor.dtype).removeprefix("torch.")


def blocks_of(tokens, size):
    return -(-tokens // size)


def all_pages(tokens, block_sizes):
    """Returns a row (first block, blocks) for each group, with all blocks of so many tokens."""
    return tuple((0, blocks_of(tokens, size)) for size in block_sizes)


def stacks_of(layers):
    """Returns lists of layers that are alike."""
    out = {}
    for layer in layers:
        out.setdefault((layer.group, layer.per_block, layer.kind), []).append(layer)
    return list(out.values())


class Part(NamedTuple):
    stack: int
    first: int  # of the stack's layers
    layers: int

    @property
    def component(self):
        """The number of the part. It says which layers the part has, so that two ends cannot mean
        different layers by one number."""
        return self.stack << 24 | self.first << 12 | self.layers


def parts_of(stacks, pages):
    """Returns the parts of a worker. `stacks` has a row (group, pages of a block, layers) for each
    stack, and `pages` a row (first block, blocks) for each group."""
    out = []
    for number, (group, each, layers) in enumerate(stacks):
        count = pages[group][1]
        if count != 0:
            most = max(1, MOST_PAGES // (count * each))
            out += [Part(number, first, min(most, layers - first))
                    for first in range(0, layers, most)]
    return out


def signature(pages):
    """Returns the number by which both ends know that they mean the same pages."""
    return zlib.crc32(repr(tuple(map(tuple, pages))).encode()) or 1


class Stack:
    """Layers of this worker that are alike, with all their pages as Blocks."""

    def __init__(self, layers):
        first = layers[0]
        self.row = first.group, first.per_block * first.kind.tensors, len(layers)
        self.group, self._per_block = first.group, first.per_block
        rows, starts = [], []
        for layer in layers:
            places, size = layer.places(), layer.bytes
            if all(one.apart == one.bytes for one in layers):  # K and V touch, and are one block
                places, size = places[:1], 2 * size
            starts.append([sum(row[4] for row in rows) + i * layer.count
                           for i in range(len(places))])
            rows += [(place, size, 0, layer.stride, layer.count) for place, _ in places]
        self._blocks = viaduct.Blocks.list(rows)
        self._starts = numpy.array(starts)

    def select(self, part, ids):
        """Returns the pages of these blocks of the scheduler in the order of the part."""
        pages = numpy.asarray(pages_of(ids, self._per_block))
        starts = self._starts[part.first:part.first + part.layers]
        return self._blocks[(starts[:, None, :] + pages[None, :, None]).ravel()]


def pages_of(ids, per_block):
    """Returns the numbers of the pages of these blocks of the scheduler."""
    if per_block == 1:
        return array.array("I", ids)
    return array.array("I", [one * per_block + i for one in ids for i in range(per_block)])


class Row(NamedTuple):
    """The pages of a layer to take from a part, those to fill here, and the first token."""

    first: int
    end: int
    here: array.array
    token: int


def row_of(load, layer, kind, per_block, have):
    """Returns the Row of a layer; None: it needs nothing. `kind` and `per_block` are those of the
    layer at the source, and `have` is (first block, blocks) there."""
    theirs, ours = kind.tokens, layer.kind.tokens
    block, ids = load.blocks[layer.group]
    if not ids:
        return None
    skipped, count = (number * per_block for number in have)
    filled = block * layer.per_block
    token = max(filled * ours, skipped * theirs)
    end = blocks_of(load.tokens, theirs) - skipped
    if skipped * theirs >= filled * ours + ours or end > count:
        raise viaduct.InvalidError(
            f"layer {layer.name}: the source has the tokens {skipped * theirs} to "
            f"{(skipped + count) * theirs}, and {filled * ours} to {load.tokens} are needed; what "
            "to do: give both engines the same prompt, and the same sliding window")
    here = pages_of(ids, layer.per_block)
    here = here[token // ours - filled:blocks_of(load.tokens, ours) - filled]
    return Row(token // theirs - skipped, end, here, token)
