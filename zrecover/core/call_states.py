"""The words for one request of a client: where it is, what happens to it, what is to be done.

Only values and one table; what follows from them is in `zrecover.core.calls`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

from zrecover.core.balance import Target
from zrecover.core.table import Table
from zrecover.errors import ZRecoverError
from zrecover.wire.messages import RouteRow

__all__ = [
    "CALL_TABLE",
    "CallEffect",
    "CallInput",
    "CallState",
    "Finish",
    "Leave",
    "Open",
    "RouteSource",
    "RouteStatus",
    "Withdraw",
    "Write",
]


class RouteStatus(StrEnum):
    """How much a caller's routes are worth."""

    NO_SUPERVISOR = "NO_SUPERVISOR"
    """Nobody tells us of changes; what is known is from before."""
    RECOVERING = "RECOVERING"
    """A supervisor leads, but more may still come back."""
    COMPLETE = "COMPLETE"
    """What is not here does not exist."""


class RouteSource(Protocol):
    """Where a call learns of routes; asked in the caller's thread, never waits."""

    def rows(self, model: str) -> tuple[RouteRow, ...]:
        """All that is known of the model; the same object until something in it changes."""
        ...

    @property
    def status(self) -> RouteStatus:
        """What the rows are worth now."""
        ...

    @property
    def fresh_at(self) -> float:
        """The rows and the status are not older than this time, in monotonic seconds."""
        ...

    def freshen(self) -> None:
        """Have them brought up to date; the call looks again when that is done."""
        ...

    def explain(self) -> str:
        """Why it is not COMPLETE, for a person: `recovering, 2 of 3 workers`."""
        ...


class CallState(StrEnum):
    """Where a request is in its life."""

    WAITING = "WAITING"
    """No replica to try: none known, or all were tried and a pause is on."""
    CHOSEN = "CHOSEN"
    """A replica is chosen and its link not up yet; nothing is written."""
    WRITTEN = "WRITTEN"
    """A worker may have it."""
    DONE = "DONE"
    """It has ended; nothing happens any more."""


class CallInput(StrEnum):
    """What happens to a request."""

    ROUTED = "ROUTED"
    """A replica was picked."""
    MOVED = "MOVED"
    """The chosen replica is not routable there any more."""
    UP = "UP"
    """The link can carry it."""
    DOWN = "DOWN"
    """The link is gone, and the request may be tried elsewhere."""
    LOST = "LOST"
    """The link is gone with a request that must not run twice."""
    REFUSED = "REFUSED"
    """The worker did not take it, and has run nothing."""
    REPLIED = "REPLIED"
    FAILED = "FAILED"
    """The worker's answer is an error, for good."""
    UNKNOWN = "UNKNOWN"
    """A complete table has no such model."""
    DEADLINE = "DEADLINE"
    CANCELLED = "CANCELLED"
    """The caller does not wait any more."""


_S, _I = CallState, CallInput

CALL_TABLE: Table[CallState, CallInput] = Table(
    "call",
    _S.WAITING,
    {
        (_S.WAITING, _I.ROUTED): _S.CHOSEN,
        (_S.WAITING, _I.UNKNOWN): _S.DONE,
        (_S.CHOSEN, _I.MOVED): _S.WAITING,
        (_S.CHOSEN, _I.UP): _S.WRITTEN,
        (_S.CHOSEN, _I.DOWN): _S.WAITING,
        (_S.WRITTEN, _I.DOWN): _S.WAITING,
        (_S.WRITTEN, _I.LOST): _S.DONE,
        (_S.WRITTEN, _I.REFUSED): _S.WAITING,
        (_S.WRITTEN, _I.REPLIED): _S.DONE,
        (_S.WRITTEN, _I.FAILED): _S.DONE,
        **{(state, _I.DEADLINE): _S.DONE for state in (_S.WAITING, _S.CHOSEN, _S.WRITTEN)},
        **{(state, _I.CANCELLED): _S.DONE for state in (_S.WAITING, _S.CHOSEN, _S.WRITTEN)},
    },
)


class Open(NamedTuple):
    """Say `up(id)` or `down(id)` once it is known whether the target's link is up."""

    id: int
    target: Target


class Write(NamedTuple):
    """Send it as request `id`; say `unsent(id)` if nothing could be written."""

    id: int
    target: Target
    remaining: float


class Leave(NamedTuple):
    """Try `id` waits for the target's link no longer."""

    id: int
    target: Target


class Withdraw(NamedTuple):
    """Tell the worker that nobody waits for request `id`."""

    id: int
    target: Target


class Finish(NamedTuple):
    """The end, once: an error for the caller, or the bytes of the reply. Neither: cancelled."""

    error: ZRecoverError | None = None
    body: bytes | None = None


CallEffect: TypeAlias = Open | Write | Leave | Withdraw | Finish
