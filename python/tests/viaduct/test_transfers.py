"""Tests transfers: plans, repeated posts, and the objects that a transfer keeps alive."""

import datetime
import gc
import threading
import time

import numpy
import pytest
from helpers import LONG

import viaduct


def test_blocks_go_where_their_numbers_say(pair):
    agent, peer, inbox, remote = pair
    cache = numpy.random.default_rng(7).integers(0, 256, (64, 1024), "uint8")
    with agent.pin(cache):
        ours = numpy.random.default_rng(8).permutation(64)[:20]
        theirs = list(range(500, 540, 2))
        transfer = agent.plan("write", peer, (viaduct.Blocks.of(cache), ours),
                              remote.blocks(1024)[theirs])
        assert (transfer.bytes, transfer.state, transfer.done) == (20 * 1024, "idle", False)
        transfer.post().wait(LONG)
        there = numpy.frombuffer(inbox, "uint8").reshape(1024, 1024)
        assert (there[theirs] == cache[ours]).all()
        untouched = numpy.delete(there, theirs, axis=0)
        assert not untouched.any()
        back = agent.plan("read", peer, viaduct.Blocks.of(cache)[[0]],
                          remote.blocks(1024)[theirs[5:6]])
        back.post().wait(LONG)
        assert (cache[0] == there[theirs[5]]).all()


@pytest.mark.parametrize("side", ["pin", "blocks", "selection", "pair", "array", "slice", "tuple"])
def test_every_form_of_the_local_side(pair, side):
    agent, peer, inbox, remote = pair
    words = numpy.arange(1024, dtype="uint8").reshape(4, 256)
    pin = agent.pin(words)
    blocks = viaduct.Blocks.of(words)
    local, rows = {
        "pin": (pin, [0, 1, 2, 3]), "blocks": (blocks, [0, 1, 2, 3]),
        "selection": (blocks[[2, 1]], [2, 1]), "pair": ((blocks, [3]), [3]),
        "array": (words, [0, 1, 2, 3]), "slice": (words[::2], [0, 2]),
        "tuple": ((pin.address + 256, 256), [1])}[side]
    agent.write(peer, local, remote.blocks(256 * len(rows), count=1), timeout=LONG)
    assert bytes(inbox)[:256 * len(rows)] == words[rows].tobytes()


def test_a_transfer_is_posted_again_and_again(pair):
    agent, peer, inbox, remote = pair
    memory = agent.allocate(4096)
    with agent.plan("write", peer, memory, remote.blocks(4096, count=1)) as transfer:
        for number in range(5):
            memoryview(memory)[:1] = bytes([number])
            transfer.post(note=str(number), timeout=datetime.timedelta(seconds=LONG))
            while not transfer.poll():
                pass
            assert bytes(inbox)[0] == number
    with pytest.raises(viaduct.InvalidError, match="the transfer is closed"):
        transfer.post()
    assert transfer.state == "done" and transfer.path.shares[0].bytes == 4096


def test_wait_before_post_is_refused(pair):
    agent, peer, _, remote = pair
    transfer = agent.plan("write", peer, agent.allocate(1 << 20), remote)
    with pytest.raises(viaduct.InvalidError, match="nothing was posted"):
        transfer.wait()


def test_sides_that_do_not_fit(pair):
    agent, peer, _, remote = pair
    memory = agent.allocate(4096)
    for local, there in ((memory, remote), (memory.blocks(1024)[[0, 0]], remote.blocks(1024)[[1]]),
                         (memory.blocks(1024)[[5]], remote.blocks(1024)[[1]])):
        with pytest.raises(viaduct.InvalidError) as raised:
            agent.plan("write", peer, local, there)
        assert str(raised.value)
    for local, there in ((memory, [1, 2, 3]), (None, remote), (memory.blocks(1024), None)):
        with pytest.raises(TypeError, match="what to do: give a buffer"):
            agent.plan("write", peer, local, there)
    with pytest.raises(viaduct.InvalidError, match="twice|overlap|names"):
        agent.plan("write", peer, memory.blocks(1024)[[0, 1]], remote.blocks(1024)[[1, 1]])
    with pytest.raises(viaduct.InvalidError, match="no operation"):
        agent.plan("WRITE", peer, memory, memory)
    with pytest.raises(viaduct.InvalidError, match="0 indices"):
        agent.plan("write", peer, (memory.blocks(1024), []), remote)


def test_a_path_that_is_required(pair):
    agent, peer, _, remote = pair
    memory = agent.allocate(1 << 20)
    with pytest.raises(viaduct.UnsupportedError):
        agent.write(peer, memory, remote, require="rdma")
    transfer = agent.write(peer, memory, remote, require="backend:tcp", timeout=LONG)
    assert transfer.path.shares[0].backend == "tcp"
    assert str(transfer.path).startswith("tcp/socket 1.0 MiB")


@pytest.mark.parametrize("priority", ["urgent", "normal", "background"])
def test_each_class_of_priority_moves_every_byte(pair, priority):
    agent, peer, inbox, remote = pair
    memory = agent.allocate(4096)
    memoryview(memory)[:] = priority.encode().ljust(4096, b".")
    agent.write(peer, memory, remote.blocks(4096, count=1), priority=priority, timeout=LONG)
    assert bytes(inbox)[:4096] == bytes(memoryview(memory))
    queues = [rail["queues"][priority] for rail in agent.statistics()["rails"]]
    assert all(queue["works"] == 0 for queue in queues)


