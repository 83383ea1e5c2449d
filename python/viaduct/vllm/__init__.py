"""A KV connector for vLLM. Each request's KV cache is one parcel: docs/vllm.md.

    vllm serve MODEL --kv-transfer-config '{"kv_connector": "ViaductConnector",
        "kv_connector_module_path": "viaduct.vllm", "kv_role": "kv_both"}'

vLLM is imported with the connector, and not by `import viaduct`.
"""

__all__ = ["ViaductConnector"]


def __getattr__(name):
    if name == "ViaductConnector":
        from viaduct.vllm._connector import ViaductConnector
        return ViaductConnector
    raise AttributeError(f"module 'viaduct.vllm' has no attribute {name!r}")
