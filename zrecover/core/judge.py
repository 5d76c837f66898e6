"""What one replica is, judged from all claims on it: the conflict rules in one function.

Pure, and of the claims alone, so that the order in which they came cannot matter.

Claims are grouped by launch and `n_worker`; groups never mix. Within a group each shard
has one winner (READY before LOADING before STOPPING, then the lower worker id). A group
that can be routed wins over one that cannot, then the higher launch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from zrecover.core.effects import Placed
from zrecover.core.memory import Placement
from zrecover.core.view import Conflict, ReplicaStatus, ReplicaView, ShardView
from zrecover.ids import Launch, parse_uid
from zrecover.model import PLAIN, SHARDED, Decision, ReplicaState, Verdict
from zrecover.wire.messages import Claim

__all__ = ["Candidate", "Outcome", "judge", "launching", "to_rebuild"]

_ROUTES = Verdict.ROUTES
_STATE_OF = {Verdict.REFUSE: ReplicaStatus.REFUSED, Verdict.HOLD: ReplicaStatus.HELD}
_STATUS = {
    ReplicaState.READY: ReplicaStatus.READY,
    ReplicaState.LOADING: ReplicaStatus.LOADING,
    ReplicaState.STOPPING: ReplicaStatus.STOPPING,
}
_TEXT = {state: state.value for state in ReplicaState}
_ORDER = {ReplicaState.READY: 0, ReplicaState.LOADING: 1, ReplicaState.STOPPING: 2}


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """One claim of one registered worker, with the verdict on it."""

    worker: str
    incarnation: int
    address: str
    suspect: bool
    claim: Claim
    decision: Decision
    replayed: bool
    """It came with a registration, not as a later change."""

    def judged(self, decision: Decision) -> Candidate:
        """The same claim with another verdict."""
        return msgspec.structs.replace(self, decision=decision)

    @property
    def accepted(self) -> bool:
        """True where its verdict lets it be routed."""
        return self.decision.verdict >= _ROUTES


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the plugins made of one complete group."""

    members: tuple[Placed, ...]
    decision: Decision | None
    """A verdict that is less than the group had, None if there was none."""
    state: Mapping[str, Any] | None


class _Group:
    """The winners of one launch, by shard, and what follows from them."""

    __slots__ = ("decision", "launch", "missing", "n_worker", "shards", "state")

    def __init__(self, launch: Launch, n_worker: int, shards: tuple[Candidate, ...]) -> None:
        self.launch, self.n_worker, self.shards = launch, n_worker, shards
        self.missing: list[int] = []
        self.decision = shards[0].decision
        """The least permissive verdict in it."""
        self.state = _STATUS[shards[0].claim.state]
        if n_worker > 1:  # nearly never
            self._complete(n_worker, shards)

    def _complete(self, n_worker: int, shards: tuple[Candidate, ...]) -> None:
        """What follows from all shards together."""
        have = {candidate.claim.shard for candidate in shards}
        self.missing = [shard for shard in range(n_worker) if shard not in have]
        states = {candidate.claim.state for candidate in shards}
        self.state = ReplicaStatus.READY
        if self.missing:
            self.state = ReplicaStatus.INCOMPLETE
        elif ReplicaState.STOPPING in states:
            self.state = ReplicaStatus.STOPPING
        elif ReplicaState.LOADING in states:
            self.state = ReplicaStatus.LOADING
        least = min(shards, key=lambda c: (c.decision.verdict, c.claim.shard))
        self.decision = least.decision

    @property
    def members(self) -> tuple[Placed, ...]:
        """What the plugins rebuild from; empty where there is nothing to rebuild."""
        verdict = self.decision.verdict
        if verdict < Verdict.REBUILD or self.state is not ReplicaStatus.READY:
            return ()
        captured = any(candidate.claim.captured for candidate in self.shards)
        if verdict is Verdict.FULL and not captured:
            return ()
        return tuple(Placed(c.claim.shard, c.worker, c.address, c.claim) for c in self.shards)

    @property
    def rank(self) -> tuple[bool, Launch, int]:
        return self.state is ReplicaStatus.READY, self.launch, self.n_worker


