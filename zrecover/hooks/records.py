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
    state: ReplicaState
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
    worker: str
    address: str
    claim: Claim


@dataclass(frozen=True, slots=True)
class Group:
    """All shards of one launch of one replica, in the order of their numbers."""

    uid: str
    kind: str
    launch: Launch
    n_worker: int
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What the supervisor owned of a group, rebuilt from the captured states.

    `state` is served again, as `coordination` of the replica in the view: a mapping with text
    keys, served as JSON carries it.
    """

    state: Mapping[str, Any]
