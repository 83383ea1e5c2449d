"""Tests transfers between two agents, with and without prepared lists, and their errors."""

import time

import nixl._bindings as b
import numpy as np
import pytest
from nixl_testing import Side, finish, meet, new_notes, run


@pytest.fixture
def pair():
    one, other = Side(), Side()
    one.memory[:] = np.arange(one.memory.size) % 251
    meet(one, other)
    return one, other


def prepared(one, other, rows_here, rows_there):
    return (
        one.agent.prep_xfer_dlist("NIXL_INIT_AGENT", rows_here, "DRAM"),
        one.agent.prep_xfer_dlist(other.name, rows_there, "DRAM"),
    )


@pytest.mark.parametrize("operation", ["READ", "WRITE"])
@pytest.mark.parametrize("indices", [list, np.array, lambda x: np.array(x, np.int32)])
def test_blocks_go_by_index(pair, operation, indices):
    one, other = pair
    other.memory[:] = 255 - one.memory
    source, target = (other, one) if operation == "READ" else (one, other)
    expected = source.memory.copy()
    before = target.memory.copy()
    local, remote = prepared(one, other, one.blocks(64), other.blocks(64))
    here, there = [5, 1, 60], [0, 63, 2]
    handle = one.agent.make_prepped_xfer(
        operation, local, indices(here), remote, indices(there), b"n"
    )
    run(one.agent, handle)
    wanted = before.reshape(-1, 4096)
    pairs = zip(there, here) if operation == "READ" else zip(here, there)
    for of_source, of_target in pairs:
        wanted[of_target] = expected.reshape(-1, 4096)[of_source]
    assert (target.memory.reshape(-1, 4096) == wanted).all()
    assert new_notes(other.agent, one.name) == [b"n"]
    one.agent.release_xfer_handle(handle)
    one.agent.release_xfer_handle(handle)


def test_one_dimensional_arrays_of_every_integer_type(pair):
    one, other = pair
    local, remote = prepared(one, other, one.blocks(64), other.blocks(64))
    for dtype in "bBhHiIlLqQ":
        other.memory[:] = 0
        picks = np.arange(0, 60, 2, dtype=dtype)
        run(one.agent, one.agent.make_prepped_xfer("WRITE", local, picks, remote, picks[::-1]))
        for here, there in zip(picks.tolist(), picks.tolist()[::-1]):
            assert (other.memory[there * 4096 :][:4096] == one.memory[here * 4096 :][:4096]).all()


def test_strided_rows_name_many_blocks(pair):
    one, other = pair
    local = one.agent.prep_xfer_dlist("", np.array([[one.address, 512, 0, 1024, 1000]]), "DRAM")
    remote = one.agent.prep_xfer_dlist(other.name, [(other.address, 512, 0, 512, 1000)], "DRAM")
    picks = [999, 0, 7]
    run(one.agent, one.agent.make_prepped_xfer("WRITE", local, picks, remote, picks))
    for pick in picks:
        assert (other.memory[pick * 512 :][:512] == one.memory[pick * 1024 :][:512]).all()
    assert (other.memory[512 : 7 * 512] == 0).all()
    with pytest.raises(b.nixlNotFoundError, match="descriptor 1023"):
        one.agent.prep_xfer_dlist("", [(one.address, 1024, 0, 1025, 1024)], "DRAM")


@pytest.mark.parametrize("note", [b"", "text ü", b"\xff\x00bytes"])
def test_unprepared_transfers(pair, note):
    one, other = pair
    handle = one.agent.initialize_xfer(
        operation="WRITE",
        local_descs=one.agent.get_xfer_descs(one.blocks(3), "DRAM"),
        remote_descs=one.agent.get_xfer_descs(other.blocks(3, first=4), "DRAM"),
        remote_agent=other.name.encode(),
        notif_msg=note,
    )
    run(one.agent, handle)
    assert (other.memory[4 * 4096 :][: 3 * 4096] == one.memory[: 3 * 4096]).all()
    expected = note.encode() if isinstance(note, str) else note
    if expected:
        assert new_notes(other.agent, one.name) == [expected]


