"""Publishes and fetches the parcels of a worker, in the event loop of a thread. Threads: vLLM's
worker thread makes and calls Transfers; its methods with an underscore run in the loop."""

import asyncio
import collections
import contextlib
import functools
import logging
import os
import threading
from typing import NamedTuple, Optional

import viaduct
from viaduct.vllm import _pages, _remote

log = logging.getLogger("viaduct.vllm")

# In seconds: a request may wait in the queue of its engine without a limit.
NEVER = 1e9


class Ended(NamedTuple):
    """A request whose blocks the engine may use again, or whose blocks are filled."""

    request: str
    sent: bool
    failed_blocks: Optional[set] = None


class Transfers:
    def __init__(self, layers, rank, block_sizes, engine, ended, life=480, timeout=60,
                 viaduct=None, **unknown):
        if unknown:
            raise _invalid(f"kv_connector_extra_config has {sorted(unknown)}, which mean nothing",
                           "use life, timeout, and viaduct with settings of the agent")
        self._layers, self._rank, self._engine, self._ended = layers, rank, engine, ended
        self._life, self._timeout = float(life), float(timeout)
        self.agent = _agent(f"{engine}/{rank.pp}/{rank.tp}", viaduct or {})
        self._pins = [self.agent.pin((start, end - start), device=device)
                      for device, start, end in _extents(layers)]
        self.stacks = [_pages.Stack(stack) for stack in _pages.stacks_of(layers)]
        self._scratch = self.agent.allocate(1)
        description = _remote.describe(layers, rank, block_sizes)
        told = self.agent.allocate(len(description))
        memoryview(told)[:] = description
        self._description = self.agent.publish(_remote.DESCRIPTION,
                                               {_remote.DESCRIPTION_PART: told})
        self._first = None  # the peer that decides about the parcels of this engine
        self._engines = {}  # maps the key of an engine to the task that opens it
        self._tasks = set()
        self._claims, self._loading = {}, {}  # map requests to their tasks
        self._steps = collections.deque()
        # call_soon_threadsafe() takes twice as long: docs/measured/vllm.md
        self._doorbell = os.eventfd(0, os.EFD_NONBLOCK)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="viaduct-vllm", daemon=True)
        self._thread.start()

    def take(self, step):
        """Begins what the step says."""
        self._steps.append(step)
        os.eventfd_write(self._doorbell, 1)

    def close(self):
        self.agent.close()  # ends all transfers, and tells the other engines
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        os.close(self._doorbell)

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._loop.add_reader(self._doorbell, self._take_steps)
        self._loop.run_forever()

    def _take_steps(self):
        os.eventfd_read(self._doorbell)
        while self._steps:
            self._take(self._steps.popleft())

    def _begin(self, coroutine, done):
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(done)
        task.add_done_callback(self._tasks.discard)
        return task

    def _take(self, step):
        for request in step.cancel:  # first: a request of this step may have the same name
            for tasks in (self._claims, self._loading):
                if request in tasks:
                    tasks[request].cancel()
        for one in step.publish:
            self._begin(self._publish(one), functools.partial(self._published, one))
        for one in step.load:
            self._loading[one.request] = self._begin(self._load(one),
                                                     functools.partial(self._loaded, one))
        if self._rank.number == 0:  # rank 0 speaks for the engine
            # A load waits for its claim, so a claim that has failed is repeated.
            for one in [*step.claim, *(load for load in step.load if load.claimed)]:
                if one.request not in self._claims:
                    self._claims[one.request] = self._begin(
                        self._claim(one), functools.partial(self._claim_over, one))
            for one in step.release:
                if one.request in self._claims:
                    self._claims[one.request].cancel()
                self._begin(self._release(one.source), _seen)

    # ---- the source ----

    async def _publish(self, one):
        how = {"parts": one.parts, "takers": 1, "life": self._life,
               "layout": _pages.signature(one.pages)}
        if self._rank.number != 0:
            if not one.blocks:
                return
            how["owner"] = await self._first_worker(one.owner)
        ready = {}
        try:
            if one.blocks:
                for part in _pages.parts_of([stack.row for stack in self.stacks], one.pages):
                    stack = self.stacks[part.stack]
                    ready[self._rank.number, part.component] = stack.select(
                        part, one.blocks[stack.group])
            parcel = self.agent.publish(one.parcel, ready, **how)
        except viaduct.Error:
            self.agent.publish(one.parcel, **how).withdraw()  # so that no engine waits for it
            raise
        try:
            if not ready:
                parcel.withdraw()
            end = await viaduct.awaitable(parcel.wait)
        except BaseException:
            parcel.withdraw()  # before the engine uses the blocks again
            raise
        if ready and end.outcome != "whole":
            log.warning("request %s: nobody took its KV cache: %s", one.request, end.error)

    async def _first_worker(self, address):
        if self._first is None:
            self._first = self.agent.connect(address)
        await viaduct.awaitable(self._first.ready, self._timeout)
        return self._first

    def _published(self, one, task):
        _report(f"request {one.request}: its KV cache was not published", task)
        if one.blocks:
            self._ended.append(Ended(one.request, True))

    # ---- the destination ----

    async def _load(self, one):
        engine = await self._engine_of(one.source)
        into, slices, why = {}, {}, engine.why
        try:
            if why is None:
                into, slices = self._into(one, engine)
        except viaduct.Error as error:
            into, slices, why = {}, {}, error
        group = (self._engine, self._rank.workers + one.claimed, self._rank.number)
        fetch = self._fetch(engine, one.source, self._timeout, group, into, slices)
        if why is None:
            await fetch
            return
        fetch.cancel(f"{self._rank} of engine {self._engine}: {why}")
        with contextlib.suppress(viaduct.Error):
            await fetch
        raise why

    def _into(self, one, engine):
        """Returns the memory for each part, and the slice of it."""
        into, slices = {}, {}
        for worker, layers in engine.takes:
            for part in worker.parts(worker.pages(one.source)):
                taken = worker.select(one, part, layers, self._rank)
                if taken is not None:
                    slices[worker.key(part)], into[worker.key(part)] = taken
        return into, slices

    def _fetch(self, engine, source, timeout, group=None, into=None, slices=None):
        owner = engine.owner
        pages = owner.pages(source)
        if not into:  # one byte tells the source about this rank
            part = owner.key(owner.parts(pages)[0])
            into, slices = {part: self._scratch}, {part: viaduct.Blocks.list([(0, 1)])}
        return self.agent.fetch(owner.peer, source.parcel, into, slices=slices, exact=True,
                                layout=_pages.signature(pages), owner=owner.agent, group=group,
                                timeout=timeout)

    def _loaded(self, one, task):
        failed = _report(f"request {one.request}: its KV cache did not come from engine "
                         f"{one.source.engine}", task)
        if self._loading.get(one.request) is task:
            del self._loading[one.request]
        blocks = {block for _, ids in one.blocks for block in ids} if failed else None
        self._ended.append(Ended(one.request, False, blocks))
        unreached = failed and isinstance(task.exception(), viaduct.PeerLostError)
        if self._rank.number == 0 and not unreached and (failed or task.cancelled()):
            self._begin(self._release(one.source), _seen)

    async def _claim(self, one):
        """Takes part in the group of the load, so that the source knows the engine that will load.
        The source frees the blocks when this engine dies, and not before."""
        engine = await self._engine_of(one.source)
        await self._fetch(engine, one.source, NEVER,
                          (self._engine, self._rank.workers + 1, self._rank.workers))

    def _claim_over(self, one, task):
        _seen(task)
        if self._claims.get(one.request) is task:
            del self._claims[one.request]

    async def _release(self, source):
        """Fetches one byte without a group, in place of a group that has ended or never asked.
        Then the source frees the blocks, even if it has yet to publish them."""
        engine = await self._engine_of(source)
        await self._fetch(engine, source, self._life)

    async def _engine_of(self, source):
        key = (source.engine, source.workers)
        for old, task in list(self._engines.items()):  # also entries of its earlier lives
            if old[0] == source.engine and task.done() and (
                    task.exception() or not task.result().is_open()):
                del self._engines[old]
                if not task.exception():
                    task.result().close()
        if key not in self._engines:
            self._engines[key] = self._begin(_remote.open_engine(
                self.agent, source, self._layers, self._rank, self._timeout), _seen)
        return await asyncio.shield(self._engines[key])


def _seen(task):
    """Takes the error of a task. Each load that awaits the engine reports that error itself."""
    if not task.cancelled():
        task.exception()


def _report(what, task):
    """Logs the error of a task, and returns whether it had one."""
    if task.cancelled():
        return False
    error = task.exception()
    if error is not None:
        expected = isinstance(error, viaduct.Error)
        log.error("%s: %s", what, error, exc_info=None if expected else error)
    return error is not None


def _agent(name, settings):
    try:
        return viaduct.Agent(name=name, **settings)
    except TypeError as error:
        raise _invalid(f"kv_connector_extra_config.viaduct: {error}",
                       "see docs/settings.md") from None


def _invalid(detail, remedy):
    return viaduct.InvalidError(f"kv-transfer-config: {detail}; what to do: {remedy}")


def _extents(layers):
    """Returns the memory of all layers as (device, start, end) that do not overlap."""
    out = []
    for device, start, end in sorted(((one.device, *one.extent) for one in layers),
                                     key=lambda row: (row[0] is not None, row)):
        if out and out[-1][0] == device and start <= out[-1][2]:
            out[-1][2] = max(out[-1][2], end)
        else:
            out.append([device, start, end])
    return out
