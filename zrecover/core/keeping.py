"""Service reports on their way to whoever keeps them.

Core knows what a keeper can do, not what the services are. Reports of registered workers are
taken in, entry by entry; what a worker that is gone has said is given up.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol

from zrecover.core.effects import Effect
from zrecover.core.evidence import Evidence
from zrecover.core.registrar import Registrar
from zrecover.core.registry import Registry
from zrecover.core.view import View
from zrecover.errors import BadMessage
from zrecover.wire import messages as m
from zrecover.wire.codec import decode_entry

__all__ = ["Keeper", "Keeping", "NoKeeper", "Source"]


class Source(NamedTuple):
    """The process of a worker that says something."""

    worker: str
    incarnation: int


class Keeper(Protocol):
    """Who keeps what workers report. Called in the thread of the core; must not block."""

    def replace(
        self, source: Source, service: m.Service, entries: Sequence[m.Entry], now: float
    ) -> None:
        """These are all that the worker has to say for the service; what it said before goes."""
        ...

    def add(
        self, source: Source, service: m.Service, entries: Sequence[m.Entry], now: float
    ) -> None:
        """These are new."""
        ...

    def returned(self, source: Source) -> None:
        """It has registered: what an older process of the worker held is over."""
        ...

    def drop(self, worker: str) -> None:
        """The worker is gone."""
        ...

    def begin(self, epoch: int) -> None:
        """A new reign: nothing is known."""
        ...

    def answer(self, query: m.Query, view: View, now: float) -> tuple[dict[str, Any], str] | None:
        """The answer as plain values, or why there is none; None for what is no query of ours."""
        ...


class NoKeeper:
    """Keeps nothing: for a supervisor that runs without services."""

    def replace(
        self, source: Source, service: m.Service, entries: Sequence[m.Entry], now: float
    ) -> None:
        """Nothing."""

    def add(
        self, source: Source, service: m.Service, entries: Sequence[m.Entry], now: float
    ) -> None:
        """Nothing."""

    def returned(self, source: Source) -> None:
        """Nothing."""

    def drop(self, worker: str) -> None:
        """Nothing."""

    def begin(self, epoch: int) -> None:
        """Nothing."""

    def answer(self, query: m.Query, view: View, now: float) -> tuple[dict[str, Any], str] | None:
        """It knows no query."""
        return None


class Keeping:
    """The reports of one supervisor's workers."""

    def __init__(
        self, keeper: Keeper, registrar: Registrar, registry: Registry, evidence: Evidence
    ) -> None:
        self.keeper = keeper
        self.bad = 0
        """Entries that could not be read."""
        self._registrar, self._registry, self._evidence = registrar, registry, evidence

    def report(
        self, peer: Hashable, report: m.ServiceReport, now: float, out: list[Effect]
    ) -> None:
        """A worker reports. One of a stale session is told that it is unknown."""
        record = self._registrar.known(peer, report.session, out)
        if record is None:
            return
        record.reports += 1
        entries = []
        for raw in report.entries:
            try:
                entries.append(decode_entry(report.service, raw))
            except BadMessage as error:
                self.bad += 1
                what = "told something for {} that cannot be read: {}"
                self._evidence.worker(record.worker, now, what, report.service, error)
        take = self.keeper.replace if report.whole else self.keeper.add
        take(Source(record.worker, record.incarnation), report.service, entries, now)

    def run(self) -> None:
        """Take in who has come and gone."""
        for worker in self._registrar.removed:
            self.keeper.drop(worker)
        for worker in self._registrar.returned:
            record = self._registry.workers.get(worker)
            if record is not None:
                self.keeper.returned(Source(worker, record.incarnation))
