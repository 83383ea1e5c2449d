"""Tests cards that grant a part: narrowing, revoking, and errors in the words of Python."""

import time
from datetime import datetime, timedelta, timezone

import pytest
from helpers import LONG

import viaduct


@pytest.fixture
def owner():
    """Yields an agent with the pins "a/1" and "b/1"."""
    with viaduct.Agent(name="owner", environment=False) as agent:
        pins = [agent.allocate(4096, label=label) for label in ("a/1", "b/1")]
        yield agent
        del pins


def test_the_holder_of_a_card_sees_what_it_grants(owner, agent):
    card = owner.export_card(pins="a/*", access="read", until=time.time() + 3600)
    peer = agent.connect(card)
    peer.ready(LONG)
    assert peer.pin("a/1", LONG).read_only
    assert [pin.label for pin in peer.pins] == ["a/1"]
    memory = agent.allocate(4096)
    agent.read(peer, memory, peer.pin("a/1", LONG))
    with pytest.raises(viaduct.DeniedError, match="read-only"):
        agent.plan("write", peer, memory, peer.pin("a/1", LONG))


def test_a_card_is_narrowed_without_its_owner(owner, agent):
    wide = owner.export_card(until=datetime.now(timezone.utc) + timedelta(hours=1))
    card = viaduct.narrow_card(wide, pins="b/*", access="write", name="here")
    assert viaduct.card_grants(card).startswith("pins like b/*, writing, until 2")
    assert viaduct.card_id(card) != viaduct.card_id(wide)
    assert viaduct.card_id(owner.card) is None
    assert viaduct.card_grants(owner.card).startswith("all pins, reading and writing")
    peer = agent.connect(card)
    peer.ready(LONG)
    assert peer.pin("b/1", LONG).write_only
    assert len(peer.pins) == 1
    with pytest.raises(viaduct.InvalidError, match="no label matches both"):
        viaduct.narrow_card(card, pins="a/*")


@pytest.mark.parametrize("by_id", [False, True])
def test_a_revoked_card_ends_its_session(owner, agent, by_id):
    card = owner.export_card(pins="a/*")
    peer = agent.connect(viaduct.narrow_card(card))
    peer.ready(LONG)
    owner.revoke_card(viaduct.card_id(card) if by_id else card)
    peer.over(1, LONG)
    with pytest.raises(viaduct.DeniedError, match="revoked"):
        peer.ready(LONG)


def test_all_cards_with_a_grant_are_revoked(owner, agent):
    peer = agent.connect(owner.export_card())
    peer.ready(LONG)
    owner.revoke_cards()
    peer.over(1, LONG)
    with viaduct.Agent(name="third", environment=False) as third:
        third.connect(owner.card).ready(LONG)


def test_the_holder_limits_what_the_owner_reaches(owner, agent):
    with agent.allocate(4096, label="mine/1"), agent.allocate(4096, label="open/1"):
        agent.connect(owner.card, pins="open/*", access="read").ready(LONG)
        back = owner.peer("here")
        assert back.pin("open/1", LONG).read_only
        assert len(back.pins) == 1


def test_bad_grants_say_what_to_do(owner, agent):
    with pytest.raises(viaduct.InvalidError, match='"read", "write" or "both"'):
        owner.export_card(access="all")
    with pytest.raises(viaduct.InvalidError, match="give a later end"):
        owner.export_card(until=1)
    with pytest.raises(viaduct.InvalidError, match="seconds as of time.time()"):
        owner.export_card(until=float("nan"))
    with pytest.raises(viaduct.InvalidError, match="pattern"):
        owner.export_card(pins="")
    with pytest.raises(viaduct.InvalidError, match="grants all"):
        owner.revoke_card(owner.card)
    with pytest.raises(viaduct.InvalidError, match="grants all"):
        viaduct.narrow_card(owner.card)
    with pytest.raises(viaduct.InvalidError, match="no id"):
        owner.revoke_card("00")
    with pytest.raises(viaduct.InvalidError, match="an address and a grant"):
        agent.connect("127.0.0.1:1", pins="*")
