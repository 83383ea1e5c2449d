"""Makes the calls of SGLang's HiCache, which replaces `agent.agent` by an agent of the bindings.

The calls follow hicache_nixl.py, nixl_utils.py and nixl_registry.py of
python/sglang/srt/mem_cache/storage/nixl/.
"""

import os
import uuid

import pytest

numpy = pytest.importorskip("numpy")

from fleet_testing import address_of, expect_bytes, pattern, poison, until

PAGES, PAGE_BYTES = 16, 4096


def hand_made_agent():
    from nixl._api import nixl_agent, nixl_agent_config, nixlBind
    name = f"hicache_{uuid.uuid4()}"
    agent = nixl_agent(name, nixl_agent_config(backends=[]))
    config = nixlBind.nixlAgentConfig()
    config.useProgThread = True
    config.syncMode = getattr(nixlBind, "NIXL_THREAD_SYNC_RW", nixlBind.NIXL_THREAD_SYNC_STRICT)
    agent.agent = nixlBind.nixlAgent(name, config)
    agent.plugin_list = agent.agent.getAvailPlugins()
    return name, agent


def host_pages(agent, pages):
    """Registers all pages of the host pool at once. Returns the registration and descriptors."""
    tuples = [(address_of(page), PAGE_BYTES, 0, "") for page in pages]
    registered = agent.register_memory(tuples, "DRAM")
    assert registered
    return registered, agent.get_xfer_descs([entry[:3] for entry in tuples], "DRAM")


def test_pages_move_through_the_replaced_agent():
    name, agent = hand_made_agent()
    assert "UCX" in agent.plugin_list
    agent.create_backend("UCX", {})
    source = [pattern(i, PAGE_BYTES).copy() for i in range(PAGES)]
    target = [poison(PAGE_BYTES) for _ in range(PAGES)]
    from_list, from_descs = host_pages(agent, source)
    to_list, to_descs = host_pages(agent, target)
    # HiCache reaches storage under the agent's own name. Host memory stands for the storage here.
    for operation, expected in (("WRITE", source), ("READ", target)):
        handle = agent.initialize_xfer(operation, from_descs, to_descs, name, b"")
        agent.transfer(handle)
        until(lambda: agent.check_xfer_state(handle) == "DONE", operation, pause_s=0.0001)
        agent.release_xfer_handle(handle)
        for i, page in enumerate(target if operation == "WRITE" else source):
            expect_bytes(page, expected[i], f"{operation}, page {i}")
        for i, page in enumerate(target):
            page[:] = pattern(100 + i, PAGE_BYTES)
    agent.deregister_memory(from_list)
    agent.deregister_memory(to_list)


def test_the_replaced_agent_is_the_one_that_works():
    _, agent = hand_made_agent()
    calls = []

    class Counting:
        def __init__(self, bindings):
            self._bindings = bindings

        def __getattr__(self, called):
            calls.append(called)
            return getattr(self._bindings, called)

    agent.agent = Counting(agent.agent)
    agent.create_backend("UCX", {})
    agent.get_agent_metadata()
    assert agent.get_new_notifs() == {}
    assert calls.count("createBackend") == 1 and "getLocalMD" in calls and "getNotifs" in calls


@pytest.mark.parametrize("plugin, parameters", [
    ("POSIX", {"use_uring": "true"}), ("GDS_MT", {"thread_count": "8"}), ("GDS", {}),
    ("OBJ", {"bucket": "kv", "endpoint_override": "http://127.0.0.1:9"}), ("HF3FS", {})])
def test_storage_has_not_arrived_and_says_so(plugin, parameters):
    from nixl._bindings import nixlNotSupportedError
    _, agent = hand_made_agent()
    # HiCache chooses among the listed plugins, so the list must contain only working plugins.
    assert plugin not in agent.plugin_list
    with pytest.raises(nixlNotSupportedError, match=f"{plugin}.* no (file|object) backend yet"):
        agent.create_backend(plugin, parameters)


def test_files_and_objects_are_refused_as_memory(tmp_path):
    from nixl._bindings import nixlNotSupportedError
    _, agent = hand_made_agent()
    agent.create_backend("UCX", {})
    descriptor = os.open(tmp_path / "page.bin", os.O_CREAT | os.O_RDWR)
    try:
        with pytest.raises(nixlNotSupportedError, match="FILE"):
            agent.register_memory([(0, PAGE_BYTES, descriptor, "")], "FILE")
        with pytest.raises(nixlNotSupportedError, match="OBJ"):
            agent.register_memory([(0, PAGE_BYTES, 0, "page-0")], "OBJ")
    finally:
        os.close(descriptor)
