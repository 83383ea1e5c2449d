"""Lists the backend names that NIXL programs request: the accepted ones and the refused ones."""

from __future__ import annotations

import os

from viaduct._core.nixl import DRAM_SEG, FILE_SEG, OBJ_SEG, storageMemories

# Both names mean Viaduct's network: all backends of Viaduct that reach another agent.
NETWORK = ("UCX", "LIBFABRIC")

# The names of Viaduct's backends for files and objects, with the kind of memory of each.
STORAGE = {
    name: memory
    for name, memory in {
        "POSIX": FILE_SEG,
        "GDS": FILE_SEG,
        "GDS_MT": FILE_SEG,
        "OBJ": OBJ_SEG,
    }.items()
    if memory in storageMemories()
}

NAMES = (*NETWORK, *STORAGE)

# The table "Plugins" of docs/nixl.md lists the same names: change both together.
REFUSED = {
    "HF3FS": "Viaduct has no backend for 3FS; POSIX moves files of its mounted file system",
    "AZURE_BLOB": "Viaduct has no backend for Azure; OBJ reaches S3 stores",
    "GPUNETIO": "Viaduct has no transfers that a GPU starts by itself",
    "GUSLI": "Viaduct has no backend for block devices",
    "INFINIA": "Viaduct has no backend for Infinia; OBJ reaches S3 stores, which Infinia offers too",
    "MOONCAKE": "the name means another library; UCX names Viaduct's own network",
    "UCCL": "the name means another library; UCX names Viaduct's own network",
    "UCX_MO": "use UCX, the name of Viaduct's own network, which uses all devices",
}

# Parameters that programs pass, with their defaults. docs/nixl.md lists those with an effect.
_FILES = {"use_uring": "", "use_aio": "", "use_posix_aio": "", "ios_pool_size": "",
          "kernel_queue_size": ""}
_GDS = {"batch_pool_size": "", "batch_limit": "", "max_request_size": "", "thread_count": ""}
_NETWORK = {"num_threads": "0"}
PARAMETERS = {
    "UCX": _NETWORK,
    "LIBFABRIC": _NETWORK,
    "POSIX": _FILES,
    "GDS": {**_FILES, **_GDS},
    "GDS_MT": {**_FILES, **_GDS},
    "OBJ": dict.fromkeys(
        "access_key secret_key session_token bucket endpoint_override scheme region "
        "use_virtual_addressing req_checksum resp_checksum ca_bundle crtMinLimit "
        "throughput_target_gbps accelerated type num_threads".split(),
        "",
    ),
}

_YES = ("true", "1")


def refusal(name: str) -> str:
    """Returns the error text for a plugin that Viaduct does not have."""
    reason = REFUSED.get(name, "the name is unknown")
    return f"no plugin {name}: {reason}; plugins: {', '.join(NAMES)} (docs/nixl.md)"


def memory_types(name: str) -> list:
    """Returns the kinds of memory of a plugin of storage."""
    return [DRAM_SEG, STORAGE[name]]


def settings_of(name: str, parameters: dict[str, str]) -> dict[str, str]:
    """Returns Viaduct's settings, by variable, for the parameters of a plugin of storage."""
    return _of_objects(parameters) if STORAGE[name] == OBJ_SEG else _of_files(parameters)


def _of_files(parameters: dict[str, str]) -> dict[str, str]:
    settings = {}
    others = [parameters.get(name, "") for name in ("use_aio", "use_posix_aio")]
    if any(value in _YES for value in others):
        settings["VIADUCT_FILE_ENGINE"] = "threads"
    elif parameters.get("use_uring", "") in _YES:
        settings["VIADUCT_FILE_ENGINE"] = "auto"
    depth = parameters.get("kernel_queue_size", "")
    if depth.isdigit() and depth != "0":
        settings["VIADUCT_FILE_QUEUE_DEPTH"] = str(min(int(depth), 1024))
    return settings


def _of_objects(parameters: dict[str, str]) -> dict[str, str]:
    endpoint = parameters.get("endpoint_override") or os.environ.get("AWS_ENDPOINT_OVERRIDE", "")
    if endpoint and "://" not in endpoint:
        endpoint = f"{parameters.get('scheme') or 'https'}://{endpoint}"
    virtual = parameters.get("use_virtual_addressing", "")
    settings = {
        "VIADUCT_OBJECT_ENDPOINT": endpoint,
        "VIADUCT_OBJECT_REGION": parameters.get("region", ""),
        "VIADUCT_OBJECT_STYLE": virtual and ("virtual" if virtual in _YES else "path"),
        "VIADUCT_OBJECT_CA": parameters.get("ca_bundle", ""),
        "AWS_ACCESS_KEY_ID": parameters.get("access_key", ""),
        "AWS_SECRET_ACCESS_KEY": parameters.get("secret_key", ""),
        "AWS_SESSION_TOKEN": parameters.get("session_token", ""),
    }
    return {variable: value for variable, value in settings.items() if value}


def bucket_of(name: str, parameters: dict[str, str]) -> str:
    """Returns the bucket of all objects, or "" for a plugin of files."""
    if STORAGE[name] != OBJ_SEG:
        return ""
    return parameters.get("bucket") or os.environ.get("AWS_DEFAULT_BUCKET", "")
