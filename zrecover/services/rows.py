"""The rows that the services show: immutable, and plain enough for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from zrecover.wire.messages import Level

__all__ = [
    "CacheRow",
    "Details",
    "EventRow",
    "Instance",
    "ProgressRow",
    "ReplicaRow",
    "frozen",
    "plain",
]

Details = Mapping[str, str | int | float | bool | None]


@dataclass(frozen=True, slots=True)
class EventRow:
    """Something that has happened to a model."""

    worker: str
    incarnation: int
    n: int
    """Its number within that process of the worker: the three name the event for good."""
    at: int
    """Wall-clock ms of the worker."""
    model: str
    level: Level
    text: str
    details: Details

    @property
    def id(self) -> tuple[str, int, int]:
        """What is the same each time that the event is told."""
        return self.worker, self.incarnation, self.n


@dataclass(frozen=True, slots=True)
class ProgressRow:
    """How far a request is, as one worker says."""

    request: str
    worker: str
    fraction: float
    """From 0 to 1."""
    info: str
    details: Details
    at: int
    """Wall-clock ms of the worker."""
    done: bool
    """It is over; the row goes soon."""


@dataclass(frozen=True, slots=True)
class CacheRow:
    """One version of one model that a worker has at hand."""

    model: str
    version: str
    """Empty if unknown."""
    worker: str
    size: int | None
    """In bytes, None if unknown."""
    details: Details
    at: int
    """Wall-clock ms of the worker."""


@dataclass(frozen=True, slots=True)
class Instance:
    """The status record of one model."""

    name: str
    version: str | None
    """None if unknown; of several that of the replica that was launched last."""
    abilities: tuple[str, ...]
    created_ts: int
    """When the earliest launch that is known began, in ms."""
    count: int
    """Replicas that requests are sent to."""
    desired: int | None
    """How many there should be, None if nobody said."""
    contradiction: str
    """What its replicas say differently of it; empty if they agree."""


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """The status record of one replica."""

    uid: str
    model: str
    workers: tuple[str, ...]
    """Who holds its shards, in order; who held them if it is down."""
    state: str
    """As in the view, or `TERMINATED`."""
    created_ts: int
    why: str
    """Why it is not routed; `unexpectedly down: …` if it is terminated."""


def frozen(details: Mapping[str, Any]) -> Details:
    """Details that nobody can change any more."""
    return MappingProxyType(dict(details))


def plain(row: EventRow | ProgressRow | CacheRow | Instance | ReplicaRow) -> dict[str, Any]:
    """The row as JSON can say it."""
    found = {}
    for field in fields(row):
        value = getattr(row, field.name)
        if isinstance(value, Mapping):
            value = dict(value)
        elif isinstance(value, tuple):
            value = list(value)
        found[field.name] = value
    return found
