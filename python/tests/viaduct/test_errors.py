"""Tests the classes and fields of the exceptions."""

import builtins
import pathlib
import pickle
import re
import signal

import pytest
from helpers import LONG, Server

import viaduct
from viaduct import _core

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_each_code_has_a_class():
    kinds = {kind.code: kind for kind in viaduct.Error.__subclasses__()}
    assert len(kinds) == 14 and all(kind.__module__ == "viaduct" for kind in kinds.values())


def test_errors_are_those_of_python_too():
    assert issubclass(viaduct.InvalidError, ValueError)
    assert issubclass(viaduct.NotFoundError, LookupError)
    assert issubclass(viaduct.DeniedError, PermissionError)
    assert issubclass(viaduct.TimeoutError, builtins.TimeoutError)
    assert issubclass(viaduct.PeerLostError, ConnectionError)
    assert issubclass(viaduct.DeviceError, OSError)


def test_an_error_has_the_fields_of_the_library(agent):
    with pytest.raises(viaduct.NotFoundError) as raised:
        agent.peer("nobody")
    error = raised.value
    assert (error.code, error.operation, error.peer) == ("not found", "peer", "nobody")
    assert error.detail in str(error) and error.remedy in str(error)
    assert (error.os_errno, error.device, error.file, error.cause) == (0, "", "", "")


@pytest.mark.parametrize("kind", viaduct.Error.__subclasses__(), ids=lambda kind: kind.__name__)
def test_errors_pickle(kind):
    error = kind("all of it", operation="connect", detail="refused", os_errno=111, peer="b",
                 device="eth0", file="/dev/x", cause="nobody listens", remedy="start it")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == "all of it" and vars(again) == vars(error)
    if issubclass(kind, OSError):
        assert again.errno == 111


def test_errors_name_no_call_of_another_language():
    """Reads the texts in the library's sources, as an exception would show them."""
    layers = ("agent", "backends", "base", "core", "cuda", "kv", "meet", "move", "s3")
    headers = "".join(path.read_text() for path in (ROOT / "include/viaduct").glob("*.h"))
    calls = set(re.findall(r"\b[a-z]+[A-Z]\w*(?=\()", headers))
    wrong, seen = [], 0
    for path in (path for layer in layers for path in (ROOT / "src" / layer).rglob("*.cc")):
        if path.stem.endswith(("_test", "_testing")):
            continue
        for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', path.read_text()):
            seen += 1
            shown = _core._in_python(text)
            names = set(re.findall(r"\b[a-z]+[A-Z]\w*", shown)) & calls
            if re.search(r"[A-Za-z]::[a-z{]", shown) or names:
                wrong.append(f"{path.name}: {shown}")
    assert seen > 1000 and wrong == []


def test_remedies_name_calls_of_python(agent, pair):
    _, peer, _, _ = pair
    with pytest.raises(viaduct.TimeoutError) as raised:
        peer.pin("none", 0.01)
    assert raised.value.operation == "pin" and "Peer.pins lists" in raised.value.remedy
    with pytest.raises(viaduct.InvalidError, match="set meet .or VIADUCT_MEET in the environment."):
        agent.find("there", 0.01)


@pytest.mark.parametrize("backend", ["tcp", "local"])
def test_an_error_says_a_thing_once(backend):
    settings = {"backends": backend, "environment": False, "detect": 300}
    with Server(**settings) as server, viaduct.Agent(name="client", **settings) as agent:
        peer = agent.connect(server.card)
        peer.ready(LONG)
        transfer = agent.plan("write", peer, agent.allocate(1 << 20), peer.pin("inbox", LONG))
        server.signal(signal.SIGKILL)
        peer.over(1, LONG)
        for call in (transfer.post, lambda: peer.note("x"), lambda: peer.ready(0.2)):
            with pytest.raises(viaduct.PeerLostError) as raised:
                call()
            text = str(raised.value)
            assert text.count("lost") == 1, text
            parts = [part for part in re.split("[;:] ", text) if "@" in part or "127." in part]
            assert len(parts) == len(set(parts)), text
