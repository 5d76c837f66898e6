"""What all our sockets have in common: one owner thread, a monitor, and an end.

libzmq sockets are not thread-safe, and misuse aborts the process without a traceback. So each
call compares one integer: the owner's thread, or what the socket has become since.

What may not come in: directions and protocols; those are Router, Dealer and ReqTry.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Final

import zmq
from zmq.backend import Socket as BareSocket

from zrecover.config import LIMITS, Limits, Timing
from zrecover.endpoints import Endpoint
from zrecover.errors import ForkedError, LifecycleError
from zrecover.net import options
from zrecover.net.context import NetContext, exhausted
from zrecover.net.frames import FrameReader, FrameWriter
from zrecover.net.monitor import Monitor

__all__ = ["OwnedSocket", "needs_ipv6"]

_EVENTS: Final = int(zmq.EVENTS)
_FD: Final = int(zmq.FD)
_POLLIN: Final = int(zmq.POLLIN)
_TIMING: Final = Timing()
_CLOSED: Final = 0
_FORKED: Final = -1
_ENVELOPE: Final = 512
"""Bytes that a routing id and a delimiter may add to a message."""

get_ident = threading.get_ident


class OwnedSocket:
    """A libzmq socket with its monitor, owned by the thread that made or adopted it.

    Every method but `adopt` belongs to that thread and raises LifecycleError in another one, and
    after `close`; ForkedError in a forked child. `due` is True where the socket has something to
    say of which no descriptor tells, such as a try that failed before it began.
    """

    def __init__(
        self,
        context: NetContext,
        role: options.Role,
        events: int,
        limits: Limits = LIMITS,
        timing: Timing | None = None,
    ) -> None:
        self.role: Final = role
        self._context = context
        self._timing = timing or _TIMING
        self._socket = context.open_socket(options.socket_type(role))
        try:
            options.apply(self._socket, role, limits, self._timing)
            self._monitor = Monitor(context, self._socket, events)
            self._fds = (_fd(self._socket), _fd(self._monitor.socket))
        except zmq.ZMQError as error:
            self._socket.close(linger=0)
            raise exhausted(error) from None
        frame = limits.payload_frame if role.data else limits.control_frame
        self._reader = FrameReader(
            self._socket, limits.frames, frame + limits.header_frame + _ENVELOPE
        )
        self._writer = FrameWriter(self._socket)
        self._get = self._socket.get
        self._owner = get_ident()
        self.due = False
        context.track(self)

    @property
    def closed(self) -> bool:
        """True once it was closed, by itself or by its context."""
        return self._owner == _CLOSED

    @property
    def pollables(self) -> tuple[BareSocket, ...]:
        """What a `Poller` waits for: the socket and its monitor."""
        return (self._socket, self._monitor.socket)

    @property
    def fd(self) -> int:
        """The edge-triggered descriptor of the socket (see `zrecover.net.aio`)."""
        return self._fds[0]

    @property
    def fds(self) -> tuple[int, ...]:
        """The edge-triggered descriptors of the socket and of its monitor."""
        return self._fds

    def pending(self) -> bool:
        """True where there is something to read of which the descriptors may not tell any more.

        The monitor's descriptor always tells, unless a drain stopped at its limit, because
        nothing but drains touches it.
        """
        if get_ident() != self._owner:
            raise self._misuse()
        if self.due or self._monitor.more:
            return True
        try:
            return bool(int(self._get(_EVENTS)) & _POLLIN)
        except zmq.ZMQError as error:
            raise self._broken(error) from None

    def noticed(self) -> None:
        """The descriptor of the monitor told of something: it is pending until it is drained."""
        self._monitor.more = True

    def adopt(self) -> None:
        """Make the calling thread the owner; the former one must not use it any more."""
        if self._owner in (_CLOSED, _FORKED):
            raise self._misuse()
        self._owner = get_ident()

    def close(self, linger_s: float = 0.0) -> None:
        """Close at once; what was sent within the last moments still has `linger_s` to leave.

        Never waits. A second call does nothing, nor does one in a forked child.
        """
        if self._owner in (_CLOSED, _FORKED):
            return
        if get_ident() != self._owner:
            raise self._misuse()
        self.shut(linger_s)

    def shut(self, linger_s: float = 0.0) -> None:
        """Close from whatever thread; for `NetContext.close` only."""
        if self._owner in (_CLOSED, _FORKED):
            return
        self._owner = _CLOSED
        self._monitor.close()
        with contextlib.suppress(zmq.ZMQError):
            self._socket.close(linger=max(0, round(linger_s * 1000)))
        self._context.untrack(self)

    def disown(self) -> None:
        """In a forked child: never touch the socket again."""
        self._owner = _FORKED

    def _misuse(self) -> LifecycleError:
        """Why the calling thread cannot use this socket."""
        name = f"the {self.role.value} socket"
        if self._owner == _CLOSED:
            return LifecycleError(f"{name} is closed")
        if self._owner == _FORKED:
            return ForkedError(f"{name} belongs to the parent process; open a new one here")
        return LifecycleError(
            f"{name} belongs to thread {self._owner} and was used in thread {get_ident()}; "
            "hand the work to its thread, or adopt() it here when that one is done with it"
        )

    def _broken(self, error: zmq.ZMQError) -> LifecycleError:
        """The error for what only happens to a socket whose context is ending."""
        return LifecycleError(f"the {self.role.value} socket cannot be used: {error.strerror}")


def needs_ipv6(endpoint: Endpoint) -> bool:
    """Whether the socket needs IPV6=1 for this address.

    Not set for IPv4 addresses, which would come back as `::ffff:…`.
    """
    return options.host_has_ipv6() and (":" in endpoint.host or endpoint.host == "*")


def _fd(socket: BareSocket) -> int:
    return int(socket.get(_FD))
