"""Tests Ctrl-C, fork() and the exit of the interpreter."""

import os
import signal
import threading
import time

import pytest
from helpers import LONG, Program, Server

import viaduct

# This program posts a transfer to a stopped process. The transfer runs until it is cancelled.
STUCK = """
    import asyncio, os, sys, threading, time, viaduct
    settings = {"backends": "tcp", "detect": 300, "environment": False, "deadline": 300}
    agent = viaduct.Agent(name="client", grace=0.2, **settings)
    peer = agent.connect(bytes.fromhex(sys.argv[1]))
    peer.ready(30)
    remote = peer.pin("inbox", 30)
    memory = agent.allocate(64 << 20)
    transfer = agent.plan("write", peer, memory, remote)
    print("planned", flush=True)
    sys.stdin.readline()
    transfer.post()
"""


@pytest.fixture
def server():
    with Server(inbox=64 << 20, backends="tcp", detect=300, environment=False) as started:
        yield started


def stuck(server, rest):
    """Starts a program that posts a transfer to the stopped server, and then runs `rest`."""
    program = Program(STUCK + rest, server.card.hex(), stderr=-1)
    assert program.line() == "planned"
    server.signal(signal.SIGSTOP)
    program.process.stdin.write("\n")
    program.process.stdin.flush()
    return program


WAITS = {
    "a transfer": "transfer.wait()",
    "a note": "agent.wait_note()",
    "a pin": "peer.pin('nothing')",
    "an end": "peer.over()",
    "a mark": "agent.open_marks(peer, 1, 1).wait(0)",
    "a part": "agent.fetch(peer, 'kv', {(0, 0): memory}).wait_part((0, 0))",
    "a write": "agent.write(peer, memory.blocks(4096)[[0]], remote.blocks(4096)[[0]])",
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS.keys())
def test_ctrl_c_ends_a_wait(server, wait):
    rest = f"""
    import signal
    began = time.monotonic()
    try:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        {wait}
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - began < 20, transfer.state, flush=True)
"""
    with stuck(server, rest) as program:
        status, output = program.finish()
    # The cancelled write closes the sockets to the stopped peer, which both transfers use.
    states = ("running", "failed") if "agent.write" in wait else ("running",)
    assert output in [f"interrupted True {state}\n" for state in states] and status == 0


def test_a_signal_handler_runs_during_a_wait():
    with viaduct.Agent(environment=False) as agent:
        handled = []
        before = signal.signal(signal.SIGUSR1, lambda *_: handled.append(1))
        try:
            timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
            timer.start()
            with pytest.raises(viaduct.TimeoutError):
                agent.wait_note(1)
            timer.join()
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert handled == [1]


EXITS = {
    "at the end": "",
    "sys.exit": "\n    sys.exit(0)\n",
    "with a waiting daemon thread":
        "\n    threading.Thread(target=transfer.wait, daemon=True).start()\n",
    "with daemon threads that poll": """
    def poll():
        while not transfer.poll():
            pass
    for _ in range(3):
        threading.Thread(target=poll, daemon=True).start()
""",
    "with a daemon thread that waits for notes":
        "\n    threading.Thread(target=agent.wait_note, daemon=True).start()\n",
    "in a cycle": "\n    cycle = [transfer]; cycle.append(cycle)\n    del transfer\n",
    "with views": "\n    view = memoryview(memory)\n",
    "in a loop": """
    async def main():
        asyncio.ensure_future(transfer)
        await asyncio.sleep(0)
    asyncio.run(main())
""",
    "with a loop that was not closed": """
    loop = asyncio.new_event_loop()
    loop.create_task(asyncio.wait_for(transfer, 100))
    loop.call_later(0.1, loop.stop)
    loop.run_forever()
""",
}


@pytest.mark.parametrize("rest", EXITS.values(), ids=EXITS.keys())
def test_the_interpreter_exits_with_a_transfer_in_flight(server, rest):
    began = time.monotonic()
    with stuck(server, rest) as program:
        _, errors = program.process.communicate(timeout=LONG)
    assert program.process.returncode == 0, errors
    assert time.monotonic() - began < LONG
    assert "Fatal" not in errors and "terminate" not in errors


def test_an_exception_ends_the_interpreter_with_a_transfer_in_flight(server):
    with stuck(server, "\n    raise SystemExit(3)\n") as program:
        assert program.finish()[0] == 3


def in_child(call):
    """Returns the repr of the result of `call`, or the text of its error, in a child of fork()."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writes, repr(call()).encode())
        except BaseException as error:
            os.write(writes, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return told


def test_a_child_of_fork_gets_exceptions_and_the_parent_goes_on(pair):
    agent, peer, inbox, remote = pair
    memory = agent.allocate(1 << 20)
    transfer = agent.plan("write", peer, memory, remote)
    for call in (lambda: agent.allocate(1), lambda: agent.take_note(), lambda: agent.poll(),
                 lambda: agent.wait_note(), lambda: transfer.post(), lambda: transfer.wait(),
                 lambda: peer.ready(), lambda: peer.state, lambda: peer.note(b""),
                 lambda: agent.plan("write", peer, memory, remote), lambda: agent.card):
        told = in_child(call)
        assert told.startswith("InvalidError: ") and "before fork()" in told
        assert "spawn" in told
    assert in_child(lambda: (repr(agent), repr(peer), repr(memory)[:12], agent.close())) == \
        repr(("<viaduct.Agent of the parent process>", "<viaduct.Peer of the parent process>",
              "<viaduct.Pin", None))
    assert in_child(lambda: agent.__exit__() or memory.release() or transfer.close()) == "None"
    agent.write(peer, memory, remote, timeout=LONG)


def test_a_child_of_fork_that_runs_to_its_exit_does_not_disturb_the_parent():
    program = """
    import os, viaduct
    agent = viaduct.Agent(name="parent", environment=False)
    peer = agent.self()
    peer.ready(30)
    memory = agent.allocate(4096, "m")
    peer.pin("m", 30)
    transfer = agent.plan("write", peer, memory.blocks(2048)[[0]], memory.blocks(2048)[[1]])
    child = os.fork()
    if child != 0:
        _, status = os.waitpid(child, 0)
        transfer.post(note="after").wait(30)
        print(status, agent.wait_note(30).text)
    """
    with Program(program) as process:
        assert process.finish() == (0, "0 after\n")


def test_a_child_of_fork_opens_an_agent_of_its_own(agent):
    def child():
        with viaduct.Agent(name="child", environment=False) as mine:
            peer = mine.connect(agent_card)
            peer.ready(LONG)
            peer.note("from the child")
            return mine.self().agent.name

    agent_card = agent.card
    assert in_child(child) == "'child'"
    assert agent.wait_note(LONG).text == "from the child"


def test_an_agent_that_is_never_freed_says_goodbye_when_the_interpreter_exits(agent):
    program = """
    import ctypes, sys, viaduct
    agent = viaduct.Agent(name="leaked", environment=False)
    peer = agent.connect(bytes.fromhex(sys.argv[1]))
    peer.ready(30)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(agent))
    """
    with Program(program, agent.card.hex()) as process:
        assert process.finish() == (0, "")
    peer = agent.peer("leaked")
    peer.over(1, LONG)
    assert peer.state == "gone"
