"""Lets asyncio tasks await transfers, notes, and the calls that wait.

A task passes a _LoopWait as the `timeout` of a call. A call that would wait raises BlockingIOError
instead, and the library rings the loop's doorbell when the call is worth another try. A wake looks
only at the tasks that have news, however many tasks wait.
"""

import asyncio
import concurrent.futures
import contextlib
import functools
import inspect
import itertools
import math
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Callable, TypeVar

from viaduct._core import Agent, _Doorbell
from viaduct._errors import Error, InvalidError

if TYPE_CHECKING:
    from typing import ParamSpec

    from viaduct._core import Note

    P = ParamSpec("P")
T = TypeVar("T")

# A post starts, and the end of the timeout of drain() changes the agent: neither can be repeated.
_NO_WAITS = ("post", "drain")


class _Descriptor:
    """A descriptor that an event loop watches. It is a duplicate, so it stays open until the loop
    has stopped to watch it."""

    def __init__(self, loop, fileno, callback):
        self.loop = loop
        self.number = os.dup(fileno)
        loop.add_reader(self.number, callback)

    def __del__(self):
        try:
            # Garbage collection may run in any thread, but remove_reader() needs the loop's thread.
            self.loop.call_soon_threadsafe(_remove, self.loop, self.number)
        except RuntimeError:  # the loop is closed
            os.close(self.number)


def _remove(loop, descriptor):
    loop.remove_reader(descriptor)
    os.close(descriptor)


class _Loop:
    """The waits of one event loop. Only the loop's thread uses it."""

    def __init__(self, loop):
        self.loop = loop
        self.numbers = itertools.count()
        self.waits = {}  # maps the number of each wait to its future
        self.bell = _Doorbell()
        own = weakref.WeakMethod(self.ring)
        self.watched = _Descriptor(loop, self.bell.fileno(), lambda: _call(own))
        self.agents = weakref.WeakKeyDictionary()  # maps agents to their _Progress

    async def until(self, agent, attempt, deadline=None):
        """Returns what `attempt` returns, as soon as it does not wait. After the deadline, lets it
        raise its error."""
        number = next(self.numbers)
        wait = self.bell.wait(number)
        while deadline is None or self.loop.time() < deadline:
            try:
                return attempt(wait)
            except BlockingIOError:
                pass
            await self._news(agent, number, deadline)
        return attempt(0)

    async def _news(self, agent, number, deadline):
        progress = self.agents.get(agent)
        if progress is None:
            progress = self.agents[agent] = _Progress(self, agent)
        progress.watch()
        future = self.waits[number] = self.loop.create_future()
        timer = deadline and self.loop.call_at(deadline, _resolve, future)
        progress.waits += 1
        try:
            await future
        finally:
            progress.waits -= 1
            del self.waits[number]
            if timer:
                timer.cancel()

    def ring(self):
        """Resumes the tasks that have news."""
        for number in self.bell.take():
            if number in self.waits:
                _resolve(self.waits[number])


class _Progress:
    """Makes progress on an agent in the thread of a loop, so that news takes no detour by another
    thread. The loop watches the agent's descriptor while tasks wait for the agent."""

    def __init__(self, loop, agent):
        self.loop = weakref.proxy(loop)
        self.agent = weakref.ref(agent)
        self.waits = 0
        self.watched = None

    def watch(self):
        if self.watched is None:
            own = weakref.WeakMethod(self.poll)
            # Another thread may close the agent, which then needs no more progress from here.
            with contextlib.suppress(InvalidError):
                self.watched = _Descriptor(self.loop.loop, self.agent().fileno(),
                                           lambda: _call(own))

    def poll(self):
        try:
            if self.waits != 0:
                self.agent().poll()
                self.loop.ring()
                return
        except InvalidError:  # the agent was closed
            pass
        self.watched = None  # leaves the event to the next task that waits


def _call(reference):
    method = reference()
    if method is not None:
        method()


def _resolve(future):
    if not future.done():
        future.set_result(None)


_loops = {}
# Reentrant: a garbage collection under the lock may run code that takes the lock again.
_lock = threading.RLock()


def _running():
    loop = asyncio.get_running_loop()
    known = _loops.get(loop)
    if known is not None:
        return known
    with _lock:
        for other in [other for other in _loops if other.is_closed()]:
            del _loops[other]
        made = _loops[loop] = _Loop(loop)
    return made