def test_an_unknown_class_of_priority_is_refused(pair):
    agent, peer, _, remote = pair
    memory = agent.allocate(4096)
    with pytest.raises(viaduct.InvalidError, match="soon.*no class of priority"):
        agent.plan("write", peer, memory, remote.blocks(4096, count=1), priority="soon")


def test_objects_of_another_agent_are_refused(pair):
    agent, peer, _, remote = pair
    with viaduct.Agent(environment=False) as other:
        with pytest.raises(viaduct.InvalidError, match="belongs to another agent"):
            other.plan("write", peer, other.allocate(1 << 20), remote)
        with pytest.raises(viaduct.InvalidError, match="belongs to another agent"):
            agent.plan("write", peer, other.allocate(1 << 20), remote)
        with pytest.raises(viaduct.InvalidError, match="lies at a peer"):
            agent.plan("write", peer, remote, remote)


def test_a_transfer_keeps_its_memory_and_its_agent(pair):
    agent, peer, inbox, remote = pair
    mine = viaduct.Agent(name="mine", environment=False)
    friend = mine.connect(inbox.agent.card)
    friend.ready(LONG)
    there = friend.pin("inbox", LONG).blocks(64, count=1)
    words = numpy.arange(64, dtype="uint8")
    mine.pin(words)  # the unreferenced Pin is collected at once, which withdraws it
    pin = mine.pin(words)
    transfer = mine.plan("write", friend, (pin.address, 64), there)
    del pin, mine, friend, words
    gc.collect()
    transfer.post().wait(LONG)
    assert bytes(inbox)[:64] == bytes(range(64))


def test_a_transfer_keeps_the_outer_one_of_nested_pins(pair):
    agent, peer, inbox, remote = pair
    words = numpy.arange(4096, dtype="uint8")
    outer = agent.pin(words)
    inner = agent.pin(words[1024:1100]), agent.pin(words[:64]), agent.pin(words)
    transfer = agent.plan("write", peer, (outer.address + 2048, 64), remote.blocks(64, count=1))
    del outer, inner
    gc.collect()
    transfer.post().wait(LONG)
    assert bytes(inbox)[:64] == words[2048:2112].tobytes()


def test_a_running_transfer_is_cancelled_when_it_is_dropped(stuck):
    agent = stuck.agent
    assert stuck.state == "running" and not stuck.done and stuck.error is None
    with pytest.raises(viaduct.InvalidError, match="still running"):
        stuck.post()
    with pytest.raises(TimeoutError):
        stuck.wait(0.01)
    assert stuck.state == "running"
    stuck.close()
    assert stuck.state in ("cancelled", "failed")
    assert agent.statistics()["started"] == 1


def test_cancel_ends_a_transfer(stuck):
    stuck.cancel()
    with pytest.raises((viaduct.CancelledError, viaduct.PeerLostError)):
        stuck.wait(LONG)
    assert stuck.done


def test_the_timeout_of_a_post(frozen):
    frozen.post(timeout=0.05)
    with pytest.raises(viaduct.TimeoutError):
        frozen.wait()
    assert frozen.state == "failed" and isinstance(frozen.error, TimeoutError)


def test_a_release_ends_the_transfers_of_the_pin(stuck):
    agent = stuck.agent
    pin = agent.allocate(4096)
    assert not pin.released
    agent.close()  # returns after the transfer has ended
    assert stuck.done
    with pytest.raises(viaduct.Error):
        stuck.wait(LONG)
    with pytest.raises(viaduct.InvalidError, match="agent is closed"):
        stuck.post()
    pin.release()


def test_closing_an_agent_wakes_a_thread_that_waits(stuck):
    raised = []

    def wait():
        try:
            stuck.wait()
        except viaduct.Error as error:
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    stuck.agent.close()
    thread.join(LONG)
    assert not thread.is_alive() and len(raised) == 1


@pytest.mark.parametrize("timeout, kind", [(-1, ValueError), (float("nan"), ValueError),
                                           ("5", TypeError), ([1], TypeError)])
def test_times_that_cannot_be(pair, timeout, kind):
    agent, peer, _, remote = pair
    with pytest.raises(kind, match="timeout"):
        agent.wait_note(timeout)
    with pytest.raises(kind, match="timeout"):
        agent.write(peer, agent.allocate(1 << 20), remote, timeout=timeout)


def test_a_timeout_of_zero_does_not_wait(agent):
    began = time.monotonic()
    with pytest.raises(viaduct.TimeoutError):
        agent.wait_note(0)
    assert time.monotonic() - began < LONG
    assert agent.take_note() is None


def test_notes_that_cannot_be(pair):
    agent, peer, _, _ = pair
    for bad in (None, 5, ["text"], memoryview(bytearray(8))[::2]):
        with pytest.raises(TypeError, match="what to do: give bytes"):
            peer.note(bad)
    with pytest.raises(viaduct.Error, match="MiB|bytes"):
        peer.note(bytes((1 << 20) + 1))
