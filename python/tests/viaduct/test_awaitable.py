"""Tests that every call that waits can be awaited, without a thread for each wait."""

import asyncio
import datetime
import threading

import pytest
from helpers import LONG, Server

import viaduct
from viaduct import _asyncio


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, LONG))


async def both(waiting, act):
    """Starts the waits, then does what they wait for. Returns the results of the waits."""
    tasks = [asyncio.ensure_future(one) for one in waiting]
    await asyncio.sleep(0.01)
    assert not any(task.done() for task in tasks)
    threads = threading.active_count()
    act()
    results = await asyncio.gather(*tasks)
    assert threading.active_count() <= threads
    return results


@pytest.fixture
def there(pair):
    """Yields the two agents, and the peer at each end."""
    agent, peer, inbox, _ = pair
    back = inbox.agent.peer("here")
    back.ready(LONG)
    return agent, peer, inbox.agent, back


def test_a_peer(agent):
    pins = []

    async def main():
        with viaduct.Agent(name="there", environment=False) as other:
            peer = agent.connect(other.card)
            pin = asyncio.ensure_future(viaduct.awaitable(peer.pin, "late", LONG))
            await viaduct.awaitable(peer.ready, datetime.timedelta(seconds=LONG))
            assert peer.state == "ready"
            (_,) = await both([viaduct.awaitable(peer.pin, "later")],
                              lambda: pins.append(other.allocate(10, label="later")))
            memory = other.allocate(4096, label="late")
            assert (await pin).address == memory.address
            await both([viaduct.awaitable(peer.over, timeout=LONG)], other.close)
            assert peer.state != "ready"

    run(main())


def test_a_peer_that_cannot_be_reached(agent):
    async def main():
        with viaduct.Agent(name="there", environment=False) as other:
            card = other.card
        peer = agent.connect(card)
        with pytest.raises(viaduct.PeerLostError, match="there"):
            await viaduct.awaitable(peer.ready, 0.05)
        with pytest.raises(viaduct.TimeoutError, match="labelled late"):
            await viaduct.awaitable(peer.pin, "late", timeout=0.01)

    run(main())


def test_both_ends_of_a_lease(there):
    owner, to_user, user, to_owner = there
    memory = owner.allocate(4096)

    async def main():
        lease = owner.lease(to_user, memory, duration=LONG)
        borrowed = user.borrow(to_owner, lease.ticket)
        waits = [viaduct.awaitable(lease.wait, LONG), viaduct.awaitable(borrowed.wait)]
        assert await both(waits, borrowed.give_back) == ["returned", "returned"]

    run(main())


def test_marks(there):
    agent, peer, other, back = there

    async def main():
        theirs, ours = other.open_marks(back, 1, 4), agent.open_marks(peer, 1)
        waits = [viaduct.awaitable(theirs.wait, 2, timeout=LONG),
                 viaduct.awaitable(theirs.wait_count, 1)]
        await both(waits, lambda: ours.mark(2))
        missing = asyncio.ensure_future(viaduct.awaitable(theirs.wait, 3))
        over = asyncio.ensure_future(viaduct.awaitable(ours.over, LONG))
        await asyncio.sleep(0)
        ours.end("enough")
        with pytest.raises(viaduct.CancelledError, match="enough"):
            await missing
        theirs.end("enough")
        await over

    run(main())


def test_a_wait_for_a_transfer_leaves_it_running(stuck):
    async def main():
        with pytest.raises(viaduct.TimeoutError, match="still running"):
            await viaduct.awaitable(stuck.wait, 0.01)
        task = asyncio.ensure_future(viaduct.awaitable(stuck.wait))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stuck.state == "running"

    run(main())


