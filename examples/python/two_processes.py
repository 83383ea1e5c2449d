#!/usr/bin/env python3
"""Runs a server that offers memory, or a client that fills the memory and sends a note.

two_processes.py server FILE    writes its card to FILE and waits for one note
two_processes.py client FILE    waits for the card, writes, and waits for an answer
"""

import os
import sys
import time

import viaduct

BYTES = 1 << 20


def save_card(card, file):
    # A card is a secret, so only the owner may read the file. The rename publishes a whole file.
    part = file + ".part"
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(card)
    os.rename(part, file)


def load_card(file):
    end = time.monotonic() + 10
    while not os.path.exists(file):
        if time.monotonic() > end:
            sys.exit(f"{file} did not appear: start the server first")
        time.sleep(0.01)
    with open(file, "rb") as card:
        return card.read()


def serve(file):
    with viaduct.Agent(name="server") as agent:
        inbox = agent.allocate(BYTES, label="inbox")
        save_card(agent.card, file)

        # The note arrives after all data, so the server need not wait for the data itself.
        note = agent.wait_note(timeout=30)
        first = chr(memoryview(inbox)[0])
        print(f'server: {note.sender} says "{note.text}", and the first byte is {first!r}')
        client = agent.peer(note.sender)
        client.note("thank you")
        # Wait until the client leaves. The end of this agent could otherwise cut off the answer.
        client.over(timeout=30)


def visit(file):
    card = load_card(file)
    with viaduct.Agent(name="client") as agent:
        memory = agent.allocate(BYTES)
        memoryview(memory)[:] = b"x" * BYTES

        server = agent.connect(card)
        server.ready(timeout=10)
        inbox = server.pin("inbox", timeout=10)
        transfer = agent.write(server, memory, inbox, note="it is full", timeout=10)

        answer = agent.wait_note(timeout=10)
        print(f"client: {transfer.path}; answer: {answer.text}")


def main():
    roles = {"server": serve, "client": visit}
    if len(sys.argv) != 3 or sys.argv[1] not in roles:
        sys.exit("usage: two_processes.py server|client CARD-FILE")
    try:
        roles[sys.argv[1]](sys.argv[2])
    except viaduct.Error as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
