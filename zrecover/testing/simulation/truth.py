"""What the view should say, worked out anew from what the workers hold.

This is a second, separate reading of the conflict rules, so that the judge of the core is
not its own witness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from zrecover.core.effects import Placed
from zrecover.model import Decision, ReplicaState, Verdict

if TYPE_CHECKING:
    from zrecover.core.view import ReplicaView
    from zrecover.ids import Launch
    from zrecover.testing.simulation.questions import State
    from zrecover.wire.messages import Claim

__all__ = ["Expected", "Held", "Judgement", "differences", "expected"]

_ORDER = (ReplicaState.READY, ReplicaState.LOADING, ReplicaState.STOPPING)
_NOT_ROUTED = {Verdict.REFUSE: "REFUSED", Verdict.HOLD: "HELD"}


class Judgement(Protocol):
    """What plugins say, when asked of one thing alone."""

    def verdict(self, claim: Claim) -> Decision:
        """The final verdict on a claim."""
        ...

    def rebuilt(self, uid: str, members: tuple[Placed, ...]) -> tuple[Decision | None, State]:
        """What becomes of a complete group."""
        ...


@dataclass(frozen=True, slots=True)
class Held:
    """A claim, and the process that holds it."""

    worker: str
    incarnation: int
    address: str
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
    verdict: Verdict
    created_ts: int = 0
    """Of the earliest of its shards."""
    coordination: State = None
    meanwhile: bool = False
    """It may be REBUILDING: plugins have to be asked of it as a whole."""


def expected(held: Iterable[Held], judgement: Judgement) -> dict[str, Expected]:
    """All replicas, by uid."""
    by_uid: dict[str, list[Held]] = {}
    for one in held:
        by_uid.setdefault(one.claim.uid, []).append(one)
    return {uid: _replica(uid, claims, judgement) for uid, claims in by_uid.items()}


def _replica(uid: str, claims: list[Held], judgement: Judgement) -> Expected:
    verdicts = {id(h): judgement.verdict(h.claim).verdict for h in claims}
    good = [h for h in claims if verdicts[id(h)] >= Verdict.ROUTES]
    if not good:
        first = min(claims, key=lambda h: h.claim.shard).claim
        most = max(verdicts.values())
        return Expected(_NOT_ROUTED[most], first.launch, first.n_worker, (), (), most)
    placements = dict.fromkeys((h.claim.launch, h.claim.n_worker) for h in good)
    options = [_placement(launch, n, good) for launch, n in placements]
    state, launch, n, best = max(options, key=lambda o: (o[0] == "READY", o[1], o[2]))
    losers = [
        (h.claim.shard, h.worker)
        for h in good
        if (h.claim.launch, h.claim.n_worker) != (launch, n) or best[h.claim.shard] is not h
    ]
    shards = tuple((k, best[k].worker, best[k].incarnation) for k in sorted(best))
    least = min(verdicts[id(h)] for h in best.values())
    created = min(h.claim.created_ts for h in best.values())
    so = Expected(state, launch, n, shards, tuple(sorted(losers)), least, created)
    captured = any(h.claim.captured for h in best.values())
    if state != "READY" or not (least is Verdict.REBUILD or (least is Verdict.FULL and captured)):
        return so
    members = tuple(Placed(k, best[k].worker, best[k].address, best[k].claim) for k in sorted(best))
    decision, coordination = judgement.rebuilt(uid, members)
    if decision is not None:
        least = min(least, decision.verdict)
    state = _NOT_ROUTED.get(least, state)
    return replace(so, state=state, verdict=least, coordination=coordination, meanwhile=True)


def _placement(
    launch: Launch, n: int, held: list[Held]
) -> tuple[str, Launch, int, dict[int, Held]]:
    """The state of one launch, and who has which shard of it."""
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
    return state, launch, n, best


def differences(replicas: Mapping[str, ReplicaView], truth: Mapping[str, Expected]) -> list[str]:
    """Where what is believed differs from what is so; empty if it does not."""
    found = [f"{uid} is believed, but nobody holds it" for uid in replicas if uid not in truth]
    for uid, so in truth.items():
        view = replicas.get(uid)
        if view is None:
            found.append(f"{uid} is held, but not believed")
            continue
        state = view.state.value
        if so.state in (*_NOT_ROUTED.values(), "LAUNCHING") and not so.meanwhile:
            if state != so.state or view.routes or view.verdict != so.verdict:
                found.append(f"{uid} is {state}, {view.verdict.name}, but should be {so.state}")
            continue
        shards = tuple((s.shard, s.worker, s.incarnation) for s in view.shards)
        losers = tuple(sorted((c.shard, c.worker) for c in view.conflicts))
        rebuilding = so.meanwhile and state == "REBUILDING"
        believed = Expected(
            so.state if rebuilding else state,
            view.launch,
            view.n_worker,
            shards,
            losers,
            so.verdict if rebuilding else view.verdict,
            view.created_ts,
            so.coordination if rebuilding else view.coordination,
            so.meanwhile,
        )
        if believed != so:
            found.append(f"{uid} is believed to be {believed}, but is {so}")
    return found
