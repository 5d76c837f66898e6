"""Runs steps one after the other in a daemon thread, and goes on without one that hangs.

One hand-off for a whole batch: a thread runs the steps, its supervisor only watches the clock.
A step that does not return within the deadline is left behind with its thread, and the next
one runs in a fresh thread. What it would have returned later is thrown away.

Somebody waits for the whole batch, however many steps there are and however slow each of them:
what has not begun after a while is not begun at all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

__all__ = ["HUNG", "NOT_BEGUN", "Batch", "Hung", "NotBegun", "Renew", "Step"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Renew = Callable[[], bool]
"""Starts the deadline anew; False where it is too late for that, and nothing more may be done."""

_BEGIN: Final = 1.25
"""In deadlines: nothing begins later than that after the batch has begun. With what begins last,
all takes 2.25 deadlines at most, which is less than a registration may stay unanswered."""


class Hung:
    """Stands for the result of a step that did not return in time."""


HUNG = Hung()


class NotBegun:
    """Stands for the result of a step that was not begun, since the others took too long."""


NOT_BEGUN = NotBegun()


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
        self._results: list[T | Hung | NotBegun] = []
        self._changed = threading.Condition(threading.Lock())
        self._generation = 0
        self._began = 0.0
        self._last = 0.0

    def run(self) -> list[T | Hung | NotBegun]:
        """Run the steps; blocks for the sum of what they take, which is bounded."""
        with self._changed:
            self._last = time.monotonic() + _BEGIN * self._deadline
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
            left = len(self._steps) - len(self._results)
            if left == 0 or generation != self._generation:
                return None
            if self._renewed(generation):
                return self._steps[-left]
            self._results += [NOT_BEGUN] * left
            self._changed.notify_all()
            return None

    def _renewed(self, generation: int) -> bool:
        now = time.monotonic()
        if generation != self._generation or now > self._last:
            return False
        self._began = now
        return True
