"""Makes the calls of LightLLM: pages of one buffer, pickled registration lists, large messages.

The calls follow
lightllm/server/router/model_infer/mode_backend/pd/nixl_kv_transporter.py.
"""

import pickle

import pytest

numpy = pytest.importorskip("numpy")

from fleet_testing import address_of, expect_bytes, pattern, poison, run_together, take, until

PAGES, PAGE_BYTES = 8, 1 << 16


class Transporter:
    def __init__(self, name, telemetry, memory):
        from nixl._api import nixl_agent, nixl_agent_config, nixlBind
        assert nixlBind.nixlRegDList
        config = None
        if telemetry:
            config = nixl_agent_config()
            config.capture_telemetry = True  # LightLLM sets the field after the construction
        self.agent = nixl_agent(name, config)
        self.memory, self.telemetry = memory, telemetry
        self.registered = self.agent.register_memory(
            [(address_of(memory), memory.nbytes, 0, "")], "DRAM")
        self.local = self.agent.prep_xfer_dlist("", self.pages(address_of(memory)), "DRAM")

    @staticmethod
    def pages(base):
        return [(base + i * PAGE_BYTES, PAGE_BYTES, 0) for i in range(PAGES)]

    def card(self):
        return {"metadata": self.agent.get_agent_metadata(),
                "registered": self.agent.get_serialized_descs(self.registered)}

    def connect(self, card):
        name = self.agent.add_remote_agent(card["metadata"])
        self.name = name.decode() if isinstance(name, bytes) else name
        base, size, device, _ = self.agent.deserialize_descs(card["registered"])[0]
        assert (size, device) == (PAGES * PAGE_BYTES, 0)
        self.remote = self.agent.prep_xfer_dlist(self.name, self.pages(base), "DRAM")

    def write(self, page, theirs):
        handle = self.agent.make_prepped_xfer("WRITE", self.local, [page], self.remote, [theirs],
                                              b"")
        self.agent.transfer(handle)
        until(lambda: self.agent.check_xfer_state(handle) == "DONE", f"page {page}")
        if self.telemetry:
            assert self.agent.get_xfer_telemetry(handle).totalBytes == PAGE_BYTES
        self.agent.release_xfer_handle(handle)

    def messages(self):
        found = []
        for name, notes in self.agent.get_new_notifs().items():
            name = name.decode() if isinstance(name, bytes) else name
            found.extend((name, pickle.loads(note)) for note in notes)
        return found

    def close(self):
        # LightLLM removes the agent first, and then releases its list.
        self.agent.remove_remote_agent(self.name)
        self.agent.release_dlist_handle(self.remote)
        self.agent.release_dlist_handle(self.local)
        self.agent.deregister_memory(self.registered)


def task(number):
    """Returns a message of more than ten thousand bytes."""
    return {"task": number, "tokens": list(range(number, number + 12000))}


def prefill(pipe):
    transporter = Transporter("prefill", True, pattern(41, PAGES * PAGE_BYTES).copy())
    pipe.send(transporter.card())
    transporter.connect(take(pipe))
    for page in range(PAGES):
        transporter.write(page, PAGES - 1 - page)
        transporter.agent.send_notif(transporter.name, notif_msg=pickle.dumps(task(page)))
    answers = []
    until(lambda: answers.extend(transporter.messages()) or len(answers) == PAGES, "the answers")
    pipe.send("bye")
    transporter.close()
    return answers


def decode(pipe):
    transporter = Transporter("decode", False, poison(PAGES * PAGE_BYTES))
    pipe.send(transporter.card())
    transporter.connect(take(pipe))
    done = []

    def step():
        for name, message in transporter.messages():
            assert name == "prefill"
            page = message["task"]
            assert message == task(page)
            place = (PAGES - 1 - page) * PAGE_BYTES
            expect_bytes(transporter.memory[place:place + PAGE_BYTES],
                         pattern(41, PAGES * PAGE_BYTES)[page * PAGE_BYTES:(page + 1) * PAGE_BYTES],
                         f"page {page}")
            done.append(page)
            transporter.agent.send_notif(transporter.name, pickle.dumps(("done", page)))
        return len(done) == PAGES

    until(step, "the pages")
    take(pipe)
    transporter.close()
    return done


def test_pages_are_written_and_announced_by_large_messages():
    answers, done = run_together(prefill, decode)
    assert done == list(range(PAGES))
    assert answers == [("decode", ("done", page)) for page in range(PAGES)]
