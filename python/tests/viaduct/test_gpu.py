"""Tests memory of GPUs over a driver that behaves as CUDA's, whose memory no CPU can touch."""

import ctypes
import gc
import os
import weakref

import numpy
import pytest
from helpers import wait_until

import viaduct

DRIVER = os.environ.get("VIADUCT_FAKE_CUDA", "")
pytestmark = pytest.mark.skipif(not os.path.exists(DRIVER), reason="the build has no fake driver")


@pytest.fixture
def agent():
    with viaduct.Agent(cuda_library=DRIVER) as agent:
        yield agent


class Tensor:
    """Imitates a tensor on a GPU."""

    def __init__(self, address, words, gpu):
        self.gpu = gpu
        self.__cuda_array_interface__ = {
            "shape": (words,), "typestr": "<u4", "data": (address, False), "version": 3}

    def __dlpack_device__(self):
        return (2, self.gpu)


def reach(agent):
    me = agent.self()
    me.ready(timeout=10)
    return me


def test_bytes_go_to_a_gpu_and_back(agent):
    memory = agent.allocate(4096, "gpu", device=1)
    assert (memory.kind, memory.device, len(memory)) == ("device", 1, 4096)
    sent, back = agent.allocate(4096), agent.allocate(4096)
    numpy.frombuffer(sent, "uint32")[:] = range(1024)
    me = reach(agent)
    there = me.pin("gpu", timeout=10)
    assert "cuda/" in str(agent.write(me, sent, there).path)
    agent.read(me, back, there)
    assert bytes(sent) == bytes(back)


def test_a_tensor_is_pinned_and_is_the_local_side_of_a_plan(agent):
    memory = agent.allocate(4096, device=1)
    tensor = Tensor(memory.address, 16, 1)
    back = numpy.ones(16, "uint32")
    pins = [agent.pin(tensor, "tensor"), agent.pin(back, "back")]
    assert (pins[0].kind, pins[0].device, pins[0].bytes) == ("device", 1, 64)
    me = reach(agent)
    agent.read(me, tensor, me.pin("back", timeout=10))
    back[:] = 0
    agent.write(me, tensor, me.pin("back", timeout=10))
    assert (back == 1).all()


def test_the_wrong_gpu_and_a_view_are_refused(agent):
    memory = agent.allocate(4096, device=1)
    with pytest.raises(viaduct.InvalidError, match="memory of GPU 1"):
        agent.pin((memory.address, 16), device=0)
    with pytest.raises(viaduct.UnsupportedError, match="no pointer of the CPU"):
        memoryview(memory)


def test_a_gpu_that_hangs_keeps_the_array_of_a_released_pin(agent):
    class Array(numpy.ndarray):
        pass

    hang = ctypes.CDLL(DRIVER).fakeCudaPause
    memory = numpy.zeros(4096, "uint8").view(Array)
    gone = weakref.ref(memory)
    there = agent.allocate(4096, "there", device=0)
    pin = agent.pin(memory, "array")
    me = reach(agent)
    transfer = agent.plan("read", me, there, me.pin("array", timeout=10))
    transfer.post()
    transfer.wait(10)
    hang(1)
    try:
        transfer.post()
        with pytest.raises(viaduct.PeerLostError, match="Agent.self"):
            pin.release()
        del memory, pin, transfer
        gc.collect()
        assert gone() is not None
    finally:
        hang(0)
    wait_until(lambda: me.settled)
    agent.allocate(4096)  # the next pin looks for memory that is free now
    gc.collect()
    assert gone() is None
