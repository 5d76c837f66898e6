"""What can happen to a core. Drivers make these; each core's `handle` says which it takes.

A `link` or `question` is the number that the core gave it in an effect: what comes from an
older one is late news of something that no longer exists, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from zrecover.core.memory import Memory
from zrecover.model import Decision, ReplicaState
from zrecover.wire import messages as m

__all__ = [
    "AnswerFailed",
    "Answered",
    "Decided",
    "Declared",
    "Freshen",
    "FromPeer",
    "LinkDown",
    "LinkUp",
    "LoopSeen",
    "Offered",
    "PeerGone",
    "PeerLeft",
    "Rebuilt",
    "Obeyed",
    "Recalled",
    "Received",
    "Remembered",
    "Reported",
    "Start",
    "StateChanged",
    "Stop",
    "Tick",
    "Withdrawn",
]


@dataclass(frozen=True, slots=True)
class Start:
    """Begin."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: the core's deadline, or earlier."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End on purpose."""

    reason: str


@dataclass(frozen=True, slots=True)
class Answered:
    """Discovery answered question `question`."""

    question: int
    message: m.FromDiscovery


@dataclass(frozen=True, slots=True)
class AnswerFailed:
    """Question `question` will not be answered: refused, disconnected, garbage."""

    question: int
    reason: str


@dataclass(frozen=True, slots=True)
class LinkUp:
    """Link `link` can carry messages."""

    link: int


@dataclass(frozen=True, slots=True)
class LinkDown:
    """Link `link` is gone, and why."""

    link: int
    reason: str


@dataclass(frozen=True, slots=True)
class Received:
    """A message came over link `link`."""

    link: int
    message: m.Message


@dataclass(frozen=True, slots=True)
class FromPeer:
    """A message came to our listening socket; answers go to `peer`."""

    peer: Hashable
    message: m.Message


@dataclass(frozen=True, slots=True)
class PeerGone:
    """A message to `peer` could not be delivered: it is not connected any more."""

    peer: Hashable


@dataclass(frozen=True, slots=True)
class PeerLeft:
    """Some connection to our listening socket ended; the socket does not say whose."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The verdicts on the claims of `Decide(ticket)`, in their order."""

    ticket: int
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class Offered:
    """The claims of `Offer(ticket)`, with what the worker's plugins say of each."""

    ticket: int
    claims: tuple[m.Claim, ...]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What became of `Rebuild(ticket)`: a verdict, and the state that is served again."""

    ticket: int
    decision: Decision | None
    state: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Remembered:
    """The changes of `Remember(ticket)` are on disk, or (`done` False) could not be put there."""

    ticket: int
    done: bool


@dataclass(frozen=True, slots=True)
class Recalled:
    """What was on disk; empty where there was nothing, or where it could not be read."""

    memory: Memory


@dataclass(frozen=True, slots=True)
class Obeyed:
    """What became of the order `Obey(id)`."""

    id: int
    done: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """The worker holds this claim now, new or changed."""

    claim: m.Claim


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The replica or shard has come to another state of its life."""

    uid: str
    shard: int
    state: ReplicaState


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The worker no longer holds it."""

    uid: str
    shard: int


@dataclass(frozen=True, slots=True)
class Freshen:
    """Somebody needs routes that are not older than now."""


@dataclass(frozen=True, slots=True)
class LoopSeen:
    """The application's event loop has not come round for `busy_for` seconds (0: it runs)."""

    busy_for: float


@dataclass(frozen=True, slots=True)
class Reported:
    """Something to tell of a model beside the inventory: an event, progress, a cache."""

    entry: m.Entry
