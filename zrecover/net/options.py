"""Every socket option that zrecover sets, for each role, with the reason.

What may not come in: opening, binding or connecting. The table is data, so that a reader (and a
test) can see what a socket of a role is like without reading code. Milliseconds and bytes, as
libzmq takes them.

Two choices look odd and are the result of measurements. DEALER and REQ keep IMMEDIATE at 0: with
IMMEDIATE=1 libzmq throws away what was received but not read yet when the connection goes, so a
peer's last words (why it leaves, its last reply) would be lost; that nothing is queued for nobody
is seen to by `Dealer.send` instead. And RECONNECT_IVL is its maximum instead of -1: both make one
try only, but -1 also drops the unread messages, and is silent where a try could not even begin.
Both ends ping: a peer's TTL is not enough, because libzmq forgets it at each message that is no
ping, so that a client which froze after a message would never be noticed.
"""

from __future__ import annotations

import enum
import functools
import socket as _socket
from typing import NamedTuple

import zmq
from zmq.backend import Socket as BareSocket

from zrecover.config import Limits, Timing

__all__ = ["NEVER_MS", "Option", "Role", "apply", "host_has_ipv6", "options_for", "socket_type"]

NEVER_MS = 2**31 - 1
"""24 days: longer than any session, so that libzmq's own second try never comes."""


class Role(enum.Enum):
    """What a socket is for; picks its options."""

    CONTROL_ROUTER = "control-router"
    """Where workers, clients and askers reach a supervisor or discovery."""
    CONTROL_DEALER = "control-dealer"
    """One session of a worker or client at its supervisor."""
    DISCOVERY_REQ = "discovery-req"
    """One question to discovery."""
    DATA_ROUTER = "data-router"
    """Where a worker takes calls."""
    DATA_DEALER = "data-dealer"
    """One client's connection to one worker."""

    @property
    def data(self) -> bool:
        """True on the data plane, where payloads travel."""
        return self in {Role.DATA_ROUTER, Role.DATA_DEALER}

    @property
    def listens(self) -> bool:
        """True where it binds."""
        return self in {Role.CONTROL_ROUTER, Role.DATA_ROUTER}


class Option(NamedTuple):
    """One socket option."""

    name: str
    value: int
    reason: str


_COMMON = (
    Option("LINGER", 0, "closing never waits; a farewell asks for its linger when it closes"),
    Option("SNDTIMEO", 0, "no send ever blocks, even if a NOBLOCK is forgotten"),
    Option("RCVTIMEO", 0, "no receive ever blocks"),
)

_ROUTER = (
    Option("ROUTER_MANDATORY", 1, "a send to nobody is an error instead of silence"),
    Option("BACKLOG", 4096, "a returning cluster connects at once; at 100, SYNs wait 1 to 7 s"),
    Option("TCP_KEEPALIVE", 1, "descriptors of hosts that vanished are given back"),
    Option("TCP_KEEPALIVE_IDLE", 30, "seconds of silence before the kernel asks"),
    Option("TCP_KEEPALIVE_INTVL", 10, "seconds between its questions"),
    Option("TCP_KEEPALIVE_CNT", 3, "unanswered questions that end a connection"),
)

_CONNECTING = (
    Option("IMMEDIATE", 0, "1 would drop unread messages when the connection goes"),
    Option("RECONNECT_IVL", NEVER_MS, "one try; retries, jitter and fresh sockets are ours"),
    Option("RECONNECT_IVL_MAX", 0, "no growth of an interval that is never used"),
)

_HEARTBEATS = {
    Role.CONTROL_ROUTER: (
        Option("HEARTBEAT_IVL", 5000, "seldom: there may be 10,000 peers, whose pings come too"),
        Option("HEARTBEAT_TIMEOUT", 10_000, "gives back the descriptor of a frozen peer"),
    ),
    Role.DATA_ROUTER: (
        Option("HEARTBEAT_IVL", 500, "no work goes on for a client that is frozen"),
        Option("HEARTBEAT_TIMEOUT", 1500, "gives back its descriptor and its queue"),
    ),
    Role.CONTROL_DEALER: (
        Option("HEARTBEAT_IVL", 1000, "finds half-open connections; liveness is our own beats'"),
        Option("HEARTBEAT_TIMEOUT", 3000, "above the time-out of our own heartbeats"),
        Option(
            "HEARTBEAT_TTL", 3000, "where a ping came last, the ROUTER notices a frozen peer sooner"
        ),
    ),
    Role.DISCOVERY_REQ: (
        Option("HEARTBEAT_IVL", 500, "a held question has no beats of its own"),
        Option("HEARTBEAT_TIMEOUT", 1500, "a frozen discovery is left for another one"),
        Option("HEARTBEAT_TTL", 1500, "a frozen asker is noticed sooner"),
    ),
    Role.DATA_DEALER: (
        Option("HEARTBEAT_IVL", 300, "a frozen worker is otherwise never seen"),
        Option("HEARTBEAT_TIMEOUT", 900, "three unanswered pings"),
        Option("HEARTBEAT_TTL", 900, "where a ping came last, the ROUTER notices sooner"),
    ),
}

_HWM = {
    Role.CONTROL_ROUTER: (1000, "a whole route table or replay for one peer, then backpressure"),
    Role.CONTROL_DEALER: (1000, "a whole route table or replay, then backpressure"),
    Role.DISCOVERY_REQ: (4, "one question, one answer"),
    Role.DATA_ROUTER: (500, "replies wait for a slow client up to here, then its call waits"),
    Role.DATA_DEALER: (500, "calls wait for a slow worker up to here, then the caller waits"),
}


def options_for(role: Role, limits: Limits, timing: Timing) -> tuple[Option, ...]:
    """All options of a role, in the order in which they are set."""
    high, why = _HWM[role]
    frame = limits.payload_frame if role.data else limits.control_frame
    handshake = max(1, round(timing.connect * 1000))
    sized = (
        Option("SNDHWM", high, why),
        Option("RCVHWM", high, why),
        Option("MAXMSGSIZE", frame, "a larger frame ends the connection before it is read"),
        Option("HANDSHAKE_IVL", handshake, "a peer that never speaks is given up; default 30 s"),
    )
    if role.listens:
        return _COMMON + _ROUTER + sized + _HEARTBEATS[role]
    connect = Option("CONNECT_TIMEOUT", handshake, "dropped SYNs; the system would wait 127 s")
    return _COMMON + _CONNECTING + (connect,) + sized + _HEARTBEATS[role]


def socket_type(role: Role) -> int:
    """The libzmq socket type of a role."""
    if role.listens:
        return zmq.ROUTER
    return zmq.REQ if role is Role.DISCOVERY_REQ else zmq.DEALER


def apply(socket: BareSocket, role: Role, limits: Limits, timing: Timing) -> None:
    """Set all options of `role`. Raises zmq.ZMQError, which stays inside `zrecover.net`."""
    for name, value in _numbers(role, limits, timing):
        socket.set(name, value)


@functools.lru_cache(maxsize=64)
def _numbers(role: Role, limits: Limits, timing: Timing) -> tuple[tuple[int, int], ...]:
    """The options of a role as libzmq knows them."""
    return tuple(
        (int(getattr(zmq, option.name)), option.value)
        for option in options_for(role, limits, timing)
    )


@functools.cache
def host_has_ipv6() -> bool:
    """True where a socket can listen on ::1; asked once in a process."""
    if not _socket.has_ipv6:
        return False
    try:
        with _socket.socket(_socket.AF_INET6, _socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
