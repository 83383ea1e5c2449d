"""Tests agents in two processes."""

import signal
import time

import numpy
import pytest
from helpers import LONG, Server

import viaduct

WAYS = {"local": {"backends": "local"}, "tcp": {"backends": "tcp"}}


@pytest.fixture(params=WAYS)
def server(request):
    with Server(environment=False, **WAYS[request.param]) as started:
        started.settings = {"environment": False, **WAYS[request.param]}
        started.way = request.param
        yield started


@pytest.fixture
def client(server):
    with viaduct.Agent(name="client", **server.settings) as opened:
        yield opened


def connected(client, server):
    peer = client.connect(server.card)
    peer.ready(timeout=LONG)
    return peer, peer.pin("inbox", timeout=LONG)


def test_a_write_arrives_before_its_note(client, server):
    peer, inbox = connected(client, server)
    data = numpy.arange(1 << 18, dtype="uint32")
    with client.pin(data):
        transfer = client.write(peer, data, inbox, note="all there", timeout=LONG)
    assert transfer.state == "done" and transfer.bytes == data.nbytes
    assert [share.backend for share in transfer.path.shares] == [server.way]
    assert server.ask("agent.wait_note(30).text") == "'all there'"
    words = "__import__('numpy').frombuffer(inbox, 'uint32')"
    assert server.ask(f"int({words}.sum())") == str(int(data.astype("uint64").sum()))
    assert server.ask(f"int({words}[-1])") == str(data[-1])


def test_a_read_fetches_what_the_peer_wrote(client, server):
    peer, inbox = connected(client, server)
    second = "memoryview(inbox)[4096:8192]"
    assert server.ask(f"{second}.__setitem__(slice(None), b'7' * 4096)") == "None"
    memory = client.allocate(8192)
    client.read(peer, memory.blocks(4096)[[1]], inbox.blocks(4096)[[1]], timeout=LONG)
    assert bytes(memory) == bytes(4096) + b"7" * 4096


def test_notes_go_both_ways_and_in_order(client, server):
    peer, _ = connected(client, server)
    for number in range(100):
        peer.note(str(number))
    peer.note(b"\xff\x00")
    received = server.ask("[agent.wait_note(30).data for _ in range(101)]")
    assert eval(received) == [str(number).encode() for number in range(100)] + [b"\xff\x00"]
    assert server.ask("agent.peer('client').note(bytearray(b'an answer'))") == "None"
    note = client.wait_note(timeout=LONG)
    assert (note.sender, note.data, note.text) == ("server", b"an answer", "an answer")


def test_a_killed_peer_ends_waits_with_its_name(client, server):
    peer, inbox = connected(client, server)
    memory = client.allocate(1 << 20)
    transfer = client.plan("write", peer, memory, inbox)
    epoch = peer.epoch
    server.signal(signal.SIGKILL)
    peer.over(epoch, timeout=LONG)
    with pytest.raises(viaduct.PeerLostError) as raised:
        transfer.post().wait(LONG)
    assert raised.value.peer == "server"
    assert isinstance(raised.value, ConnectionError)


def test_a_frozen_peer_is_lost_after_the_setting_detect():
    settings = {"backends": "tcp", "detect": 2, "environment": False}
    with Server(inbox=64 << 20, **settings) as server:
        with viaduct.Agent(**settings) as client:
            peer, inbox = connected(client, server)
            memory = client.allocate(64 << 20)
            transfer = client.plan("write", peer, memory, inbox)
            server.signal(signal.SIGSTOP)
            began = time.monotonic()
            with pytest.raises(viaduct.PeerLostError):
                transfer.post(timeout=10 * LONG).wait()
            assert time.monotonic() - began < LONG
            assert transfer.state == "failed"
            assert isinstance(transfer.error, viaduct.PeerLostError)


def test_a_card_that_is_damaged_or_cut_is_refused(client, server):
    for cut in (server.card[:-1], b"", b"nonsense", server.card[:20] + b"?" + server.card[21:]):
        with pytest.raises(viaduct.Error):
            client.connect(cut)
    connected(client, server)
