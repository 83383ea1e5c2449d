"""Provides agents with memory and a second process to the tests of the package nixl."""

import contextlib
import multiprocessing
import time
import uuid

import numpy as np
from nixl._api import nixl_agent, nixl_agent_config

WITHIN = 60  # seconds; a longer wait means that a call hangs


class Side:
    """Opens an agent and registers one buffer."""

    def __init__(self, size=1 << 20, fill=0, name=None, **config):
        self.agent = nixl_agent(name or str(uuid.uuid4()), nixl_agent_config(**config))
        self.name = self.agent.name
        self.memory = np.full(size, fill, np.uint8)
        self.address = self.memory.ctypes.data
        self.registered = self.agent.register_memory([(self.address, size, 0, "")], "DRAM")

    def blocks(self, count, size=4096, first=0):
        """Returns rows that describe `count` blocks of the buffer, from block `first` on."""
        return [(self.address + (first + i) * size, size, 0) for i in range(count)]


def meet(one, other):
    """Adds each agent's metadata to the other agent."""
    assert one.agent.add_remote_agent(other.agent.get_agent_metadata()) == other.name.encode()
    assert other.agent.add_remote_agent(one.agent.get_agent_metadata()) == one.name.encode()


def finish(agent, handle):
    """Waits until the transfer is DONE."""
    until = time.monotonic() + WITHIN
    while agent.check_xfer_state(handle) != "DONE":
        assert time.monotonic() < until, "the transfer does not end"


def run(agent, handle, note=b""):
    if agent.transfer(handle, note) != "DONE":
        finish(agent, handle)


def until(what, condition):
    """Waits until the condition returns a true value. Returns that value."""
    end = time.monotonic() + WITHIN
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"waited for {what}"
        time.sleep(0.001)


def new_notes(agent, name):
    return until(f"a notification from {name}", agent.get_new_notifs)[name]


@contextlib.contextmanager
def other_process(target, *arguments):
    """Runs target(pipe, *arguments) in a new process. Yields the other pipe end and the process."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *arguments))
    process.start()
    theirs.close()
    try:
        yield mine, process
    finally:
        mine.close()
        process.join(WITHIN)
        if process.is_alive():
            process.kill()
            process.join()
            raise AssertionError("the other process does not end")
