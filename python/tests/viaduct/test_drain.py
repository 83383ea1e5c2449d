"""Agents that leave: running work ends, new work is refused, and another thread may take it back."""

import threading

import pytest
from helpers import LONG

import viaduct


def until(holds):
    while not holds():
        pass


def test_an_agent_without_work_drains_at_once(pair):
    agent, peer, _, _ = pair
    assert agent.drain_state is None
    assert agent.drain(LONG) == [] and agent.closed
    with pytest.raises(viaduct.InvalidError, match="the agent is closed"):
        agent.drain(LONG)


def test_a_lease_keeps_the_drain_and_undrain_takes_it_back(pair):
    agent, peer, _, remote = pair
    memory = agent.allocate(1 << 20)
    transfer = agent.plan("write", peer, memory, remote)
    lease = agent.lease(peer, memory)
    raised = []

    def drain():
        try:
            agent.drain()
        except viaduct.Error as error:
            raised.append(error)

    thread = threading.Thread(target=drain)
    thread.start()
    until(lambda: agent.drain_state and all(one["answered"] for one in agent.drain_state["left"]))
    state = agent.drain_state
    assert state["remaining"] > 0
    assert [(one["peer"], one["lent"]) for one in state["left"]] == [("there", 1)]
    assert peer.state == "draining" and agent.statistics()["draining"]
    for call in (transfer.post, lambda: agent.lease(peer, memory),
                 lambda: agent.plan("write", peer, memory, remote), lambda: peer.ready(LONG)):
        with pytest.raises(viaduct.DrainingError, match="drains"):
            call()
    with pytest.raises(viaduct.InvalidError, match="drains already"):
        agent.drain(LONG)
    agent.undrain()
    thread.join()
    assert [type(one) for one in raised] == [viaduct.CancelledError]
    transfer.post().wait()
    assert [one["lent"] for one in agent.drain(0.05)] == [1]
    assert lease.wait(LONG) == "revoked"
