"""Makes the calls of vLLM's pull connector: decode workers read the blocks of a prefill worker.

The calls follow base_worker.py, pull_worker.py, utils.py and stats.py of
vllm/distributed/kv_transfer/kv_connector/v1/nixl/.
"""

import importlib.util
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

numpy = pytest.importorskip("numpy")

from fleet_testing import (BACKENDS, Child, KvCache, content, expect_bytes, link, results, rows_of,
                           run_together, take, until)

LAYERS, BLOCKS, BLOCK_BYTES = 3, 64, 4096


class Worker:
    """Starts and ends as a pull worker does, on the prefill and on the decode side."""

    def __init__(self, cache):
        # utils.py looks for the modules before it imports them.
        assert importlib.util.find_spec("nixl") is not None
        from nixl._api import nixl_agent as wrapper
        from nixl._api import nixl_agent_config
        from nixl._bindings import nixlXferTelemetry

        self.telemetry_type = nixlXferTelemetry
        self.cache = cache
        # base_worker.py passes no `backends` if UCX is the only backend.
        config = nixl_agent_config(num_threads=4, capture_telemetry=True)
        self.agent = wrapper(str(uuid.uuid4()), config)
        self.registered = self.agent.get_reg_descs(cache.regions(), "DRAM")
        self.agent.register_memory(self.registered, backends=["UCX"])
        descs = self.agent.get_xfer_descs(cache.rows(), "DRAM")
        self.local = self.agent.prep_xfer_dlist("NIXL_INIT_AGENT", descs)

    def card(self):
        """Returns the message of the side channel. Its metadata includes the registered cache."""
        return {"agent": self.agent.get_agent_metadata(),
                "bases": [region[0] for region in self.cache.regions()],
                "blocks": self.cache.blocks, "block_bytes": self.cache.block_bytes}

    def shake_hands(self, card):
        name = self.agent.add_remote_agent(card["agent"])
        rows = rows_of(card["bases"], card["blocks"], card["block_bytes"])
        descs = self.agent.get_xfer_descs(rows, "DRAM")
        return name, self.agent.prep_xfer_dlist(name, descs)

    def close(self, peers):
        # base_worker.py releases the lists first, then the agents, then the memory.
        self.agent.release_dlist_handle(self.local)
        for name, prepared in peers:
            self.agent.release_dlist_handle(prepared)
            self.agent.remove_remote_agent(name)
        self.agent.deregister_memory(self.registered)


def prefill_of_many(requests, *decoders):
    """Serves the blocks of each request until all its consumers have read them."""
    worker = Worker(KvCache(LAYERS, BLOCKS, BLOCK_BYTES))
    for request, blocks in requests.items():
        worker.cache.fill(blocks, request)
    for decoder in decoders:
        decoder.send(worker.card())
    seen, counts, leases = [], {}, set()

    def step():
        for notes in worker.agent.get_new_notifs().values():
            for note in notes:
                text = note.decode("utf-8")
                if text.startswith("HB:"):
                    leases.update(text[len("HB:"):].split(","))
                    continue
                request, consumers = text.rsplit(":", 1)
                counts[request] = counts.get(request, 0) + 1
                if counts[request] == int(consumers):
                    # The blocks are free, so an engine overwrites them at once. A reader that has
                    # not finished would get the poison bytes, and fail.
                    worker.cache.erase(requests.get(int(request), []))
                    seen.append(int(request))
        return len(seen) == len(requests) + 1  # one more: the request whose blocks were all cached

    until(step, "the notifications of the decode workers")
    for decoder in decoders:
        decoder.send("bye")
        take(decoder)
    worker.close([])
    return sorted(seen), sorted(leases)


def prefill(decoder, requests):
    return prefill_of_many(requests, decoder)


