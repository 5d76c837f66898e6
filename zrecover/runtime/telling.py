"""What a worker's application tells of its models: events, progress, caches.

Called from any thread, and never blocks: entries wait in a bounded queue for the I/O thread.
They go to whoever leads when they are sent, never to a supervisor whose link is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from zrecover.config import LIMITS
from zrecover.core.inputs import Reported
from zrecover.errors import BadMessage, ConfigError, LifecycleError
from zrecover.ids import NAME_LIMIT
from zrecover.model import Replica
from zrecover.runtime.nodes import CoreNode
from zrecover.runtime.party import Party
from zrecover.wire import messages as m
from zrecover.wire.codec import encode_entry

__all__ = ["Caches", "Details", "Events", "Progress", "Telling"]

Details: TypeAlias = Mapping[str, str | int | float | bool | None]
"""A few plain values by name: 16 at most, texts of 200 characters at most."""

_ROOM = 2000
_HIGHEST = 2**53 - 1


class Events:
    """`worker.events`: what happens to its models. The last 100 of each are kept."""

    def __init__(self, tell: Callable[[m.Service, m.Entry], None]) -> None:
        self._tell = tell

    def add(
        self, model: str, text: str, *, level: str = "info", details: Details | None = None
    ) -> None:
        """Something has happened to `model`. Never blocks; from any thread.

        `level` is `debug`, `info`, `warning` or `error`; a long text is cut. Raises ConfigError
        for what cannot be told, LifecycleError while the worker is not open.
        """
        try:
            rank = m.Level(level)
        except ValueError:
            levels = ", ".join(m.Level)
            raise ConfigError(f"level must be one of {levels}, not {level!r}") from None
        entry = m.EventEntry(
            n=_HIGHEST,  # the core numbers it: there has to be room for that
            at=_now_ms(),
            model=model,
            level=rank,
            text=_cut(text),
            details=dict(details or {}),
        )
        self._tell(m.Service.EVENTS, entry)


class Progress:
    """`worker.progress`: how far requests are that take their time, such as loading a model."""

    def __init__(self, tell: Callable[[m.Service, m.Entry], None]) -> None:
        self._tell = tell

    def set(
        self, request: str, fraction: float, info: str = "", details: Details | None = None
    ) -> None:
        """`request` has come to `fraction`, from 0 to 1. Never blocks; from any thread.

        Raises ConfigError for what cannot be told, LifecycleError while the worker is not open.
        """
        self._put(request, fraction, info, details, done=False)

    def done(
        self,
        request: str,
        info: str = "",
        *,
        fraction: float = 1.0,
        details: Details | None = None,
    ) -> None:
        """`request` is over; `fraction` says how far it came. Raises as `set`."""
        self._put(request, fraction, info, details, done=True)

    def _put(
        self, request: str, fraction: float, info: str, details: Details | None, *, done: bool
    ) -> None:
        if not isinstance(fraction, int | float) or fraction != fraction:
            raise ConfigError(f"fraction must be a number from 0 to 1, not {fraction!r}")
        entry = m.ProgressEntry(
            request=request,
            fraction=min(1.0, max(0.0, float(fraction))),
            at=_now_ms(),
            info=_cut(info),
            details=dict(details or {}),
            done=done,
        )
        self._tell(m.Service.PROGRESS, entry)


class Caches:
    """`worker.cache`: which versions of which models it has at hand."""

    def __init__(self, tell: Callable[[m.Service, m.Entry], None]) -> None:
        self._tell = tell

    def set(
        self,
        model: str,
        version: str | None = None,
        *,
        size: int | None = None,
        details: Details | None = None,
    ) -> None:
        """This version of `model`, of `size` bytes, is at hand. Never blocks; from any thread.

        Raises ConfigError for what cannot be told, LifecycleError while the worker is not open.
        """
        entry = m.CacheEntry(
            model=model,
            version=version or "",
            at=_now_ms(),
            size=size,
            details=dict(details or {}),
        )
        self._tell(m.Service.CACHE, entry)

    def remove(self, model: str, version: str | None = None) -> None:
        """It is not at hand any more. Raises as `set`."""
        entry = m.CacheEntry(model=model, version=version or "", at=_now_ms(), gone=True)
        self._tell(m.Service.CACHE, entry)


class Telling:
    """All three, and the queue behind them. `node` is set once the worker is open."""

    def __init__(self, party: Party) -> None:
        self.node: CoreNode | None = None
        self.events = Events(self._tell)
        self.progress = Progress(self._tell)
        self.caches = Caches(self._tell)
        self.dropped = 0
        """Entries for which there was no room, the oldest first."""
        self._party = party
        self._lock = threading.Lock()
        self._queue: deque[m.Entry] = deque()
        self._posted = False

    def _tell(self, service: m.Service, entry: m.Entry) -> None:
        try:
            encode_entry(service, entry)
        except BadMessage as error:
            raise ConfigError(f"this cannot be told to {service}: {error}") from None
        if self.node is None:
            raise LifecycleError("the worker is not open; use it in `async with`")
        io = self._party.io
        with self._lock:
            if len(self._queue) >= _ROOM:
                self._queue.popleft()
                self.dropped += 1
            self._queue.append(entry)
            posted, self._posted = self._posted, True
        if not posted:
            io.call(self._hand_over)

    def _hand_over(self) -> None:
        """Give the core what waits (I/O thread)."""
        with self._lock:
            entries = list(self._queue)
            self._queue.clear()
            self._posted = False
        if self.node is not None:
            for entry in entries:
                self.node.feed(Reported(entry))

    @contextlib.contextmanager
    def launch(self, replica: Replica) -> Iterator[Callable[..., None]]:
        """Tell that a replica is being loaded, how far it is, and how that ended.

        Gives `progress(fraction, info="", details=None)` for whoever loads it.
        """
        name = replica.uid if replica.n_worker == 1 else f"{replica.uid}:{replica.shard}"
        request, began, last = f"load:{name}"[:NAME_LIMIT], time.monotonic(), 0.0

        def progress(fraction: float, info: str = "", details: Details | None = None) -> None:
            nonlocal last
            self.progress.set(request, fraction, info, details)
            last = fraction

        with contextlib.suppress(ConfigError, LifecycleError):
            progress(0.0, "loading")
        try:
            yield progress
        except BaseException as error:
            with contextlib.suppress(ConfigError, LifecycleError):
                why, level = type(error).__name__, "error"
                if isinstance(error, asyncio.CancelledError):  # nothing is wrong with the model
                    why, level = "given up", "warning"
                elif str(error):
                    why = f"{why}: {error}"
                self.events.add(replica.model, f"{name} could not be loaded: {why}", level=level)
                self.progress.done(request, f"failed: {why}", fraction=last)
            raise
        seconds = round(time.monotonic() - began, 3)
        with contextlib.suppress(ConfigError, LifecycleError):
            self.events.add(replica.model, f"{name} is loaded", details={"seconds": seconds})
            self.progress.done(request, "loaded")


def _cut(text: Any) -> str:
    """A text that travels, of what UTF-8 can carry."""
    return str(text)[: LIMITS.reason].encode("utf-8", "backslashreplace").decode()[: LIMITS.reason]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
