"""Lets asyncio tasks await transfers and notes: the loop watches the agent's event descriptor."""

import asyncio
import os
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from viaduct._core import Note

# Reentrant: a garbage collection under the lock may run code that takes the lock again.
_lock = threading.RLock()


class _Reader:
    """Wakes the tasks of one event loop that wait for one agent. Only the loop's thread uses it."""

    def __init__(self, agent, loop):
        self.loop = loop
        self.watching = False
        self.descriptor = -1
        # A duplicate descriptor stays open while the loop watches it, even after Agent.close().
        self.descriptor = os.dup(agent.fileno())
        self.waiting = {}  # maps each future to its transfer, or to its agent if it awaits notes

    def __del__(self):
        if self.descriptor != -1:
            _stop_watching(self.loop, self.descriptor, self.watching)

    def future(self, subject):
        if not self.watching:
            self.loop.add_reader(self.descriptor, _readable, weakref.ref(self))
            self.watching = True
        future = self.loop.create_future()
        self.waiting[future] = subject
        future.add_done_callback(self._forget)
        return future

    def _forget(self, future):
        self.waiting.pop(future, None)

    def look(self):
        """Wakes each future whose transfer has ended or whose agent may have a note."""
        for future, subject in list(self.waiting.items()):
            if not future.done() and _has_news(subject):
                future.set_result(None)


def _has_news(subject):
    # An agent has no `done`: wake its tasks. A task waits again if another task took the note.
    return getattr(subject, "done", True)


def _stop_watching(loop, descriptor, watching):
    if loop.is_closed() or not watching:
        os.close(descriptor)
        return
    try:
        # Garbage collection may run in any thread, but remove_reader() needs the loop's thread.
        loop.call_soon_threadsafe(_remove, loop, descriptor)
    except RuntimeError:  # the loop was closed after the check
        os.close(descriptor)


def _remove(loop, descriptor):
    loop.remove_reader(descriptor)
    os.close(descriptor)


def _readable(reference):
    reader = reference()
    if reader is None:
        return
    subject = next(iter(reader.waiting.values()), None)
    if subject is None:  # no task waits now: leave the event to the next task that waits
        reader.loop.remove_reader(reader.descriptor)
        reader.watching = False
        return
    agent = getattr(subject, "agent", subject)
    if agent.closed:
        reader.look()
    else:
        agent.poll()  # poll() calls wake()


def wake(readers):
    """Wakes the tasks of every loop, because a poll() or close() consumed the agent's event."""
    with _lock:
        known = list(readers.values())
    for reader in known:
        if asyncio._get_running_loop() is reader.loop:
            reader.look()
            continue
        try:
            reader.loop.call_soon_threadsafe(reader.look)
        except RuntimeError:  # the loop is closed, so no task waits in it
            pass


def _reader(agent):
    loop = asyncio.get_running_loop()
    with _lock:
        if agent._readers is None:
            agent._readers = {}
        readers = agent._readers
        if loop not in readers:
            for other in [other for other in readers if other.is_closed()]:
                del readers[other]
            readers[loop] = _Reader(agent, loop)
        return readers[loop]


async def _ended(transfer):
    while transfer.state == "running":
        future = _reader(transfer.agent).future(transfer)
        if transfer.state != "running":  # the transfer ended before the loop watched
            future.cancel()
            return
        await future


async def end_of(transfer):
    """Implements `await transfer`. A cancelled task cancels the transfer and waits for its end."""
    try:
        await _ended(transfer)
    except asyncio.CancelledError:
        transfer.cancel()
        await _end_despite_cancels(transfer)
        raise
    transfer.wait(0)
    return transfer


async def _end_despite_cancels(transfer):
    # The program may reuse the memory after the task, so wait. The setting `grace` limits the wait.
    while transfer.state == "running":
        try:
            await _ended(transfer)
        except asyncio.CancelledError:
            pass


class Notes:
    """Iterates over an agent's notes as they arrive. Several loops may share them; each note is
    returned once."""

    def __init__(self, agent):
        self._agent = agent

    def __iter__(self) -> "Notes":
        return self

    def __next__(self) -> "Note":
        return self._agent.wait_note()

    def __aiter__(self) -> "Notes":
        return self

    async def __anext__(self) -> "Note":
        agent = self._agent
        note = agent.take_note()
        while note is None:
            future = _reader(agent).future(agent)
            note = agent.take_note()  # a note may have arrived before the loop watched
            if note is None:
                await future
                note = agent.take_note()
            else:
                future.cancel()
        return note
