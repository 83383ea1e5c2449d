"""Makes the calls of Ray's tensor transport: registration and metadata for each object.

The calls follow python/ray/experimental/rdt/nixl_tensor_transport.py.
"""

import importlib.util
import time

import pytest

numpy = pytest.importorskip("numpy")

from fleet_testing import expect_bytes, pattern, poison, run_together, take, until

# Only the roles import torch. This process does not, because the import takes a second.
pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None,
                                reason="no python3-torch")

SHAPES = [(64, 128), (3,), (16, 16, 16)]


def new_agent(actor):
    from nixl._api import nixl_agent, nixl_agent_config
    agent = nixl_agent(actor, nixl_agent_config(backends=["UCX"]))
    assert agent.name == actor
    return agent


def tensor_of(shape, content):
    import torch
    return torch.from_numpy(content.copy().view(numpy.float32).reshape(shape))


def bytes_of(shape):
    return 4 * int(numpy.prod(shape))


def tensors_of(seed):
    return [tensor_of(shape, pattern(seed + i, bytes_of(shape))) for i, shape in enumerate(SHAPES)]


def raw(tensor):
    return tensor.numpy().reshape(-1).view(numpy.uint8)


class Sender:
    """Registers the tensors of an object in put(), and deregisters them in collect()."""

    def __init__(self, actor):
        self.agent = new_agent(actor)
        self.objects = {}

    def put(self, key, tensors):
        registered = [self.agent.register_memory([tensor]) for tensor in tensors]
        self.objects[key] = (tensors, registered)
        descs = self.agent.get_xfer_descs(tensors)
        return {"agent": self.agent.get_agent_metadata(), "key": key,
                "descs": self.agent.get_serialized_descs(descs)}

    def collect(self, key):
        _, registered = self.objects.pop(key)
        for one in registered:
            self.agent.deregister_memory(one)


def get(agent, known, meta):
    """Fetches an object. Every fetch adds the owner's metadata, and first removes an owner whose
    metadata has changed."""
    tensors = [tensor_of(shape, poison(bytes_of(shape))) for shape in SHAPES]
    registered = [agent.register_memory([tensor]) for tensor in tensors]
    version = known.get("version")
    if version is not None and version != meta["agent"]:
        agent.remove_remote_agent(known["name"])
    known["name"], known["version"] = agent.add_remote_agent(meta["agent"]), meta["agent"]
    remote = agent.deserialize_descs(meta["descs"])
    local = agent.get_xfer_descs(tensors)
    handle = agent.initialize_xfer("READ", local, remote, known["name"], b"UUID")
    state = agent.transfer(handle)
    while state != "DONE":
        assert state == "PROC"
        time.sleep(0.001)
        state = agent.check_xfer_state(handle)
    agent.release_xfer_handle(handle)
    for one in registered:
        agent.deregister_memory(one)
    return tensors


def owner(pipe, objects):
    sender = Sender("actor-owner")
    for key in range(objects):
        pipe.send(sender.put(key, tensors_of(100 * key)))
        notes = []
        until(lambda: notes.extend(note for of_one in sender.agent.get_new_notifs().values()
                                   for note in of_one) or len(notes) >= 2, "two fetches")
        assert notes == [b"UUID"] * 2
        sender.collect(key)
    pipe.send(None)
    take(pipe)


def fetcher(pipe, objects):
    import torch
    from nixl import _bindings
    agent, known, count = new_agent("actor-fetcher"), {}, 0
    while (meta := take(pipe)) is not None:
        last = meta
        for _ in range(2):  # the second fetch adds the same blob again
            for i, tensor in enumerate(get(agent, known, meta)):
                wanted = raw(tensors_of(100 * meta["key"])[i])
                expect_bytes(raw(tensor), wanted, f"object {meta['key']}, tensor {i}")
        count += 1
    # The owner has garbage-collected the last object, so the fetch must fail.
    with pytest.raises(Exception) as refusal:
        get(agent, known, last)
    assert type(refusal.value) in vars(_bindings).values(), repr(refusal.value)
    agent.remove_remote_agent(known["name"])
    for gaps in (torch.zeros(8, 8)[:, ::2], torch.zeros(8, 8).t()):
        with pytest.raises(ValueError, match="contiguous"):
            agent.get_xfer_descs(gaps)
    pipe.send("bye")
    return count == objects


def test_objects_are_registered_fetched_and_collected_one_by_one():
    assert run_together(owner, fetcher, 20)[1]
