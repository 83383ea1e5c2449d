"""Makes the calls of TensorRT-LLM's Python agent.

The agent imports the packages in a fixed order, keeps states in an Enum, and sends notifications as
str. The calls follow tensorrt_llm/_torch/disaggregation/nixl/_agent_py.py.
"""

import enum
import importlib
import time

import pytest

numpy = pytest.importorskip("numpy")

from fleet_testing import address_of, expect_bytes, pattern, poison, run_together, take, until

BYTES = 3 << 19


class TransferState(enum.Enum):
    PENDING = "PENDING"
    PROC = "PROC"
    DONE = "DONE"
    ERROR = "ERROR"


def first_importable():
    for module in ("nixl_cu13", "nixl_cu12", "nixl"):
        try:
            return importlib.import_module(module)
        except ImportError:
            continue
    raise ImportError("no nixl")


class TransferAgent:
    def __init__(self, name):
        module = first_importable()
        assert module.nixl_xfer_handle
        config = module.nixl_agent_config(enable_prog_thread=True, backends=["UCX"], num_threads=1)
        self.agent = module.nixl_agent(name, config)
        assert self.agent.name == name

    def register(self, memory):
        descs = self.agent.get_reg_descs([(address_of(memory), memory.nbytes, 0, "kv")], "DRAM")
        if descs is None:
            raise RuntimeError("no descriptors for the registration")
        self.agent.register_memory(descs)
        return descs

    def submit(self, operation, mine, theirs, remote):
        local, far = self.agent.get_xfer_descs(mine, "DRAM"), self.agent.get_xfer_descs(theirs,
                                                                                        "DRAM")
        handle = self.agent.initialize_xfer(operation, local, far, remote, "")
        state = TransferState(self.agent.transfer(handle))
        pause = 0.0001
        while state in (TransferState.PENDING, TransferState.PROC):
            time.sleep(pause)
            pause = min(pause * 2, 0.01)
            state = TransferState(self.agent.check_xfer_state(handle))
        self.agent.release_xfer_handle(handle)
        return state


def context(pipe):
    agent, memory = TransferAgent("ctx"), pattern(31, BYTES).copy()
    registered = agent.register(memory)
    card = take(pipe)
    remote = agent.agent.add_remote_agent(card["agent"])
    # The pieces have unequal sizes. At the target, gaps separate the pieces.
    cuts = [0, 1, 4096, 4099, 65536, BYTES]
    mine = [(address_of(memory) + a, b - a, 0) for a, b in zip(cuts, cuts[1:])]
    theirs = [(card["address"] + a + 64 * i, b - a, 0)
              for i, (a, b) in enumerate(zip(cuts, cuts[1:]))]
    assert agent.submit("WRITE", mine, theirs, remote) == TransferState.DONE
    # The package sends a str as UTF-8. An empty str sends no notification.
    agent.agent.send_notif(remote, "context ready é")
    assert take(pipe) == "bye"
    agent.agent.deregister_memory(registered)
    return cuts


def generation(pipe):
    agent, memory = TransferAgent("gen"), poison(BYTES + 4096)
    registered = agent.register(memory)
    pipe.send({"agent": agent.agent.get_agent_metadata(), "address": address_of(memory)})
    notes = until(agent.agent.get_new_notifs, "the notification", pause_s=0.0001)
    notes = {name if isinstance(name, str) else name.decode(): note for name, note in notes.items()}
    pipe.send("bye")
    agent.agent.deregister_memory(registered)
    return notes, memory


def test_pieces_of_any_size_are_written_before_the_message_that_follows():
    cuts, (notes, memory) = run_together(context, generation)
    assert notes == {"ctx": ["context ready é".encode()]}
    source, wanted = pattern(31, BYTES), poison(BYTES + 4096)
    for i, (a, b) in enumerate(zip(cuts, cuts[1:])):
        wanted[a + 64 * i:b + 64 * i] = source[a:b]
    expect_bytes(memory, wanted, "the memory of the generation side")


def test_a_wrong_shape_is_refused_with_what_to_pass():
    # The original returns None for a wrong shape. This package raises an exception instead.
    agent = TransferAgent("alone")
    with pytest.raises(ValueError, match="rows"):
        agent.agent.get_reg_descs(numpy.zeros((4, 7), dtype=numpy.uint64), "DRAM")


def test_the_three_names_are_one_module_with_one_state():
    modules = [importlib.import_module(name) for name in ("nixl_cu13", "nixl_cu12", "nixl")]
    for name in ("nixl_agent", "nixl_agent_config", "nixl_xfer_handle"):
        assert len({getattr(module, name) for module in modules}) == 1
