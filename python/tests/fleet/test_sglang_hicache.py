"""Makes the calls of SGLang's HiCache, which replaces `agent.agent` by an agent of the bindings.

The calls follow hicache_nixl.py, nixl_utils.py and nixl_registry.py of
python/sglang/srt/mem_cache/storage/nixl/.
"""

import contextlib
import os
import threading
import uuid

import pytest

numpy = pytest.importorskip("numpy")

from fleet_testing import address_of, direct_flag, expect_bytes, pattern, poison, until

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


class HiCache:
    """Moves pages between the registered host pool and storage, one file or object for each key."""

    def __init__(self, plugin, parameters, kind, folder=None):
        self.name, self.agent = hand_made_agent()
        assert plugin in self.agent.get_plugin_list()
        self.agent.create_backend(plugin, parameters)
        self.plugin, self.kind, self.folder = plugin, kind, folder
        self.next_device, self.lock = 1, threading.Lock()
        raw = numpy.zeros((PAGES + 1) * PAGE_BYTES, dtype=numpy.uint8)
        start = -address_of(raw) % PAGE_BYTES
        self.pool = raw[start:start + PAGES * PAGE_BYTES]
        registered = self.agent.get_reg_descs([(address_of(self.pool), self.pool.nbytes, 0, "")],
                                              "DRAM")
        assert self.agent.register_memory(registered)

    def page(self, index):
        return self.pool[index * PAGE_BYTES:(index + 1) * PAGE_BYTES]

    def takes_paths(self):
        """Returns whether the agent opens paths in the metadata, as newer NIXL does."""
        try:
            self.agent.register_memory(
                self.agent.get_reg_descs([(0, 4096, 1, "rw:/nonexistent/probe")], "FILE"))
        except Exception:
            return True
        return False

    def devices(self, count):
        with self.lock:
            self.next_device += count
            return range(self.next_device - count, self.next_device)

    @contextlib.contextmanager
    def registered(self, rows):
        registered = self.agent.register_memory(self.agent.get_reg_descs(rows, self.kind))
        try:
            yield registered
        finally:
            self.agent.deregister_memory(registered)

    @contextlib.contextmanager
    def by_descriptor(self, keys, operation):
        flags = os.O_RDWR | (os.O_CREAT if operation == "WRITE" else 0)
        flags |= direct_flag(self.folder)
        fds = [os.open(self.folder / key, flags, 0o644) for key in keys]
        try:
            rows = [(0, PAGE_BYTES, fd, str(self.folder / key)) for fd, key in zip(fds, keys)]
            with self.registered(rows):
                yield self.agent.get_xfer_descs([row[:3] for row in rows], "FILE")
        finally:
            for fd in fds:
                os.close(fd)

    @contextlib.contextmanager
    def by_path(self, keys, operation):
        words = "rw,create,direct" if operation == "WRITE" else "ro,direct"
        rows = [(0, PAGE_BYTES, device, f"{words}:{self.folder / key}")
                for device, key in zip(self.devices(len(keys)), keys)]
        with self.registered(rows) as registered:
            yield registered.trim()

    @contextlib.contextmanager
    def by_key(self, keys, operation):
        rows = [(0, PAGE_BYTES, device, key)
                for device, key in zip(self.devices(len(keys)), keys)]
        with self.registered(rows):
            yield self.agent.get_xfer_descs([row[:3] for row in rows], "OBJ")

    def move(self, operation, way, keys, pages):
        host = self.agent.get_xfer_descs(
            [(address_of(self.page(page)), PAGE_BYTES, 0) for page in pages], "DRAM")
        with way(keys, operation) as storage:
            handle = self.agent.initialize_xfer(operation, host, storage, self.name)
            state = self.agent.transfer(handle)
            until(lambda: state == "DONE" or self.agent.check_xfer_state(handle) == "DONE",
                  operation, pause_s=0.0001)
            self.agent.release_xfer_handle(handle)

    def exist(self, keys):
        names = [str(self.folder / key) if self.folder else key for key in keys]
        found = self.agent.query_memory([(0, 0, 0, name) for name in names], self.plugin,
                                        mem_type=self.kind)
        return [one is not None for one in found]


