"""Who is silent for how long: SUSPECT, LOST, the brake, and our own stalls.

A heap with one valid entry a worker, moved lazily: a heartbeat costs nothing here. Times
are monotonic seconds. This part only says what is due; the supervisor acts.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from zrecover.core.registry import WorkerRecord
from zrecover.model import WorkerState

__all__ = ["Due", "Liveness"]

BRAKE_FROM = 5
"""The brake needs a roster of this many workers."""
BRAKE_SHARE = 0.35
"""It holds when more than this share of the roster would be removed together."""
_SLACK = 64


@dataclass(frozen=True, slots=True)
class Due:
    """What the silence of workers asks for."""

    suspect: tuple[WorkerRecord, ...]
    lost: tuple[WorkerRecord, ...]
    braked: bool
    silent: int
    """Workers that are silent now or were lost lately."""
    roster: int


class Liveness:
    """Watches all registered workers."""

    def __init__(self, timeout: float, lost_after: float, stall: float) -> None:
        self.timeout, self.lost_after = timeout, lost_after
        self.braked = False
        self._stall = stall
        self._heap: list[tuple[float, int, WorkerRecord]] = []
        self._order = 0
        self._valid: dict[str, int] = {}
        self._suspects: dict[str, WorkerRecord] = {}
        self._lately: dict[str, float] = {}
        self._grace_until = 0.0
        self._last: float | None = None
        self._shorter_at: float | None = None

    @property
    def next_deadline(self) -> float | None:
        """When somebody may be due."""
        return max(self._heap[0][0], self._grace_until) if self._heap else None

    def paced(self, timeout: float, lost_after: float, now: float) -> None:
        """The pace of now: a longer time-out counts at once, a shorter one once all know of it."""
        shorter = timeout < self.timeout
        if shorter and self._shorter_at is None:
            self._shorter_at = now + self.timeout
        if shorter and self._shorter_at is not None and now < self._shorter_at:
            return
        self.timeout, self.lost_after, self._shorter_at = timeout, lost_after, None
        if shorter:
            for _, order, record in list(self._heap):
                if self._valid.get(record.worker) == order:
                    self._push(record.last_heard + timeout, record)

    def watch(self, record: WorkerRecord) -> None:
        """A worker has registered."""
        self._suspects.pop(record.worker, None)
        self._lately.pop(record.worker, None)
        self._push(record.last_heard + self.timeout, record)

    def heard(self, record: WorkerRecord) -> None:
        """A worker that was silent is heard again."""
        self._suspects.pop(record.worker, None)
        self._push(record.last_heard + self.timeout, record)

    def suspect(self, record: WorkerRecord, now: float) -> None:
        """A worker cannot be reached: it is SUSPECT before its time-out."""
        self._suspects[record.worker] = record
        self._push(record.last_heard + self.lost_after, record)

    def forget(self, worker: str) -> None:
        """The worker is not registered any more."""
        self._valid.pop(worker, None)
        self._suspects.pop(worker, None)

    def clear(self) -> None:
        """A new reign: nobody is registered, and nobody was lost in it."""
        self._valid.clear()
        self._suspects.clear()
        self._lately.clear()

    def stalled(self, now: float) -> float:
        """For how long this process stood still before `now`; 0.0 if it did not.

        After a stall nobody expires for one more time-out: what they sent is still queued.
        """
        last, self._last = self._last, now
        if last is None or now - last <= self._stall:
            return 0.0
        self._grace_until = max(self._grace_until, now + self.timeout)
        return now - last

    def due(self, now: float) -> Due:
        """Who is due at `now`; who is lost is watched no more."""
        suspects: list[WorkerRecord] = []
        overdue: list[WorkerRecord] = []
        while now >= self._grace_until and self._heap and self._heap[0][0] <= now:
            _, order, record = heapq.heappop(self._heap)
            if self._valid.get(record.worker) != order:
                continue
            # Compared as they are put on the heap: what is put back is not due again at once.
            silent_from = record.last_heard + self.timeout
            lost_from = record.last_heard + self.lost_after
            if lost_from <= now:
                overdue.append(record)
            elif silent_from <= now:
                self._push(lost_from, record)
            else:
                self._push(silent_from, record)
                continue
            if record.state is WorkerState.ALIVE:
                suspects.append(record)
                self._suspects[record.worker] = record
        for worker in [w for w, at in self._lately.items() if at + self.lost_after <= now]:
            del self._lately[worker]
        roster = len(self._valid) + len(self._lately)
        silent_now = len(self._suspects) + len(self._lately)
        self.braked = roster >= BRAKE_FROM and silent_now > BRAKE_SHARE * roster
        if self.braked:
            for record in overdue:
                self._push(now + self.timeout, record)
            overdue = []
        for record in overdue:
            self.forget(record.worker)
            self._lately[record.worker] = now
        return Due(tuple(suspects), tuple(overdue), self.braked, silent_now, roster)

    def _push(self, at: float, record: WorkerRecord) -> None:
        self._order += 1
        self._valid[record.worker] = self._order
        heapq.heappush(self._heap, (at, self._order, record))
        if len(self._heap) > 2 * len(self._valid) + _SLACK:
            self._heap = [e for e in self._heap if self._valid.get(e[2].worker) == e[1]]
            heapq.heapify(self._heap)
