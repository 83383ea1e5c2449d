"""The names of backends that programs ask for, and what Viaduct does with each."""

from __future__ import annotations

# Both name the same thing: every way that Viaduct has to another agent.
NETWORK = ("UCX", "LIBFABRIC")

# docs/nixl.md has the same rows.
REFUSED = {
    "POSIX": "Viaduct has no file backend yet",
    "GDS": "Viaduct has no file backend yet",
    "GDS_MT": "Viaduct has no file backend yet",
    "HF3FS": "Viaduct has no file backend yet",
    "OBJ": "Viaduct has no object backend yet",
    "AZURE_BLOB": "Viaduct has no object backend yet",
    "GPUNETIO": "transfers that a GPU starts by itself are not offered",
    "GUSLI": "Viaduct has no backend for block devices",
    "MOONCAKE": "it is another transfer library; UCX names Viaduct's own network",
    "UCCL": "it is another transfer library; UCX names Viaduct's own network",
    "UCX_MO": "UCX names Viaduct's own network, over as many devices as there are",
}

# Parameters that programs pass, taken and without effect: an agent chooses these by itself.
PARAMETERS = {"num_threads": "0"}


def refusal(name: str) -> str:
    """Why there is no plugin of that name."""
    reason = REFUSED.get(name, "nobody knows a plugin of that name")
    return f"no plugin {name}: {reason}; plugins: {', '.join(NETWORK)} (docs/nixl.md)"
