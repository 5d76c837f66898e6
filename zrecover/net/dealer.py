"""The side that connects: one fresh DEALER for each session, one try, a clear end.

What may not come in: retries, back-off and names (`zrecover.net.names` comes before).
"""

from __future__ import annotations

import enum
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import zmq

from zrecover.config import LIMITS, Limits, Timing
from zrecover.endpoints import Endpoint
from zrecover.errors import LifecycleError
from zrecover.net.context import NetContext
from zrecover.net.frames import Oversize
from zrecover.net.monitor import CONNECTING_EVENTS, Connecting
from zrecover.net.options import Role
from zrecover.net.router import BURST_BYTES
from zrecover.net.sockets import OwnedSocket, get_ident, needs_ipv6
from zrecover.net.traffic import Overlong, Sent

__all__ = ["Dealer", "Link", "LinkEvent"]

_EVENTS_PER_CALL: Final = 100
_OK: Final = Sent.OK


class Link(enum.Enum):
    """What a DEALER's connection is. Moves downwards only."""

    IDLE = "idle"
    """Not told where to connect to yet."""
    CONNECTING = "connecting"
    UP = "up"
    """The handshake succeeded; sends go out."""
    DOWN = "down"
    """For good. What was received before can still be read."""


class LinkEvent(NamedTuple):
    """`state` is UP or DOWN; `reason` says for a person what was seen, empty for UP."""

    state: Link
    reason: str = ""


_UP: Final = Link.UP


class Dealer(OwnedSocket):
    """One connection, tried once. `role` is CONTROL_DEALER or DATA_DEALER.

    All methods belong to the owner thread, and none blocks.
    """

    def __init__(
        self,
        context: NetContext,
        role: Role,
        *,
        limits: Limits = LIMITS,
        timing: Timing | None = None,
    ) -> None:
        if role not in (Role.CONTROL_DEALER, Role.DATA_DEALER):
            raise ValueError(f"{role} is not a DEALER's")
        super().__init__(context, role, CONNECTING_EVENTS, limits, timing)
        self._state = Link.IDLE
        self._connecting: Connecting | None = None
        self._refused = ""

    @property
    def state(self) -> Link:
        """What the last `poll_state` knew."""
        return self._state

    def connect(self, endpoint: Endpoint) -> None:
        """Begin the only try, at a literal address.

        Never fails by itself: an address that cannot be used is a DOWN at the next `poll_state`,
        like any other failure. Raises LifecycleError at the second call.
        """
        if get_ident() != self._owner:
            raise self._misuse()
        if self._state is not Link.IDLE:
            raise LifecycleError("a Dealer connects once; take a new one for the next try")
        self._state = Link.CONNECTING
        self._connecting = Connecting(endpoint, self._timing.connect, time.monotonic())
        self._refused = self._start(endpoint)
        self.due = bool(self._refused)

    def poll_state(self) -> list[LinkEvent]:
        """What happened to the connection since the last call, oldest first.

        UP at most once, then DOWN at most once, or DOWN alone. At DOWN, `recv` until it gives
        nothing more: the peer's last words may be there.
        """
        if get_ident() != self._owner:
            raise self._misuse()
        if self._connecting is None or self._state is Link.DOWN:
            return []
        if self._refused:
            self.due = False
            self._state = Link.DOWN
            return [LinkEvent(Link.DOWN, self._refused)]
        try:
            seen = self._monitor.drain(_EVENTS_PER_CALL)
        except zmq.ZMQError as error:
            raise self._broken(error) from None
        events: list[LinkEvent] = []
        for event, value in seen:
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED and self._state is Link.CONNECTING:
                self._connecting.established = True
                self._state = Link.UP
                events.append(LinkEvent(Link.UP))
            elif reason := self._connecting.failure(event, value, time.monotonic()):
                self._state = Link.DOWN
                events.append(LinkEvent(Link.DOWN, reason))
                break
        return events

    def send(self, frames: Sequence[bytes]) -> Sent:
        """Send one message without blocking.

        FULL before UP (nothing is queued for nobody) and where the peer does not read; GONE after
        DOWN. What was sent shortly before a DOWN may or may not have arrived. Raises ValueError
        for a message without frames, TypeError for frames that are no bytes.
        """
        if get_ident() != self._owner:
            raise self._misuse()
        if self._state is not _UP:
            return Sent.GONE if self._state is Link.DOWN else Sent.FULL
        if not frames:
            raise ValueError("a message has one frame at least")
        try:
            self._writer.send(frames)
        except zmq.Again:
            return Sent.FULL
        except zmq.ZMQError as error:
            raise self._broken(error) from None
        return _OK

    def recv(self, limit: int) -> list[tuple[bytes, ...] | Overlong]:
        """What has come in, `limit` messages at most, without blocking; also after DOWN.

        A short answer does not prove that nothing is left (a burst is also bounded in bytes);
        an empty one does, unless something over-long is being thrown away.
        """
        if get_ident() != self._owner:
            raise self._misuse()
        burst: list[tuple[bytes, ...] | Overlong] = []
        size = 0
        read = self._reader.recv
        try:
            while len(burst) < limit and size < BURST_BYTES:
                message = read()
                if isinstance(message, list):
                    for frame in message:
                        size += len(frame)
                    burst.append(tuple(message))
                elif isinstance(message, Oversize):
                    burst.append(Overlong(None, message.reason))
                else:
                    break
        except zmq.ZMQError as error:
            raise self._broken(error) from None
        return burst

    def _start(self, endpoint: Endpoint) -> str:
        """Connect; why it could not even begin, or nothing."""
        if not endpoint.literal:
            return f"{endpoint} is a name, not an address; it has to be resolved first"
        try:
            self._socket.set(zmq.IPV6, int(needs_ipv6(endpoint)))
            self._socket.connect(str(endpoint))
        except (zmq.ZMQError, OSError) as error:
            return f"{endpoint} cannot be connected to: {error.strerror or error}"
        return ""
