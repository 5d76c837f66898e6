"""What the log says of events, and how loud."""

from __future__ import annotations

import logging

import pytest

from zrecover.core.events import ClaimJudged
from zrecover.runtime.reporting import Reporter


def judged(verdict: str) -> ClaimJudged:
    return ClaimJudged("w", "m-rep0", 0, verdict, "for a reason", "picky")


@pytest.mark.parametrize(
    ("verdict", "loud"),
    [("REFUSE", True), ("HOLD", True), ("ROUTES", False), ("REBUILD", False), ("FULL", False)],
)
def test_a_replica_that_is_not_routed_is_a_warning(
    caplog: pytest.LogCaptureFixture, verdict: str, loud: bool
) -> None:
    caplog.set_level(logging.WARNING, "zrecover")
    reporter = Reporter("worker")
    reporter.tell(judged(verdict))
    reporter.close()
    said = [f"m-rep0, of worker w: verdict {verdict} by picky: for a reason"]
    assert caplog.messages == (said if loud else [])
