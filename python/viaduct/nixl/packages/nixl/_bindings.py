"""The lower layer of the API: agents with integer handles, descriptor lists, enums, exceptions."""

from __future__ import annotations

import os as _os

from nixl import _plugins
from nixl.logging import get_logger as _get_logger
from viaduct._core import nixl as _core
from viaduct._core.nixl import *  # noqa: F403
from viaduct._core.nixl import (
    DRAM_SEG,
    FILE_SEG,
    NIXL_SUCCESS,
    OBJ_SEG,
    nixl_status_t,
    nixl_thread_sync_t,
    nixlAgentConfig,
    nixlBackendError,
    nixlInvalidParamError,
    nixlNotFoundError,
    nixlNotSupportedError,
    nixlRegDList,
    nixlXferDList,
)

NIXL_INIT_AGENT = ""
DEFAULT_COMM_PORT = 8888
HAVE_UCX_GPU_DEVICE_API = False

_logger = _get_logger(__name__)

YES = ("y", "yes", "1", "on", "true")
_NO = ("n", "no", "0", "off", "false")


def _captures(config: nixlAgentConfig) -> nixlAgentConfig:
    """Returns the configuration after NIXL_TELEMETRY_ENABLE has overridden captureTelemetry."""
    asked = _os.environ.get("NIXL_TELEMETRY_ENABLE", "").lower()
    if asked not in YES + _NO or config.captureTelemetry == (asked in YES):
        return config
    changed = nixlAgentConfig()
    for name in (
        "useProgThread",
        "useListenThread",
        "listenPort",
        "syncMode",
        "pthrDelay",
        "lthrDelay",
        "etcdWatchTimeout",
    ):
        setattr(changed, name, getattr(config, name))
    changed.captureTelemetry = asked in YES
    return changed


def _fileFacts(path: str) -> dict[str, str] | None:
    """Returns what query_memory() tells of a file, or None for an absent file."""
    words, _, named = path.partition(":")
    try:
        facts = _os.stat(named if words.split(",")[0] in ("ro", "rw") else path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise nixlBackendError(f"NIXL_ERR_BACKEND: query_memory: {error}") from error
    return {
        "size": str(facts.st_size),
        "mode": str(facts.st_mode),
        "mtime": str(int(facts.st_mtime)),
    }


class nixlAgent(_core.nixlAgent):
    """An agent with integer handles. The methods have the names of NIXL's C++ API."""

    def __init__(self, name: str, config: nixlAgentConfig | None = None):
        config = _captures(nixlAgentConfig() if config is None else config)
        super().__init__(name, config)
        self._backends: dict[int, str] = {}
        self._exchange = None
        if config.useListenThread:
            self._exchanger().listen(config.listenPort)
        if config.captureTelemetry and _os.environ.get("NIXL_TELEMETRY_DIR"):
            from nixl import _telemetry

            _telemetry.record(self, _os.environ["NIXL_TELEMETRY_DIR"])

    def listenPort(self) -> int:
        return 0 if self._exchange is None else self._exchange.port

    # Plugins and backends

    def getAvailPlugins(self) -> list[str]:
        return list(_plugins.NAMES)

    @staticmethod
    def _check_plugin(name: str) -> None:
        if name in _plugins.REFUSED:
            raise nixlNotSupportedError(f"NIXL_ERR_NOT_SUPPORTED: {_plugins.refusal(name)}")
        if name not in _plugins.NAMES:
            raise nixlNotFoundError(f"NIXL_ERR_NOT_FOUND: {_plugins.refusal(name)}")

    def getPluginParams(self, type: str) -> tuple[dict[str, str], list[str]]:
        self._check_plugin(type)
        storage = type in _plugins.STORAGE
        memories = _plugins.memory_types(type) if storage else self._networkMemories()
        return dict(_plugins.PARAMETERS[type]), [memory.name for memory in memories]

    def createBackend(self, type: str, initParams: dict[str, str] | None = None) -> int:
        self._check_plugin(type)
        for key in initParams or {}:
            if key not in _plugins.PARAMETERS[type]:
                _logger.warning("backend %s: parameter %s is unknown and is ignored", type, key)
        for handle, name in self._backends.items():
            if name == type:
                return handle
        if type in _plugins.STORAGE:
            self._createStorage(type, dict(initParams or {}))
        handle = len(self._backends) + 1
        self._backends[handle] = type
        return handle

    def _createStorage(self, type: str, parameters: dict[str, str]) -> None:
        memory = _plugins.STORAGE[type]
        bucket = _plugins.bucket_of(type, parameters)
        if memory == OBJ_SEG and not bucket:
            raise nixlInvalidParamError(
                f"NIXL_ERR_INVALID_PARAM: backend {type} has no bucket; "
                'pass {"bucket": name} or set AWS_DEFAULT_BUCKET'
            )
        settings = _plugins.settings_of(type, parameters)
        self.openStorage(memory, list(settings.items()), bucket)
        if type.startswith("GDS"):
            _logger.info(
                "backend %s: files move between disk and host memory through io_uring or "
                "threads; GPUDirect Storage is not used",
                type,
            )

    def _backendName(self, backend: int) -> str:
        name = self._backends.get(backend)
        if name is None:
            raise nixlInvalidParamError(
                f"NIXL_ERR_INVALID_PARAM: agent {self.name} has no backend {backend}; "
                "pass a handle that createBackend() returned"
            )
        return name

    def getBackendParams(self, backend: int) -> tuple[dict[str, str], list[str]]:
        return self.getPluginParams(self._backendName(backend))

    def queryXferBackend(self, reqh: int) -> int:
        memory = self.xferMemory(reqh)
        for handle, name in self._backends.items():
            if _plugins.STORAGE.get(name, DRAM_SEG) == memory:
                return handle
        return self.createBackend(_plugins.NETWORK[0])

    def queryMem(self, descs: nixlRegDList, backend: int) -> list[dict[str, str] | None]:
        name = self._backendName(backend)
        memory = _plugins.STORAGE.get(name)
        if memory is None or descs.getType() != memory:
            raise nixlNotSupportedError(
                f"NIXL_ERR_NOT_SUPPORTED: {name} cannot look up {descs.getType().name}; POSIX, GDS "
                "and GDS_MT look up FILE_SEG, and OBJ looks up OBJ_SEG (docs/nixl.md)"
            )
        names = [row[3] for row in descs]
        if memory == FILE_SEG:
            return [_fileFacts(_os.fsdecode(path)) for path in names]
        return [
            None if size is None else {"size": str(size)} for size in self.objectSizes(names)
        ]

    def estimateXferCost(self, reqh: int) -> tuple[int, int, int]:
        self.xferMemory(reqh)  # refuses an unknown handle
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
            from nixl._exchange import Exchange

            self._exchange = Exchange(self)
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
