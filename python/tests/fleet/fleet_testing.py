"""Provides processes, pipes, memory and byte patterns for the tests of this folder.

A role is a function of a test file. `Child(role, ...)` runs it in a process of its own, as an
engine runs its prefill and decode workers. Arguments may be ends of `link()`: a pipe that
stands for the channel over which an engine exchanges metadata.
"""

import importlib
import os
import signal
import subprocess
import sys
import time
import traceback
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

import numpy
import pytest

# This timeout only turns a hang into a failure. No test depends on the speed of the machine.
PATIENCE_S = 100.0
POISON = 0xDB
# The local backend copies without help of the peer. Over TCP the peer has to answer.
TCP = {"VIADUCT_BACKENDS": "tcp"}
BACKENDS = pytest.mark.parametrize("environment", [{}, TCP], ids=["local", "tcp"])


def link():
    """Returns the two ends of a pipe, to be passed as arguments to two children."""
    return Pipe(duplex=True)


def take(pipe):
    """Returns the pipe's next message. Raises after a timeout, so that a test fails, not hangs."""
    if not pipe.poll(PATIENCE_S):
        raise TimeoutError(f"no message on the pipe within {PATIENCE_S:g} s")
    return pipe.recv()


def until(condition, awaited, pause_s=0.001):
    """Calls `condition()` until it returns a true value, as engines poll. Returns that value."""
    end = time.monotonic() + PATIENCE_S
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE_S:g} s for {awaited}")
        time.sleep(pause_s)


class Child:
    """Runs one role in a process. The end of the `with` block kills a process that still runs."""

    def __init__(self, role, *arguments, namespace=None, **environment):
        inside = ["ip", "netns", "exec", namespace] if namespace else []
        self._control, theirs = Pipe(duplex=True)
        pipes = [argument for argument in arguments if isinstance(argument, Connection)]
        descriptors = [pipe.fileno() for pipe in [theirs, *pipes]]
        command = [sys.executable, __file__, role.__module__, role.__name__, str(theirs.fileno())]
        self._process = subprocess.Popen([*inside, *command], pass_fds=descriptors,
                                         env={**os.environ, **environment})
        self._control.send([_Descriptor(argument.fileno()) if isinstance(argument, Connection)
                            else argument for argument in arguments])
        for pipe in [theirs, *pipes]:
            pipe.close()

    @property
    def pid(self):
        return self._process.pid

    def tell(self, message):
        """Sends a message to the role, which receives it by Parent.hear()."""
        self._control.send(message)

    def hear(self):
        """Returns the next message or the result of the role. Raises if the role failed."""
        try:
            kind, value = take(self._control)
        except EOFError:
            self._process.wait(PATIENCE_S)
            raise AssertionError(f"the process ended early, code {self._process.returncode}")
        assert kind != "error", f"in the process {self.pid}:\n{value}"
        return value

    def result(self):
        """Returns the result of the role. Checks that its process exits with code 0."""
        value = self.hear()
        assert self._process.wait(PATIENCE_S) == 0, "the interpreter crashed on its way out"
        return value

    def freeze(self):
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self._process.send_signal(signal.SIGCONT)

    def kill(self):
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self.kill()
        self._control.close()


def results(*children):
    """Returns the results of all roles. Raises the first error of any role."""
    waiting = {child._control: child for child in children}
    values = {}
    while waiting:
        ready = wait(list(waiting), PATIENCE_S)
        assert ready, f"no role ended within {PATIENCE_S:g} s"
        for control in ready:
            child = waiting.pop(control)
            values[child] = child.result()
    return [values[child] for child in children]


def run_together(first, second, *arguments, **environment):
    """Runs two roles `role(pipe, *arguments)`, linked by a pipe. Returns both results."""
    one, other = link()
    with Child(first, one, *arguments, **environment) as a:
        with Child(second, other, *arguments, **environment) as b:
            return results(a, b)


class _Descriptor:
    """Carries the descriptor of an inherited pipe to a child, which opens the pipe again."""

    def __init__(self, number):
        self.number = number


class Parent:
    """Lets a role talk to the process of its test."""

    pipe = None

    @classmethod
    def tell(cls, message):
        cls.pipe.send(("message", message))

    @classmethod
    def hear(cls):
        return take(cls.pipe)


