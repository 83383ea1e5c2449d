"""Tests pinned memory: allocation, pinning, views and release."""

import array
import gc
import mmap
import sys
import weakref

import numpy
import pytest
from helpers import LONG

import viaduct


def test_allocated_memory_is_zeroed_and_viewed_without_a_copy(agent):
    pin = agent.allocate(8192, label="cache")
    view = numpy.frombuffer(pin, dtype="uint64")
    assert not view.any() and view.ctypes.data == pin.address
    view[3] = 5
    assert memoryview(pin)[24] == 5
    assert (len(pin), pin.bytes, pin.label, pin.read_only) == (8192, 8192, "cache", False)


@pytest.mark.parametrize("memory", [
    bytearray(64), array.array("d", range(8)), memoryview(bytearray(64)), mmap.mmap(-1, 64),
    numpy.zeros((4, 4), "uint32"), numpy.zeros((4, 4), "uint32", order="F"),
    numpy.zeros((4, 2, 8), "uint8").transpose(1, 0, 2)], ids=lambda memory: type(memory).__name__)
def test_any_contiguous_buffer_can_be_pinned(agent, memory):
    with agent.pin(memory, label="any") as pin:
        assert pin.bytes == 64 and not pin.read_only
        memoryview(pin)[:1] = b"x"
        assert memoryview(memory).tobytes("A")[:1] == b"x"


def test_memory_that_may_not_be_written_is_pinned_for_reading(pair):
    agent, peer, inbox, remote = pair
    with agent.pin(b"abcd" * 16) as pin:
        assert pin.read_only
        assert memoryview(pin).readonly
        with pytest.raises(TypeError):
            memoryview(pin)[0] = 1
        agent.write(peer, pin, remote.blocks(64, count=1)[[0]], timeout=LONG)
        assert bytes(inbox)[:64] == b"abcd" * 16
        with pytest.raises(viaduct.DeniedError):
            agent.read(peer, pin, remote.blocks(64, count=1))


def test_a_pin_by_address(agent):
    words = numpy.arange(16, dtype="uint32")
    pin = agent.pin((words.ctypes.data, words.nbytes), "words")
    assert bytes(pin) == words.tobytes()
    for bad in ((words.ctypes.data, 0), (0, 64), (-1, 4)):
        with pytest.raises(ValueError):
            agent.pin(bad)
    with pytest.raises(TypeError):
        agent.pin((words.ctypes.data, 1.5))


def test_the_pin_keeps_the_object_alive_until_release(agent):
    class Array(numpy.ndarray):
        pass

    memory = numpy.zeros(64, "uint8").view(Array)
    gone = weakref.ref(memory)
    pin = agent.pin(memory)
    del memory
    gc.collect()
    assert gone() is not None
    pin.release()
    gc.collect()
    assert gone() is None


def test_a_bytearray_cannot_shrink_while_it_is_pinned(agent):
    memory = bytearray(64)
    with agent.pin(memory):
        with pytest.raises(BufferError):
            memory.clear()
    memory.clear()


def test_views_keep_the_memory_after_release_and_after_the_pin(agent):
    pin = agent.allocate(1 << 20)
    view = numpy.frombuffer(pin, dtype="uint8")
    pin.release()
    view[:] = 3
    with pytest.raises(viaduct.InvalidError, match="was released"):
        memoryview(pin)
    with pytest.raises(viaduct.InvalidError, match="was released"):
        pin.blocks(4096)
    pin.release()
    assert pin.released
    del pin
    gc.collect()
    assert int(view.sum()) == 3 << 20


def test_released_memory_goes_back_to_the_system(agent):
    pin = agent.allocate(1 << 20)
    at = f"{pin.address:x}-"
    assert at in open("/proc/self/maps").read()
    pin.release()
    assert at not in open("/proc/self/maps").read()


