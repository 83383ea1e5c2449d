"""Tests VRAM over a driver that behaves as CUDA's, whose memory no CPU can touch."""

import os

import numpy as np
import pytest
import viaduct
from nixl_testing import Side, meet, run

DRIVER = os.environ.get("VIADUCT_FAKE_CUDA", "")
pytestmark = pytest.mark.skipif(not os.path.exists(DRIVER), reason="the build has no fake driver")

BYTES = 64 << 10


@pytest.fixture(autouse=True)
def driver(monkeypatch):
    monkeypatch.setenv("VIADUCT_CUDA_LIBRARY", DRIVER)
    monkeypatch.setenv("VIADUCT_DETECT", "1h")  # no test here loses a peer by its silence


@pytest.fixture
def gpus():
    """Yields memory of GPU 0 and of GPU 1, as an engine would have allocated it."""
    with viaduct.Agent(cuda_library=DRIVER) as owner:
        yield [owner.allocate(BYTES, f"gpu {i}", device=i) for i in range(2)]


def register(side, memory):
    rows = [(memory.address, BYTES, memory.device, "")]
    return side.agent.register_memory(rows, "VRAM")


def move(side, operation, local, remote, name):
    handle = side.agent.initialize_xfer(operation, local, remote, name)
    try:
        run(side.agent, handle)
        return side.agent.agent.xferPath(handle._handle)
    finally:
        side.agent.release_xfer_handle(handle)


def blocks(side, address, device, kind):
    return side.agent.get_xfer_descs(
        [(address + at, 4096, device) for at in range(0, BYTES, 4096)], kind
    )


def test_blocks_go_through_two_gpus_of_two_agents(gpus):
    here, there = Side(BYTES), Side(BYTES)
    here.memory[:] = np.random.default_rng(1).integers(0, 256, BYTES, "uint8")
    register(here, gpus[0])
    register(there, gpus[1])
    meet(here, there)
    near = blocks(here, gpus[0].address, 0, "VRAM")
    far = blocks(here, gpus[1].address, 1, "VRAM")
    host = blocks(here, here.address, 0, "DRAM")
    move(here, "WRITE", host, near, here.name)
    path = move(here, "WRITE", near, far, there.name)
    assert path.startswith("cuda/"), path
    here.memory[:] = 0
    move(here, "READ", host, far, there.name)
    assert np.array_equal(here.memory, np.random.default_rng(1).integers(0, 256, BYTES, "uint8"))


def test_a_file_goes_to_a_gpu_in_stages(gpus, tmp_path):
    side = Side(BYTES, backends=[])
    side.agent.create_backend("GDS", {})
    content = np.random.default_rng(2).integers(0, 256, BYTES, "uint8")
    path = tmp_path / "data"
    path.write_bytes(content.tobytes())
    fd = os.open(path, os.O_RDWR)
    side.agent.register_memory([(0, BYTES, fd, "")], "FILE")
    register(side, gpus[0])
    near = blocks(side, gpus[0].address, 0, "VRAM")
    stored = side.agent.get_xfer_descs([(0, BYTES, fd)], "FILE")
    whole = side.agent.get_xfer_descs([(gpus[0].address, BYTES, 0)], "VRAM")
    way = move(side, "READ", whole, stored, side.name)
    assert "file/" in way and "cuda/" in way, way
    plain = Side(BYTES)
    register(plain, gpus[0])
    move(plain, "READ", blocks(plain, plain.address, 0, "DRAM"), near, plain.name)
    assert np.array_equal(plain.memory, content)
    os.close(fd)


def test_memory_of_another_gpu_is_named(gpus):
    side = Side(BYTES)
    with pytest.raises(Exception, match="memory of GPU 1"):
        side.agent.register_memory([(gpus[1].address, BYTES, 0, "")], "VRAM")


def test_a_number_beyond_all_gpus_is_no_gpu(gpus):
    side = Side(BYTES)
    with pytest.raises(Exception, match="GPU 4294967295"):
        side.agent.register_memory([(gpus[0].address, BYTES, 1 << 32, "")], "VRAM")