def set_and_get(cache, way, prefix, pages):
    """Stores half of the pages under keys, and loads them into the other half."""
    half = len(pages) // 2
    keys = [f"{prefix}{i}_model_0_1" for i in range(half)]
    for i in range(half):
        cache.page(pages[i])[:] = pattern(hash(prefix) % 1000 + i, PAGE_BYTES)
    assert cache.exist(keys) == [False] * half
    cache.move("WRITE", way, keys, pages[:half])
    assert cache.exist([*keys, "none"]) == [True] * half + [False]
    order = list(reversed(range(half)))
    cache.move("READ", way, [keys[i] for i in order], pages[half:])
    for page, i in zip(pages[half:], order):
        expect_bytes(cache.page(page), cache.page(pages[i]), f"key {keys[i]}")
    return keys


@pytest.mark.parametrize("plugin", ["POSIX", "GDS_MT", "GDS"])
@pytest.mark.parametrize("way", ["by_descriptor", "by_path"])
def test_pages_in_files(tmp_path, plugin, way):
    cache = HiCache(plugin, {}, "FILE", tmp_path)
    assert cache.takes_paths()
    before = sorted(os.listdir("/proc/self/fd"))
    for round in range(3):
        keys = set_and_get(cache, getattr(cache, way), f"round{round}_", range(PAGES))
        assert all(os.stat(tmp_path / key).st_size == PAGE_BYTES for key in keys)
    # The cleaner of HiCache removes files at any time: their pages are misses.
    os.remove(tmp_path / keys[0])
    with pytest.raises(Exception):
        cache.move("READ", getattr(cache, way), keys[:1], [0])
    set_and_get(cache, getattr(cache, way), "after_", range(PAGES))
    assert len(os.listdir("/proc/self/fd")) <= len(before) + 64


def test_pages_in_objects(fake_s3):
    fake_s3.ask("bucket kv")
    cache = HiCache("OBJ", {"bucket": "kv", "endpoint_override": fake_s3.endpoint,
                            "access_key": "FAKEKEY", "secret_key": "fakesecret"}, "OBJ")
    for round in range(2):
        set_and_get(cache, cache.by_key, f"round{round}_", range(PAGES))


@pytest.mark.parametrize("way", ["by_descriptor", "by_path"])
def test_two_threads_store_and_load_at_the_same_time(tmp_path, way):
    cache = HiCache("POSIX", {}, "FILE", tmp_path)
    failures = []

    def work(name, pages):
        try:
            for round in range(20):
                set_and_get(cache, getattr(cache, way), f"{name}{round}_", pages)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=("a", range(PAGES // 2))),
               threading.Thread(target=work, args=("b", range(PAGES // 2, PAGES)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_plugin_that_viaduct_lacks_is_not_listed():
    from nixl._bindings import nixlNotSupportedError
    _, agent = hand_made_agent()
    # HiCache chooses among the listed plugins, so the list must contain only working plugins.
    assert "HF3FS" not in agent.plugin_list
    with pytest.raises(nixlNotSupportedError, match="HF3FS.* no backend for 3FS"):
        agent.create_backend("HF3FS", {})


def test_storage_without_its_backend_is_refused(tmp_path):
    from nixl._bindings import nixlNotSupportedError
    _, agent = hand_made_agent()
    agent.create_backend("UCX", {})
    with pytest.raises(nixlNotSupportedError, match="FILE.*create_backend.*POSIX"):
        agent.register_memory([(0, PAGE_BYTES, 0, "")], "FILE")
    with pytest.raises(nixlNotSupportedError, match="OBJ.*create_backend"):
        agent.register_memory([(0, PAGE_BYTES, 0, "page-0")], "OBJ")
