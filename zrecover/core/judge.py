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

from zrecover.core.effects import Placed
from zrecover.core.view import Conflict, ReplicaStatus, ReplicaView, ShardView
from zrecover.ids import Launch, parse_uid
from zrecover.model import Decision, ReplicaState, Verdict
from zrecover.wire.messages import Claim

__all__ = ["Candidate", "Outcome", "judge", "to_rebuild"]

_STATE_OF = {Verdict.REFUSE: ReplicaStatus.REFUSED, Verdict.HOLD: ReplicaStatus.HELD}
_ORDER = {ReplicaState.READY: 0, ReplicaState.LOADING: 1, ReplicaState.STOPPING: 2}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One claim of one registered worker, with the verdict on it."""

    worker: str
    incarnation: int
    address: str
    suspect: bool
    claim: Claim
    decision: Decision
    replayed: bool
    """It came with a registration, not as a later change."""

    @property
    def accepted(self) -> bool:
        """True where its verdict lets it be routed."""
        return self.decision.verdict >= Verdict.ROUTES


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the plugins made of one complete group."""

    members: tuple[Placed, ...]
    decision: Decision | None
    """A verdict that is less than the group had, None if there was none."""
    state: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class _Group:
    """The winners of one launch, by shard."""

    launch: Launch
    n_worker: int
    shards: tuple[Candidate, ...]

    @property
    def missing(self) -> list[int]:
        have = {candidate.claim.shard for candidate in self.shards}
        return [shard for shard in range(self.n_worker) if shard not in have]

    @property
    def state(self) -> ReplicaStatus:
        states = {candidate.claim.state for candidate in self.shards}
        if self.missing:
            return ReplicaStatus.INCOMPLETE
        if ReplicaState.STOPPING in states:
            return ReplicaStatus.STOPPING
        if ReplicaState.LOADING in states:
            return ReplicaStatus.LOADING
        return ReplicaStatus.READY

    @property
    def decision(self) -> Decision:
        """The least permissive verdict in it."""
        return min(self.shards, key=lambda c: (c.decision.verdict, c.claim.shard)).decision

    @property
    def members(self) -> tuple[Placed, ...]:
        """What the plugins rebuild from; empty where there is nothing to rebuild."""
        verdict = self.decision.verdict
        captured = any(candidate.claim.captured for candidate in self.shards)
        if self.state is not ReplicaStatus.READY or verdict < Verdict.REBUILD:
            return ()
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
    claims = sorted(candidates, key=lambda c: (c.claim.shard, c.worker))
    accepted = [candidate for candidate in claims if candidate.accepted]
    if not accepted:
        return _unaccepted(uid, claims)
    groups, losers = _groups(accepted)
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
        reason=why or decision.reason,
        conflicts=tuple(conflicts),
        coordination=coordination,
    )


def _groups(accepted: list[Candidate]) -> tuple[list[_Group], list[Candidate]]:
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


def _unaccepted(uid: str, claims: list[Candidate]) -> ReplicaView:
    best = max(claims, key=lambda c: (c.decision.verdict, c.claim.launch))
    held = best.decision.verdict is Verdict.HOLD
    state = ReplicaStatus.HELD if held else ReplicaStatus.REFUSED
    shown = [c for c in claims if c.claim.launch == best.claim.launch]
    return _view(
        uid, tuple(shown), state=state, decision=best.decision, reason=best.decision.reason
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
    claims = [candidate.claim for candidate in shards]
    first = claims[0]
    desired = [claim.desired for claim in claims if claim.desired is not None]
    return ReplicaView(
        uid=uid,
        model=first.model,
        index=parse_uid(uid)[1],
        kind=first.kind,
        n_worker=first.n_worker,
        launch=first.launch,
        state=state,
        shards=tuple(
            ShardView(
                c.claim.shard, c.worker, c.incarnation, c.address, c.claim.state.value, c.suspect
            )
            for c in shards
        ),
        verdict=decision.verdict,
        reason=reason,
        plugin=decision.plugin,
        created_ts=min(claim.created_ts for claim in claims),
        version=next((c.version for c in claims if c.version is not None), None),
        abilities=next((c.abilities for c in claims if c.abilities), ()),
        name=next((c.name for c in claims if c.name is not None), None),
        label=next((c.label for c in claims if c.label is not None), None),
        desired=max(desired, default=None),
        conflicts=conflicts,
        coordination=coordination,
    )
