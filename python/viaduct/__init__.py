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

from viaduct._core import (
    Agent,
    BlockDigest,
    Blocks,
    BorrowedLease,
    Digests,
    KvCache,
    KvGroup,
    KvLayers,
    KvLayout,
    KvReshard,
    Lease,
    MarkStream,
    Note,
    ParcelEnd,
    ParcelFetch,
    Path,
    PathShare,
    Peer,
    Pin,
    PublishedParcel,
    RemotePin,
    Selection,
    Transfer,
    __version__,
    card_grants,
    card_id,
    digest_of,
    kv_models,
    kv_source_ranks,
    narrow_card,
    settings,
)
from viaduct._errors import (
    BusyError,
    CancelledError,
    CorruptError,
    DrainingError,
    DeniedError,
    DeviceError,
    Error,
    ExhaustedError,
    InvalidError,
    NotFoundError,
    PeerLostError,
    ProtocolError,
    StaleError,
    TimeoutError,
    UnsupportedError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from viaduct._asyncio import awaitable


def __getattr__(name):
    if name == "awaitable":  # imports asyncio, which takes longer than all else here
        from viaduct._asyncio import awaitable
        return awaitable
    raise AttributeError(f"module 'viaduct' has no attribute {name!r}")


__all__ = [
    "Agent",
    "BlockDigest",
    "Blocks",
    "BorrowedLease",
    "BusyError",
    "CancelledError",
    "CorruptError",
    "DrainingError",
    "DeniedError",
    "DeviceError",
    "Digests",
    "Error",
    "ExhaustedError",
    "InvalidError",
    "KvCache",
    "KvGroup",
    "KvLayers",
    "KvLayout",
    "KvReshard",
    "Lease",
    "MarkStream",
    "NotFoundError",
    "Note",
    "ParcelEnd",
    "ParcelFetch",
    "Path",
    "PathShare",
    "Peer",
    "PeerLostError",
    "Pin",
    "ProtocolError",
    "PublishedParcel",
    "StaleError",
    "RemotePin",
    "Selection",
    "TimeoutError",
    "Transfer",
    "UnsupportedError",
    "__version__",
    "awaitable",
    "card_grants",
    "card_id",
    "digest_of",
    "kv_models",
    "kv_source_ranks",
    "narrow_card",
    "settings",
]
