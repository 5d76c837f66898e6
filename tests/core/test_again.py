"""What plugins have not answered in time is asked again; it locks no replica out for ever (H01)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from tests.core.desk import Desk, register
from tests.core.driving import FULL, claim
from tests.core.test_rebuilding import Bench as Groups
from tests.core.test_worker import Bench as Worker
from zrecover.config import Timing
from zrecover.core import inputs as on
from zrecover.core.again import Again
from zrecover.core.effects import Decide, Offer, Rebuild
from zrecover.core.events import ClaimRefused
from zrecover.core.view import ReplicaStatus, SupervisorState
from zrecover.model import Decision, ReplicaState, Unanswered, Verdict
from zrecover.wire import messages as m
from zrecover.wire.codec import decode_claim

HOOK = Timing().hook
HUNG = Unanswered(Verdict.REFUSE, "it did not answer in time", "slow")
STILL = Unanswered(Verdict.REFUSE, "it did not answer in time lately", "slow")
NEXT = Unanswered(Verdict.HOLD, "it is asked next", "slow", soon=True)
ROUTES = Decision(Verdict.ROUTES, "no more than that", "slow")


# --- when ---


def test_what_is_owed_is_asked_for_ever_more_rarely() -> None:
    again = Again[str](1.0)
    again.note("a", HUNG, 0.0)
    asked = []
    for second in range(200):
        if again.due(float(second)):
            asked.append(second)
            again.note("a", STILL, float(second))
    assert asked == [6, 18, 42, 90, 138, 186]
    again.note("a", FULL, 200.0)
    assert (len(again), again.due(1000.0)) == (0, [])


def test_one_plugin_is_asked_for_all_that_it_owes_and_no_other_with_it() -> None:
    again = Again[str](1.0)
    again.note("a", HUNG, 0.0)
    again.note("c", Unanswered(Verdict.REFUSE, "it did not answer", "other"), 3.0)
    again.note("b", HUNG, 5.0)
    assert again.due(5.9) == []
    assert again.due(6.0) == ["a", "b"]
    again.forget("a")
    again.forget("nobody")
    assert again.due(9.0) == ["c"]
    assert again.due(18.0) == ["b"]
    again.clear()
    assert len(again) == 0


def test_H01_what_a_plugin_hung_on_is_asked_for_last() -> None:
    again = Again[str](1.0)
    again.note("a", replace(HUNG, hung=True), 0.0)
    for key in "bcd":
        again.note(key, HUNG, 0.0)
    assert again.due(6.0) == ["b", "c", "d", "a"]
    again.note("c", replace(HUNG, hung=True), 6.0)
    again.note("d", HUNG, 6.0)
    again.note("a", HUNG, 6.0)
    again.note("b", FULL, 6.0)
    assert again.due(20.0) == ["a", "d", "c"]


def test_what_was_not_even_asked_is_asked_at_once_and_once() -> None:
    again = Again[str](1.0)
    again.note("a", NEXT, 0.0)
    assert (again.soon, again.due(0.0), again.due(0.0)) == (True, ["a"], [])
    assert again.soon, "it is under way"
    again.note("a", HUNG, 0.0)
    assert (again.soon, len(again)) == (False, 1)


# --- the supervisor's side ---


def told(desk: Desk, *claims: m.Claim, decisions: Sequence[Decision]) -> Desk:
    """A worker registers with `claims`, and this is decided."""
    desk.decides = False
    desk.hear("w", register("w", *claims))
    return answer(desk, *decisions)


def answer(desk: Desk, *decisions: Decision) -> Desk:
    ask = desk.undecided.pop(0)
    assert len(ask.claims) == len(decisions)
    return desk.give(on.Decided(ask.ticket, decisions))


def until_asked(desk: Desk) -> Decide:
    for _ in range(400):
        desk.tick(0.25).beat("w")
        if desk.undecided:
            return desk.undecided[0]
    raise AssertionError("it is not asked again")


def test_H01_a_claim_that_was_not_decided_in_time_is_decided_later() -> None:
    desk = told(Desk(), claim("a-rep0"), claim("b-rep0"), decisions=(HUNG, FULL))
    assert desk.view.models["a"].replicas[0].state is ReplicaStatus.REFUSED
    began = desk.now
    assert [one.uid for one in until_asked(desk).claims] == ["a-rep0"]
    assert desk.now - began >= 6 * HOOK
    answer(desk, ROUTES)
    replica = desk.sound().view.models["a"].replicas[0]
    assert (replica.routes, replica.reason, replica.plugin) == (True, ROUTES.reason, "slow")
    (told_it,) = desk.to("w", m.Verdicts)
    assert [(row.uid, row.verdict) for row in told_it.verdicts] == [("a-rep0", Verdict.ROUTES)]
    assert not desk.pass_(60.0, "w").undecided


def test_H01_one_that_hangs_again_is_no_news() -> None:
    desk = told(Desk(), claim("a-rep0"), decisions=(HUNG,))
    seen, notes = desk.view.models, len(desk.core.evidence.of("a-rep0"))
    for _ in range(3):
        until_asked(desk)
        answer(desk, STILL)
        assert desk.told(ClaimRefused) == []
        assert desk.to("w", m.Verdicts) == []
    assert desk.sound().view.models == seen
    assert len(desk.core.evidence.of("a-rep0")) == notes


def test_H01_one_that_refuses_at_last_says_why_it_does() -> None:
    desk = told(Desk(), claim("a-rep0"), decisions=(HUNG,))
    until_asked(desk)
    answer(desk, Decision(Verdict.REFUSE, "its disk is gone", "slow"))
    assert [event.reason for event in desk.told(ClaimRefused)] == ["its disk is gone"]
    assert [row.reason for row in desk.view.recovery.skipped] == ["its disk is gone"]


def test_H01_slow_ones_are_asked_piece_by_piece_and_the_recovery_waits_for_them() -> None:
    claims = [claim(f"m-rep{n}") for n in range(3)]
    desk = told(Desk(expect=1), *claims, decisions=(FULL, NEXT, NEXT))
    assert desk.view.state is SupervisorState.RECOVERING
    answer(desk, FULL, NEXT)
    assert desk.view.state is SupervisorState.RECOVERING
    answer(desk, FULL)
    assert desk.sound().view.state is SupervisorState.SERVING
    assert desk.view.models["m"].ready == 3


def test_H05_what_the_worker_refuses_need_not_be_asked_again() -> None:
    refused = claim("a-rep0", verdict=Verdict.REFUSE, reason="not from here", plugin="mine")
    desk = told(Desk(), refused, decisions=(HUNG,))
    assert not desk.pass_(60.0, "w").undecided


def test_a_late_answer_on_a_claim_that_has_changed_counts_for_nothing() -> None:
    desk = told(Desk(), claim("a-rep0"), claim("b-rep0"), decisions=(HUNG, HUNG))
    until_asked(desk)
    again = desk.undecided.pop(0)
    desk.decides = True
    record = desk.core.registry.workers["w"]
    other = claim("a-rep0", state=ReplicaState.LOADING)
    (raw,) = register("w", other).claims
    digest = register("w", other, claim("b-rep0")).digest
    desk.hear("w", m.InventoryChange(record.session, 1, 2, digest, (raw,), ()))
    desk.give(on.Decided(again.ticket, (ROUTES, FULL)))
    models = desk.sound().view.models
    assert models["a"].replicas[0].verdict is Verdict.FULL
    assert models["b"].replicas[0].routes


def test_a_late_answer_on_a_worker_that_is_gone_counts_for_nothing() -> None:
    desk = told(Desk(), claim("a-rep0"), decisions=(HUNG,))
    until_asked(desk)
    again = desk.undecided.pop(0)
    desk.hear("w", m.Goodbye(desk.session("w"), "bye"))
    assert desk.give(on.Decided(again.ticket, (FULL,))).out == []
    assert desk.view.models == {}
    assert not desk.pass_(60.0).undecided, "and nobody asks for it again"


# --- groups ---


def test_H01_a_group_that_was_not_rebuilt_in_time_is_rebuilt_later() -> None:
    groups = Groups().shard(0).shard(1).rebuilt(HUNG)
    assert (groups.replica.state, groups.replica.reason) == (ReplicaStatus.REFUSED, HUNG.reason)
    for times in (2, 3):
        asked_again(groups)
        assert len(groups.asked) == times
        assert groups.replica.reason == HUNG.reason, "until it answers"
        if times == 2:
            groups.rebuilt(STILL)
    groups.rebuilt(state={"ranks": [0, 1]})
    assert groups.replica.routes
    assert groups.replica.coordination == {"ranks": [0, 1]}
    told_it = groups.desk.to("w1", m.Verdicts)
    assert [row.verdict for one in told_it for row in one.verdicts] == [Verdict.REBUILD]
    groups.desk.sound()


def test_a_group_that_is_incomplete_by_then_is_not_asked_for() -> None:
    groups = Groups().shard(0).shard(1).rebuilt(HUNG)
    asked_again(groups)
    groups.desk.hear("w0", m.Goodbye(groups.desk.session("w0"), "bye"))
    groups.desk.hear("w1", m.Goodbye(groups.desk.session("w1"), "bye"))
    groups.rebuilt(state={"old": True})
    assert groups.desk.sound().view.models == {}
    for _ in range(400):
        groups.input(on.Tick())
        groups.desk.now += 0.25
    assert len(groups.asked) == 2


def test_a_group_that_changes_meanwhile_is_asked_for_as_it_is() -> None:
    groups = Groups().shard(0).shard(1).rebuilt(HUNG)
    groups.shard(1, version="2", attempt=2)
    assert len(groups.asked) == 2
    for _ in range(40):
        groups.input(on.Tick())
        groups.desk.now += 0.25
    assert len(groups.asked) == 2, "it is being asked already"
    groups.rebuilt(state={"new": True})
    assert groups.replica.coordination == {"new": True}


def asked_again(groups: Groups) -> None:
    before = len(groups.asked)
    for _ in range(400):
        groups.desk.now += 0.25
        groups.input(on.Tick())
        for worker in ("w0", "w1"):
            groups.desk.beat(worker)
        if len(groups.asked) > before:
            return
    raise AssertionError("it is not asked again")


def test_a_group_is_forgotten_with_its_reign() -> None:
    groups = Groups().shard(0).shard(1).rebuilt(HUNG)
    groups.desk.lead(2000)
    groups.desk.pass_(60.0)
    assert not [one for one in groups.desk.out if isinstance(one, Rebuild)]


# --- the worker's side ---


def registered(*owed: tuple[str, Unanswered], uids: Sequence[str] = ("m-rep0",)) -> Worker:
    """A worker whose plugins owe an answer, and which is registered all the same."""
    bench = Worker(offers=True)
    for uid in uids:
        bench.give(on.Declared(claim(uid)))
    bench.give(on.Start()).connect()
    offered(bench, *owed)
    return bench.hear(bench.registered())


def offered(bench: Worker, *owed: tuple[str, Unanswered]) -> Worker:
    """The answer to the question that was asked last: FULL, but for what is owed."""
    (offer,) = [effect for effect in bench.out if isinstance(effect, Offer)]
    said = dict(owed)
    claims = tuple(
        msgspec.structs.replace(one, verdict=hung.verdict, reason=hung.reason, plugin=hung.plugin)
        if (hung := said.get(one.uid)) is not None
        else msgspec.structs.replace(one, verdict=Verdict.FULL, reason="", captured=b"\x81\x01\x01")
        for one in offer.claims
    )
    keys = tuple((m.Key(uid, 0), hung) for uid, hung in owed)
    return bench.give(on.Offered(offer.ticket, claims, keys))


def to_the_next_question(bench: Worker) -> Offer:
    for _ in range(400):
        bench.hear(bench.ack(bench.core.inventory.seq), 0.25)
        if not any(isinstance(effect, Offer) for effect in bench.out):
            bench.to_the_next_beat()
        for effect in bench.out:
            if isinstance(effect, Offer):
                return effect
    raise AssertionError("it is not asked again")


def test_H01_a_replica_that_was_not_offered_in_time_is_offered_later() -> None:
    bench = registered(("m-rep0", HUNG), uids=("m-rep0", "m-rep1"))
    began = bench.now
    assert [one.uid for one in to_the_next_question(bench).claims] == ["m-rep0"]
    assert bench.now - began >= 6 * HOOK
    assert offered(bench, ("m-rep0", STILL)).said(m.InventoryChange) == [], "that is no news"
    to_the_next_question(bench)
    (change,) = offered(bench).said(m.InventoryChange)
    (now,) = map(decode_claim, change.claims)
    assert (now.uid, now.verdict, now.captured) == ("m-rep0", Verdict.FULL, b"\x81\x01\x01")


def test_H01_what_was_not_asked_before_registering_is_asked_after_it() -> None:
    bench = registered(("m-rep1", NEXT), uids=("m-rep0", "m-rep1"))
    (offer,) = [effect for effect in bench.out if isinstance(effect, Offer)]
    assert [one.uid for one in offer.claims] == ["m-rep1"]
    assert offer.claims[0].verdict is Verdict.FULL, "what was said last time stands"
    (change,) = offered(bench).said(m.InventoryChange)
    assert len(change.claims) == 1


def test_H01_one_that_was_declared_without_an_answer_is_asked_for_again() -> None:
    bench = registered()
    bench.give(on.Declared(claim("n-rep0"), HUNG))
    assert [one.uid for one in to_the_next_question(bench).claims] == ["n-rep0"]
    out = bench.out
    bench.give(on.Withdrawn("n-rep0", 0))
    bench.out = out
    assert offered(bench).core.inventory.get(m.Key("n-rep0", 0)) is None


def test_what_is_held_no_longer_is_not_asked_for() -> None:
    bench = registered(("m-rep0", HUNG))
    bench.give(on.Withdrawn("m-rep0", 0))
    for _ in range(100):
        bench.hear(bench.ack(bench.core.inventory.seq), 0.25).to_the_next_beat()
        assert not any(isinstance(effect, Offer) for effect in bench.out)


def test_an_answer_on_a_replica_that_was_served_anew_meanwhile_counts_for_nothing() -> None:
    bench = registered(("m-rep0", HUNG))
    to_the_next_question(bench)
    out = bench.out
    bench.give(on.Withdrawn("m-rep0", 0))
    bench.give(on.Declared(claim("m-rep0", created_ts=7, verdict=Verdict.HOLD, reason="not now")))
    bench.out = out
    held = offered(bench).core.inventory.get(m.Key("m-rep0", 0))
    assert held is not None
    assert (held.verdict, held.captured) == (Verdict.HOLD, b"")


def test_the_supervisor_has_its_time_however_long_the_plugins_took() -> None:
    bench = Worker(offers=True).give(on.Declared(claim())).give(on.Start()).connect()
    (offer,) = [effect for effect in bench.out if isinstance(effect, Offer)]
    bench.give(on.Offered(offer.ticket, offer.claims), Timing().register - 0.5)
    assert bench.said(m.Register)
    bench.give(on.Tick(), Timing().register - 0.5)
    assert bench.hear(bench.registered()).core.registered