def test_a_handle_is_posted_again_with_its_note_or_another(pair):
    one, other = pair
    local, remote = prepared(one, other, one.blocks(1), other.blocks(1))
    handle = one.agent.make_prepped_xfer("WRITE", local, [0], remote, [0], b"first")
    for note, expected in ((b"", b"first"), ("second", b"second"), (b"", b"second")):
        one.memory[0] += 1
        run(one.agent, handle, note)
        assert new_notes(other.agent, one.name) == [expected]
        assert other.memory[0] == one.memory[0]


def test_overlapping_and_repeated_descriptors(pair):
    one, other = pair
    rows = [(one.address, 4096, 0), (one.address, 4096, 0), (one.address + 100, 4096, 0)]
    local, remote = prepared(one, other, rows, other.blocks(8))
    run(
        one.agent,
        one.agent.make_prepped_xfer("WRITE", local, [0, 1, 2, 2, 0], remote, [0, 1, 2, 3, 4]),
    )
    for place, start in enumerate([0, 0, 100, 100, 0]):
        assert (other.memory[place * 4096 :][:4096] == one.memory[start:][:4096]).all()
    # A transfer may write with a list that has overlaps, if the chosen descriptors do not overlap.
    other.memory[:] = 9
    run(one.agent, one.agent.make_prepped_xfer("READ", local, [2], remote, [0]))
    assert (one.memory[100:4196] == 9).all() and one.memory[99] != 9 and one.memory[4196] != 9
    with pytest.raises(b.nixlInvalidParamError):
        one.agent.make_prepped_xfer("READ", local, [0, 2], remote, [0, 1])


def test_the_same_block_is_read_twice(pair):
    one, other = pair
    local, remote = prepared(one, other, one.blocks(4), other.blocks(4))
    other.memory[4096:8192] = 77
    run(one.agent, one.agent.make_prepped_xfer("READ", local, [0, 3], remote, [1, 1]))
    assert (one.memory[:4096] == 77).all() and (one.memory[3 * 4096 : 4 * 4096] == 77).all()
    with pytest.raises(b.nixlInvalidParamError):
        one.agent.make_prepped_xfer("WRITE", local, [0, 3], remote, [1, 1])


@pytest.mark.parametrize("name", ["own", b"own"])
def test_copies_within_one_agent(pair, name):
    one, _ = pair
    name = one.name.encode() if isinstance(name, bytes) else one.name
    local = one.agent.prep_xfer_dlist("", one.blocks(2), "DRAM")
    remote = one.agent.prep_xfer_dlist(name, one.blocks(2, first=8), "DRAM")
    run(
        one.agent, one.agent.make_prepped_xfer("WRITE", local, [0, 1], remote, [0, 1], b"to myself")
    )
    assert (one.memory[8 * 4096 :][:8192] == one.memory[:8192]).all()
    assert new_notes(one.agent, one.name) == [b"to myself"]


def test_wrong_operations_are_refused_before_handles_are_looked_at(pair):
    one, _ = pair
    with pytest.raises(KeyError, match="COPY"):
        one.agent.make_prepped_xfer("COPY", 1, [0], 2, [0])
    with pytest.raises(KeyError, match="COPY"):
        one.agent.initialize_xfer("COPY", None, None, "nobody")


@pytest.mark.parametrize(
    "here,there,error,text",
    [
        ([0], [0, 1], b.nixlInvalidParamError, "1 local and 2 remote"),
        ([], [], b.nixlInvalidParamError, "no descriptors"),
        ([4], [0], b.nixlInvalidParamError, "local index 4 at place 0, of a list of 4"),
        ([0, 1], [0, 900], b.nixlInvalidParamError, "remote index 900 at place 1"),
        ([0], [3], b.nixlInvalidParamError, "pair 0: the local descriptor has 4096 bytes"),
        ([-1], [0], ValueError, "index is -1"),
        (np.array([-1]), [0], ValueError, "index -1 at place 0"),
        ([1 << 32], [0], ValueError, "index 4294967296"),
        (np.zeros((2, 2), int), [0], ValueError, "2 dimensions"),
        (np.zeros(2), [0], TypeError, "integers"),
        ("0", [0], TypeError, "got str"),
        (0, [0], TypeError, "got int"),
        ([0.5], [0], TypeError, "index is float"),
        (range(-1, 3), [0], ValueError, "index is -1"),
    ],
)
def test_wrong_indices_say_what_to_do(pair, here, there, error, text):
    one, other = pair
    rows = [*other.blocks(3), (other.address, 100, 0)]
    local, remote = prepared(one, other, one.blocks(4), rows)
    with pytest.raises(error, match=text):
        one.agent.make_prepped_xfer("READ", local, here, remote, there)


