"""Moves blocks of memory between processes and hosts.

    import viaduct

    with viaduct.Agent(name="server") as agent:          # one process
        inbox = agent.allocate(1 << 20, label="inbox")
        send_somehow(agent.card)                         # the other process needs these bytes
        note = agent.wait_note()                         # arrives after the data of the copy

    with viaduct.Agent(name="client") as agent:          # the other process
        peer = agent.connect(card)
        peer.ready(timeout=10)
        memory = agent.allocate(1 << 20)                 # or: agent.pin(array)
        agent.write(peer, memory, peer.pin("inbox", timeout=10), note=b"it is full")

In asyncio, use `await agent.plan("write", peer, local, remote).post()`,
`await viaduct.awaitable(peer.ready, 10)` and `async for note in agent.notes()`. For more, read help(viaduct.Agent), help(viaduct.Blocks),
help(viaduct.Transfer) and docs/python.md.
"""

from viaduct import _errors
from viaduct._core import *
from viaduct._core import __all__ as _compiled
from viaduct._core import __version__
from viaduct._errors import *

TYPE_CHECKING = False
if TYPE_CHECKING:
    from viaduct._asyncio import awaitable as awaitable
else:  # type checkers know no list that is computed; they take the names of the imports above
    _classes = [kind.__name__ for kind in (_errors.Error, *_errors._BY_CODE.values())]
    __all__ = ["__version__", "awaitable", *_compiled, *_classes]


def __getattr__(name):
    if name == "awaitable":  # imports asyncio, which takes longer than all else here
        from viaduct._asyncio import awaitable
        return awaitable
    raise AttributeError(f"module 'viaduct' has no attribute {name!r}")
