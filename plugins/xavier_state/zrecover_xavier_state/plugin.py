"""The plugin: carries what coordinates a shard, and rebuilds the table from all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from zrecover import ReplicaState
from zrecover.hooks import Claim, Decision, Group, Rebuilt, Replica, Verdict, hookimpl
from zrecover_xavier_state.providing import StateOf, state_of
from zrecover_xavier_state.table import fault_of, rank_table

__all__ = ["KIND", "XavierState"]

KIND: Final = "xavier_state"


class XavierState:
    """Restores replicas of kind `xavier_state`, with their coordination state.

    Args:
        state_of: gives the state of a replica that is served here, None while there is none;
            by default what was given to `provide`, or else the replica's metadata.
    """

    kinds = (KIND,)
    matrix: ClassVar[Mapping[str, tuple[str, str, str, str]]] = {
        KIND: (
            "yes",
            "yes",
            "rank table and store address",
            "when all shards of one launch are there and agree",
        )
    }

    def __init__(self, *, state_of: StateOf = state_of) -> None:
        self._state_of = state_of

    @hookimpl
    def zrecover_capture(self, replica: Replica) -> Mapping[str, Any] | None:
        """Worker side: rank, world size and store address, as they are now."""
        return self._state_of(replica)

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Decision:
        """Supervisor side: all of it, if it brings what the table is made of."""
        if claim.captured is None and claim.state is ReplicaState.LOADING:
            return Decision(Verdict.FULL)  # not routed yet, and asked again when it is ready
        fault = fault_of(claim.captured)
        if fault:
            return Decision(Verdict.REFUSE, f"{fault}; nobody could find its peers")
        return Decision(Verdict.FULL)

    @hookimpl
    def zrecover_rebuild(self, group: Group) -> Rebuilt | Decision:
        """Supervisor side: the table, or who contradicts it."""
        table, fault = rank_table(group)
        return Decision(Verdict.REFUSE, fault) if fault else Rebuilt(table)
