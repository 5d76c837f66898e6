"""EventCollector: the last events of each model.

An event has a name for good: worker, process and number. So what is told again is not kept
twice, and since a process only adds events, what is kept does not depend on the order in which
workers tell theirs. Events of a worker that is gone stay: they have happened.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from operator import attrgetter

from zrecover.config import LIMITS, Limits
from zrecover.core.keeping import Source
from zrecover.services.rows import EventRow, frozen
from zrecover.wire.messages import EventEntry

__all__ = ["EventCollector"]

_ORDER = attrgetter("at", "worker", "incarnation", "n")
_Id = tuple[str, int, int]


class EventCollector:
    """The last `limits.events` of each of the `limits.event_models` models heard of last."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.arrived = 0
        """How many have come; a reader that has seen as many has missed nothing."""
        self._most, self._models_most = limits.events, limits.event_models
        self._rows: dict[str, list[EventRow]] = {}
        self._arrivals: dict[_Id, int] = {}

    @property
    def models(self) -> tuple[str, ...]:
        """All models of which there are events."""
        return tuple(sorted(self._rows))

    def replace(self, source: Source, entries: Iterable[EventEntry]) -> None:
        """These are the last events of this process: since each has its name, as `add`.

        Whole reports come in parts; what is known already must not look new to a reader.
        """
        self.add(source, entries)

    def add(self, source: Source, entries: Iterable[EventEntry]) -> None:
        """These have happened. One that is known already changes nothing."""
        for entry in entries:
            if (source.worker, source.incarnation, entry.n) in self._arrivals:
                continue
            row = EventRow(
                source.worker,
                source.incarnation,
                entry.n,
                entry.at,
                entry.model,
                entry.level,
                entry.text,
                frozen(entry.details),
            )
            self.arrived += 1
            self._arrivals[row.id] = self.arrived
            rows = self._rows.setdefault(entry.model, [])
            insort(rows, row, key=_ORDER)
            if len(rows) > self._most:
                self._remove(rows[0])
        while len(self._rows) > self._models_most:
            oldest = min(sorted(self._rows), key=lambda model: _ORDER(self._rows[model][-1]))
            for row in list(self._rows[oldest]):
                self._remove(row)

    def drop(self, worker: str) -> None:
        """A worker is gone. What has happened stays, until there is newer."""

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()
        self._arrivals.clear()
        self.arrived = 0

    def rows(
        self, model: str | None = None, *, after: int = 0, most: int | None = None
    ) -> tuple[EventRow, ...]:
        """Events that came after the first `after`, of one model or all, oldest first.

        Of more than `most` the last ones.
        """
        lists = list(self._rows.values()) if model is None else [self._rows.get(model, [])]
        rows = [row for rows in lists for row in rows if self._arrivals[row.id] > after]
        rows.sort(key=_ORDER)
        return tuple(rows if most is None else rows[-most:])

    def _remove(self, row: EventRow) -> None:
        rows = self._rows[row.model]
        rows.remove(row)
        del self._arrivals[row.id]
        if not rows:
            del self._rows[row.model]
