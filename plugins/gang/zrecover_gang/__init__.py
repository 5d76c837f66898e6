"""Kind `gang`: several shards that come back whole once all of one launch are there.

The built-in kind `sharded` brings back routes only. Where the status of a replica is a
function of its shards (all ready: ready), nothing is lost by restoring that, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from zrecover.hooks import Claim, Decision, Verdict, hookimpl

__all__ = ["KIND", "Gang"]

KIND: Final = "gang"


class Gang:
    """Restores each shard in full; zrecover routes them when 0 to n - 1 of one launch are in."""

    kinds = (KIND,)
    matrix: ClassVar[Mapping[str, tuple[str, str, str, str]]] = {
        KIND: ("yes", "yes", "none", "when all shards of one launch are there")
    }

    @hookimpl
    def zrecover_restore(self, claim: Claim) -> Decision:
        """Everything; a gang of one is no gang."""
        if claim.replica.n_worker == 1:
            reason = "a gang has two shards or more (n_worker); one on a single worker is plain"
            return Decision(Verdict.REFUSE, reason)
        return Decision(Verdict.FULL)
