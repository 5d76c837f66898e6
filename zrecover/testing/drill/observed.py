"""What the processes of a cluster have told of themselves: events as JSON lines.

Their times are those of the system's monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

from collections.abc import Iterator

from zrecover.testing.process import Process, Record

__all__ = ["at", "events", "happened", "wait_for"]


def events(process: Process, kind: str, *, since: float = 0.0) -> Iterator[Record]:
    """The events of one kind, in order, that happened at `since` or later."""
    for record in process.records:
        if record.get("event") == kind and at(record) >= since:
            yield record


def happened(process: Process, kind: str, *, since: float = 0.0) -> float | None:
    """When the first event of the kind happened; None if none has."""
    return next((at(record) for record in events(process, kind, since=since)), None)


async def wait_for(
    process: Process, kind: str, *, since: float = 0.0, timeout: float = 20.0
) -> Record:
    """Wait for the first event of the kind. Raises ProcessFailed."""
    await process.wait_until(
        lambda: happened(process, kind, since=since) is not None, timeout, f"telling of {kind}"
    )
    return next(events(process, kind, since=since))


def at(record: Record) -> float:
    """When it happened, by the process's own clock; or else when it was heard of."""
    return float(record["at"] if "at" in record else record["heard"])
