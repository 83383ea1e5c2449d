"""Tests metadata of agents, invalid metadata, and notifications."""

import time
import uuid

import nixl._bindings as b
import numpy as np
import pytest
from nixl._api import nixl_agent
from nixl_testing import Side, meet, new_notes, run, until


def reads(one, other):
    """Reads a block of the other agent. Returns whether the right bytes arrived."""
    here = one.agent.get_xfer_descs(one.blocks(1), "DRAM")
    there = one.agent.get_xfer_descs(other.blocks(1), "DRAM")
    run(one.agent, one.agent.initialize_xfer("READ", here, there, other.name))
    return (one.memory[:4096] == other.memory[:4096]).all()


def test_metadata_is_small():
    side = Side()
    assert len(side.agent.get_agent_metadata()) <= 1024
    pages = np.zeros(10_000 * 4096, np.uint8)
    rows = np.empty((10_000, 3), np.uint64)
    rows[:, 0] = pages.ctypes.data + np.arange(10_000, dtype=np.uint64) * 4096
    rows[:, 1], rows[:, 2] = 4096, 0
    side.agent.register_memory(rows, "DRAM")
    assert len(side.agent.get_agent_metadata()) <= 40 * 10_000


def test_metadata_grants_one_direction(monkeypatch):
    monkeypatch.setenv("VIADUCT_NIXL_GRANT", "read")
    other = Side(fill=5)
    blob = other.agent.get_agent_metadata()
    monkeypatch.delenv("VIADUCT_NIXL_GRANT")
    one = Side()
    one.agent.add_remote_agent(blob)
    assert reads(one, other)
    here = one.agent.get_xfer_descs(one.blocks(1), "DRAM")
    there = one.agent.get_xfer_descs(other.blocks(1), "DRAM")
    with pytest.raises(b.nixlNotAllowedError, match="read-only"):
        run(one.agent, one.agent.initialize_xfer("WRITE", here, there, other.name))
    assert (other.memory == 5).all()
    monkeypatch.setenv("VIADUCT_NIXL_GRANT", "some")
    with pytest.raises(b.nixlInvalidParamError, match="read, write or all"):
        other.agent.get_partial_agent_metadata(other.agent.get_reg_descs([], "DRAM"), True)


def test_the_same_metadata_again_changes_nothing():
    one, other = Side(), Side(fill=5)
    blob = other.agent.get_agent_metadata()
    names = {one.agent.add_remote_agent(blob) for _ in range(3)}
    assert names == {other.name.encode()}
    assert reads(one, other)
    assert one.agent.add_remote_agent(bytearray(blob)) == other.name.encode()
    assert reads(one, other)


def test_new_metadata_replaces_the_old():
    one, other = Side(), Side()
    one.agent.add_remote_agent(other.agent.get_agent_metadata())
    more = np.full(4096, 8, np.uint8)
    rows = [(more.ctypes.data, 4096, 0)]
    registered = other.agent.register_memory([(*rows[0], "")], "DRAM")
    with pytest.raises(b.nixlNotFoundError):
        one.agent.prep_xfer_dlist(other.name, rows, "DRAM")
    one.agent.add_remote_agent(other.agent.get_agent_metadata())
    one.agent.prep_xfer_dlist(other.name, rows, "DRAM")
    assert one.agent.check_remote_metadata(other.name, one.agent.get_xfer_descs(rows, "DRAM"))
    other.agent.deregister_memory(registered)
    one.agent.add_remote_agent(other.agent.get_agent_metadata())
    with pytest.raises(b.nixlNotFoundError):
        one.agent.prep_xfer_dlist(other.name, rows, "DRAM")
    assert not one.agent.check_remote_metadata(other.name, one.agent.get_xfer_descs(rows, "DRAM"))


def test_stale_metadata_fails_at_once_and_by_name():
    one, other = Side(), Side()
    more = np.full(4096, 8, np.uint8)
    rows = one.agent.get_xfer_descs([(more.ctypes.data, 4096, 0)], "DRAM")
    registered = other.agent.register_memory([(more.ctypes.data, 4096, 0, "")], "DRAM")
    one.agent.add_remote_agent(other.agent.get_agent_metadata())
    here = one.agent.get_xfer_descs(one.blocks(1), "DRAM")
    handle = one.agent.initialize_xfer("READ", here, rows, other.name)
    run(one.agent, handle)
    other.agent.deregister_memory(registered)
    with pytest.raises(b.nixlNotAllowedError):
        run(one.agent, handle)

    def refused():
        try:
            one.agent.initialize_xfer("READ", here, rows, other.name)
        except b.nixlNotAllowedError as error:
            return "not in any pin" in str(error)
        return False

    # Soon the peer learns of the deregistration. From then on, each call fails without a wait.
    began = time.monotonic()
    until("the news", refused)
    assert time.monotonic() - began < 3, "it waited for memory that was withdrawn"


