"""The names of vLLM that the connector uses, and tests for those that not every version has."""

from vllm.distributed import parallel_state
from vllm.distributed.kv_transfer.kv_connector.v1 import base

try:
    from vllm.v1 import outputs
except ImportError:
    outputs = None


def _optional(name):
    for module in (base, outputs):
        if hasattr(module, name):
            return getattr(module, name)
    return None


class Nothing:
    """Stands for a base class that this version does not have."""


Base = base.KVConnectorBase_V1
Role = base.KVConnectorRole
Metadata = base.KVConnectorMetadata
Handshake = _optional("KVConnectorHandshakeMetadata") or Nothing
# The class that tells vLLM which loads failed. Without it, the connector cannot report a failed
# load of several groups of caches, so it then declares that it supports one group only.
TransferResults = _optional("KVConnectorTransferResults")
Hybrid = _optional("SupportsHMA") if TransferResults else None


def ranks():
    """Returns this worker's rank in the pipeline and in the tensor-parallel group."""
    return (parallel_state.get_pp_group().rank_in_group,
            parallel_state.get_tensor_model_parallel_rank())
