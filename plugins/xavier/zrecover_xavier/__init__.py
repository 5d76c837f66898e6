"""Kind `xavier`: skipped, since what coordinated its replicas died with the supervisor.

The worker's side says so before the replica is even offered, and the supervisor's side says
the same of a worker that has no such plugin. Where the replicas themselves know their rank
and their store, use the kind `xavier_state` instead: then they come back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from zrecover.hooks import Claim, Decision, Replica, Verdict, hookimpl

__all__ = ["KIND", "REASON", "Xavier"]

KIND: Final = "xavier"
REASON: Final = (
    "the supervisor held its coordination state (ranks and store), which died with it: "
    "launch the replica again"
)


class Xavier:
    """Refuses replicas of kind `xavier`, on both sides."""

    kinds = (KIND,)
    matrix: ClassVar[Mapping[str, tuple[str, str, str, str]]] = {
        KIND: ("no", "no", "lost", "never: it is listed as skipped, with the reason")
    }

    @hookimpl
    def zrecover_replay(self, replica: Replica) -> Decision:
        """Worker side: the skip, where the replica is."""
        return Decision(Verdict.REFUSE, REASON)

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Decision:
        """Supervisor side: the same for a worker without this plugin."""
        return Decision(Verdict.REFUSE, REASON)
