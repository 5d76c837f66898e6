"""From claims as they travel to what plugins are given, and back. No socket is known here."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from zrecover.core.effects import Placed
from zrecover.errors import BadMessage, InvalidReplica, PayloadError
from zrecover.hooks.answers import legible
from zrecover.hooks.records import Claim, Decision, Group, Member, Replica, Verdict
from zrecover.ids import parse_uid
from zrecover.wire import messages as m
from zrecover.wire.codec import encode_claim
from zrecover.wire.payload import unpack

__all__ = ["group_of", "offered_claim", "read_claim", "replica_of"]


def replica_of(claim: m.Claim) -> Replica:
    """The replica that a claim describes. Raises InvalidReplica."""
    model, index = parse_uid(claim.uid)
    return Replica(
        model,
        index,
        kind=claim.kind,
        version=claim.version,
        abilities=claim.abilities,
        n_worker=claim.n_worker,
        shard=claim.shard,
        label=claim.label,
        devices=claim.devices,
        desired=claim.desired,
        launch=claim.launch,
        metadata=msgspec.msgpack.decode(claim.metadata),
        name=claim.name,
    )


def offered_claim(claim: m.Claim, decision: Decision, captured: bytes) -> m.Claim:
    """The claim as the worker's side offers it; REFUSE where that would not fit the wire.

    Without anything captured it does: a worker declares nothing that leaves no room for a reason.
    """
    said = msgspec.structs.replace(
        claim,
        verdict=decision.verdict,
        reason=legible(decision.reason),
        plugin=legible(decision.plugin),
        captured=captured,
    )
    try:
        encode_claim(said)
    except BadMessage as error:
        reason = legible(f"with what the plugins said of it, it cannot travel: {error}")
        return msgspec.structs.replace(said, verdict=Verdict.REFUSE, reason=reason, captured=b"")
    return said


def read_claim(claim: m.Claim) -> Claim | Decision:
    """The claim as plugins see it; REFUSE with the reason where they cannot see it."""
    try:
        captured = unpack(claim.captured) if claim.captured else None
        return Claim(replica_of(claim), claim.state, claim.created_ts, captured)
    except (InvalidReplica, PayloadError, msgspec.MsgspecError) as error:
        return Decision(Verdict.REFUSE, legible(str(error)))


def group_of(uid: str, placed: Sequence[Placed]) -> Group | Decision:
    """All shards of a launch as plugins see them; REFUSE where one cannot be read."""
    members: list[Member] = []
    for each in placed:
        record = read_claim(each.claim)
        if isinstance(record, Decision):
            return record
        members.append(Member(each.shard, each.worker, each.address, record))
    replica = members[0].claim.replica
    return Group(uid, replica.kind or "", replica.launch, replica.n_worker, tuple(members))
