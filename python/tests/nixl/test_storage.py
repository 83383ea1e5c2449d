"""Tests registered files and objects: plugins, queries, prepared lists, and misuse."""

import ctypes
import mmap
import os
import subprocess
import sys
import threading

import nixl._bindings as b
import numpy as np
import pytest
from nixl._api import nixl_agent, nixl_agent_config
from nixl_testing import Side, finish, run

BLOCK = 4096


class Disk(Side):
    """Opens an agent with the backend POSIX, one buffer, and a file."""

    def __init__(self, path, plugin="POSIX", parameters=None, size=16 * BLOCK, **config):
        super().__init__(size, backends=[], **config)
        self.agent.create_backend(plugin, parameters or {})
        self.path = path
        self.memory[:] = np.random.default_rng(3).integers(0, 256, size, "uint8")

    def open(self, flags=os.O_RDWR | os.O_CREAT, name=None):
        return os.open(name or self.path, flags, 0o644)

    def register(self, fd, size=16 * BLOCK, offset=0, metadata=""):
        return self.agent.register_memory([(offset, size, fd, metadata)], "FILE")

    def move(self, operation, rows, first=0, **more):
        local = self.agent.get_xfer_descs(
            [(self.address + first * BLOCK, sum(row[1] for row in rows), 0)]
            if len(rows) == 1
            else [(self.address + (first + i) * BLOCK, row[1], 0) for i, row in enumerate(rows)],
            "DRAM",
        )
        remote = self.agent.get_xfer_descs(rows, more.pop("kind", "FILE"))
        handle = self.agent.initialize_xfer(operation, local, remote, self.name, **more)
        try:
            run(self.agent, handle)
            return self.agent.agent.xferPath(handle._handle)
        finally:
            self.agent.release_xfer_handle(handle)


@pytest.fixture
def disk(tmp_path):
    return Disk(tmp_path / "data")


@pytest.fixture
def store(fake_s3, monkeypatch):
    """Yields an agent with the backend OBJ, and its server."""
    fake_s3.ask("bucket kv")
    monkeypatch.setenv("AWS_DEFAULT_BUCKET", "kv")
    monkeypatch.setenv("AWS_ENDPOINT_OVERRIDE", fake_s3.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "FAKEKEY")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "fakesecret")
    return Disk(None, "OBJ"), fake_s3


# Plugins


WITH_OBJECTS = pytest.mark.skipif(
    "OBJ" not in b.plugins(), reason="this build had no headers of libcurl"
)


@WITH_OBJECTS
def test_plugins_tell_their_kinds_of_memory():
    agent = nixl_agent("plugins", nixl_agent_config(backends=["POSIX"]))
    assert agent.get_plugin_list() == ["UCX", "LIBFABRIC", "POSIX", "GDS", "GDS_MT", "OBJ"]
    for name in ("POSIX", "GDS", "GDS_MT"):
        assert sorted(agent.get_plugin_mem_types(name)) == ["DRAM_SEG", "FILE_SEG"]
    assert sorted(agent.get_plugin_mem_types("OBJ")) == ["DRAM_SEG", "OBJ_SEG"]
    assert sorted(agent.get_plugin_mem_types("UCX")) == ["DRAM_SEG", "VRAM_SEG"]
    assert agent.get_backend_mem_types("POSIX") == agent.get_plugin_mem_types("POSIX")
    assert "use_uring" in agent.get_plugin_params("POSIX")
    assert "secret_key" in agent.get_plugin_params("OBJ")
    # Keys of the store do not appear where programs log parameters.
    agent.create_backend("OBJ", {"bucket": "b", "secret_key": "hidden"})
    assert "hidden" not in str(agent.get_backend_params("OBJ"))


def test_parameters_choose_the_engine(tmp_path, caplog):
    for parameters, engine in (({}, "file/uring"), ({"use_uring": "true"}, "file/uring"),
                               ({"use_aio": "true"}, "file/threads"),
                               ({"use_posix_aio": "1"}, "file/threads"),
                               ({"kernel_queue_size": "4096", "ios_pool_size": "9"}, "file/uring")):
        disk = Disk(tmp_path / "data", parameters=parameters)
        fd = disk.open()
        disk.register(fd)
        path = disk.move("WRITE", [(0, 16 * BLOCK, fd)])
        # A container may forbid io_uring.
        assert path.startswith(engine) or (engine == "file/uring" and "file/threads" in path)
        os.close(fd)
    assert caplog.text == ""
    Disk(tmp_path / "data", parameters={"magic": "1"})
    assert "magic is unknown" in caplog.text


