"""What a supervisor must not forget: values for the journal, the witnesses and the core.

Pure. A journal keeps it on disk, workers keep the roster and the tombstones as witnesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from zrecover.ids import NO_LAUNCH, Launch

__all__ = ["Change", "Kept", "Memory", "Placement", "Tombstone"]


class Tombstone(NamedTuple):
    """A deleted replica: everything of it up to this launch is gone for good.

    `created_ts` settles it for claims that nobody placed, whose launch is (0, 0): a replica
    that is served anew later is not the deleted one.
    """

    uid: str
    launch: Launch
    created_ts: int

    def covers(self, launch: Launch, created_ts: int) -> bool:
        """True where a claim of that launch and time is the deleted replica."""
        if launch != self.launch:
            return launch < self.launch
        return launch != NO_LAUNCH or created_ts <= self.created_ts


class Placement(NamedTuple):
    """A replica that was asked for."""

    uid: str
    model: str
    launch: Launch
    n_worker: int


class Kept(StrEnum):
    """Kinds of change."""

    EPOCH = "EPOCH"
    """`value` is the epoch, a number."""
    JOINED = "JOINED"
    """`value` is the id of a worker that is expected from now on."""
    LEFT = "LEFT"
    """`value` is the id of a worker that is expected no longer."""
    DELETED = "DELETED"
    """`value` is a Tombstone."""
    PLACED = "PLACED"
    """`value` is a Placement."""
    UNPLACED = "UNPLACED"
    """`value` is the uid of a placement that is over."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing to be remembered."""

    kind: Kept
    value: int | str | Tombstone | Placement


@dataclass(frozen=True, slots=True)
class Memory:
    """Everything that was remembered."""

    epoch: int = 0
    workers: tuple[str, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()
    placements: tuple[Placement, ...] = ()
