"""Tests the parsers with damaged bytes whose checksums are valid, and with random bytes."""

import os
import random

import nixl._bindings as b
import pytest
from nixl_testing import Side, meet

MASK = (1 << 64) - 1
ROUNDS = 4000


def checksum(data):
    """Computes the checksum that docs/wire.md defines."""

    def step(total, word):
        total = (total ^ word) * 0x9E3779B97F4A7C15 & MASK
        return total ^ total >> 32

    total = 0
    whole = len(data) // 8 * 8
    for place in range(0, whole, 8):
        total = step(total, int.from_bytes(data[place : place + 8], "little"))
    rest = int.from_bytes(data[whole:], "little")
    return step(step(total, rest), len(data)).to_bytes(8, "little")


def changed(rng, body):
    """Returns the bytes with some of them changed, inserted, removed or cut off."""
    body = bytearray(body)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(body)) if body else 0
        kind = rng.randrange(5)
        if kind == 0 and body:
            body[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 1:
            body[place:place] = rng.randbytes(rng.randint(1, 9))
        elif kind == 2:
            del body[place : place + rng.randint(1, 9)]
        elif kind == 3:
            number = rng.choice((0, 1, 1 << 31, (1 << 32) - 1, (1 << 64) - 1))
            body[place : place + 8] = number.to_bytes(8, "little")
        else:
            del body[place:]
    return bytes(body)


@pytest.fixture
def rng():
    seed = int(os.environ.get("VIADUCT_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"VIADUCT_SEED={seed}")  # pytest shows it if the test fails
    return random.Random(seed)


def test_the_checksum_is_the_one_of_the_package():
    blob = b.serialize(b.nixlXferDList(b.DRAM_SEG, [(1, 2, 3)]))
    assert checksum(blob[:-8]) == blob[-8:]
    blob = Side().agent.get_agent_metadata()
    assert checksum(blob[:-8]) == blob[-8:]


@pytest.mark.parametrize(
    "descs",
    [
        b.nixlXferDList(b.DRAM_SEG, [(1, 2, 3), (4, 5, 6)]),
        b.nixlXferDList(b.VRAM_SEG, [(1, 2, 3, 4, 5)]),
        b.nixlRegDList(b.FILE_SEG, [(1, 2, 3, "path"), (4, 5, 6, b"")]),
        b.nixlRemoteDList(b.DRAM_SEG, [(1, 2, 3, "agent")]),
    ],
)
def test_lists_with_right_checksums(rng, descs):
    blob, refused = b.serialize(descs), 0
    for _ in range(ROUNDS):
        body = changed(rng, blob[16:-8])
        head = blob[:12] + len(body).to_bytes(4, "little")
        try:
            again = b.deserialize(head + body + checksum(head + body))
        except b.nixlInvalidParamError:
            refused += 1
        else:
            # An accepted list must survive another round of serialization.
            assert b.deserialize(b.serialize(again)) == again
            repr(again)
    assert refused > ROUNDS / 4


def test_a_registration_list_of_five_columns_is_refused():
    """Only transfer lists have strides. A registration list with strides has no extents."""
    blob = b.serialize(b.nixlXferDList(b.DRAM_SEG, [(1, 2, 3, 4, 5)]))[:-8]
    # The type is the first byte of the content, and its last four bytes are the number of texts.
    content = b"\1" + blob[17:-4] + (1).to_bytes(4, "little") + bytes(4)
    body = blob[:12] + len(content).to_bytes(4, "little") + content
    with pytest.raises(b.nixlInvalidParamError, match="malformed"):
        b.deserialize(body + checksum(body))


def test_a_huge_count_allocates_nothing():
    blob = bytearray(b.serialize(b.nixlXferDList(b.DRAM_SEG, [(1, 2, 3)]))[:-8])
    blob[19:27] = (1 << 60).to_bytes(8, "little")
    with pytest.raises(b.nixlInvalidParamError, match="malformed"):
        b.deserialize(bytes(blob) + checksum(bytes(blob)))


def test_metadata_with_right_checksums(rng):
    one, other = Side(), Side()
    other.agent.register_memory([(other.address + i * 8192, 4096, 0, "") for i in range(4)], "DRAM")
    blob, refused = other.agent.get_partial_agent_metadata(other.registered), 0
    for _ in range(ROUNDS):
        body = changed(rng, blob[16:-8])
        head = blob[:12] + len(body).to_bytes(4, "little")
        try:
            name = one.agent.add_remote_agent(head + body + checksum(head + body))
        except b.nixlInvalidParamError:
            refused += 1
            continue
        # The regions of a damaged blob may be invalid. The call must not access their memory.
        one.agent.check_remote_metadata(name, one.agent.get_xfer_descs(other.blocks(2), "DRAM"))
        one.agent.remove_remote_agent(name)
    assert refused > ROUNDS / 4
    meet(one, other)
    one.agent.make_connection(other.name)


def test_random_bytes(rng):
    one = Side()
    for _ in range(ROUNDS):
        junk = rng.randbytes(rng.randint(0, 200))
        for call in (one.agent.add_remote_agent, one.agent.deserialize_descs):
            for head in (b"", b"VIADNIXL", b"VIADDESC", b"VIADNIXL\1\0\0\0"):
                with pytest.raises(b.nixlInvalidParamError):
                    call(head + junk)
