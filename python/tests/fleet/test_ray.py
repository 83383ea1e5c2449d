"""The calls of Ray's tensor transport: registration and metadata for each object.

python-face: the row "Ray RDT", file python/ray/experimental/rdt/nixl_tensor_transport.py.
"""

import time

import pytest

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch", reason="no python3-torch")

from fleet_testing import Child, expect_bytes, link, pattern, poison, results, take, until

SHAPES = [(64, 128), (3,), (16, 16, 16)]


def new_agent(actor):
    from nixl._api import nixl_agent, nixl_agent_config
    agent = nixl_agent(actor, nixl_agent_config(backends=["UCX"]))
    assert agent.name == actor
    return agent


def tensors_of(seed):
    return [torch.from_numpy(pattern(seed + i, 4 * int(numpy.prod(shape))).view(numpy.float32)
                             .reshape(shape).copy()) for i, shape in enumerate(SHAPES)]


def raw(tensor):
    return tensor.numpy().reshape(-1).view(numpy.uint8)


class Sender:
    """Keeps an object's tensors registered from its creation until it is garbage."""

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
    """Fetches an object; its blob is added at every fetch, and a changed agent is removed first."""
    tensors = [torch.from_numpy(poison(4 * int(numpy.prod(shape))).view(numpy.float32)
                                .reshape(shape)) for shape in SHAPES]
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


def fetcher(pipe):
    agent, known, count = new_agent("actor-fetcher"), {}, 0
    while (meta := take(pipe)) is not None:
        for _ in range(2):  # the second fetch brings the same blob
            for i, tensor in enumerate(get(agent, known, meta)):
                wanted = raw(tensors_of(100 * meta["key"])[i])
                expect_bytes(raw(tensor), wanted, f"object {meta['key']}, tensor {i}")
        count += 1
    agent.remove_remote_agent(known["name"])
    pipe.send("bye")
    return count


def test_objects_are_registered_fetched_and_deregistered_one_by_one():
    one, other = link()
    with Child(owner, one, 20) as a, Child(fetcher, other) as b:
        assert results(a, b)[1] == 20


def late_owner(pipe):
    sender = Sender("actor-owner")
    pipe.send(sender.put(1, tensors_of(1)))
    assert take(pipe) == "fetched"
    sender.collect(1)
    pipe.send("collected")
    take(pipe)


def late_fetcher(pipe):
    agent, known = new_agent("actor-fetcher"), {}
    meta = take(pipe)
    get(agent, known, meta)
    pipe.send("fetched")
    assert take(pipe) == "collected"
    with pytest.raises(Exception) as refusal:
        get(agent, known, meta)
    pipe.send("bye")
    return type(refusal.value).__module__, str(refusal.value)


def test_an_object_that_is_garbage_cannot_be_fetched():
    one, other = link()
    with Child(late_owner, one) as a, Child(late_fetcher, other) as b:
        module, text = results(a, b)[1]
    assert module.split(".")[0] in ("nixl", "nixl_cu12", "nixl_cu13", "viaduct"), (module, text)


def test_tensors_that_cannot_be_described_are_refused():
    agent = new_agent("actor-alone")
    assert agent.get_xfer_descs(torch.zeros(8, 8)[:, ::2]) is None
    assert agent.get_reg_descs(torch.zeros(8, 8).t()) is None