@pytest.mark.parametrize("plugin", ["GDS", "GDS_MT"])
def test_gds_is_not_what_carries_the_bytes(tmp_path, plugin):
    disk = Disk(tmp_path / "data", plugin)
    fd = disk.open()
    disk.register(fd)
    local = disk.agent.get_xfer_descs([(disk.address, BLOCK, 0)], "DRAM")
    remote = disk.agent.get_xfer_descs([(0, BLOCK, fd)], "FILE")
    handle = disk.agent.initialize_xfer("WRITE", local, remote, disk.name)
    run(disk.agent, handle)
    assert disk.agent.query_xfer_backend(handle) == plugin
    assert disk.agent.agent.xferPath(handle._handle).startswith("file/")
    os.close(fd)


@WITH_OBJECTS
def test_objects_need_a_bucket(monkeypatch, caplog):
    monkeypatch.delenv("AWS_DEFAULT_BUCKET", raising=False)
    agent = nixl_agent("no bucket", nixl_agent_config(backends=[]))
    with pytest.raises(b.nixlInvalidParamError, match="AWS_DEFAULT_BUCKET"):
        agent.create_backend("OBJ", {})
    assert agent.backends == {}
    nixl_agent("all", instantiate_all=True)
    assert "OBJ is skipped" in caplog.text


@WITH_OBJECTS
def test_a_wrong_parameter_is_refused():
    agent = nixl_agent("wrong", nixl_agent_config(backends=[]))
    with pytest.raises(b.nixlInvalidParamError, match="http://:::"):
        agent.create_backend("OBJ", {"bucket": "b", "endpoint_override": "http://:::"})
    assert agent.backends == {}


# Files


def test_a_handle_is_posted_many_times(disk):
    fd = disk.open()
    registered = disk.register(fd)
    local = disk.agent.prep_xfer_dlist("", disk.blocks(16), "DRAM")
    rows = [(i * BLOCK, BLOCK, fd) for i in range(16)]
    remote = disk.agent.prep_xfer_dlist(disk.name, rows, "FILE")
    write = disk.agent.make_prepped_xfer("WRITE", local, [0, 1], remote, [7, 3])
    read = disk.agent.make_prepped_xfer("READ", local, np.arange(4, 6), remote, np.array([7, 3]))
    for round in range(20):
        disk.memory[: 2 * BLOCK] = np.arange(2 * BLOCK) % (round + 2)
        run(disk.agent, write)
        run(disk.agent, read)
        assert (disk.memory[4 * BLOCK : 6 * BLOCK] == disk.memory[: 2 * BLOCK]).all()
    assert os.fstat(fd).st_size == 8 * BLOCK, "the file ends with the last written block"
    for handle in (write, read):
        disk.agent.release_xfer_handle(handle)
    disk.agent.release_dlist_handle(remote)
    disk.agent.deregister_memory(registered)
    os.close(fd)


def test_rows_of_five_numbers_name_blocks_of_a_file(disk):
    fd = disk.open()
    disk.register(fd)
    local = disk.agent.prep_xfer_dlist("", disk.blocks(8), "DRAM")
    rows = np.array([[0, BLOCK, fd, 2 * BLOCK, 8]], dtype="uint64")
    remote = disk.agent.prep_xfer_dlist(disk.name, rows, "FILE")
    handle = disk.agent.make_prepped_xfer("WRITE", local, range(8), remote, range(8))
    run(disk.agent, handle)
    held = np.fromfile(disk.path, "uint8").reshape(-1, BLOCK)
    assert (held[::2] == disk.memory[: 8 * BLOCK].reshape(8, BLOCK)).all() and not held[1::2].any()
    os.close(fd)


def test_odd_offsets_and_lengths(disk):
    fd = disk.open()
    disk.register(fd, 10_000, offset=100)
    disk.move("WRITE", [(1000, 3001, fd)])
    assert os.fstat(fd).st_size == 4001
    assert os.pread(fd, 3001, 1000) == disk.memory[:3001].tobytes()
    wanted = disk.memory[:3001].copy()
    disk.memory[:] = 0
    disk.move("READ", [(1000, 3001, fd)], first=1)
    assert (disk.memory[BLOCK : BLOCK + 3001] == wanted).all()
    os.close(fd)


def test_one_descriptor_read_into_many_places(disk):
    disk.path.write_bytes(bytes(range(256)) * 16)
    fd = disk.open(os.O_RDONLY)
    disk.register(fd, BLOCK)
    disk.move("READ", [(0, BLOCK, fd), (0, BLOCK, fd), (100, 1000, fd)])
    assert bytes(disk.memory[:BLOCK]) == bytes(disk.memory[BLOCK : 2 * BLOCK])
    assert bytes(disk.memory[2 * BLOCK : 2 * BLOCK + 1000]) == disk.path.read_bytes()[100:1100]
    os.close(fd)


