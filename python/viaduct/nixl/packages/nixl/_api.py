"""Agents that copy memory between processes, with the calls of NIXL's Python API."""

from __future__ import annotations

import os
import threading
from typing import Any

from nixl import _bindings as nixlBind
from nixl.logging import get_logger

DEFAULT_COMM_PORT = nixlBind.DEFAULT_COMM_PORT

logger = get_logger(__name__)

nixl_backend_handle = int
nixl_thread_sync_t = nixlBind.nixl_thread_sync_t

_SUCCESS = nixlBind.NIXL_SUCCESS
_IN_PROGRESS = nixlBind.NIXL_IN_PROG
_OPERATIONS = {"WRITE": nixlBind.NIXL_WRITE, "READ": nixlBind.NIXL_READ}
_MEMORIES = {
    "DRAM": nixlBind.DRAM_SEG,
    "VRAM": nixlBind.VRAM_SEG,
    "FILE": nixlBind.FILE_SEG,
    "BLOCK": nixlBind.BLK_SEG,
    "OBJ": nixlBind.OBJ_SEG,
    "cpu": nixlBind.DRAM_SEG,
    "cuda": nixlBind.VRAM_SEG,
}
# The parameter to which NIXL passes nixl_agent_config.num_threads.
_THREADS_PARAMETERS = {
    "UCX": "num_threads",
    "LIBFABRIC": "num_threads",
    "OBJ": "num_threads",
    "GDS_MT": "thread_count",
}
_SERIALIZED_NONE = b"VIADNONE"
_LISTS = (nixlBind.nixlXferDList, nixlBind.nixlRegDList, nixlBind.nixlRemoteDList)


class nixl_agent_config:
    """The configuration of an agent. docs/nixl.md lists the options that have an effect."""

    def __init__(
        self,
        enable_prog_thread: bool = True,
        enable_listen_thread: bool = False,
        listen_port: int = DEFAULT_COMM_PORT,
        capture_telemetry: bool = False,
        num_threads: int = 0,
        backends: list[str] | None = None,
        sync_mode: nixl_thread_sync_t | None = None,
    ):
        if sync_mode is not None and not isinstance(sync_mode, nixl_thread_sync_t):
            raise TypeError(
                f"sync_mode must be a nixl_thread_sync_t (got {type(sync_mode).__name__})"
            )
        self.backends = ["UCX"] if backends is None else list(backends)
        self.enable_pthread = enable_prog_thread
        self.enable_listen = enable_listen_thread
        self.port = listen_port
        self.capture_telemetry = capture_telemetry
        self.num_threads = num_threads
        self.sync_mode = sync_mode


class _Handle:
    """A handle of an agent's object. release() frees the object once."""

    _released = False

    def __init__(self, agent: Any, handle: int):
        self._agent = agent
        self._handle = handle

    def __del__(self):
        if self._released:
            return
        try:
            self.release()
        except Exception as error:  # the agent is gone, or the interpreter exits
            logger.debug("release of a forgotten handle: %s", error)


class nixl_prepped_dlist_handle(_Handle):
    """A prepared list: checked descriptors, which transfers select by index."""

    def release(self) -> None:
        """Releases the list. A second call does nothing."""
        if not self._released:
            self._released = True
            self._agent.releasedDlistH(self._handle)


class nixl_xfer_handle(_Handle):
    """A planned transfer, which may be posted many times. release() ends a post in flight."""

    def release(self) -> None:
        """Ends the transfer. After the return nobody touches its local memory. A second call does
        nothing."""
        if not self._released:
            self._released = True
            self._agent.releaseXferReq(self._handle)


# Device numbers of DLPack.
_HOST_DEVICES = (1, 3)  # plain memory, and memory that CUDA has pinned
_CUDA_DEVICE = 2


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "data_ptr") and hasattr(value, "element_size")


def _is_memory(value: Any) -> bool:
    """Whether the value is memory to transfer, such as a tensor. A numpy array holds rows."""
    return _is_tensor(value) or (
        hasattr(value, "__dlpack_device__") and not hasattr(value, "__array_interface__")
    )


