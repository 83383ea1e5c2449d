"""Metadata between agents over TCP: a listener, and calls to the listeners of others.

In a call, the listener sends MAGIC and 16 random bytes, the caller sends one frame, and the listener
answers with one. A frame is its kind, the length of its content, the content, and an HMAC under
VIADUCT_SECRET over the random bytes and the frame. Without the secret the HMAC keeps nobody out.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import queue
import socket
import struct
import threading
import time
import weakref
from typing import Any, Callable

from nixl.logging import get_logger

logger = get_logger(__name__)

MAGIC = b"VIADMETA1"
NONCE_BYTES = 16
HEAD = struct.Struct("<BI")
MOST_BYTES = 8 << 20
MOST_CALLERS = 64
REACH_WITHIN = 5.0
TRY_EVERY = 0.05

# Kinds of frames.
TAKE, FETCH, FORGET, DONE, REFUSED = range(1, 6)


class ExchangeError(Exception):
    """The other side sent what it must not, or refused."""


def _proof(nonce: bytes, head: bytes, content: bytes) -> bytes:
    secret = os.environ.get("VIADUCT_SECRET", "").encode()
    return hmac.new(secret, nonce + head + content, hashlib.sha256).digest()


def _send(sock: socket.socket, nonce: bytes, kind: int, content: bytes) -> None:
    head = HEAD.pack(kind, len(content))
    sock.sendall(head + content + _proof(nonce, head, content))


def _receive_exactly(sock: socket.socket, size: int, until: float) -> bytes:
    parts = []
    while size > 0:
        left = until - time.monotonic()
        if left <= 0:
            raise ExchangeError("the other side sends too slowly")
        sock.settimeout(left)
        part = sock.recv(min(size, 1 << 16))
        if not part:
            raise ExchangeError("the connection was closed in the middle")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _receive(sock: socket.socket, nonce: bytes, until: float) -> tuple[int, bytes]:
    head = _receive_exactly(sock, HEAD.size, until)
    kind, size = HEAD.unpack(head)
    if size > MOST_BYTES or not TAKE <= kind <= REFUSED:
        raise ExchangeError("the other side does not speak this protocol")
    content = _receive_exactly(sock, size, until)
    proof = _receive_exactly(sock, hashlib.sha256().digest_size, until)
    if not hmac.compare_digest(proof, _proof(nonce, head, content)):
        raise ExchangeError("the other side has another VIADUCT_SECRET")
    return kind, content


def _dial(host: str, port: int, until: float) -> socket.socket:
    """Connects. A listener that is not there yet is tried again until then."""
    while True:
        try:
            return socket.create_connection(
                (host, port), timeout=max(0.01, until - time.monotonic())
            )
        except ConnectionRefusedError:
            if time.monotonic() + TRY_EVERY >= until:
                raise
            time.sleep(TRY_EVERY)


def _call(host: str, port: int, kind: int, content: bytes) -> bytes:
    until = time.monotonic() + REACH_WITHIN
    with _dial(host, port, until) as sock:
        greeting = _receive_exactly(sock, len(MAGIC) + NONCE_BYTES, until)
        if not greeting.startswith(MAGIC):
            raise ExchangeError("no listener of Viaduct's nixl package answers there")
        nonce = greeting[len(MAGIC) :]
        sock.settimeout(max(0.01, until - time.monotonic()))
        _send(sock, nonce, kind, content)
        answer, text = _receive(sock, nonce, until)
    if answer == REFUSED:
        raise ExchangeError(text.decode(errors="replace"))
    return text


class _Worker:
    """Runs jobs one after another on a thread of its own, which ends when there are none."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[str, Callable[[], None]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._left = 0

    def add(self, what: str, job: Callable[[], None]) -> None:
        with self._lock:
            if self._left == 0:  # if no thread can start, the job is refused and not forgotten
                threading.Thread(target=self._run, name="nixl-metadata", daemon=True).start()
            self._jobs.put((what, job))
            self._left += 1

    def _run(self) -> None:
        while True:
            what, job = self._jobs.get()
            try:
                job()
            except Exception as error:  # there is no caller to tell: the call has returned
                logger.warning("%s: %s", what, error)
            with self._lock:
                self._left -= 1
                if self._left == 0:
                    return