def test_a_closed_agent_ends_every_wait(there):
    agent, peer, other, back = there

    async def main():
        marks = agent.open_marks(peer, 1, 4)
        waits = [viaduct.awaitable(agent.wait_note), viaduct.awaitable(peer.pin, "none"),
                 viaduct.awaitable(peer.over), viaduct.awaitable(marks.wait, 3)]
        tasks = [asyncio.ensure_future(one) for one in waits]
        await asyncio.sleep(0.01)
        await asyncio.to_thread(agent.close)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, viaduct.Error) or one is None for one in results), results

    run(main())


def test_a_wake_looks_only_at_what_has_changed():
    """1,000 tasks wait for other things. None of them is looked at while transfers end."""
    settings = {"backends": "tcp", "environment": False}
    looks = 0

    def attempt(marks):
        def call(wait):
            nonlocal looks
            looks += 1
            marks.wait(0, wait)
        return call

    async def main(agent, peer, transfer):
        streams = [agent.open_marks(peer, number, 1) for number in range(1000)]
        loop = _asyncio._running()
        tasks = [asyncio.ensure_future(loop.until(agent, attempt(one))) for one in streams]
        await asyncio.sleep(0)
        assert looks == len(streams)
        for _ in range(50):
            await transfer.post(timeout=LONG)
        assert looks == len(streams)
        for task in tasks:
            task.cancel()

    with Server(**settings) as server, viaduct.Agent(name="client", **settings) as agent:
        peer = agent.connect(server.card)
        peer.ready(LONG)
        memory, inbox = agent.allocate(1 << 20), peer.pin("inbox", LONG)
        run(main(agent, peer, agent.plan("write", peer, memory, inbox)))


def test_waits_that_were_given_up_leave_nothing_behind(there):
    agent, peer, _, _ = there

    async def main():
        loop = _asyncio._running()
        for _ in range(50):
            with pytest.raises(viaduct.TimeoutError):
                await viaduct.awaitable(peer.over, timeout=0.001)
        assert loop.waits == {}
        assert loop.agents[agent].waits == 0

    run(main())


@pytest.mark.parametrize("timeout, kind", [(-1, viaduct.InvalidError), ("soon", TypeError),
                                           (float("nan"), viaduct.InvalidError)])
def test_a_wrong_timeout_is_refused(there, timeout, kind):
    _, peer, _, _ = there
    with pytest.raises(kind):
        run(viaduct.awaitable(peer.over, timeout=timeout))


def test_what_does_not_wait_is_refused(there):
    agent, peer, _, _ = there
    for call in (agent.poll, print, peer.note):
        with pytest.raises(TypeError, match="does not wait"):
            run(viaduct.awaitable(call))
    with pytest.raises(TypeError):
        run(viaduct.awaitable(peer.over, 1, 2, 3))


class Place:
    """Stands for an agent with a meeting place, where names appear later."""

    def __init__(self):
        self.names = {}
        self.threads = set()

    def find(self, name, timeout=None):
        self.threads.add(threading.current_thread())
        if name not in self.names:
            threading.Event().wait(timeout)
        if name not in self.names:
            raise viaduct.TimeoutError(f"no agent has published {name}")
        return self.names[name]


def test_names_are_looked_up_in_turn_by_one_thread():
    async def main():
        place = Place()
        tasks = [asyncio.ensure_future(_asyncio._find(place.find, (name,), {}, None))
                 for name in "abc"]
        await asyncio.sleep(0)  # all of them wait before the first look-up ends
        with pytest.raises(viaduct.TimeoutError, match="published x"):
            await _asyncio._find(place.find, ("x",), {}, 0.05)
        tasks.pop().cancel()
        place.names = {"b": 2}
        assert await tasks[1] == 2
        place.names["a"] = 1
        assert await tasks[0] == 1
        assert len(place.threads) == 1
        for thread in place.threads:
            await asyncio.to_thread(thread.join)
        assert place not in _asyncio._finds

    run(main())


def test_a_name_without_a_meeting_place(agent):
    with pytest.raises(viaduct.InvalidError, match="no meeting place"):
        run(viaduct.awaitable(agent.find, "there", timeout=LONG))
