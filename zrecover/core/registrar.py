"""The supervisor's side of registration, heartbeats and changes.

A registration is one transaction: parts are collected, each claim read and decided, and the
worker's records swapped in one step. An unknown session is answered `Unknown` and creates
nothing. What is stale is counted and changes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass

from zrecover.config import LIMITS, Limits, Timing
from zrecover.core.admission import Admitted, admit, less_permissive
from zrecover.core.effects import Decide, Effect, Emit, Reply
from zrecover.core.events import ClaimRefused, PeerRejected, WorkerLeft, WorkerRegistered
from zrecover.core.evidence import Evidence
from zrecover.core.intake import Intake
from zrecover.core.liveness import Liveness
from zrecover.core.pace import Pace, Tempo
from zrecover.core.reconsidering import Reconsidering
from zrecover.core.registry import Registry, WorkerRecord
from zrecover.core.tally import SupervisorTally
from zrecover.core.welcome import acknowledge, group_judged, judged, verdicts_on, welcome
from zrecover.errors import BadMessage
from zrecover.ids import Session
from zrecover.model import Decision, Verdict, WorkerState
from zrecover.wire import messages as m
from zrecover.wire.versions import SUPPORTED, agree

__all__ = ["Registrar"]

_PATIENCE = 10.0


@dataclass(slots=True)
class _Replay:
    """A registration whose verdicts are awaited; only the newest of a worker counts."""

    peer: Hashable
    head: m.Register
    admitted: Admitted
    ticket: int = 0


@dataclass(slots=True)
class _Change:
    """A change whose verdicts are awaited. It falls with the record, and with a new replay."""

    peer: Hashable
    head: m.InventoryChange
    admitted: Admitted
    record: WorkerRecord
    ticket: int = 0


class Registrar:
    """Sessions of one reign. `out` of each method collects the effects, in order."""

    def __init__(
        self,
        boot: str,
        timing: Timing,
        registry: Registry,
        liveness: Liveness,
        evidence: Evidence,
        limits: Limits = LIMITS,
    ) -> None:
        self.epoch = 0
        self.tally = SupervisorTally()
        self.stale = 0
        """Messages of an older session, snapshot or incarnation: dropped."""
        self.touched: list[str] = []
        """Uids whose judgement has changed; the supervisor takes them."""
        self.returned: list[str] = []
        """Workers that finished a registration; the supervisor takes them."""
        self.removed: list[str] = []
        """Workers that are gone; the supervisor takes them."""
        self._boot, self._limits = boot, limits
        self._registry, self._liveness, self._evidence = registry, liveness, evidence
        self.intake = Intake(_PATIENCE, limits)
        self.tempo = Tempo(boot, timing, registry)
        self._pending: dict[str, _Replay | _Change] = {}
        self._tickets: dict[int, str] = {}
        self._peers: dict[Hashable, Session] = {}
        self._sessions = 0
        self._numbers = itertools.count(1)
        self.reconsidering = Reconsidering(timing.hook, registry, evidence, self._numbers)

    @property
    def undecided(self) -> bool:
        """True while some worker's claims wait for their verdicts."""
        return bool(self._pending) or self.reconsidering.soon

    @property
    def next_deadline(self) -> float | None:
        """When a half-finished registration is dropped."""
        return self.intake.next_deadline

    @property
    def pace(self) -> Pace:
        """What a worker is told of this reign."""
        return self.tempo.pace(self.epoch)

    def begin(self, epoch: int) -> None:
        """A new reign: all sessions of the last one end."""
        if epoch != self.epoch:
            self.epoch, self._sessions = epoch, 0
        self.touched += self._registry.clear()
        self._pending.clear()
        self._tickets.clear()
        self.reconsidering.clear()
        self._peers.clear()
        self.intake = Intake(_PATIENCE, self._limits)

    # --- registration ---

    def register(self, peer: Hashable, part: m.Register, now: float, out: list[Effect]) -> None:
        """One part of a registration."""
        if agree(SUPPORTED, part.versions) is None:
            ours, theirs = SUPPORTED, part.versions
            reason = (
                f"worker {part.worker} speaks protocol versions {theirs.low} to {theirs.high}, "
                f"this supervisor {ours.low} to {ours.high}"
            )
            self.reject(peer, "version", reason, out)
            return
        record = self._registry.workers.get(part.worker)
        if record is not None and self._fenced(peer, part, record, out):
            return
        if record is None and len(self._registry.workers) >= self._limits.workers:
            self.reject(peer, "full", f"{self._limits.workers} workers are registered", out)
            return
        if part.part == 0 and self.intake.full:
            out.append(Reply(peer, m.Busy(self.epoch, self._boot, 1.0)))
            return
        try:
            raws = self.intake.take(peer, part, now)
        except BadMessage as error:
            self.reject(peer, "claims", str(error), out)
            return
        if record is not None and record.peer == peer:
            record.last_heard = now
        if raws is None:
            return
        if self._older_than_pending(part):
            self.stale += 1
            return
        admitted = admit(raws)
        if admitted.digest != part.digest:
            self.reject(peer, "digest", "the claims do not match their digest", out)
            return
        self._decide(part.worker, _Replay(peer, part, admitted), out)

    def _fenced(
        self, peer: Hashable, part: m.Register, record: WorkerRecord, out: list[Effect]
    ) -> bool:
        """Tell a process that is not the newest of its worker, or a message that is not."""
        mine, theirs = record.incarnation, part.incarnation
        if theirs == mine:
            if (part.pid, part.host_boot) == (record.pid, record.host_boot):
                stale = (part.seq, part.attempt) < (record.seq, record.attempt)
                if stale or (part.attempt == record.attempt and peer != record.peer):
                    self.stale += 1
                    return True
                return False
            reason = f"worker id {part.worker!r} is in use by process {record.pid} already"
        elif theirs < mine:
            reason = f"a newer process ({record.pid}) is worker {part.worker!r} now"
        else:
            return False
        reason = reason[: self._limits.reason]
        out.append(Reply(peer, m.Fenced_(self.epoch, self._boot, reason, mine, theirs == mine)))
        return True

    def _older_than_pending(self, part: m.Register) -> bool:
        """True where verdicts on something newer of the same worker are awaited."""
        pending = self._pending.get(part.worker)
        if not isinstance(pending, _Replay):
            return False
        head = pending.head
        return (part.incarnation, part.seq, part.attempt) < (
            head.incarnation,
            head.seq,
            head.attempt,
        )

    def _decide(self, worker: str, pending: _Replay | _Change, out: list[Effect]) -> None:
        self._forget_pending(worker)
        pending.ticket = next(self._numbers)
        self._pending[worker] = pending
        self._tickets[pending.ticket] = worker
        out.append(Decide(pending.ticket, worker, pending.admitted.claims))

    def _forget_pending(self, worker: str) -> None:
        pending = self._pending.pop(worker, None)
        if pending is not None:
            del self._tickets[pending.ticket]

    def decided(
        self, ticket: int, decisions: tuple[Decision, ...], now: float, out: list[Effect]
    ) -> None:
        """The plugins have spoken. Late verdicts on something older change nothing."""
        worker = self._tickets.pop(ticket, None)
        if worker is None:
            touched = self.reconsidering.decided(ticket, decisions, now, self.pace, out)
            self.touched += touched
            return
        pending = self._pending.pop(worker)
        if len(decisions) != len(pending.admitted.claims):
            no_verdict = Decision(Verdict.REFUSE, "the plugins gave no verdict on it")
            decisions = (no_verdict,) * len(pending.admitted.claims)
        claims = pending.admitted.claims
        decisions = tuple(map(less_permissive, claims, decisions))
        self.tally.decided(decisions)
        for claim, decision in zip(claims, decisions, strict=True):
            self._evidence.decided(now, worker, claim, decision)
            if decision.verdict < Verdict.ROUTES:
                out.append(Emit(ClaimRefused(worker, claim.uid, decision.reason)))
        if isinstance(pending, _Replay):
            self._accept(pending, decisions, now, out)
        else:
            self._apply(pending, decisions, out)
        self.reconsidering.note(worker, claims, decisions, now)

    def _accept(
        self,
        pending: _Replay,
        decisions: tuple[Decision, ...],
        now: float,
        out: list[Effect],
    ) -> None:
        head = pending.head
        old = self._registry.workers.get(head.worker)
        again = old is not None and (old.incarnation, old.attempt) == (
            head.incarnation,
            head.attempt,
        )
        if old is not None and again:
            session = old.session  # the same registration once more: the same answer
        else:
            self._sessions += 1
            session = Session(self.epoch, self._sessions)
        admitted = pending.admitted
        record = WorkerRecord.of(head, pending.peer, session, now)
        for claim, digest, decision in zip(
            admitted.claims, admitted.digests, decisions, strict=True
        ):
            record.hold(claim, digest, decision)
        record.refused = admitted.refused
        if old is not None:
            self._peers.pop(old.peer, None)
            if old.incarnation != head.incarnation and old.peer != pending.peer:
                reason = f"a newer process ({head.pid}) is worker {head.worker!r} now"
                reason = reason[: self._limits.reason]
                fenced = m.Fenced_(self.epoch, self._boot, reason, head.incarnation, True)
                out.append(Reply(old.peer, fenced))
        self._peers[pending.peer] = session
        self.touched += self._registry.swap(record)
        self._liveness.watch(record)
        self.returned.append(head.worker)
        out += welcome(record, head, self.pace, self._limits)
        for uid in dict.fromkeys(key.uid for key in record.claims):
            if self._registry.lowered(uid):
                out += group_judged(self._registry, uid, self.pace, self._limits)
        if not again:
            self.tally.accepted += 1
            count, refused = len(record.claims), len(record.refused)
            self._evidence.registered(record, now)
            out.append(Emit(WorkerRegistered(head.worker, head.incarnation, count, refused)))
            out.extend(
                Emit(ClaimRefused(head.worker, bad.uid, bad.reason)) for bad in record.refused
            )

    # --- what a registered worker says ---

    def known(self, peer: Hashable, session: Session, out: list[Effect]) -> WorkerRecord | None:
        """The record of a session; `Unknown` goes out where there is none."""
        record = self._registry.sessions.get(session)
        if record is None or record.peer != peer:
            self.stale += 1
            out.append(Reply(peer, m.Unknown(self.epoch, self._boot)))
            return None
        return record

    def _hear(self, record: WorkerRecord, now: float) -> bool:
        """Note a sign of life; True if the worker was silent before."""
        record.last_heard = now
        if record.state is WorkerState.ALIVE:
            return False
        self.touched += self._registry.set_state(record, WorkerState.ALIVE)
        self._liveness.heard(record)
        return True

    def heartbeat(
        self, peer: Hashable, beat: m.Heartbeat, now: float, out: list[Effect]
    ) -> WorkerRecord | None:
        """A heartbeat never registers. The record, if the worker was silent before."""
        record = self.known(peer, beat.session, out)
        if record is None:
            return None
        back = self._hear(record, now)
        record.busy_for = beat.busy_for
        if beat.seq == record.seq and beat.digest != record.digest:
            out.append(Reply(peer, m.Resync(record.session, self.epoch, self._boot)))
        out.append(acknowledge(record, beat.beat, self.pace))
        return record if back else None

    def change(
        self, peer: Hashable, change: m.InventoryChange, now: float, out: list[Effect]
    ) -> None:
        """Part of the inventory has changed."""
        record = self.known(peer, change.session, out)
        if record is None:
            return
        self._hear(record, now)
        if change.seq <= record.seq:
            out.append(acknowledge(record, 0, self.pace))
            return
        if record.worker in self._pending:
            return  # it is repeated until it is acknowledged
        admitted = admit(change.claims)
        new = sum(m.Key(c.uid, c.shard) not in record.claims for c in admitted.claims)
        many = len(record.claims) + new > self._limits.claims_per_worker
        if change.base != record.seq or admitted.refused or record.refused or many:
            out.append(Reply(peer, m.Resync(record.session, self.epoch, self._boot)))
            return
        self._decide(record.worker, _Change(peer, change, admitted, record), out)

    def _apply(self, pending: _Change, decisions: tuple[Decision, ...], out: list[Effect]) -> None:
        record, change, admitted = pending.record, pending.head, pending.admitted
        before = verdicts_on(record, admitted.claims)
        changed = zip(admitted.claims, admitted.digests, decisions, strict=True)
        self.touched += self._registry.change(record, changed, change.removed, change.seq)
        if record.digest != change.digest:
            out.append(Reply(record.peer, m.Resync(record.session, self.epoch, self._boot)))
            return
        out += judged(record, before, self.pace, self._limits)
        out.append(acknowledge(record, 0, self.pace))

    def goodbye(self, peer: Hashable, bye: m.Goodbye, now: float, out: list[Effect]) -> None:
        """A worker stops on purpose: it is gone from the view at once."""
        self.intake.forget(peer)
        pending = self._pending.get(bye.worker or "")
        if pending is not None and pending.peer == peer:
            self._forget_pending(bye.worker or "")
        record = self._registry.sessions.get(bye.session)
        if record is None and bye.worker is not None:
            record = self._registry.workers.get(bye.worker)  # it was not told its session yet
        if record is None or record.peer != peer:
            self.stale += 1
            return
        self.remove(record.worker, f"said goodbye: {bye.reason}", now, wanted=True)
        out.append(Emit(WorkerLeft(record.worker, bye.reason)))

    # --- ends ---

    def remove(self, worker: str, why: str, now: float, *, wanted: bool = False) -> None:
        """Forget a registered worker; `why` is told to those who ask."""
        record = self._registry.workers[worker]
        self._evidence.worker(worker, now, "{}", why)
        for key in record.claims:
            self._evidence.note(key.uid, now, "worker {} {}", worker, why)
        self._peers.pop(record.peer, None)
        if isinstance(self._pending.get(worker), _Change):
            self._forget_pending(worker)
        self._liveness.forget(worker)
        self.removed.append(worker)
        self.touched += self._registry.remove(worker, "" if wanted else f"worker {worker} {why}")

    def registered(self, peer: Hashable) -> bool:
        """True where a worker is registered from there."""
        return peer in self._peers

    def peer_gone(self, peer: Hashable) -> WorkerRecord | None:
        """A peer cannot be reached; the record of the worker that it was, if any."""
        self.intake.forget(peer)
        session = self._peers.pop(peer, None)
        return None if session is None else self._registry.sessions.get(session)

    def peers(self) -> list[Hashable]:
        """All registered workers' peers."""
        return [record.peer for record in self._registry.workers.values()]

    def reject(self, peer: Hashable, code: str, reason: str, out: list[Effect]) -> None:
        """Turn a message away, with the reason."""
        reason = reason[: self._limits.reason]
        out.append(Reply(peer, m.Rejected(code, reason, self.epoch, self._boot)))
        out.append(Emit(PeerRejected(code, reason)))
