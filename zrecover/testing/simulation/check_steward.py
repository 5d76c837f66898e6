"""What always holds of what a supervisor must not forget, and of what it orders.

- Only a serving supervisor gives orders, hands out rosters, and calls its routes complete; a
  roster names everybody.
- An order is of the session and epoch of its worker, and stops or drains nothing but what is
  deleted, unwanted, or has lost.
- Every delete is answered, at the end of the reign at the latest.
- A delete is confirmed when it is on disk or two workers keep it (all, if fewer are there).
- A recovery ends by its window, or when all whom the strongest evidence names have been seen.
- What was recalled or testified counts: tombstones, and placements that are not deleted.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zrecover.core.effects import Confirm, Effect, Emit, Reply
from zrecover.core.events import RecoveryCompleted, WorkerRegistered
from zrecover.core.inputs import FromPeer, Recalled
from zrecover.core.memory import Placement, Tombstone
from zrecover.core.view import Confidence, SupervisorState
from zrecover.ids import RosterVersion
from zrecover.testing.simulation.truth import Held, Judgement
from zrecover.testing.simulation.violations import Violation
from zrecover.testing.simulation.wanted import covers, keeps
from zrecover.wire import messages as m

if TYPE_CHECKING:
    from zrecover.config import Timing
    from zrecover.core.registry import WorkerRecord
    from zrecover.testing.simulation.ledger import Ledger
    from zrecover.testing.simulation.processes import SupervisorProcess

__all__ = ["StewardCheck", "Wish"]

SLACK = 0.005


@dataclass(slots=True)
class Wish:
    """What somebody asks of a supervisor, as its input: place, delete or stop."""

    action: str
    what: str
    ticket: int = 0
    placed: tuple[Placement, ...] = ()
    error: str = ""
    stone: Tombstone | None = None

    def __str__(self) -> str:
        return f"{self.action} {self.what}"


class StewardCheck:
    """Watches the steward of one supervisor process; keeps what it wants beside it."""

    def __init__(
        self,
        process: SupervisorProcess,
        ledger: Ledger,
        timing: Timing,
        judgement: Judgement,
    ) -> None:
        self._process, self._ledger, self._timing = process, ledger, timing
        self._judgement = judgement
        self._deletes: dict[int, Tombstone] = {}
        self._unanswered: dict[int, None] = {}
        self._begin(0.0)
        self._state = process.core.state

    def _begin(self, now: float) -> None:
        self._began = now
        self._process.wanted.clear()
        self._said: dict[Hashable, list[m.Testimony]] = {}
        self._seen: dict[str, None] = {}
        self._recalled: tuple[str, ...] = ()
        self._roster: tuple[RosterVersion, tuple[str, ...]] = RosterVersion(0, 0), ()
        self._ended = False

    def before(self, input: object) -> None:
        """An input is about to be handled."""
        self._state = self._process.core.state
        if isinstance(input, Wish) and input.action == "delete":
            input.stone = self._stone(input.what)

    def after(self, input: object, effects: list[Effect], now: float, *, new_reign: bool) -> None:
        """It was."""
        state = self._process.core.state
        if new_reign and state not in (SupervisorState.SUPERSEDED, SupervisorState.STOPPED):
            self._begin(now)  # where it is final, it keeps what it knew
        if self._process.core.leading:
            self._hear(input)
            self._testified()
        for effect in effects:
            match effect:
                case Emit(WorkerRegistered(worker=worker)):
                    self._seen[worker] = None
                case Emit(RecoveryCompleted(confidence=confidence)):
                    self._complete(Confidence(confidence), now)
                case Reply(_, m.Order() as order):
                    self._ordered(order)
                case Reply(_, m.RouteTable(complete=True) | m.RouteChange(complete=True)):
                    if state is not SupervisorState.SERVING:
                        text = f"{self._process.boot} is {state}, and calls its routes complete"
                        raise Violation("complete-when-serving", text)
                case Reply(_, m.Witness(roster=True) as witness):
                    self._handed(witness)
                case Confirm(int(ticket), done, how):
                    self._unanswered.pop(ticket, None)
                    if done:
                        self._confirmed(self._deletes[ticket], how)
                case _:
                    pass
        if new_reign and self._unanswered:
            text = f"the reign of {self._process.boot} ends, and {[*self._unanswered]}"
            raise Violation("deletes-are-answered", f"{text} are deletes without an answer")
        wanted = self._process.wanted
        if wanted.stopping:
            held = {key.uid for record in self._records for key in record.claims}
            wanted.stopping = {uid: None for uid in wanted.stopping if uid in held}

    @property
    def _records(self) -> list[WorkerRecord]:
        return list(self._process.core.registry.workers.values())

    # --- what it is told ---

    def _hear(self, input: object) -> None:
        wanted = self._process.wanted
        match input:
            case Recalled(memory):
                wanted.place(memory.placements)
                wanted.bury(memory.tombstones)
                if memory.workers and not self._ended:
                    self._recalled = memory.workers
            case FromPeer(peer, m.Testimony() as said):
                self._said.setdefault(peer, []).append(said)
            case Wish(action="place", placed=placed):
                wanted.place(placed)
            case Wish(action="stop", error="", what=uid):
                wanted.stopping[uid] = None
            case Wish(action="delete", error="", stone=Tombstone() as stone):
                wanted.bury([stone])
                self._deletes[input.ticket] = stone
                self._unanswered[input.ticket] = None
            case _:
                pass

    def _testified(self) -> None:
        """What peers have said counts as soon as they are registered."""
        if not self._said:
            return
        for peer in [record.peer for record in self._records if record.peer in self._said]:
            for said in self._said.pop(peer):
                stones = [Tombstone(s.uid, s.launch, s.created_ts) for s in said.tombstones]
                self._process.wanted.bury(stones)
                if said.workers and said.version > self._roster[0] and not self._ended:
                    self._roster = said.version, said.workers

    def _stone(self, uid: str) -> Tombstone | None:
        """What a delete of now covers."""
        claims = [c for r in self._records for k, c in r.claims.items() if k.uid == uid]
        placed = self._process.wanted.placed.get(uid)
        away = self._process.core.registry.downs.away(uid)
        known = [(claim.launch, claim.created_ts) for claim in claims]
        known += ([(placed.launch, 0)] if placed else []) + ([away[:2]] if away else [])
        if known:
            created = max(self._process.core.steward.wall(), *(at for _, at in known))
            return Tombstone(uid, max(launch for launch, _ in known), created)
        return max(self._process.wanted.stones.get(uid, []), default=None)

    # --- what it does ---

    def _complete(self, confidence: Confidence, now: float) -> None:
        core, boot = self._process.core, self._process.boot
        self._ended = True
        took = now - self._began
        if confidence is Confidence.WINDOW:
            if took < self._timing.recovery_window - SLACK:
                raise Violation("complete-on-evidence", f"by its window after {took:.2f} s")
            return
        if core.steward.recalling:
            text = f"{boot} is complete by {confidence}, and has not read its journal"
            raise Violation("complete-on-evidence", text)
        if confidence is Confidence.COUNT:
            wanted = core.recovery.expect_workers
            if wanted is None or len(self._seen) < wanted:
                text = f"by {len(self._seen)} of {wanted} workers"
                raise Violation("complete-on-evidence", text)
            if self._recalled or self._roster[1]:
                text = f"{boot} counts, and knows who is expected"
                raise Violation("complete-on-evidence", text)
            return
        named = self._recalled if confidence is Confidence.JOURNAL else self._roster[1]
        if not named or (confidence is Confidence.ROSTER and self._recalled):
            text = f"{boot} is complete by {confidence} after {took:.2f} s: there is none"
            raise Violation("complete-on-evidence", text)
        missing = [w for w in named if w not in self._seen]
        if missing:
            text = f"{boot} is complete by {confidence}, which names {', '.join(missing)} too"
            raise Violation("seen-all-whom-it-names", text)

    def _handed(self, witness: m.Witness) -> None:
        boot = self._process.boot
        if self._state is not SupervisorState.SERVING:
            text = f"{boot} is {self._state}, and hands out the roster {witness.workers}"
            raise Violation("no-partial-roster", text)
        whole = witness.part == 0 and witness.last
        if whole and sorted(witness.workers) != sorted(self._process.core.registry.workers):
            raise Violation("no-partial-roster", f"{boot} hands out {witness.workers} only")

    def _ordered(self, order: m.Order) -> None:
        core, wanted, boot = self._process.core, self._process.wanted, self._process.boot
        what = f"{boot} orders to {order.action} {order.uid}/{order.shard}"
        if self._state is not SupervisorState.SERVING:
            raise Violation("orders-while-serving", f"{what} while it is {self._state}")
        record = core.registry.sessions.get(order.session)
        if record is None or order.epoch != core.epoch or order.session.epoch != core.epoch:
            raise Violation("orders-in-session", f"{what} in session {order.session}")
        claim = record.claims.get(m.Key(order.uid, order.shard))
        if claim is None:
            raise Violation("only-the-unwanted", f"{what}, which {record.worker} does not hold")
        held = [
            Held(r.worker, r.incarnation, r.address, c)
            for r in self._records
            for c in r.claims.values()
        ]
        mine = [one for one in held if one.claim.uid == order.uid]
        truth = wanted.expected(mine, self._judgement)
        if not wanted.why(claim, order.action, truth, self._judgement):
            text = f"{what} of {record.worker}, launch {claim.launch}, for no reason"
            raise Violation("only-the-unwanted", text)
        life = claim.launch, claim.created_ts
        self._ledger.orders[boot, order.session, order.id] = life

    def _confirmed(self, stone: Tombstone, how: str) -> None:
        boot, journal = self._process.boot, self._process.journal
        if how == "it is on disk":
            kept = () if journal is None else journal.disk.memory.tombstones
            if not any(s.uid == stone.uid and _beyond(s, stone) for s in kept):
                text = f"{boot} says that the delete of {stone.uid} is on disk: it is not"
                raise Violation("confirmed-is-kept", text)
            return
        keepers = []
        for record in self._records:
            process = self._ledger.process_of(record.worker, record.incarnation, record.pid)
            if process is not None and keeps(process.core.remembered, stone):
                keepers.append(record.worker)
        there = len(self._records)
        fewer = self._state is SupervisorState.SERVING and there and len(keepers) == there
        if len(keepers) < 2 and not fewer:
            text = f"{boot} confirms the delete of {stone.uid}, which {keepers} of {there} keep"
            raise Violation("confirmed-is-kept", text)


def _beyond(kept: Tombstone, stone: Tombstone) -> bool:
    return covers(kept, stone.launch, stone.created_ts)