@pytest.mark.parametrize("words", ["rw,create", "rw,create,direct", "rw,create,sync,noatime"])
def test_a_file_by_its_path(disk, words):
    registered = disk.register(900, metadata=f"{words}:{disk.path}")
    assert disk.path.exists()
    disk.move("WRITE", [(0, 16 * BLOCK, 900)])
    assert disk.path.read_bytes() == disk.memory.tobytes()
    assert opened_for(disk.path, os.O_SYNC) == ("sync" in words)
    disk.agent.deregister_memory(registered)
    with pytest.raises(b.nixlNotAllowedError, match="open for reading only"):
        disk.register(901, metadata=f"ro:{disk.path}")
        disk.move("WRITE", [(0, 16 * BLOCK, 901)])


def opened_for(path, flags):
    """Whether this process has opened the file with these flags."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}") != str(path):
                continue
            info = open(f"/proc/self/fdinfo/{name}").read().split()
        except FileNotFoundError:
            continue
        if int(info[info.index("flags:") + 1], 8) & flags == flags:
            return True
    return False


def test_a_descriptor_with_sync_stays_so(disk):
    fd = disk.open(os.O_RDWR | os.O_CREAT | os.O_SYNC)
    disk.register(fd)
    os.set_inheritable(fd, False)
    disk.move("WRITE", [(0, 16 * BLOCK, fd)])
    assert opened_for(disk.path, os.O_SYNC | os.O_RDWR)
    os.close(fd)


@pytest.mark.parametrize("metadata, error, word", [
    ("rw:/no/such/folder/file", b.nixlNotFoundError, "/no/such/folder/file"),
    ("ro:/no/such/file", b.nixlNotFoundError, "No such file"),
    ("rw,fast:/tmp/file", b.nixlInvalidParamError, "option fast"),
    ("rw:", b.nixlInvalidParamError, "names no file"),
    ("ro:/", b.nixlInvalidParamError, "it is a folder; file /")])
def test_paths_that_cannot_be_opened(disk, metadata, error, word):
    with pytest.raises(error, match=word):
        disk.register(5, metadata=metadata)


def test_a_path_of_a_fifo_is_refused_at_once(disk, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(b.nixlInvalidParamError, match="no regular file"):
        disk.register(5, metadata=f"ro:{tmp_path / 'fifo'}")


def test_a_device_names_one_file(disk, tmp_path):
    fd = disk.open()
    disk.register(fd)
    with pytest.raises(b.nixlNotAllowedError, match=f"names the descriptor {fd} already"):
        disk.register(fd, BLOCK, metadata=f"rw,create:{tmp_path / 'other'}")
    disk.register(901, metadata=f"rw,create:{disk.path}")
    with pytest.raises(b.nixlNotAllowedError, match="device 901 names .*data already"):
        disk.register(901, metadata=f"rw,create:{tmp_path / 'other'}")
    with pytest.raises(b.nixlInvalidParamError, match="2.64"):
        disk.register(fd, 1 << 20, offset=(1 << 64) - 4096)
    os.close(fd)


def test_files_are_looked_up(disk, tmp_path):
    disk.path.write_bytes(b"x" * 100)
    (tmp_path / "empty").touch()
    names = [disk.path, f"ro:{disk.path}", tmp_path / "empty", tmp_path / "none",
             disk.path / "none"]
    found = disk.agent.query_memory([(0, 0, 0, str(name)) for name in names], "POSIX", "FILE")
    assert [one and one["size"] for one in found] == ["100", "100", "0", None, None]
    assert set(found[0]) == {"size", "mode", "mtime"}
    assert all(isinstance(value, str) for value in found[0].values())
    with pytest.raises(b.nixlNotSupportedError, match="OBJ_SEG"):
        disk.agent.query_memory([(0, 0, 0, "k")], "POSIX", "OBJ")
    with pytest.raises(b.nixlBackendError, match="too long"):
        disk.agent.query_memory([(0, 0, 0, "x" * 5000)], "POSIX", "FILE")


# Misuse of files


def test_a_closed_descriptor_is_refused(disk):
    fd = disk.open()
    os.close(fd)
    with pytest.raises(b.nixlInvalidParamError, match=f"descriptor {fd} is not open"):
        disk.register(fd)
    with pytest.raises(b.nixlInvalidParamError, match="is not open"):
        disk.register(1 << 40)


def test_a_descriptor_that_is_no_file_is_refused(disk, tmp_path):
    reader, writer = os.pipe()
    folder = os.open(tmp_path, os.O_RDONLY)
    for fd, kind in ((reader, "no regular file or block device"), (folder, "a folder")):
        with pytest.raises(b.nixlInvalidParamError, match=f"it is {kind}; file descriptor {fd}"):
            disk.register(fd)
    for fd in (reader, writer, folder):
        os.close(fd)


def test_a_descriptor_that_is_closed_while_it_is_registered(disk, tmp_path):
    fd = disk.open()
    registered = disk.register(fd)
    os.close(fd)
    with pytest.raises(b.nixlNotFoundError, match="not the file any more"):
        disk.move("WRITE", [(0, BLOCK, fd)])
    other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    assert other == fd, "the number is used again"
    with pytest.raises(b.nixlNotFoundError, match="not the file any more"):
        disk.move("WRITE", [(0, BLOCK, fd)])
    assert os.fstat(other).st_size == 0, "nothing is written to the other file"
    # A registration of the same descriptor number means the file that is open now.
    again = disk.register(other)
    disk.move("WRITE", [(0, BLOCK, other)])
    assert os.fstat(other).st_size == BLOCK and os.stat(disk.path).st_size == 0
    disk.agent.deregister_memory(registered)
    disk.agent.deregister_memory(again)
    with pytest.raises(b.nixlNotFoundError):
        disk.agent.deregister_memory(again)
    os.close(other)


def test_a_file_that_is_made_again_while_it_is_registered(disk, tmp_path):
    path = tmp_path / "again"
    path.write_bytes(bytes(BLOCK))
    registered = disk.register(7, BLOCK, metadata=f"rw:{path}")
    path.unlink()
    path.write_bytes(b"x" * BLOCK)  # ext4 gives the new file the same inode number
    with pytest.raises(b.nixlNotFoundError, match="not the file any more"):
        disk.move("WRITE", [(0, BLOCK, 7)])
    assert path.read_bytes() == b"x" * BLOCK
    disk.agent.deregister_memory(registered)


def test_the_file_of_a_posted_transfer_may_be_closed_and_removed(disk):
    fd = disk.open()
    disk.register(fd)
    disk.move("WRITE", [(0, 16 * BLOCK, fd)])
    os.unlink(disk.path)
    wanted = disk.memory.copy()
    disk.memory[:] = 0
    disk.move("READ", [(0, 16 * BLOCK, fd)])
    assert (disk.memory == wanted).all(), "an open file exists without its name"
    os.close(fd)


def test_descriptors_outside_a_registration_are_refused(disk):
    fd = disk.open()
    disk.register(fd, 2 * BLOCK, offset=BLOCK)
    for row in ((0, BLOCK, fd), (2 * BLOCK, 2 * BLOCK, fd), (BLOCK, BLOCK, fd + 1),
                ((1 << 64) - 4096, 8192, fd)):
        with pytest.raises(b.nixlNotFoundError, match="does not lie inside a registered file"):
            disk.agent.prep_xfer_dlist(disk.name, [row], "FILE")
    with pytest.raises(b.nixlInvalidParamError, match="0 bytes"):
        disk.agent.prep_xfer_dlist(disk.name, [(BLOCK, 0, fd)], "FILE")
    with pytest.raises(b.nixlInvalidParamError, match="0 bytes"):
        disk.register(fd, 0)
    with pytest.raises(b.nixlNotFoundError):
        disk.agent.deregister_memory(disk.agent.get_reg_descs([(0, BLOCK, fd, "")], "FILE"))
    os.close(fd)


def test_a_deregistered_file_is_not_reached(disk):
    fd = disk.open()
    registered = disk.register(fd)
    local = disk.agent.prep_xfer_dlist("", disk.blocks(1), "DRAM")
    remote = disk.agent.prep_xfer_dlist(disk.name, [(0, BLOCK, fd)], "FILE")
    disk.agent.deregister_memory(registered)
    with pytest.raises(b.nixlNotFoundError, match="was deregistered"):
        disk.agent.make_prepped_xfer("WRITE", local, [0], remote, [0])
    assert os.fstat(fd).st_size == 0
    os.close(fd)


def test_deregistering_a_file_ends_its_transfers(tmp_path):
    disk = Disk(tmp_path / "data", size=32 << 20)
    fd = disk.open()
    registered = disk.register(fd, 32 << 20)
    disk.move("WRITE", [(0, 32 << 20, fd)])
    local = disk.agent.get_xfer_descs([(disk.address, 32 << 20, 0)], "DRAM")
    remote = disk.agent.get_xfer_descs([(0, 32 << 20, fd)], "FILE")
    for _ in range(10):
        handle = disk.agent.initialize_xfer("READ", local, remote, disk.name)
        disk.agent.transfer(handle)
        disk.agent.deregister_memory(registered)
        before = disk.memory.copy()
        disk.memory[:] += 1
        assert (disk.memory == before + 1).all(), "a transfer has written after its end"
        # A fast disk may have ended the transfer before the deregistration.
        try:
            assert disk.agent.check_xfer_state(handle) == "DONE"
        except b.nixlNotAllowedError as error:
            assert f"the descriptor {fd} was deregistered" in str(error)
        with pytest.raises(b.nixlNotAllowedError, match=f"the descriptor {fd} was deregistered"):
            disk.agent.transfer(handle)
        disk.agent.release_xfer_handle(handle)
        registered = disk.register(fd, 32 << 20)
    os.close(fd)


def test_memory_that_was_deregistered_is_not_reached(disk):
    fd = disk.open()
    disk.register(fd)
    local = disk.agent.get_xfer_descs([(disk.address, BLOCK, 0)], "DRAM")
    remote = disk.agent.get_xfer_descs([(0, BLOCK, fd)], "FILE")
    handle = disk.agent.initialize_xfer("WRITE", local, remote, disk.name)
    run(disk.agent, handle)
    disk.agent.deregister_memory(disk.registered)
    with pytest.raises(Exception, match="NIXL_ERR"):
        run(disk.agent, handle)
    disk.registered = disk.agent.register_memory([(disk.address, 2 * BLOCK, 0, "")], "DRAM")
    handle = disk.agent.initialize_xfer("WRITE", local, remote, disk.name)
    run(disk.agent, handle)
    os.close(fd)


def test_a_read_beyond_the_end_is_refused_and_a_later_one_works(disk):
    fd = disk.open()
    disk.register(fd)
    with pytest.raises(b.nixlInvalidParamError, match="the file has 0 bytes"):
        disk.move("READ", [(0, BLOCK, fd)])
    os.pwrite(fd, b"x" * BLOCK, 0)
    disk.move("READ", [(0, BLOCK, fd)])
    assert bytes(disk.memory[:BLOCK]) == b"x" * BLOCK
    with pytest.raises(b.nixlInvalidParamError, match="the file has 4096 bytes"):
        disk.move("READ", [(0, BLOCK, fd), (BLOCK, 1, fd)])
    os.close(fd)


def test_a_truncated_file_fails_one_read_and_is_written_again(disk):
    fd = disk.open()
    disk.register(fd)
    disk.move("WRITE", [(0, 16 * BLOCK, fd)])
    os.truncate(disk.path, 0)
    with pytest.raises(b.nixlBackendError, match="truncated"):
        disk.move("READ", [(0, 16 * BLOCK, fd)])
    disk.move("WRITE", [(0, 16 * BLOCK, fd)])
    assert disk.path.read_bytes() == disk.memory.tobytes()
    os.close(fd)


def test_a_file_for_reading_is_not_written(disk):
    disk.path.write_bytes(b"old" * 1000)
    fd = disk.open(os.O_RDONLY)
    disk.register(fd)
    with pytest.raises(b.nixlNotAllowedError, match="open for reading only"):
        disk.move("WRITE", [(0, 3000, fd)])
    disk.move("READ", [(0, 3000, fd)])
    with pytest.raises(b.nixlNotAllowedError):
        disk.move("WRITE", [(0, 3000, fd)])
    assert disk.path.read_bytes() == b"old" * 1000
    os.close(fd)


def test_sides_of_a_wrong_kind_are_refused(disk):
    fd = disk.open()
    disk.register(fd)
    file, host = [(0, BLOCK, fd)], disk.blocks(1)
    for_file = disk.agent.prep_xfer_dlist(disk.name, file, "FILE")
    for_host = disk.agent.prep_xfer_dlist("", host, "DRAM")
    with pytest.raises(b.nixlInvalidParamError, match="local side is a list of FILE_SEG"):
        disk.agent.make_prepped_xfer("WRITE", for_file, [0], for_file, [0])
    with pytest.raises(b.nixlInvalidParamError, match="use indices below"):
        disk.agent.make_prepped_xfer("WRITE", for_host, [0], for_file, [1])
    with pytest.raises(b.nixlInvalidParamError, match="own agent only"):
        disk.agent.prep_xfer_dlist("another", file, "FILE")
    with pytest.raises(b.nixlNotSupportedError, match="OBJ_SEG needs a backend.*create_backend"):
        disk.agent.register_memory([(0, 64, 0, "key")], "OBJ")
    with pytest.raises(b.nixlNotSupportedError, match="no notification"):
        disk.move("WRITE", file, notif_msg=b"done")
    with pytest.raises(b.nixlInvalidParamError, match="4096 bytes, the remote one 1"):
        disk.agent.initialize_xfer("WRITE", disk.agent.get_xfer_descs(host, "DRAM"),
                                   disk.agent.get_xfer_descs([(0, 1, fd)], "FILE"), disk.name)
    # Metadata for other agents has no files.
    assert str(disk.path).encode() not in disk.agent.get_agent_metadata()
    with pytest.raises(b.nixlNotSupportedError, match="FILE_SEG"):
        disk.agent.get_partial_agent_metadata(
            disk.agent.get_reg_descs([(0, 16 * BLOCK, fd, "")], "FILE"))
    os.close(fd)


def test_a_released_handle_in_flight_touches_no_memory(tmp_path):
    disk = Disk(tmp_path / "data", size=32 << 20)
    fd = disk.open()
    disk.register(fd, 32 << 20)
    for _ in range(10):
        local = disk.agent.get_xfer_descs([(disk.address, 32 << 20, 0)], "DRAM")
        remote = disk.agent.get_xfer_descs([(0, 32 << 20, fd)], "FILE")
        write = disk.agent.initialize_xfer("WRITE", local, remote, disk.name)
        run(disk.agent, write)
        read = disk.agent.initialize_xfer("READ", local, remote, disk.name)
        disk.agent.transfer(read)
        disk.agent.release_xfer_handle(read)
        before = disk.memory.copy()
        disk.memory[:] += 1
        assert (disk.memory == before + 1).all()
        disk.agent.release_xfer_handle(write)
    os.close(fd)


def test_memory_that_is_gone_harms_only_its_own_transfers(disk):
    fd = disk.open()
    disk.register(fd)
    gone = mmap.mmap(-1, BLOCK)
    address = np.frombuffer(gone, "uint8").ctypes.data
    disk.agent.register_memory([(address, BLOCK, 0, "")], "DRAM")
    # Freed memory might be mapped again, so the test makes it unreadable.
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), BLOCK, 0) == 0
    disk.move("WRITE", [(0, BLOCK, fd)])
    local = disk.agent.get_xfer_descs([(address, BLOCK, 0)], "DRAM")
    remote = disk.agent.get_xfer_descs([(0, BLOCK, fd)], "FILE")
    with pytest.raises(b.nixlInvalidParamError, match="not readable"):
        disk.agent.initialize_xfer("WRITE", local, remote, disk.name)
    os.close(fd)


EXIT = """
import os, sys
sys.path.insert(0, sys.argv[2])
import test_storage
disk = test_storage.Disk(sys.argv[1], size=64 << 20)
fd = disk.open()
disk.register(fd, 64 << 20)
local = disk.agent.get_xfer_descs([(disk.address, 64 << 20, 0)], "DRAM")
remote = disk.agent.get_xfer_descs([(0, 64 << 20, fd)], "FILE")
handle = disk.agent.initialize_xfer("WRITE", local, remote, disk.name)
disk.agent.transfer(handle)
"""


def test_a_program_may_exit_in_the_middle_of_a_transfer(tmp_path):
    here = os.path.dirname(__file__)
    subprocess.run([sys.executable, "-c", EXIT, tmp_path / "data", here], check=True, timeout=100)


def test_threads_share_files(tmp_path):
    disk = Disk(tmp_path / "data", size=64 * BLOCK)
    fd = disk.open()
    disk.register(fd, 64 * BLOCK)
    failures = []

    def work(number):
        try:
            mine = slice(number * 8 * BLOCK, (number * 8 + 4) * BLOCK)
            back = slice((number * 8 + 4) * BLOCK, (number + 1) * 8 * BLOCK)
            rows = [((number * 8 + i) * BLOCK, BLOCK, fd) for i in range(4)]
            for round in range(30):
                disk.memory[mine] = (number * 30 + round) % 251
                disk.move("WRITE", rows, first=number * 8)
                disk.move("READ", rows, first=number * 8 + 4)
                assert (disk.memory[back] == disk.memory[mine]).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    os.close(fd)


def test_an_agent_moves_files_and_memory(tmp_path):
    disk = Disk(tmp_path / "data", capture_telemetry=True)
    disk.agent.create_backend("UCX", {})
    fd = disk.open()
    disk.register(fd)
    disk.move("WRITE", [(0, 8 * BLOCK, fd)])
    local = disk.agent.get_xfer_descs(disk.blocks(8), "DRAM")
    remote = disk.agent.get_xfer_descs(disk.blocks(8, first=8), "DRAM")
    handle = disk.agent.initialize_xfer("WRITE", local, remote, disk.name)
    run(disk.agent, handle)
    assert disk.agent.query_xfer_backend(handle) == "UCX"
    disk.memory[: 8 * BLOCK] = 0
    disk.move("READ", [(0, 8 * BLOCK, fd)])
    assert (disk.memory[: 8 * BLOCK] == disk.memory[8 * BLOCK :]).all()
    local = disk.agent.get_xfer_descs(disk.blocks(1), "DRAM")
    remote = disk.agent.get_xfer_descs([(0, BLOCK, fd)], "FILE")
    handle = disk.agent.initialize_xfer("READ", local, remote, disk.name)
    run(disk.agent, handle)
    telemetry = disk.agent.get_xfer_telemetry(handle)
    assert (telemetry.totalBytes, telemetry.descCount) == (BLOCK, 1)
    os.close(fd)


# Objects


def test_an_object_without_metadata_is_named_by_its_device(store):
    disk, server = store
    registered = disk.agent.register_memory([(0, 3 * BLOCK, 17, "")], "OBJ")
    disk.move("WRITE", [(0, 3 * BLOCK, 17)], kind="OBJ")
    found = disk.agent.query_memory([(0, 0, 0, "17"), (0, 0, 0, "18")], "OBJ", "OBJ")
    assert found == [{"size": str(3 * BLOCK)}, None]
    disk.move("READ", [(BLOCK, 100, 17)], first=8, kind="OBJ")
    assert (disk.memory[8 * BLOCK :][:100] == disk.memory[BLOCK : BLOCK + 100]).all()
    disk.agent.deregister_memory(registered)


def test_an_empty_object_has_the_size_0(store):
    disk, server = store
    server.ask("put kv empty 0")
    server.ask("put kv other 5")
    rows = [(0, 0, 0, key) for key in ("empty", "none", "other")]
    found = disk.agent.query_memory(rows, "OBJ", "OBJ")
    assert found == [{"size": "0"}, None, {"size": "5"}]
    disk.agent.register_memory([(0, BLOCK, 1, "empty")], "OBJ")
    with pytest.raises(b.nixlInvalidParamError, match="the object is empty"):
        disk.move("READ", [(0, BLOCK, 1)], kind="OBJ")
    disk.move("WRITE", [(0, BLOCK, 1)], kind="OBJ")
    assert disk.agent.query_memory(rows[:1], "OBJ", "OBJ") == [{"size": str(BLOCK)}]


def test_an_object_that_is_written_again_is_read_anew(store):
    disk, _ = store
    disk.agent.register_memory([(0, 16 * BLOCK, 1, "a key/with &")], "OBJ")
    for size in (BLOCK, 3 * BLOCK, 2 * BLOCK):
        disk.memory[:size] += 1
        disk.move("WRITE", [(0, size, 1)], kind="OBJ")
        disk.move("READ", [(0, size, 1)], first=8, kind="OBJ")
        assert (disk.memory[8 * BLOCK :][:size] == disk.memory[:size]).all()


def test_misuse_of_objects(store):
    disk, server = store
    disk.agent.register_memory([(0, 4 * BLOCK, 1, "key")], "OBJ")
    with pytest.raises(b.nixlNotFoundError, match="NoSuchKey"):
        disk.move("READ", [(0, BLOCK, 1)], kind="OBJ")
    with pytest.raises(b.nixlNotSupportedError, match="writes a part"):
        disk.move("WRITE", [(BLOCK, BLOCK, 1)], kind="OBJ")
    with pytest.raises(b.nixlNotFoundError, match="registered object"):
        disk.move("WRITE", [(0, BLOCK, 2)], kind="OBJ")
    for rows in ([(0, 4 * BLOCK, 1, "other")], [(0, BLOCK, 1, "other")],
                 [(0, BLOCK, 2, "a"), (BLOCK, BLOCK, 2, "b")]):
        with pytest.raises(b.nixlNotAllowedError, match="names s3://kv/(key|a) already"):
            disk.agent.register_memory(rows, "OBJ")
    for name in ("k\xe4y", "k\xe4y".encode()):
        assert disk.agent.query_memory([(0, 0, 0, name)], "OBJ", "OBJ") == [None]
    disk.move("WRITE", [(0, 2 * BLOCK, 1)], kind="OBJ")
    with pytest.raises(b.nixlInvalidParamError, match="object of 8192 bytes"):
        disk.move("READ", [(0, 3 * BLOCK, 1)], kind="OBJ")
    # Two halves that one transfer writes are one object.
    disk.move("WRITE", [(0, BLOCK, 1), (BLOCK, BLOCK, 1)], kind="OBJ")
    disk.move("READ", [(0, 2 * BLOCK, 1)], first=8, kind="OBJ")
    assert (disk.memory[8 * BLOCK : 10 * BLOCK] == disk.memory[: 2 * BLOCK]).all()


def test_a_bucket_that_is_missing(store, monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_BUCKET", "nobody")
    disk = Disk(None, "OBJ")
    disk.agent.register_memory([(0, BLOCK, 1, "key")], "OBJ")
    for operation in ("WRITE", "READ"):
        with pytest.raises(b.nixlNotFoundError, match="NoSuchBucket"):
            disk.move(operation, [(0, BLOCK, 1)], kind="OBJ")
    with pytest.raises(b.nixlNotFoundError, match="NoSuchBucket"):
        disk.agent.query_memory([(0, 0, 0, "key")], "OBJ", "OBJ")


def test_wrong_keys_and_a_dead_store_are_errors_that_hide_secrets(store, monkeypatch):
    monkeypatch.setenv("VIADUCT_OBJECT_RETRIES", "0")
    disk = Disk(None, "OBJ", {"secret_key": "wrongsecret"})
    with pytest.raises(b.nixlNotAllowedError) as raised:
        disk.agent.query_memory([(0, 0, 0, "key")], "OBJ", "OBJ")
    assert "wrongsecret" not in str(raised.value)
    disk = Disk(None, "OBJ", {"endpoint_override": "127.0.0.1:9", "scheme": "http"})
    with pytest.raises(b.nixlRemoteDisconnectError, match="127.0.0.1:9"):
        disk.agent.query_memory([(0, 0, 0, "key")], "OBJ", "OBJ")


def test_a_store_that_fails_a_write_leaves_the_old_object(store, monkeypatch):
    monkeypatch.setenv("VIADUCT_OBJECT_RETRIES", "0")
    _, server = store
    disk = Disk(None, "OBJ")
    disk.agent.register_memory([(0, BLOCK, 1, "key")], "OBJ")
    disk.move("WRITE", [(0, BLOCK, 1)], kind="OBJ")
    old = disk.memory[:BLOCK].copy()
    server.ask("fault PUT 500 1 key")
    disk.memory[:BLOCK] = 0
    with pytest.raises(b.nixlBackendError, match="HTTP 500"):
        disk.move("WRITE", [(0, BLOCK, 1)], kind="OBJ")
    disk.move("READ", [(0, BLOCK, 1)], kind="OBJ")
    assert (disk.memory[:BLOCK] == old).all()


def test_transfers_in_flight_end_with_their_handle(store):
    disk, server = store
    disk.agent.register_memory([(0, BLOCK, 1, "key")], "OBJ")
    server.ask("fault PUT hang 1 key")
    local = disk.agent.get_xfer_descs([(disk.address, BLOCK, 0)], "DRAM")
    remote = disk.agent.get_xfer_descs([(0, BLOCK, 1)], "OBJ")
    handle = disk.agent.initialize_xfer("WRITE", local, remote, disk.name)
    assert disk.agent.transfer(handle) == "PROC"
    server.ask("hung 1")
    assert disk.agent.check_xfer_state(handle) == "PROC"
    disk.agent.release_xfer_handle(handle)
    server.ask("release")
    handle = disk.agent.initialize_xfer("WRITE", local, remote, disk.name)
    disk.agent.transfer(handle)
    finish(disk.agent, handle)


@pytest.mark.parametrize("operation", ["READ", "WRITE"])
def test_deregistering_an_object_ends_its_transfers(store, operation):
    disk, server = store
    registered = disk.agent.register_memory([(0, BLOCK, 1, "key")], "OBJ")
    disk.move("WRITE", [(0, BLOCK, 1)], kind="OBJ")
    local = disk.agent.get_xfer_descs([(disk.address, BLOCK, 0)], "DRAM")
    remote = disk.agent.get_xfer_descs([(0, BLOCK, 1)], "OBJ")
    handle = disk.agent.initialize_xfer(operation, local, remote, disk.name)
    server.ask(f"fault {'GET' if operation == 'READ' else 'PUT'} hang 1 key")
    assert disk.agent.transfer(handle) == "PROC"
    server.ask("hung 1")
    disk.agent.deregister_memory(registered)
    disk.memory[:] = 7
    server.ask("release")
    for call in (disk.agent.check_xfer_state, disk.agent.transfer):
        with pytest.raises(b.nixlNotAllowedError, match="s3://kv/key was deregistered"):
            call(handle)
    disk.agent.release_xfer_handle(handle)
    assert (disk.memory == 7).all(), "a transfer has written after its end"
    disk.agent.register_memory([(0, BLOCK, 1, "key")], "OBJ")
    disk.move("WRITE", [(0, BLOCK, 1)], kind="OBJ")
