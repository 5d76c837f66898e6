"""Many deadlines on one timer of the loop.

Each call has a deadline and nearly none reaches it, so setting and dropping one has to be
cheap: deadlines stand in slots of `SLOT_S` seconds, and the loop has a timer for the first.
What may not come in: what happens at a deadline.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Final, Generic, TypeVar

__all__ = ["SLOT_S", "Wheel"]

SLOT_S: Final = 0.004
"""How late a deadline may be told, besides the loop's own delay."""

T = TypeVar("T")


class Wheel(Generic[T]):
    """Calls `due(item)` in the loop's thread when an item's time has come; never earlier."""

    __slots__ = ("_due", "_heap", "_loop", "_next", "_slots", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, due: Callable[[T], None]) -> None:
        self._loop = loop
        self._due = due
        self._slots: dict[int, dict[T, None]] = {}
        self._heap: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0

    def add(self, item: T, when: float) -> int:
        """Set a deadline, in the loop's time; the slot is what `drop` needs."""
        slot = int(when / SLOT_S) + 1
        items = self._slots.get(slot)
        if items is None:
            items = self._slots[slot] = {}
            heapq.heappush(self._heap, slot)
            if self._timer is None or slot < self._next:
                self._arm(slot)
        items[item] = None
        return slot

    def drop(self, item: T, slot: int) -> None:
        """The deadline does not matter any more."""
        items = self._slots.get(slot)
        if items is not None:
            items.pop(item, None)

    def close(self) -> None:
        """Forget all; nothing is called afterwards."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._slots.clear()
        self._heap.clear()

    def _arm(self, slot: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = slot
        self._timer = self._loop.call_at(slot * SLOT_S, self._turn)

    def _turn(self) -> None:
        self._timer = None
        heap, slots = self._heap, self._slots
        now = self._loop.time()
        late: list[T] = []
        while heap and (not slots[heap[0]] or heap[0] * SLOT_S <= now):
            late += slots.pop(heapq.heappop(heap))
        if heap:
            self._arm(heap[0])
        for item in late:
            self._due(item)
