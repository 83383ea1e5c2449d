"""Lists the backend names that NIXL programs request: the accepted ones and the refused ones."""

from __future__ import annotations

# Both names mean Viaduct's network: all backends of Viaduct that reach another agent.
NETWORK = ("UCX", "LIBFABRIC")

# The table "Plugins" of docs/nixl.md lists the same names: change both together.
REFUSED = {
    "POSIX": "Viaduct has no file backend yet",
    "GDS": "Viaduct has no file backend yet",
    "GDS_MT": "Viaduct has no file backend yet",
    "HF3FS": "Viaduct has no file backend yet",
    "OBJ": "Viaduct has no object backend yet",
    "AZURE_BLOB": "Viaduct has no object backend yet",
    "GPUNETIO": "Viaduct has no transfers that a GPU starts by itself",
    "GUSLI": "Viaduct has no backend for block devices",
    "MOONCAKE": "the name means another library; UCX names Viaduct's own network",
    "UCCL": "the name means another library; UCX names Viaduct's own network",
    "UCX_MO": "use UCX, the name of Viaduct's own network, which uses all devices",
}

# Parameters that programs pass. Viaduct accepts them without effect: an agent chooses the values.
PARAMETERS = {"num_threads": "0"}


def refusal(name: str) -> str:
    """Returns the error text for a plugin that Viaduct does not have."""
    reason = REFUSED.get(name, "the name is unknown")
    return f"no plugin {name}: {reason}; plugins: {', '.join(NETWORK)} (docs/nixl.md)"
