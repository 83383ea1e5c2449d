"""Tests parcels: things of many parts that end once at every end."""

import asyncio
import signal

import numpy
import pytest
from helpers import LONG, Server

import viaduct

ONE, TWO = (0, 1), (0, 2)


@pytest.fixture
def ends(agent):
    """Yields the publisher with 64 blocks of 1 KiB, and the consumer with as many."""
    with viaduct.Agent(name="there", environment=False) as other:
        peer = agent.connect(other.card)
        peer.ready(LONG)
        theirs, ours = other.allocate(64 << 10), agent.allocate(64 << 10)
        numpy.frombuffer(theirs, "uint8")[:] = numpy.arange(64).repeat(1024)
        yield other, theirs.blocks(1024), agent, peer, ours


def values(memory):
    return numpy.frombuffer(memory, "uint8").reshape(64, 1024)[:, ::1023].tolist()


def test_every_part_arrives_and_both_ends_know(ends):
    owner, blocks, user, peer, ours = ends
    into = ours.blocks(1024)
    parcel = owner.publish("kv", {ONE: blocks[[9, 3]], TWO: blocks[[40]]}, version=7, takers=1,
                           digests=True)
    fetch = user.fetch(peer, "kv", {ONE: into[[0, 1]], TWO: into[[2]]}, version=7, exact=True)
    fetch.wait(LONG)
    assert values(ours)[:4] == [[9, 9], [3, 3], [40, 40], [0, 0]]
    assert (fetch.state, fetch.missing, fetch.end.ranks) == ("whole", (), (0,))
    end = parcel.wait(LONG)
    assert (end.outcome, end.version, end.part, end.error) == ("whole", 7, None, None)
    assert parcel.taken == 1


def test_blocks_that_are_here_do_not_travel(ends):
    owner, blocks, user, peer, ours = ends
    into = ours.blocks(1024)[[0, 1, 2]]
    numpy.frombuffer(ours, "uint8")[:3072] = numpy.array([9, 4, 7], "uint8").repeat(1024)
    have = user.digest_blocks(into)
    with owner.publish("kv", {ONE: blocks[[9, 3, 7]]}, digests=True):
        before = user.statistics()["done"]
        user.fetch(peer, "kv", {ONE: into}, have={ONE: have}).wait(LONG)
        assert values(ours)[:3] == [[9, 9], [3, 3], [7, 7]]
        assert user.statistics()["done"] == before + 1
        user.fetch(peer, "kv", {ONE: into}, have={ONE: user.digest_blocks(into)}).wait(LONG)
        assert user.statistics()["done"] == before + 1
        with pytest.raises(viaduct.InvalidError, match="3 blocks"):
            one = user.digest_blocks(ours.blocks(1024)[[0]])
            user.fetch(peer, "kv", {ONE: into}, have={ONE: one})
        with pytest.raises(viaduct.InvalidError, match="not taken"):
            user.fetch(peer, "kv", {ONE: into}, have={TWO: have})


def test_without_a_meeting_place_a_parcel_has_no_name_there(ends):
    owner, blocks, user, peer, ours = ends
    with pytest.raises(viaduct.InvalidError, match="VIADUCT_MEET|meet"):
        owner.publish("kv", {ONE: blocks[[9]]}, at_place=True)
    with pytest.raises(viaduct.InvalidError, match="no meeting place"):
        user.fetch(None, "kv", {ONE: (ours.address, 1024)})


def test_the_last_object_of_a_parcel_ends_it(ends):
    owner, blocks, user, peer, ours = ends
    first = owner.publish("kv", {ONE: blocks[[9]]}, version=1)
    again = owner.publish("kv", {ONE: blocks[[9]]}, version=1)
    del again
    user.fetch(peer, "kv", {ONE: (ours.address, 1024)}).wait(LONG)
    first.withdraw()
    assert first.wait(LONG).outcome == "cancelled"


def test_a_part_may_come_later_and_a_slice_of_it_be_taken(ends):
    owner, blocks, user, peer, ours = ends
    with owner.publish("kv", parts=[ONE, TWO], version=1) as parcel:
        parcel.ready(ONE, blocks[[9, 3, 7]])
        slices = {ONE: viaduct.Blocks.list([(1000, 100), (2048, 1024)])}
        fetch = user.fetch(peer, "kv", {ONE: (ours.address, 1124), TWO: (ours.address + 2048, 1024)},
                           slices=slices)
        fetch.wait_part(ONE, LONG)
        assert list(bytes(ours)[:1124]) == [9] * 24 + [3] * 76 + [7] * 1024
        assert (fetch.state, fetch.end) == ("running", None)
        assert fetch.missing == parcel.missing == (TWO,)
        with pytest.raises(viaduct.TimeoutError, match="has not arrived"):
            fetch.wait(0)
        parcel.ready(TWO, blocks[[5]])
        fetch.wait(LONG)
    assert parcel.wait(LONG).outcome == "cancelled"  # the publisher set no number of takers


