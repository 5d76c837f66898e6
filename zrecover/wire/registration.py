"""What a worker holds: messages between workers and the supervisor."""

from __future__ import annotations

from typing import Annotated

import msgspec

from zrecover.config import LIMITS
from zrecover.ids import NO_LAUNCH
from zrecover.wire.base import Message
from zrecover.wire.fields import (
    Address,
    Count,
    Digest,
    Index,
    Launch,
    Millis,
    Name,
    Names,
    Number,
    ReplicaState,
    Seconds,
    Session,
    Shard,
    Shards,
    Text,
    Verdict,
    Versions,
)

__all__ = [
    "NO_METADATA",
    "Ack",
    "Busy",
    "Claim",
    "Claims",
    "Fenced_",
    "Goodbye",
    "Heartbeat",
    "InventoryChange",
    "Key",
    "Register",
    "Registered",
    "Rejected",
    "Restarting",
    "Resync",
    "Unknown",
    "VerdictRow",
    "VerdictRows",
    "Verdicts",
]

NO_METADATA = msgspec.Raw(b"\x80")
"""An empty map, as it travels."""


Captured = Annotated[bytes, msgspec.Meta(max_length=LIMITS.captured)]


class Claim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One replica or shard in a replay: metadata only, never weights."""

    uid: Name
    model: Name
    kind: Name
    n_worker: Shards = 1
    shard: Shard = 0
    state: ReplicaState
    created_ts: Millis
    """Wall-clock ms when its launch started; survives restarts of the supervisor."""
    name: Name | None = None
    version: Text | None = None
    abilities: Names = ()
    label: Text | None = None
    devices: Names = ()
    desired: Count | None = None
    launch: Launch = NO_LAUNCH
    metadata: msgspec.Raw = NO_METADATA
    """A msgpack map with text keys, bounded in size and depth."""
    verdict: Verdict = Verdict.FULL
    """How much of it the worker's side offers."""
    reason: Text = ""
    plugin: Text = ""
    """Who on the worker's side said so, and why."""
    captured: Captured = b""
    """Coordination state, packed as a payload; empty if there is none."""


Claims = Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(max_length=LIMITS.claims_per_part)]
"""Each decoded by itself: a bad one spoils no other."""


class Register(Message, frozen=True):
    """Worker -> supervisor: this is who I am and all that I hold; one part of it."""

    cluster: Name
    worker: Name
    incarnation: Number
    pid: Number
    host_boot: Name
    epoch: Number
    """Highest epoch that the worker has seen."""
    versions: Versions
    address: Address
    """Where the worker answers requests."""
    attempt: Number
    """Number of this try within the worker's process; parts of two tries never mix."""
    seq: Number
    digest: Digest
    part: Index
    last: bool
    claims: Claims


class Key(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One replica or shard within a worker."""

    uid: Name
    shard: Shard


class InventoryChange(Message, frozen=True):
    """Worker -> supervisor: what has changed since `base`."""

    session: Session
    base: Number
    seq: Number
    digest: Digest
    claims: Claims
    """New or changed ones."""
    removed: Annotated[tuple[Key, ...], msgspec.Meta(max_length=LIMITS.claims_per_part)] = ()


class Heartbeat(Message, frozen=True):
    """Worker -> supervisor: I live, and hold inventory `seq`."""

    session: Session
    beat: Number
    seq: Number
    digest: Digest
    busy_for: Seconds = 0.0
    """For how long the worker's own event loop has not come round, in seconds."""


class Goodbye(Message, frozen=True):
    """Worker -> supervisor: I stop on purpose."""

    session: Session
    """(0, 0) from one that was not told its session yet."""
    reason: Text
    worker: Name | None = None
    incarnation: Number = 0
    """Who it is, so that a registration that is under way ends, too."""


class VerdictRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The final verdict on one claim; claims without a row were accepted in full."""

    uid: Name
    shard: Shard = 0
    verdict: Verdict
    reason: Text
    plugin: Text = ""


VerdictRows = Annotated[tuple[VerdictRow, ...], msgspec.Meta(max_length=200)]


class Registered(Message, frozen=True):
    """Supervisor -> worker: your registration is accepted; heartbeats may begin."""

    session: Session
    epoch: Number
    boot: Name
    version: Number
    """Protocol version that both speak."""
    attempt: Number
    seq: Number
    interval: Seconds
    timeout: Seconds
    spread: Seconds
    verdicts: VerdictRows = ()


class Verdicts(Message, frozen=True):
    """Supervisor -> worker: more verdicts on a registration, or those that a change has changed."""

    session: Session
    epoch: Number
    boot: Name
    seq: Number
    verdicts: VerdictRows


class Ack(Message, frozen=True):
    """Supervisor -> worker: heard, and this is the inventory that I have."""

    session: Session
    epoch: Number
    boot: Name
    beat: Number
    seq: Number
    interval: Seconds
    timeout: Seconds
    reports: Number = 0
    """How many service reports of this session have come."""


class Unknown(Message, frozen=True):
    """Supervisor -> worker: I know no such session; register."""

    epoch: Number
    boot: Name


class Resync(Message, frozen=True):
    """Supervisor -> worker: your inventory and mine differ; replay all of it."""

    session: Session
    epoch: Number
    boot: Name


class Busy(Message, frozen=True):
    """Supervisor -> anyone: too much at once; try again after this long."""

    epoch: Number
    boot: Name
    retry_after: Seconds


class Fenced_(Message, frozen=True, tag="Fenced"):
    """Supervisor -> worker: a newer process of this worker is registered."""

    epoch: Number
    boot: Name
    reason: Text
    incarnation: Number
    """The one that is registered; a process that never had a session may go above it."""
    final: bool


class Restarting(Message, frozen=True):
    """Supervisor -> anyone: I stop on purpose; look for the next one."""

    epoch: Number
    boot: Name
    eta: Seconds


class Rejected(Message, frozen=True):
    """Supervisor or discovery -> anyone: that message cannot be taken, and why."""

    code: Name
    reason: Text
    epoch: Number = 0
    boot: Name | None = None
