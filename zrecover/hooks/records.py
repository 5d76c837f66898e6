"""What hooks are given and what they answer: immutable records, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zrecover.ids import Launch
from zrecover.model import Decision, Replica, ReplicaState, Verdict

__all__ = ["Claim", "Decision", "Group", "Member", "Rebuilt", "Replica", "Verdict"]


@dataclass(frozen=True, slots=True)
class Claim:
    """One replica or shard as a worker claims it."""

    replica: Replica
    """What was declared, with its kind, shard, launch and metadata."""
    state: ReplicaState
    """Where it is in its life, as its worker says."""
    created_ts: int
    """Wall-clock ms when its launch started."""
    captured: Any = None
    """What `zrecover_capture` gave on the worker's side; None if nothing."""

    @property
    def kind(self) -> str:
        """The deployment type."""
        return str(self.replica.kind)


@dataclass(frozen=True, slots=True)
class Member:
    """One shard of a complete group, and where it is."""

    shard: int
    """Its number."""
    worker: str
    """Id of the worker that holds it."""
    address: str
    """Where that worker answers requests."""
    claim: Claim
    """What is claimed of it; `claim.captured` is its coordination state."""


@dataclass(frozen=True, slots=True)
class Group:
    """All shards of one launch of one replica, in the order of their numbers."""

    uid: str
    """`<model>-rep<index>`."""
    kind: str
    """The deployment type."""
    launch: Launch
    """Id of the placement, `(0, 0)` when nobody placed it."""
    n_worker: int
    """How many shards there are."""
    members: tuple[Member, ...]
    """All shards, by number."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What the supervisor owned of a group, rebuilt from the captured states."""

    state: Mapping[str, Any]
    """Served again as `coordination` of the replica in the view: text keys, as JSON has it."""
