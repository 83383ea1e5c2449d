"""Tests the connector for vLLM against a stand-in of the engine's contract."""

import os
import pickle
import signal

import pytest
import standin
from engines import Engine, run, use
from standin import Shape
from storm import ENGINES, Storm

import viaduct

# A killed process closes its sockets, so only a frozen one has to be detected.
SECRET = {"viaduct": {"secret": "swordfish", "environment": False, "detect": 60, "grace": 0.5}}
FROZEN = {"viaduct": {**SECRET["viaduct"], "detect": 2}}


@pytest.fixture(autouse=True)
def usual_version():
    """Tests import the connector's modules for this version."""
    use(standin.USUAL)


def shape(engine, **fields):
    fields.setdefault("extra", SECRET)
    return Shape(engine, **fields)


def moved(prefill, decode, tokens=100, name="r", seed=3, known=0, params=None, alone=False):
    """Moves one request. Returns ("ok", wrong values) or ("failed", 0), when the prefill engine has
    its blocks back. `alone`: does not wait for those."""
    params = prefill.prefill(name, tokens, seed) if params is None else params
    request = decode.decode(name, tokens, seed, pickle.loads(pickle.dumps(params)), known)
    end = None

    def done():
        nonlocal end
        end = end or decode.loaded(request)
        return end and (alone or not prefill.requests)

    run([prefill, decode], done)
    return end


