"""What a core wants done. The driver carries effects out in order and decides nothing."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from zrecover.core.events import Event
from zrecover.core.memory import Change
from zrecover.wire import messages as m

__all__ = [
    "Ask",
    "Confirm",
    "Connect",
    "Decide",
    "Disconnect",
    "Effect",
    "Emit",
    "Forget",
    "Obey",
    "Offer",
    "Placed",
    "Rebuild",
    "Recall",
    "Remember",
    "Reply",
    "Send",
    "Settle",
]


@dataclass(frozen=True, slots=True)
class Ask:
    """Put `message` to discovery at `endpoint`, on a fresh socket; answer as `question`."""

    question: int
    endpoint: str
    message: m.Resolve


@dataclass(frozen=True, slots=True)
class Forget:
    """Close the socket of `question`; its answer is not wanted any more."""

    question: int


@dataclass(frozen=True, slots=True)
class Connect:
    """Open link `link` to the first of `endpoints` that can be reached, once."""

    link: int
    endpoints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close link `link`, giving what was just sent `linger` seconds to leave."""

    link: int
    linger: float = 0.0


@dataclass(frozen=True, slots=True)
class Send:
    """Send over link `link`."""

    link: int
    message: m.Message


@dataclass(frozen=True, slots=True)
class Reply:
    """Send to a peer of our listening socket; `PeerGone` comes back if it is not there."""

    peer: Hashable
    message: m.Message


@dataclass(frozen=True, slots=True)
class Placed:
    """One shard of a complete group: where it is and what was claimed."""

    shard: int
    worker: str
    address: str
    claim: m.Claim


@dataclass(frozen=True, slots=True)
class Decide:
    """Ask the plugins for a verdict on each claim; answer with `Decided(ticket)`."""

    ticket: int
    worker: str
    claims: tuple[m.Claim, ...]


@dataclass(frozen=True, slots=True)
class Emit:
    """Tell whoever listens what has happened."""

    event: Event


@dataclass(frozen=True, slots=True)
class Offer:
    """Ask the worker's plugins what of these claims may be offered; answer with `Offered`."""

    ticket: int
    claims: tuple[m.Claim, ...]


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Ask the plugins to rebuild what the supervisor owned; answer with `Rebuilt(ticket)`."""

    ticket: int
    uid: str
    members: tuple[Placed, ...]


@dataclass(frozen=True, slots=True)
class Remember:
    """Put these on disk, in one step; answer with `Remembered(ticket)`."""

    ticket: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Recall:
    """Read what was put on disk; answer with `Recalled`."""


@dataclass(frozen=True, slots=True)
class Settle:
    """The recovery is complete: what was put on disk names everybody from now on."""


@dataclass(frozen=True, slots=True)
class Confirm:
    """Tell who asked for it what became of request `ticket`."""

    ticket: Hashable
    done: bool
    how: str


@dataclass(frozen=True, slots=True)
class Obey:
    """Do what the supervisor orders; answer with `Obeyed(id)`."""

    id: int
    action: str
    uid: str
    shard: int
    reason: str


Effect = (
    Ask
    | Forget
    | Connect
    | Disconnect
    | Send
    | Reply
    | Decide
    | Offer
    | Rebuild
    | Remember
    | Recall
    | Settle
    | Confirm
    | Obey
    | Emit
)
