"""Runs steps one after the other in a daemon thread, and goes on without one that hangs.

One hand-off for a whole batch: a thread runs the steps, its supervisor only watches the clock.
A step that does not return within the deadline is left behind with its thread, and the next
one runs in a fresh thread. What it would have returned later is thrown away.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

__all__ = ["HUNG", "Batch", "Hung", "Renew", "Step"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Renew = Callable[[], bool]
"""Starts the deadline anew; False where the step was given up and should do nothing more."""


class Hung:
    """Stands for the result of a step that did not return in time."""


HUNG = Hung()


class Step(Protocol[T_co]):
    """What a batch runs. None of its methods may raise."""

    def __call__(self, renew: Renew) -> T_co:
        """Give a result. `renew` before each further part that has a deadline of its own."""
        ...

    def gave_up(self) -> None:
        """It has not returned in time. Before the next step begins, in the batch's thread."""
        ...

    def came_back(self) -> None:
        """It has returned after all, too late. In the thread that was left behind."""
        ...


class Batch(Generic[T]):
    """Steps that give one result each, in their order; `deadline` is seconds for each."""

    def __init__(self, steps: Sequence[Step[T]], deadline: float) -> None:
        self._steps, self._deadline = steps, deadline
        self._results: list[T | Hung] = []
        self._changed = threading.Condition(threading.Lock())
        self._generation = 0
        self._began = 0.0

    def run(self) -> list[T | Hung]:
        """Run all steps; blocks for the sum of what they take, each bounded."""
        with self._changed:
            if self._steps:
                self._start()
            while len(self._results) < len(self._steps):
                left = self._began + self._deadline - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
                self._steps[len(self._results)].gave_up()
                self._results.append(HUNG)
                self._generation += 1
                if len(self._results) < len(self._steps):
                    self._start()
        return self._results

    def _start(self) -> None:
        self._began = time.monotonic()
        threading.Thread(
            target=self._work, args=(self._generation,), name="zr-hooks", daemon=True
        ).start()

    def _work(self, generation: int) -> None:
        def renew() -> bool:
            with self._changed:
                return self._renewed(generation)

        while (step := self._next(generation)) is not None:
            result = step(renew)
            with self._changed:
                late = generation != self._generation
                if not late:
                    self._results.append(result)
                    if len(self._results) == len(self._steps):
                        self._changed.notify_all()
            if late:
                step.came_back()

    def _next(self, generation: int) -> Step[T] | None:
        """The step that comes next; None if there is none, or another thread runs it."""
        with self._changed:
            if len(self._results) < len(self._steps) and self._renewed(generation):
                return self._steps[len(self._results)]
            return None

    def _renewed(self, generation: int) -> bool:
        if generation != self._generation:
            return False
        self._began = time.monotonic()
        return True