def test_a_withdrawn_parcel_ends_the_fetch_with_its_reason(ends):
    owner, blocks, user, peer, ours = ends
    parcel = owner.publish("kv", parts=[ONE])
    fetch = user.fetch(peer, "kv", {ONE: (ours.address, 1024)})
    while not fetch.missing:  # until the publisher has offered the parcel
        user.poll()
    parcel.withdraw()
    with pytest.raises(viaduct.CancelledError, match="withdrawn"):
        fetch.wait(LONG)
    assert fetch.end.outcome == "cancelled"
    assert isinstance(fetch.end.error, viaduct.CancelledError)
    parcel = owner.publish("kv", parts=[ONE], version=1, life=0.01)
    assert parcel.wait(LONG).outcome == "expired"


def test_a_group_has_one_end(ends):
    owner, blocks, user, peer, ours = ends
    parcel = owner.publish("kv", {ONE: blocks[[9]], TWO: blocks[[3]]}, takers=1)
    into = ours.blocks(1024)
    first = user.fetch(peer, "kv", {ONE: into[[0]]}, group=("decode", 2, 0))
    first.wait_part(ONE, LONG)
    assert first.state == "running"
    second = user.fetch(peer, "kv", {TWO: into[[1]]}, group=("decode", 2, 1))
    second.wait(LONG)
    first.wait(LONG)
    assert first.end.ranks == second.end.ranks == (0, 1)
    assert parcel.wait(LONG).outcome == "whole"
    other = owner.publish("more", {ONE: blocks[[9]]})
    first = user.fetch(peer, "more", {ONE: into[[0]]}, group=("decode", 2, 0))
    second = user.fetch(peer, "more", {ONE: into[[1]]}, group=("decode", 2, 1))
    second.cancel("no room")
    with pytest.raises(viaduct.Error, match="no room"):
        first.wait(LONG)
    other.withdraw()


def test_fetches_are_awaited(ends):
    owner, blocks, user, peer, ours = ends
    into = ours.blocks(1024)

    async def main():
        waiting = user.fetch(peer, "kv", {ONE: into[[0]], TWO: into[[1]]})
        part = asyncio.ensure_future(viaduct.awaitable(waiting.wait_part, ONE, LONG))
        task = asyncio.ensure_future(_end_of(waiting))
        parcel = owner.publish("kv", {ONE: blocks[[9]]}, parts=[ONE, TWO], takers=1)
        await part
        parcel.ready(TWO, blocks[[3]])
        assert await task is waiting
        assert (await viaduct.awaitable(parcel.wait, LONG)).outcome == "whole"

        never = user.fetch(peer, "never", {ONE: into[[2]]})
        task = asyncio.ensure_future(_end_of(never))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert never.state == "cancelled"

    asyncio.run(asyncio.wait_for(main(), LONG))


async def _end_of(fetch):
    return await fetch


def test_a_killed_publisher_ends_the_fetch_as_lost(agent):
    with Server(environment=False) as server:
        peer = agent.connect(server.card)
        peer.ready(LONG)
        ours = agent.allocate(1024)
        assert server.ask("globals().update(p=agent.publish('kv', parts=[(0, 1)]))") == "None"
        fetch = agent.fetch(peer, "kv", {ONE: ours}, timeout=LONG)
        server.signal(signal.SIGKILL)
        with pytest.raises(viaduct.PeerLostError):
            fetch.wait(LONG)
        assert fetch.state == "lost"


def test_a_later_life_of_the_publisher_is_refused(ends):
    owner, blocks, user, peer, ours = ends
    with owner.publish("kv", {ONE: blocks[[9]]}):
        user.fetch(peer, "kv", {ONE: (ours.address, 1024)}, owner=owner.id).wait(LONG)
        fetch = user.fetch(peer, "kv", {ONE: (ours.address, 1024)}, owner=user.id)
        with pytest.raises(viaduct.InvalidError, match=owner.id.hex()):
            fetch.wait(LONG)
    with pytest.raises(viaduct.InvalidError, match="Agent.id"):
        user.fetch(peer, "kv", {ONE: (ours.address, 1024)}, owner=b"x")


def test_bad_parcels_are_refused(ends):
    owner, blocks, user, peer, ours = ends
    memory = (ours.address, 1024)
    with pytest.raises(viaduct.InvalidError, match="not taken"):
        user.fetch(peer, "kv", {ONE: memory}, slices={TWO: blocks})
    with pytest.raises(viaduct.InvalidError, match="no memory"):
        user.fetch(peer, "kv", {})
    with pytest.raises(viaduct.InvalidError, match="overlap"):
        user.fetch(peer, "kv", {ONE: memory, TWO: memory})
    with owner.publish("kv", {ONE: blocks[[9]]}, layout=5):
        fetch = user.fetch(peer, "kv", {ONE: memory}, layout=6)
        with pytest.raises(viaduct.InvalidError, match="5.*6|6.*5"):
            fetch.wait(LONG)
        assert fetch.end.outcome == "failed"
        with pytest.raises(viaduct.InvalidError):
            owner.publish("kv", {TWO: blocks[[9]]}, layout=5)
