"""Tests the exchange of metadata over the listener's socket."""

import errno
import hashlib
import hmac
import os
import socket
import struct

import pytest
from nixl_testing import WITHIN, Side, run, until

MAGIC = b"VIADMETA1"
HEAD = struct.Struct("<BI")  # a kind, and the bytes of the content
TAKE, FETCH, FORGET, DONE, REFUSED = range(1, 6)


def frame(secret, nonce, kind, content=b""):
    """Makes a frame as a caller with that secret sends it."""
    head = HEAD.pack(kind, len(content))
    return head + content + hmac.digest(secret, nonce + head + content, hashlib.sha256)


def call(port, kind, content=b"", secret=b""):
    """Calls the listener. Returns the kind of its answer and the content, or None."""
    with socket.create_connection(("127.0.0.1", port)) as caller:
        stream = caller.makefile("rb")
        greeting = stream.read(len(MAGIC) + 16)
        assert greeting.startswith(MAGIC)
        caller.sendall(frame(secret, greeting[len(MAGIC) :], kind, content))
        head = stream.read(HEAD.size)
        if not head:
            return None
        kind, size = HEAD.unpack(head)
        return kind, stream.read(size).decode(errors="replace")


def listener(**more):
    """Opens an agent whose listener uses a free port. Returns the agent and the port."""
    side = Side(enable_listen_thread=True, listen_port=0, **more)
    return side, side.agent.listen_port


@pytest.fixture
def listening():
    return listener(fill=3)


def reads(one, other):
    here = one.agent.get_xfer_descs(one.blocks(1), "DRAM")
    there = one.agent.get_xfer_descs(other.blocks(1), "DRAM")
    run(one.agent, one.agent.initialize_xfer("READ", here, there, other.name))
    return (one.memory[:4096] == other.memory[:4096]).all()


@pytest.mark.parametrize("secret", ["", "of this group"])
def test_metadata_is_fetched_sent_and_invalidated(monkeypatch, secret):
    monkeypatch.setenv("VIADUCT_SECRET", secret)
    target, port = listener(fill=3)
    one = Side(fill=1)
    one.agent.fetch_remote_metadata(target.name, "127.0.0.1", port)
    until("the target's metadata", lambda: one.agent.check_remote_metadata(target.name))
    assert reads(one, target)
    one.agent.send_local_metadata("127.0.0.1", port)
    until("this one's metadata", lambda: target.agent.check_remote_metadata(one.name))
    rows = target.agent.get_xfer_descs(one.blocks(1), "DRAM")
    assert target.agent.check_remote_metadata(one.name, rows)
    assert reads(target, one)
    one.agent.invalidate_local_metadata("127.0.0.1", port)
    until("its end", lambda: not target.agent.check_remote_metadata(one.name))


def test_partial_metadata_is_sent(listening):
    target, port = listening
    one = Side()
    rows = target.agent.get_xfer_descs(one.blocks(1), "DRAM")
    one.agent.send_partial_agent_metadata(one.registered, True, [], "localhost", port)
    until("it", lambda: target.agent.check_remote_metadata(one.name, rows))


def test_a_listener_that_comes_later_is_found():
    one = Side()
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))  # reserves the port; connections are refused until listen()
        one.agent.send_local_metadata("127.0.0.1", server.getsockname()[1])
        one.agent.get_new_notifs()
        server.listen()
        server.settimeout(WITHIN)
        server.accept()[0].close()


def test_a_port_that_is_taken_is_an_error(listening):
    with pytest.raises(OSError):
        Side(enable_listen_thread=True, listen_port=listening[1])


def test_who_has_another_secret_gets_nothing(listening, monkeypatch):
    _, port = listening
    monkeypatch.setenv("VIADUCT_SECRET", "right")
    assert call(port, FETCH, secret=b"wrong") is None
    assert call(port, FETCH, secret=b"right")[0] == DONE


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" + b"x" * 100,
        b"\x01\xff\xff\xff\xff" + b"y" * 100,
        b"\x09\x00\x00\x00\x00" + b"z" * 32,
        os.urandom(5000),
    ],
    ids=["nothing", "http", "huge", "unknown", "random"],
)
def test_garbage_is_dropped_and_harms_nobody(listening, garbage):
    target, port = listening
    with socket.create_connection(("127.0.0.1", port)) as caller:
        assert caller.recv(100).startswith(MAGIC)
        caller.sendall(garbage)
        try:
            caller.shutdown(socket.SHUT_WR)
            assert caller.recv(100) == b""
        except OSError as error:  # the listener closed before it had read all the garbage
            assert error.errno in (errno.ECONNRESET, errno.ENOTCONN)
    one = Side()
    one.agent.fetch_remote_metadata(target.name, "127.0.0.1", port)
    until("the target's metadata", lambda: one.agent.check_remote_metadata(target.name))


def test_wrong_metadata_is_refused_with_its_reason(listening):
    _, port = listening
    kind, text = call(port, TAKE, b"nixlSerDes|")
    assert kind == REFUSED and "the real NIXL" in text
    kind, text = call(port, FORGET, b"nobody")
    assert kind == REFUSED and "no metadata of an agent named nobody" in text


def test_what_fails_in_the_background_is_logged(caplog):
    one = Side()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        one.agent.send_local_metadata("127.0.0.1", port)
        caller, _ = server.accept()
        caller.sendall(b"SSH-2.0-OpenSSH_9.2 and so on ...")
        until("the warning", lambda: "no listener of Viaduct" in caplog.text)
        caller.close()


def test_the_listener_ends_with_its_agent(listening):
    side, port = listening
    side.agent = None
    with pytest.raises(OSError):
        while True:
            socket.create_connection(("127.0.0.1", port)).close()


def test_without_a_meeting_place_a_name_is_not_found(caplog, monkeypatch):
    for name in ("VIADUCT_MEET", "NIXL_ETCD_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)
    one = Side()
    one.agent.fetch_remote_metadata("somebody")
    until("the warning", lambda: "no meeting place" in caplog.text)
    assert not one.agent.check_remote_metadata("somebody")
