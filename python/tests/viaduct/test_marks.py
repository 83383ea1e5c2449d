"""Tests marks: numbers that tell a peer which parts of the data are complete."""

import gc
import threading

import numpy
import pytest
from helpers import LONG, Program

import viaduct


@pytest.fixture
def ends(pair):
    """Yields the sender, its peer, 16 blocks at both ends, the receiver, its peer and its array."""
    sender, peer, inbox, remote = pair
    receiver = inbox.agent
    back = receiver.peer("here")
    back.ready(LONG)
    memory = sender.allocate(1 << 20)
    numpy.frombuffer(memory, "uint8").reshape(16, -1)[:] = numpy.arange(16)[:, None]
    blocks = memory.blocks(1 << 16), remote.blocks(1 << 16)
    yield sender, peer, *blocks, receiver, back, numpy.frombuffer(inbox, "uint8")[::1 << 16]


def test_a_mark_follows_the_data_of_its_transfer(ends):
    sender, peer, ours, theirs, receiver, back, firsts = ends
    marks = receiver.open_marks(back, 7, marks=16)
    transfer = sender.plan("write", peer, ours[[5]], theirs[[5]])
    transfer.post(mark=(7, 5)).wait(LONG)
    marks.wait(5, LONG)
    assert firsts[5] == 5 and marks.has(5) and not marks.has(4)
    assert (marks.number, marks.count, marks.error) == (7, 1, None)
    sender.write(peer, ours[[6]], theirs[[6]], mark=(7, 6))
    sender.read(peer, ours[[5]], theirs[[5]], mark=(7, 8))
    marks.wait_count(3, timeout=LONG)
    assert firsts[6] == 6 and marks.has(8)
    with pytest.raises(viaduct.TimeoutError, match="3 of 16 marks of stream 7"):
        marks.wait(0, 0)


def test_both_ends_of_a_stream_send_marks(ends):
    sender, peer, ours, theirs, receiver, back, firsts = ends
    mine = sender.open_marks(peer, 1, 2)
    mine.mark(3)  # before the other end is open
    other = receiver.open_marks(back, 1, 4)
    other.wait(3, LONG)
    other.mark(1)
    mine.wait(1, LONG)
    sender.write(peer, ours, theirs, mark=(mine, 0))
    other.wait(0, LONG)
    assert list(firsts) == list(range(16))


def test_the_end_of_a_stream_ends_its_waits_and_posts(ends):
    sender, peer, ours, theirs, receiver, back, _ = ends
    marks, mine = receiver.open_marks(back, 7, 2), sender.open_marks(peer, 7)
    mine.mark(1)
    marks.wait(1, LONG)
    ended = []

    def wait():
        try:
            marks.wait(0, LONG)
        except viaduct.CancelledError as error:
            ended.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    mine.end("out of blocks")
    waiting.join(LONG)
    assert ended[0].detail == "out of blocks" and ended[0].peer == "here"
    marks.wait(1)  # mark 1 has arrived before the failure
    assert marks.error.detail == "out of blocks"
    with pytest.raises(viaduct.CancelledError, match="out of blocks"):
        sender.write(peer, ours, theirs, mark=(7, 0))
    del marks, ended
    gc.collect()
    mine.over(LONG)


def test_a_collected_stream_ends_the_other_end(ends):
    sender, peer, _, _, receiver, back, _ = ends
    marks, mine = receiver.open_marks(back, 7, 2), sender.open_marks(peer, 7, 1)
    del marks
    gc.collect()
    with pytest.raises(viaduct.CancelledError, match="closed the stream"):
        mine.wait(0, LONG)


def test_impossible_marks_are_refused(ends):
    sender, peer, ours, theirs, receiver, back, _ = ends
    marks = receiver.open_marks(back, 7, 2)
    with pytest.raises(viaduct.InvalidError, match="open already"):
        receiver.open_marks(back, 7)
    with pytest.raises(viaduct.InvalidError, match="65537 marks"):
        receiver.open_marks(back, 8, 1 << 32)
    with pytest.raises(viaduct.InvalidError, match="which has 2 marks"):
        marks.wait(2, LONG)
    with pytest.raises(viaduct.InvalidError, match="at most 65536"):
        sender.write(peer, ours, theirs, mark=(7, 65536))
    with pytest.raises(TypeError, match="stream, number"):
        sender.write(peer, ours, theirs, mark=7)
    receiver.close()
    with pytest.raises(viaduct.InvalidError, match="closed"):
        marks.wait(0, LONG)


def test_a_child_of_fork_does_not_end_the_streams_of_its_parent():
    program = """
    import os, viaduct
    agents = [viaduct.Agent(name=name, environment=False) for name in "ab"]
    peer = agents[0].connect(agents[1].card)
    peer.ready(30)
    back = agents[1].peer("a")
    back.ready(30)
    marks = agents[0].open_marks(peer, 1, 2)
    sender = agents[1].open_marks(back, 1)
    child = os.fork()
    if child == 0:
        del marks                                   # and the rest at the exit
    else:
        _, status = os.waitpid(child, 0)
        sender.mark(0)
        marks.wait(0, 30)
        print(status, marks.count)
    """
    with Program(program) as process:
        assert process.finish() == (0, "0 1\n")
