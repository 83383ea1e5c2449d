"""The exceptions: one class for each code of docs/errors.md."""

import builtins


class Error(Exception):
    """Why a call of Viaduct failed. str() is one line with all that is known.

        try:
            transfer.wait()
        except viaduct.PeerLostError as error:
            print(error.peer, error.detail, error.remedy)

    Each code of docs/errors.md has a subclass. Those that Python has an exception for are that
    exception as well: InvalidError is a ValueError, TimeoutError the builtin TimeoutError,
    PeerLostError a ConnectionError, DeviceError an OSError.

    code        the kind of failure: "invalid", "peer lost", ...
    operation   the call that failed: "connect", "process_vm_writev", "plan"
    detail      the system's own text, or the facts
    os_errno    the errno of a system call; 0 if there was none
    peer, device, file   whom or what it was about; empty if that does not apply
    cause       the likely cause
    remedy      what to do about it
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

    # The one of OSError hands on no errno.
    def __reduce__(self):
        return _remade, (type(self), self.args[0], dict(self.__dict__))


def _remade(kind, text, fields):
    return kind(text, **fields)


class InvalidError(Error, ValueError):
    """The arguments cannot be right, or the object is closed. Correct the call."""

    code = "invalid"


class NotFoundError(Error, LookupError):
    """There is no such peer, pin, backend or name."""

    code = "not found"


class UnsupportedError(Error):
    """This build, backend or machine cannot do it."""

    code = "unsupported"


class DeniedError(Error, PermissionError):
    """A wrong secret, memory that is not pinned, or forbidden by the system."""

    code = "denied"


class BusyError(Error):
    """There is no room now. The same call may succeed later."""

    code = "busy"


class TimeoutError(Error, builtins.TimeoutError):
    """The time has passed: of the call, or of the post. Also a builtin TimeoutError."""

    code = "timed out"


class CancelledError(Error):
    """The transfer was cancelled by its owner. It is not asyncio.CancelledError."""

    code = "cancelled"


class PeerLostError(Error, ConnectionError):
    """The peer died, froze or cannot be reached. Post again when it is ready again."""

    code = "peer lost"


class DeviceError(Error, OSError):
    """The system or a device refused. `errno` and `detail` say why."""

    code = "device error"


class ExhaustedError(Error):
    """A limit is reached: memory, descriptors, huge pages. `remedy` names it."""

    code = "exhausted"


class ProtocolError(Error):
    """The other end sent something that it must not: a damaged card, garbage on a socket."""

    code = "protocol error"


BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}
for _class in (Error, *BY_CODE.values()):
    _class.__module__ = "viaduct"  # where users find them, and where their pickles look
