"""Runs steps one after the other in a daemon thread, and goes on without one that hangs.

One hand-off for a whole batch: a thread runs the steps, its supervisor only watches the clock.
A step that does not return within the deadline is left behind with its thread, and the next
one runs in a fresh thread. What it would have returned later is thrown away.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

__all__ = ["HUNG", "Batch", "Hung"]

T = TypeVar("T")


class Hung:
    """Stands for the result of a step that did not return in time."""


HUNG = Hung()


class Batch(Generic[T]):
    """Steps that give one result each; a step must not raise."""

    def __init__(self, steps: Sequence[Callable[[], T]], deadline: float) -> None:
        self._steps, self._deadline = steps, deadline
        self._results: list[T | Hung] = []
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._generation = 0
        self._began = 0.0

    def run(self) -> list[T | Hung]:
        """Run all steps; blocks for the sum of what they take, each bounded."""
        with self._changed:
            self._start()
            while len(self._results) < len(self._steps):
                left = self._began + self._deadline - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
                self._results.append(HUNG)
                if len(self._results) < len(self._steps):
                    self._start()
        return self._results

    def _start(self) -> None:
        self._generation += 1
        self._began = time.monotonic()
        threading.Thread(
            target=self._work, args=(self._generation,), name="zr-hooks", daemon=True
        ).start()

    def _work(self, generation: int) -> None:
        while True:
            with self._changed:
                place = len(self._results)
                if generation != self._generation or place >= len(self._steps):
                    return
                self._began = time.monotonic()
            result = self._steps[place]()
            with self._changed:
                if generation != self._generation or place != len(self._results):
                    return  # too late: it was given up
                self._results.append(result)
                if len(self._results) == len(self._steps):
                    self._changed.notify_all()
