"""Tests transfers and notes in event loops of asyncio."""

import asyncio
import gc
import os
import threading
import weakref

import numpy
import pytest
from helpers import LONG, Server

import viaduct


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, LONG))


@pytest.fixture
def client():
    """Yields an agent, its peer in a server process over tcp, memory of both, and the server."""
    settings = {"backends": "tcp", "environment": False}
    with Server(inbox=16 << 20, **settings) as server:
        with viaduct.Agent(name="client", **settings) as agent:
            peer = agent.connect(server.card)
            peer.ready(LONG)
            yield agent, peer, agent.allocate(16 << 20), peer.pin("inbox", LONG), server


def test_transfers_are_awaited(client):
    agent, peer, memory, remote, server = client

    async def main():
        transfer = agent.plan("write", peer, memory, remote)
        for number in range(20):
            memoryview(memory)[:1] = bytes([number])
            assert await transfer.post(timeout=LONG) is transfer
            assert transfer.state == "done"
            assert server.ask("memoryview(inbox)[0]") == str(number)

    run(main())


def test_many_tasks_await_at_once(client):
    agent, peer, memory, remote, server = client
    ours, theirs = memory.blocks(64 << 10), remote.blocks(64 << 10)
    words = numpy.frombuffer(memory, "uint64")
    words[:] = numpy.arange(words.size)

    async def copy(number):
        transfer = agent.plan("write", peer, ours[[number]], theirs[[255 - number]])
        for _ in range(3):
            await transfer.post(timeout=LONG)

    async def main():
        await asyncio.gather(*(copy(number) for number in range(256)))

    run(main())
    total = server.ask("int(__import__('numpy').frombuffer(inbox, 'uint64').sum())")
    assert total == str(int(words.sum()))


def test_a_failed_transfer_raises_in_its_task(frozen):
    async def main():
        with pytest.raises(viaduct.TimeoutError):
            await frozen.post(timeout=0.05)
        with pytest.raises(viaduct.TimeoutError):
            await frozen  # a second await raises the same error

    run(main())


def test_awaiting_what_was_never_posted(frozen):
    async def main():
        with pytest.raises(viaduct.InvalidError, match="nothing was posted"):
            await frozen

    run(main())


def test_a_cancelled_task_cancels_the_transfer_and_waits_for_its_end(stuck):
    ended = []

    async def copy():
        try:
            await stuck
        finally:
            ended.append(stuck.done)

    async def main():
        task = asyncio.create_task(copy())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # a second time, while the task waits for the transfer to end
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == [True]

    run(main())
    assert stuck.state in ("cancelled", "failed")


def test_a_loop_that_ends_cancels_what_is_awaited(stuck):
    async def main():
        asyncio.ensure_future(stuck)
        await asyncio.sleep(0)

    run(main())
    assert stuck.done


def test_notes_are_iterated_over(client):
    agent, peer, _, _, server = client

    async def main():
        received = []
        asking = asyncio.to_thread(
            server.ask, "[agent.peer('client').note(str(i)) for i in range(100)] and None")
        peer.note("so that the server knows the client")
        asked = asyncio.create_task(asking)
        async for note in agent.notes():
            received.append(note.text)
            if len(received) == 100:
                break
        assert received == [str(i) for i in range(100)]
        await asked

    run(main())


def test_notes_are_shared_among_tasks(pair):
    agent, peer, inbox, _ = pair
    other = inbox.agent

    async def take(notes, received):
        async for note in notes:
            received.append(note.text)
            if note.text == "stop":
                return

    async def main():
        received = [], []
        tasks = [asyncio.create_task(take(other.notes(), each)) for each in received]
        await asyncio.sleep(0)
        for number in range(50):
            peer.note(str(number))
            if number % 7 == 0:
                await asyncio.sleep(0)
        peer.note("stop")
        peer.note("stop")
        await asyncio.gather(*tasks)
        together = [text for each in received for text in each if text != "stop"]
        assert sorted(together, key=int) == [str(number) for number in range(50)]

    run(main())


def test_notes_are_iterated_over_in_a_thread(pair):
    _, peer, inbox, _ = pair
    for text in ("one", "two"):
        peer.note(text)
    notes = iter(inbox.agent.notes())
    assert [next(notes).text, next(notes).text] == ["one", "two"]


def test_closing_the_agent_wakes_the_loop(client):
    agent, peer, memory, remote, _ = client

    async def main():
        loop = asyncio.get_running_loop()
        waiting = asyncio.create_task(agent.notes().__anext__())
        await asyncio.sleep(0)
        closing = loop.run_in_executor(None, agent.close)
        with pytest.raises(viaduct.InvalidError, match="agent is closed"):
            await waiting
        await closing

    run(main())


def test_a_poll_of_another_thread_takes_no_event_away(client):
    agent, peer, memory, remote, _ = client
    stop = threading.Event()

    def poll():
        while not stop.is_set():
            agent.poll()

    async def main():
        transfer = agent.plan("write", peer, memory.blocks(4096)[[0]], remote.blocks(4096)[[0]])
        for _ in range(200):
            await transfer.post(timeout=LONG)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        run(main())
    finally:
        stop.set()
        thread.join()


def test_two_loops_use_one_agent(client):
    agent, peer, memory, remote, _ = client
    failed = []

    async def copy(block):
        transfer = agent.plan("write", peer, memory.blocks(4096)[[block]],
                              remote.blocks(4096)[[block]])
        for _ in range(200):
            await transfer.post(timeout=LONG)

    def loop(block):
        try:
            run(copy(block))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=loop, args=(block,)) for block in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_loops_come_and_go_without_a_trace(client):
    agent, peer, memory, remote, _ = client

    async def main():
        await agent.plan("write", peer, memory, remote).post(timeout=LONG)
        return weakref.ref(asyncio.get_running_loop())

    run(main())
    descriptors = len(os.listdir("/proc/self/fd"))
    loops = [run(main()) for _ in range(10)]
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 1
    assert sum(loop() is not None for loop in loops) <= 1


def test_an_idle_loop_does_not_spin(client):
    agent, peer, memory, remote, _ = client

    async def main():
        await agent.plan("write", peer, memory, remote).post(timeout=LONG)
        waiting = asyncio.create_task(agent.notes().__anext__())
        await asyncio.sleep(0.1)
        wakes = 0
        selector = asyncio.get_running_loop()._selector
        select = selector.select

        def counted(timeout=None):
            nonlocal wakes
            wakes += 1
            return select(timeout)

        selector.select = counted
        await asyncio.sleep(1)
        waiting.cancel()
        # Heartbeats wake the loop: each end sends four in 2 s.
        assert wakes < 50

    run(main())


def test_a_transfer_that_ended_is_awaited_after_its_agent_was_closed(client):
    agent, peer, memory, remote, _ = client

    async def main():
        transfer = agent.plan("write", peer, memory, remote)
        transfer.post(timeout=LONG).wait()
        agent.close()
        assert await transfer is transfer

    run(main())


def test_cancelling_a_task_whose_transfer_was_closed_cancels_the_task(stuck):
    async def wait():
        await stuck

    async def main():
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        stuck.close()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main())
