"""Makes the calls of vLLM's push connector: a prefill worker writes into a decode worker's blocks.

The calls follow vllm/distributed/kv_transfer/kv_connector/v1/nixl/push_worker.py. Two threads share
one agent without a lock. The writer thread takes notifications and posts writes. The main thread
sends heartbeats and polls transfers.
"""

import collections
import struct
import threading
import time
import uuid

import pytest

numpy = pytest.importorskip("numpy")

from fleet_testing import BACKENDS, KvCache, rows_of, run_together, take, until

LAYERS, BLOCKS, BLOCK_BYTES = 2, 128, 4096
REQUESTS, PER_REQUEST = 240, 2
# A notification of a registration is this prefix and binary numbers. It is not valid UTF-8 text.
REGISTER = b"PUSH_REG:"
NUMBERS = struct.Struct("<II%dI" % PER_REQUEST)


def new_agent(cache):
    from nixl._api import nixl_agent, nixl_agent_config
    agent = nixl_agent(str(uuid.uuid4()), nixl_agent_config(num_threads=4, capture_telemetry=True))
    registered = agent.get_reg_descs(cache.regions(), "DRAM")
    agent.register_memory(registered, backends=["UCX"])
    local = agent.prep_xfer_dlist("NIXL_INIT_AGENT", agent.get_xfer_descs(cache.rows(), "DRAM"))
    return agent, registered, local


def card_of(agent, cache):
    return {"agent": agent.get_agent_metadata(), "blocks": cache.blocks,
            "bases": [region[0] for region in cache.regions()]}


def add_peer(agent, card):
    name = agent.add_remote_agent(card["agent"])
    rows = rows_of(card["bases"], card["blocks"], BLOCK_BYTES)
    return name, agent.prep_xfer_dlist(name, agent.get_xfer_descs(rows, "DRAM"))


def blocks_of(request):
    first = request * PER_REQUEST % BLOCKS
    return [(first + i) * 5 % BLOCKS for i in range(PER_REQUEST)]


class Writer(threading.Thread):
    """Takes registrations every millisecond, and posts a write for each registration."""

    def __init__(self, agent, cache, local, remote):
        super().__init__(name="kv-writer")
        self.agent, self.cache, self.local, self.remote = agent, cache, local, remote
        self.posted = collections.deque()
        self.seen, self.error, self.stopped = 0, None, threading.Event()

    def run(self):
        try:
            while not self.stopped.is_set():
                for notes in self.agent.get_new_notifs().values():
                    for note in notes:
                        self.write(note)
                time.sleep(0.001)
        except Exception as error:
            self.error = error

    def write(self, note):
        if not note.startswith(REGISTER):
            assert note.startswith(b"HB:"), note
            return
        request, count, *theirs = NUMBERS.unpack(note[len(REGISTER):])
        assert count == len(theirs)
        handle = self.agent.make_prepped_xfer(
            "WRITE", self.local, self.cache.indices(blocks_of(request)), self.remote,
            self.cache.indices(theirs), notif_msg=f"{request}:1".encode())
        self.agent.transfer(handle)
        self.posted.append((request, handle))
        self.seen += 1


def prefill(decoder):
    cache = KvCache(LAYERS, BLOCKS, BLOCK_BYTES)
    for block in range(BLOCKS):
        cache.fill([block], 1000 + block)
    agent, registered, local = new_agent(cache)
    decoder.send(card_of(agent, cache))
    name, remote = add_peer(agent, take(decoder))
    writer = Writer(agent, cache, local, remote)
    writer.start()
    finished, heartbeats = [], 0

    def step():
        nonlocal heartbeats
        assert writer.error is None, writer.error
        agent.send_notif(name, notif_msg=f"HB:{len(finished)}".encode())
        heartbeats += 1
        for _ in range(len(writer.posted)):
            request, handle = writer.posted.popleft()
            if agent.check_xfer_state(handle) != "DONE":
                writer.posted.append((request, handle))
                continue
            assert agent.get_xfer_telemetry(handle).totalBytes == PER_REQUEST * LAYERS * BLOCK_BYTES
            agent.release_xfer_handle(handle)
            finished.append(request)
        return len(finished) == REQUESTS

    until(step, "the writes", pause_s=0)
    decoder.send(heartbeats)
    take(decoder)
    writer.stopped.set()
    writer.join()
    agent.release_dlist_handle(local)
    agent.release_dlist_handle(remote)
    agent.remove_remote_agent(name)
    agent.deregister_memory(registered)
    return sorted(finished)


def decode(prefill_pipe):
    cache = KvCache(LAYERS, BLOCKS, BLOCK_BYTES)
    agent, registered, local = new_agent(cache)
    card = take(prefill_pipe)
    prefill_pipe.send(card_of(agent, cache))
    name, _ = add_peer(agent, card)
    arrived, heartbeats, asked = [], 0, 0

    def mine(request):
        # No two requests that run at the same time share a block.
        return [(request * PER_REQUEST + i) % BLOCKS for i in range(PER_REQUEST)]

    def ask(request):
        cache.erase(mine(request))
        agent.send_notif(name, notif_msg=REGISTER + NUMBERS.pack(request, PER_REQUEST,
                                                                 *mine(request)))

    def step():
        nonlocal heartbeats, asked
        if asked < REQUESTS and asked - len(arrived) < BLOCKS // PER_REQUEST:
            if asked < BLOCKS // PER_REQUEST or asked - BLOCKS // PER_REQUEST in arrived:
                ask(asked)
                asked += 1
        for sender, notes in agent.get_new_notifs().items():
            assert sender in (name, name.decode())
            for note in notes:
                if note.startswith(b"HB:"):
                    heartbeats += 1
                    continue
                request = int(note.decode("utf-8").rsplit(":", 1)[0])
                # A notification arrives after all bytes of its write.
                for i, block in enumerate(mine(request)):
                    cache.expect([block], 1000 + blocks_of(request)[i])
                arrived.append(request)
        agent.send_notif(name, notif_msg=b"HB:%d" % asked)
        return len(arrived) == REQUESTS

    until(step, "the notifications of the writes")
    sent = take(prefill_pipe)

    def all_heartbeats():
        nonlocal heartbeats
        heartbeats += sum(len(notes) for notes in agent.get_new_notifs().values())
        return heartbeats == sent

    until(all_heartbeats, f"{sent} heartbeats, {heartbeats} have come")
    prefill_pipe.send("bye")
    agent.release_dlist_handle(local)
    agent.deregister_memory(registered)
    return sorted(arrived)


@BACKENDS
def test_two_threads_share_one_agent_without_a_lock(environment):
    finished, arrived = run_together(prefill, decode, **environment)
    assert finished == arrived == list(range(REQUESTS))
