"""Tests leases: blocks that one agent lends to another for a time."""

import numpy
import pytest
from helpers import LONG

import viaduct


@pytest.fixture
def ends(agent):
    """Yields an owner with 64 blocks of 1 KiB, the borrower, and the peers at both ends."""
    with viaduct.Agent(name="there", environment=False) as other:
        peer = agent.connect(other.card)
        peer.ready(LONG)
        back = other.peer("here")
        back.ready(LONG)
        cache = other.allocate(64 << 10, label="cache")
        peer.pin("cache", LONG)
        numpy.frombuffer(cache, "uint8")[:] = numpy.arange(64).repeat(1024)
        yield other, back, cache.blocks(1024), agent, peer


def test_a_lease_lets_a_peer_read_and_is_given_back(ends):
    owner, to_user, blocks, user, to_owner = ends
    lease = owner.lease(to_user, blocks[[9, 40, 3]], duration=LONG)
    memory = user.allocate(1024)
    with user.borrow(to_owner, lease.ticket) as borrowed:
        assert (len(borrowed), borrowed.write, borrowed.state) == (3, False, "live")
        for position, value in enumerate([9, 40, 3]):
            borrowed.plan("read", memory, [position]).post().wait(LONG)
            assert bytes(memory) == bytes([value]) * 1024
        with pytest.raises(viaduct.DeniedError, match="for reading"):
            borrowed.plan("write", memory, [0])
    assert lease.wait(LONG) == "returned"
    assert borrowed.wait(LONG) == "returned"
    assert owner.statistics()["lent"]["returned"] == 1
    assert user.statistics()["borrowed"]["returned"] == 1


def test_an_access_after_the_end_is_stale(ends):
    owner, to_user, blocks, user, to_owner = ends
    lease = owner.lease(to_user, blocks[[9]])
    borrowed = user.borrow(to_owner, lease.ticket)
    memory = user.allocate(1024)
    transfer = borrowed.plan("read", memory)
    transfer.post().wait(LONG)
    lease.revoke()
    assert lease.state == "revoked"
    assert borrowed.wait(LONG) == "revoked"
    with pytest.raises(viaduct.StaleError, match="lease 1 was revoked"):
        transfer.post()
    with pytest.raises(viaduct.StaleError):
        user.borrow(to_owner, lease.ticket)
    assert user.statistics()["stale"] == 2


def test_a_lease_for_writing_ends_by_its_time(ends):
    owner, to_user, blocks, user, to_owner = ends
    lease = owner.lease(to_user, blocks, duration=LONG, write=True)
    borrowed = user.borrow(to_owner, lease.ticket)
    memory = user.allocate(1024)
    borrowed.plan("write", memory, [63]).post().wait(LONG)
    lease.renew(0.001)
    assert lease.wait(LONG) == "expired"
    assert borrowed.wait(LONG) == "expired"
    with pytest.raises(viaduct.StaleError, match="expired"):
        lease.renew(1)


def test_bad_leases_are_refused(ends):
    owner, to_user, blocks, user, to_owner = ends
    with pytest.raises(viaduct.InvalidError, match="no duration"):
        owner.lease(to_user, blocks, duration=0)
    with pytest.raises(viaduct.InvalidError, match="not a ticket"):
        user.borrow(to_owner, b"x" * 100)
    with owner.lease(to_user, blocks, write=True) as lease:
        with pytest.raises(viaduct.InvalidError, match="another lease"):
            owner.lease(to_user, blocks[[1]])
    assert lease.state == "revoked"
