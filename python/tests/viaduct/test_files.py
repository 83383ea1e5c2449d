"""Tests files and objects as pins."""

import asyncio
import os
import pathlib

import numpy
import pytest
from helpers import LONG

import viaduct

BLOCK = 4096


@pytest.fixture
def me(agent):
    peer = agent.self()
    peer.ready(LONG)
    return peer


@pytest.fixture
def numbers():
    return numpy.random.default_rng(1).integers(0, 256, 16 * BLOCK, "uint8")


@pytest.fixture
def held(tmp_path, numbers):
    """Returns a file of 16 blocks."""
    path = tmp_path / "held"
    path.write_bytes(numbers.tobytes())
    return path


@pytest.fixture
def store(fake_s3):
    """Yields an agent with objects on a server of its own, its peer, and the server."""
    os.environ.update(AWS_ACCESS_KEY_ID="FAKEKEY", AWS_SECRET_ACCESS_KEY="fakesecret")
    try:
        with viaduct.Agent(backends=["object"], object_endpoint=fake_s3.endpoint) as agent:
            peer = agent.self()
            peer.ready(LONG)
            yield agent, peer, fake_s3
    finally:
        del os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]


def test_blocks_of_a_new_file_are_written_and_read(agent, me, tmp_path, numbers):
    path = tmp_path / "slab"
    slab = agent.pin_file(path, "slab", bytes=16 * BLOCK, create=True)
    assert (slab.kind, slab.bytes, slab.label) == ("file", 16 * BLOCK, "slab")
    assert not slab.read_only
    there = me.pin("slab", LONG)
    assert there.kind == "file" and there.address == slab.address
    memory = agent.allocate(16 * BLOCK)
    assert memory.kind == "host"
    memoryview(memory)[:] = numbers.tobytes()
    order = [3, 0, 15, 7]
    transfer = agent.write(me, memory.blocks(BLOCK)[:4], there.blocks(BLOCK)[order], timeout=LONG)
    assert transfer.path.shares[0].backend == "file"
    wanted = numpy.zeros((16, BLOCK), "uint8")
    wanted[order] = numbers.reshape(16, BLOCK)[:4]
    assert path.read_bytes() == wanted.tobytes()
    agent.read(me, memory, there, timeout=LONG)
    assert bytes(memory) == wanted.tobytes()


@pytest.mark.parametrize("form", ["text", "bytes", "path", "descriptor", "file"])
def test_a_file_is_named_by_path_or_descriptor(agent, me, held, numbers, form):
    with open(held, "rb") as opened:
        file = {"text": str(held), "bytes": bytes(held), "path": held,
                "descriptor": opened.fileno(), "file": opened}[form]
        pin = agent.pin_file(file, "part", offset=BLOCK, bytes=2 * BLOCK)
    assert pin.read_only == (form in ("descriptor", "file"))
    memory = agent.allocate(2 * BLOCK)
    agent.read(me, memory, me.pin("part", LONG), timeout=LONG)
    assert bytes(memory) == numbers[BLOCK:3 * BLOCK].tobytes()


def test_a_file_may_be_the_local_side(agent, me, held, numbers):
    memory = agent.allocate(16 * BLOCK, "memory")
    with agent.pin_file(held) as pin:
        agent.write(me, pin, me.pin("memory", LONG), timeout=LONG)
    assert bytes(memory) == numbers.tobytes()


def test_a_task_awaits_a_file(agent, me, held, numbers):
    pin = agent.pin_file(held, "held")
    memory = agent.allocate(16 * BLOCK)

    async def load():
        await agent.plan("read", me, memory, me.pin("held", LONG)).post(timeout=LONG)

    asyncio.run(load())
    pin.release()
    assert bytes(memory) == numbers.tobytes()


def test_a_view_of_a_file_is_refused(agent, held):
    pin = agent.pin_file(held)
    for view in (memoryview, bytes, lambda one: numpy.frombuffer(one, "uint8"), agent.pin,
                 viaduct.Blocks.of):
        with pytest.raises(viaduct.UnsupportedError, match="the bytes of a pinned file"):
            view(pin)
    assert "bytes of file at" in repr(pin) and len(pin) == 16 * BLOCK


def test_a_file_for_reading_is_not_written(agent, me, held, numbers):
    pin = agent.pin_file(held, "held", read_only=True)
    assert pin.read_only and me.pin("held", LONG).read_only
    memory = agent.allocate(16 * BLOCK)
    with pytest.raises(viaduct.DeniedError):
        agent.write(me, memory, me.pin("held", LONG))
    assert held.read_bytes() == numbers.tobytes()


def test_files_that_cannot_be_pinned_are_refused(agent, tmp_path, held):
    with pytest.raises(viaduct.NotFoundError, match="absent"):
        agent.pin_file(tmp_path / "absent")
    with pytest.raises(viaduct.InvalidError, match="folder"):
        agent.pin_file(tmp_path)
    with pytest.raises(viaduct.InvalidError, match="65536 bytes"):
        agent.pin_file(held, offset=15 * BLOCK, bytes=2 * BLOCK)
    with pytest.raises(viaduct.InvalidError, match="bytes=0"):
        agent.pin_file(held, bytes=0)
    closed = os.open(held, os.O_RDONLY)
    os.close(closed)
    with pytest.raises(viaduct.Error, match="Bad file descriptor"):
        agent.pin_file(closed)
    reader, writer = os.pipe()
    with pytest.raises(viaduct.InvalidError, match="no regular file"):
        agent.pin_file(reader)
    os.close(reader), os.close(writer)
    for wrong in (None, 1.5, object()):
        with pytest.raises(TypeError):
            agent.pin_file(wrong)
    for wrong in (-1, "0\0"):
        with pytest.raises(ValueError):
            agent.pin_file(wrong)
    with pytest.raises(ValueError):
        agent.pin_file(held, offset=-1)


def test_a_file_that_shrinks_behind_its_pin_fails_the_transfer(agent, me, held):
    pin = agent.pin_file(held, "held")
    os.truncate(held, BLOCK)
    memory = agent.allocate(16 * BLOCK)
    with pytest.raises(viaduct.DeviceError, match="truncated"):
        agent.read(me, memory, me.pin("held", LONG), timeout=LONG)
    pin.release()
    assert pin.released


def test_an_object_is_written_as_a_whole_and_read(store, numbers):
    agent, me, server = store
    server.ask("bucket kv")
    memory = agent.pin(numbers.copy())
    new = agent.pin_object("s3://kv/a key", "new", bytes=numbers.size, create=True)
    assert (new.kind, new.bytes, new.read_only) == ("object", numbers.size, False)
    agent.write(me, memory, me.pin("new", LONG), timeout=LONG)
    new.release()
    part = agent.pin_object("s3://kv/a key", "part", offset=10, bytes=100)
    assert part.read_only
    back = agent.allocate(100)
    agent.read(me, back, me.pin("part", LONG), timeout=LONG)
    assert bytes(back) == numbers[10:110].tobytes()
    with pytest.raises(viaduct.UnsupportedError, match="the bytes of a pinned object"):
        memoryview(part)


def test_objects_that_cannot_be_pinned_are_refused(store):
    agent, _, server = store
    server.ask("bucket kv")
    with pytest.raises(viaduct.NotFoundError, match="s3://kv/none"):
        agent.pin_object("s3://kv/none")
    with pytest.raises(viaduct.InvalidError, match="size"):
        agent.pin_object("s3://kv/new", create=True)
    with pytest.raises(viaduct.InvalidError):
        agent.pin_object("kv/new")
    with pytest.raises(TypeError):
        agent.pin_object(pathlib.Path("/kv/new"))
