"""All services of one supervisor behind one face: what the core gives reports to and asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from zrecover.config import LIMITS, Limits
from zrecover.core.keeping import Source
from zrecover.core.view import View
from zrecover.ids import Cursor
from zrecover.services.cache import CacheTracker
from zrecover.services.events import EventCollector
from zrecover.services.progress import ProgressTracker
from zrecover.services.rows import plain
from zrecover.services.status_guard import StatusGuard
from zrecover.wire import messages as m

__all__ = ["Services"]

_ROWS = 5000
"""Rows of one answer at most."""


class Services:
    """A Keeper (`zrecover.core.keeping`). Not thread-safe; `now` is monotonic."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.event_collector = EventCollector(limits)
        self.cache_tracker = CacheTracker(limits)
        self.progress_tracker = ProgressTracker(limits)
        self.epoch = 0
        self._incarnations: dict[str, int] = {}

    def replace(
        self, source: Source, service: m.Service, entries: Sequence[m.Entry], now: float
    ) -> None:
        """These are all that the worker has to say for the service."""
        match service:
            case m.Service.EVENTS:
                self.event_collector.replace(source, cast(Sequence[m.EventEntry], entries))
            case m.Service.PROGRESS:
                progress = cast(Sequence[m.ProgressEntry], entries)
                self.progress_tracker.replace(source.worker, progress, now)
            case m.Service.CACHE:
                self.cache_tracker.replace(source.worker, cast(Sequence[m.CacheEntry], entries))

    def add(
        self, source: Source, service: m.Service, entries: Sequence[m.Entry], now: float
    ) -> None:
        """These are new."""
        match service:
            case m.Service.EVENTS:
                self.event_collector.add(source, cast(Sequence[m.EventEntry], entries))
            case m.Service.PROGRESS:
                progress = cast(Sequence[m.ProgressEntry], entries)
                self.progress_tracker.add(source.worker, progress, now)
            case m.Service.CACHE:
                self.cache_tracker.add(source.worker, cast(Sequence[m.CacheEntry], entries))

    def returned(self, source: Source) -> None:
        """It has registered: what an older process of it had cached or did is over."""
        if self._incarnations.get(source.worker, source.incarnation) != source.incarnation:
            self.drop(source.worker)
        self._incarnations[source.worker] = source.incarnation

    def drop(self, worker: str) -> None:
        """The worker is gone, with its caches and what it was doing."""
        self._incarnations.pop(worker, None)
        for service in (self.event_collector, self.cache_tracker, self.progress_tracker):
            service.drop(worker)

    def begin(self, epoch: int) -> None:
        """A new reign: nothing is known."""
        self.epoch = epoch
        self._incarnations.clear()
        for service in (self.event_collector, self.cache_tracker, self.progress_tracker):
            service.clear()

    # --- answers ---

    @property
    def cursor(self) -> Cursor:
        """How far a reader is that has seen all events."""
        return Cursor(self.epoch, self.event_collector.arrived)

    def answer(self, query: m.Query, view: View, now: float) -> tuple[dict[str, Any], str] | None:
        """The answer to a query for one of the services; None for any other query."""
        target = query.target
        match query.what:
            case "instances":
                return StatusGuard(view).plain(target), ""
            case "events":
                since = query.since
                after = since.n if since is not None and since.epoch == self.epoch else 0
                events = self.event_collector.rows(target, after=after, most=_ROWS)
                rows = [plain(event) for event in events]
                return {"events": rows, "cursor": list(self.cursor)}, ""
            case "progress":
                progress = self.progress_tracker.rows(now, target)[:_ROWS]
                return {"progress": [plain(row) for row in progress]}, ""
            case "cache":
                cached = self.cache_tracker.rows(target)[:_ROWS]
                return {"cache": [plain(row) for row in cached]}, ""
            case _:
                return None
