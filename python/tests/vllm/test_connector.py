"""Tests the connector for vLLM against a stand-in of the engine's contract."""

import os
import pickle
import signal
import sys

import pytest
import standin
from engines import Engine, run
from standin import Shape
from storm import Storm

import viaduct

SECRET = {"viaduct": {"secret": "swordfish", "environment": False, "detect": 0.5, "grace": 0.5}}


def shape(engine, **fields):
    fields.setdefault("extra", SECRET)
    return Shape(engine, **fields)


def moved(prefill, decode, tokens=100, name="r", seed=3, known=0, params=None):
    """Moves one request. Returns ("ok", wrong values) or ("failed", 0)."""
    params = prefill.prefill(name, tokens, seed) if params is None else params
    request = decode.decode(name, tokens, seed, pickle.loads(pickle.dumps(params)), known)
    end = None

    def done():
        nonlocal end
        end = end or decode.loaded(request)
        return end and not prefill.requests

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
    with Engine(shape("p", windows=windows, layers=4), results=True) as prefill, \
            Engine(shape("d", windows=windows, layers=4, tp=2), results=True) as decode:
        assert moved(prefill, decode, tokens=200) == ("ok", 0)
        assert moved(prefill, decode, name="hit", known=64, tokens=200, seed=9) == ("ok", 0)
        # One group only is handed over: the other end cannot know what it lacks.
        params = prefill.prefill("bad", 200, 11)
        params["viaduct_pages"][1] = [0, 1]
        assert moved(prefill, decode, name="bad", tokens=200, seed=11, params=params)[0] == "failed"


def test_without_results_there_is_one_group():
    from viaduct.vllm import _connector, _engine

    assert issubclass(_connector.ViaductConnector, _engine.Hybrid)
    modules = {name for name in sys.modules if name.startswith(("vllm", "viaduct.vllm"))}
    kept = {name: sys.modules.pop(name) for name in modules}
    try:
        standin.install(results=False)
        from viaduct.vllm import ViaductConnector

        assert not hasattr(ViaductConnector, "request_finished_all_groups")
        assert not hasattr(ViaductConnector, "get_transfer_results")
    finally:
        sys.modules.update(kept)


def test_aborted_requests_free_the_blocks_at_both_ends():
    with Engine(shape("p")) as prefill, Engine(shape("d")) as decode:
        free = len(prefill.free), len(decode.free)
        moved(prefill, decode)
        params = prefill.prefill("loading", 300, 4)
        request = decode.decode("loading", 300, 4, params)
        decode.abort(request)
        run([prefill, decode], lambda: decode.loaded(request))
        run([prefill, decode], lambda: not prefill.requests)
        # Aborted before it had blocks.
        params = prefill.prefill("early", 100, 5)
        request = decode.decode("early", 100, 5, {**params, "do_remote_prefill": False})
        request.kv_transfer_params = dict(params)
        decode.abort(request)
        run([prefill, decode], lambda: not prefill.requests)
        # Aborted at the source: nothing is handed over.
        assert prefill.prefill("cut", 100, 6, status="FINISHED_ABORTED") is None
        assert (len(prefill.free), len(decode.free)) == free


def test_params_that_were_used_before_are_an_error():
    with Engine(shape("p")) as prefill, Engine(quick("d")) as decode:
        params = prefill.prefill("r", 100, 3)
        assert moved(prefill, decode, params=params) == ("ok", 0)
        assert moved(prefill, decode, name="again", params=params) == ("failed", 0)
        assert moved(prefill, decode, name="next", seed=8) == ("ok", 0)


def test_an_expired_parcel_is_an_error_and_never_other_text():
    with Engine(shape("p", extra={**SECRET, "life": 0.05})) as prefill, \
            Engine(quick("d")) as decode:
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
            address = prefill.connector._scheduler._workers[0][2]
            lost["viaduct_workers"][0][2] = address
            # Blocks of the new life are under other names, but its address may be the old one.
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


def test_blocks_that_nobody_asks_for_are_free_after_their_life():
    with Engine(shape("p", extra={**SECRET, "life": 0.05})) as prefill:
        prefill.prefill("r", 100, 4)
        run([prefill], lambda: not prefill.requests)


def test_a_frozen_prefill_fails_its_requests():
    with Engine(shape("p", extra={**SECRET, "life": 1})) as prefill, \
            Engine(quick("d")) as decode:
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
        asked = {**{key: known[key] for key in ("remote_engine_id", "viaduct_workers")},
                 "do_remote_prefill": True, "transfer_id": "t1"}
        request = decode.decode("r", 100, 4, asked)
        decode.step()
        prefill.prefill("r", 100, 4, {"transfer_id": "t1"})
        run([prefill, decode], lambda: end_of(decode, request) and not prefill.requests)
        assert request.end == ("ok", 0)
        # The source gives up: the waiting engine hears it at once.
        request = decode.decode("r", 100, 4, {**asked, "transfer_id": "t2"})
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
        memoryview(memory)[:] = _remote.describe([layer], 0, 1, 0, 1)
        told = there.publish(_remote.DESCRIPTION, {_remote.DESCRIPTION_PART: memory})
        names = []

        async def find(agent, name, timeout):
            names.append(name)
            return agent.connect(there.card)

        monkeypatch.setattr(_remote, "find", find)
        engine = asyncio.run(_remote.open_engine(here, Source("p", "r"), [layer], (0, 1, 0, 1), 10))
        assert set(names) == {"p/0/0"}
        assert [source[1:] for source in engine.sources] == [(1, 0)]
        assert engine.takes == {(0, 0): [layer]}
        told.withdraw()


def test_params_without_a_source_are_computed_here():
    with Engine(shape("d")) as decode:
        request = decode.decode("r", 100, 3, {"do_remote_prefill": True})
        assert not request.is_loading


def test_engines_that_do_not_fit_are_named():
    with Engine(shape("p", head_size=16)) as prefill, Engine(quick("d")) as decode:
        assert moved(prefill, decode) == ("failed", 0)


def test_bad_configurations_are_refused():
    from viaduct.vllm._pages import Layer
    from viaduct.vllm._transfers import Transfers

    with pytest.raises(viaduct.InvalidError, match="lief"):
        Transfers([], (0, 1, 0, 1), "d", None, lief=3)
    with pytest.raises(viaduct.InvalidError, match="sekret"):
        Transfers([], (0, 1, 0, 1), "d", None, viaduct={"sekret": "x"})
    with pytest.raises(viaduct.InvalidError, match="Mamba"):
        Layer("l", [], 0, 16, 4, 1)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_storm_uses_no_wrong_value_and_leaves_no_block_taken(ranks):
    requests = int(os.environ.get("VIADUCT_VLLM_REQUESTS", 120)) // 2
    storm = Storm(seed=int(os.environ.get("VIADUCT_SEED", 5)), tp=(ranks, ranks))
    try:
        results = storm.run(requests)
    finally:
        storm.close()
    print(results)
    assert results["ok"] > requests // 2, results


def end_of(engine, request):
    request.end = getattr(request, "end", None) or engine.loaded(request)
    return request.end


def quick(engine, **fields):
    return shape(engine, extra={**SECRET, "timeout": 2}, **fields)
