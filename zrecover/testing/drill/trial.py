"""One run of a scenario: what happened when, and what was not as it should be."""

from __future__ import annotations

import time
from collections.abc import Callable

from zrecover.testing.drill.report import Moment, Report

__all__ = ["Trial"]


class Trial:
    """Collects moments and problems; `tell` gets each moment's line as it is noted."""

    def __init__(self, scenario: str, tell: Callable[[str], None]) -> None:
        self.report = Report(scenario)
        self.problems: list[str] = []
        self.fault: float | None = None
        """When the cluster was hurt, in monotonic seconds; None until then."""
        self._tell = tell
        self._moments: list[Moment] = []

    def hurt(self, at: float, text: str) -> None:
        """The fault itself: all moments are told in relation to it."""
        self.fault = at
        self.note(text, at)

    def note(self, text: str, at: float | None = None) -> None:
        """Something happened, now or `at`."""
        at = time.monotonic() if at is None else at
        self._moments.append(Moment(at, text))
        if self.fault is None:
            self._tell(text)
        else:
            self._tell(f"{(at - self.fault) * 1000:9.1f} ms  {text}")

    def check(self, fine: bool, problem: str) -> bool:
        """Remember `problem` unless it is fine; returns `fine`."""
        if not fine:
            self.problems.append(problem)
        return fine

    def finish(self) -> Report:
        """The verdict."""
        zero = self.fault or 0.0
        moments = [Moment(at - zero, text) for at, text in sorted(self._moments)]
        self.report.timeline = moments if self.fault is not None else []
        self.report.passed = not self.problems
        self.report.why = "; ".join(self.problems) or None
        return self.report
