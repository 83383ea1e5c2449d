"""Makes the calls of Dynamo's nixl_connect.

It passes no configuration, passes arguments by keyword, and compresses the metadata. It removes
agents in `__del__`, and polls every 100 ms. The calls follow
lib/bindings/python/src/dynamo/nixl_connect/__init__.py.
"""

import asyncio
import base64
import uuid
import zlib

import pytest

numpy = pytest.importorskip("numpy")

from fleet_testing import address_of, expect_bytes, pattern, poison, run_together, take

BYTES = 1 << 20


def torch_or_skip():
    return pytest.importorskip("torch", reason="no python3-torch")


class Connector:
    def __init__(self):
        import nixl._api as nixl_api
        self.agent = nixl_api.nixl_agent(uuid.uuid4().hex)

    def register(self, memory):
        import nixl._bindings as nixl_bindings
        if isinstance(memory, numpy.ndarray):
            # nixl_connect passes the kind of memory as the fourth element of the tuple.
            registered = self.agent.register_memory([(address_of(memory), memory.nbytes, 0, "cpu")],
                                                    "cpu")
        else:
            registered = self.agent.register_memory(memory)
        assert isinstance(registered, nixl_bindings.nixlRegDList)
        return registered

    def descs(self, address, size):
        import nixl._bindings as nixl_bindings
        descs = self.agent.get_xfer_descs(descs=[(address, size, 0)], mem_type="cpu")
        assert isinstance(descs, nixl_bindings.nixlXferDList)
        return descs

    def metadata(self):
        packed = zlib.compress(self.agent.get_agent_metadata(), level=6)
        return "b64:" + base64.b64encode(packed).decode("utf-8")


class Remote:
    """Adds the remote agent for one operation, and removes it in `__del__`."""

    def __init__(self, connector, metadata):
        assert metadata.startswith("b64:")
        self.connector = connector
        blob = zlib.decompress(base64.b64decode(metadata[len("b64:"):]))
        name = connector.agent.add_remote_agent(blob)
        self.name = name.decode("utf-8") if isinstance(name, bytes) else name

    def __del__(self):
        self.connector.agent.remove_remote_agent(self.name)


def pointer_and_size(memory):
    if isinstance(memory, numpy.ndarray):
        return address_of(memory), memory.nbytes
    return memory.data_ptr(), memory.numel() * memory.element_size()


async def operate(connector, operation, memory, offer):
    """Runs the active side of one operation: posts the transfer and polls it."""
    import nixl._api as nixl_api
    remote = Remote(connector, offer["metadata"])
    handle = connector.agent.initialize_xfer(
        operation=operation, local_descs=connector.descs(*pointer_and_size(memory)),
        remote_descs=connector.descs(offer["address"], offer["size"]), remote_agent=remote.name,
        notif_msg=offer["key"])
    assert isinstance(handle, nixl_api.nixl_xfer_handle)
    # nixl_connect passes the notification twice: to initialize_xfer and to transfer.
    state = connector.agent.transfer(handle, offer["key"])
    while state == "PROC":
        await asyncio.sleep(0.1)
        state = connector.agent.check_xfer_state(handle)
    assert state == "DONE"
    connector.agent.release_xfer_handle(handle=handle)


async def completion(connector, key):
    """Runs the passive side: searches all accumulated notifications for the key."""
    for _ in range(1000):
        notes = connector.agent.update_notifs()
        assert isinstance(notes, dict)
        if any(key in of_one for of_one in notes.values()):
            return
        await asyncio.sleep(0.1)
    raise TimeoutError(f"no notification {key!r}")


def memory_of(kind, content):
    return content if kind == "numpy" else torch_or_skip().from_numpy(content)


def bytes_of(memory):
    return memory if isinstance(memory, numpy.ndarray) else memory.numpy()


def offer_of(connector, memory, key):
    address, size = pointer_and_size(memory)
    return {"metadata": connector.metadata(), "address": address, "size": size, "key": key}


def passive(pipe, kind):
    connector = Connector()
    readable = memory_of(kind, pattern(21, BYTES).copy())
    writable = memory_of(kind, poison(BYTES))
    registered = []
    for memory, key in ((readable, uuid.uuid4().hex.encode()), (writable, uuid.uuid4().bytes)):
        # Each request registers its own memory, so the second blob differs from the first.
        registered.append(connector.register(memory))
        pipe.send(offer_of(connector, memory, key))
        asyncio.run(completion(connector, key))
    expect_bytes(bytes_of(writable), pattern(22, BYTES), "what the other side wrote")
    for one in registered:
        connector.agent.deregister_memory(one)
    pipe.send("bye")


def active(pipe, kind):
    connector = Connector()
    memory = memory_of(kind, poison(BYTES))
    registered = connector.register(memory)
    asyncio.run(operate(connector, "READ", memory, take(pipe)))
    expect_bytes(bytes_of(memory), pattern(21, BYTES), "what this side read")
    bytes_of(memory)[:] = pattern(22, BYTES)
    # The first Remote has removed the agent. The second one adds the agent with a newer blob.
    asyncio.run(operate(connector, "WRITE", memory, take(pipe)))
    assert take(pipe) == "bye"
    connector.agent.deregister_memory(registered)
    return "moved"


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_an_operation_is_offered_and_completed(kind):
    if kind == "torch":
        torch_or_skip()
    assert run_together(passive, active, kind)[1] == "moved"
