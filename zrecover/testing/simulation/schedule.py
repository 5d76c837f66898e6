"""Virtual time: what is to happen, in order. No clock is read and nothing waits."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

__all__ = ["Schedule"]

BEGIN = 100.0
"""Monotonic seconds at which every history begins: not 0, which could pass for "never"."""


class Schedule:
    """A heap of calls. Those due at the same moment happen in the order they were put in."""

    def __init__(self) -> None:
        self.now = BEGIN
        self.calls = 0
        """How many calls have been made."""
        self._heap: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._order = 0

    def at(self, when: float, act: Callable[..., object], *args: Any) -> None:
        """Call `act(*args)` at `when`, or now if that is past."""
        self._order += 1
        heappush(self._heap, (max(when, self.now), self._order, act, args))

    def after(self, delay: float, act: Callable[..., object], *args: Any) -> None:
        """Call `act(*args)` in `delay` seconds."""
        self.at(self.now + delay, act, *args)

    def step(self, until: float) -> bool:
        """Make the next call that is due by `until`; False, and it is `until`, if none is."""
        if not self._heap or self._heap[0][0] > until:
            self.now = max(self.now, until)
            return False
        when, _, act, args = heappop(self._heap)
        self.now = when
        self.calls += 1
        act(*args)
        return True

    def run(self, until: float) -> None:
        """Make all calls that are due by `until`."""
        while self.step(until):
            pass
