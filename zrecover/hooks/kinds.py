"""The kinds that zrecover itself knows: `plain` comes back whole, `sharded` with routes only.

They are plugins like any other, found through the same entry points.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from zrecover.hooks.records import Claim, Decision, Verdict
from zrecover.hooks.specs import hookimpl
from zrecover.model import PLAIN, SHARDED

__all__ = ["Plain", "Sharded"]


class Plain:
    """A replica on one worker: everything comes back."""

    kinds = (PLAIN,)
    matrix: ClassVar[Mapping[str, tuple[str, str, str, str]]] = {
        PLAIN: ("yes", "yes", "none", "at once")
    }

    @hookimpl(trylast=True)
    def zrecover_restore(self, claim: Claim) -> Decision | None:
        if claim.kind != PLAIN:
            return None
        return Decision(Verdict.FULL)


class Sharded:
    """A replica in several shards: its routes come back, once all shards are there."""

    kinds = (SHARDED,)
    matrix: ClassVar[Mapping[str, tuple[str, str, str, str]]] = {
        SHARDED: ("yes", "no", "none", "when all shards of one launch are there")
    }

    @hookimpl(trylast=True)
    def zrecover_restore(self, claim: Claim) -> Decision | None:
        if claim.kind != SHARDED:
            return None
        reason = "a sharded replica's routes come back, its status records do not"
        return Decision(Verdict.ROUTES, reason)
