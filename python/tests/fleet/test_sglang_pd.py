"""Makes the calls of SGLang's disaggregation.

A prefill worker writes the chunks of a request, then its auxiliary data, to a decode worker. The
calls follow python/sglang/srt/disaggregation/nixl/conn.py.
"""

import time
import uuid

import pytest

numpy = pytest.importorskip("numpy")

from fleet_testing import (KvCache, address_of, content, expect_bytes, pattern, poison, rows_of,
                           run_together, take, until)

LAYERS, PAGES, PAGE_BYTES = 4, 32, 2048
ROOM, CHUNKS, AUX_BYTES = 7123, 4, 512


def new_agent(threads):
    from nixl._api import nixl_agent, nixl_agent_config, nixl_thread_sync_t
    from nixl._bindings import nixlBackendError, nixlCancelledError, nixlRemoteDisconnectError
    assert all(issubclass(error, Exception) for error in
               (nixlBackendError, nixlCancelledError, nixlRemoteDisconnectError))
    config = nixl_agent_config(backends=[], num_threads=threads,
                               sync_mode=nixl_thread_sync_t.NIXL_THREAD_SYNC_STRICT)
    agent = nixl_agent(str(uuid.uuid4()), config)
    # SGLang reads the backend and its parameters, a map of strings, from the environment.
    agent.create_backend("UCX", {"num_threads": str(threads)} if threads else {})
    assert "UCX" in agent.get_plugin_list()
    assert isinstance(agent.get_backend_params("UCX"), dict)
    return agent


def register(agent, cache, aux):
    kv = [(address_of(layer), layer.nbytes, 0, "") for layer in cache.memory]
    assert agent.register_memory(kv, "DRAM")
    assert agent.register_memory([(address_of(aux), aux.nbytes, 0, "")], "DRAM")


def prefill(decoder):
    cache, aux = KvCache(LAYERS, PAGES, PAGE_BYTES), pattern(99, AUX_BYTES).copy()
    agent = new_agent(threads=8)
    register(agent, cache, aux)
    pages = [int(p) for p in numpy.random.default_rng(3).permutation(PAGES)]
    cache.fill(pages, ROOM)
    target = take(decoder)
    # Each bootstrap of a room adds the same blob again.
    names = {agent.add_remote_agent(target["agent"]) for _ in range(3)}
    assert len(names) == 1
    name = names.pop()
    # SGLang passes arrays instead of descriptor lists. The name "" means the local agent.
    local = agent.prep_xfer_dlist("", cache.rows(), "DRAM")
    remote = agent.prep_xfer_dlist(name, rows_of(target["bases"], PAGES, PAGE_BYTES), "DRAM")
    handles = []
    for chunk in range(CHUNKS):
        part = slice(chunk * PAGES // CHUNKS, (chunk + 1) * PAGES // CHUNKS)
        mine = cache.indices(pages[part]).astype(numpy.int32)
        theirs = cache.indices(target["pages"][part]).astype(numpy.int32)
        last = int(chunk == CHUNKS - 1)
        handles.append(agent.make_prepped_xfer("WRITE", local, mine, remote, theirs,
                                               f"{ROOM}_kv_{chunk}_{last}_0".encode("ascii")))
    handles.append(agent.initialize_xfer(
        "WRITE", agent.get_xfer_descs([(address_of(aux), AUX_BYTES, 0)], "DRAM"),
        agent.get_xfer_descs([(target["aux"], AUX_BYTES, 0)], "DRAM"), name,
        f"{ROOM}_aux".encode("ascii")))
    for handle in handles:
        assert handle
        assert agent.transfer(handle) in ("DONE", "PROC")
    while handles:  # SGLang polls in a loop that yields to other threads
        handles = [handle for handle in handles if not done(agent, handle)]
        time.sleep(0)
    assert take(decoder) == "complete"
    agent.release_dlist_handle(local)
    agent.release_dlist_handle(remote)
    agent.remove_remote_agent(name)


def done(agent, handle):
    if agent.check_xfer_state(handle) != "DONE":
        return False
    agent.release_xfer_handle(handle)
    return True


def decode(prefill_pipe):
    cache, aux = KvCache(LAYERS, PAGES, PAGE_BYTES), poison(AUX_BYTES)
    agent = new_agent(threads=0)
    register(agent, cache, aux)
    pages = [int(p) for p in numpy.random.default_rng(4).permutation(PAGES)]
    source = [int(p) for p in numpy.random.default_rng(3).permutation(PAGES)]
    prefill_pipe.send({"agent": agent.get_agent_metadata(), "aux": address_of(aux),
                       "bases": [address_of(layer) for layer in cache.memory], "pages": pages})
    chunks, kinds, expected = set(), set(), None

    def update():
        nonlocal expected
        for notes in agent.get_new_notifs().values():
            for note in notes:
                room, kind, *rest = note.decode("ascii").split("_")
                assert int(room) == ROOM
                kinds.add(kind)
                if kind == "aux":
                    expect_bytes(aux, pattern(99, AUX_BYTES), "the auxiliary data")
                    continue
                chunk, last, rank = map(int, rest)
                assert rank == 0
                chunks.add(chunk)
                expected = chunk + 1 if last else expected
                expect_chunk(cache, source, pages, chunk)
        return expected == len(chunks) and kinds == {"kv", "aux"}

    until(update, "all chunks")
    prefill_pipe.send("complete")
    return sorted(chunks)


def expect_chunk(cache, source, pages, chunk):
    for i in range(chunk * PAGES // CHUNKS, (chunk + 1) * PAGES // CHUNKS):
        for layer in range(LAYERS):
            expect_bytes(cache.block(layer, pages[i]), content(ROOM, layer, i, PAGE_BYTES),
                         f"chunk {chunk}, layer {layer}, page {pages[i]} from {source[i]}")


def test_chunks_and_auxiliary_data_arrive_before_their_notifications():
    assert run_together(prefill, decode)[1] == list(range(CHUNKS))


def test_an_unknown_backend_is_refused():
    from nixl import _bindings
    from nixl._api import nixl_agent, nixl_agent_config
    agent = nixl_agent(str(uuid.uuid4()), nixl_agent_config(backends=[]))
    with pytest.raises(_bindings.nixlNotFoundError, match="NOSUCH"):
        agent.create_backend("NOSUCH", {"a": "b"})