PAIRS = {
    "alike": ({}, {}),
    "more ranks at decode": ({"tp": 1}, {"tp": 2}),
    "more ranks at prefill": ({"tp": 2}, {"tp": 1}),
    "smaller blocks at decode": ({"block": 32, "page": 32}, {}),
    "larger blocks at decode": ({}, {"block": 64, "page": 32}),
    "K and V apart": ({"kind": "apart"}, {}),
    "other order": ({"order": "nhd"}, {}),
    "packed": ({"kind": "packed"}, {"kind": "packed", "block": 32}),
    "latent rows": ({"kind": "mla", "heads": 1, "tp": 2}, {"kind": "mla", "heads": 1}),
    "fewer heads than ranks": ({"heads": 1, "tp": 2}, {"heads": 1}),
    "stages at prefill": ({"pp": 2, "tp": 2}, {}),
    "stages at decode": ({}, {"pp": 2}),
    "other stages": ({"pp": 2}, {"pp": 3}),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_a_request_moves(pair):
    there, here = PAIRS[pair]
    with Engine(shape("p", **there)) as prefill, Engine(shape("d", **here)) as decode:
        free = len(prefill.free), len(decode.free)
        assert moved(prefill, decode) == ("ok", 0)
        assert moved(prefill, decode, name="hit", seed=5, known=64) == ("ok", 0)
        assert moved(prefill, decode, name="full", seed=7, known=128, tokens=128) == ("ok", 0)
        assert (len(prefill.free), len(decode.free)) == free


def test_groups_with_windows_move():
    windows = (0, 32)
    with Engine(shape("p", windows=windows, layers=4), standin.NEWER) as prefill, \
            Engine(shape("d", windows=windows, layers=4, tp=2), standin.NEWER) as decode:
        assert moved(prefill, decode, tokens=200) == ("ok", 0)
        assert moved(prefill, decode, name="hit", known=64, tokens=200, seed=9) == ("ok", 0)
        # The two ends mean different pages.
        params = prefill.prefill("bad", 200, 11)
        params["viaduct_pages"][1] = [0, 13]
        assert moved(prefill, decode, name="bad", tokens=200, seed=11, params=params)[0] == "failed"


VERSIONS = {"older": standin.OLDER, "usual": standin.USUAL, "newer": standin.NEWER,
            "newest": standin.NEWEST}


@pytest.mark.parametrize("there, here", [("older", "usual"), ("usual", "older"), ("newer", "older"),
                                         ("older", "newest"), ("newest", "newer")])
def test_versions_of_vllm_work_together(there, here):
    with Engine(shape("p"), VERSIONS[there]) as prefill, \
            Engine(shape("d"), VERSIONS[here]) as decode:
        assert moved(prefill, decode) == ("ok", 0)
        params = prefill.prefill("r", 100, 3)
        params["transfer_id"] = "of another request"
        params["viaduct_workers"][0][3] = "00" * 16
        assert moved(prefill, decode, params=params, alone=True) == ("failed", 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_several_groups_need_a_report_of_failed_loads(version):
    connector = use(VERSIONS[version])
    reports = bool(VERSIONS[version].results)
    assert hasattr(connector, "request_finished_all_groups") == reports
    assert hasattr(connector, "get_transfer_results") == reports
    assert any(base.__name__ == "SupportsHMA" for base in connector.__mro__) == reports


def test_a_vllm_without_a_cache_config_is_refused():
    connector = use(standin.OLDER)
    with pytest.raises(viaduct.UnsupportedError, match="later version"):
        connector(shape("d").config(), standin.KVConnectorRole.SCHEDULER)


def test_a_vllm_that_names_no_workers_hands_nothing_over(caplog):
    with Engine(shape("p")) as prefill:
        prefill.connector.set_xfer_handshake_metadata({})
        assert prefill.prefill("r", 100, 3) is None
        assert not prefill.requests and "set_xfer_handshake_metadata" in caplog.text


def test_aborted_requests_free_the_blocks_at_both_ends():
    with Engine(shape("p")) as prefill, Engine(shape("d")) as decode:
        free = len(prefill.free), len(decode.free)
        moved(prefill, decode)
        params = prefill.prefill("loading", 300, 4)
        request = decode.decode("loading", 300, 4, params)
        decode.abort(request)
        run([prefill, decode], lambda: decode.loaded(request))
        run([prefill, decode], lambda: not prefill.requests)
        # The decode engine aborts a request before the request has blocks.
        params = prefill.prefill("early", 100, 5)
        decode.abort(decode.arrive("early", 100, 5, params))
        run([prefill, decode], lambda: not prefill.requests)
        # A request that is aborted at the source hands nothing over.
        assert prefill.prefill("cut", 100, 6, status="FINISHED_ABORTED") is None
        assert (len(prefill.free), len(decode.free)) == free


def test_params_that_were_used_before_are_an_error():
    with Engine(shape("p")) as prefill, Engine(shape("d")) as decode:
        params = prefill.prefill("r", 100, 3)
        assert moved(prefill, decode, params=params) == ("ok", 0)
        assert moved(prefill, decode, name="again", params=params) == ("failed", 0)
        assert moved(prefill, decode, name="next", seed=8) == ("ok", 0)


def test_an_expired_parcel_is_an_error_and_never_other_text():
    with Engine(shape("p", extra={**SECRET, "life": 0.05})) as prefill, \
            Engine(shape("d")) as decode:
        params = prefill.prefill("r", 100, 3)
        run([prefill], lambda: not prefill.requests)
        prefill.prefill("other", 900, 4)  # takes the blocks that have become free
        assert moved(prefill, decode, params=params) == ("failed", 0)


def test_a_killed_prefill_fails_its_requests_and_a_new_life_serves_others():
    with Engine(quick("d")) as decode:
        with Engine(shape("p")) as prefill:
            assert moved(prefill, decode) == ("ok", 0)
            lost = prefill.prefill("lost", 100, 4)
        request = decode.decode("lost", 100, 4, lost)
        run([decode], lambda: end_of(decode, request))
        assert request.end == ("failed", 0)
        with Engine(shape("p")) as prefill:  # the same engine_id
            assert moved(prefill, decode, name="new", seed=5) == ("ok", 0)
            lost["viaduct_workers"][0][2] = prefill.workers_of_answers()[0][2]
            # The restarted engine's blocks have other names, but its address may be the old one.
            assert moved(prefill, decode, name="late", params=lost, seed=4) == ("failed", 0)


def test_a_killed_decode_frees_the_blocks():
    with Engine(shape("p")) as prefill:
        with Engine(shape("d", tp=2)) as decode:
            assert moved(prefill, decode) == ("ok", 0)
            params = prefill.prefill("half", 900, 4)
            prefill.step()
            decode.decode("half", 900, 4, params)
            # One rank reads, and the other is stopped: so the group has not ended.
            decode.workers[1].send_signal(signal.SIGSTOP)
            lent = prefill.ask("lent")
            decode.send_step()
            run([prefill], lambda: prefill.ask("lent") != lent)
        run([prefill], lambda: not prefill.requests)
        assert len(prefill.free) == prefill.shape.blocks - 1


def test_a_rank_that_fails_ends_the_load_of_all():
    with Engine(shape("p", tp=2), standin.NEWER) as prefill, \
            Engine(quick("d", tp=2), standin.NEWER) as decode:
        assert moved(prefill, decode) == ("ok", 0)
        params = prefill.prefill("r", 300, 4)
        prefill.step()
        # Rank 0 at decode reads only from rank 0 at prefill, which is still alive.
        prefill.workers[1].kill()
        request = decode.decode("r", 300, 4, params)
        run([decode], lambda: end_of(decode, request))
        assert (request.end, request.failed_ranks) == (("failed", 0), 2)


def test_the_death_of_a_decode_engine_in_whose_queue_a_request_waits_frees_the_blocks():
    with Engine(shape("p", tp=2)) as prefill:
        with Engine(shape("d")) as decode:
            assert moved(prefill, decode) == ("ok", 0)
            params = prefill.prefill("r", 100, 4)
            prefill.step()
            lent = prefill.ask("lent")
            decode.arrive("r", 100, 4, params)
            decode.step()
            run([prefill, decode], lambda: prefill.ask("lent") != lent)
            assert prefill.requests
        run([prefill], lambda: not prefill.requests)


def test_a_claim_that_fails_is_repeated():
    with Engine(shape("p")) as prefill, Engine(quick("d")) as decode:
        params = prefill.prefill("r", 100, 4)
        prefill.step()
        prefill.signal(signal.SIGSTOP)
        request = decode.arrive("r", 100, 4, params)
        decode.step()
        run([decode], lambda: decode.ask("claims") == [0])
        prefill.signal(signal.SIGCONT)
        assert decode.admit(request)
        run([prefill, decode], lambda: end_of(decode, request) and not prefill.requests)
        assert request.end == ("ok", 0)


def test_a_long_queue_leaves_room_for_loads(monkeypatch):
    from viaduct.vllm import _scheduler

    monkeypatch.setattr(_scheduler, "MOST_CLAIMS", 1)
    with Engine(shape("p")) as prefill, Engine(shape("d")) as decode:
        requests = [decode.arrive(f"r{i}", 100, i, prefill.prefill(f"r{i}", 100, i))
                    for i in range(4)]
        run([decode], lambda: decode.ask("claims") != [0])
        decode.step()
        assert decode.ask("claims") == [1]
        for request in requests:
            assert decode.admit(request)
        run([prefill, decode], lambda: all([end_of(decode, one) for one in requests]))
        assert {one.end for one in requests} == {("ok", 0)}
        run([prefill], lambda: not prefill.requests)


def test_a_request_may_wait_longer_than_its_life():
    with Engine(shape("p")) as prefill, Engine(shape("d")) as decode:
        known = prefill.prefill("first", 100, 3)
        assert moved(prefill, decode, name="first", params=known) == ("ok", 0)
        request = decode.arrive("r", 100, 4, pushed(known, "t1"))
        decode.step()
        # The fetch of "second" comes after the one of the waiting request "r".
        assert moved(prefill, decode, name="second", seed=5) == ("ok", 0)
        prefill.ask("live", 0.05)
        prefill.prefill("r", 100, 4, {"transfer_id": "t1"})
        prefill.prefill("other", 100, 6)  # nobody takes it
        run([prefill, decode], lambda: "other" not in prefill.requests)
        assert decode.admit(request)
        run([prefill, decode], lambda: end_of(decode, request) and not prefill.requests)
        assert request.end == ("ok", 0)


def test_a_request_aborted_before_its_publication_frees_the_blocks():
    with Engine(shape("p")) as prefill, Engine(shape("d")) as decode:
        known = prefill.prefill("first", 100, 3)
        assert moved(prefill, decode, name="first", params=known) == ("ok", 0)
        waiting = decode.arrive("in the queue", 100, 4, pushed(known, "t1"))
        loading = decode.decode("loading", 100, 5, pushed(known, "t2"))
        decode.step()
        decode.abort(waiting)
        decode.abort(loading)
        run([decode], lambda: end_of(decode, loading))
        prefill.prefill("r1", 100, 4, {"transfer_id": "t1"})
        prefill.prefill("r2", 100, 5, {"transfer_id": "t2"})
        run([prefill, decode], lambda: not prefill.requests)


def test_blocks_that_nobody_asks_for_are_free_after_their_life():
    with Engine(shape("p", extra={**SECRET, "life": 0.05})) as prefill:
        prefill.prefill("r", 100, 4)
        run([prefill], lambda: not prefill.requests)


def test_a_frozen_prefill_fails_its_requests():
    with Engine(shape("p", extra={**FROZEN, "life": 5})) as prefill, \
            Engine(shape("d", extra={**FROZEN, "timeout": 10})) as decode:
        assert moved(prefill, decode) == ("ok", 0)
        params = prefill.prefill("r", 100, 4)
        prefill.signal(signal.SIGSTOP)
        request = decode.decode("r", 100, 4, params)
        run([decode], lambda: end_of(decode, request))
        assert request.end == ("failed", 0)
        prefill.signal(signal.SIGCONT)
        run([prefill], lambda: not prefill.requests)


def test_a_prompt_that_another_engine_computes_later_is_awaited():
    """Push: both engines get the name of the transfer, and the decode side asks first."""
    with Engine(shape("p")) as prefill, Engine(shape("d")) as decode:
        known = prefill.prefill("first", 100, 3)
        assert moved(prefill, decode, name="first", params=known) == ("ok", 0)
        request = decode.decode("r", 100, 4, pushed(known, "t1"))
        decode.step()
        prefill.prefill("r", 100, 4, {"transfer_id": "t1"})
        run([prefill, decode], lambda: end_of(decode, request) and not prefill.requests)
        assert request.end == ("ok", 0)
        # The source gives up, and the waiting engine learns that at once.
        request = decode.decode("r", 100, 4, pushed(known, "t2"))
        decode.step()
        prefill.prefill("r", 100, 4, {"transfer_id": "t2"}, "FINISHED_ABORTED")
        run([prefill, decode], lambda: end_of(decode, request), seconds=20)
        assert request.end == ("failed", 0)


def test_agents_are_found_by_name(monkeypatch):
    """Without addresses, the agents are looked up by name. Here a test stands for the place."""
    import asyncio

    from viaduct.vllm import _pages, _remote
    from viaduct.vllm._messages import Source

    layer = _pages.Layer("l", standin.Tensor(standin.Cache(shape("x"), 0).view), 0, 16, 4, 1)
    with viaduct.Agent(name="p/0/0", environment=False) as there, \
            viaduct.Agent(name="d/0/0", environment=False) as here:
        memory = there.allocate(_remote.DESCRIPTION_BYTES)
        memoryview(memory)[:] = _remote.describe([layer], _remote.Rank(0, 1, 0, 2), [16])
        told = there.publish(_remote.DESCRIPTION, {_remote.DESCRIPTION_PART: memory})
        names = []

        async def find(agent, name, timeout):
            names.append(name)
            return agent.connect(there.card)

        # This agent stands for both ranks.

        monkeypatch.setattr(_remote, "find", find)
        source, rank = Source("p", "r", 100), _remote.Rank(0, 1, 0, 1)
        engine = asyncio.run(_remote.open_engine(here, source, [layer], rank, 10))
        assert names == ["p/0/0", "p/0/1"]
        assert engine.why is None and engine.owner.rank.tp == 0
        told.withdraw()


def test_params_without_a_source_are_computed_here():
    with Engine(shape("d")) as decode:
        request = decode.decode("r", 100, 3, {"do_remote_prefill": True})
        assert not request.is_loading


MISFITS = {
    "dtype": ({"dtype": "int16"}, {}, "dtype is int16 there and uint16 here"),
    "layers": ({"layers": 2}, {}, "layer model.layers.2.self_attn.attn of rank"),
    "windows": ({"windows": (0, 32)}, {"windows": (0, 64)}, "the same sliding window"),
}


@pytest.mark.parametrize("pair", MISFITS)
def test_engines_that_do_not_fit_are_named(pair, capfd):
    there, here, text = MISFITS[pair]
    with Engine(shape("p", **there), standin.NEWER) as prefill, \
            Engine(shape("d", tp=2, **here), standin.NEWER) as decode:
        assert moved(prefill, decode, tokens=200) == ("failed", 0)
        assert not prefill.requests
    logged = capfd.readouterr().err
    # Both ranks name the reason.
    assert logged.count(text) >= 2 and "what to do: " in logged


@pytest.mark.parametrize("fields, text", [
    ({"head_size": 16}, "head_size is 16 there and 8 here"),
    ({"heads": 8}, "heads is 8 there and 4 here"),
    ({"kind": "packed"}, "tensors is 1 there and 2 here")])
def test_layers_that_do_not_fit_are_named(fields, text):
    from viaduct.vllm import _pages, _remote

    def layers(**fields):
        one = shape("x", **fields)
        tensor = standin.Tensor(standin.Cache(one, 0).view)
        return [_pages.Layer("l", tensor, 0, 16, one.heads, 1)]

    rank = _remote.Rank(0, 1, 0, 1)
    there = _remote.Remote(None, None, _remote.describe(layers(**fields), rank, [16]))
    with pytest.raises(viaduct.InvalidError, match=f"layer l of rank 0 of 1 .*{text}.*what to do"):
        there.taken_by(layers(), rank)


def test_quantized_caches_are_told_apart():
    from viaduct.vllm import _pages

    def dtype(stored):
        tensor = standin.Tensor(standin.Cache(shape("x", dtype="uint8"), 0).view)
        return _pages.Layer("l", tensor, 0, 16, 4, 1, stored).kind.dtype

    assert dtype("fp8") == dtype("fp8_e4m3") != dtype("fp8_e5m2")
    assert dtype("auto") == "uint8"


def test_long_requests_have_several_parts():
    from viaduct.vllm import _pages

    stacks, pages = [(0, 2, 32), (1, 1, 8)], [(0, 8192), (3, 0)]
    parts = _pages.parts_of(stacks, pages)
    assert [part[1:] for part in parts] == [(i * 4, 4) for i in range(8)]
    # Another number of pages gives parts of other layers, whose numbers must differ from the first
    # ones.
    others = _pages.parts_of(stacks, [(0, 9000), (3, 1)])
    assert not {part.component for part in parts} & {part.component for part in others}
    assert _pages.signature(pages) != _pages.signature([(0, 8192), (3, 1)])


@pytest.mark.parametrize("kind", ["together", "apart", "mla"])
def test_parts_of_few_layers_move(kind, monkeypatch):
    """A part has one layer here, as with prompts of a million tokens."""
    from viaduct.vllm import _pages

    monkeypatch.setattr(_pages, "MOST_PAGES", 1)
    fields = {"kind": kind, "part_pages": 1}
    with Engine(shape("p", **fields)) as prefill, Engine(shape("d", **fields)) as decode:
        assert moved(prefill, decode) == ("ok", 0)
        assert moved(prefill, decode, name="hit", seed=5, known=64) == ("ok", 0)


def test_bad_configurations_are_refused():
    from viaduct.vllm._pages import Layer
    from viaduct.vllm._remote import Rank
    from viaduct.vllm._transfers import Transfers

    rank = Rank(0, 1, 0, 1)
    with pytest.raises(viaduct.InvalidError, match="lief"):
        Transfers([], rank, [16], "d", None, lief=3)
    with pytest.raises(viaduct.InvalidError, match="sekret"):
        Transfers([], rank, [16], "d", None, viaduct={"sekret": "x"})
    with pytest.raises(viaduct.InvalidError, match="Mamba"):
        Layer("l", [], 0, 16, 4, 1)


@pytest.mark.parametrize("engines", ENGINES)
def test_a_storm_uses_no_wrong_value_and_leaves_no_block_taken(engines):
    requests = int(os.environ.get("VIADUCT_VLLM_REQUESTS", 150)) // len(ENGINES)
    storm = Storm(int(os.environ.get("VIADUCT_SEED", 5)), ENGINES[engines])
    try:
        results = storm.run(requests)
    finally:
        storm.close()
    print(results)
    assert results["ok"] > requests // 2, results


def pushed(known, name):
    """The params of a decode leg that is sent at once with the prefill leg. `known` is an answer of
    the prefill engine."""
    return {"do_remote_prefill": True, "remote_engine_id": "p", "transfer_id": name,
            "viaduct_workers": known["viaduct_workers"]}


def end_of(engine, request):
    request.end = getattr(request, "end", None) or engine.loaded(request)
    return request.end


def quick(engine, **fields):
    return shape(engine, extra={**SECRET, "timeout": 10}, **fields)
