"""When a recovery is complete, and from what evidence."""

from __future__ import annotations

from typing import NamedTuple

from zrecover.core.registry import Registry
from zrecover.core.view import Confidence, Conflict, RecoveryReport, Skipped
from zrecover.model import Verdict

__all__ = ["Recovery"]


class Recovery:
    """One recovery, from the granted epoch on. Times are monotonic seconds.

    `grace` is for how long after the window plugins may still be asked about complete groups.
    """

    def __init__(self, window: float, expect_workers: int | None, grace: float = 0.0) -> None:
        self.expect_workers = expect_workers
        self.confidence: Confidence | None = None
        self._window, self._grace = window, grace
        self._late = False
        self._began = 0.0
        self._ended: float | None = None
        self._seen: dict[str, None] = {}
        self._found: _Found | None = None
        self._found_at = 0

    @property
    def next_deadline(self) -> float | None:
        """When the window closes, or the grace after it; None once it is complete."""
        if self.confidence is not None:
            return None
        return self._began + self._window + (self._grace if self._late else 0.0)

    @property
    def seen(self) -> int:
        """How many workers have finished their replay."""
        return len(self._seen)

    def begin(self, now: float) -> None:
        """A reign begins: nobody is back yet."""
        self._began, self._ended, self.confidence, self._late = now, None, None, False
        self._seen.clear()

    def returned(self, worker: str) -> None:
        """A worker has finished its replay."""
        self._seen[worker] = None

    def check(self, now: float, *, undecided: bool = False) -> bool:
        """End the recovery if the evidence is there; True the moment it ends.

        `undecided`: plugins are being asked about some group. Who would end it now would tell
        clients that the group is not there.
        """
        if self.confidence is not None:
            return False
        self._late = undecided and now >= self._began + self._window
        if undecided and now < self._began + self._window + self._grace:
            return False
        if self.expect_workers is not None and len(self._seen) >= self.expect_workers:
            self.confidence = Confidence.COUNT
        elif now >= self._began + self._window:
            self.confidence = Confidence.WINDOW
        else:
            return False
        self._ended = now
        return True

    def report(self, registry: Registry, now: float) -> RecoveryReport:
        """How it went, or goes."""
        if self._found is None or self._found_at != registry.revision:
            self._found_at = registry.revision
            self._found = _Found.of(registry)
        return RecoveryReport(
            expect_workers=self.expect_workers,
            seen=tuple(sorted(self._seen)),
            restored=self._found.restored,
            skipped=self._found.skipped,
            conflicts=self._found.conflicts,
            confidence=self.confidence,
            seconds=(now if self._ended is None else self._ended) - self._began,
        )


class _Found(NamedTuple):
    """What all records and replicas together say; the same until one of them changes."""

    restored: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    conflicts: tuple[Conflict, ...]

    @classmethod
    def of(cls, registry: Registry) -> _Found:
        """Look at all of them."""
        skipped = [
            Skipped(key.uid, record.worker, decision.reason, decision.plugin)
            for record in registry.workers.values()
            for key, decision in record.decisions.items()
            if decision.verdict < Verdict.ROUTES
        ]
        skipped += [
            Skipped(bad.uid, record.worker, bad.reason, "")
            for record in registry.workers.values()
            for bad in record.refused
        ]
        named = {row.uid for row in skipped}
        skipped += [  # each claim was accepted, the group as a whole was not
            Skipped(replica.uid, replica.shards[0].worker, replica.reason, replica.plugin)
            for replica in registry.replicas.values()
            if replica.verdict < Verdict.ROUTES and replica.uid not in named
        ]
        conflicts = [c for r in registry.replicas.values() for c in r.conflicts]
        return cls(
            restored=tuple(registry.replayed()),
            skipped=tuple(sorted(skipped, key=lambda s: (s.uid, s.worker))),
            conflicts=tuple(sorted(conflicts, key=lambda c: (c.uid, c.shard, c.worker))),
        )