def to_rebuild(candidates: Iterable[Candidate]) -> tuple[Placed, ...]:
    """The group that has to be rebuilt before the replica is routed; empty if there is none."""
    accepted = [candidate for candidate in candidates if candidate.accepted]
    groups, _ = _groups(sorted(accepted, key=lambda c: (c.claim.shard, c.worker)))
    return max(groups, key=lambda group: group.rank).members if groups else ()


def judge(uid: str, candidates: Iterable[Candidate], outcome: Outcome | None = None) -> ReplicaView:
    """The replica `uid` as its claims make it; there must be one claim at least.

    `outcome` is what the plugins made of its group, if they were asked.
    """
    claims = list(candidates)
    if len(claims) > 1:
        claims.sort(key=lambda c: (c.claim.shard, c.worker))
    accepted = [candidate for candidate in claims if candidate.accepted]
    if not accepted:
        return _unaccepted(uid, claims)
    groups, losers = _groups(accepted)
    best, conflicts = groups[0], list[Conflict]()
    if losers or len(groups) > 1:
        best = max(groups, key=lambda group: group.rank)
        conflicts = sorted(
            [_split(uid, best, c) if _same(best, c) else _lost(uid, best, c) for c in losers]
            + [_lost(uid, best, c) for group in groups if group is not best for c in group.shards],
            key=lambda conflict: (conflict.shard, conflict.worker, conflict.rule),
        )
    state, decision, coordination = best.state, best.decision, None
    why = _why(best, claims)
    if members := best.members:
        if outcome is None or outcome.members != members:
            state, why = ReplicaStatus.REBUILDING, "its coordination state is being rebuilt"
        else:
            coordination = outcome.state
            if outcome.decision is not None and outcome.decision.verdict < decision.verdict:
                decision = outcome.decision
            state = _STATE_OF.get(decision.verdict, state)
    return _view(
        uid,
        best.shards,
        state=state,
        decision=decision,
        reason=why or _and(decision.reason, _contradiction(best.shards)),
        conflicts=tuple(conflicts),
        coordination=coordination,
    )


def launching(placement: Placement) -> ReplicaView:
    """A replica that was asked for and that nobody claims yet."""
    return ReplicaView(
        uid=placement.uid,
        model=placement.model,
        index=parse_uid(placement.uid)[1],
        kind=PLAIN if placement.n_worker == 1 else SHARDED,
        n_worker=placement.n_worker,
        launch=placement.launch,
        state=ReplicaStatus.LAUNCHING,
        shards=(),
        verdict=Verdict.HOLD,
        reason="it was placed, and no worker claims it yet",
        plugin="",
        created_ts=0,
    )


