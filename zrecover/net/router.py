"""The side that listens: many peers on one ROUTER.

What may not come in: who a peer is, and what a message says.
"""

from __future__ import annotations

import enum
import errno
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import zmq

from zrecover.config import LIMITS, Limits, Timing
from zrecover.endpoints import Endpoint, parse_endpoint
from zrecover.errors import AddressInUse, BindFailed
from zrecover.net.context import NetContext
from zrecover.net.frames import Oversize
from zrecover.net.monitor import HANDSHAKE_FAILED, ROUTER_EVENTS, handshake_reason
from zrecover.net.names import resolve_blocking
from zrecover.net.options import Role
from zrecover.net.sockets import OwnedSocket, get_ident, needs_ipv6
from zrecover.net.traffic import Inbound, Overlong, Peer, Sent

__all__ = ["BURST_BYTES", "NetEvent", "NetEventKind", "Router"]

BURST_BYTES: Final = 16 * 1024 * 1024
"""A burst ends when it has received this much, whatever number of messages it may have."""
_EVENTS_PER_CALL: Final = 1000
_OK: Final = Sent.OK
_IN_USE_RETRY_S: Final = 0.3
_IN_USE_PAUSE_S: Final = 0.005


class NetEventKind(enum.Enum):
    """What a listening socket notices about connections."""

    DISCONNECTED = "disconnected"
    """A connection ended. Not said which: a send to a peer that went is GONE."""
    ACCEPT_FAILED = "accept failed"
    """A connection could not be taken, usually for want of descriptors: alert somebody."""
    HANDSHAKE_FAILED = "handshake failed"
    """Somebody connected who speaks another protocol or is not authorised."""


class NetEvent(NamedTuple):
    """All events of one kind since the last call; `detail` describes the last of them."""

    kind: NetEventKind
    times: int
    detail: str