def decode(prefill_pipe, requests, consumers=1):
    """Reads all requests at the same time. Polls each read once per engine step."""
    worker = Worker(KvCache(LAYERS, BLOCKS, BLOCK_BYTES))
    # base_worker.py makes all handshakes in one thread. It does not rely on a thread-safe agent.
    with ThreadPoolExecutor(max_workers=1) as executor:
        name, remote = executor.submit(worker.shake_hands, take(prefill_pipe)).result()
    in_flight = {}
    for request, theirs in requests.items():
        mine = blocks_here(theirs)
        handle = worker.agent.make_prepped_xfer(
            "READ", worker.local, worker.cache.indices(mine), remote, worker.cache.indices(theirs),
            notif_msg=f"{request}:{consumers}".encode())
        assert handle
        worker.agent.transfer(handle)
        in_flight[request] = (handle, mine)
    # For a request whose blocks are all cached here, vLLM only sends the notification.
    worker.agent.send_notif(name, notif_msg=f"{len(requests) + 1000}:{consumers}".encode("utf-8"))

    def step():
        worker.agent.send_notif(name, notif_msg=("HB:" + ",".join(map(str, in_flight))).encode())
        for request, (handle, mine) in list(in_flight.items()):
            state = worker.agent.check_xfer_state(handle)
            if state == "PROC":
                continue
            assert state == "DONE"
            worker.cache.expect(mine, request)
            telemetry = worker.agent.get_xfer_telemetry(handle)
            assert isinstance(telemetry, worker.telemetry_type)
            assert telemetry.totalBytes == len(mine) * LAYERS * BLOCK_BYTES
            assert telemetry.descCount >= 1
            assert telemetry.xferDuration >= telemetry.postDuration >= 0
            worker.agent.release_xfer_handle(handle)
            del in_flight[request]
        return not in_flight

    until(step, "the reads")
    take(prefill_pipe)
    worker.close([(name, remote)])
    prefill_pipe.send("bye")
    return len(requests)


def blocks_here(theirs):
    """Returns the local blocks, whose numbers and order differ from the prefill worker's."""
    return [(block * 7 + 5) % BLOCKS for block in theirs]


def scattered(requests, blocks):
    """Returns a list of blocks in random order for each request. The lists are disjoint."""
    order = numpy.random.default_rng(7).permutation(BLOCKS)
    return {request: [int(b) for b in order[request * blocks:(request + 1) * blocks]]
            for request in range(requests)}


@BACKENDS
def test_a_decode_worker_reads_what_a_prefill_worker_computed(environment):
    requests = scattered(requests=8, blocks=8)
    (seen, leases), count = run_together(prefill, decode, requests, **environment)
    assert seen == [*range(8), 1008] and count == 8
    assert set(leases) <= {str(request) for request in range(8)} and leases


def test_blocks_are_freed_after_the_last_of_two_consumers():
    requests = scattered(requests=4, blocks=16)
    (one, first), (two, second) = link(), link()
    with Child(prefill_of_many, requests, one, two) as source:
        with Child(decode, first, requests, 2) as a, Child(decode, second, requests, 2) as b:
            assert results(source, a, b)[0][0] == [0, 1, 2, 3, 1004]


