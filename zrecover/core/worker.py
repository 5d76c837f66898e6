"""A worker: it keeps its inventory known to whoever leads, and is never stopped by a loss.

One registration at a time. If the inventory changes while one is under way, the change
follows at once, until the supervisor has the last version. A lost link takes the session,
everything cached about that supervisor and nothing else with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from zrecover.config import LIMITS, Limits
from zrecover.core.effects import Effect, Emit, Obey, Send
from zrecover.core.events import ClaimJudged, WorkerFenced
from zrecover.core.inputs import (
    Declared,
    LoopSeen,
    Obeyed,
    Offered,
    Received,
    Reported,
    StateChanged,
    Stop,
    Tick,
    Withdrawn,
)
from zrecover.core.inventory import Inventory, parts_of
from zrecover.core.link import LinkCore, pace
from zrecover.core.link_states import LinkState
from zrecover.core.offering import Offering
from zrecover.core.reports import Reports
from zrecover.core.tally import WorkerTally
from zrecover.core.witnesses import Remembered
from zrecover.ids import NO_SESSION
from zrecover.model import Verdict
from zrecover.wire import messages as m
from zrecover.wire.versions import SUPPORTED

if TYPE_CHECKING:
    from random import Random

    from zrecover.config import Timing
    from zrecover.ids import Session

__all__ = ["WorkerCore", "WorkerIdentity"]


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """Who the worker is; `incarnation` is wall-clock ms at the start of its process."""

    worker: str
    incarnation: int
    pid: int
    host_boot: str
    address: str
    """Where it answers requests."""


class WorkerCore:
    """Inputs: those of LinkCore, Received, Declared, StateChanged, Withdrawn, LoopSeen, Stop.

    With `offers`, the plugins are asked before each registration (`Offer`, `Offered`).

    `Declared` raises InvalidReplica for a claim that cannot be put on the wire.
    """

    def __init__(
        self,
        identity: WorkerIdentity,
        endpoints: tuple[str, ...],
        cluster: str,
        timing: Timing,
        rng: Random,
        *,
        limits: Limits = LIMITS,
        give_up_after: float | None = None,
        offers: bool = False,
    ) -> None:
        self.identity = identity
        self.inventory = Inventory(limits)
        self.reports = Reports(limits)
        self.link = LinkCore(endpoints, cluster, timing, rng, give_up_after=give_up_after)
        self.session: Session | None = None
        self.verdicts: dict[tuple[str, int], m.VerdictRow] = {}
        """What the supervisor did not accept in full, with the reason."""
        self.fenced = ""
        """Why this process must stop for good; empty while it need not."""
        self.acked = -1
        """Version of the inventory that the supervisor has; -1 if none."""
        self.dropped = 0
        """Messages that were stale and changed nothing."""
        self.tally = WorkerTally()
        self._cluster, self._timing, self._rng, self._limits = cluster, timing, rng, limits
        self._offering = Offering(self.inventory, timing.hook, plugins=offers)
        self.remembered = Remembered()
        """What it keeps as a witness, for whoever leads next."""
        self._orders: dict[int, Session] = {}
        self._ever = False
        self._attempt = self._beat = 0
        self._sent_change: int | None = None
        self._interval = timing.heartbeat
        self._next_beat: float | None = None
        self._busy_for = 0.0

    @property
    def registered(self) -> bool:
        """True while a supervisor holds a session of ours."""
        return self.link.state is LinkState.OPEN

    @property
    def settled(self) -> bool:
        """True while the supervisor has the newest inventory."""
        return self.registered and self.acked == self.inventory.seq

    @property
    def next_deadline(self) -> float | None:
        """When `Tick` is due at the latest."""
        times = (self.link.next_deadline, self._next_beat, self.reports.next_deadline)
        return min((t for t in times if t is not None), default=None)

    def handle(self, input: object, now: float) -> list[Effect]:
        """Take one input; return what is to be done, in order."""
        number, openings = self.link.number, self.link.openings
        out: list[Effect] = []
        match input:
            case Declared(claim, unanswered):
                self.inventory.put(self._begun(claim))
                self._offering.again.note(m.Key(claim.uid, claim.shard), unanswered, now)
                self._change(now, out)
            case StateChanged(uid, shard, state):
                self.inventory.set_state(m.Key(uid, shard), state)
                self._change(now, out)
            case Withdrawn(uid, shard):
                self.inventory.remove(m.Key(uid, shard))
                self._offering.again.forget(m.Key(uid, shard))
                self.verdicts.pop((uid, shard), None)
                if self.link.state not in (LinkState.OPENING, LinkState.OPEN):
                    self.inventory.settle(self.inventory.seq)  # the next replay has it all
                self._change(now, out)
            case Offered():
                self._offered(input, now, out)
            case Obeyed(id, done, reason):
                self._obeyed(id, done, reason, out)
            case Reported(entry):
                self.reports.take(entry, now)
            case LoopSeen(busy_for):
                self._busy_for = busy_for
            case Stop(reason):
                if self.link.state in (LinkState.OPENING, LinkState.OPEN):
                    out += self.reports.due(number, now, last=True)
                    out.append(Send(number, self._goodbye(reason)))
                out += self.link.end(reason, now, linger=0.5)
            case Received(link, message):
                if link == number:
                    self._received(message, now, out)
                else:
                    self.dropped += 1
            case _:
                out += self.link.handle(input, now)
                if isinstance(input, Tick):
                    self._tick(now, out)
        self._follow(openings, out)
        if self.registered:
            self._offering.ask_again(now, out)
        out += self.reports.due(self.link.number, now)
        self.tally.take(out)
        return out

    def _begun(self, claim: m.Claim) -> m.Claim:
        """The claim with a time after the delete of an earlier replica of that name.

        For one that nobody placed time alone tells them apart, and the supervisor's clock may be
        ahead of ours. What is held already stays the one that it is.
        """
        held = self.inventory.get(m.Key(claim.uid, claim.shard))
        if held is None:
            created = self.remembered.after(claim)
        else:
            created = max(claim.created_ts, held.created_ts)
        return msgspec.structs.replace(claim, created_ts=created)

    def _goodbye(self, reason: str) -> m.Goodbye:
        return m.Goodbye(
            session=self.session or NO_SESSION,
            reason=reason[: self._limits.reason],
            worker=self.identity.worker,
            incarnation=self.identity.incarnation,
        )

    # --- the link has moved ---

    def _follow(self, openings: int, out: list[Effect]) -> None:
        if self.link.state is not LinkState.OPEN:
            self.session, self._next_beat, self._sent_change = None, None, None
            self._orders.clear()
            self.reports.end()
            self.acked = -1
        if self.link.openings != openings and not self._offering.begin(out):
            self._register(out)

    def _offered(self, said: Offered, now: float, out: list[Effect]) -> None:
        """The plugins have said what may be offered: register with that, or tell the change."""
        unanswered, told = dict(said.unanswered), self.registered
        if not self._offering.take(said.ticket, said.claims, unanswered, now, told=told):
            return
        if self.link.state is LinkState.OPENING:
            self.link.speaks(now)
            self._register(out)
        else:
            self._change(now, out)

    def _register(self, out: list[Effect]) -> None:
        self._attempt += 1
        who = self.identity
        for testimony in self.remembered.testimony(self._cluster, self.link.highest):
            out.append(Send(self.link.number, testimony))
        parts = parts_of(self.inventory.raws(), self._limits)
        for number, claims in enumerate(parts):
            message = m.Register(
                cluster=self._cluster,
                worker=who.worker,
                incarnation=who.incarnation,
                pid=who.pid,
                host_boot=who.host_boot,
                epoch=self.link.highest,
                versions=SUPPORTED,
                address=who.address,
                attempt=self._attempt,
                seq=self.inventory.seq,
                digest=self.inventory.digest,
                part=number,
                last=number == len(parts) - 1,
                claims=claims,
            )
            out.append(Send(self.link.number, message))

    # --- the supervisor has spoken ---

    def _received(self, message: m.Message, now: float, out: list[Effect]) -> None:
        if isinstance(message, m.Rejected | m.Busy):
            out += self.link.turned_away(message, now)
            return
        if not isinstance(message, m.ToWorker):
            self.dropped += 1
            return
        obey, effects = self.link.heard(message.boot or "", message.epoch, now)
        out += effects
        if not obey:
            self.dropped += 1
            return
        self.tally.heard_at = now
        match message:
            case m.Registered():
                self._registered(message, now, out)
            case m.Verdicts(session=session) if session == self.session:
                self._judged(message.verdicts, out)
            case m.Ack():
                self._acked(message, now, out)
            case m.Resync(session=session) if session == self.session:
                out += self.link.reopen(now)
            case m.Unknown():
                out += self.link.reopen(now)
            case m.Witness(session=session) if session == self.session:
                if self.remembered.keep(message):
                    out.append(Send(self.link.number, m.Kept(session, message.version)))
            case m.Order(session=session) if session == self.session:
                if message.epoch == self.link.epoch:
                    self._ordered(message, out)
                else:
                    self.dropped += 1
            case m.Restarting(eta=eta):
                out += self.link.drop(f"the supervisor stops, back in about {eta:g} s", now)
            case m.Fenced_():
                self._fence(message, now, out)
            case _:
                self.dropped += 1

    def _registered(self, message: m.Registered, now: float, out: list[Effect]) -> None:
        if message.attempt != self._attempt or self.link.state is not LinkState.OPENING:
            self.dropped += 1
            return
        self.session, self.acked, self._ever = message.session, message.seq, True
        self._interval = pace(message.interval)
        self._next_beat = now + self._interval * self._rng.random()
        out += self.link.opened(message.epoch, now, timeout=message.timeout, spread=message.spread)
        self.verdicts.clear()  # each registration tells its own
        self._judged(message.verdicts, out)
        self.inventory.settle(message.seq)
        self.reports.begin(message.session)
        self._change(now, out)

    def _judged(self, rows: m.VerdictRows, out: list[Effect]) -> None:
        """Keep what is less than FULL, and tell what is new."""
        for row in rows:
            key = (row.uid, row.shard)
            before = self.verdicts.pop(key, None)
            if row.verdict is not Verdict.FULL:
                self.verdicts[key] = row
            elif before is None:
                continue
            if row != before:
                worker, verdict = self.identity.worker, row.verdict.name
                judged = ClaimJudged(worker, row.uid, row.shard, verdict, row.reason, row.plugin)
                out.append(Emit(judged))

    def _acked(self, message: m.Ack, now: float, out: list[Effect]) -> None:
        if message.session != self.session:
            self.dropped += 1
            if self.link.epoch < message.epoch:
                out += self.link.reopen(now)
            return
        self._interval = pace(message.interval)
        self.link.paced(message.timeout, now)
        if self._next_beat is not None and self._next_beat > now + 1.1 * self._interval:
            self._next_beat = now + self._interval * self._rng.random()  # it was planned slower
        self.reports.acked(message.beat, message.reports)
        if message.seq > self.acked:
            self.acked = min(message.seq, self.inventory.seq)
            self.inventory.settle(self.acked)
        if self._sent_change is not None and self._sent_change <= self.acked:
            self._sent_change = None
        self._change(now, out)

    def _ordered(self, order: m.Order, out: list[Effect]) -> None:
        """Obey an order of this session and epoch, if what it means is still held."""
        claim = self.inventory.get(m.Key(order.uid, order.shard))
        if claim is None or (claim.launch, claim.created_ts) != (order.launch, order.created_ts):
            why = "it is held no longer"
            out.append(Send(self.link.number, m.OrderDone(order.session, order.id, True, why)))
        elif order.id not in self._orders:
            self._orders[order.id] = order.session
            out.append(Obey(order.id, order.action, order.uid, order.shard, order.reason))

    def _obeyed(self, id: int, done: bool, reason: str, out: list[Effect]) -> None:
        """Say what became of an order, if the one who gave it still leads."""
        session = self._orders.pop(id, None)
        if session is not None and session == self.session:
            why = reason[: self._limits.reason]
            out.append(Send(self.link.number, m.OrderDone(session, id, done, why)))

    def _fence(self, message: m.Fenced_, now: float, out: list[Effect]) -> None:
        if not message.final and not self._ever:
            # Our clock stepped back: this process is the newer one all the same.
            who = self.identity
            self.identity = WorkerIdentity(
                who.worker, message.incarnation + 1, who.pid, who.host_boot, who.address
            )
            out += self.link.put_off(self._timing.backoff_min, message.reason, now)
            return
        self.fenced = message.reason
        out.append(Emit(WorkerFenced(self.identity.worker, message.reason)))
        out += self.link.end(message.reason, now)

    # --- what the worker says unasked ---

    def _change(self, now: float, out: list[Effect]) -> None:
        """Send what the supervisor lacks, one change at a time."""
        if self.session is None or self._sent_change is not None:
            return
        if self.acked == self.inventory.seq:
            return
        changed, removed = self.inventory.since(self.acked)
        limit = self._limits
        few = len(parts_of(changed, limit)) == 1 and len(removed) <= limit.claims_per_part
        if not few:
            out += self.link.reopen(now)
            return
        self._sent_change = self.inventory.seq
        message = m.InventoryChange(
            session=self.session,
            base=self.acked,
            seq=self.inventory.seq,
            digest=self.inventory.digest,
            claims=tuple(changed),
            removed=tuple(removed),
        )
        out.append(Send(self.link.number, message))

    def _tick(self, now: float, out: list[Effect]) -> None:
        if self._next_beat is None or self._next_beat > now or self.session is None:
            return
        self._beat += 1
        self._next_beat = now + self._interval * (0.9 + 0.2 * self._rng.random())
        self._sent_change = None  # an unanswered change is sent again with this beat
        message = m.Heartbeat(
            session=self.session,
            beat=self._beat,
            seq=self.inventory.seq,
            digest=self.inventory.digest,
            busy_for=self._busy_for,
        )
        out.append(Send(self.link.number, message))
        self.reports.beat(self._beat)
        self._change(now, out)
