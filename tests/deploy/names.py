"""names.py ADDRESS ZONE: the name server of a cluster. ZONE has lines `name address`.

Each name is late: its first queries are answered with "no such name", as for a pod that has no address yet. The
server writes the names that it has answered so to ZONE.late.
"""

import socket
import struct
import sys

LATE = 6
OFFSET = struct.Struct(">HHHHHH")


def addresses(zone):
    with open(zone, encoding="ascii") as file:
        return dict(line.split() for line in file if line.strip())


def question(packet):
    """The name, its type and where the question ends."""
    labels, at = [], OFFSET.size
    while packet[at]:
        labels.append(packet[at + 1 : at + 1 + packet[at]].decode("ascii").lower())
        at += 1 + packet[at]
    return ".".join(labels), struct.unpack(">H", packet[at + 1 : at + 3])[0], at + 5


def answer(packet, known, asked):
    name, kind, end = question(packet)
    here = name in known
    if here and kind == 1:
        asked[name] = asked.get(name, 0) + 1
    late = here and asked.get(name, 0) <= LATE
    records = b""
    if here and not late and kind == 1:
        records = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + socket.inet_aton(known[name])
    code = 0 if here and not late else 3
    head = OFFSET.pack(struct.unpack(">H", packet[:2])[0], 0x8180 | code, 1, 1 if records else 0, 0, 0)
    return head + packet[OFFSET.size : end] + records


def main():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((sys.argv[1], 53))
    print("serves", flush=True)
    asked = {}
    while True:
        packet, who = server.recvfrom(512)
        before = dict(asked)
        server.sendto(answer(packet, addresses(sys.argv[2]), asked), who)
        for name in asked.keys() - before.keys():
            with open(sys.argv[2] + ".late", "a", encoding="ascii") as file:
                file.write(name + "\n")


if __name__ == "__main__":
    main()
