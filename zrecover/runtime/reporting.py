"""Events to the log and to whoever asked for them, in a thread of their own.

The I/O thread only puts them on a bounded queue: a full pipe behind the log, or a slow
callback, never delays a heartbeat. What does not fit is counted and dropped.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from zrecover.core.events import (
    ClaimJudged,
    ClaimRefused,
    ConnectionsFailed,
    Event,
    JournalFailed,
    JournalMovedAside,
    MassLossSuspected,
    PeerRejected,
)
from zrecover.model import Verdict

__all__ = ["Observer", "Reporter"]

Observer = Callable[[Event], None]
"""Called with each event, in the reporter's thread. What it raises is logged."""

_log = logging.getLogger("zrecover")
_ROOM = 10_000
_QUIET = (PeerRejected, ClaimRefused, ConnectionsFailed)
_QUIET_MOST = 20
_LOUD = (JournalFailed, JournalMovedAside, MassLossSuspected)
"""Somebody should look: warnings, also where only those are logged."""
_UNROUTED = {verdict.name for verdict in Verdict if verdict < Verdict.ROUTES}


class Reporter:
    """Tells events to the log `zrecover.<role>` and to observers."""

    def __init__(self, role: str, *observers: Observer, log: bool = True) -> None:
        self.dropped = 0
        """Events for which there was no room."""
        self._log = logging.getLogger(f"zrecover.{role}")
        self._observers, self._logs = observers, log
        self._queue: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._repeats: dict[type[Event], int] = {}
        self._thread = threading.Thread(target=self._run, name=f"zr-report-{role}", daemon=True)
        self._thread.start()

    def tell(self, event: Event) -> None:
        """Report one event; never blocks. From any thread.

        Nobody is woken where nobody listens: a thread that wakes takes the interpreter from the
        one that tells.
        """
        if not self._observers and not (self._logs and self._log.isEnabledFor(_level_of(event))):
            return
        if self._queue.qsize() >= _ROOM:
            self.dropped += 1
        else:
            self._queue.put(event)

    def close(self, timeout: float = 1.0) -> None:
        """Report what is queued and end, within `timeout` seconds."""
        self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _run(self) -> None:
        while (event := self._queue.get()) is not None:
            if self._logs:
                self._log_one(event)
            for observer in self._observers:
                try:
                    observer(event)
                except BaseException:  # such as a plugin's sys.exit
                    _log.exception("an observer failed on: %s", event)

    def _log_one(self, event: Event) -> None:
        """One line an event; what peers can cause at will is thinned out."""
        if isinstance(event, _QUIET):
            times = self._repeats[type(event)] = self._repeats.get(type(event), 0) + 1
            if times > _QUIET_MOST and times % 1000:
                return
        self._log.log(_level_of(event), "%s", event)


def _level_of(event: Event) -> int:
    if isinstance(event, ClaimJudged):  # what is not routed is of no use to anybody
        return logging.WARNING if event.verdict in _UNROUTED else logging.INFO
    return logging.WARNING if isinstance(event, _LOUD) else logging.INFO
