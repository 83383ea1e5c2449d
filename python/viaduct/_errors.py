"""Defines the exceptions: one class for each error code of docs/errors.md."""

import builtins as _builtins


class Error(Exception):
    """A failed call of Viaduct. str() gives all facts about the failure in one line.

        try:
            transfer.wait()
        except viaduct.PeerLostError as error:
            print(error.peer, error.detail, error.remedy)

    Each code of docs/errors.md has a subclass. Some subclasses are builtin exceptions too:
    InvalidError is a ValueError, TimeoutError a builtin TimeoutError, PeerLostError a
    ConnectionError, and DeviceError an OSError.

    code        the kind of failure: "invalid", "peer lost", ...
    operation   the call that failed: "connect", "process_vm_writev", "plan"
    detail      the text of the system call's error, or the facts of the failure
    os_errno    the errno of a system call; 0 if there was none
    peer, device, file   the peer, device or file of the failed call; empty if none was involved
    cause       the likely cause
    remedy      what to do about the failure
    """

    code = ""

    def __init__(self, text: str = "", *, operation: str = "", detail: str = "", os_errno: int = 0,
                 peer: str = "", device: str = "", file: str = "", cause: str = "",
                 remedy: str = "") -> None:
        super().__init__(text)
        self.operation = operation
        self.detail = detail or text
        self.os_errno = os_errno
        self.peer = peer
        self.device = device
        self.file = file
        self.cause = cause
        self.remedy = remedy
        if os_errno and isinstance(self, OSError):
            setattr(self, "errno", os_errno)

    def __str__(self):
        return self.args[0]

    # OSError.__reduce__ would lose the keyword fields, such as os_errno.
    def __reduce__(self):
        return _remade, (type(self), self.args[0], dict(self.__dict__))


def _remade(kind, text, fields):
    return kind(text, **fields)


class InvalidError(Error, ValueError):
    """The arguments cannot be right, or the object is closed. Correct the call."""

    code = "invalid"


class NotFoundError(Error, LookupError):
    """The named peer, pin, backend or agent does not exist."""

    code = "not found"


class UnsupportedError(Error):
    """This build, backend or machine does not support the operation."""

    code = "unsupported"


class DeniedError(Error, PermissionError):
    """The secret is wrong, the memory is not pinned, or the system forbids the operation."""

    code = "denied"


class BusyError(Error):
    """A queue or buffer is full now. The same call may succeed later."""

    code = "busy"


class TimeoutError(Error, _builtins.TimeoutError):
    """The timeout of the call or of the post has passed. Also a builtin TimeoutError."""

    code = "timed out"


class CancelledError(Error):
    """The program cancelled the transfer. This class is not asyncio.CancelledError."""

    code = "cancelled"


class PeerLostError(Error, ConnectionError):
    """The peer died, froze or cannot be reached. Post again when the peer is "ready" again."""

    code = "peer lost"


class DeviceError(Error, OSError):
    """The system or a device refused the operation. `errno` and `detail` give the reason."""

    code = "device error"


class ExhaustedError(Error):
    """A limit is reached, such as memory, descriptors or huge pages. `remedy` names the limit."""

    code = "exhausted"


class ProtocolError(Error):
    """The peer broke the protocol, for example with a damaged card or garbage on a socket."""

    code = "protocol error"


class StaleError(Error):
    """The lease of the transfer has ended. `detail` names the lease, and how late the transfer was."""

    code = "stale"


class CorruptError(Error):
    """A block has other bytes than its digest says. `detail` names the first such block."""

    code = "corrupt"


class DrainingError(Error):
    """This agent or the peer is about to leave, and begins nothing new. No byte has moved: go on
    with another peer. Agent.find() waits for the successor of a name."""

    code = "draining"


_BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}
for _class in (Error, *_BY_CODE.values()):
    _class.__module__ = "viaduct"  # users import the classes from viaduct, and so do pickles
