#!/usr/bin/env python3
"""Measures transfers between two hosts from Python, with the flags of `viaduct p2p`.

On the first host:   p2p.py --mode target    --ip 192.168.1.100 --port 5555
On the second one:   p2p.py --mode initiator --ip 192.168.1.100 --port 5555 --buffer_sizes 1MB,16MB

Both commands name the target's address. The target serves one initiator after another until Ctrl-C.
Both ends must run this program, because it does not talk to `viaduct p2p`. Unlike `viaduct p2p`, it
neither proves the path nor measures the machine's ceiling. On SIGTERM the target drains: a running
transfer ends, and no new one begins.
"""

import argparse
import collections
import errno
import os
import re
import signal
import sys
import time

import viaduct

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "KIB": 1 << 10, "MIB": 1 << 20,
         "GIB": 1 << 30, "KB": 10**3, "MB": 10**6, "GB": 10**9}
# Explains the errno of a failed connect or listen, and names the command or flag that helps.
REASONS = {
    errno.ECONNREFUSED: "no process listens there: start the target with this address and port",
    errno.ETIMEDOUT: "no answer: a firewall drops the packets, or the host is down; test with "
                     "nc -vz HOST PORT",
    errno.EHOSTUNREACH: "no route: ip route get ADDRESS shows it",
    errno.ENETUNREACH: "no route: ip route get ADDRESS shows it",
    errno.EADDRINUSE: "the port is in use: stop the other target (ss -ltnp lists it), or choose "
                      "another --port",
    errno.EADDRNOTAVAIL: "this host does not have the address: --ip is the target's own address; "
                         "ip -brief address lists those of this host",
    errno.EACCES: "ordinary users may not open this port: choose a --port of 1024 or more",
}


class Size:
    """Parses a size such as 4KB, and keeps its text for the output."""

    def __init__(self, text):
        match = re.fullmatch(r"(\d+)([A-Za-z]*)", text)
        factor = UNITS.get(match[2].upper()) if match else None
        if not factor or int(match[1]) == 0:
            raise argparse.ArgumentTypeError(
                f"{text!r} is no size: write 4KB (10^3 bytes each), 4KiB or 4K (2^10), 1MB, 1GiB")
        self.text, self.bytes = text, int(match[1]) * factor


def sizes(text):
    return [Size(one) for one in text.split(",")]


def count(text):
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of transfers")
    return int(text)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=["target", "initiator"], required=True)
    parser.add_argument("--ip", required=True, help="the target's address, at both ends")
    parser.add_argument("--port", type=int, default=5555)
    parser.add_argument("--buffer_sizes", "--buffer-sizes", type=sizes,
                        default=sizes("4KB,64KB,1MB,16MB,64MB"), metavar="SIZES",
                        help="joined by commas, such as 1MB,16MB,64MB")
    parser.add_argument("--iterations", type=count, default=100, help="timed transfers of a size")
    parser.add_argument("--warmup", type=count, default=10, help="transfers before them")
    parser.add_argument("--op", choices=["write", "read"], default="write")
    parser.add_argument("--secret", default=os.environ.get("VIADUCT_SECRET", ""),
                        help="a word that both ends have to know")
    parser.add_argument("--require", default="", help="the path has to be: rdma, same-host, "
                        "not-tcp, backend:NAME")
    parser.add_argument("--timeout", type=float, default=10.0,
                        help="seconds to reach the target, and to wait for it while it is busy")
    parser.add_argument("--drain", type=float, default=20.0, metavar="SECONDS",
                        help="time for a running transfer to end after SIGTERM, at the target")
    parser.add_argument("--cuda", action="store_true",
                        help="this end's buffer is memory of a GPU; each end chooses for itself")
    parser.add_argument("--gpu_id", "--gpu-id", type=int, default=0)
    given = parser.parse_args()
    if given.iterations == 0:
        parser.error("--iterations 0 measures nothing: give at least 1")
    return given


def where(given):
    return f"[{given.ip}]:{given.port}" if ":" in given.ip else f"{given.ip}:{given.port}"


def open_agent(given, listen):
    secret = {"secret": given.secret} if given.secret else {"insecure": True}
    return viaduct.Agent(listen=listen, **secret)


