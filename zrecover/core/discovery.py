"""Discovery: who leads each cluster, told to whoever asks.

Supervisors announce themselves and are granted the lease of their cluster (see `lease`).
Everybody else asks; a question whose answer would be a boot that the asker wants to leave
is held until another one leads. Nothing is kept on disk: after a restart the leader of
before says which epoch it holds, and askers say which they have seen.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from zrecover.config import LIMITS, Limits
from zrecover.core.effects import Effect, Emit, Reply
from zrecover.core.epochs import EPOCH_LIMIT
from zrecover.core.events import PeerRejected
from zrecover.core.held import HeldQuestions
from zrecover.core.inputs import FromPeer, PeerGone, PeerLeft, Start, Stop, Tick
from zrecover.core.lease import Lease
from zrecover.wire.messages import Address_, Announce, NoSupervisor_, Rejected, Resolve, Withdraw

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from random import Random

    from zrecover.config import Timing

__all__ = ["DiscoveryCore", "DiscoveryInput"]

DiscoveryInput = Start | Stop | Tick | FromPeer | PeerGone | PeerLeft

PROBE_PACE = 0.01
"""Seconds between two rounds of probes: connections of askers end all the time."""


class DiscoveryCore:
    """All clusters of one discovery. Times are monotonic seconds; single-threaded.

    `clusters` says which ones it serves (None: any), up to `limits.clusters` of them.
    For `grace` seconds after `Start` a supervisor that never led waits for one that did.
    """

    def __init__(
        self,
        timing: Timing,
        rng: Random,
        *,
        clusters: frozenset[str] | None = None,
        grace: float,
        limits: Limits = LIMITS,
    ) -> None:
        self._timing, self._rng, self._limits = timing, rng, limits
        self._clusters = None if clusters is None else tuple(sorted(clusters))
        self._grace = grace
        self._grace_until = -inf
        self._leases: dict[str, Lease] = {}
        self._held = HeldQuestions()
        self._due: dict[str, float] = {}
        self._first_due: float | None = None
        self._due_changed = False
        self._probe_from = -inf
        self._probe_at: float | None = None
        self._stopped = False

    @property
    def next_deadline(self) -> float | None:
        """When `Tick` is due; None while nothing is awaited."""
        if self._due_changed:
            self._first_due = min(self._due.values(), default=None)
            self._due_changed = False
        times = (self._first_due, self._held.due, self._probe_at)
        return min((time for time in times if time is not None), default=None)

    def leader(self, cluster: str) -> tuple[str, int] | None:
        """Boot and epoch of who leads `cluster`, or None."""
        lease = self._leases.get(cluster)
        if lease is None or lease.holder is None:
            return None
        return lease.holder.boot, lease.epochs.last

    def handle(self, input: DiscoveryInput, now: float) -> list[Effect]:
        """Take one input at `now`, which never runs backwards; say what is to be done.

        Deadlines pass only with `Tick`, so that a driver which was busy can first hand in
        what has arrived meanwhile. A tick that is late by more than a challenge lets nobody
        expire: it was we who stood still.
        """
        match input:
            case FromPeer(peer, Resolve() as message):
                return self._resolve(peer, message, now)
            case _ if self._stopped:
                return []
            case FromPeer(peer, Announce() as message):
                return self._announce(peer, message, now)
            case FromPeer(_, Withdraw(cluster, boot)) if cluster in self._leases:
                lease = self._leases[cluster]
                return self._after(lease, lease.withdraw(boot, now))
            case PeerGone(peer):
                self._held.drop(peer)
                return self._each(lambda lease: lease.gone(peer, now))
            case PeerLeft():
                return self._probe(now)
            case Tick():
                return self._tick(now)
            case Start():
                self._grace_until = now + self._grace
            case Stop():
                self._stopped = True
                self._due.clear()
                self._due_changed = True
                self._probe_at = None
                return [self._answer(q.peer, q.message) for q in self._held.all()]
            case _:
                pass
        return []

    # --- supervisors ---

    def _announce(self, peer: Hashable, message: Announce, now: float) -> list[Effect]:
        refusal = self._refusal(message)
        if refusal is not None:
            return [Emit(PeerRejected(refusal.code, refusal.reason)), Reply(peer, refusal)]
        lease = self._leases.get(message.cluster)
        if lease is None:
            lease = Lease(
                message.cluster,
                self._timing,
                self._rng,
                proposed=message.proposed,
                grace_until=self._grace_until,
            )
            self._leases[message.cluster] = lease
            for question in self._held.of(message.cluster):
                lease.epochs.saw(question.message.epoch)
        return self._after(lease, lease.announce(peer, message, now))

    def _refusal(self, message: Announce) -> Rejected | None:
        if not self._serves(message.cluster):
            return Rejected("wrong-cluster", self._others())
        if message.proposed >= EPOCH_LIMIT:
            return Rejected("corrupt-epoch", f"epoch {message.proposed} is out of all range")
        most = self._limits.clusters
        if message.cluster not in self._leases and len(self._leases) >= most:
            return Rejected("too-many-clusters", f"this discovery leads {most} clusters already")
        return None

    def _after(self, lease: Lease, effects: list[Effect]) -> list[Effect]:
        """Something happened to `lease`: answer who waited for it, note when it is due."""
        if lease.holder is not None:
            for question in self._held.release(lease.cluster, lease.holder.boot):
                effects.append(self._answer(question.peer, question.message))
        due = lease.due
        if due is None:
            self._due.pop(lease.cluster, None)
        else:
            self._due[lease.cluster] = due
        self._due_changed = True
        return effects

    def _probe(self, now: float) -> list[Effect]:
        """Ask all leaders whether they live, now or when the last round is long enough ago."""
        if now < self._probe_from:
            self._probe_at = self._probe_from
            return []
        self._probe_from, self._probe_at = now + PROBE_PACE, None
        return self._each(lambda lease: lease.probe(now))

    def _each(self, act: Callable[[Lease], list[Effect]]) -> list[Effect]:
        out: list[Effect] = []
        for lease in self._leases.values():
            effects = act(lease)
            out += self._after(lease, effects)
        return out

    # --- everybody else ---

    def _resolve(self, peer: Hashable, message: Resolve, now: float) -> list[Effect]:
        self._held.drop(peer)
        lease = self._leases.get(message.cluster)
        if lease is not None:
            lease.epochs.saw(message.epoch)
            if lease.holder is not None and lease.holder.boot != message.not_boot:
                return [self._answer(peer, message)]
        wait = min(message.wait_ms / 1000, self._timing.hold)
        full = len(self._held) >= self._limits.held_resolves
        if wait <= 0 or full or self._stopped or not self._serves(message.cluster):
            return [self._answer(peer, message)]
        self._held.add(peer, message, now + wait)
        return []

    def _answer(self, peer: Hashable, message: Resolve) -> Reply:
        """What is true now: the leader's address, or why there is none."""
        lease = self._leases.get(message.cluster)
        holder = None if lease is None or self._stopped else lease.holder
        if lease is None or holder is None:
            epoch = 0 if lease is None else lease.epochs.highest
            reason = self._why_nobody(message.cluster)
            return Reply(peer, NoSupervisor_(message.cluster, message.nonce, epoch, reason))
        announced = holder.message
        return Reply(
            peer,
            Address_(
                cluster=message.cluster,
                nonce=message.nonce,
                epoch=lease.epochs.last,
                boot=holder.boot,
                endpoints=announced.endpoints,
                spread=announced.spread,
                versions=announced.versions,
            ),
        )

    def _why_nobody(self, cluster: str) -> str:
        if self._stopped:
            return "discovery is stopping"
        if not self._serves(cluster):
            return self._others()
        return f"nobody leads cluster {cluster!r}"[: self._limits.reason]

    # --- time ---

    def _tick(self, now: float) -> list[Effect]:
        out: list[Effect] = []
        due = self.next_deadline
        if due is not None and now - due > self._timing.challenge:
            for lease in self._leases.values():
                lease.forgive(now)
                self._after(lease, [])
        if self._probe_at is not None and self._probe_at <= now:
            out += self._probe(now)
        for lease in [self._leases[c] for c, due in self._due.items() if due <= now]:
            out += self._after(lease, lease.tick(now))
        out += [self._answer(q.peer, q.message) for q in self._held.expired(now)]
        return out

    # --- clusters ---

    def _serves(self, cluster: str) -> bool:
        return self._clusters is None or cluster in self._clusters

    def _others(self) -> str:
        names = ", ".join(repr(cluster) for cluster in self._clusters or ())
        return f"this discovery serves only cluster {names}"[: self._limits.reason]