@functools.lru_cache(maxsize=None)
def _timeout_position(kind, name):
    """Returns the position of `timeout` among the arguments of a call that waits."""
    names = []
    if kind.__module__ == "viaduct" and name not in _NO_WAITS:
        parameters = inspect.signature(getattr(kind, name)).parameters.values()
        names = [one.name for one in parameters
                 if one.kind != one.KEYWORD_ONLY and one.name != "self"]
    if "timeout" not in names:
        raise TypeError(f"awaitable: {kind.__name__}.{name} does not wait; what to do: call it, "
                        "or run it with asyncio.to_thread()")
    return names.index("timeout")


async def awaitable(call: "Callable[P, T]", /, *args: "P.args", **kwargs: "P.kwargs") -> "T":
    """Awaits a call that waits, such as peer.ready, without a thread.

        await viaduct.awaitable(peer.ready, timeout=10)
        await asyncio.gather(*(viaduct.awaitable(marks.wait, mark, 10) for mark in range(32)))

    The arguments, the result and the exceptions are those of the call. The calls are Agent.find and
    wait_note; Peer.ready, over and pin; wait of Transfer, Lease, BorrowedLease and PublishedParcel;
    wait and wait_part of ParcelFetch; and wait, wait_count and over of MarkStream. A cancelled task
    stops waiting, and changes nothing else.
    """
    position = _timeout_position(type(getattr(call, "__self__", None)), call.__name__)
    if len(args) > position:
        kwargs["timeout"], args = args[position], args[:position] + args[position + 1:]
    timeout = kwargs.pop("timeout", None)
    seconds = timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout
    if seconds is not None and not seconds > 0:
        return call(*args, timeout=timeout, **kwargs)  # does not wait, or refuses the number
    if call.__name__ == "find":
        return await _find(call, args, kwargs, seconds)
    loop = _running()
    deadline = None if seconds is None else loop.loop.time() + seconds
    owner = call.__self__
    if not isinstance(owner, Agent):
        owner = owner.agent if hasattr(owner, "agent") else owner._agent
    return await loop.until(owner, lambda wait: call(*args, timeout=wait, **kwargs), deadline)


_finds = {}  # maps each agent for which a thread looks up names to the awaited look-ups


def _look_up(agent):
    """Looks up the names that tasks await for one agent. A look-up blocks, because the meeting
    place may be a remote server, so one thread takes the names in turn."""
    while True:
        with _lock:
            awaited = [one for one in _finds[agent] if not one.answer.done()]
            _finds[agent] = list(awaited)
            if not awaited:
                del _finds[agent]
                return
        for one in awaited:
            one.look(len(awaited))


class _Find:
    def __init__(self, call, seconds):
        self.call = call
        self.answer = concurrent.futures.Future()
        self.began = time.monotonic()
        self.deadline = math.inf if seconds is None else self.began + seconds

    def look(self, awaited):
        """Asks for a share of the time that this name has waited. So a server is asked less often
        the longer the name is missing, and no name waits long for its turn."""
        now = time.monotonic()
        until = min(self.deadline, now + max(0.02, (now - self.began) / awaited))
        try:
            self._end(self.answer.set_result, self.call(timeout=max(0, until - now)))
        except Exception as error:
            now = time.monotonic()
            if now < until or now >= self.deadline:  # failed early, or the deadline has passed
                self._end(self.answer.set_exception, error)

    def _end(self, end, result):
        if not self.answer.done():
            with contextlib.suppress(concurrent.futures.InvalidStateError):  # cancelled meanwhile
                end(result)


async def _find(call, args, kwargs, seconds):
    find = _Find(functools.partial(call, *args, **kwargs), seconds)
    agent = call.__self__
    with _lock:
        if agent not in _finds:
            _finds[agent] = []
            threading.Thread(target=_look_up, args=(agent,), name="viaduct-find",
                             daemon=True).start()
        _finds[agent].append(find)
    return await asyncio.wrap_future(find.answer)


async def end_of(running):
    """Implements `await transfer` and `await fetch`. A cancelled task cancels the transfer or the
    fetch, and waits for its end."""
    loop = _running()
    try:
        await loop.until(running.agent, running.wait)
    except asyncio.CancelledError:
        running.cancel()
        await _end_despite_cancels(loop, running)
        raise
    return running


async def _end_despite_cancels(loop, running):
    # The program may reuse the memory after the task, so wait. The setting `grace` limits the wait.
    while running.state == "running":
        try:
            await loop.until(running.agent, running.wait)
        except (asyncio.CancelledError, Error):
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
        return await _running().until(self._agent, self._agent.wait_note)