class Exchange:
    """Sends, fetches and serves the metadata of one agent in the background."""

    def __init__(self, agent: Any):
        self._agent = weakref.ref(agent)
        self._workers: dict[tuple[str, int], _Worker] = {}
        self._callers = threading.BoundedSemaphore(MOST_CALLERS)
        self.port = 0  # where it listens; 0: nowhere

    def _worker(self, host: str, port: int) -> _Worker:
        return self._workers.setdefault((host, port), _Worker())

    def send(self, host: str, port: int, blob: bytes) -> None:
        """Gives the agent there this one's metadata."""
        self._worker(host, port).add(
            f"send metadata to {host}:{port}", lambda: _call(host, port, TAKE, blob)
        )

    def fetch(self, host: str, port: int) -> None:
        """Gets the metadata of the agent there, and adds it."""

        def job() -> None:
            blob = _call(host, port, FETCH, b"")
            agent = self._agent()
            if agent is not None:
                agent.loadRemoteMD(blob)

        self._worker(host, port).add(f"fetch metadata from {host}:{port}", job)

    def invalidate(self, host: str, port: int, name: str) -> None:
        """Makes the agent there forget the one of that name."""
        self._worker(host, port).add(
            f"invalidate metadata at {host}:{port}",
            lambda: _call(host, port, FORGET, name.encode()),
        )

    def find(self, name: str | bytes) -> None:
        """Looks an agent up at the meeting place."""

        def job() -> None:
            agent = self._agent()
            if agent is not None:
                agent.findRemote(name)

        self._worker("", 0).add(f"find agent {name!r}", job)

    def listen(self, port: int) -> None:
        """Answers others, until the agent is gone."""
        if socket.has_dualstack_ipv6():
            server = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        else:
            server = socket.create_server(("", port))
        self.port = server.getsockname()[1]
        if not os.environ.get("VIADUCT_SECRET"):
            logger.warning(
                "whoever reaches port %d gets this agent's metadata, and with it access to its "
                "memory; set VIADUCT_SECRET on all sides",
                self.port,
            )
        weakref.finalize(self._agent(), server.shutdown, socket.SHUT_RDWR)
        threading.Thread(
            target=self._accept, args=(server,), name="nixl-listener", daemon=True
        ).start()

    def _accept(self, server: socket.socket) -> None:
        with server:
            while self._agent() is not None:
                try:
                    sock, _ = server.accept()
                except OSError as error:
                    if error.errno == errno.EINVAL:
                        return  # it was shut down: the agent is gone, or the interpreter goes
                    logger.warning("accept: %s", error)
                    time.sleep(TRY_EVERY)  # the process is out of descriptors
                    continue
                if not self._callers.acquire(blocking=False):
                    sock.close()  # so many at once are no agents
                    continue
                try:
                    threading.Thread(target=self._serve, args=(sock,), daemon=True).start()
                except RuntimeError as error:  # no more threads: the caller may try again
                    logger.warning("accept: %s", error)
                    sock.close()
                    self._callers.release()

    def _serve(self, sock: socket.socket) -> None:
        try:
            with sock:
                self._answer(sock)
        except (OSError, ExchangeError) as error:
            logger.debug("a caller of the metadata listener: %s", error)
        finally:
            self._callers.release()

    def _answer(self, sock: socket.socket) -> None:
        until = time.monotonic() + REACH_WITHIN
        sock.settimeout(REACH_WITHIN)
        nonce = os.urandom(NONCE_BYTES)
        sock.sendall(MAGIC + nonce)
        kind, content = _receive(sock, nonce, until)
        agent = self._agent()
        if agent is None:
            return
        try:
            answer = self._obey(agent, kind, content)
        except Exception as error:  # the caller is told what is wrong with its frame
            return _send(sock, nonce, REFUSED, str(error).encode())
        _send(sock, nonce, DONE, answer)

    @staticmethod
    def _obey(agent: Any, kind: int, content: bytes) -> bytes:
        if kind == TAKE:
            return agent.loadRemoteMD(content)
        if kind == FETCH:
            return agent.getLocalMD()
        if kind == FORGET:
            agent.invalidateRemoteMD(content)
            return b""
        raise ExchangeError(f"nobody sends a frame of kind {kind} to a listener")