def allocate(agent, given, size, label):
    return agent.allocate(size, label=label, device=given.gpu_id if given.cuda else None)


def explained(error, action):
    """Returns one line: the failed action, the likely cause, and what to check."""
    reason = REASONS.get(error.os_errno)
    if isinstance(error, viaduct.DeniedError) and not reason:
        reason = "wrong secret: give both ends the same --secret"
    return f"{action}: {reason} ({error.detail})" if reason else f"{action}: {error}"


class Target:
    """Lends a buffer to one initiator at a time, until the initiator leaves."""

    def __init__(self, agent, given):
        self.agent, self.given, self.waiting = agent, given, collections.deque()
        self.current = self.buffer = None
        self.limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4

    def serve(self):
        while True:
            try:
                note = self.agent.wait_note(timeout=0.5)
            except viaduct.TimeoutError:
                self.forget_the_lost()
                continue
            self.handle(note.sender, note.text)

    def handle(self, sender, text):
        wanted = re.fullmatch(r"lend (\d+) as (\d+)", text)
        if text == "bye":
            self.leave(sender)
        elif not wanted:
            self.tell(sender, f"refused: {text[:40]!r} is no request of p2p.py")
        elif self.current in (None, sender):
            self.lend(sender, int(wanted[1]), wanted[2])
        else:
            self.waiting.append((sender, text))
            self.tell(sender, f"busy with {self.current}")

    def tell(self, sender, text):
        try:
            self.agent.peer(sender).note(text)
        except viaduct.Error as error:  # the initiator has left meanwhile
            print(f"{sender}: {error}", file=sys.stderr, flush=True)

    def lend(self, sender, size, label):
        if self.current is None:
            print(f"{sender} measures", flush=True)
        self.release()
        self.current = sender
        try:
            if size > self.limit:
                self.tell(sender, f"refused: {size} bytes are more than a quarter of its memory")
            else:
                self.buffer = allocate(self.agent, self.given, size, f"{sender} {label}")
        except viaduct.Error as error:
            self.tell(sender, f"refused: {error}")

    def leave(self, sender):
        if sender != self.current:
            return
        print(f"{sender} has left", flush=True)
        self.release()
        self.current = None
        while self.waiting and self.current is None:
            sender, text = self.waiting.popleft()
            if self.is_there(sender):
                self.handle(sender, text)

    def is_there(self, sender):
        return any(peer.name == sender and peer.state == "ready" for peer in self.agent.peers)

    def release(self):
        if self.buffer is not None:
            self.buffer.release()
            self.buffer = None

    def forget_the_lost(self):
        if self.current is not None and not self.is_there(self.current):
            self.leave(self.current)


class Terminated(Exception):
    """SIGTERM has come."""


