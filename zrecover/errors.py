"""Every exception that leaves zrecover.

What may not come in: anything that does I/O. No `zmq.ZMQError`, `OSError` or
msgspec error leaves the package; each is translated into one of these where it arises.

    ZRecoverError
    +-- ConfigError (ValueError)     an option, endpoint or replica that cannot be used
    |   +-- InvalidEndpoint
    |   +-- InsecureEndpoint         outside loopback without `insecure=True`
    |   +-- InvalidReplica
    +-- BindFailed                   the address cannot be listened on
    |   +-- AddressInUse
    +-- LifecycleError               used before it was opened, or after it was closed
    |   +-- ForkedError              used in a process that was forked from the owner's
    +-- Fenced                       a newer process took this one's place, for good
    +-- BadMessage (ValueError)      bytes that are no message of this protocol
    +-- NoSupervisor                 nobody leads, or nobody answers
    +-- Recovering                   a supervisor leads, but its view is not complete yet
    +-- CallError                    one request went wrong
        +-- ModelNotFound            a serving supervisor knows no such model
        +-- NoReplica                the model exists, but no replica of it can be used
        |   +-- ReplicaNotFound      a serving supervisor knows no such replica of it
        +-- WorkerLost               the worker went away with the request
        +-- DeadlineExceeded
        +-- PayloadError             the payload or reply cannot be put on the wire
        +-- RemoteError              the handler raised
"""

from __future__ import annotations

from functools import partial
from typing import Any

__all__ = [
    "AddressInUse",
    "BadMessage",
    "BindFailed",
    "CallError",
    "ConfigError",
    "DeadlineExceeded",
    "Fenced",
    "ForkedError",
    "InsecureEndpoint",
    "InvalidEndpoint",
    "InvalidReplica",
    "LifecycleError",
    "ModelNotFound",
    "NoReplica",
    "NoSupervisor",
    "PayloadError",
    "Recovering",
    "RemoteError",
    "ReplicaNotFound",
    "WorkerLost",
    "ZRecoverError",
]


class ZRecoverError(Exception):
    """Base of everything that zrecover raises on purpose."""


class ConfigError(ZRecoverError, ValueError):
    """An option that cannot be used; the message says which one and what to give instead."""


class InvalidEndpoint(ConfigError):
    """An address that is not `tcp://host:port`, or cannot be used where it was given."""


class InsecureEndpoint(ConfigError):
    """An address outside loopback, which needs `insecure=True` while there is no CURVE."""


class InvalidReplica(ConfigError):
    """A replica description that contradicts itself or cannot be put on the wire."""


class BindFailed(ZRecoverError):
    """The operating system does not let us listen on the address."""


class AddressInUse(BindFailed):
    """Somebody listens on the address already."""


class LifecycleError(ZRecoverError):
    """The object is not open: not entered yet, or closed."""


class ForkedError(LifecycleError):
    """A socket of the parent process was used in a forked child; open a new one there."""


class Fenced(ZRecoverError):
    """A newer process holds this one's place. Final: stop, or start anew."""


class BadMessage(ZRecoverError, ValueError):
    """Bytes that are no message of this protocol; `str()` names the path of the fault."""


class NoSupervisor(ZRecoverError):
    """No supervisor is announced at the endpoint, or nobody answers there."""


class Recovering(ZRecoverError):
    """The supervisor is rebuilding its view; what it does not know yet may still come."""


class CallError(ZRecoverError):
    """One request went wrong; other requests are not affected."""


class ModelNotFound(CallError):
    """A serving supervisor, whose view is complete, knows no such model."""


class NoReplica(CallError):
    """The model is known, but none of its replicas could take the request in time."""


class ReplicaNotFound(NoReplica):
    """A serving supervisor, whose view is complete, knows no such replica of the model."""


class WorkerLost(CallError):
    """The worker went away while it held the request.

    `may_have_run` says whether the handler may have run: False is a safe retry.
    """

    def __init__(self, message: str, *, may_have_run: bool) -> None:
        super().__init__(message)
        self.may_have_run = may_have_run

    def __reduce__(self) -> tuple[Any, ...]:
        # Process pools pickle it, and the default gives the constructor `args` alone.
        return partial(type(self), may_have_run=self.may_have_run), self.args, vars(self)


class DeadlineExceeded(CallError, TimeoutError):
    """No reply before the deadline."""


class PayloadError(CallError, ValueError):
    """A payload that msgpack cannot carry, or that is larger than the limit."""


class RemoteError(CallError):
    """The handler raised; carries the remote exception as text.

    `type` is its class name, `message` its text, `traceback` the remote traceback.
    """

    def __init__(self, type: str, message: str, traceback: str = "") -> None:
        super().__init__(f"{type}: {message}" if message else type)
        self.type = type
        self.message = message
        self.traceback = traceback

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.type, self.message, self.traceback), vars(self)
