"""Tests peers that are killed, frozen and restarted during transfers.

vLLM, Dynamo and Ray release a handle whose transfer may still run, and then reuse the memory.
"""

import time

import pytest

numpy = pytest.importorskip("numpy")

from fleet_testing import (BACKENDS, POISON, TCP, Child, Parent, address_of, expect_bytes, pattern,
                           poison, until)

BYTES = 8 << 20
BLOCK = 64 << 10
# An agent notices a dead peer at once, and a frozen peer within 2.5 s. This bound leaves room for
# a busy machine. The tests print the measured times.
NOTICED_S = 30.0


def new_agent(name):
    from nixl._api import nixl_agent, nixl_agent_config
    return nixl_agent(name, nixl_agent_config(backends=["UCX"]))


def blocks_of(address, size=BYTES):
    return [(address + start, BLOCK, 0) for start in range(0, size, BLOCK)]


def share(agent, memory):
    """Registers the memory. Returns the metadata and the address that a peer needs to reach it."""
    agent.register_memory([(address_of(memory), memory.nbytes, 0, "")], "DRAM")
    return {"agent": agent.get_agent_metadata(), "address": address_of(memory)}


class Way:
    """Transfers between local memory and the same offsets of one peer's memory."""

    def __init__(self, agent, memory, card):
        self.agent = agent
        self.name = agent.add_remote_agent(card["agent"])
        self.local = agent.prep_xfer_dlist("", blocks_of(address_of(memory), memory.nbytes), "DRAM")
        self.remote = agent.prep_xfer_dlist(self.name, blocks_of(card["address"], memory.nbytes),
                                            "DRAM")
        self.all = numpy.arange(memory.nbytes // BLOCK, dtype=numpy.int32)

    def make(self, operation, notif=b""):
        return self.agent.make_prepped_xfer(operation, self.local, self.all, self.remote, self.all,
                                            notif)

    def move(self, operation, notif=b""):
        """Runs one transfer until it is done. Raises the error of a failed transfer."""
        handle = self.make(operation, notif)
        try:
            self.agent.transfer(handle)
            until(lambda: self.agent.check_xfer_state(handle) == "DONE", f"a {operation}")
        finally:
            self.agent.release_xfer_handle(handle)

    def forget(self):
        self.agent.release_dlist_handle(self.local)
        self.agent.release_dlist_handle(self.remote)
        self.agent.remove_remote_agent(self.name)


def victim(name, seed):
    """Offers memory that other roles read. Answers the test until the test sends "end"."""
    agent, memory = new_agent(name), pattern(seed, BYTES).copy()
    Parent.tell(share(agent, memory))
    while Parent.hear() != "end":
        Parent.tell("alive")


def reader(doomed_card, bystander_card):
    """Reads from two peers until one peer is lost. Then goes on reading from the other peer."""
    agent = new_agent("reader")
    memory, other_memory = poison(BYTES), poison(BYTES)
    share(agent, memory), share(agent, other_memory)
    doomed = Way(agent, memory, doomed_card)
    bystander = Way(agent, other_memory, bystander_card)
    doomed.move("READ")
    Parent.tell("reading")
    error = read_until_lost(doomed, memory)
    memory[:] = POISON  # the handle is released, so no transfer writes here any more
    Parent.tell((type(error).__name__, str(error)))
    for _ in range(3):
        other_memory[:] = 0
        bystander.move("READ")
        expect_bytes(other_memory, pattern(2, BYTES), "the bystander's memory")
    Parent.tell("the bystander serves")
    card = Parent.hear()
    expect_bytes(memory, poison(BYTES), "the memory after the loss")
    doomed.forget()
    again = Way(agent, memory, card)
    again.move("READ")
    expect_bytes(memory, pattern(card["seed"], BYTES), "the memory of the peer that came back")
    return "read again"


def read_until_lost(way, memory):
    from nixl import _bindings
    while True:
        memory[:] = POISON
        try:
            way.move("READ")
        except (_bindings.nixlRemoteDisconnectError, _bindings.nixlBackendError,
                _bindings.nixlCancelledError) as error:  # the errors that SGLang handles
            return error
        expect_bytes(memory, pattern(1, BYTES), "a read that ended well")


def lose(survivor, event):
    """Calls event(), which stops the peer. Checks how long the survivor takes to notice."""
    began = time.monotonic()
    event()
    kind, text = survivor.hear()
    elapsed = time.monotonic() - began
    print(f"noticed after {elapsed:.2f} s: {kind}: {text}")
    assert kind == "nixlRemoteDisconnectError", text
    assert elapsed < NOTICED_S


@BACKENDS
def test_a_peer_is_killed_and_restarted(environment):
    with Child(victim, "doomed", 1, **environment) as doomed, \
            Child(victim, "bystander", 2, **environment) as bystander:
        with Child(reader, doomed.hear(), bystander.hear(), **environment) as survivor:
            assert survivor.hear() == "reading"
            lose(survivor, doomed.kill)
            assert survivor.hear() == "the bystander serves"
            # The new process has the agent name of the old process, but other memory.
            with Child(victim, "doomed", 3, **environment) as restarted:
                survivor.tell({**restarted.hear(), "seed": 3})
                assert survivor.result() == "read again"


@BACKENDS
def test_a_peer_is_frozen_and_continues(environment):
    with Child(victim, "doomed", 1, **environment) as doomed, \
            Child(victim, "bystander", 2, **environment) as bystander:
        card = doomed.hear()
        with Child(reader, card, bystander.hear(), **environment) as survivor:
            assert survivor.hear() == "reading"
            lose(survivor, doomed.freeze)
            assert survivor.hear() == "the bystander serves"
            doomed.thaw()
            doomed.tell("are you there")
            assert doomed.hear() == "alive"
            survivor.tell({**card, "seed": 1})
            assert survivor.result() == "read again"


def releasing(card, operation):
    """Posts a transfer to a frozen peer, releases its handle, and reuses the memory at once."""
    agent, memory = new_agent("releasing"), poison(BYTES)
    share(agent, memory)
    way = Way(agent, memory, card)
    way.move("READ")
    Parent.tell("connected")
    Parent.hear()  # waits until the test has frozen the peer
    memory[:] = pattern(5, BYTES)
    handle = way.make(operation, b"never")
    assert agent.transfer(handle) == "PROC"
    assert agent.check_xfer_state(handle) == "PROC"
    began = time.monotonic()
    agent.release_xfer_handle(handle)
    agent.release_xfer_handle(handle)  # again, because `__del__` of the handle releases it, too
    elapsed = time.monotonic() - began
    memory[:] = pattern(6, BYTES)
    Parent.tell(elapsed)
    Parent.hear()  # waits until the peer runs again
    until(lambda: is_sent(agent, way.name, b"back"), "the peer's return", pause_s=0.01)
    # This read uses the same connections, so it arrives after any bytes of the released transfer.
    other = poison(BYTES)
    share(agent, other)
    Way(agent, other, card).move("READ", b"after")
    expect_bytes(memory, pattern(6, BYTES), "the memory that was used again")
    Parent.hear()  # waits until the peer has returned its result
    return True


def is_sent(agent, name, note):
    from nixl._bindings import nixlRemoteDisconnectError
    try:
        agent.send_notif(name, note)
    except nixlRemoteDisconnectError:
        return False
    return True


def frozen_target():
    """Waits for the last note. Returns the content of its memory and all notes."""
    agent, memory = new_agent("frozen"), pattern(1, BYTES).copy()
    Parent.tell(share(agent, memory))
    notes = []

    def last_note():
        notes.extend(agent.get_new_notifs().get("releasing", []))
        return b"after" in notes

    until(last_note, "the last note")
    return memory, notes


@pytest.mark.parametrize("operation", ["READ", "WRITE"])
def test_a_release_in_flight_gives_the_memory_back(operation):
    with Child(frozen_target, **TCP) as target:
        with Child(releasing, target.hear(), operation, **TCP) as initiator:
            assert initiator.hear() == "connected"
            target.freeze()
            initiator.tell("frozen")
            elapsed = initiator.hear()
            print(f"released after {elapsed:.2f} s")
            assert elapsed < NOTICED_S
            target.thaw()
            initiator.tell("it runs again")
            memory, notes = target.result()
            initiator.tell("it has reported")
            assert initiator.result()
    assert notes == [b"back", b"after"]
    # Each byte is the old byte or one that the transfer wrote before the release.
    written = pattern(5 if operation == "WRITE" else 1, BYTES)
    assert numpy.all((memory == pattern(1, BYTES)) | (memory == written))


at_exit = []  # handles that still exist when the interpreter exits


def leaving(card):
    agent, memory = new_agent("leaving"), poison(BYTES)
    share(agent, memory)
    way = Way(agent, memory, card)
    way.move("READ")
    Parent.tell("connected")
    Parent.hear()
    at_exit.extend(way.make("READ") for _ in range(4))
    assert [agent.transfer(handle) for handle in at_exit] == ["PROC"] * 4
    return "left"


def test_an_interpreter_ends_with_reads_in_flight():
    with Child(frozen_target, **TCP) as target:
        with Child(leaving, target.hear(), **TCP) as initiator:
            assert initiator.hear() == "connected"
            target.freeze()
            initiator.tell("frozen")
            assert initiator.result() == "left"


def writer(card, seed):
    """Writes the same bytes again and again. Sends a notification with each write."""
    agent, memory = new_agent("writer"), pattern(seed, BYTES).copy()
    share(agent, memory)
    way = Way(agent, memory, card)
    while True:
        way.move("WRITE", b"written:%d" % seed)


def written_to():
    """Polls for notifications while the test kills the first writer and starts a second one."""
    agent, memory = new_agent("target"), poison(BYTES)
    Parent.tell(share(agent, memory))
    for seed in (1, 2):
        until(lambda: b"written:%d" % seed in agent.get_new_notifs().get("writer", []),
              f"writer {seed}")
        expect_bytes(memory, pattern(seed, BYTES), f"the bytes of writer {seed}")
        Parent.tell(seed)
    return agent.name


@BACKENDS
def test_a_writer_is_killed_and_restarted(environment):
    with Child(written_to, **environment) as target:
        card = target.hear()
        for seed in (1, 2):
            with Child(writer, card, seed, **environment) as one:
                assert target.hear() == seed
                one.kill()
        assert target.result() == "target"


def test_ten_agents_of_one_process_read_from_each_other():
    # One engine process may open agents for HiCache, for disaggregation and for its P2P tier.
    size = 4 * BLOCK
    agents = [new_agent(f"agent-{i}") for i in range(10)]
    sources = [pattern(i, size).copy() for i in range(10)]
    cards = [share(agent, source) for agent, source in zip(agents, sources)]
    for i, agent in enumerate(agents):
        for j, card in enumerate(cards):
            if i == j:
                continue
            memory = poison(size)
            share(agent, memory)
            way = Way(agent, memory, card)
            way.move("READ", b"from %d" % i)
            expect_bytes(memory, sources[j], f"agent {i} from agent {j}")
            way.forget()
    for j, agent in enumerate(agents):
        found = {}

        def all_nine():
            for name, notes in agent.get_new_notifs().items():
                found.setdefault(name if isinstance(name, str) else name.decode(), []).extend(notes)
            return len(found) == 9

        until(all_nine, f"the notifications of agent {j}")
        assert found == {f"agent-{i}": [b"from %d" % i] for i in range(10) if i != j}
