"""Exchanges metadata between agents over TCP: a listener, and calls to other agents' listeners.

In a call, the listener sends MAGIC and 16 random bytes. The caller sends one frame, and the
listener answers with one frame. A frame has a kind, the length of its content, the content, and an
HMAC. The HMAC covers the random bytes and the frame, and its key is VIADUCT_SECRET. Without a
secret, any caller can compute the HMAC.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import logging
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

# The kinds of frames: the callers send the first three, and the listener answers with the others.
TAKE, FETCH, FORGET, DONE, REFUSED = range(1, 6)


class ExchangeError(Exception):
    """The other side broke the protocol, or refused the call."""


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
            raise ExchangeError("the other side did not send a whole frame in time")
        sock.settimeout(left)
        part = sock.recv(min(size, 1 << 16))
        if not part:
            raise ExchangeError("the other side closed the connection before the end of a frame")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _receive(sock: socket.socket, nonce: bytes, until: float) -> tuple[int, bytes]:
    head = _receive_exactly(sock, HEAD.size, until)
    kind, size = HEAD.unpack(head)
    if size > MOST_BYTES or not TAKE <= kind <= REFUSED:
        raise ExchangeError("the other side does not speak the listener protocol of Viaduct")
    content = _receive_exactly(sock, size, until)
    proof = _receive_exactly(sock, hashlib.sha256().digest_size, until)
    if not hmac.compare_digest(proof, _proof(nonce, head, content)):
        raise ExchangeError("the other side has another VIADUCT_SECRET; set one on all sides")
    return kind, content


def _dial(host: str, port: int, until: float) -> socket.socket:
    """Connects to a listener. Retries until the time `until`: the listener may start later."""
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
    """Runs jobs one after another on its own thread. The thread ends when no job is left."""

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
            except Exception as error:  # only the log can tell: the caller's call has returned
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
        self.port = 0  # the port of the listener; 0: there is no listener

    def _worker(self, host: str, port: int) -> _Worker:
        return self._workers.setdefault((host, port), _Worker())

    def send(self, host: str, port: int, blob: bytes) -> None:
        """Sends this agent's metadata to the listener at that address."""
        self._worker(host, port).add(
            f"send metadata to {host}:{port}", lambda: _call(host, port, TAKE, blob)
        )

    def fetch(self, host: str, port: int) -> None:
        """Gets the metadata of the agent behind the listener, and adds it to this agent."""

        def job() -> None:
            blob = _call(host, port, FETCH, b"")
            agent = self._agent()
            if agent is not None:
                agent.loadRemoteMD(blob)

        self._worker(host, port).add(f"fetch metadata from {host}:{port}", job)

    def invalidate(self, host: str, port: int, name: str) -> None:
        """Tells the agent behind the listener to forget the agent of that name."""
        self._worker(host, port).add(
            f"invalidate metadata at {host}:{port}",
            lambda: _call(host, port, FORGET, name.encode()),
        )

    def find(self, name: str | bytes, label: str) -> None:
        """Finds an agent at the meeting place, the directory server where agents publish names.
        With a label, adds only the part of its metadata that it offers under that label."""

        def job() -> None:
            agent = self._agent()
            if agent is not None:
                agent.findRemote(name, label)

        self._worker("", 0).add(f"find agent {name!r}", job)

    def listen(self, port: int) -> None:
        """Answers callers in the background until the agent is garbage collected."""
        if socket.has_dualstack_ipv6():
            server = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        else:
            server = socket.create_server(("", port))
        self.port = server.getsockname()[1]
        logger.log(
            logging.DEBUG if port else logging.INFO,
            "MD listener is listening on port %d",
            self.port,
        )
        if not os.environ.get("VIADUCT_SECRET"):
            logger.warning(
                "any host that reaches port %d gets this agent's metadata, and with it access to "
                "the agent's memory; set VIADUCT_SECRET on all sides",
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
                        return  # shutdown: the agent is gone, or the interpreter exits
                    logger.warning("accept: %s", error)
                    time.sleep(TRY_EVERY)  # the process is out of descriptors: do not spin
                    continue
                if not self._callers.acquire(blocking=False):
                    sock.close()  # agents do not make this many calls at once
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
        except Exception as error:  # the caller gets the text of the error
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
        raise ExchangeError(f"a caller must not send a frame of kind {kind}")
