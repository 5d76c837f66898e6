"""CacheTracker: which worker has which version of which model at hand."""

from __future__ import annotations

from collections.abc import Iterable

from zrecover.config import LIMITS, Limits
from zrecover.services.parts import Parts
from zrecover.services.rows import CacheRow, frozen
from zrecover.wire.messages import CacheEntry

__all__ = ["CacheTracker"]


class CacheTracker:
    """Caches of all workers."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._parts: Parts[tuple[str, str], CacheRow] = Parts(limits.caches)

    def replace(self, worker: str, entries: Iterable[CacheEntry]) -> None:
        """These are all that the worker has cached."""
        self._parts.drop(worker)
        self.add(worker, entries)

    def add(self, worker: str, entries: Iterable[CacheEntry]) -> None:
        """These have come, changed or (`gone`) left."""
        for entry in entries:
            key = (entry.model, entry.version)
            if entry.gone:
                self._parts.remove(worker, key)
                continue
            details = frozen(entry.details)
            row = CacheRow(entry.model, entry.version, worker, entry.size, details, entry.at)
            self._parts.put(worker, key, row)

    def drop(self, worker: str) -> None:
        """The worker is gone."""
        self._parts.drop(worker)

    def clear(self) -> None:
        """Forget everything."""
        self._parts.clear()

    def rows(self, model: str | None = None) -> tuple[CacheRow, ...]:
        """By model, version and worker."""
        rows = (row for _, _, row in self._parts if model is None or row.model == model)
        return tuple(sorted(rows, key=lambda row: (row.model, row.version, row.worker)))