class Router(OwnedSocket):
    """A listening socket; never blocks, except for `bind`.

    `role` is CONTROL_ROUTER or DATA_ROUTER. All methods belong to the owner thread.
    """

    def __init__(
        self,
        context: NetContext,
        role: Role,
        *,
        limits: Limits = LIMITS,
        timing: Timing | None = None,
    ) -> None:
        if not role.listens:
            raise ValueError(f"{role} does not listen")
        super().__init__(context, role, ROUTER_EVENTS, limits, timing)

    def bind(self, endpoint: Endpoint) -> Endpoint:
        """Listen; returns the address with the host as a literal and the actual port.

        A name is resolved, and its first address that belongs to this host is taken. An address
        in use is tried for 0.3 s, because a socket that was closed just now lets go of it
        asynchronously. Raises AddressInUse or BindFailed; the socket can then bind elsewhere.
        """
        if get_ident() != self._owner:
            raise self._misuse()
        if endpoint.literal or endpoint.wildcard:
            return self._bind_one(endpoint, endpoint)
        found = resolve_blocking(endpoint, timeout=self._timing.connect)
        if not found.addresses:
            raise BindFailed(f"cannot listen on {endpoint}: {found.reason}")
        # 127.0.0.1 before ::1: that is what a client which does not try all will try.
        candidates = sorted(found.addresses, key=lambda address: ":" in address.host)
        for address in candidates[:-1]:
            try:
                return self._bind_one(address, endpoint)
            except AddressInUse:
                raise
            except BindFailed:
                continue
        return self._bind_one(candidates[-1], endpoint)

    def recv(self, limit: int) -> list[Inbound | Overlong]:
        """What has come in, `limit` messages at most, without blocking.

        Messages come with their envelope removed; one that is too long is reported as Overlong
        and thrown away. A short or empty answer does not prove that nothing is left (a burst is
        also bounded in bytes): the poller will say.
        """
        if get_ident() != self._owner:
            raise self._misuse()
        burst: list[Inbound | Overlong] = []
        size = 0
        read = self._reader.recv
        try:
            while len(burst) < limit and size < BURST_BYTES:
                message = read()
                if isinstance(message, list):
                    if len(message) > 2 and not message[1]:
                        peer, body = Peer(message[0], True), message[2:]
                    else:
                        peer, body = Peer(message[0], False), message[1:]
                    for frame in body:
                        size += len(frame)
                    burst.append(Inbound(peer, tuple(body)))
                elif isinstance(message, Oversize):
                    burst.append(Overlong(Peer(message.first), message.reason))
                else:
                    break
        except zmq.ZMQError as error:
            raise self._broken(error) from None
        return burst

    def send(self, peer: Peer, frames: Sequence[bytes]) -> Sent:
        """Send one message to one peer, without blocking.

        GONE where that connection ended, FULL where the peer does not read. OK is no proof of
        arrival. Raises ValueError for a message without frames, TypeError for frames that are no
        bytes; neither leaves anything half sent.
        """
        if get_ident() != self._owner:
            raise self._misuse()
        if not frames:
            raise ValueError("a message has one frame at least")
        id, delimited = peer
        try:
            self._writer.send((id, b"", *frames) if delimited else (id, *frames))
        except zmq.Again:
            return Sent.FULL
        except zmq.ZMQError as error:
            if error.errno == zmq.EHOSTUNREACH:
                return Sent.GONE
            raise self._broken(error) from None
        return _OK

    def events(self) -> list[NetEvent]:
        """What happened to connections since the last call: one entry a kind, counted."""
        if get_ident() != self._owner:
            raise self._misuse()
        counts: dict[NetEventKind, int] = {}
        details: dict[NetEventKind, str] = {}
        try:
            seen = self._monitor.drain(_EVENTS_PER_CALL)
        except zmq.ZMQError as error:
            raise self._broken(error) from None
        for event, value in seen:
            if event & HANDSHAKE_FAILED:
                kind, detail = NetEventKind.HANDSHAKE_FAILED, handshake_reason(event, value)
            elif event == zmq.EVENT_ACCEPT_FAILED:
                kind, detail = NetEventKind.ACCEPT_FAILED, zmq.strerror(value)
            else:
                kind, detail = NetEventKind.DISCONNECTED, "a connection ended"
            counts[kind] = counts.get(kind, 0) + 1
            details[kind] = detail
        return [NetEvent(kind, count, details[kind]) for kind, count in counts.items()]

    def _bind_one(self, address: Endpoint, asked: Endpoint) -> Endpoint:
        give_up = time.monotonic() + _IN_USE_RETRY_S
        while True:
            try:
                self._socket.set(zmq.IPV6, int(needs_ipv6(address)))
                self._socket.bind(str(address))
                last = self._socket.get(zmq.LAST_ENDPOINT)
            except (zmq.ZMQError, OSError) as error:
                if error.errno != errno.EADDRINUSE:
                    raise _bind_failed(asked, error) from None
                if time.monotonic() >= give_up:
                    raise AddressInUse(
                        f"cannot listen on {asked}: somebody else does already; stop that one "
                        f"(`ss -ltnp` names it) or choose another port"
                    ) from None
                time.sleep(_IN_USE_PAUSE_S)
                continue
            text = last.decode() if isinstance(last, bytes) else str(last)
            return parse_endpoint(text.rstrip("\0"))


def _bind_failed(endpoint: Endpoint, error: zmq.ZMQError | OSError) -> BindFailed:
    remedy = {
        errno.EACCES: "ports below 1024 need privileges; choose a higher one",
        errno.ENODEV: "no interface of this host has that address; give one of its own, or *",
        errno.EADDRNOTAVAIL: "this host does not have that address; give one of its own, or *",
        errno.EMFILE: "raise the limit of open files (ulimit -n)",
    }.get(error.errno or 0, "choose another address")
    text = getattr(error, "strerror", None) or str(error)
    return BindFailed(f"cannot listen on {endpoint}: {text}; {remedy}")
