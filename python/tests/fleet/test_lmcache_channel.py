"""Makes the calls of LMCache's transfer channel: serialized descriptors, sent indices, asyncio.

The calls follow lmcache/v1/transfer_channel/nixl_channel.py.
"""

import asyncio
import uuid

import pytest

numpy = pytest.importorskip("numpy")

from fleet_testing import address_of, expect_bytes, pattern, poison, run_together, take

PAGES, PAGE_BYTES = 64, 8192
SENT = 24


class Channel:
    def __init__(self, memory):
        from nixl._api import nixl_agent, nixl_agent_config
        self.memory = memory
        self.agent = nixl_agent(str(uuid.uuid4()), nixl_agent_config(backends=["UCX"]))
        whole = self.agent.get_reg_descs([(address_of(memory), memory.nbytes, 0, "")],
                                         mem_type="cpu")
        self.agent.register_memory(whole)
        self.registered = whole
        pages = [(address_of(memory) + i * PAGE_BYTES, PAGE_BYTES, 0) for i in range(PAGES)]
        self.descs = self.agent.get_xfer_descs(pages, mem_type="cpu")
        self.local = self.agent.prep_xfer_dlist("", self.descs)

    def shake_hands(self, pipe):
        pipe.send(self.agent.get_agent_metadata())
        self.name = self.agent.add_remote_agent(take(pipe))
        pipe.send(self.agent.get_serialized_descs(self.descs))
        theirs = self.agent.deserialize_descs(take(pipe))
        assert theirs.descCount() == PAGES
        self.remote = self.agent.prep_xfer_dlist(self.name, theirs)

    async def move(self, operation, mine, theirs):
        handle = self.agent.make_prepped_xfer(operation, self.local, mine, self.remote, theirs)
        self.agent.transfer(handle)
        while True:
            state = self.agent.check_xfer_state(handle)
            assert state in ("DONE", "PROC", "PEND")
            if state == "DONE":
                break
            await asyncio.sleep(0.01)
        self.agent.release_xfer_handle(handle)

    def close(self):
        self.agent.deregister_memory(self.registered)
        self.agent.release_dlist_handle(self.local)
        self.agent.remove_remote_agent(self.name)
        self.agent.release_dlist_handle(self.remote)

    def page(self, index):
        return self.memory[index * PAGE_BYTES:(index + 1) * PAGE_BYTES]


def sender(pipe):
    channel = Channel(pattern(11, PAGES * PAGE_BYTES).copy())
    channel.shake_hands(pipe)

    async def batches():
        # Two tasks of one event loop move two batches at the same time.
        theirs = take(pipe)
        half = SENT // 2
        await asyncio.gather(
            channel.move("WRITE", list(range(half)), theirs[:half]),
            channel.move("WRITE", list(range(half, SENT)), theirs[half:]))
        pipe.send("written")

    asyncio.run(batches())
    # The receiver reads the remaining pages.
    assert take(pipe) == "read"
    channel.close()


def receiver(pipe):
    channel = Channel(poison(PAGES * PAGE_BYTES))
    channel.shake_hands(pipe)
    places = [int(place) for place in numpy.random.default_rng(2).permutation(PAGES)]
    pipe.send(places[:SENT])
    assert take(pipe) == "written"
    source = pattern(11, PAGES * PAGE_BYTES).reshape(PAGES, PAGE_BYTES)
    for i, place in enumerate(places[:SENT]):
        expect_bytes(channel.page(place), source[i], f"written page {i}")
    for place in places[SENT:]:
        expect_bytes(channel.page(place), poison(PAGE_BYTES), f"page {place}, not written")
    asyncio.run(channel.move("READ", places[SENT:], list(range(SENT, PAGES))))
    for i, place in enumerate(places[SENT:], SENT):
        expect_bytes(channel.page(place), source[i], f"read page {i}")
    pipe.send("read")
    channel.close()
    return PAGES


def test_pages_are_written_and_read_by_index():
    assert run_together(sender, receiver)[1] == PAGES
