"""What a registered worker is told: its session and verdicts, and that it was heard."""

from __future__ import annotations

from dataclasses import dataclass

from zrecover.config import LIMITS, Limits
from zrecover.core.effects import Reply
from zrecover.core.registry import WorkerRecord
from zrecover.model import Verdict
from zrecover.wire import messages as m
from zrecover.wire.versions import SUPPORTED, agree

__all__ = ["Pace", "acknowledge", "welcome"]

_ROWS = 50  # each of them 1,000 characters at most: they fit a frame in any script


@dataclass(frozen=True, slots=True)
class Pace:
    """Whose reign it is and how often it wants to be told, in seconds."""

    epoch: int
    boot: str
    interval: float
    timeout: float
    spread: float


def welcome(
    record: WorkerRecord, head: m.Register, pace: Pace, limits: Limits = LIMITS
) -> list[Reply]:
    """Accept a registration: the session, and each verdict that is less than FULL."""
    rows = [
        m.VerdictRow(
            uid=key.uid,
            shard=key.shard,
            verdict=decision.verdict,
            reason=decision.reason[: limits.reason],
            plugin=decision.plugin[: limits.reason],
        )
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
    more = [
        m.Verdicts(record.session, pace.epoch, pace.boot, head.seq, tuple(rows[at : at + _ROWS]))
        for at in range(_ROWS, len(rows), _ROWS)
    ]
    return [Reply(record.peer, message) for message in (registered, *more)]


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
