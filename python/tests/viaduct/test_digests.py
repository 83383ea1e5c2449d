"""Tests digests of blocks: a reader sees whether it has the right bytes."""

import asyncio

import numpy
import pytest
from helpers import LONG

import viaduct

BLOCKS = 256  # of 4 KiB in the peer's 1 MiB


@pytest.fixture
def ends(pair):
    """Yields the reader, its peer, blocks at both ends, and the owner with its blocks as an array."""
    reader, peer, inbox, remote = pair
    owned = numpy.frombuffer(inbox, "uint8").reshape(BLOCKS, 4096)
    owned[:] = numpy.arange(BLOCKS)[:, None] + numpy.arange(4096) * 7
    memory = reader.allocate(1 << 20)
    numpy.frombuffer(memory, "uint8")[:] = 5
    yield reader, peer, memory.blocks(4096), remote.blocks(4096), inbox.agent, owned


def test_a_read_finds_the_blocks_that_changed_after_their_digests(ends):
    reader, peer, ours, theirs, owner, owned = ends
    digests = owner.digest_blocks(owned)
    assert len(digests) == 1  # a whole array is one block
    digests = owner.digest_blocks(viaduct.Blocks.of(owned)[[9, 40, 3, 7]])
    transfer = reader.plan("read", peer, ours[[5, 1, 2, 8]], theirs[[9, 40, 3, 7]])
    transfer.post(note=b"all right", digests=digests).wait(LONG)
    assert owner.wait_note(LONG).data == b"all right" and transfer.corrupt == ()
    owned[[40, 7], 17] ^= 1
    transfer.post(note=b"not sent", digests=digests)
    with pytest.raises(viaduct.CorruptError, match="2 of 4 blocks are corrupt") as raised:
        transfer.wait(LONG)
    assert transfer.corrupt == (1, 3)
    assert transfer.landed == (0, 1, 2, 3)  # all bytes have arrived, also the wrong ones
    assert raised.value.peer == "there" and digests[1].hex() in raised.value.detail
    transfer.post(note=b"unchecked").wait(LONG)
    assert owner.wait_note(LONG).data == b"unchecked" and transfer.corrupt == ()


def test_the_blocking_read_and_asyncio_check_digests_too(ends):
    reader, peer, ours, theirs, owner, owned = ends
    digests = viaduct.Digests([viaduct.digest_of(row) for row in owned[:2]])
    reader.read(peer, ours[:2], theirs[:2], digests=digests, timeout=LONG)
    owned[1, 0] ^= 1
    with pytest.raises(viaduct.CorruptError):
        reader.read(peer, ours[:2], theirs[:2], digests=digests, timeout=LONG)

    async def read():
        await reader.plan("read", peer, ours[:2], theirs[:2]).post(digests=digests)

    with pytest.raises(viaduct.CorruptError):
        asyncio.run(read())


def test_a_receiver_checks_the_blocks_that_a_peer_has_written(ends):
    writer, peer, ours, theirs, receiver, owned = ends
    writer.write(peer, ours[:8], theirs[8:16], note=writer.digest_blocks(ours[:8]).encode())
    digests = viaduct.Digests.decode(receiver.wait_note(LONG).data)
    receiver.check_blocks(viaduct.Blocks.of(owned)[8:16], digests)
    owned[15, 4095] = 6
    with pytest.raises(viaduct.CorruptError, match="block 7 "):
        receiver.check_blocks(viaduct.Blocks.of(owned)[8:16], digests)


def test_digests_are_rows_of_bytes(agent):
    rows = numpy.arange(64, dtype="uint8").reshape(4, 16)
    digests = viaduct.Digests(rows)
    assert len(digests) == 4 and digests[1] == digests[-3] == bytes(range(16, 32))
    assert numpy.asarray(digests).shape == (4, 16) and (numpy.asarray(digests) == rows).all()
    assert viaduct.Digests(list(digests)) == digests
    assert viaduct.Digests(rows[::2]) == viaduct.Digests(rows[[0, 2]]) != digests
    assert viaduct.Digests.decode(digests.encode()) == digests
    assert len(viaduct.Digests([])) == 0
    with pytest.raises(IndexError):
        digests[4]
    with pytest.raises(TypeError, match="shape"):
        viaduct.Digests("text")
    with pytest.raises(viaduct.InvalidError, match="shape"):
        viaduct.Digests(rows.T)
    with pytest.raises(viaduct.InvalidError, match="15 bytes"):
        viaduct.Digests([b"x" * 15])
    with pytest.raises(viaduct.InvalidError, match="decode"):
        viaduct.Digests(digests.encode())
    with pytest.raises(viaduct.InvalidError, match="cut short"):
        viaduct.Digests.decode(digests.encode()[:-1])


def test_a_block_in_pieces_has_the_digest_of_the_block(agent):
    data = numpy.random.default_rng(1).integers(0, 256, 1003, "uint8")
    block, rest = viaduct.BlockDigest(), viaduct.BlockDigest()
    rest.add(800, data[800:])
    rest.add(64, data[64:800])
    block.add(0, data[:64])
    block.add_part(rest)
    with agent.pin(data):
        assert block.digest == viaduct.digest_of(data) == agent.digest_blocks(data)[0]
    with pytest.raises(viaduct.InvalidError, match="multiples of 8"):
        block.add(4, data)


def test_digests_that_do_not_fit_are_refused(ends):
    reader, peer, ours, theirs, owner, owned = ends
    transfer = reader.plan("read", peer, ours[:2], theirs[:2])
    with pytest.raises(viaduct.InvalidError, match="3 digests for 2 blocks"):
        transfer.post(digests=[b"x" * 16] * 3)
    with pytest.raises(viaduct.InvalidError, match="0 digests"):
        transfer.post(digests=[])
    with pytest.raises(viaduct.InvalidError, match="passed to a write"):
        reader.plan("write", peer, ours[:2], theirs[:2]).post(digests=[b"x" * 16] * 2)
    with pytest.raises(viaduct.DeniedError, match="is not in one pin"):
        reader.digest_blocks(numpy.zeros(10))
