"""What should exist, and what should not: placements and tombstones.

Workers are the authority for what they hold, the supervisor for this. A tombstone hides all
claims up to its launch; a placement is shown as LAUNCHING until its claims come.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

from zrecover.core.judge import Candidate
from zrecover.core.memory import Placement, Tombstone
from zrecover.core.view import ReplicaView, Unwanted
from zrecover.ids import Launch
from zrecover.model import Decision, ReplicaState, Verdict

__all__ = ["Intent", "Losers", "Orphans"]

_TOMBSTONES = 100_000


class Losers(StrEnum):
    """What becomes of a claim that lost against a higher launch."""

    KEEP = "keep"
    """It goes on serving, and takes over if the winner goes."""
    DRAIN = "drain"
    """It takes nothing new."""
    STOP = "stop"
    """It is stopped."""


class Orphans(StrEnum):
    """What becomes of a replica that nobody asked for, where there is a list of what should be."""

    ADOPT = "adopt"
    """It is routed like any other."""
    QUARANTINE = "quarantine"
    """It is held: shown, and not routed."""
    STOP = "stop"
    """It is stopped."""


class Intent:
    """The list of what should exist. `orphans` counts only where something was placed."""

    def __init__(self, *, orphans: Orphans = Orphans.ADOPT, losers: Losers = Losers.KEEP) -> None:
        self.placements: dict[str, Placement] = {}
        self.stopping: dict[str, None] = {}
        """Replicas that somebody asked to stop; until nobody claims them any more."""
        self.tombstones: OrderedDict[str, Tombstone] = OrderedDict()
        self.orphans, self.losers = orphans, losers

    def clear(self) -> None:
        """A new reign: what it remembers is told anew."""
        self.placements.clear()
        self.stopping.clear()
        self.tombstones.clear()

    # --- tombstones ---

    def bury(self, stones: Iterable[Tombstone]) -> list[Tombstone]:
        """Take these into account; those that are news."""
        news = []
        for stone in stones:
            known = self.tombstones.get(stone.uid)
            if known is not None and known.covers(stone.launch, stone.created_ts):
                continue
            self.tombstones[stone.uid] = stone
            self.tombstones.move_to_end(stone.uid)
            news.append(stone)
            placed = self.placements.get(stone.uid)
            if placed is not None and placed.launch <= stone.launch:
                del self.placements[stone.uid]
        while len(self.tombstones) > _TOMBSTONES:
            self.tombstones.popitem(last=False)
        return news

    def deleted(self, uid: str, launch: Launch, created_ts: int) -> bool:
        """True where a claim is of a deleted replica."""
        stone = self.tombstones.get(uid)
        return stone is not None and stone.covers(launch, created_ts)

    # --- placements ---

    def place(self, placements: Iterable[Placement]) -> None:
        """These were asked for."""
        for placement in placements:
            known = self.placements.get(placement.uid, placement)
            if not self.deleted(placement.uid, placement.launch, 0):
                self.placements[placement.uid] = max(known, placement, key=lambda p: p.launch)

    def desired(self, model: str) -> int | None:
        """How many replicas of a model were placed; None if none ever was."""
        count = sum(placement.model == model for placement in self.placements.values())
        return count or None

    def orphan(self, candidate: Candidate) -> bool:
        """True where nobody asked for it although there is a list of what should exist."""
        return bool(self.placements) and candidate.claim.uid not in self.placements

    # --- what of the claims counts ---

    def visible(self, uid: str, candidates: Iterable[Candidate]) -> list[Candidate]:
        """The claims that are not deleted; those of orphans held, if that is the policy."""
        if uid not in self.tombstones and self.orphans is Orphans.ADOPT:  # nearly always
            return list(candidates)
        found = []
        for candidate in candidates:
            claim = candidate.claim
            if self.deleted(uid, claim.launch, claim.created_ts):
                continue
            if self.orphans is not Orphans.ADOPT and candidate.accepted and self.orphan(candidate):
                reason = "nobody placed it, and replicas that nobody placed are held"
                candidate = candidate.judged(Decision(Verdict.HOLD, reason))
            found.append(candidate)
        return found

    def unwanted(
        self, uid: str, candidates: Iterable[Candidate], view: ReplicaView | None
    ) -> tuple[Unwanted, ...]:
        """The claims whose workers have to be told to drain or stop them."""
        found: list[Unwanted] = []
        if uid in self.tombstones or uid in self.stopping or self.orphans is Orphans.STOP:
            found += self._stopped(uid, candidates)
        if self.losers is not Losers.KEEP and view is not None and view.conflicts and view.routes:
            found += self._lost(candidates, view)
        return tuple(sorted(found, key=lambda u: (u.worker, u.shard, u.action)))

    def _stopped(self, uid: str, candidates: Iterable[Candidate]) -> list[Unwanted]:
        """Claims of what should not exist."""
        found = []
        for candidate in candidates:
            claim = candidate.claim
            if self.deleted(uid, claim.launch, claim.created_ts):
                found.append(_unwanted(candidate, "stop", f"{uid} was deleted"))
            elif uid in self.stopping:
                found.append(_unwanted(candidate, "stop", f"somebody asked to stop {uid}"))
            elif self.orphans is Orphans.STOP and self.orphan(candidate):
                found.append(_unwanted(candidate, "stop", f"nobody placed {uid}"))
        return found

    def _lost(self, candidates: Iterable[Candidate], view: ReplicaView) -> list[Unwanted]:
        """Claims of lower launches than the one that serves; a higher one is still coming."""
        found = []
        claims = {(c.worker, c.claim.shard): c for c in candidates}
        for conflict in view.conflicts:
            candidate = claims[conflict.worker, conflict.shard]
            claim = candidate.claim
            if conflict.rule != "duplicate" or claim.launch > view.launch:
                continue
            if self.losers is Losers.STOP:
                found.append(_unwanted(candidate, "stop", conflict.reason))
            elif claim.state is not ReplicaState.STOPPING:
                found.append(_unwanted(candidate, "drain", conflict.reason))
        return found


def _unwanted(candidate: Candidate, action: Literal["drain", "stop"], reason: str) -> Unwanted:
    claim = candidate.claim
    return Unwanted(candidate.worker, claim.shard, action, reason, claim.launch, claim.created_ts)
