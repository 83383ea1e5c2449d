"""Awaiting transfers and notes. An event loop watches the event descriptor of an agent."""

import asyncio
import os
import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from viaduct._core import Note

_lock = threading.RLock()  # a garbage collection inside may come back


class _Reader:
    """Wakes the tasks of one loop that wait for one agent. Used in the loop's thread alone."""

    def __init__(self, agent, loop):
        self.loop = loop
        self.watching = False
        self.descriptor = -1
        # A descriptor of our own, so that it is open for as long as the loop may watch it.
        self.descriptor = os.dup(agent.fileno())
        self.waiting = {}  # what each future waits for: a transfer, or an agent for its notes

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
        """Wakes those that wait for what has happened."""
        for future, subject in list(self.waiting.items()):
            if not future.done() and _has_news(subject):
                future.set_result(None)


def _has_news(subject):
    # An agent may have a note: its waiting tasks look, and wait again if another one took it.
    return getattr(subject, "done", True)


def _stop_watching(loop, descriptor, watching):
    if loop.is_closed() or not watching:
        os.close(descriptor)
        return
    try:
        # In the loop's own thread: this may be any other.
        loop.call_soon_threadsafe(_remove, loop, descriptor)
    except RuntimeError:  # it was closed meanwhile
        os.close(descriptor)


def _remove(loop, descriptor):
    loop.remove_reader(descriptor)
    os.close(descriptor)


def _readable(reference):
    reader = reference()
    if reader is None:
        return
    subject = next(iter(reader.waiting.values()), None)
    if subject is None:  # nobody waits any more: the event is for whoever waits next
        reader.loop.remove_reader(reader.descriptor)
        reader.watching = False
        return
    agent = getattr(subject, "agent", subject)
    if agent.closed:
        reader.look()
    else:
        agent.poll()  # which calls wake()


def wake(readers):
    """Looks in every loop: a poll() or close() took the event that the loops wait for."""
    with _lock:
        known = list(readers.values())
    for reader in known:
        if asyncio._get_running_loop() is reader.loop:
            reader.look()
            continue
        try:
            reader.loop.call_soon_threadsafe(reader.look)
        except RuntimeError:  # that loop is closed, and nobody waits in it
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
        if transfer.state != "running":  # it ended before the loop watched
            future.cancel()
            return
        await future


async def end_of(transfer):
    """What `await transfer` does. A cancelled task cancels the transfer and waits for its end."""
    try:
        await _ended(transfer)
    except asyncio.CancelledError:
        transfer.cancel()
        await _end_despite_cancels(transfer)
        raise
    transfer.wait(0)
    return transfer


async def _end_despite_cancels(transfer):
    # The memory may be used again when the task is over. The end comes within the grace.
    while transfer.state == "running":
        try:
            await _ended(transfer)
        except asyncio.CancelledError:
            pass


class Notes:
    """The notes of an agent, as they come. Several loops may share them: each note comes once."""

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
            note = agent.take_note()  # it may have come before the loop watched
            if note is None:
                await future
                note = agent.take_note()
            else:
                future.cancel()
        return note
