"""The services of a running supervisor: written in the I/O thread, read in any."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from zrecover.core.keeping import Source
from zrecover.core.view import View
from zrecover.services import CacheRow, EventRow, ProgressRow, Services, StatusGuard
from zrecover.wire import messages as m

__all__ = ["KeptServices", "ServiceViews"]


class KeptServices:
    """`Services` behind a lock. Nothing that takes long happens inside it."""

    def __init__(self) -> None:
        self._services = Services()
        self._lock = threading.Lock()

    def replace(
        self, source: Source, service: m.Service, entries: Sequence[m.Entry], now: float
    ) -> None:
        """These are all that the worker has to say for the service."""
        with self._lock:
            self._services.replace(source, service, entries, now)

    def add(
        self, source: Source, service: m.Service, entries: Sequence[m.Entry], now: float
    ) -> None:
        """These are new."""
        with self._lock:
            self._services.add(source, service, entries, now)

    def returned(self, source: Source) -> None:
        """It has registered."""
        with self._lock:
            self._services.returned(source)

    def drop(self, worker: str) -> None:
        """The worker is gone."""
        with self._lock:
            self._services.drop(worker)

    def begin(self, epoch: int) -> None:
        """A new reign."""
        with self._lock:
            self._services.begin(epoch)

    def answer(self, query: m.Query, view: View, now: float) -> tuple[dict[str, Any], str] | None:
        """The answer to a query."""
        with self._lock:
            return self._services.answer(query, view, now)

    # --- snapshots ---

    def events(self) -> Mapping[str, tuple[EventRow, ...]]:
        """By model."""
        with self._lock:
            found = self._services.event_collector
            return MappingProxyType({model: found.rows(model) for model in found.models})

    def caches(self) -> tuple[CacheRow, ...]:
        """By model, version and worker."""
        with self._lock:
            return self._services.cache_tracker.rows()

    def progress(self) -> tuple[ProgressRow, ...]:
        """By request and worker."""
        with self._lock:
            return self._services.progress_tracker.rows(time.monotonic())


class ServiceViews:
    """`supervisor.services`: what the four services know, as immutable records, from any thread.

    Each read gives the records of that moment; they do not change afterwards.
    """

    def __init__(self, view: Callable[[], View], kept: KeptServices) -> None:
        self._view, self._kept = view, kept

    @property
    def status_guard(self) -> StatusGuard:
        """Status records of models and replicas, derived from `supervisor.view`."""
        return StatusGuard(self._view())

    @property
    def event_collector(self) -> Mapping[str, tuple[EventRow, ...]]:
        """The last events of each model, oldest first."""
        return self._kept.events()

    @property
    def cache_tracker(self) -> tuple[CacheRow, ...]:
        """Which worker has which version of which model at hand."""
        return self._kept.caches()

    @property
    def progress_tracker(self) -> tuple[ProgressRow, ...]:
        """How far the requests under way are, and those that have just ended."""
        return self._kept.progress()
