"""Objects that only __new__() has made raise TypeError, and reach no memory that is not theirs."""

import subprocess
import sys

import viaduct
from viaduct import _core


def classes():
    return [one for module in (_core, _core.nixl) for one in vars(module).values()
            if isinstance(one, type) and type(one).__name__ == "pybind11_type"]


def outcome(call):
    """The name of the exception of a call."""
    try:
        call()
    except BaseException as raised:
        return type(raised).__name__
    return "no exception"


def calls(kind, made):
    """The reads and calls that need no other argument, by name."""
    yield "memoryview", lambda: memoryview(made)
    if kind.__repr__ is not object.__repr__:
        yield "repr", lambda: repr(made)
    for name, member in vars(kind).items():
        if isinstance(member, property) and not name.startswith("__"):
            yield name, lambda name=name: getattr(made, name)
    for name in {"__len__", "release", "close", "wait", "poll", "post", "encode"} & set(vars(kind)):
        yield name, lambda name=name: getattr(kind, name)(made)


def check():
    for kind in classes():
        made = kind.__new__(kind)
        for name, call in calls(kind, made):
            print(kind.__name__, name, flush=True)
            print("=", outcome(call), flush=True)
        assert kind is not viaduct.Digests or outcome(lambda: made == made) == "TypeError"


def test_every_member_raises():
    # Runs this file in a process of its own, because a fault would crash the process.
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1:], done.returncode, done.stderr)
    wrong = [call for call, end in zip(lines[::2], lines[1::2]) if end != "= TypeError"]
    assert len(lines) > 200 and not wrong, wrong


if __name__ == "__main__":
    check()
