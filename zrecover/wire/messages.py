"""The control messages, each a msgpack map with a type tag.

Messages are imperatives or answers; `docs/protocol.md` explains each field. The unions
at the end say who may say what to whom: a decoder of one knows no other message.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from zrecover.config import LIMITS
from zrecover.ids import NO_LAUNCH
from zrecover.wire.fields import (
    Address,
    Addresses,
    Bytes,
    Count,
    Digest,
    Index,
    Launch,
    Millis,
    Name,
    Names,
    Number,
    ReplicaState,
    RouteVersion,
    Seconds,
    Session,
    Shard,
    Shards,
    Text,
    Verdict,
    Versions,
)

# ruff: noqa: TC002 - msgspec reads the annotations at run time


class Message(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """Base of all control messages; the tag is the class name."""


# --- discovery ---------------------------------------------------------------------------


class Announce(Message):
    """Supervisor -> discovery: I want to lead, or still do. Renewed every half second."""

    cluster: Name
    boot: Name
    proposed: Number
    """Epoch that it proposes."""
    held: Number
    """Epoch that it leads with, 0 if it does not."""
    endpoints: Addresses
    lease: Seconds
    spread: Seconds
    """Over how long returning workers spread their registrations."""
    versions: Versions
    challenge: Number = 0
    """The nonce of the challenge that this answers, else 0."""


class Withdraw(Message):
    """Supervisor -> discovery: I stop; whoever waits may lead at once."""

    cluster: Name
    boot: Name


class Granted(Message):
    """Discovery -> supervisor: you lead, with this epoch."""

    cluster: Name
    boot: Name
    epoch: Number
    lease: Seconds


class Standby(Message):
    """Discovery -> supervisor: another boot leads and is alive; keep announcing."""

    cluster: Name
    boot: Name
    leader: Name
    epoch: Number


class Superseded(Message):
    """Discovery -> supervisor: another boot took over from you. Final."""

    cluster: Name
    boot: Name
    leader: Name
    epoch: Number


class Challenge(Message):
    """Discovery -> supervisor: announce at once, with this nonce, or lose the lease."""

    cluster: Name
    boot: Name
    nonce: Number


class Resolve(Message):
    """Anyone -> discovery: who leads? Held while the answer would be `not_boot`."""

    cluster: Name
    nonce: Number
    not_boot: Name | None = None
    epoch: Number = 0
    """Highest epoch that the asker has seen; discovery grants only above it."""
    wait_ms: Millis = 0


class Address_(Message, tag="Address"):
    """Discovery -> anyone: where the leader listens."""

    cluster: Name
    nonce: Number
    epoch: Number
    boot: Name
    endpoints: Addresses
    spread: Seconds
    versions: Versions


class NoSupervisor_(Message, tag="NoSupervisor"):
    """Discovery -> anyone: nobody leads this cluster now."""

    cluster: Name
    nonce: Number
    epoch: Number
    reason: Text


# --- worker and supervisor ---------------------------------------------------------------


class Claim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    metadata: msgspec.Raw = msgspec.Raw(b"\x80")
    """A msgpack map with text keys, bounded in size and depth."""


Claims = Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(max_length=LIMITS.claims_per_part)]
"""Each decoded by itself: a bad one spoils no other."""


class Register(Message):
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


class Key(msgspec.Struct, frozen=True, array_like=True):
    """One replica or shard within a worker."""

    uid: Name
    shard: Shard


class InventoryChange(Message):
    """Worker -> supervisor: what has changed since `base`."""

    session: Session
    base: Number
    seq: Number
    digest: Digest
    claims: Claims
    """New or changed ones."""
    removed: Annotated[tuple[Key, ...], msgspec.Meta(max_length=LIMITS.claims_per_part)] = ()


class Heartbeat(Message):
    """Worker -> supervisor: I live, and hold inventory `seq`."""

    session: Session
    beat: Number
    seq: Number
    digest: Digest
    busy_for: Seconds = 0.0
    """For how long the worker's own event loop has not come round, in seconds."""


class Goodbye(Message):
    """Worker -> supervisor: I stop on purpose."""

    session: Session
    reason: Text


class VerdictRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The final verdict on one claim; claims without a row were accepted in full."""

    uid: Name
    shard: Shard = 0
    verdict: Verdict
    reason: Text
    plugin: Text = ""


VerdictRows = Annotated[tuple[VerdictRow, ...], msgspec.Meta(max_length=200)]


class Registered(Message):
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


class Verdicts(Message):
    """Supervisor -> worker: more verdicts on the registration of `session`."""

    session: Session
    epoch: Number
    boot: Name
    seq: Number
    verdicts: VerdictRows


class Ack(Message):
    """Supervisor -> worker: heard, and this is the inventory that I have."""

    session: Session
    epoch: Number
    boot: Name
    beat: Number
    seq: Number
    interval: Seconds
    timeout: Seconds


class Unknown(Message):
    """Supervisor -> worker: I know no such session; register."""

    epoch: Number
    boot: Name


class Resync(Message):
    """Supervisor -> worker: your inventory and mine differ; replay all of it."""

    session: Session
    epoch: Number
    boot: Name


class Busy(Message):
    """Supervisor -> anyone: too much at once; try again after this long."""

    epoch: Number
    boot: Name
    retry_after: Seconds


class Fenced_(Message, tag="Fenced"):
    """Supervisor -> worker: a newer process of this worker is registered."""

    epoch: Number
    boot: Name
    reason: Text
    incarnation: Number
    """The one that is registered; a process that never had a session may go above it."""
    final: bool


class Restarting(Message):
    """Supervisor -> anyone: I stop on purpose; look for the next one."""

    epoch: Number
    boot: Name
    eta: Seconds


class Rejected(Message):
    """Supervisor or discovery -> anyone: that message cannot be taken, and why."""

    code: Name
    reason: Text
    epoch: Number = 0
    boot: Name | None = None


# --- clients and supervisor --------------------------------------------------------------


class Routes(Message):
    """Client -> supervisor: what has changed since this version? Repeated as a heartbeat."""

    cluster: Name
    client: Name
    epoch: Number
    versions: Versions
    since: RouteVersion | None = None


class RouteShard(msgspec.Struct, frozen=True, array_like=True):
    """Where one shard of a route is."""

    shard: Shard
    worker: Name
    incarnation: Number
    address: Address


class RouteRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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


class RouteTable(Message):
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


class RouteChange(Message):
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


class Query(Message):
    """Anyone -> supervisor: tell me your view. `what` is `status`."""

    cluster: Name
    nonce: Number
    what: Name


class Result(Message):
    """Supervisor -> anyone: one part of the answer, the bytes of a JSON text."""

    epoch: Number
    boot: Name
    nonce: Number
    part: Index
    last: bool
    body: Bytes


# --- data plane: the header frame of a request or reply; the payload is a frame of its own


class Call(Message):
    """Client -> worker: run this request."""

    id: Number
    cluster: Name
    uid: Name
    remaining: Seconds
    """How long the caller still waits; the worker drops what has passed it."""
    shard: Shard = 0
    idempotent: bool = False


class Cancel(Message):
    """Client -> worker: nobody waits for that request any more."""

    id: Number


class Reply(Message):
    """Worker -> client: the handler's answer is in the payload frame."""

    id: Number


class Failure(Message):
    """Worker -> client: no answer. `ran` says whether the handler was started."""

    id: Number
    code: Name
    """`no-replica`, `loading`, `stopping`, `overloaded`, `expired`, `bad-request`,
    `bad-reply`, `cancelled` or `raised`."""
    ran: bool
    error: Text = ""
    message: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    traceback: Annotated[str, msgspec.Meta(max_length=8192)] = ""


ToDiscovery = Announce | Withdraw | Resolve
FromDiscoveryToSupervisor = Granted | Standby | Superseded | Challenge | Rejected
FromDiscovery = Address_ | NoSupervisor_ | Rejected
ToSupervisor = Register | InventoryChange | Heartbeat | Goodbye | Routes | Query
ToWorker = (
    Registered | Verdicts | Ack | Unknown | Resync | Busy | Fenced_ | Restarting | Rejected
)
ToClient = RouteTable | RouteChange | Result | Unknown | Busy | Restarting | Rejected
ToData = Call | Cancel
FromData = Reply | Failure

AnyMessage = Any
