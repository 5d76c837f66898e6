"""What a worker tells beside its inventory: events, progress and caches.

A report carries entries of one service. Each entry is decoded by itself, so that a bad one
spoils no other.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from zrecover.config import LIMITS
from zrecover.wire.base import Message
from zrecover.wire.fields import Millis, Name, Number, Session, Text

__all__ = [
    "CacheEntry",
    "Details",
    "Entries",
    "Entry",
    "EventEntry",
    "Level",
    "ProgressEntry",
    "Service",
    "ServiceReport",
]


class Service(StrEnum):
    """What a report is for."""

    EVENTS = "events"
    """The last events of each model."""
    PROGRESS = "progress"
    """How far each request is that is under way."""
    CACHE = "cache"
    """Which versions of which models the worker has at hand."""


class Level(StrEnum):
    """How much an event matters."""

    DEBUG = "debug"
    """For whoever looks closely."""
    INFO = "info"
    """Something has happened."""
    WARNING = "warning"
    """Something may need a look."""
    ERROR = "error"
    """Something has failed."""


_Key = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
_Words = Annotated[str, msgspec.Meta(max_length=200)]
_Whole = Annotated[int, msgspec.Meta(ge=-(2**53) + 1, le=2**53 - 1)]
_Float = Annotated[float, msgspec.Meta(ge=-1e300, le=1e300)]
Details = Annotated[dict[_Key, _Words | _Whole | _Float | bool | None], msgspec.Meta(max_length=16)]
"""A few plain values by name."""
Fraction = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class EventEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that has happened to a model."""

    n: Number = 0
    """Its number within the worker's process; with the incarnation it names the event."""
    at: Millis
    """Wall-clock ms of the worker when it happened."""
    model: Name
    level: Level = Level.INFO
    text: Text
    details: Details = {}


class ProgressEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far one request is."""

    request: Name
    fraction: Fraction
    """From 0 to 1."""
    at: Millis
    """Wall-clock ms of the worker when it was so far."""
    info: Text = ""
    details: Details = {}
    done: bool = False
    """It is over: no more is told of it."""


class CacheEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One version of one model that the worker has at hand."""

    model: Name
    version: Text = ""
    at: Millis
    """Wall-clock ms of the worker when it was cached."""
    size: Number | None = None
    """In bytes, if known."""
    details: Details = {}
    gone: bool = False
    """It is not cached any more."""


Entry = EventEntry | ProgressEntry | CacheEntry
Entries = Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(max_length=LIMITS.claims_per_part)]


class ServiceReport(Message, frozen=True):
    """Worker -> supervisor: news for one of the services."""

    session: Session
    service: Service
    whole: bool
    """True where it begins anew: what the worker said before for this service is over."""
    entries: Entries
