"""Who leads one cluster: the lease, its challenge, and who stands by.

At most one boot holds the lease. It loses it by being unreachable, by not answering a
challenge while somebody waits, by letting it run out or by giving it back; never because
somebody else merely asks.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING

from zrecover.core.effects import Effect, Emit, Reply
from zrecover.core.epochs import Epochs
from zrecover.core.events import LeaderChallenged, LeaderGone, LeaderGranted, StandbyJoined
from zrecover.core.table import Table
from zrecover.wire.messages import Announce, Challenge, Granted, Standby, Superseded

if TYPE_CHECKING:
    from collections.abc import Hashable
    from random import Random

    from zrecover.config import Timing

__all__ = ["LEASE_TABLE", "NOBODY", "Candidate", "Lease", "LeaseInput", "LeaseState"]

NOBODY = "-"
"""The leader that `Standby` names while nobody leads and the one of before is waited for."""

STANDBYS = 64
"""How many may wait in line; more are told who leads and may try again."""

SUPERSEDED = 64
"""How many former leaders are remembered."""

LEASE_LONGEST = 60.0
"""Seconds; a longer lease is granted for this long."""


class LeaseState(StrEnum):
    """Where the lease of one cluster is."""

    VACANT = "VACANT"
    """Nobody leads."""
    HELD = "HELD"
    """One boot leads and is believed."""
    CHALLENGED = "CHALLENGED"
    """One boot leads and has been asked whether it still lives."""


class LeaseInput(StrEnum):
    """What moves the lease."""

    GRANTED = "GRANTED"
    """A boot gets the lease."""
    RENEWED = "RENEWED"
    """The holder announced itself again."""
    DOUBTED = "DOUBTED"
    """The holder is asked whether it still lives."""
    ANSWERED = "ANSWERED"
    """It answered that."""
    SPARED = "SPARED"
    """It did not, but nobody else wants to lead: the lease runs on."""
    SILENT = "SILENT"
    """It did not, and somebody waits."""
    GONE = "GONE"
    """The holder cannot be reached."""
    EXPIRED = "EXPIRED"
    """The holder has not renewed for its whole lease."""
    WITHDRAWN = "WITHDRAWN"
    """The holder gave the lease back."""


_S, _I = LeaseState, LeaseInput
LEASE_TABLE: Table[LeaseState, LeaseInput] = Table(
    "lease",
    _S.VACANT,
    {
        (_S.VACANT, _I.GRANTED): _S.HELD,
        (_S.HELD, _I.RENEWED): _S.HELD,
        (_S.HELD, _I.DOUBTED): _S.CHALLENGED,
        (_S.HELD, _I.GONE): _S.VACANT,
        (_S.HELD, _I.EXPIRED): _S.VACANT,
        (_S.HELD, _I.WITHDRAWN): _S.VACANT,
        (_S.CHALLENGED, _I.RENEWED): _S.CHALLENGED,
        (_S.CHALLENGED, _I.ANSWERED): _S.HELD,
        (_S.CHALLENGED, _I.SPARED): _S.HELD,
        (_S.CHALLENGED, _I.SILENT): _S.VACANT,
        (_S.CHALLENGED, _I.GONE): _S.VACANT,
        (_S.CHALLENGED, _I.EXPIRED): _S.VACANT,
        (_S.CHALLENGED, _I.WITHDRAWN): _S.VACANT,
    },
)


@dataclass(slots=True)
class Candidate:
    """One boot that announces itself: the holder, or one that stands by. Monotonic seconds."""

    peer: Hashable
    message: Announce
    heard: float
    """When it last announced itself."""
    until: float
    """When it is forgotten unless it does so again."""
    told: bool = False
    """A standby: it has been told who leads."""

    @property
    def boot(self) -> str:
        return self.message.boot


class Lease:
    """The lease of one cluster. Times are monotonic seconds.

    `proposed` is the first epoch that anybody proposed; before `grace_until` a newcomer
    that never led is made to wait for one that did.
    """

    def __init__(
        self, cluster: str, timing: Timing, rng: Random, *, proposed: int, grace_until: float
    ) -> None:
        self.cluster = cluster
        self.state = LEASE_TABLE.initial
        self.holder: Candidate | None = None
        """Who leads; None exactly while the state is VACANT."""
        self.epochs = Epochs(proposed)
        self._timing, self._rng = timing, rng
        self._grace_until = grace_until
        self._standbys: dict[str, Candidate] = {}
        self._superseded: deque[str] = deque(maxlen=SUPERSEDED)
        self._nonce = 0
        self._challenge_until = inf

    @property
    def due(self) -> float | None:
        """When `tick` is due; None while nothing can happen by itself."""
        times = [standby.until for standby in self._standbys.values()]
        if self.holder is not None:
            times.append(self.holder.until)
            if self.state is LeaseState.CHALLENGED:
                times.append(self._challenge_until)
            elif self._standbys:
                times.append(self._doubt_at(self.holder))
        elif self._standbys:
            times.append(self._grace_until)
        return min(times, default=None)

    # --- inputs ---

    def announce(self, peer: Hashable, message: Announce, now: float) -> list[Effect]:
        """A boot wants to lead, still does, or answers a challenge.

        `message.proposed` is below EPOCH_LIMIT.
        """
        if message.boot in self._superseded:
            return [Reply(peer, self._superseded_by(message.boot))]
        self.epochs.propose(message.proposed)
        candidate = Candidate(peer, message, now, now + self._length(message))
        if self.holder is not None and self.holder.boot == message.boot:
            return self._renew(self.holder, candidate)
        self.epochs.saw(message.held)
        led_before = message.boot == self.epochs.boot or self.epochs.plausible(message.held) > 0
        if self.holder is None and led_before:
            self._standbys.pop(message.boot, None)
            return self._grant(candidate)
        return self._apply(candidate, now)

    def withdraw(self, boot: str, now: float) -> list[Effect]:
        """A boot does not want to lead any more."""
        self._standbys.pop(boot, None)
        if self.holder is not None and self.holder.boot == boot:
            return self._vacate(self.holder, LeaseInput.WITHDRAWN, "it withdrew", now)
        return []

    def gone(self, peer: Hashable, now: float) -> list[Effect]:
        """`peer` cannot be reached."""
        for standby in [s for s in self._standbys.values() if s.peer == peer]:
            del self._standbys[standby.boot]
        if self.holder is not None and self.holder.peer == peer:
            return self._vacate(self.holder, LeaseInput.GONE, "it cannot be reached", now)
        return []

    def probe(self, now: float) -> list[Effect]:
        """Some connection ended: was it the holder's? One that is challenged is asked again."""
        if self.holder is not None and self.state is LeaseState.CHALLENGED:
            return [Reply(self.holder.peer, self._question(self.holder))]
        return self._challenge("a connection ended", now)

    def tick(self, now: float) -> list[Effect]:
        """Time has passed."""
        for standby in [s for s in self._standbys.values() if s.until <= now]:
            del self._standbys[standby.boot]
        holder = self.holder
        if holder is None:
            return [] if self._waiting_for_the_one_before(now) else self._promote(now)
        if holder.until <= now:
            return self._vacate(holder, LeaseInput.EXPIRED, "its lease ran out", now)
        if self.state is LeaseState.CHALLENGED:
            if self._challenge_until <= now:
                if not self._standbys:
                    self._move(LeaseInput.SPARED)
                    return []
                why = f"it did not answer a challenge within {self._timing.challenge:g} s"
                return self._vacate(holder, LeaseInput.SILENT, why, now)
        elif self._standbys and self._doubt_at(holder) <= now:
            return self._challenge(f"silent for {now - holder.heard:.1f} s", now)
        return []

    def forgive(self, now: float) -> None:
        """We stood still ourselves: nobody is late before it had time to be heard again."""
        until = now + 2 * self._timing.announce
        for candidate in self._standbys.values():
            candidate.until = max(candidate.until, until)
        if self.holder is not None:
            self.holder.until = max(self.holder.until, until)
            self.holder.heard = max(self.holder.heard, now - self._timing.announce)
            self._challenge_until = max(self._challenge_until, now + self._timing.challenge)

    # --- moves ---

    def _move(self, input: LeaseInput) -> bool:
        after = LEASE_TABLE.next(self.state, input)
        if after is None:
            return False
        self.state = after
        return True

    def _apply(self, candidate: Candidate, now: float) -> list[Effect]:
        """Somebody else wants to lead: into the line, and perhaps at once out of it.

        It is told who leads when that is certain; a new one waits for the end of a challenge.
        """
        effects: list[Effect] = []
        known = self._standbys.get(candidate.boot)
        new = known is None and len(self._standbys) < STANDBYS
        if new or known is not None:
            self._standbys[candidate.boot] = candidate
        if self.holder is None and not self._waiting_for_the_one_before(now):
            candidate.told = True
            effects += self._promote(now)
        elif new:
            effects += self._challenge(f"{candidate.boot} wants to lead", now)
        if self.holder is candidate:
            return effects
        if new:
            effects.append(Emit(StandbyJoined(self.cluster, candidate.boot)))
        waits = new or (known is not None and not known.told)
        candidate.told = not waits or self.state is not LeaseState.CHALLENGED
        if candidate.told:
            effects.append(Reply(candidate.peer, self._standby(candidate.boot)))
        return effects

    def _promote(self, now: float) -> list[Effect]:
        """The lease is vacant: the first in line gets it."""
        while self._standbys:
            first = self._standbys.pop(next(iter(self._standbys)))
            if first.until > now:
                first.until = now + self._length(first.message)
                return [*self._grant(first), *self._tell()]
        return []

    def _grant(self, candidate: Candidate) -> list[Effect]:
        """The lease is vacant: `candidate` gets it."""
        self._move(LeaseInput.GRANTED)
        if self.epochs.boot not in ("", candidate.boot):
            self._superseded.append(self.epochs.boot)
        message = candidate.message
        epoch = self.epochs.grant(message.boot, message.proposed, message.held)
        self.holder = candidate
        granted = Emit(LeaderGranted(self.cluster, candidate.boot, epoch))
        return [granted, Reply(candidate.peer, self._granted(candidate))]

    def _renew(self, holder: Candidate, candidate: Candidate) -> list[Effect]:
        """The holder again, perhaps with a new address and over another connection."""
        self._move(LeaseInput.RENEWED)
        effects: list[Effect] = []
        self.holder = candidate
        message, before = candidate.message, self.epochs.last
        epoch = self.epochs.grant(message.boot, message.proposed, message.held)
        if epoch != before:
            effects.append(Emit(LeaderGranted(self.cluster, candidate.boot, epoch)))
        effects.append(Reply(candidate.peer, self._granted(candidate)))
        if self.state is LeaseState.CHALLENGED:
            if message.challenge == self._nonce:
                self._move(LeaseInput.ANSWERED)
                effects += self._tell()
            elif candidate.peer != holder.peer:
                effects.append(Reply(candidate.peer, self._question(candidate)))
        return effects

    def _challenge(self, why: str, now: float) -> list[Effect]:
        """Ask the holder whether it still lives. No news as long as nobody waits."""
        if self.holder is None or not self._move(LeaseInput.DOUBTED):
            return []
        self._nonce = self._rng.randrange(1, 2**53)
        self._challenge_until = now + self._timing.challenge
        effects: list[Effect] = [Reply(self.holder.peer, self._question(self.holder))]
        if self._standbys:
            effects.append(Emit(LeaderChallenged(self.cluster, self.holder.boot, why)))
        return effects

    def _vacate(self, holder: Candidate, input: LeaseInput, why: str, now: float) -> list[Effect]:
        """The holder loses the lease; the first in line gets it at once."""
        self._move(input)
        self.holder = None
        effects: list[Effect] = [Emit(LeaderGone(self.cluster, holder.boot, why))]
        effects += self._promote(now)
        if self.holder is not None and input in (LeaseInput.SILENT, LeaseInput.EXPIRED):
            # If it is only frozen, this is the first thing that it reads when it wakes.
            effects.append(Reply(holder.peer, self._superseded_by(holder.boot)))
        return effects

    def _tell(self) -> list[Effect]:
        """Tell those in line who still wait for an answer that somebody else leads."""
        waiting = [standby for standby in self._standbys.values() if not standby.told]
        for standby in waiting:
            standby.told = True
        return [Reply(standby.peer, self._standby(standby.boot)) for standby in waiting]

    # --- rules ---

    def _waiting_for_the_one_before(self, now: float) -> bool:
        return not self.epochs.last and now < self._grace_until

    def _doubt_at(self, holder: Candidate) -> float:
        """When a holder that was not heard again is challenged, if somebody waits."""
        return holder.heard + 2 * self._timing.announce

    def _length(self, message: Announce) -> float:
        return min(max(message.lease, self._timing.challenge), LEASE_LONGEST)

    # --- messages ---

    def _granted(self, holder: Candidate) -> Granted:
        return Granted(self.cluster, holder.boot, self.epochs.last, self._length(holder.message))

    def _standby(self, boot: str) -> Standby:
        leader = NOBODY if self.holder is None else self.holder.boot
        return Standby(self.cluster, boot, leader, self.epochs.highest)

    def _superseded_by(self, boot: str) -> Superseded:
        return Superseded(self.cluster, boot, self.epochs.boot, self.epochs.last)

    def _question(self, holder: Candidate) -> Challenge:
        return Challenge(self.cluster, holder.boot, self._nonce)
