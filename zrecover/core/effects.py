"""What a core wants done. The driver carries effects out in order and decides nothing."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

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


class _Effect(msgspec.Struct, frozen=True, gc=False):
    """An immutable value; thousands are made in a second, so it costs little and holds no cycle."""


class Ask(_Effect, frozen=True):
    """Put `message` to discovery at `endpoint`, on a fresh socket; answer as `question`."""

    question: int
    endpoint: str
    message: m.Resolve


class Forget(_Effect, frozen=True):
    """Close the socket of `question`; its answer is not wanted any more."""

    question: int


class Connect(_Effect, frozen=True):
    """Open link `link` to the first of `endpoints` that can be reached, once."""

    link: int
    endpoints: tuple[str, ...]


class Disconnect(_Effect, frozen=True):
    """Close link `link`, giving what was just sent `linger` seconds to leave."""

    link: int
    linger: float = 0.0


class Send(_Effect, frozen=True):
    """Send over link `link`."""

    link: int
    message: m.Message


class Reply(_Effect, frozen=True):
    """Send to a peer of our listening socket; `PeerGone` comes back if it is not there."""

    peer: Hashable
    message: m.Message


class Placed(_Effect, frozen=True):
    """One shard of a complete group: where it is and what was claimed."""

    shard: int
    worker: str
    address: str
    claim: m.Claim


class Decide(_Effect, frozen=True):
    """Ask the plugins for a verdict on each claim; answer with `Decided(ticket)`."""

    ticket: int
    worker: str
    claims: tuple[m.Claim, ...]


class Emit(_Effect, frozen=True):
    """Tell whoever listens what has happened."""

    event: Event


class Offer(_Effect, frozen=True):
    """Ask the worker's plugins what of these claims may be offered; answer with `Offered`."""

    ticket: int
    claims: tuple[m.Claim, ...]


class Rebuild(_Effect, frozen=True):
    """Ask the plugins to rebuild what the supervisor owned; answer with `Rebuilt(ticket)`."""

    ticket: int
    uid: str
    members: tuple[Placed, ...]


class Remember(_Effect, frozen=True):
    """Put these on disk, in one step; answer with `Remembered(ticket)`."""

    ticket: int
    changes: tuple[Change, ...]


class Recall(_Effect, frozen=True):
    """Read what was put on disk; answer with `Recalled`.

    From that moment on nobody of a lower epoch writes there: what one writes and confirms after
    the reading would never be known.
    """

    epoch: int


class Settle(_Effect, frozen=True):
    """The recovery is complete: what was put on disk names everybody from now on."""


class Confirm(_Effect, frozen=True):
    """Tell who asked for it what became of request `ticket`."""

    ticket: Hashable
    done: bool
    how: str


class Obey(_Effect, frozen=True):
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
