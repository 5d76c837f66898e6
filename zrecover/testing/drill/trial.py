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

    def hurt(self, at: float, text: str) -> None:
        """The fault itself: all moments are told in relation to it."""
        self.fault = at
        self.note(text, at)

    def note(self, text: str, at: float | None = None) -> None:
        """Something happened, now or `at`."""
        at = time.monotonic() if at is None else at
        since = at - (at if self.fault is None else self.fault)
        self.report.timeline.append(Moment(since, text))
        self._tell(f"{since * 1000:9.1f} ms  {text}" if self.fault is not None else text)

    def check(self, fine: bool, problem: str) -> bool:
        """Remember `problem` unless it is fine; returns `fine`."""
        if not fine:
            self.problems.append(problem)
        return fine

    def finish(self) -> Report:
        """The verdict."""
        self.report.passed = not self.problems
        self.report.why = "; ".join(self.problems) or None
        return self.report