def test_ranges_go_in_any_direction(pair):
    one, other = pair
    local, remote = prepared(one, other, one.blocks(64), other.blocks(64))
    run(
        one.agent, one.agent.make_prepped_xfer("WRITE", local, range(63, -1, -3), remote, range(22))
    )
    for there, here in enumerate(range(63, -1, -3)):
        assert (other.memory[there * 4096 :][:4096] == one.memory[here * 4096 :][:4096]).all()


def test_unequal_lists_are_refused(pair):
    one, other = pair
    here = one.agent.get_xfer_descs(one.blocks(2), "DRAM")
    there = one.agent.get_xfer_descs(other.blocks(3), "DRAM")
    with pytest.raises(b.nixlInvalidParamError, match="2 local and 3 remote"):
        one.agent.initialize_xfer("READ", here, there, other.name)


def test_memory_that_is_not_registered_is_not_found(pair):
    one, other = pair
    end = one.address + one.memory.size
    for wrong in (
        (end, 1, 0),
        (end - 10, 11, 0),
        (one.address - 1, 2, 0),
        ((1 << 64) - 1, 2, 0),
        (0, 1 << 63, 0),
    ):
        with pytest.raises(b.nixlNotFoundError, match="descriptor 1"):
            one.agent.prep_xfer_dlist("", [(end - 10, 10, 0), wrong], "DRAM")
    with pytest.raises(b.nixlNotFoundError, match=other.name):
        one.agent.prep_xfer_dlist(other.name, [(1, 1, 0)], "DRAM")
    with pytest.raises(b.nixlInvalidParamError, match="0 bytes"):
        one.agent.prep_xfer_dlist("", [(one.address, 0, 0)], "DRAM")


def test_unknown_agents_are_not_found(pair):
    one, _ = pair
    rows = one.agent.get_xfer_descs(one.blocks(1), "DRAM")
    for call in (
        lambda: one.agent.prep_xfer_dlist("nobody", rows),
        lambda: one.agent.initialize_xfer("READ", rows, rows, "nobody"),
        lambda: one.agent.make_connection("nobody"),
    ):
        with pytest.raises(b.nixlNotFoundError, match="nobody"):
            call()
    with pytest.raises(b.nixlNotFoundError):
        one.agent.send_notif("nobody", b"x")


def test_handles_are_used_by_their_agent_and_until_they_are_released(pair):
    one, other = pair
    local, remote = prepared(one, other, one.blocks(1), other.blocks(1))
    handle = one.agent.make_prepped_xfer("WRITE", local, [0], remote, [0])
    with pytest.raises(b.nixlNotFoundError, match="another agent"):
        other.agent.transfer(handle)
    with pytest.raises(b.nixlNotFoundError, match="another agent"):
        other.agent.make_prepped_xfer("WRITE", local, [0], remote, [0])
    with pytest.raises(b.nixlInvalidParamError, match="local side"):
        one.agent.make_prepped_xfer("WRITE", remote, [0], remote, [0])
    with pytest.raises(b.nixlInvalidParamError, match="remote side"):
        one.agent.make_prepped_xfer("WRITE", local, [0], local, [0])
    one.agent.release_dlist_handle(local)
    one.agent.release_dlist_handle(local)
    run(one.agent, handle)  # the handle stays valid after the release of its list
    with pytest.raises(b.nixlNotFoundError, match="released"):
        one.agent.make_prepped_xfer("WRITE", local, [0], remote, [0])
    one.agent.release_xfer_handle(handle)
    for call in (one.agent.transfer, one.agent.check_xfer_state, one.agent.get_xfer_telemetry,
                 one.agent.query_xfer_backend, one.agent.estimate_xfer_cost):  # fmt: skip
        with pytest.raises(b.nixlNotFoundError, match="released"):
            call(handle)


