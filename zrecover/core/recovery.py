"""When a recovery is complete, and from what evidence."""

from __future__ import annotations

from typing import NamedTuple

from zrecover.core.registry import Registry
from zrecover.core.view import Confidence, Conflict, RecoveryReport, Skipped
from zrecover.ids import RosterVersion
from zrecover.model import Verdict

__all__ = ["Recovery"]


class Recovery:
    """One recovery, from the granted epoch on. Times are monotonic seconds.

    Whom to expect, strongest source first: the journal, the roster that workers keep, a
    number of workers, nothing but the window. `grace` is for how long after the window plugins
    may still be asked about complete groups.
    """

    def __init__(
        self,
        window: float,
        expect_workers: int | None,
        grace: float = 0.0,
        *,
        least: float = 0.25,
    ) -> None:
        self.expect_workers = expect_workers
        self.confidence: Confidence | None = None
        self._window, self._least, self._grace = window, least, grace
        self._late = False
        self._began = 0.0
        self._ended: float | None = None
        self._seen: dict[str, None] = {}
        self._expected: dict[str, None] = {}
        self._left: dict[str, None] = {}
        self._source: Confidence | None = None
        self._version = RosterVersion(0, 0)
        self._waits = True
        self._found: _Found | None = None
        self._found_at = 0

    @property
    def next_deadline(self) -> float | None:
        """When the window closes (or the grace after it), or the least time is over."""
        if self.confidence is not None:
            return None
        if self._source is not None and not self.missing and self._waits:
            return self._began + self._least
        return self._began + self._window + (self._grace if self._late else 0.0)

    @property
    def seen(self) -> int:
        """How many workers have finished their replay."""
        return len(self._seen)

    @property
    def expected(self) -> int | None:
        """How many workers are expected; None if nobody knows."""
        return len(self._expected) if self._source is not None else self.expect_workers

    @property
    def missing(self) -> tuple[str, ...]:
        """Who is expected and not back."""
        return tuple(sorted(name for name in self._expected if name not in self._seen))

    def begin(self, now: float) -> None:
        """A reign begins: nobody is back yet."""
        self._began, self._ended, self.confidence, self._late = now, None, None, False
        self._seen.clear()
        self._expected.clear()
        self._left.clear()
        self._source, self._version, self._waits = None, RosterVersion(0, 0), True

    def recalled(self, workers: tuple[str, ...]) -> None:
        """The journal names these workers; nothing if it is empty."""
        if workers and self.confidence is None:
            self._source, self._expected = Confidence.JOURNAL, self._without_left(workers)

    def testified(self, version: RosterVersion, workers: tuple[str, ...]) -> None:
        """A worker that came back keeps this roster; the newest one counts."""
        if self._source is Confidence.JOURNAL or self.confidence is not None:
            return
        if workers and version > self._version:
            self._source, self._version = Confidence.ROSTER, version
            self._expected = self._without_left(workers)

    def returned(self, worker: str) -> None:
        """A worker has finished its replay."""
        self._seen[worker] = None
        self._left.pop(worker, None)

    def left(self, worker: str) -> None:
        """A worker has said goodbye, or somebody forgot it: it is expected no longer."""
        self._expected.pop(worker, None)
        self._left[worker] = None

    def has_left(self, worker: str) -> bool:
        """True where a worker has left in this reign, and is not back."""
        return worker in self._left

    def _without_left(self, workers: tuple[str, ...]) -> dict[str, None]:
        """Those of them that may still come: evidence may be older than a goodbye."""
        return {worker: None for worker in workers if worker not in self._left}

    def check(self, now: float, *, undecided: bool = False, unread: bool = False) -> bool:
        """End the recovery if the evidence is there; True the moment it ends.

        `undecided`: plugins are being asked about some group. Who would end it now would tell
        clients that the group is not there. `unread`: the journal has not been read yet.
        """
        undecided = undecided or unread
        if self.confidence is not None:
            return False
        self._waits = now < self._began + self._least
        self._late = undecided and now >= self._began + self._window
        if undecided and now < self._began + self._window + self._grace:
            return False
        counted = self.expect_workers is not None and self.seen >= self.expect_workers
        if unread:  # for too long: what was placed and deleted is not known
            self.confidence = Confidence.WINDOW
        elif self._source is not None and not self.missing and (counted or not self._waits):
            # A second source that agrees makes waiting for an even newer roster needless.
            self.confidence = self._source
        elif self._source is None and counted:
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
            expected=tuple(sorted(self._expected)),
            seen=tuple(sorted(self._seen)),
            missing=self.missing,
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
            if replica.shards and replica.verdict < Verdict.ROUTES and replica.uid not in named
        ]
        conflicts = [c for r in registry.replicas.values() for c in r.conflicts]
        return cls(
            restored=tuple(registry.replayed()),
            skipped=tuple(sorted(skipped, key=lambda s: (s.uid, s.worker))),
            conflicts=tuple(sorted(conflicts, key=lambda c: (c.uid, c.shard, c.worker))),
        )
