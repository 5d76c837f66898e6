"""The data plane: the header frame of a request or reply.

The payload is a frame of its own, in the codec of `zrecover.wire.payload`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from zrecover.wire.base import Message
from zrecover.wire.fields import Name, Number, Seconds, Shard, Text
from zrecover.wire.routing import RouteShard

__all__ = ["Call", "Cancel", "Failure", "Reply"]


class Call(Message, frozen=True):
    """Client -> worker: run this request."""

    id: Number
    cluster: Name
    uid: Name
    remaining: Seconds
    """How long the caller still waits; the worker drops what has passed it."""
    shard: Shard = 0
    idempotent: bool = False
    shards: Annotated[tuple[RouteShard, ...], msgspec.Meta(max_length=1024)] = ()
    """Where all shards of a sharded replica are, so that its handler can reach them."""


class Cancel(Message, frozen=True):
    """Client -> worker: nobody waits for that request any more."""

    id: Number


class Reply(Message, frozen=True):
    """Worker -> client: the handler's answer is in the payload frame."""

    id: Number


class Failure(Message, frozen=True):
    """Worker -> client: no answer. `ran` says whether the handler was started."""

    id: Number
    code: Name
    """`no-replica`, `loading`, `stopping`, `overloaded`, `expired`, `bad-request`,
    `bad-reply`, `cancelled` or `raised`."""
    ran: bool
    error: Text = ""
    message: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    traceback: Annotated[str, msgspec.Meta(max_length=8192)] = ""
