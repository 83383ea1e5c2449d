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
    """Yields an agent, its peer in this process, and 1 MiB of the peer as Pin and RemotePin."""
    with viaduct.Agent(name="there", environment=False) as other:
        inbox = other.allocate(1 << 20, label="inbox")
        peer = agent.connect(other.card)
        peer.ready(LONG)
        yield agent, peer, inbox, peer.pin("inbox", LONG)


@pytest.fixture
def frozen():
    """Yields a transfer that is planned but not posted. Its peer is a stopped process."""
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
    """Returns a running transfer. Its peer is stopped, so the transfer does not end by itself."""
    return frozen.post()
