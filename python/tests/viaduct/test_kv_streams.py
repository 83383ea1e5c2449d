"""Tests streams of layers: the KV cache of a request moves layer by layer."""

import gc
import threading

import numpy
import pytest
from helpers import LONG

import viaduct

LAYERS, BLOCKS, PAGE = 6, 8, 2 * 16 * 2 * 8 * 2  # bytes of K and V of a block
SOURCE, DESTINATION = [5, 1, 7], [0, 6, 2]  # the blocks of a request


def layout(address, layers=range(LAYERS)):
    cache = viaduct.KvCache(layers, 8, kv_heads=2)
    return viaduct.KvLayout([viaduct.KvGroup([cache])]).arrange("together", address, BLOCKS)


class End:
    """One agent, its peer, and its cache as (layer, block, byte)."""

    def __init__(self, agent, peer, address, memory):
        self.agent, self.peer, self.address = agent, peer, address
        self.cache = numpy.frombuffer(memory, "uint8")[:LAYERS * BLOCKS * PAGE]
        self.cache = self.cache.reshape(LAYERS, BLOCKS, PAGE)


@pytest.fixture
def ends(pair):
    """Yields the source with random bytes, the destination, and the plan between their layouts."""
    agent, peer, inbox, remote = pair
    back = inbox.agent.peer("here")
    back.ready(LONG)
    memory = agent.allocate(1 << 20, label="source")
    back.pin("source", LONG)
    source = End(agent, peer, memory.address, memory)
    destination = End(inbox.agent, back, inbox.address, inbox)
    source.cache[:] = numpy.random.default_rng(1).integers(0, 256, source.cache.shape, "uint8")
    yield source, destination, viaduct.KvLayers(layout(source.address), layout(inbox.address))


def test_layers_arrive_as_they_are_pushed(ends):
    source, destination, layers = ends
    assert layers.layers == tuple(range(LAYERS))
    arrival = viaduct.KvArrival(destination.peer, layers, stream=1, name="8a17")
    push = viaduct.KvPush(source.peer, layers, [(SOURCE, DESTINATION)], stream=1, name="8a17")
    push.ready(3)
    arrival.wait_layer(3, LONG)
    push.wait(LONG)
    assert (destination.cache[3, DESTINATION] == source.cache[3, SOURCE]).all()
    assert (arrival.count, arrival.has(3), arrival.has(0)) == (1, True, False)
    with pytest.raises(viaduct.TimeoutError, match="wait for layer 0 of request 8a17"):
        arrival.wait_layer(0, 0)
    computing = threading.Thread(target=lambda: [push.ready(layer) for layer in (0, 1, 2, 4, 5)])
    computing.start()
    arrival.wait_count(4, LONG)
    arrival.wait_all(LONG)
    computing.join(LONG)
    assert (destination.cache[:, DESTINATION] == source.cache[:, SOURCE]).all()
    assert not destination.cache[:, [1, 3, 4, 5, 7]].any()
    with pytest.raises(viaduct.InvalidError, match="ready before"):
        push.ready(3)


def test_layers_are_pulled_when_they_are_offered(ends):
    source, destination, layers = ends
    offer = viaduct.KvOffer(source.peer, range(LAYERS), stream=2)
    pull = viaduct.KvPull(destination.peer, layers, [(SOURCE, DESTINATION)], stream=2)
    offer.ready(4)
    pull.wait_layer(4, LONG)
    assert (destination.cache[4, DESTINATION] == source.cache[4, SOURCE]).all()
    with pytest.raises(viaduct.TimeoutError, match="layer 0 of request 2"):
        pull.wait_layer(0, 0)
    pull.read_all()
    pull.wait_all(LONG)
    offer.wait_read(LONG)
    assert (destination.cache[:, DESTINATION] == source.cache[:, SOURCE]).all()


def test_a_pipeline_stage_moves_its_layers(ends):
    source, destination, _ = ends
    stage = layout(source.address + 2 * BLOCKS * PAGE, layers=[2, 3])
    layers = viaduct.KvLayers(stage, layout(destination.address))
    (taken, into), _ = layers.select([(SOURCE, DESTINATION)])
    assert layers.layers == (2, 3) and taken.bytes == into.bytes == 3 * PAGE
    source.agent.write(source.peer, taken, into, timeout=LONG)
    assert (destination.cache[2, DESTINATION] == source.cache[2, SOURCE]).all()
    assert not destination.cache[[0, 1, 3, 4, 5]].any()


def test_a_cancel_at_either_end_ends_the_request(ends):
    source, destination, layers = ends
    arrival = viaduct.KvArrival(destination.peer, layers, stream=1)
    push = viaduct.KvPush(source.peer, layers, [(SOURCE, DESTINATION)], stream=1)
    push.ready(0)
    arrival.wait_layer(0, LONG)
    arrival.cancel("the user left", LONG)
    with pytest.raises(viaduct.CancelledError, match="the user left"):
        push.ready(1)
    offer = viaduct.KvOffer(source.peer, layers, stream=2)
    pull = viaduct.KvPull(destination.peer, layers, [(SOURCE, DESTINATION)], stream=2)
    pull.cancel("out of blocks")
    with pytest.raises(viaduct.CancelledError, match="out of blocks"):
        offer.wait_read(LONG)
    offer.cancel("too", LONG)


def test_a_collected_push_ends_the_arrival(ends):
    source, destination, layers = ends
    arrival = viaduct.KvArrival(destination.peer, layers, stream=1, name="8a17")
    push = viaduct.KvPush(source.peer, layers, [(SOURCE, DESTINATION)], stream=1)
    push.ready(2)
    push.wait(LONG)
    del push
    gc.collect()
    arrival.wait_layer(2, LONG)
    with pytest.raises(viaduct.CancelledError, match="wait for layer 0 of request 8a17"):
        arrival.wait_all(LONG)


def test_a_push_keeps_its_pins(ends):
    source, destination, _ = ends
    memory = numpy.full(LAYERS * BLOCKS * PAGE, 9, "uint8")
    pin = source.agent.pin(memory)
    layers = viaduct.KvLayers(layout(pin.address), layout(destination.address))
    push = viaduct.KvPush(source.peer, layers, [(SOURCE, DESTINATION)], stream=1)
    del pin, memory
    gc.collect()
    for layer in layers.layers:
        push.ready(layer)
    push.wait(LONG)
    assert (destination.cache[:, DESTINATION] == 9).all()


def test_impossible_requests_are_refused(ends):
    source, destination, layers = ends
    push = viaduct.KvPush(source.peer, layers, [(SOURCE, DESTINATION)], stream=1)
    with pytest.raises(viaduct.InvalidError, match="no such layer"):
        push.ready(LAYERS)
    with pytest.raises(viaduct.InvalidError, match="open already"):
        viaduct.KvOffer(source.peer, layers, stream=1)
    with pytest.raises(viaduct.InvalidError, match="select request 8a17"):
        viaduct.KvPush(source.peer, layers, [([BLOCKS], [0])], stream=2, name="8a17")
    source.agent.close()
    with pytest.raises(viaduct.InvalidError, match="the agent is closed"):
        push.ready(0)