def heterogeneous_decode(prefill_pipe, requests):
    """Reads as a rank with half of the heads: each row is half of a row of the prefill worker."""
    worker = Worker(KvCache(LAYERS, BLOCKS, BLOCK_BYTES // 2))
    card = take(prefill_pipe)
    name = worker.agent.add_remote_agent(card["agent"])
    # base_worker.py passes a Python list of 3-tuples if the two sides differ in parallelism.
    half = BLOCK_BYTES // 2
    upper = [(base + block * BLOCK_BYTES + half, half, 0)
             for base in card["bases"] for block in range(card["blocks"])]
    remote = worker.agent.prep_xfer_dlist(name, worker.agent.get_xfer_descs(upper, "DRAM"))
    for request, blocks in requests.items():
        handle = worker.agent.make_prepped_xfer(
            "READ", worker.local, worker.cache.indices(blocks), remote,
            worker.cache.indices(blocks).astype(numpy.int32), notif_msg=f"{request}:1".encode())
        worker.agent.transfer(handle)
        until(lambda: worker.agent.check_xfer_state(handle) == "DONE", "a read of halves")
        for layer in range(LAYERS):
            for i, block in enumerate(blocks):
                expect_bytes(worker.cache.block(layer, block),
                             content(request, layer, i, BLOCK_BYTES)[half:],
                             f"upper half of layer {layer}, block {block}")
        worker.agent.release_xfer_handle(handle)
    worker.agent.send_notif(name, notif_msg=b"1001:1")
    take(prefill_pipe)
    worker.close([(name, remote)])
    prefill_pipe.send("bye")


def test_a_rank_with_half_of_the_heads_reads_halves_of_blocks():
    (seen, _), _ = run_together(prefill, heterogeneous_decode, scattered(requests=1, blocks=16))
    assert seen == [0, 1001]


def leasing_prefill(decoder):
    """Frees and deregisters the blocks of a request whose lease has expired.

    Leases count engine steps instead of seconds. The decode worker counts the steps.
    """
    lease_steps = 10
    kept, lost = (KvCache(1, 16, BLOCK_BYTES) for _ in range(2))
    worker = Worker(kept)
    late = worker.agent.get_reg_descs(lost.regions(), "DRAM")
    worker.agent.register_memory(late, backends=["UCX"])
    kept.fill(range(16), 1)
    lost.fill(range(16), 2)
    decoder.send((worker.card(), lost.regions()[0][0]))
    deadline = {"kept": lease_steps, "lost": lease_steps}
    freed = []
    for now in range(1, 31):
        awaited = f"HB:kept#{now}"

        def heartbeat():
            notes = [note for notes in worker.agent.get_new_notifs().values() for note in notes]
            return awaited.encode() in notes

        until(heartbeat, awaited)
        deadline["kept"] = now + lease_steps * 2 // 3
        for request in [name for name, end in deadline.items() if end < now]:
            lost.erase(range(16))
            worker.agent.deregister_memory(late)
            del deadline[request]
            freed.append((request, now))
        decoder.send(now)
    take(decoder)
    worker.close([])
    return freed


def leased_decode(prefill_pipe):
    from nixl import _bindings
    worker = Worker(KvCache(1, 16, BLOCK_BYTES))
    card, lost_base = take(prefill_pipe)
    name, remote = worker.shake_hands(card)
    _, lost = worker.shake_hands({**card, "bases": [lost_base]})
    everything = worker.cache.indices(range(16))

    def read(prepared):
        handle = worker.agent.make_prepped_xfer("READ", worker.local, everything, prepared,
                                                everything, notif_msg=b"")
        worker.agent.transfer(handle)
        until(lambda: worker.agent.check_xfer_state(handle) == "DONE", "a read")
        worker.agent.release_xfer_handle(handle)

    read(lost)
    worker.cache.expect(range(16), 2)
    for now in range(1, 31):
        worker.agent.send_notif(name, notif_msg=f"HB:kept#{now}".encode())
        assert take(prefill_pipe) == now
    read(remote)
    worker.cache.expect(range(16), 1)
    worker.cache.erase(range(16))
    with pytest.raises(Exception) as refusal:
        read(lost)
    worker.cache.expect_erased(range(16))
    worker.agent.release_dlist_handle(lost)
    worker.close([(name, remote)])
    prefill_pipe.send("bye")
    nixl_errors = tuple(error for error in vars(_bindings).values()
                        if isinstance(error, type) and issubclass(error, Exception))
    return isinstance(refusal.value, nixl_errors), str(refusal.value)


@BACKENDS
def test_a_read_after_the_lease_has_run_out_is_an_error(environment):
    # Heartbeats renew the lease of the request "kept". The lease of the request "lost" expires.
    freed, (of_ours, text) = run_together(leasing_prefill, leased_decode, **environment)
    assert freed == [("lost", 11)]
    assert of_ours, text


def many_decode(prefill_pipe):
    """Runs 400 transfers at once: engines use one handle for each request and rank."""
    worker = Worker(KvCache(LAYERS, BLOCKS, BLOCK_BYTES))
    name, remote = worker.shake_hands(take(prefill_pipe))
    handles = []
    for turn in range(400):
        block = turn % BLOCKS
        rows = worker.cache.indices([block])
        handles.append(worker.agent.make_prepped_xfer("READ", worker.local, rows, remote, rows,
                                                      notif_msg=f"{turn}:1".encode()))
    for handle in handles:
        worker.agent.transfer(handle)
    waiting = dict(enumerate(handles))

    def step():
        for turn, handle in list(waiting.items()):
            if worker.agent.check_xfer_state(handle) == "DONE":
                assert worker.agent.get_xfer_telemetry(handle).totalBytes == LAYERS * BLOCK_BYTES
                worker.agent.release_xfer_handle(handle)
                del waiting[turn]
        return not waiting

    until(step, "400 reads")
    worker.cache.expect(range(BLOCKS), 1)
    prefill_pipe.send("read")
    take(prefill_pipe)
    worker.close([(name, remote)])


def counting_prefill(decoder):
    worker = Worker(KvCache(LAYERS, BLOCKS, BLOCK_BYTES))
    worker.cache.fill(range(BLOCKS), 1)
    decoder.send(worker.card())
    notes = []
    until(lambda: notes.extend(note for all_of_one in worker.agent.get_new_notifs().values()
                               for note in all_of_one) or len(notes) >= 400, "400 notifications")
    assert take(decoder) == "read"
    decoder.send("bye")
    worker.close([])
    return sorted(int(note.decode().split(":")[0]) for note in notes)


@BACKENDS
def test_four_hundred_reads_are_in_flight_at_once(environment):
    # A busy decode worker has several hundred transfers in flight.
    notes, _ = run_together(counting_prefill, many_decode, **environment)
    assert notes == list(range(400))
