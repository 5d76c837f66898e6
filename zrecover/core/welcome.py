"""What a registered worker is told: its session and verdicts, and that it was heard."""

from __future__ import annotations

from collections.abc import Iterable

from zrecover.config import LIMITS, Limits
from zrecover.core.effects import Effect, Emit, Reply
from zrecover.core.events import ClaimRefused
from zrecover.core.pace import Pace
from zrecover.core.registry import Registry, WorkerRecord
from zrecover.core.view import ReplicaStatus
from zrecover.model import Decision, Verdict
from zrecover.wire import messages as m
from zrecover.wire.versions import SUPPORTED, agree

__all__ = [
    "acknowledge",
    "group_decided",
    "group_judged",
    "judged",
    "verdicts_on",
    "welcome",
]

_ROWS = 50  # each of them 1,000 characters at most: they fit a frame in any script
_DECIDED = (ReplicaStatus.READY, ReplicaStatus.REFUSED, ReplicaStatus.HELD)


def welcome(
    record: WorkerRecord, head: m.Register, pace: Pace, limits: Limits = LIMITS
) -> list[Reply]:
    """Accept a registration: the session, and each verdict that is less than FULL."""
    rows = [
        _row(key, decision, limits)
        for key, decision in record.decisions.items()
        if decision.verdict is not Verdict.FULL
    ]
    rows += [
        m.VerdictRow(uid=bad.uid, shard=bad.shard, verdict=Verdict.REFUSE, reason=bad.reason)
        for bad in record.refused
    ]
    registered = m.Registered(
        session=record.session,
        epoch=pace.epoch,
        boot=pace.boot,
        version=agree(SUPPORTED, head.versions) or SUPPORTED.high,
        attempt=head.attempt,
        seq=head.seq,
        interval=pace.interval,
        timeout=pace.timeout,
        spread=pace.spread,
        verdicts=tuple(rows[:_ROWS]),
    )
    return [Reply(record.peer, registered), *_verdicts(record, rows[_ROWS:], pace)]


Before = dict[m.Key, Decision | None]
"""What the verdicts on some claims were, None for a claim that is new."""


def verdicts_on(record: WorkerRecord, claims: Iterable[m.Claim]) -> Before:
    """What is decided on claims that are about to change."""
    keys = [m.Key(claim.uid, claim.shard) for claim in claims]
    return {key: record.decisions.get(key) for key in keys}


def judged(
    record: WorkerRecord, before: Before, pace: Pace, limits: Limits = LIMITS
) -> list[Reply]:
    """After a change: the verdicts that are not what they were `before`, also FULL again."""
    rows = [
        _row(key, now, limits)
        for key, was in before.items()
        if (now := record.decisions[key]) != was
        and not (now.verdict is Verdict.FULL and (was is None or was.verdict is Verdict.FULL))
    ]
    return _verdicts(record, rows, pace)


def group_judged(
    registry: Registry, uid: str, pace: Pace, limits: Limits = LIMITS, *, again: bool = False
) -> list[Effect]:
    """After a group was rebuilt, or refused: the verdict on it, for each of its workers.

    With `again` they were told less of it before, and are told FULL, too.
    """
    replica = registry.replicas.get(uid)
    if replica is None or replica.state not in _DECIDED:
        return []
    if replica.verdict is Verdict.FULL and not again:
        return []
    full = replica.verdict is Verdict.FULL
    decision = Decision(replica.verdict, "" if full else replica.reason, replica.plugin)
    out: list[Effect] = []
    for shard in replica.shards:
        record = registry.workers[shard.worker]
        out += _verdicts(record, [_row(m.Key(uid, shard.shard), decision, limits)], pace)
    return out


def group_decided(registry: Registry, uid: str, again: bool, pace: Pace) -> list[Effect]:
    """The plugins have spoken on a group: its workers are told, and of a refusal all others."""
    out = group_judged(registry, uid, pace, again=again)
    replica = registry.replicas[uid]
    if replica.verdict < Verdict.ROUTES:
        workers = dict.fromkeys(shard.worker for shard in replica.shards)
        out += [Emit(ClaimRefused(worker, uid, replica.reason)) for worker in workers]
    return out


def _row(key: m.Key, decision: Decision, limits: Limits) -> m.VerdictRow:
    return m.VerdictRow(
        uid=key.uid,
        shard=key.shard,
        verdict=decision.verdict,
        reason=decision.reason[: limits.reason],
        plugin=decision.plugin[: limits.reason],
    )


def _verdicts(record: WorkerRecord, rows: list[m.VerdictRow], pace: Pace) -> list[Reply]:
    """As many messages as the rows need; none without a row."""
    parts = (tuple(rows[at : at + _ROWS]) for at in range(0, len(rows), _ROWS))
    return [
        Reply(record.peer, m.Verdicts(record.session, pace.epoch, pace.boot, record.seq, part))
        for part in parts
    ]


def acknowledge(record: WorkerRecord, beat: int, pace: Pace) -> Reply:
    """Tell a worker that it was heard, and which inventory of it is known."""
    ack = m.Ack(
        session=record.session,
        epoch=pace.epoch,
        boot=pace.boot,
        beat=beat,
        seq=record.seq,
        interval=pace.interval,
        timeout=pace.timeout,
        reports=record.reports,
    )
    return Reply(record.peer, ack)
