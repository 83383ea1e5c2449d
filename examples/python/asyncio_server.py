#!/usr/bin/env python3
"""A server of pages in asyncio: clients ask with notes, and it writes into their memory.

asyncio_server.py [CLIENTS]    serves so many clients, which are tasks of the same program here
"""

import asyncio
import json
import sys

import viaduct

PAGE = 64 << 10
PAGES = 32


async def answer(agent, pages, note):
    """One request: {"page": 3, "address": where the client wants it}."""
    request = json.loads(note.data)
    client = agent.peer(note.sender)
    transfer = agent.plan("write", client, pages[[request["page"]]], (request["address"], PAGE))
    # The note follows the data. Other requests go on meanwhile.
    await transfer.post(note=f"page {request['page']}", timeout=10)


def fail_loudly(task):
    if not task.cancelled() and task.exception():
        print(f"server: a request failed: {task.exception()}", file=sys.stderr)


async def serve(agent):
    memory = agent.allocate(PAGE * PAGES)
    for number in range(PAGES):
        memoryview(memory)[number * PAGE:(number + 1) * PAGE] = bytes([number]) * PAGE
    pages = memory.blocks(PAGE)
    running = set()  # the loop itself keeps no task alive
    async for note in agent.notes():
        task = asyncio.create_task(answer(agent, pages, note))
        task.add_done_callback(fail_loudly)
        running.add(task)
        task.add_done_callback(running.discard)


async def visit(name, card):
    with viaduct.Agent(name=name) as agent:
        memory = agent.allocate(PAGE, label="page")
        server = agent.connect(card)
        await asyncio.to_thread(server.ready, 10)
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