def test_memory_with_gaps_is_refused_and_the_error_says_what_to_do(agent):
    with pytest.raises(viaduct.InvalidError, match="gaps") as raised:
        agent.pin(numpy.zeros((8, 8))[:, :4])
    assert "contiguous" in raised.value.remedy
    with pytest.raises(TypeError, match="type list; what to do: give a buffer"):
        agent.pin([1, 2, 3])
    with pytest.raises(viaduct.InvalidError):
        agent.pin(numpy.zeros(0))


class OnGpu:
    __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (1 << 40, False),
                                "version": 3}


class OnRocm:
    def __dlpack_device__(self):
        return (10, 0)

    def __dlpack__(self):
        raise AssertionError("asked for memory of a GPU")


def test_memory_of_a_gpu_needs_the_driver():
    with viaduct.Agent(cuda_library="libno-such-driver.so.1", listen="127.0.0.1:0") as agent:
        for call in (lambda: agent.pin(OnGpu()), lambda: agent.allocate(4096, device=0),
                     lambda: agent.pin((1 << 40, 16), device=1)):
            with pytest.raises(viaduct.UnsupportedError, match="libno-such-driver.so.1"):
                call()


def test_memory_of_other_devices_is_refused_with_the_reason(agent):
    with pytest.raises(viaduct.UnsupportedError, match="DLPack's type 10") as raised:
        agent.pin(OnRocm())
    assert "host memory" in raised.value.remedy


class ArrayInterface:
    def __init__(self, words, **more):
        self.words = words
        self.__array_interface__ = {"shape": words.shape, "typestr": words.dtype.str,
                                    "data": (words.ctypes.data, False), "version": 3, **more}


def test_the_array_interface_of_a_type_without_buffer(agent):
    words = numpy.arange(16, dtype="uint16")
    assert bytes(agent.pin(ArrayInterface(words))) == words.tobytes()
    strided = numpy.zeros((4, 4), "uint16")[:, :2]
    with pytest.raises(viaduct.InvalidError, match="gaps"):
        agent.pin(ArrayInterface(strided, strides=strided.strides))


class OnlyDlpack:
    """Imitates a tensor of torch or jax that offers only DLPack."""

    def __init__(self, words):
        self.words = words
        self.__dlpack__ = words.__dlpack__

    def __dlpack_device__(self):
        return self.words.__dlpack_device__()


def test_a_tensor_with_dlpack_alone(agent):
    words = numpy.arange(24, dtype="uint16").reshape(4, 6)
    held = sys.getrefcount(words)
    pin = agent.pin(OnlyDlpack(words))
    assert bytes(pin) == words.tobytes() and sys.getrefcount(words) > held
    pin.release()
    gc.collect()
    assert sys.getrefcount(words) == held
    with pytest.raises(viaduct.InvalidError, match="gaps"):
        agent.pin(OnlyDlpack(words[:, ::2]))


def test_a_tensor_of_torch(pair):
    torch = pytest.importorskip("torch", reason="python3-torch is not installed")
    agent, peer, inbox, remote = pair
    tensor = torch.arange(32, dtype=torch.bfloat16).reshape(4, 8)
    with agent.pin(tensor):
        agent.write(peer, tensor, remote.blocks(64, count=1), timeout=LONG)
        rows = viaduct.Blocks.of(tensor)
        assert (len(rows), rows.block_bytes) == (4, 16)
    assert bytes(inbox)[:64] == tensor.view(torch.int16).numpy().tobytes()


def test_sizes_that_cannot_be_are_refused(agent):
    for bad in (0, -1, 1 << 63):
        with pytest.raises((viaduct.Error, ValueError)):
            agent.allocate(bad)
    with pytest.raises(TypeError):
        agent.allocate("1 MiB")


def test_a_pin_that_is_dropped_is_withdrawn(pair):
    agent, peer, _, remote = pair
    memory = numpy.zeros(64, "uint8")
    agent.pin(memory)
    with pytest.raises(viaduct.DeniedError, match="not in any pin"):
        agent.plan("write", peer, memory, remote.blocks(64, count=1))
