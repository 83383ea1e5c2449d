import signal

import pytest
from helpers import LONG, Server

import viaduct


@pytest.fixture
def agent():
    with viaduct.Agent(name="here", environment=False) as opened:
        yield opened


@pytest.fixture
def pair(agent):
    """An agent, another one of this process as its peer, and that one's 1 MiB: Pin, RemotePin."""
    with viaduct.Agent(name="there", environment=False) as other:
        inbox = other.allocate(1 << 20, label="inbox")
        peer = agent.connect(other.card)
        peer.ready(LONG)
        yield agent, peer, inbox, peer.pin("inbox", LONG)


@pytest.fixture
def frozen():
    """A transfer to a stopped process, not yet posted."""
    settings = {"backends": "tcp", "detect": 300, "environment": False}
    with Server(inbox=64 << 20, **settings) as server:
        with viaduct.Agent(name="client", deadline=300, grace=0.2, **settings) as agent:
            peer = agent.connect(server.card)
            peer.ready(LONG)
            remote = peer.pin("inbox", LONG)
            memory = agent.allocate(64 << 20)
            transfer = agent.plan("write", peer, memory, remote)
            server.signal(signal.SIGSTOP)
            yield transfer


@pytest.fixture
def stuck(frozen):
    """A running transfer that does not end by itself for a long time."""
    return frozen.post()
