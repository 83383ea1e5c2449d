"""Tests agents: settings, lifetime, peers, and the texts of help() and repr()."""

import datetime
import inspect
import pydoc

import pytest
from helpers import LONG

import viaduct


def test_settings_are_keywords():
    with viaduct.Agent(name="a", listen=[], deadline=5, detect=datetime.timedelta(seconds=3),
                       spin="20us", copy_threads=1, striping="off", note_backlog="1MiB",
                       insecure=False, backends=["tcp", "local"], secret=None) as agent:
        assert agent.name == "a" and not agent.closed
        assert [name for name, (is_open, _) in agent.backends.items() if is_open] == \
            ["local", "tcp"]
    assert agent.closed


@pytest.mark.parametrize("settings, says", [
    ({"nmae": "a"}, "use name"), ({"copy_threads": -1}, "copy_threads=-1"),
    ({"deadline": "soon"}, "duration"), ({"deadline": float("nan")}, "duration"),
    ({"backends": "carrier-pigeon"}, "carrier-pigeon"), ({"striping": 3}, "auto, on or off"),
    ({"log": "debug"}, "no setting log")])
def test_settings_that_cannot_be(settings, says):
    with pytest.raises((viaduct.InvalidError, viaduct.NotFoundError), match=says):
        viaduct.Agent(**settings)


def test_the_environment_comes_first_and_can_be_left_out(monkeypatch):
    monkeypatch.setenv("VIADUCT_NAME", "of the environment")
    with viaduct.Agent() as one, viaduct.Agent.open(name="given") as two, \
            viaduct.Agent(environment=False) as three:
        assert one.name == "of the environment"
        assert two.name == "given"
        assert three.name not in (one.name, two.name)


def test_every_setting_has_a_keyword():
    rows = viaduct.settings()
    assert {"name", "listen", "deadline", "copy_threads", "meet"} <= {row[0] for row in rows}
    for keyword, variable, _, meaning in rows:
        assert variable == "VIADUCT_" + keyword.upper() and meaning


def test_a_closed_agent_refuses_everything(pair):
    agent, peer, _, remote = pair
    memory = agent.allocate(1 << 20)
    transfer = agent.plan("write", peer, memory, remote)
    agent.close()
    agent.close()
    assert repr(agent) == '<viaduct.Agent "here", closed>'
    for call in (lambda: agent.allocate(1), lambda: agent.pin(bytearray(1)), agent.take_note,
                 agent.wait_note, agent.poll, agent.fileno, agent.self, agent.statistics,
                 lambda: agent.card, lambda: agent.peers, lambda: agent.backends,
                 lambda: agent.connect(b""), lambda: agent.peer("there"),
                 lambda: agent.find("there"), lambda: agent.plan("write", peer, memory, remote),
                 lambda: next(agent.notes()), lambda: peer.ready(1), lambda: peer.note(b""),
                 lambda: peer.pin("inbox", 1), lambda: peer.over(1, 1), peer.forget,
                 lambda: peer.state, lambda: peer.pins, transfer.post):
        with pytest.raises(viaduct.InvalidError, match="the agent is closed"):
            call()
    memory.release()


def test_an_exception_closes_the_agent():
    with pytest.raises(KeyError):
        with viaduct.Agent() as agent:
            raise KeyError
    assert agent.closed


def test_peers(pair):
    agent, peer, inbox, remote = pair
    assert (peer.name, peer.state, peer.epoch, peer.settled) == ("there", "ready", 1, True)
    assert peer.agent is agent
    assert [each.name for each in agent.peers] == ["there"]
    assert agent.peer("there").name == "there"
    assert peer.ways["tcp"] == (True, "socket")
    assert [pin.label for pin in peer.pins] == ["inbox"]
    assert remote == peer.pins[0] and (remote.address, remote.bytes) == (inbox.address, len(inbox))
    with pytest.raises(viaduct.NotFoundError) as raised:
        agent.peer("nobody")
    assert raised.value.peer == "nobody" and isinstance(raised.value, LookupError)
    with pytest.raises(viaduct.TimeoutError, match="nothing labelled outbox"):
        peer.pin("outbox", timeout=0.01)
    peer.forget()
    peer.over(1, timeout=LONG)
    assert peer.state == "gone"


def test_an_agent_is_its_own_peer(agent):
    peer = agent.self()
    peer.ready(LONG)
    peer.note("to me")
    assert agent.wait_note(LONG).text == "to me"


def test_a_peer_by_address():
    with viaduct.Agent(name="a", secret="ours", environment=False) as listening, \
            viaduct.Agent(name="b", secret="ours", environment=False) as friend, \
            viaduct.Agent(name="c", secret="guessed", environment=False) as stranger:
        address, = listening.addresses
        peer = friend.connect(address)
        peer.ready(LONG)
        assert peer.name == "a"
        with pytest.raises(viaduct.DeniedError):
            stranger.connect(address).ready(LONG)
        with pytest.raises(viaduct.InvalidError, match="a port are missing"):
            friend.connect("nowhere")


def test_statistics(pair):
    agent, peer, _, remote = pair
    memory = agent.allocate(1 << 20)
    agent.write(peer, memory, remote, note=b"one", timeout=LONG)
    told = agent.statistics()
    assert (told["started"], told["done"], told["failed"], told["notes_sent"]) == (1, 1, 0, 1)
    assert (told["agent"], told["pins"], told["pinned_bytes"]) == ("here", 1, 1 << 20)
    assert sum(rail["bytes"] for rail in told["rails"]) == 1 << 20


def public(kind):
    return [(name, value) for name, value in vars(kind).items() if not name.startswith("_")]


CLASSES = [value for value in vars(viaduct).values() if isinstance(value, type)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_help_teaches(kind):
    assert kind.__module__ == "viaduct" and kind.__doc__.strip()
    for name, member in public(kind):
        assert isinstance(member, str) or inspect.getdoc(member), name
        if inspect.isroutine(member):
            assert "pybind" not in inspect.getdoc(member)
            assert "self" not in str(inspect.signature(getattr(kind, name))) or \
                list(inspect.signature(getattr(kind, name)).parameters)[0] == "self"


def test_help_of_the_package_starts_with_an_example():
    text = pydoc.render_doc(viaduct)
    assert "with viaduct.Agent(name=" in text[:800]


def test_reprs_say_the_state(pair):
    agent, peer, inbox, remote = pair
    transfer = agent.plan("write", peer, agent.allocate(1 << 20), remote)
    assert repr(agent) == '<viaduct.Agent "here">'
    assert repr(peer) == '<viaduct.Peer "there" ready>'
    assert repr(transfer) == "<viaduct.Transfer write of 1048576 bytes, idle>"
    assert repr(remote.blocks(4096)[[1, 2]]).startswith("<viaduct.Selection 2 of <viaduct.Blocks 2")
    inbox.release()
    assert repr(inbox).startswith('<viaduct.Pin "inbox" 1048576 bytes at 0x')
    assert repr(inbox).endswith(", released>")
