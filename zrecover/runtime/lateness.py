"""How late a loop was, at worst, in the last seconds: one slot a second, overwritten in turn."""

from __future__ import annotations

__all__ = ["Lateness"]

_SECONDS = 10


class Lateness:
    """One thread notes, any may read. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._slots: list[tuple[int, float]] = [(-_SECONDS, 0.0)] * (_SECONDS + 1)

    def note(self, now: float, late: float) -> None:
        """The loop was `late` by so many seconds."""
        second = int(now)
        at = second % len(self._slots)
        slot = self._slots[at]
        if slot[0] != second or slot[1] < late:
            self._slots[at] = (second, late)

    def worst(self, now: float) -> float:
        """The most in the last 10 seconds; 0 if nothing was noted."""
        oldest = int(now) - _SECONDS
        return max((late for second, late in self._slots if second >= oldest), default=0.0)