def test_partial_metadata_adds_to_what_is_known():
    one, other = Side(), Side(fill=6)
    more = [np.full(4096, i, np.uint8) for i in (1, 2)]
    lists = [other.agent.register_memory([(m.ctypes.data, 4096, 0, "")], "DRAM") for m in more]
    rows = [one.agent.get_xfer_descs([(m.ctypes.data, 4096, 0)], "DRAM") for m in more]
    blob = other.agent.get_partial_agent_metadata(lists[0], inc_conn_info=True)
    assert one.agent.add_remote_agent(blob) == other.name.encode()
    assert one.agent.check_remote_metadata(other.name, rows[0])
    assert not one.agent.check_remote_metadata(other.name, rows[1])
    one.agent.add_remote_agent(other.agent.get_partial_agent_metadata(lists[1]))
    here = one.agent.get_xfer_descs(one.blocks(1), "DRAM")
    for page, there in zip(more, rows):
        assert one.agent.check_remote_metadata(other.name, there)
        run(one.agent, one.agent.initialize_xfer("READ", here, there, other.name))
        assert (one.memory[:4096] == page[0]).all()
    with pytest.raises(b.nixlNotFoundError, match="not registered"):
        other.agent.get_partial_agent_metadata(other.agent.get_reg_descs([(1, 2, 0, "")], "DRAM"))


def test_partial_metadata_alone_does_not_say_how_to_connect():
    one, other = Side(), Side()
    blob = other.agent.get_partial_agent_metadata(other.registered)
    one.agent.add_remote_agent(blob)
    here = one.agent.get_xfer_descs(one.blocks(1), "DRAM")
    there = one.agent.get_xfer_descs(other.blocks(1), "DRAM")
    with pytest.raises(b.nixlRemoteDisconnectError, match="how to reach it"):
        one.agent.initialize_xfer("READ", here, there, other.name)
    # An empty partial blob with the addresses completes the metadata.
    way = other.agent.get_partial_agent_metadata(other.agent.get_reg_descs([], "DRAM"), True)
    one.agent.add_remote_agent(way)
    assert reads(one, other)


def test_removing_an_agent_never_raises():
    one, other = Side(), Side()
    meet(one, other)
    assert one.agent.check_remote_metadata(other.name)
    remote = one.agent.prep_xfer_dlist(other.name, other.blocks(1), "DRAM")
    one.agent.remove_remote_agent(other.name.encode())
    one.agent.remove_remote_agent(other.name)
    one.agent.remove_remote_agent("nobody")
    one.agent.release_dlist_handle(remote)
    assert not one.agent.check_remote_metadata(other.name)
    with pytest.raises(b.nixlNotFoundError):
        one.agent.prep_xfer_dlist(other.name, other.blocks(1), "DRAM")
    # The other agent has not removed this agent, so its transfers still work.
    assert reads(other, one)
    one.agent.add_remote_agent(other.agent.get_agent_metadata())
    assert reads(one, other)


def test_removing_does_not_end_what_is_prepared():
    one, other = Side(), Side(fill=4)
    meet(one, other)
    local = one.agent.prep_xfer_dlist("", one.blocks(1), "DRAM")
    remote = one.agent.prep_xfer_dlist(other.name, other.blocks(1), "DRAM")
    one.agent.remove_remote_agent(other.name)
    run(one.agent, one.agent.make_prepped_xfer("READ", local, [0], remote, [0]))
    assert (one.memory[:4096] == 4).all()


def test_an_agent_that_was_restarted_is_another_one():
    name = str(uuid.uuid4())
    one, first = Side(), Side(name=name)
    one.agent.add_remote_agent(first.agent.get_agent_metadata())
    assert reads(one, first)
    old = one.agent.prep_xfer_dlist(name, first.blocks(1), "DRAM")
    local = one.agent.prep_xfer_dlist("", one.blocks(1), "DRAM")
    memory = first.memory
    first.agent = None  # closes the first agent
    second = Side(name=name, fill=9)
    # The second agent registers the same address, so only the restart tells the two agents apart.
    second.agent.register_memory([(memory.ctypes.data, memory.size, 0, "")], "DRAM")
    second.agent.add_remote_agent(one.agent.get_agent_metadata())
    second.agent.make_connection(one.name)
    with pytest.raises(b.nixlRemoteDisconnectError):
        run(one.agent, one.agent.make_prepped_xfer("READ", local, [0], old, [0]))
    assert one.agent.add_remote_agent(second.agent.get_agent_metadata()) == name.encode()
    assert reads(one, second)


