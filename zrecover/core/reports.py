"""What a worker tells of its models beside the inventory: the last events, progress, caches.

It keeps its own part, whoever leads. A supervisor gets all of it right after a registration,
and what is new afterwards, a few times a second at most. The supervisor counts the reports in
its answers to heartbeats; where one is missing, all of it is sent again.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TypeVar

import msgspec

from zrecover.config import LIMITS, Limits
from zrecover.core.effects import Send
from zrecover.core.inventory import parts_of
from zrecover.ids import Session
from zrecover.wire import messages as m
from zrecover.wire.codec import encode_entry

__all__ = ["Reports"]

_PACE = 0.1
_SHOWN = 60.0
K = TypeVar("K")
V = TypeVar("V")


class Reports:
    """The own part of one worker. Pure bookkeeping; entries are what the wire can carry."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.events: OrderedDict[str, deque[m.EventEntry]] = OrderedDict()
        """The last events of each model; the model that was heard of last comes last."""
        self.progress: OrderedDict[str, m.ProgressEntry] = OrderedDict()
        """How far each request under way is, those that moved last at the end."""
        self.finished: OrderedDict[str, tuple[float, m.ProgressEntry]] = OrderedDict()
        """Requests that ended a moment ago, and when: whoever leads next hears of it, too."""
        self.cache: OrderedDict[tuple[str, str], m.CacheEntry] = OrderedDict()
        """What is cached, by model and version."""
        self._limits = limits
        self._n = 0
        self._used: set[m.Service] = set()
        self._session: Session | None = None
        self._news: dict[m.Service, OrderedDict[object, m.Entry]] = {}
        self._all = False
        self._sent_at = float("-inf")
        self._sent = 0
        self._expected: tuple[int, int] | None = None

    @property
    def next_deadline(self) -> float | None:
        """When what is new has to be sent; None while there is nothing, or nobody."""
        if self._session is None or not (self._all or self._news):
            return None
        return self._sent_at + _PACE

    def take(self, entry: m.Entry, now: float) -> None:
        """Keep an entry; it is sent when it is due. An event gets its number.

        Raises BadMessage for one that no supervisor could read; nothing changes then.
        """
        match entry:
            case m.EventEntry():
                entry = msgspec.structs.replace(entry, n=self._n + 1)
                encode_entry(m.Service.EVENTS, entry)
                self._n = entry.n
                self._event(entry)
                self._new(m.Service.EVENTS, self._n, entry)
            case m.ProgressEntry(request=request):
                encode_entry(m.Service.PROGRESS, entry)
                self.progress.pop(request, None)
                self.finished.pop(request, None)
                if entry.done:
                    _put(self.finished, request, (now, entry), max(1, self._limits.requests // 4))
                else:
                    _put(self.progress, request, entry, self._limits.requests)
                self._new(m.Service.PROGRESS, request, entry)
            case _:
                encode_entry(m.Service.CACHE, entry)
                key = (entry.model, entry.version)
                if entry.gone:
                    self.cache.pop(key, None)
                else:
                    _put(self.cache, key, entry, self._limits.cached)
                self._new(m.Service.CACHE, key, entry)

    def _event(self, entry: m.EventEntry) -> None:
        ring = self.events.get(entry.model)
        if ring is None:
            ring = deque(maxlen=self._limits.events)
        ring.append(entry)
        _put(self.events, entry.model, ring, max(1, self._limits.event_models // 10))

    def _new(self, service: m.Service, key: object, entry: m.Entry) -> None:
        self._used.add(service)
        if self._session is None or self._all:
            return  # all of it is sent anyway
        news = self._news.setdefault(service, OrderedDict())
        if len(news) >= self._limits.cached and key not in news:
            self._again()
            return
        _put(news, key, entry, self._limits.cached)

    # --- the link ---

    def begin(self, session: Session) -> None:
        """A registration was accepted: whoever gave it knows nothing of us yet."""
        self._session, self._expected = session, None
        self._sent, self._sent_at = 0, float("-inf")
        self._news.clear()
        self._all = bool(self._used)

    def end(self) -> None:
        """The session is over. Nothing of our own part is lost."""
        self._session = None

    def beat(self, beat: int) -> None:
        """A heartbeat goes out: its answer tells how many of our reports have come."""
        self._expected = (beat, self._sent)

    def acked(self, beat: int, reports: int) -> None:
        """The answer to a heartbeat: send all again where the supervisor missed something."""
        if self._expected is None or self._expected[0] != beat:
            return
        missing = self._expected[1] - reports
        self._expected = None
        if missing:
            self._sent -= missing
            self._again()

    def _again(self) -> None:
        self._news.clear()
        self._all = True

    def due(self, link: int, now: float, *, last: bool = False) -> list[Send]:
        """The reports that have to be sent now; with `last` all that is new."""
        at, session = self.next_deadline, self._session
        if at is None or session is None or (at > now and not last):
            return []
        whole = self._all
        self._forget_finished(now)
        news = {service: list(entries.values()) for service, entries in self._news.items()}
        out = []
        for service, entries in (self._own() if whole else news).items():
            raws = [encode_entry(service, entry) for entry in entries]
            for number, part in enumerate(parts_of(raws, self._limits)):
                report = m.ServiceReport(session, service, whole and number == 0, part)
                out.append(Send(link, report))
        self._sent += len(out)
        self._sent_at, self._all = now, False
        self._news = {}
        return out

    def _forget_finished(self, now: float) -> None:
        for request, (at, _) in list(self.finished.items()):
            if at + _SHOWN > now:
                break
            del self.finished[request]

    def _own(self) -> dict[m.Service, list[m.Entry]]:
        """All that a supervisor has to know, of each service that was ever used."""
        events = [event for ring in self.events.values() for event in ring]
        events.sort(key=lambda event: event.n)
        own: dict[m.Service, list[m.Entry]] = {
            m.Service.EVENTS: [*events],
            m.Service.PROGRESS: [
                *self.progress.values(),
                *(entry for _, entry in self.finished.values()),
            ],
            m.Service.CACHE: list(self.cache.values()),
        }
        return {service: own[service] for service in m.Service if service in self._used}


def _put(kept: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """The last one under its key, at the end; the oldest goes if there are too many."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
