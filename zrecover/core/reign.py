"""A supervisor's claim to lead: it announces itself to discovery and renews that.

The link to discovery is a link like any other, only simpler: one address, tried again and
again with a back-off. Losing it does not end the reign; only another boot does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zrecover.core.effects import Connect, Disconnect, Effect, Send
from zrecover.core.inputs import LinkDown, LinkUp, Start, Tick
from zrecover.wire.messages import Announce, Withdraw
from zrecover.wire.versions import SUPPORTED

if TYPE_CHECKING:
    from random import Random

    from zrecover.config import Timing

__all__ = ["Candidacy", "Reign"]

_TEN_YEARS_MS = 10 * 365 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Candidacy:
    """What a supervisor announces: its boot id and where workers and clients reach it."""

    cluster: str
    boot: str
    endpoints: tuple[str, ...]
    proposed: int
    """Epoch that it proposes: wall-clock ms at its start."""


class Reign:
    """Announces a candidacy at one discovery endpoint. Times are monotonic seconds."""

    def __init__(self, discovery: str, candidacy: Candidacy, timing: Timing, rng: Random) -> None:
        self.candidacy = candidacy
        self.proposed = candidacy.proposed
        self.held = 0
        """Epoch of the last grant, 0 if there was none."""
        self.link = 0
        self.spread = 0.0
        self.why = ""
        """Why discovery cannot be reached; empty while it can."""
        self._discovery, self._timing, self._rng = discovery, timing, rng
        self._up = self._paused = False
        self._heard = 0.0
        self._deadline: float | None = None

    @property
    def next_deadline(self) -> float | None:
        """When `Tick` is due."""
        return self._deadline

    def believable(self, epoch: int) -> bool:
        """False for an epoch years ahead of the clock: such a one is corrupt."""
        return epoch <= self.candidacy.proposed + _TEN_YEARS_MS

    def handle(self, input: object, now: float) -> list[Effect]:
        """Take Start, LinkUp, LinkDown (of our link) or Tick."""
        out: list[Effect] = []
        match input:
            case Start():
                self._connect(now, out)
            case LinkUp(link) if link == self.link and not self._paused:
                self._up, self.why, self._heard = True, "", now
                self._announce(now, out)
            case LinkDown(link, reason) if link == self.link:
                self._retry(reason, now, out)
            case Tick() if self._deadline is not None and self._deadline <= now:
                if self._paused:
                    self._connect(now, out)
                elif not self._up:
                    self._retry("no connection in time", now, out)
                elif now - self._heard > self._timing.lease:
                    self._retry(f"no answer for {self._timing.lease:g} s", now, out)
                else:
                    self._announce(now, out)
            case _:
                pass
        return out

    def heard(self, now: float) -> None:
        """Discovery has answered."""
        self._heard = now

    def announce(self, now: float, *, challenge: int = 0) -> list[Effect]:
        """Announce at once, answering a challenge if `challenge` is its nonce."""
        out: list[Effect] = []
        if self._up:
            self._announce(now, out, challenge)
        return out

    def ask_above(self, epoch: int, now: float) -> list[Effect]:
        """Somebody has seen `epoch`, which is above ours: ask for a grant above it."""
        if epoch < self.proposed:
            return []
        self.proposed = epoch + 1
        return self.announce(now)

    def learn(self, epoch: int) -> None:
        """Another one leads with `epoch`: propose to lead above it, whatever is forgotten."""
        if self.proposed <= epoch and self.believable(epoch):
            self.proposed = epoch + 1

    def end(self, *, withdraw: bool) -> list[Effect]:
        """Stop announcing; `withdraw` lets whoever waits lead at once."""
        out: list[Effect] = []
        if self._up and withdraw:
            out.append(Send(self.link, Withdraw(self.candidacy.cluster, self.candidacy.boot)))
        out.append(Disconnect(self.link, linger=0.3 if withdraw else 0.0))
        self.link += 1
        self._up, self._deadline = False, None
        return out

    def _connect(self, now: float, out: list[Effect]) -> None:
        self.link += 1
        self._paused = False
        self._deadline = now + self._timing.connect
        out.append(Connect(self.link, (self._discovery,)))

    def _announce(self, now: float, out: list[Effect], challenge: int = 0) -> None:
        self._deadline = now + self._timing.announce * (0.9 + 0.2 * self._rng.random())
        who = self.candidacy
        message = Announce(
            cluster=who.cluster,
            boot=who.boot,
            proposed=self.proposed,
            held=self.held,
            endpoints=who.endpoints,
            lease=self._timing.lease,
            spread=self.spread,
            versions=SUPPORTED,
            challenge=challenge,
        )
        out.append(Send(self.link, message))

    def _retry(self, reason: str, now: float, out: list[Effect]) -> None:
        out.append(Disconnect(self.link))
        self.why = reason
        self._up, self._paused = False, True
        pause = self._timing.backoff_min * (1 + self._rng.random() * 4)
        self._deadline = now + min(pause, self._timing.backoff_max)
