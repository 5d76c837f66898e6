"""What a scenario found: one report, as JSON and as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from zrecover.testing.drill.stream import Requests

__all__ = ["HEADINGS", "Moment", "Report", "rows", "table", "timeline"]


class Moment(NamedTuple):
    """Something that happened, at a time in seconds after the fault."""

    at: float
    text: str


@dataclass(slots=True)
class Report:
    """The outcome of one scenario; None where something does not apply or was not reached."""

    scenario: str
    passed: bool = False
    why: str | None = None
    """Why it did not pass."""
    workers: int | None = None
    replicas: int | None = None
    worker_pids_unchanged: bool | None = None
    models_reloaded: int | None = None
    old_address: str | None = None
    new_address: str | None = None
    noticed_ms: float | None = None
    """From the fault to the last worker's loss of its link."""
    recovered_ms: float | None = None
    """From the new supervisor's granted announcement to the old routes, as clients get them."""
    requests: Requests = field(default_factory=Requests)
    restored: list[str] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    confidence: str | None = None
    """From what evidence the last recovery was called complete."""
    status_restored: int | None = None
    """Replicas of which the status records are back, too."""
    timeline: list[Moment] = field(default_factory=list)
    """For people; no part of the JSON."""

    def to_json(self) -> dict[str, Any]:
        """The fields of one line of `zrecover drill --json`."""
        values = asdict(self)
        del values["timeline"]
        return values


HEADINGS = (
    "scenario",
    "result",
    "noticed",
    "recovered",
    "status",
    "confidence",
    "sent",
    "failed",
    "longest gap",
    "p99",
    "reloaded",
)


_WORDS = ("scenario", "result", "confidence")
_FIRST_TO_GO = ("status", "confidence", "reloaded", "p99", "sent", "longest gap")
"""What a narrow terminal has no room for, first what one would miss least."""


def rows(reports: Sequence[Report]) -> list[tuple[str, ...]]:
    """One row a report, under `HEADINGS`."""
    return [
        (
            report.scenario,
            "passed" if report.passed else "FAILED",
            _ms(report.noticed_ms),
            _ms(report.recovered_ms),
            _status(report),
            report.confidence or "-",
            str(report.requests.sent),
            str(report.requests.failed),
            _ms(report.requests.longest_gap_ms),
            _ms(report.requests.p99_ms),
            "-" if report.models_reloaded is None else str(report.models_reloaded),
        )
        for report in reports
    ]


def table(reports: Sequence[Report], width: int | None = None) -> str:
    """The rows as plain text, and under them why something failed or was skipped.

    No line of it is longer than `width`, where that is given: columns are left out, and named.
    """
    lines = [HEADINGS, *rows(reports)]
    widths = {
        heading: max(len(line[column]) for line in lines) for column, heading in enumerate(HEADINGS)
    }
    left_out = []
    for heading in _FIRST_TO_GO:
        if width is None or sum(widths.values()) + 2 * (len(widths) - 1) <= width:
            break
        del widths[heading]
        left_out.append(heading)
    text = [
        "  ".join(
            cell.ljust(widths[heading]) if heading in _WORDS else cell.rjust(widths[heading])
            for heading, cell in zip(HEADINGS, line, strict=True)
            if heading in widths
        ).rstrip()
        for line in lines
    ]
    text.insert(1, "-" * max(map(len, text)))
    if left_out:
        text.append(f"no room here for {', '.join(left_out)}; --json has everything")
    return "\n".join([*text, *remarks(reports)])


def remarks(reports: Sequence[Report]) -> list[str]:
    """Why something failed, and what was not restored, once each."""
    failed = [f"{report.scenario} failed: {report.why}" for report in reports if not report.passed]
    skipped = {_skipped(row): None for report in reports for row in report.skipped}
    return [*failed, *skipped]


def _skipped(row: dict[str, str]) -> str:
    by = f" (decided by {row['plugin']})" if row["plugin"] else ""
    return f"{row['uid']} was not restored: {row['reason']}{by}"


def timeline(report: Report) -> str:
    """What happened when, one line each, after the fault."""
    lines = [f"  {moment.at * 1000:9.1f} ms  {moment.text}" for moment in report.timeline]
    return "\n".join([f"{report.scenario}: {'passed' if report.passed else 'FAILED'}", *lines])


def _status(report: Report) -> str:
    """Of how many of the replicas that can be called the status is restored."""
    if report.status_restored is None:
        return "-"
    return f"{report.status_restored}/{report.replicas}"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} ms"
