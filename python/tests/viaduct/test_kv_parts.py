"""Tests the KV cache of a request as parts of a parcel."""

import asyncio
import gc
import threading

import numpy
import pytest
from helpers import LONG

import viaduct

LAYERS, BLOCKS, PAGE = 6, 8, 2 * 16 * 2 * 8 * 2  # bytes of K and V of a block
SOURCE, DESTINATION = [5, 1, 7], [0, 6, 2]  # the blocks of a request
IN_PART = range(len(SOURCE))


def layout(address, layers=range(LAYERS)):
    cache = viaduct.KvCache(layers, 8, kv_heads=2)
    return viaduct.KvLayout([viaduct.KvGroup([cache])]).arrange("together", address, BLOCKS)


class End:
    """One agent, its peer, its layout, and its cache as (layer, block, byte)."""

    def __init__(self, agent, peer, address, memory):
        self.agent, self.peer, self.layout = agent, peer, layout(address)
        self.cache = numpy.frombuffer(memory, "uint8")[:LAYERS * BLOCKS * PAGE]
        self.cache = self.cache.reshape(LAYERS, BLOCKS, PAGE)


@pytest.fixture
def ends(pair):
    """Yields the source with random bytes, the destination, and the plan between their layouts."""
    agent, peer, inbox, _ = pair
    back = inbox.agent.peer("here")
    back.ready(LONG)
    memory = agent.allocate(1 << 20, label="source")
    source = End(agent, peer, memory.address, memory)
    destination = End(inbox.agent, back, inbox.address, inbox)
    source.cache[:] = numpy.random.default_rng(1).integers(0, 256, source.cache.shape, "uint8")
    yield source, destination, viaduct.KvLayers(source.layout, destination.layout)


def fetch(destination, layers, name="8a17"):
    into, slices = layers.into([(IN_PART, DESTINATION)])
    return destination.agent.fetch(destination.peer, name, into, slices=slices)


def test_layers_arrive_as_they_become_ready(ends):
    source, destination, layers = ends
    parts = source.layout.parts()
    assert parts == layers.parts == tuple((0, layer) for layer in range(LAYERS))
    arriving = fetch(destination, layers)
    parcel = source.agent.publish("8a17", parts=parts, version=1, takers=1)
    pages = source.layout.pages([SOURCE])
    parcel.ready(parts[3], pages[parts[3]])
    arriving.wait_part(parts[3], LONG)
    assert (destination.cache[3, DESTINATION] == source.cache[3, SOURCE]).all()
    assert set(arriving.missing) == set(parts) - {parts[3]}
    with pytest.raises(viaduct.TimeoutError, match="has not arrived"):
        arriving.wait_part(parts[0], 0)
    rest = [part for part in parts if part != parts[3]]
    computing = threading.Thread(target=lambda: [parcel.ready(one, pages[one]) for one in rest])
    computing.start()
    arriving.wait(LONG)
    computing.join(LONG)
    assert parcel.wait(LONG).outcome == "whole"
    assert (destination.cache[:, DESTINATION] == source.cache[:, SOURCE]).all()
    assert not destination.cache[:, [1, 3, 4, 5, 7]].any()


def test_layers_that_a_task_awaits(ends):
    source, destination, layers = ends

    async def main():
        arriving = fetch(destination, layers)
        waits = [asyncio.ensure_future(viaduct.awaitable(arriving.wait_part, part, LONG))
                 for part in layers.parts]
        await asyncio.sleep(0)
        parcel = source.agent.publish("8a17", source.layout.pages([SOURCE]), version=1, takers=1)
        await asyncio.gather(*waits)
        await arriving
        await viaduct.awaitable(parcel.wait, LONG)

    asyncio.run(main())
    assert (destination.cache[:, DESTINATION] == source.cache[:, SOURCE]).all()


def test_a_pipeline_stage_moves_its_layers(ends):
    source, destination, _ = ends
    stage = layout(source.layout.extent[0] + 2 * BLOCKS * PAGE, layers=[2, 3])
    layers = viaduct.KvLayers(stage, destination.layout)
    assert layers.parts == stage.parts() == ((0, 2), (0, 3))
    with source.agent.publish("8a17", stage.pages([SOURCE]), version=1):
        fetch(destination, layers).wait(LONG)
    assert (destination.cache[2, DESTINATION] == source.cache[2, SOURCE]).all()
    assert not destination.cache[[0, 1, 4, 5]].any()


def test_a_prefix_that_is_there_is_not_taken(ends):
    source, destination, layers = ends
    into, slices = layers.into([([1, 2], DESTINATION[1:], 16)])
    assert {blocks.bytes for blocks in into.values()} == {2 * PAGE}
    with source.agent.publish("8a17", source.layout.pages([SOURCE]), version=1):
        destination.agent.fetch(destination.peer, "8a17", into, slices=slices).wait(LONG)
    assert (destination.cache[:, DESTINATION[1:]] == source.cache[:, SOURCE[1:]]).all()
    assert not destination.cache[:, DESTINATION[0]].any()
    assert layers.into([None]) == ({}, {})


def test_a_collected_parcel_ends_the_fetch_and_keeps_what_came(ends):
    source, destination, layers = ends
    arriving = fetch(destination, layers)
    parts = source.layout.parts()
    parcel = source.agent.publish("8a17", parts=parts, version=1)
    parcel.ready(parts[2], source.layout.pages([SOURCE])[parts[2]])
    arriving.wait_part(parts[2], LONG)
    del parcel
    gc.collect()
    arriving.wait_part(parts[2], LONG)
    with pytest.raises(viaduct.CancelledError, match="8a17"):
        arriving.wait(LONG)


def test_a_parcel_keeps_its_pins(ends):
    source, destination, layers = ends
    memory = numpy.full(LAYERS * BLOCKS * PAGE, 9, "uint8")
    pin = source.agent.pin(memory)
    parcel = source.agent.publish("8a17", layout(pin.address).pages([SOURCE]), version=1, takers=1)
    del pin, memory
    gc.collect()
    fetch(destination, layers).wait(LONG)
    parcel.wait(LONG)
    assert (destination.cache[:, DESTINATION] == 9).all()


def test_impossible_requests_are_refused(ends):
    source, _, layers = ends
    with pytest.raises(viaduct.InvalidError, match="block 8, out of range"):
        source.layout.pages([[BLOCKS]])
    with pytest.raises(viaduct.InvalidError, match="3 source blocks .* and 2 destination blocks"):
        layers.into([(IN_PART, DESTINATION[:2])])
    with pytest.raises(viaduct.InvalidError, match="no layer in common"):
        viaduct.KvLayers(layout(0, layers=[7]), layout(0))
