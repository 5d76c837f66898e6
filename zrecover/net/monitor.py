"""What libzmq says about a socket's connections, and what that means in words.

The monitor is a hint that makes things faster; what is true is decided by messages. Events belong
to a connection, never to a routing id. Only the events that somebody uses are asked for.

What may not come in: decisions about links.
"""

from __future__ import annotations

import contextlib
import itertools
import struct
from typing import Final, NamedTuple

import zmq
from zmq.backend import Socket as BareSocket

from zrecover.endpoints import Endpoint
from zrecover.net.context import NetContext

__all__ = ["Connecting", "Monitor", "Observed", "handshake_reason"]

_NAMES = itertools.count(1)
_EVENTS: Final = int(zmq.EVENTS)
_POLLIN: Final = int(zmq.POLLIN)
_NOBLOCK: Final = int(zmq.NOBLOCK)
_RCVMORE: Final = int(zmq.RCVMORE)
_HEADER: Final = struct.Struct("=HI")

HANDSHAKE_FAILED: Final = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)
ROUTER_EVENTS: Final = zmq.EVENT_DISCONNECTED | zmq.EVENT_ACCEPT_FAILED | HANDSHAKE_FAILED
CONNECTING_EVENTS: Final = (
    zmq.EVENT_CONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CLOSED
    | zmq.EVENT_CONNECT_RETRIED
    | HANDSHAKE_FAILED
)


class Observed(NamedTuple):
    """One event: libzmq's number of it, and its value (a descriptor, errno, or code)."""

    event: int
    value: int


class Monitor:
    """The PAIR socket that a socket reports to; in the same thread as the socket it watches.

    `more` is True where the last `drain` stopped at its limit, or the descriptor has told of
    something since. Raises zmq.ZMQError from the constructor and from `drain`, which stays inside
    `zrecover.net`.
    """

    __slots__ = ("_get", "_recv", "_watched", "more", "socket")

    def __init__(self, context: NetContext, watched: BareSocket, events: int) -> None:
        name = f"inproc://zrecover.monitor.{next(_NAMES)}"
        self._watched = watched
        self.more = False
        self.socket = context.open_socket(zmq.PAIR)
        self._recv, self._get = self.socket.recv, self.socket.get
        try:
            self.socket.set(zmq.LINGER, 0)
            # The I/O thread must never wait for us to read an event.
            self.socket.set(zmq.RCVHWM, 0)
            watched.monitor(name, events)
            self.socket.connect(name)
            # The descriptor tells of a message only to a reader that found nothing before.
            self._get(_EVENTS)
        except zmq.ZMQError:
            self.socket.close(linger=0)
            raise

    def drain(self, limit: int) -> list[Observed]:
        """All events that have come in, `limit` at most, without blocking."""
        seen: list[Observed] = []
        self.more = False
        recv, get = self._recv, self._get
        # Asking whether there is one more is cheaper than the exception that there is none.
        while int(get(_EVENTS)) & _POLLIN:
            if len(seen) >= limit:
                self.more = True
                break
            frame = recv(_NOBLOCK)
            while get(_RCVMORE):  # the endpoint, which we know
                recv(_NOBLOCK)
            if len(frame) == _HEADER.size:
                seen.append(Observed(*_HEADER.unpack(frame)))
        return seen

    def close(self) -> None:
        """Stop watching, then close: the other way round the I/O thread would hang."""
        with contextlib.suppress(zmq.ZMQError):
            self._watched.monitor(None, 0)
        self.socket.close(linger=0)


def handshake_reason(event: int, value: int) -> str:
    """What a HANDSHAKE_FAILED_* event means, for a person."""
    if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
        return f"the handshake was refused: not authorised (status {value})"
    if event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
        if value == zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH:
            return "the handshake failed: one side wants CURVE or PLAIN and the other does not"
        return f"the handshake failed: protocol error 0x{value:08x}"
    return (
        "the handshake failed: no ZMTP peer, another kind of socket, other security, or server "
        "key mismatch"
    )


class Connecting:
    """What the events of one connection attempt mean, in words that name the address.

    `bound` is how many seconds the TCP connect and the handshake may take, each; `now` and
    `started` are monotonic seconds. `established` is set by the owner after the handshake.
    """

    __slots__ = ("_bound", "_connected", "_endpoint", "_since", "established")

    def __init__(self, endpoint: Endpoint, bound: float, started: float) -> None:
        self._endpoint = endpoint
        self._bound = bound
        self._since = started
        self._connected = False
        self.established = False

    def failure(self, event: int, value: int, now: float) -> str:
        """Why the connection failed or ended, or an empty text where this event says neither."""
        if event == zmq.EVENT_CONNECTED:
            self._connected = True
            self._since = now
            return ""
        late = now - self._since >= self._bound * 0.95
        if event & HANDSHAKE_FAILED:
            if event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL and late:
                what = f"accepted the connection but did not speak ZMTP within {self._bound:g} s"
                return f"{self._endpoint} {what}"
            return f"{self._endpoint}: {handshake_reason(event, value)}"
        if event == zmq.EVENT_DISCONNECTED:
            if self.established:
                return f"the connection to {self._endpoint} was lost"
            return (
                f"{self._endpoint} ended the connection during the handshake: "
                "another kind of socket listens there"
            )
        if event in (zmq.EVENT_CLOSED, zmq.EVENT_CONNECT_RETRIED) and not self._connected:
            if late:
                return f"{self._endpoint} did not answer within {self._bound:g} s"
            if event == zmq.EVENT_CLOSED:
                return f"{self._endpoint} cannot be reached: refused, nobody listens there"
            return f"{self._endpoint} could not be tried: no route or no descriptors"
        return ""
