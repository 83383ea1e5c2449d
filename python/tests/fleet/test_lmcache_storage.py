"""Makes the calls of LMCache's storage backends: a static pool of files or objects, and one file or
object for each key.

The calls follow lmcache/v1/storage_backend/nixl_storage_backend.py and
lmcache/v1/distributed/l2_adapters/nixl_store_l2_adapter.py.
"""

import asyncio
import os
import uuid
from urllib.parse import quote

import pytest

numpy = pytest.importorskip("numpy")

from fleet_testing import address_of, direct_flag, expect_bytes, pattern, poison, until

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


class Pages:
    """Holds the agent and the page buffer of one LMCache worker, as its storage agents do."""

    def __init__(self, plugin, parameters, count=64, page_bytes=8192):
        self.name, self.agent, self.types = storage_agent()
        self.agent.create_backend(plugin, parameters)
        self.plugin, self.count, self.page_bytes = plugin, count, page_bytes
        self.memory = pattern(7, count * page_bytes).copy()
        rows = [(address_of(self.memory) + i * page_bytes, page_bytes, 0) for i in range(count)]
        # The device of host memory is the number of the worker's GPU.
        self.registered = self.agent.register_memory([(*row[:2], 3, "") for row in rows],
                                                     mem_type="DRAM")
        descs = self.agent.get_xfer_descs([(*row[:2], 3) for row in rows], mem_type="DRAM")
        self.prepared = self.agent.prep_xfer_dlist("", descs, mem_type="DRAM")

    def page(self, index):
        return self.memory[index * self.page_bytes:(index + 1) * self.page_bytes]

    def fill(self, indices, seed):
        for i in indices:
            self.page(i)[:] = pattern(seed * 1000 + i, self.page_bytes)

    def expect(self, indices, wanted, seed):
        for i, origin in zip(indices, wanted):
            expect_bytes(self.page(i), pattern(seed * 1000 + origin, self.page_bytes), f"page {i}")

    def handle(self, operation, pages, storage, places):
        handle = self.agent.make_prepped_xfer(operation, self.prepared, list(pages), storage,
                                              list(places))
        assert isinstance(handle, self.types[1])
        return handle

    def move(self, *arguments):
        """Moves pages, as the blocking calls of LMCache do: polls each millisecond."""
        handle = self.handle(*arguments)
        state = self.agent.transfer(handle)
        until(lambda: state == "DONE" or self.agent.check_xfer_state(handle) == "DONE",
              arguments[0])
        self.agent.release_xfer_handle(handle)

    def close(self, *storages, registered=()):
        for storage in storages:
            self.agent.release_dlist_handle(storage)
        self.agent.release_dlist_handle(self.prepared)
        for one in registered:
            self.agent.deregister_memory(one)
        self.agent.deregister_memory(self.registered)


FILE_PLUGINS = pytest.mark.parametrize("plugin, parameters", [
    ("POSIX", {"use_uring": "true", "ios_pool_size": "128"}), ("POSIX", {"use_posix_aio": "true"}),
    ("GDS", {"batch_pool_size": "16"}), ("GDS_MT", {"thread_count": "8"})])


@pytest.fixture
def store(fake_s3):
    """Yields the parameters of the plugin OBJ, for a server of the test's own."""
    fake_s3.ask("bucket kv")
    return {"bucket": "kv", "endpoint_override": fake_s3.endpoint, "scheme": "http",
            "access_key": "FAKEKEY", "secret_key": "fakesecret", "region": "eu-west-1",
            "use_virtual_addressing": "false"}


