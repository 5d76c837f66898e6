"""The kinds that zrecover itself knows: `plain` comes back whole, `sharded` with routes only."""

from __future__ import annotations

from zrecover.model import PLAIN, SHARDED, Decision, Verdict
from zrecover.wire.messages import Claim

__all__ = ["decide"]

_PLUGIN = "zrecover"


def decide(claim: Claim) -> Decision:
    """The verdict on one claim; pure, of the claim alone."""
    if claim.kind == PLAIN:
        return Decision(Verdict.FULL, "", _PLUGIN)
    if claim.kind == SHARDED:
        reason = "a sharded replica's routes come back, its status records do not"
        return Decision(Verdict.ROUTES, reason, _PLUGIN)
    reason = f"unknown kind {claim.kind!r}: no plugin says what of it may come back"
    return Decision(Verdict.REFUSE, reason, _PLUGIN)