def terminate(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


def leave(agent, seconds):
    print(f"SIGTERM: draining for up to {seconds:g} s", flush=True)
    for rest in agent.drain(timeout=seconds):
        print(f"{rest['peer']} was cut off: {rest}", file=sys.stderr, flush=True)
    print("drained", flush=True)


def run_target(given):
    try:
        agent = open_agent(given, where(given))
    except viaduct.Error as error:
        sys.exit(explained(error, f"listen on {where(given)}"))
    with agent:
        print(f"p2p target on {where(given)}")
        if not given.secret:
            print("no secret: every initiator that reaches the port may use the buffers of this "
                  "measurement; --secret WORD at both ends closes it")
        signal.signal(signal.SIGTERM, terminate)
        print(f"waiting for: p2p.py --mode initiator --ip {given.ip} --port {given.port}",
              flush=True)
        target = Target(agent, given)
        try:
            target.serve()
        except Terminated:
            leave(agent, given.drain)


class Initiator:
    def __init__(self, agent, peer, given):
        self.agent, self.peer, self.given, self.turn = agent, peer, given, 0

    def remote(self, size):
        """Returns a buffer of the target. Waits while the target serves another initiator."""
        self.turn += 1
        self.peer.note(f"lend {size} as {self.turn}")
        end = time.monotonic() + self.given.timeout
        while (left := end - time.monotonic()) > 0:
            try:
                return self.peer.pin(f"{self.agent.name} {self.turn}", timeout=min(left, 0.2))
            except viaduct.TimeoutError:
                self.report(self.agent.take_note())
        sys.exit(f"no buffer of {size} bytes at the target within {self.given.timeout:g} s; look "
                 "at the target's output, or give a longer --timeout")

    def report(self, note):
        if note is None:
            return
        if note.text.startswith("refused"):
            sys.exit(f"the target has {note.text}; give smaller --buffer_sizes")
        print(f"the target is {note.text}: waiting up to {self.given.timeout:g} s",
              file=sys.stderr, flush=True)

    def here(self, local, name):
        """Returns the place of this end's buffer: memory of a GPU is reached as by a peer."""
        if not self.given.cuda:
            return None, local
        me = self.agent.self()
        return me, me.pin(name)

    def fill(self, place, host, pattern):
        peer, memory = place
        repeated(pattern, host if peer else memory)
        if peer:
            self.agent.write(peer, host, memory)

    def is_full(self, place, host, pattern):
        peer, memory = place
        if peer:
            self.agent.read(peer, host, memory)
        return is_repeated(pattern, host if peer else memory)

    def measure(self, size):
        remote = self.remote(size.bytes)
        name = f"local {self.turn}"
        with allocate(self.agent, self.given, size.bytes, name) as local, \
                self.agent.allocate(size.bytes) as host:
            ours, theirs = self.here(local, name), (self.peer, remote)
            source, destination = (ours, theirs) if self.given.op == "write" else (theirs, ours)
            expected = os.urandom(min(size.bytes, 1 << 20))
            self.fill(source, host, expected)
            self.fill(destination, host, b"\0")
            times, path = self.timed(local, remote)
            if not self.is_full(destination, host, expected):
                sys.exit(f"{size.text}: the bytes that arrived are not those that were sent")
        mean = sum(times) / len(times)
        print(f"{size.text:>8} {len(times):>10} {size.bytes / mean / 1e9:>8.3g} "
              f"{mean * 1e6:>9.4g}  {path}", flush=True)

    def timed(self, local, remote):
        """Returns the times of the transfers in seconds, and all paths that they took."""
        times, paths = [], set()
        with self.agent.plan(self.given.op, self.peer, local, remote,
                             require=self.given.require) as transfer:
            for turn in range(self.given.warmup + self.given.iterations):
                began = time.perf_counter()
                transfer.post().wait()
                elapsed = time.perf_counter() - began
                if turn >= self.given.warmup:
                    times.append(elapsed)
                    paths.update(carrier(share) for share in transfer.path.shares)
        return times, ", ".join(sorted(paths))


def carrier(share):
    """Returns a path such as "tcp/socket over eth0". The rail "any" was chosen by the system."""
    rail = "" if share.rail == "any" else f" over {share.rail}"
    return f"{share.backend}/{share.way}{rail}"


def repeated(pattern, pin):
    view = memoryview(pin)
    pattern *= max(1, (1 << 20) // len(pattern))
    for start in range(0, len(view), len(pattern)):
        part = view[start:start + len(pattern)]
        part[:] = pattern[:len(part)]


def is_repeated(pattern, pin):
    view = memoryview(pin)
    return all(view[start:start + len(pattern)] == pattern[:len(view) - start]
               for start in range(0, len(view), len(pattern)))


def run_initiator(given):
    with open_agent(given, "") as agent:
        try:
            peer = agent.connect(where(given))
            peer.ready(timeout=given.timeout)
        except viaduct.Error as error:
            sys.exit(explained(error, f"connect to {where(given)}"))
        print(f"p2p initiator: {where(given)} is {peer.name}")
        memory = f"memory of GPU {given.gpu_id}" if given.cuda else "host memory"
        print(f"{given.op}: {memory}, the same block for each transfer\n")
        print(f"{'size':>8} {'iterations':>10} {'GB/s':>8} {'mean us':>9}  carried by", flush=True)
        initiator = Initiator(agent, peer, given)
        try:
            for size in given.buffer_sizes:
                initiator.measure(size)
            peer.note("bye")
        except viaduct.Error as error:
            sys.exit(f"p2p: {error}")


if __name__ == "__main__":
    options = arguments()
    try:
        run_target(options) if options.mode == "target" else run_initiator(options)
    except KeyboardInterrupt:
        sys.exit(0 if options.mode == "target" else 130)