def use_pool(pages, rows, kind):
    """Moves pages to a pool and back in another order, over lists that are prepared once."""
    registered = pages.agent.register_memory(rows, mem_type=kind)
    assert pages.agent.get_xfer_descs([row[:3] for row in rows], mem_type=kind)
    storage = pages.agent.prep_xfer_dlist(pages.name, [row[:3] for row in rows], mem_type=kind)
    free = list(reversed(range(len(rows))))
    for seed in (1, 2):
        pages.fill(range(20), seed)
        places = [free.pop() for _ in range(20)]
        pages.move("WRITE", range(20), storage, places)
        for some in (places, places[::-2]):
            into = range(30, 30 + len(some))
            pages.fill(into, 99)
            pages.move("READ", into, storage, some)
            pages.expect(into, [places.index(place) for place in some], seed)
    # A place is used again for another page.
    pages.fill([0], 3)
    pages.move("WRITE", [0], storage, [places[0]])
    pages.move("READ", [9], storage, [places[0]])
    pages.expect([9], [0], 3)
    pages.close(storage, registered=[registered])


@FILE_PLUGINS
@pytest.mark.parametrize("direct", [False, True], ids=["buffered", "direct"])
def test_a_static_pool_of_files(tmp_path, monkeypatch, plugin, parameters, direct):
    monkeypatch.setenv("VIADUCT_FILE_DESCRIPTORS", "4")
    pages = Pages(plugin, parameters)
    flags = os.O_CREAT | os.O_RDWR | (direct_flag(tmp_path) if direct else 0)
    fds = [os.open(tmp_path / f"obj_{i}_{uuid.uuid4().hex[:4]}.bin", flags, 0o644)
           for i in range(50)]
    before = len(os.listdir("/proc/self/fd"))
    use_pool(pages, [(0, pages.page_bytes, fd, "") for fd in fds], "FILE")
    sizes = [os.fstat(fd).st_size for fd in fds]
    assert sizes.count(pages.page_bytes) == 40 and sizes.count(0) == 10, "only written files grow"
    # The pool needs no second descriptor for each file.
    assert len(os.listdir("/proc/self/fd")) <= before + 8
    for fd in fds:
        os.close(fd)


def test_a_static_pool_of_files_with_several_pages(tmp_path):
    pages = Pages("POSIX", {})
    each = 8
    fds = [os.open(tmp_path / f"obj_{i}.bin", os.O_CREAT | os.O_RDWR, 0o644) for i in range(8)]
    rows = [(i * pages.page_bytes, pages.page_bytes, fd, "") for fd in fds for i in range(each)]
    use_pool(pages, rows, "FILE")
    for fd in fds:
        os.close(fd)


def test_a_static_pool_of_objects(store):
    pages = Pages("OBJ", store)
    rows = [(0, pages.page_bytes, i, f"obj_{i}_{uuid.uuid4().hex[:4]}") for i in range(50)]
    use_pool(pages, rows, "OBJ")


def dynamic_put(pages, kind, rows, sources):
    """Registers the storage of one batch, writes it from an event loop, and withdraws it."""
    registered = pages.agent.register_memory(rows, kind)
    descs = pages.agent.get_xfer_descs([row[:3] for row in rows], kind)
    storage = pages.agent.prep_xfer_dlist(pages.name, descs, mem_type=kind)
    handle = pages.handle("WRITE", sources, storage, range(len(rows)))

    async def put():
        state = pages.agent.transfer(handle)
        while state != "DONE":
            await asyncio.sleep(0.001)
            state = pages.agent.check_xfer_state(handle)

    asyncio.run(asyncio.wait_for(put(), 100))
    pages.agent.release_xfer_handle(handle)
    pages.agent.release_dlist_handle(storage)
    pages.agent.deregister_memory(registered)


def dynamic_get(pages, kind, rows, into):
    registered = pages.agent.register_memory(rows, kind)
    descs = pages.agent.get_xfer_descs([row[:3] for row in rows], kind)
    storage = pages.agent.prep_xfer_dlist(pages.name, descs, mem_type=kind)
    try:
        pages.move("READ", into, storage, range(len(rows)))
    finally:
        pages.agent.release_dlist_handle(storage)
        pages.agent.deregister_memory(registered)


