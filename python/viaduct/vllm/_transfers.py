"""Publishes and fetches the parcels of a worker, in the event loop of a thread. Threads: vLLM's
worker thread makes and calls Transfers; its methods with an underscore run in the loop."""

import asyncio
import functools
import logging
import threading
from typing import NamedTuple, Optional

import viaduct
from viaduct.vllm import _pages, _remote

log = logging.getLogger("viaduct.vllm")


class Ended(NamedTuple):
    """A request whose blocks the engine may use again, or whose blocks are filled."""

    request: str
    sent: bool
    failed_blocks: Optional[set] = None


class Transfers:
    def __init__(self, layers, place, engine, ended, life=480, timeout=60, viaduct=None, **unknown):
        if unknown:
            raise _invalid(f"kv_connector_extra_config has {sorted(unknown)}, which mean nothing",
                           "use life, timeout, and viaduct with settings of the agent")
        self._layers, self._place, self._engine, self._ended = layers, place, engine, ended
        self._life, self._timeout = float(life), float(timeout)
        pp, pp_size, tp, tp_size = place
        self.agent = _agent(f"{engine}/{pp}/{tp}", viaduct or {})
        self._pins = [self.agent.pin((start, end - start), device=device)
                      for device, start, end in _extents(layers)]
        self._blocks = {layer.name: layer.blocks() for layer in layers}
        self._scratch = self.agent.allocate(1)
        description = _remote.describe(layers, pp, pp_size, tp, tp_size)
        told = self.agent.allocate(len(description))
        memoryview(told)[:] = description
        self._signature = _remote.signature(description)
        self._description = self.agent.publish(_remote.DESCRIPTION,
                                               {_remote.DESCRIPTION_PART: told})
        self._engines = {}  # maps what names an engine to a task that opens it
        self._tasks = set()
        self._loading = {}  # maps requests to their tasks
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="viaduct-vllm", daemon=True)
        self._thread.start()

    def take(self, step):
        """Begins what the step says."""
        self._loop.call_soon_threadsafe(self._take, step)

    def close(self):
        self.agent.close()  # ends all transfers, and tells the other engines
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _begin(self, coroutine, done):
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(done)
        task.add_done_callback(self._tasks.discard)
        return task

    def _take(self, step):
        for request in step.cancel:  # first: a request of this step may have the same name
            if request in self._loading:
                self._loading[request].cancel()
        for one in step.publish:
            self._begin(self._publish(one), functools.partial(self._published, one))
        for name in step.refuse:
            self._begin(self._refuse(name), _seen)
        for one in step.load:
            task = self._begin(self._load(one), functools.partial(self._loaded, one))
            if one.blocks:
                self._loading[one.request] = task

    # ---- the source ----

    async def _publish(self, one):
        parts, tables = {}, {}
        for component, layer in enumerate(self._layers):
            ids = one.blocks[layer.group][1]
            if not ids:
                continue
            key = (layer.group, layer.per_block, layer.touching, layer.count)
            if key not in tables:
                tables[key] = layer.numbers(_pages.pages_of(ids, layer.per_block))
            parts[self._place[2], component] = self._blocks[layer.name][tables[key]]
        parcel = self.agent.publish(one.parcel, parts, takers=1, life=self._life,
                                    layout=self._signature)
        try:
            end = await viaduct.awaitable(parcel.wait)
        except BaseException:
            parcel.withdraw()  # before the engine uses the blocks again
            raise
        if end.outcome != "whole":
            log.warning("request %s: nobody took its KV cache: %s", one.request, end.error)

    async def _refuse(self, name):
        """Tells a waiting engine that the parcel will not come."""
        with self.agent.publish(name, parts=[_remote.DESCRIPTION_PART]):
            pass

    def _published(self, one, task):
        _report(f"request {one.request}: its KV cache was not published", task)
        self._ended.append(Ended(one.request, True))

    # ---- the destination ----

    async def _load(self, one):
        engine = await self._engine_of(one.source)
        running = []
        ends = await asyncio.gather(
            *(self._take_from(one, engine, *source, running) for source in engine.sources),
            return_exceptions=True)  # so it returns, or is cancelled, after all have ended
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    async def _take_from(self, one, engine, remote, size, rank, running):
        try:
            misfit = None
            try:
                into, slices = self._into(one, engine, remote)
            except viaduct.Error as error:
                into, misfit = {}, error
            if not into:  # nothing is needed, or fits: one byte tells the source so
                part = (remote.tp, remote.first_part(one.source.pages))
                into, slices = {part: self._scratch}, {part: viaduct.Blocks.list([(0, 1)])}
            fetch = self.agent.fetch(
                remote.peer, one.source.parcel, into, slices=slices, layout=remote.signature,
                owner=remote.agent, group=(self._engine, size, rank), timeout=self._timeout)
            running.append(fetch)
            await fetch
            if misfit is not None:
                raise misfit
        except viaduct.Error:
            for other in running:
                other.cancel("another rank of the source failed")
            raise

    def _into(self, one, engine, remote):
        """Returns the memory for each part, and the slice of it. None is needed without blocks."""
        into, slices, tables = {}, {}, {}
        for layer in engine.takes[remote.pp, remote.tp] if one.blocks else ():
            component, group, kind, per_block = remote.layers[layer.name]
            key = (layer.group, layer.kind.tokens, group, kind.tokens, per_block)
            if key not in tables:
                tables[key] = _pages.tables(one, layer, group, kind, per_block)
            if tables[key] is not None:
                plan = remote.plan(layer, self._place[3], self._place[2])
                slices[remote.tp, component], into[remote.tp, component] = \
                    plan.select([tables[key]])
        return into, slices

    def _loaded(self, one, task):
        failed = _report(f"request {one.request}: its KV cache did not come from engine "
                         f"{one.source.engine}", task)
        if one.blocks:
            del self._loading[one.request]
            blocks = {block for _, ids in one.blocks for block in ids} if failed else None
            self._ended.append(Ended(one.request, False, blocks))

    async def _engine_of(self, source):
        key = (source.engine, source.workers)
        for old, task in list(self._engines.items()):  # also those of its earlier lives
            if old[0] == source.engine and task.done() and (
                    task.exception() or not task.result().is_open()):
                del self._engines[old]
                if not task.exception():
                    task.result().close()
        if key not in self._engines:
            self._engines[key] = self._begin(_remote.open_engine(
                self.agent, source, self._layers, self._place, self._timeout), _seen)
        return await asyncio.shield(self._engines[key])


def _seen(task):
    """Each load that awaits the engine reports the error."""
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
