"""What the view should say, worked out anew from what the workers hold.

This is a second, separate reading of the conflict rules, so that the judge of the core is
not its own witness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zrecover.model import PLAIN, SHARDED, Decision, ReplicaState, Verdict

if TYPE_CHECKING:
    from zrecover.core.view import ReplicaView
    from zrecover.ids import Launch
    from zrecover.wire.messages import Claim

__all__ = ["Expected", "Held", "builtin_verdict", "differences", "expected"]

_ORDER = (ReplicaState.READY, ReplicaState.LOADING, ReplicaState.STOPPING)


def builtin_verdict(claim: Claim) -> Decision:
    """What zrecover's own kinds say, and of all others that nobody knows them."""
    if claim.verdict < Verdict.ROUTES:
        return Decision(claim.verdict, claim.reason, claim.plugin)
    if claim.kind == PLAIN:
        return Decision(Verdict.FULL, plugin="plain")
    if claim.kind == SHARDED:
        reason = "the status of sharded replicas is not restored"
        return Decision(Verdict.ROUTES, reason, "sharded")
    return Decision(Verdict.REFUSE, f"unknown kind {claim.kind!r}")


@dataclass(frozen=True, slots=True)
class Held:
    """A claim, and the process that holds it."""

    worker: str
    incarnation: int
    claim: Claim


@dataclass(frozen=True, slots=True)
class Expected:
    """What a replica should look like."""

    state: str
    launch: Launch
    n_worker: int
    shards: tuple[tuple[int, str, int], ...]
    """Shard, worker and incarnation, in order."""
    losers: tuple[tuple[int, str], ...]
    """Shard and worker of the claims that lost."""


def expected(held: Iterable[Held]) -> dict[str, Expected]:
    """All replicas, by uid."""
    by_uid: dict[str, list[Held]] = {}
    for one in held:
        by_uid.setdefault(one.claim.uid, []).append(one)
    return {uid: _replica(claims) for uid, claims in by_uid.items()}


def _replica(claims: list[Held]) -> Expected:
    good = [h for h in claims if builtin_verdict(h.claim).verdict >= Verdict.ROUTES]
    if not good:
        first = min(claims, key=lambda h: h.claim.shard).claim
        return Expected("REFUSED", first.launch, first.n_worker, (), ())
    placements = dict.fromkeys((h.claim.launch, h.claim.n_worker) for h in good)
    options = [_placement(launch, n, good) for launch, n in placements]
    best = max(options, key=lambda e: (e.state == "READY", e.launch, e.n_worker))
    winners = [(shard, worker) for shard, worker, _ in best.shards]
    losers = [
        (h.claim.shard, h.worker)
        for h in good
        if (h.claim.launch, h.claim.n_worker) != (best.launch, best.n_worker)
        or (h.claim.shard, h.worker) not in winners
    ]
    return Expected(best.state, best.launch, best.n_worker, best.shards, tuple(sorted(losers)))


def _placement(launch: Launch, n: int, held: list[Held]) -> Expected:
    mine = [h for h in held if (h.claim.launch, h.claim.n_worker) == (launch, n)]
    best: dict[int, Held] = {}
    for one in sorted(mine, key=lambda h: (_ORDER.index(h.claim.state), h.worker)):
        best.setdefault(one.claim.shard, one)
    states = [one.claim.state for one in best.values()]
    if len(best) < n:
        state = "INCOMPLETE"
    elif ReplicaState.STOPPING in states:
        state = "STOPPING"
    elif ReplicaState.LOADING in states:
        state = "LOADING"
    else:
        state = "READY"
    shards = tuple((k, best[k].worker, best[k].incarnation) for k in sorted(best))
    return Expected(state, launch, n, shards, ())


def differences(replicas: Mapping[str, ReplicaView], truth: Mapping[str, Expected]) -> list[str]:
    """Where what is believed differs from what is so; empty if it does not."""
    found = [f"{uid} is believed, but nobody holds it" for uid in replicas if uid not in truth]
    for uid, so in truth.items():
        view = replicas.get(uid)
        if view is None:
            found.append(f"{uid} is held, but not believed")
            continue
        shards = tuple((s.shard, s.worker, s.incarnation) for s in view.shards)
        losers = tuple(sorted((c.shard, c.worker) for c in view.conflicts))
        believed = Expected(view.state.value, view.launch, view.n_worker, shards, losers)
        if so.state in ("REFUSED", "HELD", "LAUNCHING"):
            if view.state.value != so.state or view.routes:
                found.append(f"{uid} is {view.state}, but should be {so.state}")
        elif believed != so:
            found.append(f"{uid} is believed to be {believed}, but is {so}")
    return found
