"""The lower layer of the API: agents with integer handles, descriptor lists, enums, exceptions."""

from __future__ import annotations

import enum as _enum
import logging as _logging
import os as _os

from nixl.logging import get_logger as _get_logger
from viaduct import _logging as _library_log
from viaduct._core import nixl as _core
from viaduct._core.nixl import *  # noqa: F403
from viaduct._core.nixl import (
    NIXL_SUCCESS,
    nixl_status_t,
    nixlNotSupportedError,
    nixlRegDList,
)

NIXL_INIT_AGENT = ""
DEFAULT_COMM_PORT = 8888
HAVE_UCX_GPU_DEVICE_API = False

_logger = _get_logger(__name__)

YES = ("y", "yes", "1", "on", "true")


class nixl_thread_sync_t(_enum.IntEnum):
    """NIXL's modes of thread safety. Viaduct ignores the mode: every agent is thread-safe."""

    NIXL_THREAD_SYNC_NONE = 0
    NIXL_THREAD_SYNC_STRICT = 1
    NIXL_THREAD_SYNC_RW = 2
    NIXL_THREAD_SYNC_DEFAULT = 3


globals().update(nixl_thread_sync_t.__members__)


class nixlAgentConfig:
    """Only the listener's options and capture_telemetry have an effect."""

    def __init__(
        self,
        use_prog_thread: bool = True,
        use_listen_thread: bool = False,
        port: int = 0,
        sync_mode: nixl_thread_sync_t = nixl_thread_sync_t.NIXL_THREAD_SYNC_NONE,
        num_workers: int = 1,
        pthr_delay_us: int = 0,
        lthr_delay_us: int = 100_000,
        capture_telemetry: bool = False,
    ):
        self.useProgThread = use_prog_thread
        self.useListenThread = use_listen_thread
        self.listenPort = port
        self.syncMode = sync_mode
        self.captureTelemetry = capture_telemetry
        self.pthrDelay = pthr_delay_us
        self.lthrDelay = lthr_delay_us
        self.etcdWatchTimeout = 5_000_000


class nixlAgent(_core.nixlAgent):
    """An agent with integer handles. The methods have the names of NIXL's C++ API."""

    def __init__(self, name: str, config: nixlAgentConfig | None = None):
        config = nixlAgentConfig() if config is None else config
        super().__init__(name, config.captureTelemetry)
        self._exchange = None
        self._listen_port = self._listen(config.listenPort) if config.useListenThread else 0
        if self.capturesTelemetry and _os.environ.get("NIXL_TELEMETRY_DIR"):
            from nixl import _telemetry

            _telemetry.record(self, _os.environ["NIXL_TELEMETRY_DIR"])

    def listenPort(self) -> int:
        return self._listen_port

    def _listen(self, asked: int) -> int:
        port = self._exchanger().listen(asked)
        _get_logger("nixl._exchange").log(
            _logging.DEBUG if asked else _logging.INFO,
            "MD listener is listening on port %d",
            port,
        )
        return port

    def createBackend(self, type: str, initParams: dict[str, str] | None = None) -> int:
        given = initParams or {}
        known = self.getPluginParams(type)[0]
        for key in given:
            if key not in known:
                _logger.warning("backend %s: parameter %s is unknown and is ignored", type, key)
        return super().createBackend(type, given)

    def estimateXferCost(self, reqh: int) -> tuple[int, int, int]:
        self.queryXferBackend(reqh)  # refuses an unknown handle
        raise nixlNotSupportedError(
            "NIXL_ERR_NOT_SUPPORTED: Viaduct does not estimate a transfer's cost; post it with "
            "capture_telemetry=True and read get_xfer_telemetry()"
        )

    def prepMemView(self, *args: object, **kwargs: object) -> int:
        raise nixlNotSupportedError(
            "NIXL_ERR_NOT_SUPPORTED: memory views need transfers that a GPU starts by itself"
        )

    releaseMemView = prepMemView

    # Metadata goes over a socket if the caller gives an address. Otherwise agents find it at the
    # meeting place, the directory server where agents publish their names.

    def _exchanger(self):
        if self._exchange is None:
            _library_log.start()  # failures in the background are lines of the library's log
            self._exchange = _core.Exchange(self)
        return self._exchange

    def sendLocalMD(self, ip_addr: str = "", port: int = DEFAULT_COMM_PORT) -> nixl_status_t:
        if ip_addr:
            self._exchanger().send(ip_addr, port, self.getLocalMD())
        return NIXL_SUCCESS

    def sendLocalPartialMD(
        self,
        descs: nixlRegDList,
        inc_conn_info: bool = False,
        backends: list[int] = (),
        ip_addr: str = "",
        port: int = DEFAULT_COMM_PORT,
        label: str = "",
    ) -> nixl_status_t:
        blob = self.getLocalPartialMD(descs, inc_conn_info, backends)
        if ip_addr:
            self._exchanger().send(ip_addr, port, blob)
        elif label:
            self.offerPart(label, blob)
        return NIXL_SUCCESS

    def fetchRemoteMD(
        self,
        remote_agent: str | bytes,
        ip_addr: str = "",
        port: int = DEFAULT_COMM_PORT,
        label: str = "",
    ) -> nixl_status_t:
        if ip_addr:
            self._exchanger().fetch(ip_addr, port)
        else:
            self._exchanger().find(remote_agent, label)
        return NIXL_SUCCESS

    def invalidateLocalMD(self, ip_addr: str = "", port: int = DEFAULT_COMM_PORT) -> nixl_status_t:
        if ip_addr:
            self._exchanger().invalidate(ip_addr, port, self.name)
        else:
            self.withdrawParts()
        return NIXL_SUCCESS
