"""ProgressTracker: how far each request is. Finished ones are shown a while, then they go."""

from __future__ import annotations

from collections.abc import Iterable

from zrecover.config import LIMITS, Limits
from zrecover.services.parts import Parts
from zrecover.services.rows import ProgressRow, frozen
from zrecover.wire.messages import ProgressEntry

__all__ = ["ProgressTracker"]

_SHOWN = 60.0


class ProgressTracker:
    """Progress of all workers' requests; `now` is monotonic. A request may be of several."""

    def __init__(self, limits: Limits = LIMITS, *, shown: float = _SHOWN) -> None:
        self._shown = shown
        """For how many seconds what is finished is shown."""
        self._parts: Parts[str, ProgressRow] = Parts(limits.progress)
        self._ended: dict[tuple[str, str], float] = {}

    def replace(self, worker: str, entries: Iterable[ProgressEntry], now: float) -> None:
        """These are all requests of the worker that are under way; finished ones stay a while."""
        for request in self._parts.part(worker):
            if (worker, request) not in self._ended:
                self._parts.remove(worker, request)
        self.add(worker, entries, now)

    def add(self, worker: str, entries: Iterable[ProgressEntry], now: float) -> None:
        """These have moved, or are done."""
        self.expire(now)
        for entry in entries:
            key = (worker, entry.request)
            self._ended.pop(key, None)
            if entry.done:
                self._ended[key] = now
            row = ProgressRow(
                entry.request,
                worker,
                entry.fraction,
                entry.info,
                frozen(entry.details),
                entry.at,
                entry.done,
            )
            self._parts.put(worker, entry.request, row)

    def drop(self, worker: str) -> None:
        """The worker is gone, and what it did with it."""
        for request in self._parts.part(worker):
            self._ended.pop((worker, request), None)
        self._parts.drop(worker)

    def clear(self) -> None:
        """Forget everything."""
        self._parts.clear()
        self._ended.clear()

    def expire(self, now: float) -> None:
        """Forget what has been finished for long enough."""
        for key, at in list(self._ended.items()):
            if at + self._shown > now:
                break  # they are in the order in which they ended
            del self._ended[key]
            self._parts.remove(*key)

    def rows(self, now: float, request: str | None = None) -> tuple[ProgressRow, ...]:
        """By request and worker."""
        self.expire(now)
        rows = (row for _, _, row in self._parts if request is None or row.request == request)
        return tuple(sorted(rows, key=lambda row: (row.request, row.worker)))
