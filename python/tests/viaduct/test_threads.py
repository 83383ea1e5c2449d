"""Tests that no thread exists before the first agent, and that blocking calls release the GIL."""

import threading
import time

from helpers import LONG, Program

import viaduct


def test_importing_starts_no_thread_and_imports_little():
    program = """
    import os, sys
    before = set(sys.modules)
    import viaduct
    print(len(os.listdir("/proc/self/task")))
    heavy = {"asyncio", "numpy", "torch", "typing", "enum", "dataclasses", "logging"}
    print(sorted(heavy & (set(sys.modules) - before)))
    with viaduct.Agent(environment=False):
        print(len(os.listdir("/proc/self/task")) > 1)
    """
    with Program(program) as process:
        assert process.finish() == (0, "1\n[]\nTrue\n")


def test_threads_post_one_agent_at_once(pair):
    agent, peer, inbox, remote = pair
    memory = agent.allocate(1 << 20)
    ours, theirs = memory.blocks(64), remote.blocks(64)
    failed = []

    def copy(number):
        try:
            for turn in range(200):
                block = number * 200 + turn
                memoryview(memory)[block * 64:block * 64 + 1] = b"x"
                agent.write(peer, ours[[block]], theirs[[block]], timeout=LONG)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=copy, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert bytes(inbox)[:1600 * 64:64] == b"x" * 1600


def test_one_transfer_is_used_by_threads_at_once(pair):
    agent, peer, _, remote = pair
    transfer = agent.plan("write", peer, agent.allocate(1 << 20), remote)
    done = threading.Event()

    def watch():
        while not done.is_set():
            assert transfer.state in ("idle", "running", "done")
            transfer.path, transfer.done, transfer.error, repr(transfer)
            if transfer.done:
                transfer.wait(LONG)

    threads = [threading.Thread(target=watch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        transfer.post().wait(LONG)
    done.set()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


def test_a_wait_leaves_the_interpreter_to_others(agent):
    counted = 0
    waiting = threading.Thread(target=lambda: agent.wait_note(LONG))
    waiting.start()
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        counted += 1
    peer = agent.self()
    peer.ready(LONG)
    peer.note("end")
    waiting.join(LONG)
    assert counted > 100 and not waiting.is_alive()


def test_closing_while_other_threads_are_in_calls(pair):
    agent, peer, inbox, remote = pair
    memory = agent.allocate(1 << 20)
    ended = []

    def copy():
        try:
            while True:
                agent.write(peer, memory, remote, timeout=LONG)
        except viaduct.Error as error:
            ended.append(error)

    threads = [threading.Thread(target=copy) for _ in range(3)]
    for thread in threads:
        thread.start()
    while agent.statistics()["done"] < 3:
        pass
    agent.close()
    for thread in threads:
        thread.join(LONG)
    assert len(ended) == 3
