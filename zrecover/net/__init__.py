"""Sockets: lists of bytes frames between processes, and what became of connections.

The only package that imports zmq. It knows no message of ours. Nothing here blocks, but for
`Router.bind`, `NetContext.close` and `resolve_blocking`, which are bounded. No zmq.ZMQError or
OSError leaves it. Each socket has one owner thread.
"""

from __future__ import annotations

from zrecover.net.aio import Attachment, attach
from zrecover.net.context import NetContext, check_process
from zrecover.net.dealer import Dealer, Link, LinkEvent
from zrecover.net.names import Resolved, resolve, resolve_blocking
from zrecover.net.options import Role
from zrecover.net.poller import EpollPoller, Poller, QuickPoller, quick_poller
from zrecover.net.req import Answer, Failed, ReqTry
from zrecover.net.router import NetEvent, NetEventKind, Router
from zrecover.net.traffic import Inbound, Overlong, Peer, Sent
from zrecover.net.waker import Waker

__all__ = [
    "Answer",
    "Attachment",
    "Dealer",
    "EpollPoller",
    "Failed",
    "Inbound",
    "Link",
    "LinkEvent",
    "NetContext",
    "NetEvent",
    "NetEventKind",
    "Overlong",
    "Peer",
    "Poller",
    "QuickPoller",
    "ReqTry",
    "Resolved",
    "Role",
    "Router",
    "Sent",
    "Waker",
    "attach",
    "check_process",
    "quick_poller",
    "resolve",
    "resolve_blocking",
]
