"""Claims that a plugin has not decided on in time: it is asked again, and its verdict counts.

Only the verdict changes, and only while the claim is the one that was asked about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zrecover.core.admission import less_permissive
from zrecover.core.again import Again
from zrecover.core.effects import Decide, Effect, Emit
from zrecover.core.events import ClaimRefused
from zrecover.core.evidence import Evidence
from zrecover.core.pace import Pace
from zrecover.core.registry import Registry, WorkerRecord
from zrecover.core.welcome import judged, verdicts_on
from zrecover.model import Decision, Unanswered, Verdict
from zrecover.wire import messages as m

__all__ = ["Reconsidering"]


class Reconsidering:
    """What is owed of the registered claims. `numbers` are those of all tickets."""

    def __init__(
        self, hook: float, registry: Registry, evidence: Evidence, numbers: Iterator[int]
    ) -> None:
        self._registry, self._evidence, self._numbers = registry, evidence, numbers
        self._again = Again[tuple[str, m.Key]](hook)
        self._asked: dict[int, tuple[WorkerRecord, tuple[m.Claim, ...]]] = {}

    @property
    def soon(self) -> bool:
        """True while plugins are being asked about claims that they were not asked about yet."""
        return self._again.soon

    def note(
        self, worker: str, claims: Sequence[m.Claim], decisions: Sequence[Decision], now: float
    ) -> None:
        """These were decided on."""
        if len(self._again) or any(isinstance(each, Unanswered) for each in decisions):
            for claim, decision in zip(claims, decisions, strict=True):
                self._again.note((worker, m.Key(claim.uid, claim.shard)), decision, now)

    def clear(self) -> None:
        """All sessions end."""
        self._again.clear()
        self._asked.clear()

    def ask(self, now: float, out: list[Effect]) -> None:
        """Ask for what is due, each worker's claims together."""
        if not len(self._again):
            return
        owed: dict[str, list[m.Claim]] = {}
        for worker, key in self._again.due(now):
            record = self._registry.workers.get(worker)
            if record is None or not isinstance(record.decisions.get(key), Unanswered):
                self._again.forget((worker, key))
            else:
                owed.setdefault(worker, []).append(record.claims[key])
        for worker, claims in owed.items():
            ticket = next(self._numbers)
            self._asked[ticket] = (self._registry.workers[worker], tuple(claims))
            out.append(Decide(ticket, worker, tuple(claims)))

    def decided(
        self,
        ticket: int,
        decisions: tuple[Decision, ...],
        now: float,
        pace: Pace,
        out: list[Effect],
    ) -> list[str]:
        """The plugins have spoken; the uids whose judgement has changed."""
        record, claims = self._asked.pop(ticket, (None, ()))
        if record is None:
            return []
        worker, news = record.worker, []
        current = self._registry.workers.get(worker) is record
        for claim, decision in zip(claims, decisions, strict=False):
            key = m.Key(claim.uid, claim.shard)
            if not current or record.claims.get(key) is not claim:
                continue  # what came in its place was decided on by itself
            decision = less_permissive(claim, decision)
            self._again.note((worker, key), decision, now)
            if _as_before(record.decisions[key], decision):
                continue
            news.append((claim, record.digests[key], decision))
            self._evidence.decided(now, worker, claim, decision)
            if decision.verdict < Verdict.ROUTES:
                out.append(Emit(ClaimRefused(worker, claim.uid, decision.reason)))
        before = verdicts_on(record, [claim for claim, _, _ in news])
        touched = self._registry.change(record, news, (), record.seq) if news else []
        out += judged(record, before, pace)
        return touched


def _as_before(before: Decision, now: Decision) -> bool:
    """True where there is still no answer: how it was missed this time is no news."""
    return (
        isinstance(before, Unanswered)
        and isinstance(now, Unanswered)
        and (before.soon, before.plugin) == (now.soon, now.plugin)
    )
