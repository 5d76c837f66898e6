"""What a supervisor has been told should exist and should not: a second reading of the rules.

Kept beside each supervisor by its check, from what it recalled, was asked, and was told by the
witnesses that have registered. No core reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zrecover.core.intent import Losers, Orphans
from zrecover.core.memory import Placement, Tombstone
from zrecover.ids import NO_LAUNCH
from zrecover.model import ReplicaState, Verdict
from zrecover.testing.simulation.truth import Expected, Held, Judgement, expected

if TYPE_CHECKING:
    from zrecover.core.witnesses import Remembered
    from zrecover.ids import Launch
    from zrecover.wire.messages import Claim, Stone

__all__ = ["Wanted", "covers", "keeps"]


def covers(stone: Tombstone, launch: Launch, created_ts: int) -> bool:
    """Whether a claim is what was deleted. Time tells only those apart that nobody placed."""
    if launch != stone.launch:
        return launch < stone.launch
    return launch != NO_LAUNCH or created_ts <= stone.created_ts


def keeps(remembered: Remembered, stone: Tombstone | Stone) -> bool:
    """Whether a worker keeps, as a witness, that this is deleted."""
    kept = remembered._stones.get(stone.uid)
    return kept is not None and covers(kept, stone.launch, stone.created_ts)


@dataclass(slots=True)
class Wanted:
    """Of one reign of one supervisor."""

    losers: Losers = Losers.KEEP
    orphans: Orphans = Orphans.ADOPT
    stones: dict[str, list[Tombstone]] = field(default_factory=dict)
    placed: dict[str, Placement] = field(default_factory=dict)
    stopping: dict[str, None] = field(default_factory=dict)
    """What somebody asked to stop, until nobody holds it."""

    def clear(self) -> None:
        """A new reign."""
        self.stones.clear()
        self.placed.clear()
        self.stopping.clear()

    def bury(self, stones: Iterable[Tombstone]) -> None:
        """These are deleted."""
        for stone in stones:
            self.stones.setdefault(stone.uid, []).append(stone)
            placed = self.placed.get(stone.uid)
            if placed is not None and placed.launch <= stone.launch:
                del self.placed[stone.uid]

    def place(self, placements: Iterable[Placement]) -> None:
        """These should exist."""
        for placement in placements:
            old = self.placed.get(placement.uid, placement)
            if not self.over(placement):
                self.placed[placement.uid] = max(old, placement, key=lambda p: p.launch)

    # --- reading ---

    def over(self, placement: Placement) -> bool:
        """Whether what was asked for was deleted since."""
        stones = self.stones.get(placement.uid, ())
        return any(placement.launch <= stone.launch for stone in stones)

    def deleted(self, claim: Claim) -> bool:
        """Whether a claim is of something that was deleted."""
        stones = self.stones.get(claim.uid, ())
        return any(covers(stone, claim.launch, claim.created_ts) for stone in stones)

    def orphan(self, uid: str) -> bool:
        """Whether nobody asked for it although there is a list."""
        return bool(self.placed) and uid not in self.placed

    def expected(self, held: Iterable[Held], judgement: Judgement) -> dict[str, Expected]:
        """What the view should say, where workers hold this."""
        seen = [one for one in held if not self.deleted(one.claim)]
        truth = expected(seen, judgement)
        if self.orphans is not Orphans.ADOPT:
            for uid in [uid for uid in truth if self.orphan(uid)]:
                mine = [one for one in seen if one.claim.uid == uid]
                if any(judgement.verdict(one.claim).verdict >= Verdict.ROUTES for one in mine):
                    launch, n = mine[0].claim.launch, mine[0].claim.n_worker
                    truth[uid] = Expected("HELD", launch, n, (), (), Verdict.HOLD)
        for uid, placement in self.placed.items():
            if uid not in truth:
                truth[uid] = Expected(
                    "LAUNCHING", placement.launch, placement.n_worker, (), (), Verdict.HOLD
                )
        return truth

    def why(
        self, claim: Claim, action: str, truth: Mapping[str, Expected], judgement: Judgement
    ) -> str:
        """Why a claim has to be drained or stopped; empty if it has not."""
        if action == "stop":
            if self.deleted(claim):
                return "it was deleted"
            if claim.uid in self.stopping:
                return "somebody asked for it"
            if self.orphans is Orphans.STOP and self.orphan(claim.uid):
                return "nobody placed it"
        if self.losers is Losers.KEEP or self.losers.value != action:
            return ""
        best = truth.get(claim.uid)
        lost = best is not None and best.state == "READY" and claim.launch < best.launch
        accepted = judgement.verdict(claim).verdict >= Verdict.ROUTES
        return "a later launch serves" if lost and accepted else ""

    def left_over(
        self, reachable: Iterable[Held], held: Iterable[Held], judgement: Judgement
    ) -> str:
        """What is held by who can be reached although, of all that is `held`, it should be
        stopped or drained; empty if nothing is."""
        truth = self.expected(held, judgement)
        for one in reachable:
            claim = one.claim
            for action in ("stop", "drain"):
                why = self.why(claim, action, truth, judgement)
                if why and (action == "stop" or claim.state is not ReplicaState.STOPPING):
                    return f"{one.worker} holds {claim.uid}/{claim.shard} still: {why}"
        return ""