def direct_flag(folder):
    """Returns O_DIRECT, or 0 if the file system of the folder refuses it."""
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT))
    except OSError:
        return 0
    return os.O_DIRECT


def address_of(array):
    return array.__array_interface__["data"][0]


def pattern(seed, size):
    """Returns bytes in which every word depends on its position and on the seed."""
    words = numpy.arange((size + 7) // 8, dtype=numpy.uint64) + numpy.uint64(seed << 32)
    words *= numpy.uint64(0x9E3779B97F4A7C15)
    return (words ^ (words >> numpy.uint64(29))).view(numpy.uint8)[:size]


def poison(size):
    return numpy.full(size, POISON, dtype=numpy.uint8)


def expect_bytes(found, wanted, place):
    """Compares two arrays byte by byte. The error names the first byte that differs."""
    assert len(found) == len(wanted), f"{place}: {len(found)} bytes in place of {len(wanted)}"
    wrong = numpy.flatnonzero(numpy.asarray(found) != numpy.asarray(wanted))
    assert not len(wrong), (f"{place}: {len(wrong)} of {len(wanted)} bytes differ, first at "
                            f"{wrong[0]}: {found[wrong[0]]:#x}, not {wanted[wrong[0]]:#x}")


class KvCache:
    """Holds the paged cache of one worker: layers of blocks. Each layer is a separate array."""

    def __init__(self, layers, blocks, block_bytes):
        self.layers, self.blocks, self.block_bytes = layers, blocks, block_bytes
        self.memory = [poison(blocks * block_bytes) for _ in range(layers)]

    def regions(self):
        """Returns one 4-tuple for each layer, to register the cache."""
        return [(address_of(layer), layer.nbytes, 0, "") for layer in self.memory]

    def rows(self):
        """Returns an N x 3 array of uint64: one row for each block, layer after layer."""
        return rows_of([address_of(layer) for layer in self.memory], self.blocks, self.block_bytes)

    def indices(self, blocks):
        """Returns the row numbers of these blocks in all layers."""
        layers = numpy.arange(self.layers, dtype=numpy.int64)[:, None] * self.blocks
        return (layers + numpy.asarray(blocks, dtype=numpy.int64)[None, :]).reshape(-1)

    def block(self, layer, block):
        start = block * self.block_bytes
        return self.memory[layer][start:start + self.block_bytes]

    def fill(self, blocks, seed):
        """Writes a request's content. It depends on the list's order, not on block numbers."""
        for layer in range(self.layers):
            for i, block in enumerate(blocks):
                self.block(layer, block)[:] = content(seed, layer, i, self.block_bytes)

    def erase(self, blocks):
        for layer in range(self.layers):
            for block in blocks:
                self.block(layer, block)[:] = POISON

    def expect(self, blocks, seed):
        for layer in range(self.layers):
            for i, block in enumerate(blocks):
                expect_bytes(self.block(layer, block),
                             content(seed, layer, i, self.block_bytes),
                             f"request {seed}, layer {layer}, block {block}")

    def expect_erased(self, blocks):
        for layer in range(self.layers):
            for block in blocks:
                expect_bytes(self.block(layer, block), poison(self.block_bytes),
                             f"layer {layer}, block {block}")


def content(seed, layer, i, size):
    return pattern((seed * 64 + layer) * 4096 + i, size)


def rows_of(bases, blocks, block_bytes, device=0):
    rows = numpy.empty((len(bases), blocks, 3), dtype=numpy.uint64)
    offsets = numpy.arange(blocks, dtype=numpy.uint64) * numpy.uint64(block_bytes)
    rows[:, :, 0] = numpy.asarray(bases, dtype=numpy.uint64)[:, None] + offsets[None, :]
    rows[:, :, 1] = block_bytes
    rows[:, :, 2] = device
    return rows.reshape(-1, 3)


def _main(module, role, control):
    Parent.pipe = Connection(int(control))
    try:
        arguments = [Connection(argument.number) if isinstance(argument, _Descriptor) else argument
                     for argument in take(Parent.pipe)]
        answer = ("result", getattr(importlib.import_module(module), role)(*arguments))
    except BaseException:
        answer = ("error", traceback.format_exc())
    Parent.pipe.send(answer)


if __name__ == "__main__":
    # The test files import fleet_testing. Without this line Python would load this file twice.
    sys.modules["fleet_testing"] = sys.modules["__main__"]
    _main(*sys.argv[1:])
