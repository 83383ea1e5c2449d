#!/usr/bin/env python3
"""Serves pages with asyncio: a client asks with a note, and the server writes into its memory.

asyncio_server.py [CLIENTS]    serves CLIENTS clients, which are tasks of this program
"""

import asyncio
import json
import sys

import viaduct

PAGE = 64 << 10
PAGES = 32


async def answer(agent, pages, note):
    """Answers one request: {"page": 3, "address": the address of the client's memory}."""
    request = json.loads(note.data)
    client = agent.peer(note.sender)
    transfer = agent.plan("write", client, pages[[request["page"]]], (request["address"], PAGE))
    # The note arrives after the data. The event loop serves other requests meanwhile.
    await transfer.post(note=f"page {request['page']}", timeout=10)


def fail_loudly(task):
    if not task.cancelled() and task.exception():
        print(f"server: a request failed: {task.exception()}", file=sys.stderr)


async def serve(agent):
    memory = agent.allocate(PAGE * PAGES)
    for number in range(PAGES):
        memoryview(memory)[number * PAGE:(number + 1) * PAGE] = bytes([number]) * PAGE
    pages = memory.blocks(PAGE)
    running = set()  # keeps the tasks alive; the event loop does not
    async for note in agent.notes():
        task = asyncio.create_task(answer(agent, pages, note))
        task.add_done_callback(fail_loudly)
        running.add(task)
        task.add_done_callback(running.discard)


async def visit(name, card):
    with viaduct.Agent(name=name) as agent:
        memory = agent.allocate(PAGE, label="page")
        server = agent.connect(card)
        await viaduct.awaitable(server.ready, 10)
        notes = agent.notes()
        for number in range(PAGES):
            server.note(json.dumps({"page": number, "address": memory.address}))
            note = await notes.__anext__()
            assert bytes(memory) == bytes([number]) * PAGE, note.text
    return PAGES


async def main(clients):
    with viaduct.Agent(name="server") as agent:
        serving = asyncio.create_task(serve(agent))
        visits = [visit(f"client {number}", agent.card) for number in range(clients)]
        served = sum(await asyncio.wait_for(asyncio.gather(*visits), timeout=60))
        serving.cancel()
        print(f"served {served} pages of {PAGE} bytes to {clients} clients")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