@FILE_PLUGINS
def test_a_file_for_each_key(tmp_path, plugin, parameters):
    pages = Pages(plugin, parameters)
    keys = [quote(f"vllm@model/{i}@0@{i:x}", safe="") for i in range(16)]

    def rows(flags, some):
        return [(0, pages.page_bytes, os.open(tmp_path / key, flags, 0o644), key) for key in some]

    for batch in (keys[:10], keys[10:]):
        pages.fill(range(len(batch)), 4)
        opened = rows(os.O_CREAT | os.O_RDWR, batch)
        dynamic_put(pages, "FILE", opened, range(len(batch)))
        for row in opened:
            os.close(row[2])
    assert [os.stat(tmp_path / key).st_size for key in keys] == [pages.page_bytes] * 16
    # Descriptor numbers are used again, for other files.
    opened = rows(os.O_RDONLY, keys[4:8])
    dynamic_get(pages, "FILE", opened, range(40, 44))
    pages.expect(range(40, 44), range(4, 8), 4)
    for row in opened:
        os.close(row[2])
    found = pages.agent.query_memory(
        [(0, 0, 0, str(tmp_path / key)) for key in [*keys, "none"]], plugin, mem_type="FILE")
    assert [one and int(one["size"]) for one in found] == [pages.page_bytes] * 16 + [None]
    pages.close()


def test_an_object_for_each_key(store, fake_s3):
    pages = Pages("OBJ", store)
    keys = [quote(f"vllm@model/{i}@0@{i:x}", safe="") for i in range(40)]

    def exist(some):
        # LMCache counts how many keys exist from the first one on.
        found = pages.agent.query_memory([(0, 0, 0, key) for key in some], "OBJ", mem_type="OBJ")
        return [one is not None for one in found]

    assert exist(keys) == [False] * 40
    rows = [(0, pages.page_bytes, i, key) for i, key in enumerate(keys)]
    pages.fill(range(33), 5)
    dynamic_put(pages, "OBJ", rows[:33], range(33))
    assert exist(keys) == [True] * 33 + [False] * 7
    dynamic_get(pages, "OBJ", rows[3:13], range(50, 60))
    pages.expect(range(50, 60), range(3, 13), 5)
    # The next batch uses the same numbers for other keys.
    dynamic_put(pages, "OBJ", [(0, pages.page_bytes, i, key) for i, key in enumerate(keys[33:])],
                range(7))
    assert exist(keys) == [True] * 40
    assert fake_s3.ask("uploads") == "0"
    pages.close()


def test_a_key_that_is_absent_fails_its_read(store):
    from nixl._bindings import nixlNotFoundError
    pages = Pages("OBJ", store)
    with pytest.raises(nixlNotFoundError, match="s3://kv/none.*NoSuchKey"):
        dynamic_get(pages, "OBJ", [(0, pages.page_bytes, 1, "none")], [0])
    # The agent still works after the error.
    dynamic_put(pages, "OBJ", [(0, pages.page_bytes, 1, "none")], [0])
    dynamic_get(pages, "OBJ", [(0, pages.page_bytes, 1, "none")], [1])
    expect_bytes(pages.page(1), pages.page(0), "page 1")
    pages.close()


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


def test_plugins_that_viaduct_lacks_say_so():
    from nixl._bindings import nixlNotSupportedError
    _, agent, _ = storage_agent()
    for plugin in ("HF3FS", "AZURE_BLOB"):
        with pytest.raises(nixlNotSupportedError, match=f"{plugin}.* no backend for"):
            agent.create_backend(plugin, {})


def test_keys_of_a_store_that_is_absent_cannot_be_looked_up():
    _, agent, _ = storage_agent()
    # LMCache treats an exception as "no key exists".
    with pytest.raises(ValueError, match="OBJ"):
        agent.query_memory([(0, 0, 0, f"key-{i}") for i in range(2000)], "OBJ", mem_type="OBJ")