def test_ones_own_metadata_is_taken_quietly():
    one = Side()
    assert one.agent.add_remote_agent(one.agent.get_agent_metadata()) == one.name.encode()


@pytest.mark.parametrize(
    "blob,text",
    [
        (b"", "cut short: 0 bytes"),
        (b"VIAD", "cut short"),
        (b"hello, this is no metadata", "not metadata of Viaduct"),
        (b"nixlSerDes|1|agent", "the real NIXL"),
        (b"\x00\x01nixlSerDes|1|agent", "the real NIXL"),
        (b"VIADCARD" + b"\0" * 200, "not metadata"),
        (b"VIADNIXL" + b"\xff" * 300, "version 4294967295"),
        (b"VIADNIXL\1\0\0\0\xff\xff\xff\xff" + b"a" * 50, "cut short"),
        ("a string", "not metadata"),
    ],
)
def test_foreign_bytes_are_named(blob, text):
    one = Side()
    with pytest.raises(b.nixlInvalidParamError, match=text):
        one.agent.add_remote_agent(blob)


def test_every_truncation_and_every_flipped_bit_is_refused():
    one, other = Side(), Side()
    blob = other.agent.get_agent_metadata()
    for length in range(len(blob)):
        with pytest.raises(b.nixlInvalidParamError):
            one.agent.add_remote_agent(blob[:length])
    refusals = (b.nixlInvalidParamError, b.nixlNotSupportedError)
    for place in range(len(blob)):
        wrong = bytearray(blob)
        wrong[place] ^= 1 << place % 8
        with pytest.raises(refusals):
            one.agent.add_remote_agent(bytes(wrong))
    with pytest.raises(b.nixlInvalidParamError, match="longer"):
        one.agent.add_remote_agent(blob + b"\0")
    with pytest.raises(TypeError):
        one.agent.add_remote_agent(7)
    assert not one.agent.check_remote_metadata(other.name)


def test_bindings_tell_unknown_agents():
    one = nixl_agent(str(uuid.uuid4()))
    with pytest.raises(b.nixlNotFoundError):
        one.agent.invalidateRemoteMD("nobody")


# Tests of notifications


def test_notifications_are_any_bytes_in_order():
    one, other = Side(), Side()
    one.agent.add_remote_agent(other.agent.get_agent_metadata())
    sent = [b"a", b"", bytes(range(256)) * 200, "ü".encode(), b"\xff\xfe"]
    for message in sent:
        one.agent.send_notif(other.name, message)
    one.agent.send_notif(other.name, notif_msg="text")
    one.agent.send_notif(
        remote_agent_name=other.name.encode(), notif_msg=memoryview(b"view"), backend="UCX"
    )
    received = []
    while len(received) < len(sent) + 2:
        received += new_notes(other.agent, one.name)
    assert received == [*sent, b"text", b"view"]
    assert other.agent.get_new_notifs() == {}
    with pytest.raises(TypeError, match="the message: an argument of the type int"):
        one.agent.send_notif(other.name, 7)
    with pytest.raises(b.nixlInvalidParamError, match="limit"):
        one.agent.send_notif(other.name, b"x" * (2 << 20))


def test_whoever_connected_can_be_notified():
    one, other = Side(), Side()
    one.agent.add_remote_agent(other.agent.get_agent_metadata())
    one.agent.make_connection(other.name)
    until("the connection", lambda: sends(other.agent, one.name))
    assert new_notes(one.agent, other.name) == [b"back"]


def sends(agent, name):
    try:
        agent.send_notif(name, b"back")
    except (b.nixlNotFoundError, b.nixlRemoteDisconnectError):
        return False
    return True


def test_notifications_are_kept_until_they_are_looked_up():
    one, other = Side(), Side()
    one.agent.add_remote_agent(other.agent.get_agent_metadata())
    for message in (b"req1:a", b"req2:b", b"", b"x:req3"):
        one.agent.send_notif(other.name, message)
    until("all", lambda: len(other.agent.update_notifs().get(one.name, [])) == 4)
    assert other.agent.update_notifs() is other.agent.notifs
    assert not other.agent.check_remote_xfer_done(one.name, b"req3")
    assert not other.agent.check_remote_xfer_done("nobody", b"req1")
    assert other.agent.check_remote_xfer_done(one.name, b"req3", tag_is_prefix=False)
    assert other.agent.check_remote_xfer_done(one.name.encode(), "req2")
    assert not other.agent.check_remote_xfer_done(one.name, b"req2")
    assert other.agent.check_remote_xfer_done(one.name, b"")
    assert other.agent.notifs[one.name] == [b""]