def _groups(accepted: list[Candidate]) -> tuple[list[_Group], list[Candidate]]:
    """The groups, and the claims that lost against another one on the same shard."""
    if len(accepted) == 1:  # nearly always
        claim = accepted[0].claim
        return [_Group(claim.launch, claim.n_worker, (accepted[0],))], []
    by_group: dict[tuple[Launch, int], dict[int, list[Candidate]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for candidate in accepted:
        claim = candidate.claim
        by_group[claim.launch, claim.n_worker][claim.shard].append(candidate)
    groups, losers = [], []
    for (launch, n_worker), by_shard in by_group.items():
        winners = []
        for shard in sorted(by_shard):
            rivals = sorted(by_shard[shard], key=lambda c: (_ORDER[c.claim.state], c.worker))
            winners.append(rivals[0])
            losers += rivals[1:]
        groups.append(_Group(launch, n_worker, tuple(winners)))
    return groups, losers


def _same(group: _Group, candidate: Candidate) -> bool:
    claim = candidate.claim
    return (claim.launch, claim.n_worker) == (group.launch, group.n_worker)


def _split(uid: str, best: _Group, loser: Candidate) -> Conflict:
    shard = loser.claim.shard
    winner = next(c.worker for c in best.shards if c.claim.shard == shard)
    reason = f"{winner} holds the same shard of the same launch and is preferred"
    return Conflict(uid, shard, loser.worker, "split", reason)


def _lost(uid: str, best: _Group, loser: Candidate) -> Conflict:
    claim = loser.claim
    if claim.launch != best.launch:
        reason = (
            f"launch {_text(best.launch)} is preferred to this one's {_text(claim.launch)}; "
            "it takes over if that goes"
        )
        return Conflict(uid, claim.shard, loser.worker, "duplicate", reason)
    reason = f"claims {claim.n_worker} shards where others of the launch claim {best.n_worker}"
    return Conflict(uid, claim.shard, loser.worker, "mixed", reason)


def _text(launch: Launch) -> str:
    return f"{launch.epoch}.{launch.n}"


def _why(group: _Group, claims: list[Candidate]) -> str:
    """Why the group is not routed; empty if it is."""
    match group.state:
        case ReplicaStatus.INCOMPLETE:
            missing = group.missing
            numbers = ", ".join(map(str, missing[:16])) + (", …" if len(missing) > 16 else "")
            text = f"shard {numbers} of {group.n_worker} is missing"
            refused = [c for c in claims if not c.accepted and c.claim.shard in missing]
            return text + (f" ({refused[0].decision.reason})" if refused else "")
        case ReplicaStatus.LOADING | ReplicaStatus.STOPPING as state:
            who = next(c for c in group.shards if c.claim.state == state.value)
            return f"worker {who.worker} is {state.value.lower()} it"
        case _:
            return ""


def _and(reason: str, more: str) -> str:
    return f"{reason}; {more}" if reason and more else reason or more


def _contradiction(shards: tuple[Candidate, ...]) -> str:
    """What two shards of one launch say differently of what must be the same; else empty."""
    if len(shards) == 1:
        return ""
    for name in ("version", "abilities", "name"):
        known = [c for c in shards if getattr(c.claim, name)]
        for other in known[1:]:
            one, two = getattr(known[0].claim, name), getattr(other.claim, name)
            if one != two:
                first = f"shard {known[0].claim.shard} (worker {known[0].worker})"
                second = f"shard {other.claim.shard} (worker {other.worker})"
                return f"{first} says {name} {_said(one)}, {second} {_said(two)}"
    return ""


def _said(value: Any) -> str:
    return repr(value if isinstance(value, str) else ", ".join(value))


def _unaccepted(uid: str, claims: list[Candidate]) -> ReplicaView:
    best = max(claims, key=lambda c: (c.decision.verdict, c.claim.launch))
    held = best.decision.verdict is Verdict.HOLD
    state = ReplicaStatus.HELD if held else ReplicaStatus.REFUSED
    shown = [c for c in claims if c.claim.launch == best.claim.launch]
    return _view(
        uid, tuple(shown), state=state, decision=best.decision, reason=best.decision.reason
    )


def _shard_view(of: Candidate) -> ShardView:
    claim = of.claim
    return ShardView(
        claim.shard,
        of.worker,
        of.incarnation,
        of.address,
        _TEXT[claim.state],
        of.suspect,
        claim.devices,
    )


def _view(
    uid: str,
    shards: tuple[Candidate, ...],
    *,
    state: ReplicaStatus,
    decision: Decision,
    reason: str,
    conflicts: tuple[Conflict, ...] = (),
    coordination: Mapping[str, Any] | None = None,
) -> ReplicaView:
    first = shards[0].claim
    created, desired = first.created_ts, first.desired
    version, abilities, name, label = first.version, first.abilities, first.name, first.label
    for candidate in shards[1:]:  # of each, the first that says anything
        claim = candidate.claim
        created = min(created, claim.created_ts)
        if claim.desired is not None:
            desired = max(claim.desired, desired or 0)
        version = claim.version if version is None else version
        abilities = abilities or claim.abilities
        name = claim.name if name is None else name
        label = claim.label if label is None else label
    return ReplicaView(
        uid=uid,
        model=first.model,
        index=int(uid.rpartition("-rep")[2]),  # it was admitted, so it has one
        kind=first.kind,
        n_worker=first.n_worker,
        launch=first.launch,
        state=state,
        shards=tuple(map(_shard_view, shards)),
        verdict=decision.verdict,
        reason=reason,
        plugin=decision.plugin,
        created_ts=created,
        version=version,
        abilities=abilities,
        name=name,
        label=label,
        desired=desired,
        conflicts=conflicts,
        coordination=coordination,
    )
