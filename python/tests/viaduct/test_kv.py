"""Tests layouts of KV caches, and plans that move blocks from one layout to another."""

import numpy
import pytest
from helpers import LONG

import viaduct

LAYERS, HEADS, SIZE, TOKENS = 3, 4, 8, 64


def layout(address, *, order, tp, rank, block_tokens, arrangement, blocks):
    cache = viaduct.KvCache(range(LAYERS), SIZE, kv_heads=HEADS)
    group = viaduct.KvGroup([cache], block_tokens=block_tokens)
    return viaduct.KvLayout([group], order=order, tp=tp, rank=rank).arrange(
        arrangement, address, blocks)


@pytest.fixture
def caches(pair):
    """Yields the agent and peer, two layouts, and both caches as (layer, tensor, token, head)."""
    agent, peer, inbox, remote = pair
    source = layout(remote.address, order="nhd", tp=1, rank=0, block_tokens=16,
                    arrangement="together", blocks=8)
    theirs = numpy.frombuffer(inbox, "uint16")[:source.extent[1] // 2]
    theirs[:] = numpy.random.default_rng(1).integers(0, 1 << 16, theirs.size)
    theirs = theirs.reshape(LAYERS, 8, 2, 16, HEADS, SIZE).transpose(1, 0, 2, 3, 4, 5)
    memory = agent.allocate(1 << 20)
    mine = layout(memory.address, order="hnd", tp=2, rank=1, block_tokens=32, arrangement="rows",
                  blocks=4)
    ours = numpy.frombuffer(memory, "uint16")[:mine.extent[1] // 2]
    ours = ours.reshape(4, LAYERS, 2, HEADS // 2, 32, SIZE).transpose(0, 1, 2, 4, 3, 5)
    yield agent, peer, source, mine, theirs, ours


def tokens_of(cache, blocks):
    """Returns the tokens of these blocks as (layer, tensor, token, head, element)."""
    return numpy.concatenate(cache[blocks], axis=2)


def test_a_read_moves_the_heads_of_a_rank_into_other_blocks(caches):
    agent, peer, source, mine, theirs, ours = caches
    assert viaduct.kv_source_ranks(source, mine) == (0,)
    reshard = viaduct.KvReshard(source, mine)
    taken, into = reshard.select([([5, 1, 7, 2], numpy.array([3, 0]))])
    agent.read(peer, into, taken, timeout=LONG)
    expected = tokens_of(theirs, [5, 1, 7, 2])[:, :, :, HEADS // 2:]
    assert (tokens_of(ours, [3, 0]) == expected).all()
    assert not ours[[1, 2]].any()


def test_a_prefix_that_is_there_is_skipped(caches):
    agent, peer, source, mine, theirs, ours = caches
    taken, into = viaduct.KvReshard(source, mine).select([([7, 2], [0], 32)])
    assert taken.bytes == into.bytes == LAYERS * 2 * 32 * (HEADS // 2) * SIZE * 2
    agent.read(peer, into, taken, timeout=LONG)
    assert (tokens_of(ours, [0]) == tokens_of(theirs, [7, 2])[:, :, :, HEADS // 2:]).all()
    assert not ours[1:].any()


def test_a_layout_of_a_model_has_its_sizes():
    llama = viaduct.KvLayout.of_model("meta-llama/Llama-3.1-8B", order="hnd", tp=4, rank=1)
    cache, = llama.groups[0].caches
    assert (cache.layers, cache.head_size, cache.kv_heads) == (tuple(range(32)), 128, 8)
    assert (llama.order, llama.tp, llama.rank, llama.groups[0].places) == ("hnd", 4, 1, ())
    assert llama.page_bytes() == 16 * 2 * 128 * 2 and llama.blocks_of(8191) == 512
    narrow = viaduct.KvLayout.of_model("Llama-3.1-8B", tp=8, rank=5, block_tokens=64)
    assert narrow.page_bytes() == 64 * 128 * 2
    assert viaduct.kv_source_ranks(llama, narrow) == (2,)
    assert "DeepSeek-V3" in viaduct.kv_models()
    with pytest.raises(viaduct.InvalidError, match="prescribes its blocks"):
        viaduct.KvLayout.of_model("DeepSeek-V4-Pro", block_tokens=64)
    with pytest.raises(viaduct.NotFoundError, match="did you mean"):
        viaduct.KvLayout.of_model("Llama-3.1-9B")


def test_places_of_the_caller_are_kept():
    cache = viaduct.KvCache([4, 7], 16, tensors=1, element_bytes=1, name="latent")
    places = ((0, 256), (1 << 20, 512))
    group = viaduct.KvGroup([cache], blocks=10, places=places)
    assert group.places == places and group.blocks == 10 and group.window == 0
    made = viaduct.KvLayout([group])
    assert made.extent == (0, (1 << 20) + 9 * 512 + 256)
    with pytest.raises(viaduct.InvalidError, match=r"places\[1\].stride"):
        viaduct.KvLayout([viaduct.KvGroup([cache], blocks=10, places=[(0, 256), (4096, 255)])])


def test_impossible_layouts_are_refused(caches):
    _, _, source, mine, _, _ = caches
    cache = viaduct.KvCache(range(LAYERS), SIZE, kv_heads=HEADS)
    group = viaduct.KvGroup([cache])
    with pytest.raises(viaduct.InvalidError, match='use "nhd" or "hnd"'):
        viaduct.KvLayout([group], order="dnh")
    with pytest.raises(viaduct.InvalidError, match="tp"):
        viaduct.KvLayout([group], tp=3)
    with pytest.raises(viaduct.InvalidError, match='use "apart", "together" or "rows"'):
        viaduct.KvLayout([group]).arrange("packed", 0, 8)
    with pytest.raises(viaduct.InvalidError, match="no places"):
        viaduct.KvLayout([group]).extent
    with pytest.raises(IndexError):
        source.page_bytes(group=1)
    other = viaduct.KvCache(range(LAYERS), 2 * SIZE, kv_heads=HEADS)
    with pytest.raises(viaduct.InvalidError, match="head_size"):
        viaduct.KvReshard(source, viaduct.KvLayout([viaduct.KvGroup([other])])
                          .arrange("rows", 0, 8))
    reshard = viaduct.KvReshard(source, mine)
    with pytest.raises(viaduct.InvalidError, match=r"groups\[0\].source"):
        reshard.select([([8], [0])])
    with pytest.raises(viaduct.InvalidError, match="2 groups"):
        reshard.select([None, None])
    with pytest.raises(TypeError, match="source blocks"):
        reshard.select([[0, 1]])
