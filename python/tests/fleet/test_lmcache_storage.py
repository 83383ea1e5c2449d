"""Makes the calls of LMCache's storage backend, with host memory instead of a file.

The calls follow lmcache/v1/storage_backend/nixl_storage_backend.py and
lmcache/v1/distributed/l2_adapters/nixl_store_l2_adapter.py.
"""

import uuid

import pytest

numpy = pytest.importorskip("numpy")

from fleet_testing import address_of, expect_bytes, pattern, poison, until

PAGES, PAGE_BYTES = 3000, 1024


def storage_agent():
    from nixl._api import (nixl_agent, nixl_agent_config, nixl_prepped_dlist_handle,
                           nixl_thread_sync_t, nixl_xfer_handle, nixlBind)
    assert nixlBind.__name__ == "nixl._bindings"
    name = "NixlAgent_" + uuid.uuid4().hex
    config = nixl_agent_config(backends=[], enable_prog_thread=True,
                               sync_mode=nixl_thread_sync_t.NIXL_THREAD_SYNC_STRICT)
    return name, nixl_agent(name, config), (nixl_prepped_dlist_handle, nixl_xfer_handle)


def pages_of(memory, fourth=()):
    return [(address_of(memory) + i * PAGE_BYTES, PAGE_BYTES, 0, *fourth) for i in range(PAGES)]


def test_thousands_of_pages_are_registered_and_moved_by_index():
    name, agent, (list_type, handle_type) = storage_agent()
    agent.create_backend("UCX", {"num_threads": "8"})
    memory, store = pattern(5, PAGES * PAGE_BYTES).copy(), poison(PAGES * PAGE_BYTES)
    # LMCache registers each page separately, because a plugin may limit the size of a buffer.
    registered = [agent.register_memory(pages_of(one, ("",)), mem_type="cpu")
                  for one in (memory, store)]
    descs = agent.get_xfer_descs(pages_of(memory), mem_type="cpu")
    local = agent.prep_xfer_dlist("", descs, mem_type="cpu")
    # LMCache reaches the store under the agent's own name, and passes a Python list.
    remote = agent.prep_xfer_dlist(name, pages_of(store), mem_type="DRAM")
    assert isinstance(local, list_type) and isinstance(remote, list_type)
    keys = [int(key) for key in numpy.random.default_rng(1).permutation(PAGES)[:500]]
    handle = agent.make_prepped_xfer("WRITE", local, list(range(500)), remote, keys)
    assert isinstance(handle, handle_type)
    agent.transfer(handle)
    until(lambda: agent.check_xfer_state(handle) == "DONE", "the pages")
    agent.release_xfer_handle(handle)
    wanted = poison(PAGES * PAGE_BYTES).reshape(PAGES, PAGE_BYTES)
    wanted[keys] = memory.reshape(PAGES, PAGE_BYTES)[:500]
    expect_bytes(store, wanted.reshape(-1), "the store")
    agent.release_dlist_handle(local)
    agent.release_dlist_handle(remote)
    for one in registered:
        agent.deregister_memory(one)


@pytest.mark.parametrize("plugin", ["POSIX", "GDS", "GDS_MT", "OBJ"])
def test_storage_has_not_arrived_and_says_so(plugin):
    from nixl._bindings import nixlNotSupportedError
    _, agent, _ = storage_agent()
    with pytest.raises(nixlNotSupportedError, match=f"{plugin}.* no (file|object) backend yet"):
        agent.create_backend(plugin, {"use_uring": "true", "ios_pool_size": "64"})


def test_keys_of_a_store_that_is_absent_cannot_be_looked_up():
    _, agent, _ = storage_agent()
    # LMCache treats an exception as "no key exists".
    with pytest.raises(ValueError, match="OBJ"):
        agent.query_memory([(0, 0, 0, f"key-{i}") for i in range(2000)], "OBJ", mem_type="OBJ")


def test_a_page_pool_in_files_or_objects_is_refused():
    from nixl._bindings import nixlNotSupportedError
    _, agent, _ = storage_agent()
    agent.create_backend("UCX", {})
    for kind in ("FILE", "OBJ"):
        with pytest.raises(nixlNotSupportedError, match=kind):
            agent.register_memory([(0, PAGE_BYTES, 3, "key")], mem_type=kind)
