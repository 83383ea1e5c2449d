"""Writes an agent's telemetry as events, in the file format of NIXL 1.4's telemetry reader.

The file is a header and a ring of events. A reader takes events out while the agent puts events in. If
the ring is full, further events are dropped.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from typing import Any

from nixl.logging import get_logger

logger = get_logger(__name__)

VERSION = 1
HEADER = struct.Struct("=QQIIQQ")  # written, read, version, expected version, capacity, mask
EVENT = struct.Struct("=Qi32s4xQ")  # microseconds since 1970, category, name, value
DEFAULT_EVENTS = 4096

# The categories of events.
MEMORY, TRANSFER, ERROR, PERFORMANCE = 0, 1, 4, 5


def _capacity() -> int:
    """Returns the least power of two that is at least NIXL_TELEMETRY_BUFFER_SIZE."""
    asked = os.environ.get("NIXL_TELEMETRY_BUFFER_SIZE", "")
    events = int(asked) if asked.isdigit() and asked != "0" else DEFAULT_EVENTS
    return 1 << max(events - 1, 1).bit_length()


class EventFile:
    """The file of one agent."""

    def __init__(self, path: str):
        self._capacity = _capacity()
        self._lock = threading.Lock()
        self._full = False
        size = HEADER.size + EVENT.size * self._capacity
        # A reader may still map the file of an earlier agent, so that file is replaced and not cut.
        fresh = f"{path}.{os.getpid()}"
        descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, size)
            self._map = mmap.mmap(descriptor, size)
            HEADER.pack_into(self._map, 0, 0, 0, VERSION, VERSION, self._capacity, self._capacity - 1)
            os.replace(fresh, path)
        except OSError:
            os.unlink(fresh)
            raise
        finally:
            os.close(descriptor)

    def add(self, *events: tuple[int, str, int]) -> None:
        """Adds events, each as (category, name, value)."""
        now = time.time_ns() // 1000
        with self._lock:
            for category, name, value in events:
                written, read = struct.unpack_from("=QQ", self._map)
                after = (written + 1) & (self._capacity - 1)
                if after == read:
                    if not self._full:
                        logger.warning("telemetry events are dropped: no reader takes them out")
                    self._full = True
                    return
                place = HEADER.size + EVENT.size * (written % self._capacity)
                EVENT.pack_into(self._map, place, now, category, name.encode(), value)
                struct.pack_into("=Q", self._map, 0, after)
                self._full = False


class _Recorder:
    """Stands between a program and the calls of an agent, and writes an event for each result."""

    def __init__(self, agent: Any, file: EventFile):
        self._file = file
        self._telemetry = agent.getXferTelemetry
        self._writes: dict[int, bool] = {}  # whether a transfer writes, by its handle
        self._running: set[int] = set()
        for name in (
            "registerMem",
            "deregisterMem",
            "makeXferReq",
            "createXferReq",
            "postXferReq",
            "getXferStatus",
            "releaseXferReq",
        ):
            setattr(agent, name, self._wrapped(getattr(agent, name), getattr(self, "_" + name)))

    def _wrapped(self, call: Any, record: Any) -> Any:
        def recorded(*arguments: Any, **named: Any) -> Any:
            try:
                result = call(*arguments, **named)
            except Exception as error:
                kind = str(error).partition(":")[0]
                if kind.startswith("NIXL_ERR_"):
                    self._file.add((ERROR, f"agent_{kind[5:].lower()}", 1))
                raise
            record(result, *arguments, *named.values())
            return result

        return recorded

    def _registerMem(self, result: Any, descs: Any, *rest: Any) -> None:
        self._file.add((MEMORY, "agent_memory_registered", sum(row[1] for row in descs)))

    def _deregisterMem(self, result: Any, descs: Any, *rest: Any) -> None:
        self._file.add((MEMORY, "agent_memory_deregistered", sum(row[1] for row in descs)))

    def _makeXferReq(self, handle: int, operation: Any, *rest: Any) -> None:
        self._writes[handle] = operation.name == "NIXL_WRITE"

    _createXferReq = _makeXferReq

    def _postXferReq(self, state: Any, handle: int, *rest: Any) -> None:
        self._running.add(handle)
        self._getXferStatus(state, handle)

    def _getXferStatus(self, state: Any, handle: int) -> None:
        if state.name != "NIXL_SUCCESS" or handle not in self._running:
            return
        self._running.discard(handle)
        times, way = self._telemetry(handle), "tx" if self._writes.get(handle) else "rx"
        self._file.add(
            (PERFORMANCE, "agent_xfer_post_time", times.postDuration),
            (PERFORMANCE, "agent_xfer_time", times.xferDuration),
            (TRANSFER, f"agent_{way}_bytes", times.totalBytes),
            (TRANSFER, f"agent_{way}_requests_num", 1),
        )

    def _releaseXferReq(self, result: Any, handle: int) -> None:
        self._running.discard(handle)
        self._writes.pop(handle, None)


def record(agent: Any, folder: str) -> None:
    """Writes the agent's events from now on, into a file in the folder that has the agent's name."""
    path = os.path.join(folder, agent.name.replace("/", "_"))
    try:
        _Recorder(agent, EventFile(path))
    except OSError as error:
        logger.warning("telemetry is not written: %s", error)
