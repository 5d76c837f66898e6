"""A plugin that keeps the events that it observes, for tests."""

from __future__ import annotations

import threading
import time
from typing import TypeVar

from zrecover.core.events import Event
from zrecover.hooks import hookimpl

__all__ = ["Recorder"]

E = TypeVar("E", bound=Event)


class Recorder:
    """Give it to `Plugins(given=…)`; thread-safe."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._changed = threading.Condition()

    @property
    def events(self) -> tuple[Event, ...]:
        """All events so far, in order."""
        with self._changed:
            return tuple(self._events)

    @hookimpl
    def zrecover_event(self, event: Event) -> None:
        """Keep it."""
        with self._changed:
            self._events.append(event)
            self._changed.notify_all()

    def wait_for(self, kind: type[E], within: float = 10.0) -> E:
        """The first event of a kind, as soon as it has come; AssertionError if it does not."""
        end = time.monotonic() + within
        with self._changed:
            while True:
                for event in self._events:
                    if isinstance(event, kind):
                        return event
                left = end - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    names = [type(event).__name__ for event in self._events]
                    raise AssertionError(f"no {kind.__name__} within {within:g} s, but {names}")
