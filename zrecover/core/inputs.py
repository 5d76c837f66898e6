"""What can happen to a core. Drivers make these; each core's `handle` says which it takes.

A `link` or `question` is the number that the core gave it in an effect: what comes from an
older one is late news of something that no longer exists, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec

from zrecover.core.memory import Memory
from zrecover.model import Decision, ReplicaState, Unanswered
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


class _Input(msgspec.Struct, frozen=True, gc=False):
    """An immutable value; thousands are made in a second, so it costs little and holds no cycle."""


class Start(_Input, frozen=True):
    """Begin."""


class Tick(_Input, frozen=True):
    """Time has passed: the core's deadline, or earlier."""


class Stop(_Input, frozen=True):
    """End on purpose."""

    reason: str


class Answered(_Input, frozen=True):
    """Discovery answered question `question`."""

    question: int
    message: m.FromDiscovery


class AnswerFailed(_Input, frozen=True):
    """Question `question` will not be answered: refused, disconnected, garbage."""

    question: int
    reason: str


class LinkUp(_Input, frozen=True):
    """Link `link` can carry messages."""

    link: int


class LinkDown(_Input, frozen=True):
    """Link `link` is gone, and why."""

    link: int
    reason: str


class Received(_Input, frozen=True):
    """A message came over link `link`."""

    link: int
    message: m.Message


class FromPeer(_Input, frozen=True):
    """A message came to our listening socket; answers go to `peer`."""

    peer: Hashable
    message: m.Message


class PeerGone(_Input, frozen=True):
    """A message to `peer` could not be delivered: it is not connected any more."""

    peer: Hashable


class PeerLeft(_Input, frozen=True):
    """Some connection to our listening socket ended; the socket does not say whose."""


class Decided(_Input, frozen=True):
    """The verdicts on the claims of `Decide(ticket)`, in their order.

    Where one is `Unanswered`, it is asked for again later.
    """

    ticket: int
    decisions: tuple[Decision, ...]


class Offered(_Input, frozen=True):
    """The claims of `Offer(ticket)`, with what the worker's plugins say of each.

    `unanswered` are those of which they have not said it in time.
    """

    ticket: int
    claims: tuple[m.Claim, ...]
    unanswered: tuple[tuple[m.Key, Unanswered], ...] = ()


class Rebuilt(_Input, frozen=True):
    """What became of `Rebuild(ticket)`: a verdict, and the state that is served again."""

    ticket: int
    decision: Decision | None
    state: Mapping[str, Any] | None


class Remembered(_Input, frozen=True):
    """The changes of `Remember(ticket)` are on disk, or (`done` False) could not be put there."""

    ticket: int
    done: bool


class Recalled(_Input, frozen=True):
    """What was on disk; empty where there was nothing, or where it could not be read."""

    memory: Memory


class Obeyed(_Input, frozen=True):
    """What became of the order `Obey(id)`."""

    id: int
    done: bool
    reason: str = ""


class Declared(_Input, frozen=True):
    """The worker holds this claim now, new or changed.

    With `unanswered`, its plugins have not said in time what they say of it.
    """

    claim: m.Claim
    unanswered: Unanswered | None = None


class StateChanged(_Input, frozen=True):
    """The replica or shard has come to another state of its life."""

    uid: str
    shard: int
    state: ReplicaState


class Withdrawn(_Input, frozen=True):
    """The worker no longer holds it."""

    uid: str
    shard: int


class Freshen(_Input, frozen=True):
    """Somebody needs routes that are not older than now."""


class LoopSeen(_Input, frozen=True):
    """The application's event loop has not come round for `busy_for` seconds (0: it runs)."""

    busy_for: float


class Reported(_Input, frozen=True):
    """Something to tell of a model beside the inventory: an event, progress, a cache."""

    entry: m.Entry
