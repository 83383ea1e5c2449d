"""Peers that are killed, frozen and restarted in the middle of transfers.

python-face: the sections on errors, on release as the way to cancel, and on agents of one process.
vLLM, Dynamo and Ray release handles that may be in flight and then reuse the memory.
"""

import time

import pytest

numpy = pytest.importorskip("numpy")

from fleet_testing import (BACKENDS, POISON, TCP, Child, Parent, address_of, expect_bytes, pattern,
                           poison, until)

BYTES = 8 << 20
BLOCK = 64 << 10
# A dead process is noticed at once and a frozen one within 2.5 s. The bounds leave room for a busy
# machine; the tests print the measured times.
NOTICED_S = 30.0


def new_agent(name):
    from nixl._api import nixl_agent, nixl_agent_config
    return nixl_agent(name, nixl_agent_config(backends=["UCX"]))


def blocks_of(address, size=BYTES):
    return [(address + start, BLOCK, 0) for start in range(0, size, BLOCK)]


def share(agent, memory):
    """Registers the memory; the card is what a peer has to know of it."""
    agent.register_memory([(address_of(memory), memory.nbytes, 0, "")], "DRAM")
    return {"agent": agent.get_agent_metadata(), "address": address_of(memory)}


class Way:
    """From memory here to the same offsets of one peer's memory."""

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
        """One transfer to its end; raises its error."""
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
    """Owns memory that others read, and answers the test until it is told to end."""
    agent, memory = new_agent(name), pattern(seed, BYTES).copy()
    Parent.tell(share(agent, memory))
    while Parent.hear() != "end":
        Parent.tell("alive")


def reader(doomed_card, bystander_card):
    """Reads from two peers until one is lost; the reads from the other one go on."""
    agent = new_agent("reader")
    memory, other_memory = poison(BYTES), poison(BYTES)
    share(agent, memory), share(agent, other_memory)
    doomed = Way(agent, memory, doomed_card)
    bystander = Way(agent, other_memory, bystander_card)
    doomed.move("READ")
    Parent.tell("reading")
    error = read_until_lost(doomed, memory)
    memory[:] = POISON  # released: nobody else writes here any more
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
                _bindings.nixlCancelledError) as error:  # what SGLang tells apart
            return error
        expect_bytes(memory, pattern(1, BYTES), "a read that ended well")


def lose(survivor, event):
    """Does something to the peer and returns how long the survivor took to notice."""
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
            # The new process has the old one's name, and other memory.
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
    """Posts to a frozen peer, releases the handle in flight and reuses the memory at once."""
    agent, memory = new_agent("releasing"), poison(BYTES)
    share(agent, memory)
    way = Way(agent, memory, card)
    way.move("READ")
    Parent.tell("connected")
    Parent.hear()  # the peer is frozen
    memory[:] = pattern(5, BYTES)
    handle = way.make(operation, b"never")
    assert agent.transfer(handle) == "PROC"
    assert agent.check_xfer_state(handle) == "PROC"
    began = time.monotonic()
    agent.release_xfer_handle(handle)
    agent.release_xfer_handle(handle)  # a second time, as from `__del__`
    elapsed = time.monotonic() - began
    memory[:] = pattern(6, BYTES)
    Parent.tell(elapsed)
    Parent.hear()  # the peer runs again
    until(lambda: is_sent(agent, way.name, b"back"), "the peer's return", pause_s=0.01)
    # On the same connections as anything that is still under way, and behind it.
    other = poison(BYTES)
    share(agent, other)
    Way(agent, other, card).move("READ", b"after")
    expect_bytes(memory, pattern(6, BYTES), "the memory that was used again")
    Parent.hear()  # the peer has reported
    return True


def is_sent(agent, name, note):
    from nixl._bindings import nixlRemoteDisconnectError
    try:
        agent.send_notif(name, note)
    except nixlRemoteDisconnectError:
        return False
    return True


def frozen_target():
    """What is in its memory and which notes it has when a note has come that was sent last."""
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
    # Old or written before the release, and nothing that came later.
    written = pattern(5 if operation == "WRITE" else 1, BYTES)
    assert numpy.all((memory == pattern(1, BYTES)) | (memory == written))


at_exit = []  # what the interpreter still has when it ends


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
    """Writes the same bytes again and again, and tells of each time."""
    agent, memory = new_agent("writer"), pattern(seed, BYTES).copy()
    share(agent, memory)
    way = Way(agent, memory, card)
    while True:
        way.move("WRITE", b"written:%d" % seed)


def written_to():
    """Polls for notifications while its writer is killed and another one comes."""
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
    # python-face: HiCache, disaggregation and the P2P tier are agents of one process.
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
