"""The plugin: each stage by itself when it is claimed, all of them when they are there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from zrecover.hooks import Claim, Decision, Group, Rebuilt, Replica, Verdict, hookimpl
from zrecover_pipeline.stages import fault_of, order_of, stage_table

__all__ = ["KIND", "Pipeline"]

KIND: Final = "pipeline"


class Pipeline:
    """Restores replicas of kind `pipeline` in the order of their stages.

    Metadata of each shard: `stage`, its own name, and `stages`, all names in order.
    """

    kinds = (KIND,)
    matrix: ClassVar[Mapping[str, tuple[str, str, str, str]]] = {
        "pipeline, order declared": (
            "yes",
            "yes",
            "who holds which stage",
            "when all stages of one launch are there, in the declared order",
        ),
        "pipeline, no order declared": (
            "yes",
            "no",
            "who holds which stage",
            "when all stages of one launch are there, no name twice",
        ),
    }

    @hookimpl
    def zrecover_capture(self, replica: Replica) -> Mapping[str, Any] | None:
        """Worker side: what the stages are rebuilt from, and so that they are."""
        return {"stage": replica.metadata.get("stage"), "stages": list(order_of(replica))}

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Decision:
        """Supervisor side: everything, if the shard is where its own order has it."""
        fault = fault_of(claim.replica)
        if fault:
            return Decision(Verdict.REFUSE, fault)
        if not order_of(claim.replica):
            reason = 'no order of stages is declared (metadata {"stages": […]}): no status records'
            return Decision(Verdict.REBUILD, reason)
        return Decision(Verdict.FULL)

    @hookimpl
    def zrecover_rebuild(self, group: Group) -> Rebuilt | Decision:
        """Supervisor side: the stages in order, or who contradicts it."""
        table, fault = stage_table(group)
        return Decision(Verdict.REFUSE, fault) if fault else Rebuilt({"stages": table})
