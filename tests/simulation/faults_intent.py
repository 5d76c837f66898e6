"""Deliberate faults in what must not be forgotten: tombstones, rosters, orders, the journal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import msgspec

from tests.simulation.faults import FAULTS, Patch, fault
from zrecover.core import inputs as on
from zrecover.core.deleting import Deleting
from zrecover.core.effects import Effect, Obey
from zrecover.core.intent import Intent, Orphans, _unwanted
from zrecover.core.memory import Kept, Memory, Tombstone
from zrecover.core.recovery import Recovery
from zrecover.core.steward import Steward
from zrecover.core.view import Confidence
from zrecover.core.witnesses import Remembered, Testimonies
from zrecover.core.worker import WorkerCore
from zrecover.ids import RosterVersion
from zrecover.wire import messages as m

__all__ = ["FAULTS"]


# --- orders ---


@fault("obeys-its-session-only", scenario="an_old_order_comes_late")
def an_old_order_is_obeyed() -> Patch:
    original = WorkerCore.handle

    def handle(self: WorkerCore, input: object, now: float) -> Any:
        if isinstance(input, on.Received) and isinstance(input.message, m.Order) and self.session:
            number, epoch, boot = self.link.number, self.link.epoch, self.link.boot
            order = input.message
            order = msgspec.structs.replace(order, session=self.session, epoch=epoch, boot=boot)
            input = on.Received(number, order)
        return original(self, input, now)

    return patch.object(WorkerCore, "handle", handle)


@fault("only-what-was-meant", scenario="an_order_comes_when_its_replica_was_served_anew")
def an_order_means_whatever_is_held() -> Patch:
    def ordered(self: WorkerCore, order: m.Order, out: list[Effect]) -> None:
        self._orders[order.id] = order.session
        out.append(Obey(order.id, order.action, order.uid, order.shard, order.reason))

    return patch.object(WorkerCore, "_ordered", ordered)


def recovering(*, orders: bool = False, roster: bool = False) -> Patch:
    """A steward that does these also while it recovers."""
    original = Steward.run

    def run(self: Steward, now: float, *, serving: bool, out: list[Effect]) -> None:
        original(self, now, serving=serving, out=out)
        if not serving and orders:
            out += self.orders.give(self._epoch, now)
        if not serving and roster:
            self._hand_roster(now, out)

    return patch.object(Steward, "run", run)


@fault("orders-while-serving")
def orders_are_given_while_recovering() -> Patch:
    return recovering(orders=True)


@fault("only-the-unwanted")
def a_later_launch_has_lost_too() -> Patch:
    def lost(self: Intent, candidates: Any, view: Any) -> Any:
        claims = {(c.worker, c.claim.shard): c for c in candidates}
        return [
            _unwanted(claims[c.worker, c.shard], "stop", c.reason)
            for c in view.conflicts
            if c.rule == "duplicate" and self.losers.value == "stop"
        ]

    return patch.object(Intent, "_lost", lost)


@fault("only-the-unwanted")
def orphans_are_stopped_whatever_the_policy() -> Patch:
    original = Intent.unwanted

    def unwanted(self: Intent, *about: Any) -> Any:
        policy, self.orphans = self.orphans, Orphans.STOP
        try:
            return original(self, *about)
        finally:
            self.orphans = policy

    return patch.object(Intent, "unwanted", unwanted)


# --- rosters ---


@fault("no-partial-roster")
def a_partial_roster_is_handed_out() -> Patch:
    return recovering(roster=True)


@fault("seen-all-whom-it-names", scenario="an_older_roster_is_testified_last")
def an_older_roster_overrides_a_newer_one() -> Patch:
    def testified(self: Recovery, version: RosterVersion, workers: tuple[str, ...]) -> None:
        if self._source is not Confidence.JOURNAL and self.confidence is None and workers:
            self._source, self._version = Confidence.ROSTER, version
            self._expected = dict.fromkeys(workers)

    return patch.object(Recovery, "testified", testified)


@fault("complete-on-evidence", "seen-all-whom-it-names")
def the_roster_outweighs_the_journal() -> Patch:
    original = Recovery.testified

    def testified(self: Recovery, version: RosterVersion, workers: tuple[str, ...]) -> None:
        if workers and self.confidence is None:
            self._source = None
        original(self, version, workers)

    return patch.object(Recovery, "testified", testified)


# --- tombstones ---


@fault("witnesses-keep", "confirmed-is-kept")
def workers_keep_no_tombstones() -> Patch:
    original = Remembered.keep

    def keep(self: Remembered, witness: m.Witness) -> bool:
        return original(self, msgspec.structs.replace(witness, tombstones=()))

    return patch.object(Remembered, "keep", keep)


@fault("witnesses-testify")
def workers_do_not_say_what_is_deleted() -> Patch:
    original = Remembered.testimony

    def testimony(self: Remembered, cluster: str, epoch: int) -> list[m.Testimony]:
        said = original(self, cluster, epoch)
        return [msgspec.structs.replace(part, tombstones=()) for part in said]

    return patch.object(Remembered, "testimony", testimony)


@fault("view-of-the-records", "converges")
def what_is_testified_deleted_comes_back() -> Patch:
    original = Testimonies.of

    def of(self: Testimonies, peer: Any) -> Any:
        version, names, _ = original(self, peer)
        return version, names, []

    return patch.object(Testimonies, "of", of)


@fault("confirmed-is-kept")
def deletes_are_confirmed_too_early() -> Patch:
    def check(self: Deleting, *, serving: bool) -> Any:
        return self._end(list(self._open), "workers keep it")

    return patch.object(Deleting, "check", check)


@fault("confirmed-is-kept")
def one_worker_is_enough_while_recovering() -> Patch:
    original = Deleting.check

    def check(self: Deleting, *, serving: bool) -> Any:
        return original(self, serving=True)

    return patch.object(Deleting, "check", check)


@fault("view-of-the-records")
def tombstones_forget_the_order_of_launches() -> Patch:
    return patch.object(Tombstone, "covers", lambda self, launch, created_ts: True)


@fault("view-of-the-records")
def tombstones_cover_by_time_alone() -> Patch:
    def covers(self: Tombstone, launch: Any, created_ts: int) -> bool:
        return created_ts <= self.created_ts

    return patch.object(Tombstone, "covers", covers)


# --- the journal ---


def forgetting(kind: Kept) -> Patch:
    """A steward that does not journal changes of one kind."""
    original = Steward._remember

    def remember(self: Steward, changes: Any, out: Any) -> Any:
        return original(self, [change for change in changes if change.kind is not kind], out)

    return patch.object(Steward, "_remember", remember)


@fault("converges")
def who_has_left_is_not_journaled() -> Patch:
    return forgetting(Kept.LEFT)


@fault("converges")
def what_is_placed_is_not_journaled() -> Patch:
    return forgetting(Kept.PLACED)


@fault("view-of-the-records")
@contextmanager
def what_was_placed_is_not_recalled() -> Iterator[None]:
    original = Steward.recalled

    def recalled(self: Steward, memory: Memory, out: Any) -> Any:
        return original(self, replace(memory, placements=()), out)

    with patch.object(Steward, "recalled", recalled):
        yield