def _place(array: Any) -> tuple[str, tuple[int, int, int]]:
    """Returns the kind of an array's memory, and its (address, bytes, device)."""
    if _is_tensor(array):
        if not array.is_contiguous():
            raise ValueError("a tensor is not contiguous; pass tensor.contiguous() or parts of it")
        kind = str(getattr(array.device, "type", array.device))
        device = 0 if kind == "cpu" else array.get_device()
        return kind, (array.data_ptr(), array.numel() * array.element_size(), device)
    number, device = array.__dlpack_device__()
    if number in _HOST_DEVICES:
        return "cpu", (*nixlBind.place_of(array), 0)
    if number != _CUDA_DEVICE or not hasattr(array, "__cuda_array_interface__"):
        raise TypeError(
            f"a {type(array).__name__} is on device {number} of DLPack; use cpu or cuda"
        )
    interface = array.__cuda_array_interface__
    if interface.get("strides") is not None:
        raise ValueError("an array is not contiguous; copy it first, or pass parts of it")
    return "cuda", (interface["data"][0], array.nbytes, device)


class nixl_agent:
    """The endpoint of one process: it registers memory, connects to agents, and transfers data."""

    def __init__(
        self,
        agent_name: str,
        nixl_conf: nixl_agent_config | None = None,
        instantiate_all: bool = False,
    ):
        if not agent_name:
            raise ValueError("the agent's name is empty; pass a name that no other agent has")
        if nixl_conf is not None and instantiate_all:
            logger.warning("instantiate_all is ignored, because nixl_conf names the backends")
            instantiate_all = False
        conf = nixl_agent_config() if nixl_conf is None else nixl_conf

        config = nixlBind.nixlAgentConfig(
            conf.enable_pthread,
            conf.enable_listen,
            conf.port,
            capture_telemetry=conf.capture_telemetry,
        )
        self.agent = nixlBind.nixlAgent(agent_name, config)
        # The port of the listener, also if port 0 was asked for. 0: there is no listener.
        self.listen_port = self.agent.listenPort()

        self.name = agent_name
        self.notifs: dict[str, list[bytes]] = {}
        self._notifs_lock = threading.RLock()
        self.backends: dict[str, int] = {}
        self.backend_mems: dict[str, list[str]] = {}
        self.backend_options: dict[str, dict[str, str]] = {}
        self.plugin_b_options: dict[str, dict[str, str]] = {}
        self.plugin_mem_types: dict[str, list[str]] = {}
        self.nixl_mems = dict(_MEMORIES)
        self.nixl_ops = dict(_OPERATIONS)

        self.plugin_list = self.agent.getAvailPlugins()
        if not self.plugin_list:
            raise RuntimeError("the agent has no plugins")
        for plugin in self.plugin_list:
            options, memories = self.agent.getPluginParams(plugin)
            self.plugin_b_options[plugin] = options
            self.plugin_mem_types[plugin] = memories

        for backend in self.plugin_list if instantiate_all else conf.backends:
            if backend not in self.plugin_list:
                logger.warning(
                    "backend %s is skipped: there is no such plugin; the plugins are %s",
                    backend,
                    self.plugin_list,
                )
                continue
            key = _THREADS_PARAMETERS.get(backend)
            threads = {key: str(conf.num_threads)} if key and conf.num_threads > 0 else {}
            try:
                self.create_backend(backend, threads)
            except nixlBind.nixlInvalidParamError as error:
                if not instantiate_all:
                    raise
                logger.warning("backend %s is skipped: %s", backend, error)

    # Plugins and backends

    def get_plugin_list(self) -> list[str]:
        """Returns the plugin names that create_backend() accepts."""
        return self.plugin_list

    def _looked_up(self, table: dict[str, Any], what: str, backend: str, missing: Any) -> Any:
        if backend in table:
            return table[backend]
        logger.warning("there is no %s named %s; the names are %s", what, backend, list(table))
        return missing

    def get_plugin_mem_types(self, backend: str) -> list[str]:
        """Returns the kinds of memory of a plugin, or [] for an unknown plugin."""
        return self._looked_up(self.plugin_mem_types, "plugin", backend, [])

    def get_plugin_params(self, backend: str) -> dict[str, str]:
        """Returns the parameters of a plugin with their defaults, or {} for an unknown plugin."""
        return self._looked_up(self.plugin_b_options, "plugin", backend, {})

    def get_backend_mem_types(self, backend: str) -> list[str]:
        """Returns the kinds of memory of a created backend, or [] for an unknown backend."""
        return self._looked_up(self.backend_mems, "backend", backend, [])

    def get_backend_params(self, backend: str) -> dict[str, str]:
        """Returns the parameters of a created backend, or {} for an unknown backend."""
        return self._looked_up(self.backend_options, "backend", backend, {})

    def create_backend(self, backend: str, initParams: dict[str, str] | None = None) -> None:
        """Creates a backend of that plugin. Raises nixlNotFoundError for an unknown plugin name."""
        handle = self.agent.createBackend(backend, dict(initParams or {}))
        self.backends[backend] = handle
        self.backend_options[backend], self.backend_mems[backend] = self.agent.getBackendParams(
            handle
        )

    def _handles(self, backends: list[str]) -> list[int]:
        unknown = [name for name in backends if name not in self.backends]
        if unknown:
            raise KeyError(
                f"agent {self.name} has no backend {unknown[0]}; it has {list(self.backends)}"
            )
        return [self.backends[name] for name in backends]

    # Descriptors

    def _memory(self, mem_type: str | None) -> Any:
        if mem_type is None:
            raise ValueError(f"mem_type is missing; pass one of {', '.join(self.nixl_mems)}")
        if mem_type not in self.nixl_mems:
            raise KeyError(
                f"mem_type {mem_type} is unknown; pass one of {', '.join(self.nixl_mems)}"
            )
        return self.nixl_mems[mem_type]

    def _descriptors(self, kind: Any, descs: Any, mem_type: str | None) -> Any:
        if isinstance(descs, kind):
            return descs
        if isinstance(descs, _LISTS):
            raise TypeError(f"got a {type(descs).__name__}; this call takes a {kind.__name__}")
        arrays = [descs] if _is_memory(descs) else descs
        if isinstance(arrays, (list, tuple)) and arrays and _is_memory(arrays[0]):
            places = [_place(array) for array in arrays]
            devices = sorted({device for device, _ in places})
            if len(devices) != 1:
                raise ValueError(
                    f"the tensors are on different devices ({', '.join(devices)}); "
                    "pass one list for each"
                )
            rows = [row for _, row in places]
            if kind is nixlBind.nixlRegDList:
                rows = [(*row, "") for row in rows]
            return kind(self._memory(devices[0]), rows)
        return kind(self._memory(mem_type), descs)

    def _descriptors_or_none(self, kind: Any, descs: Any, mem_type: str | None) -> Any:
        try:
            return self._descriptors(kind, descs, mem_type)
        except (ValueError, TypeError) as error:
            if os.environ.get("VIADUCT_NIXL_COMPAT", "").lower() not in nixlBind.YES:
                raise
            logger.error("%s", error)
            return None

    def get_xfer_descs(self, descs: Any, mem_type: str | None = None) -> Any:
        """Makes a nixlXferDList from tuples (address, bytes, device), an array, or tensors."""
        return self._descriptors_or_none(nixlBind.nixlXferDList, descs, mem_type)

    def get_reg_descs(self, descs: Any, mem_type: str | None = None) -> Any:
        """Makes a nixlRegDList from tuples (address, bytes, device, metadata), or tensors."""
        return self._descriptors_or_none(nixlBind.nixlRegDList, descs, mem_type)

    def get_remote_descs(self, descs: Any, mem_type: str | None = None) -> Any:
        """Makes a nixlRemoteDList from tuples (address, bytes, device, agent)."""
        return self._descriptors_or_none(nixlBind.nixlRemoteDList, descs, mem_type)

    def get_serialized_descs(self, descs: Any) -> bytes:
        """Encodes a descriptor list, or None, as bytes for another agent's deserialize_descs()."""
        return _SERIALIZED_NONE if descs is None else nixlBind.serialize(descs)

    def deserialize_descs(self, serialized_descs: bytes) -> Any:
        """Decodes a descriptor list from untrusted bytes. No code in the bytes is run."""
        if serialized_descs == _SERIALIZED_NONE:
            return None
        return nixlBind.deserialize(serialized_descs)

    # Memory

    def register_memory(
        self, reg_list: Any, mem_type: str | None = None, backends: list[str] = ()
    ) -> Any:
        """Registers memory for transfers. Returns the list to pass to deregister_memory()."""
        descs = self.get_reg_descs(reg_list, mem_type)
        self.agent.registerMem(descs, self._handles(backends))
        return descs

    def deregister_memory(self, dereg_list: Any, backends: list[str] = ()) -> None:
        """Withdraws memory. After the return no agent reaches the memory, and it may be freed."""
        self.agent.deregisterMem(dereg_list, self._handles(backends))

    def query_memory(
        self, reg_list: Any, backend: str, mem_type: str | None = None
    ) -> list[dict | None]:
        """Looks up files or objects by the names in the metadata of the rows. Returns a dict with
        the size for each of them, or None for an absent one."""
        if backend not in self.backends:
            raise ValueError(
                f"agent {self.name} has no backend {backend}; it has {list(self.backends)}"
            )
        descs = self.get_reg_descs(reg_list, mem_type)
        return self.agent.queryMem(descs, self.backends[backend])

    # Transfers

    def make_connection(self, remote_agent: str | bytes, backends: list[str] = ()) -> None:
        """Waits until the remote agent is connected, for at most 5 seconds."""
        self.agent.makeConnection(remote_agent, self._handles(backends))

    def prep_xfer_dlist(
        self,
        agent_name: str | bytes,
        xfer_list: Any,
        mem_type: str | None = None,
        backends: list[str] = (),
    ) -> nixl_prepped_dlist_handle:
        """Checks descriptors of an agent's memory, so that transfers can select them by index. The
        name "" means this agent."""
        descs = self.get_xfer_descs(xfer_list, mem_type)
        if agent_name in ("NIXL_INIT_AGENT", b"NIXL_INIT_AGENT"):
            agent_name = nixlBind.NIXL_INIT_AGENT
        handle = self.agent.prepXferDlist(agent_name, descs, self._handles(backends))
        return nixl_prepped_dlist_handle(self.agent, handle)

    def _operation(self, operation: str) -> Any:
        found = self.nixl_ops.get(operation)
        if found is None:
            raise KeyError(f"operation {operation} is unknown; pass READ or WRITE")
        return found

    def make_prepped_xfer(
        self,
        operation: str,
        local_xfer_side: nixl_prepped_dlist_handle,
        local_indices: Any,
        remote_xfer_side: nixl_prepped_dlist_handle,
        remote_indices: Any,
        notif_msg: bytes | str = b"",
        backends: list[str] = (),
        skip_desc_merge: bool = False,
        priority: str = "normal",
    ) -> nixl_xfer_handle:
        """Plans a transfer between two prepared lists. The indices select descriptors, in pairs.

        priority, which NIXL lacks, is "urgent", "normal" or "background".
        """
        op = self._operation(operation)
        handle = self.agent.makeXferReq(
            op,
            local_xfer_side._handle,
            local_indices,
            remote_xfer_side._handle,
            remote_indices,
            notif_msg,
            self._handles(backends) if backends else (),
            skip_desc_merge,
            priority,
        )
        return nixl_xfer_handle(self.agent, handle)

    def initialize_xfer(
        self,
        operation: str,
        local_descs: Any,
        remote_descs: Any,
        remote_agent: str | bytes,
        notif_msg: bytes | str = b"",
        backends: list[str] = (),
        priority: str = "normal",
    ) -> nixl_xfer_handle:
        """Plans a transfer between two descriptor lists, whose descriptors form pairs in order.

        priority, which NIXL lacks, is "urgent", "normal" or "background".
        """
        op = self._operation(operation)
        handle = self.agent.createXferReq(
            op, local_descs, remote_descs, remote_agent, notif_msg, self._handles(backends), priority
        )
        return nixl_xfer_handle(self.agent, handle)

    def estimate_xfer_cost(self, req_handle: nixl_xfer_handle) -> tuple[int, int, str]:
        """Raises nixlNotSupportedError: Viaduct does not estimate the cost of a transfer."""
        microseconds, error, _ = self.agent.estimateXferCost(req_handle._handle)
        return microseconds, error, "UNKNOWN"

    def transfer(self, handle: nixl_xfer_handle, notif_msg: bytes | str = b"") -> str:
        """Starts a transfer. Returns "DONE" if it has ended, else "PROC". Raises failures."""
        status = self.agent.postXferReq(handle._handle, notif_msg)
        return "DONE" if status is _SUCCESS or status == _SUCCESS else "PROC"

    def check_xfer_state(self, handle: nixl_xfer_handle) -> str:
        """Returns "DONE" if the transfer has ended, else "PROC". Raises failures."""
        status = self.agent.getXferStatus(handle._handle)
        return "DONE" if status is _SUCCESS or status == _SUCCESS else "PROC"

    def get_xfer_telemetry(self, handle: nixl_xfer_handle) -> Any:
        """Returns the times and bytes of a "DONE" transfer. Needs capture_telemetry=True."""
        return self.agent.getXferTelemetry(handle._handle)

    def query_xfer_backend(self, handle: nixl_xfer_handle) -> str:
        """Returns the name of the backend that carries the transfer."""
        wanted = self.agent.queryXferBackend(handle._handle)
        return next((name for name, known in self.backends.items() if known == wanted), "UCX")

    def release_xfer_handle(self, handle: nixl_xfer_handle) -> None:
        """Ends a transfer, even in flight. After the return nobody touches its local memory."""
        handle.release()

    def release_dlist_handle(self, handle: nixl_prepped_dlist_handle) -> None:
        """Releases a prepared list. Transfers that were made from the list go on."""
        handle.release()

    def prep_mem_view(self, dlist: Any, *, backends: list[str] | None = None) -> int:
        """Raises nixlNotSupportedError: memory views need transfers that a GPU starts by itself."""
        return self.agent.prepMemView(dlist)

    def release_mem_view(self, mvh: int) -> None:
        """Raises nixlNotSupportedError: Viaduct has no memory views."""
        self.agent.releaseMemView(mvh)

    # Notifications

    def get_new_notifs(self, backends: list[str] = ()) -> dict[str, list[bytes]]:
        """Returns the notifications that arrived after the last call, as {agent: [message]}."""
        return self.agent.getNotifs(None, backends)

    def update_notifs(self, backends: list[str] = ()) -> dict[str, list[bytes]]:
        """Adds new notifications to the attribute `notifs`, and returns the whole attribute."""
        with self._notifs_lock:
            for name, messages in self.agent.getNotifs(None, backends).items():
                self.notifs.setdefault(name, []).extend(messages)
        return self.notifs

    def check_remote_xfer_done(
        self,
        remote_agent_name: str | bytes,
        lookup_tag: bytes | str,
        backends: list[str] = (),
        tag_is_prefix: bool = True,
    ) -> bool:
        """Whether the agent sent a notification with that tag. Removes it from `notifs`."""
        name = (
            remote_agent_name.decode()
            if isinstance(remote_agent_name, bytes)
            else remote_agent_name
        )
        tag = lookup_tag.encode() if isinstance(lookup_tag, str) else lookup_tag
        with self._notifs_lock:
            messages = self.update_notifs(backends).get(name, [])
            for place, message in enumerate(messages):
                if message.startswith(tag) if tag_is_prefix else tag in message:
                    del messages[place]
                    return True
        return False

    def send_notif(
        self,
        remote_agent_name: str | bytes,
        notif_msg: bytes | str = b"",
        backend: str | None = None,
    ) -> None:
        """Sends a notification without a transfer."""
        self.agent.genNotif(
            remote_agent_name, notif_msg, () if backend is None else self._handles([backend])
        )

    # Waiting

    def fileno(self) -> int:
        """Returns a descriptor for an event loop. It is readable if notifications may have arrived,
        or transfers may have ended. Then call wait(0), get_new_notifs() and check_xfer_state(). Do
        not read from it. NIXL has no such call."""
        return self.agent.fileno()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until a notification may have arrived or a transfer may have ended, at most for so
        many seconds. Returns False if the time is over. NIXL has no such call."""
        return self.agent.wait(timeout)

    # Metadata

    def get_agent_metadata(self) -> bytes:
        """Returns the bytes with which another agent reaches this agent's registered memory."""
        return self.agent.getLocalMD()

    def get_partial_agent_metadata(
        self, descs: Any, inc_conn_info: bool = False, backends: list[str] = ()
    ) -> bytes:
        """Returns metadata of some registered memory. inc_conn_info=True adds the addresses."""
        return self.agent.getLocalPartialMD(descs, inc_conn_info, self._handles(backends))

    def add_remote_agent(self, metadata: bytes) -> bytes:
        """Adds another agent's metadata and starts to connect. Returns that agent's name."""
        return self.agent.loadRemoteMD(metadata)

    def remove_remote_agent(self, agent: str | bytes) -> None:
        """Removes another agent's metadata."""
        try:
            self.agent.invalidateRemoteMD(agent)
        except nixlBind.nixlNotFoundError as error:
            logger.debug("remove_remote_agent: %s", error)

    def send_local_metadata(self, ip_addr: str = "", port: int = DEFAULT_COMM_PORT) -> None:
        """Sends this agent's metadata to the listener at ip_addr. Without ip_addr the call does
        nothing: agents publish themselves at the meeting place, the directory server of names."""
        self.agent.sendLocalMD(ip_addr, port)

    def send_partial_agent_metadata(
        self,
        descs: Any,
        inc_conn_info: bool = False,
        backends: list[str] = (),
        ip_addr: str = "",
        port: int = DEFAULT_COMM_PORT,
        label: str = "",
    ) -> None:
        """Sends part of this agent's metadata to the listener at ip_addr. Without ip_addr, agents
        that fetch this agent's metadata by its name and that label get this part."""
        self.agent.sendLocalPartialMD(
            descs, inc_conn_info, self._handles(backends), ip_addr, port, label
        )

    def fetch_remote_metadata(
        self,
        remote_agent: str | bytes,
        ip_addr: str = "",
        port: int = DEFAULT_COMM_PORT,
        label: str = "",
    ) -> None:
        """Fetches another agent's metadata in the background. check_remote_metadata() returns True
        after the metadata has arrived. Without ip_addr, the label names a part that the other agent
        has sent with send_partial_agent_metadata()."""
        self.agent.fetchRemoteMD(remote_agent, ip_addr, port, label)

    def invalidate_local_metadata(self, ip_addr: str = "", port: int = DEFAULT_COMM_PORT) -> None:
        """Tells the agent behind the listener at ip_addr to forget this agent."""
        self.agent.invalidateLocalMD(ip_addr, port)

    def check_remote_metadata(self, agent: str | bytes, descs: Any = None) -> bool:
        """Whether this agent has the other agent's metadata, and the metadata covers `descs`."""
        if descs is None:
            return self.agent.checkRemoteMD(agent)
        return self.agent.checkRemoteMD(agent, descs)
