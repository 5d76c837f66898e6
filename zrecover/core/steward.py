"""What should exist, and who is expected: the part of a supervisor that must not forget.

It keeps placements and tombstones, gives orders, hands the roster to witnesses, and has the
journal remember. What it recalls and what returning workers testify comes together here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import count, islice

from zrecover.core.deleting import Deleting
from zrecover.core.effects import Confirm, Effect, Recall, Remember, Settle
from zrecover.core.evidence import Evidence
from zrecover.core.memory import Change, Kept, Memory, Placement, Tombstone
from zrecover.core.orders import Orders
from zrecover.core.recovery import Recovery
from zrecover.core.registrar import Registrar
from zrecover.core.registry import Registry
from zrecover.core.view import ReplicaView
from zrecover.core.witnesses import Testimonies, Witnesses
from zrecover.errors import InvalidReplica
from zrecover.ids import Launch, check_name, format_uid, parse_uid
from zrecover.model import MAX_SHARDS
from zrecover.wire import messages as m

__all__ = ["Steward"]

_ROSTER_EVERY = 1.0
"""Changes of the roster are handed out together, at most this often, in seconds."""
_RECENT = 500
"""So many of the last tombstones are handed to each worker that registers."""
_MOST = 10_000
"""Replicas that one placement may ask for."""


class Steward:
    """Parts of one supervisor. `out` of each method collects the effects, in order."""

    def __init__(
        self,
        boot: str,
        registry: Registry,
        registrar: Registrar,
        recovery: Recovery,
        evidence: Evidence,
        *,
        journal: bool,
        wall: Callable[[], int],
    ) -> None:
        self.orders = Orders(boot, registry)
        self.witnesses = Witnesses(boot, registry)
        self.testimonies = Testimonies()
        self.deleting = Deleting(registry)
        self._registry, self._registrar = registry, registrar
        self._recovery, self._evidence = recovery, evidence
        self._journal, self.wall = journal, wall
        self.recalling = False
        """True until the journal has said what it kept."""
        self._placing: dict[int, Hashable] = {}
        """Who waits until a placement is on disk, by the ticket of the journal."""
        self._tickets = count(1)
        self._launches = count(1)
        self._epoch = 0
        self._known: dict[str, None] = {}
        self._roster_at: float | None = None
        self._roster_due = False

    @property
    def next_deadline(self) -> float | None:
        """When the roster is handed out, or an order given again."""
        times = (self._roster_at, self.orders.next_deadline)
        return min((t for t in times if t is not None), default=None)

    # --- the reign ---

    def begin(self, epoch: int, out: list[Effect]) -> None:
        """A reign begins: nothing is known until it is recalled or testified."""
        self.end(out)
        self._epoch = epoch
        self.witnesses.clear(epoch)
        self._launches = count(1)
        if self._journal:
            self.recalling = True
            out.append(Recall(epoch))
            self._remember([Change(Kept.EPOCH, epoch)], out)

    def end(self, out: list[Effect]) -> None:
        """The reign ends."""
        self.recalling = False
        out += self.deleting.clear()
        out += [Confirm(t, False, "the supervisor leads no more") for t in self._placing.values()]
        self._placing.clear()
        self.orders.clear()
        self._known.clear()
        self._roster_at, self._roster_due = None, False

    def recalled(self, memory: Memory, out: list[Effect]) -> None:
        """What the journal has kept."""
        self.recalling = False
        self._registrar.touched += self._registry.place(memory.placements)
        self._registrar.touched += self._registry.bury(memory.tombstones)[1]
        if self._recovery.confidence is not None:  # too late to expect anybody
            there = self._registry.workers
            gone = [n for n in memory.workers if n not in there and not self._recovery.has_left(n)]
            self._remember([Change(Kept.LEFT, name) for name in gone], out)
        self._recovery.recalled(memory.workers)

    def run(self, now: float, *, serving: bool, out: list[Effect]) -> None:
        """Take in who has come and gone, and do what is due."""
        for worker in self._registrar.returned:
            self._returned(worker, out)
        for worker in self._registrar.removed:
            self._removed(worker, out)
        self._registrar.removed.clear()
        if serving:
            out += self.orders.give(self._epoch, now)
            self._hand_roster(now, out)
        out += self.deleting.check(serving=serving)

    def completed(self, missing: tuple[str, ...], out: list[Effect]) -> None:
        """The recovery is complete; who is missing is expected no longer."""
        self._remember([Change(Kept.LEFT, worker) for worker in missing], out)
        self._roster_due = True
        if self._journal:
            out.append(Settle())

    # --- workers ---

    def testify(self, peer: Hashable, testimony: m.Testimony, out: list[Effect]) -> None:
        """A worker that is about to register, or has just done so, says what it keeps."""
        self.testimonies.take(peer, testimony)
        if self._registrar.registered(peer):
            self._heed(peer, out)

    def kept(self, worker: str, kept: m.Kept) -> None:
        """A worker keeps what it was handed."""
        self.deleting.kept(worker, kept.version)

    def order_done(self, answer: m.OrderDone, now: float) -> None:
        """What became of an order; answers to older ones are ignored."""
        about = self.orders.done(answer.session, answer)
        if about is not None:
            worker, key = about
            result = "has obeyed the order" if answer.done else f"cannot obey: {answer.reason}"
            self._evidence.note(key.uid, now, "worker {} {}", worker, result)

    def _returned(self, worker: str, out: list[Effect]) -> None:
        record = self._registry.workers.get(worker)
        if record is None:
            return
        self._heed(record.peer, out)
        if worker not in self._known:
            # Said also of whom the journal named: a leader of before that had not heard of its
            # end may have written since that the worker has left.
            self._known[worker] = None
            self._remember([Change(Kept.JOINED, worker)], out)
            self._roster_due = True
        self.witnesses.forget(worker)
        self.deleting.returned(worker)  # its process may be another one: it keeps nothing yet
        recent = list(self._registry.intent.tombstones.values())[-_RECENT:]
        if recent:
            self.witnesses.bump()
            self.deleting.handed(self.witnesses.version, recent)
            out += self.witnesses.hand(record, self._epoch, recent)

    def _heed(self, peer: Hashable, out: list[Effect]) -> None:
        """What a registered worker has testified counts."""
        if peer not in self.testimonies:  # nearly always
            return
        version, names, stones = self.testimonies.of(peer)
        self._recovery.testified(version, names)
        news, touched = self._registry.bury(stones)
        self._registrar.touched += touched
        self._remember([Change(Kept.DELETED, stone) for stone in news], out)

    def forget(self, worker: str, out: list[Effect]) -> bool:
        """A worker that is expected, and not back, is expected no longer; False if it is not."""
        if self._recovery.confidence is not None or worker not in self._recovery.missing:
            return False
        self._recovery.left(worker)
        self._remember([Change(Kept.LEFT, worker)], out)
        return True

    def _removed(self, worker: str, out: list[Effect]) -> None:
        self.witnesses.forget(worker)
        self.deleting.forget(worker)
        self._recovery.left(worker)
        self._known.pop(worker, None)
        self._remember([Change(Kept.LEFT, worker)], out)
        self._roster_due = True

    def _hand_roster(self, now: float, out: list[Effect]) -> None:
        if self._roster_due and self._roster_at is None:
            self._roster_at = now + _ROSTER_EVERY
        if self._roster_at is not None and self._roster_at <= now:
            self._roster_at, self._roster_due = None, False
            self.witnesses.bump()
            out += self.witnesses.roster(self._epoch)

    # --- what should exist ---

    def place(
        self,
        model: str,
        replicas: int,
        n_worker: int,
        out: list[Effect],
        *,
        ticket: Hashable = None,
    ) -> tuple[Placement, ...]:
        """Ask for replicas of a model. Raises InvalidReplica for what cannot be placed.

        With a journal `Confirm(ticket)` follows, if there is a ticket, once it has answered.
        """
        bounds = (("replicas", replicas, _MOST), ("n_worker", n_worker, MAX_SHARDS))
        for what, value, most in bounds:
            if type(value) is not int or not 1 <= value <= most:
                raise InvalidReplica(
                    f"{what} must be a whole number from 1 to {most}, not {value!r}"
                )
        taken = {parse_uid(uid)[1] for uid in self._uids_of(model)}
        free = (index for index in count() if index not in taken)
        uids = [format_uid(model, index) for index in islice(free, replicas)]
        try:
            check_name("model", model)
            check_name("replica uid", uids[-1])  # the longest: no client could read its route
        except ValueError as error:
            raise InvalidReplica(str(error)) from None
        placements = [Placement(uid, model, self._launch(), n_worker) for uid in uids]
        self._registrar.touched += self._registry.place(placements)
        changes = [Change(Kept.PLACED, placement) for placement in placements]
        remembering = self._remember(changes, out)
        if remembering is not None and ticket is not None:
            self._placing[remembering] = ticket
        return tuple(placements)

    def remembered(self, ticket: int, done: bool) -> list[Effect]:
        """The journal has answered."""
        out = self.deleting.remembered(ticket, done)
        placed = self._placing.pop(ticket, None)
        if placed is not None:
            out.append(Confirm(placed, done, "it is on disk" if done else "it cannot be written"))
        return out

    def delete(self, uid: str, ticket: Hashable, out: list[Effect]) -> str:
        """Delete a replica; `Confirm(ticket)` follows. Why it cannot be, empty if it can."""
        intent = self._registry.intent
        candidates = self._registry.claimed(uid)
        placement = intent.placements.get(uid)
        known = [(c.claim.launch, c.claim.created_ts) for c in candidates]
        known += [] if placement is None else [(placement.launch, 0)]
        away = self._registry.downs.away(uid)
        known += [] if away is None else [away[:2]]
        stone = intent.tombstones.get(uid)
        if known:
            # Until now: a shard, or a copy, of which nobody has told yet is deleted with the rest.
            created = max(self.wall(), *(created for _, created in known))
            stone = Tombstone(uid, max(launch for launch, _ in known), created)
        if stone is None:
            return f"no replica {uid!r} is known"
        self._registrar.touched += self._registry.bury([stone])[1]
        stone = intent.tombstones[uid]
        changes = [Change(Kept.DELETED, stone)]  # also where it is no news: is it on disk?
        if placement is not None:
            changes.append(Change(Kept.UNPLACED, uid))
        remembering = self._remember(changes, out)
        self.witnesses.bump()
        self.deleting.begin(ticket, uid, remembering, () if away is None else away.workers)
        self.deleting.handed(self.witnesses.version, [stone])
        out += self.witnesses.tombstones(self._epoch, [stone])
        return ""

    def stop(self, uid: str) -> str:
        """Have a replica stopped, once this supervisor serves. Why not, empty if it will be."""
        if not self._registry.claimed(uid):
            return f"no worker holds {uid!r}"
        self._registrar.touched += self._registry.stop(uid)
        return ""

    def _launch(self) -> Launch:
        return Launch(self._epoch, next(self._launches))

    def _uids_of(self, model: str) -> list[str]:
        replicas = self._registry.replicas.values()
        placements = self._registry.intent.placements.values()
        known: list[ReplicaView | Placement] = [*replicas, *placements]
        return [one.uid for one in known if one.model == model]

    def _remember(self, changes: list[Change], out: list[Effect]) -> int | None:
        if not self._journal or not changes:
            return None
        ticket = next(self._tickets)
        out.append(Remember(ticket, tuple(changes)))
        return ticket