def test_a_forgotten_handle_is_released(pair):
    one, other = pair
    local, remote = prepared(one, other, one.blocks(1), other.blocks(1))
    handle = one.agent.make_prepped_xfer("WRITE", local, [0], remote, [0])
    number = handle._handle
    del handle
    with pytest.raises(b.nixlNotFoundError):
        one.agent.agent.getXferStatus(number)


def test_a_transfer_that_was_not_posted(pair):
    one, other = pair
    local, remote = prepared(one, other, one.blocks(1), other.blocks(1))
    handle = one.agent.make_prepped_xfer("WRITE", local, [0], remote, [0])
    assert handle
    with pytest.raises(b.nixlNotPostedError):
        one.agent.check_xfer_state(handle)
    assert one.agent.query_xfer_backend(handle) == "UCX"
    with pytest.raises(b.nixlNotSupportedError):
        one.agent.estimate_xfer_cost(handle)
    one.agent.release_xfer_handle(handle)


def test_telemetry_after_done():
    one, other = Side(capture_telemetry=True), Side()
    meet(one, other)
    local, remote = prepared(one, other, one.blocks(4), other.blocks(4))
    handle = one.agent.make_prepped_xfer("WRITE", local, [0, 2], remote, [0, 2])
    with pytest.raises(b.nixlNoTelemetryError, match="not posted"):
        one.agent.get_xfer_telemetry(handle)
    for _ in range(2):
        began = time.time()
        run(one.agent, handle)
        told = one.agent.get_xfer_telemetry(handle)
        assert isinstance(told, b.nixlXferTelemetry)
        assert told.totalBytes == 8192 and told.descCount == 2
        assert began - 1 <= told.startTime / 1e6 <= time.time() + 1
        assert 0 <= told.postDuration <= told.xferDuration + 1
        assert told.xferDuration <= (time.time() - began) * 1e6 + 1
    assert one.agent.get_xfer_telemetry(handle).xferDuration == told.xferDuration


def test_telemetry_is_off_unless_asked_for(pair):
    one, other = pair
    local, remote = prepared(one, other, one.blocks(1), other.blocks(1))
    handle = one.agent.make_prepped_xfer("WRITE", local, [0], remote, [0])
    run(one.agent, handle)
    with pytest.raises(b.nixlNoTelemetryError, match="capture_telemetry"):
        one.agent.get_xfer_telemetry(handle)


def test_memory_deregistered_since_then(pair):
    one, other = pair
    local, remote = prepared(one, other, one.blocks(1), other.blocks(1))
    handle = one.agent.make_prepped_xfer("WRITE", local, [0], remote, [0])
    run(one.agent, handle)
    one.agent.deregister_memory(one.registered)
    with pytest.raises(b.nixlNotAllowedError):
        one.agent.transfer(handle)


def test_memory_registered_while_the_peer_is_known(pair):
    """Adds a blob before the connection has announced the registration that the blob contains."""
    one, other = pair
    more = [np.full(4096, i + 1, np.uint8) for i in range(200)]
    for page in more:
        rows = [(page.ctypes.data, 4096, 0)]
        other.agent.register_memory([(*rows[0], "")], "DRAM")
        one.agent.add_remote_agent(other.agent.get_agent_metadata())
        here = one.agent.get_xfer_descs(one.blocks(1), "DRAM")
        run(
            one.agent,
            one.agent.initialize_xfer(
                "READ", here, one.agent.get_xfer_descs(rows, "DRAM"), other.name
            ),
        )
        assert (one.memory[:4096] == page[0]).all()


def test_memory_registered_again_at_the_same_address_is_read_at_once(pair):
    """Adds a blob before the connection has announced the deregistration and the registration."""
    one, other = pair
    for i in range(300):
        other.agent.deregister_memory(other.registered)
        other.memory[:4096] = i % 251
        other.registered = other.agent.register_memory(
            [(other.address, other.memory.size, 0, "")], "DRAM"
        )
        one.agent.add_remote_agent(other.agent.get_agent_metadata())
        handle = one.agent.initialize_xfer(
            "READ",
            one.agent.get_xfer_descs(one.blocks(1), "DRAM"),
            one.agent.get_xfer_descs(other.blocks(1), "DRAM"),
            other.name,
        )
        run(one.agent, handle)
        one.agent.release_xfer_handle(handle)
        assert (one.memory[:4096] == i % 251).all()
