"""Where replicas are: messages between clients and the supervisor."""

from __future__ import annotations

from typing import Annotated

import msgspec

from zrecover.config import LIMITS
from zrecover.ids import NO_LAUNCH
from zrecover.wire.base import Message
from zrecover.wire.fields import (
    Address,
    Bytes,
    Count,
    Cursor,
    Index,
    Launch,
    Name,
    Number,
    RouteVersion,
    Seconds,
    Shard,
    Text,
    Versions,
)

__all__ = [
    "Forget",
    "Query",
    "Remove",
    "Result",
    "RouteChange",
    "RouteRow",
    "RouteRows",
    "RouteShard",
    "RouteTable",
    "Routes",
]


class Routes(Message, frozen=True):
    """Client -> supervisor: what has changed since this version? Repeated as a heartbeat."""

    cluster: Name
    client: Name
    epoch: Number
    versions: Versions
    since: RouteVersion | None = None
    nonce: Number = 0
    """Comes back in the answer, so that the client knows how old that is; 0 if it need not."""


class RouteShard(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where one shard of a route is."""

    shard: Shard
    worker: Name
    incarnation: Number
    address: Address


class RouteRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One replica that the supervisor knows; routable, all shards in order, if it has any."""

    uid: Name
    model: Name
    launch: Launch = NO_LAUNCH
    state: Name
    """`READY` or why not: `INCOMPLETE`, `LOADING`, `STOPPING`, `REFUSED`, `HELD`."""
    shards: Annotated[tuple[RouteShard, ...], msgspec.Meta(max_length=1024)] = ()
    suspect: bool = False
    """Some worker of it has not been heard for a while: the last choice."""
    why: Text = ""
    """Why it is not routable."""


RouteRows = Annotated[tuple[RouteRow, ...], msgspec.Meta(max_length=LIMITS.rows_per_part)]


class RouteTable(Message, frozen=True):
    """Supervisor -> client: one part of all routes."""

    epoch: Number
    boot: Name
    version: RouteVersion
    complete: bool
    seen: Count
    expected: Count | None
    interval: Seconds
    timeout: Seconds
    part: Index
    last: bool
    rows: RouteRows
    nonce: Number = 0
    """That of the `Routes` which this answers."""


class RouteChange(Message, frozen=True):
    """Supervisor -> client: the rows that differ from version `base`; also the heartbeat."""

    epoch: Number
    boot: Name
    base: RouteVersion
    version: RouteVersion
    complete: bool
    seen: Count
    expected: Count | None
    interval: Seconds
    timeout: Seconds
    rows: RouteRows = ()
    gone: Annotated[tuple[Name, ...], msgspec.Meta(max_length=LIMITS.rows_per_part)] = ()
    nonce: Number = 0
    """That of the `Routes` which this answers; 0 in what is pushed."""


class Query(Message, frozen=True):
    """Anyone -> supervisor: tell me your view, or what one of the services keeps."""

    cluster: Name
    nonce: Number
    what: Name
    """`status`, `explain` with a target, `instances`, `events`, `progress` or `cache`."""
    target: Name | None = None
    """The replica, worker, model or request that is meant."""
    since: Cursor | None = None
    """Of events: only those that came after this; it is in the answer to the last question."""


class Forget(Message, frozen=True):
    """Anyone -> supervisor: remove this silent worker now; somebody has looked."""

    cluster: Name
    nonce: Number
    worker: Name


class Remove(Message, frozen=True):
    """Anyone -> supervisor: stop this replica; with `delete`, it never comes back either."""

    cluster: Name
    nonce: Number
    uid: Name
    delete: bool


class Result(Message, frozen=True):
    """Supervisor -> anyone: one part of the answer, the bytes of a JSON text."""

    epoch: Number
    boot: Name
    nonce: Number
    part: Index
    last: bool
    body: Bytes
    error: Text = ""
    """Why there is no answer; the body is empty then."""
    code: Text = ""
    """With an error: `recovering` where what is not known may still come, `unconfirmed` where a
    delete may be lost; else empty."""
