"""What should exist: orders to workers, and what workers keep as witnesses."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from zrecover.ids import RosterVersion
from zrecover.wire.base import Message
from zrecover.wire.fields import Index, Launch, Millis, Name, Number, Session, Shard, Text

__all__ = ["Kept", "Order", "OrderDone", "Stone", "Testimony", "Witness"]


class Stone(msgspec.Struct, frozen=True, array_like=True):
    """A deleted replica: everything of it up to this launch (and time) is gone for good."""

    uid: Name
    launch: Launch
    created_ts: Millis


WorkerNames = Annotated[tuple[Name, ...], msgspec.Meta(max_length=2000)]
Stones = Annotated[tuple[Stone, ...], msgspec.Meta(max_length=1000)]


class Order(Message, frozen=True):
    """Supervisor -> worker: drain or stop this; obeyed only in the session it names, and only
    where the worker still holds what is meant: of this launch, and since that time."""

    session: Session
    epoch: Number
    boot: Name
    id: Number
    action: Literal["drain", "stop"]
    uid: Name
    shard: Shard
    launch: Launch
    created_ts: Millis
    reason: Text


class OrderDone(Message, frozen=True):
    """Worker -> supervisor: what became of an order."""

    session: Session
    id: Number
    done: bool
    reason: Text = ""


class Witness(Message, frozen=True):
    """Supervisor -> worker: keep this for the one that comes after me; one part of it."""

    session: Session
    epoch: Number
    boot: Name
    version: RosterVersion
    roster: bool
    """True where `workers` are (a part of) the whole roster of that version."""
    part: Index
    last: bool
    workers: WorkerNames = ()
    tombstones: Stones = ()


class Kept(Message, frozen=True):
    """Worker -> supervisor: I keep everything up to this version."""

    session: Session
    version: RosterVersion


class Testimony(Message, frozen=True):
    """Worker -> supervisor, before it registers: what I keep for your forerunners; a part."""

    cluster: Name
    epoch: Number
    version: RosterVersion
    workers: WorkerNames = ()
    tombstones: Stones = ()
