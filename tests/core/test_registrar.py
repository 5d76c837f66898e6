"""Registration as one transaction, heartbeats that never register, changes, and fences."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from tests.core.desk import Desk, register
from tests.core.driving import FULL, claim
from zrecover.config import LIMITS, Timing
from zrecover.core import inputs as on
from zrecover.core.effects import Decide
from zrecover.core.events import ClaimRefused, PeerRejected, WorkerLeft, WorkerRegistered
from zrecover.ids import Session
from zrecover.model import ReplicaState, Verdict, WorkerState
from zrecover.wire import messages as m
from zrecover.wire.codec import digest_of, encode_claim


def change(
    desk: Desk,
    worker: str,
    *claims: m.Claim,
    removed: tuple[m.Key, ...] = (),
    base: int | None = None,
    seq: int | None = None,
    digest: int | None = None,
) -> m.InventoryChange:
    """A change as the worker would send it: with the digest of what it has then."""
    record = desk.core.registry.workers[worker]
    digests = {key: one for key, one in record.digests.items() if key not in removed}
    for one in claims:
        digests[m.Key(one.uid, one.shard)] = digest_of(encode_claim(one))
    total = 0
    for each in digests.values():
        total ^= each
    return m.InventoryChange(
        session=record.session,
        base=record.seq if base is None else base,
        seq=record.seq + 1 if seq is None else seq,
        digest=total if digest is None else digest,
        claims=tuple(encode_claim(one) for one in claims),
        removed=removed,
    )


# --- registration ---


def test_S01_a_registration_brings_back_what_the_worker_holds() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0"), claim("m-rep2")))
    (accepted,) = desk.to("p", m.Registered)
    assert (accepted.epoch, accepted.boot, accepted.attempt, accepted.seq) == (1000, "me", 1, 1)
    assert accepted.session == desk.session("w")
    assert accepted.verdicts == (), "accepted in full"
    assert [r.uid for r in desk.view.models["m"].replicas if r.routes] == ["m-rep0", "m-rep2"]
    assert desk.told(WorkerRegistered) == [WorkerRegistered("w", 5, 2, 0)]
    desk.sound()


def test_S04_twice_is_once_and_the_answer_is_the_same() -> None:
    desk = Desk()
    (first,) = desk.hear("p", register("w", claim())).to("p", m.Registered)
    view = desk.view.models
    (again,) = desk.hear("p", register("w", claim())).to("p", m.Registered)
    assert again == first
    assert desk.view.models == view
    assert desk.told(WorkerRegistered) == [], "told once"
    desk.sound()


def test_S04_other_workers_are_left_alone() -> None:
    desk = (
        Desk().hear("p", register("w1", claim("m-rep0"))).hear("q", register("w2", claim("n-rep0")))
    )
    desk.hear("p", register("w1", attempt=2))
    assert set(desk.view.models) == {"n"}
    assert set(desk.view.workers) == {"w1", "w2"}
    desk.sound()


def test_S04_an_empty_replay_is_a_true_statement() -> None:
    desk = Desk().hear("p", register("w", claim())).hear("p", register("w", attempt=2))
    assert len(desk.to("p", m.Registered)) == 1
    assert desk.view.models == {}
    assert desk.view.workers["w"].replicas == ()


def test_S16_records_are_replaced_and_those_that_are_gone_are_gone() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0"), claim("m-rep1")))
    desk.hear("p", register("w", claim("m-rep1"), claim("m-rep3"), attempt=2, seq=2))
    assert [r.uid for r in desk.view.models["m"].replicas] == ["m-rep1", "m-rep3"]
    desk.sound()


def test_V01_ids_are_sparse() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep2")))
    assert [(r.index, r.uid) for r in desk.view.models["m"].replicas] == [(2, "m-rep2")]


def test_V05_a_shard_that_comes_back_again_does_not_disturb_the_other() -> None:
    desk = Desk()
    desk.hear("p", register("w0", claim(n_worker=2, shard=0)))
    desk.hear("q", register("w1", claim(n_worker=2, shard=1)))
    assert desk.view.models["m"].ready == 1
    desk.hear("p2", register("w0", claim(n_worker=2, shard=0), attempt=2))
    (replica,) = desk.view.models["m"].replicas
    assert [(s.shard, s.worker) for s in replica.shards] == [(0, "w0"), (1, "w1")]
    assert replica.routes
    desk.sound()


def test_the_old_records_stand_until_the_last_part_is_in_and_decided() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0")))
    new = [claim("m-rep1"), claim("m-rep2")]
    whole = register("w", *new, attempt=2, seq=2)
    parts = [
        msgspec.structs.replace(
            whole, part=number, last=number == 1, claims=(whole.claims[number],)
        )
        for number in range(2)
    ]
    desk.decides = False
    for part in parts:
        desk.hear("p", part)
        assert [r.uid for r in desk.view.models["m"].replicas] == ["m-rep0"]
    desk.decide()
    assert [r.uid for r in desk.view.models["m"].replicas] == ["m-rep1", "m-rep2"]
    desk.sound()


def test_S14_only_the_newest_registration_of_a_worker_is_decided() -> None:
    desk = Desk()
    desk.decides = False
    desk.hear("p", register("w", claim("m-rep0")))
    desk.hear("p", register("w", claim("m-rep1"), attempt=2, seq=2))
    desk.decide(1).decide(0)
    assert [r.uid for r in desk.view.models["m"].replicas] == ["m-rep1"]
    (accepted,) = desk.to("p", m.Registered)
    assert accepted.attempt == 2
    desk.sound()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_V17_an_older_process_never_takes_the_place_of_a_newer_one(order: tuple[int, int]) -> None:
    messages = [
        ("old", register("w", claim("m-rep0"), incarnation=5)),
        ("new", register("w", claim("m-rep1"), incarnation=6)),
    ]
    desk = Desk()
    desk.decides = False
    for number in order:
        desk.hear(*messages[number])
    while desk.undecided:
        desk.decide()
    assert desk.view.workers["w"].incarnation == 6
    desk.sound()


def test_P02_a_bad_claim_is_told_to_the_worker_and_to_whoever_listens() -> None:
    bad = msgspec.Raw(b"\x81\xa3uid\xa5x-rep")
    whole = register("w", claim())
    digest = whole.digest ^ digest_of(bad)
    desk = Desk().hear(
        "p", msgspec.structs.replace(whole, claims=(*whole.claims, bad), digest=digest)
    )
    (accepted,) = desk.to("p", m.Registered)
    (row,) = accepted.verdicts
    assert (row.uid, row.verdict) == ("x-rep", Verdict.REFUSE)
    (refused,) = desk.told(ClaimRefused)
    assert (refused.worker, refused.uid) == ("w", "x-rep")
    assert [skip.uid for skip in desk.view.recovery.skipped] == ["x-rep"]
    assert desk.view.models["m"].ready == 1


def test_S07_S08_verdicts_that_are_less_than_full_are_told_with_their_reasons() -> None:
    claims = [claim("s-rep0", n_worker=2), claim("x-rep0", kind="xavier"), claim("p-rep0")]
    desk = Desk().hear("p", register("w", *claims))
    (accepted,) = desk.to("p", m.Registered)
    assert [(row.uid, row.verdict) for row in accepted.verdicts] == [
        ("s-rep0", Verdict.ROUTES),
        ("x-rep0", Verdict.REFUSE),
    ]
    assert [e.uid for e in desk.told(ClaimRefused)] == ["x-rep0"]
    assert [(s.uid, s.worker) for s in desk.view.recovery.skipped] == [("x-rep0", "w")]


def test_S08_after_a_change_only_the_verdicts_that_it_changed_are_told() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0")))
    desk.hear("p", change(desk, "w", claim("m-rep1"), claim("x-rep0", kind="xavier")))
    (told,) = desk.to("p", m.Verdicts)
    assert (told.session, told.seq) == (desk.session("w"), 2)
    assert [(row.uid, row.verdict) for row in told.verdicts] == [("x-rep0", Verdict.REFUSE)]
    desk.hear("p", change(desk, "w", claim("x-rep0", kind="xavier", state=ReplicaState.LOADING)))
    assert desk.to("p", m.Verdicts) == []
    desk.hear("p", change(desk, "w", claim("x-rep0"), claim("m-rep1")))
    (told,) = desk.to("p", m.Verdicts)
    assert [(row.uid, row.verdict) for row in told.verdicts] == [("x-rep0", Verdict.FULL)]


def test_P03_many_verdicts_are_told_in_messages_that_fit_a_frame() -> None:
    model = "模" * 190
    claims = [claim(f"{model}-rep{n}", kind="型" * 199) for n in range(120)]
    desk = Desk().hear("p", register("w", *claims))
    told = [row for each in desk.to("p", m.Registered) for row in each.verdicts]
    told += [row for each in desk.to("p", m.Verdicts) for row in each.verdicts]
    assert [row.uid for row in told] == [one.uid for one in claims]


def test_a_number_of_verdicts_that_is_wrong_refuses_all_of_them() -> None:
    desk = Desk()
    desk.decides = False
    desk.hear("p", register("w", claim("m-rep0"), claim("m-rep1")))
    (ask,) = desk.undecided
    desk.give(on.Decided(ask.ticket, (FULL,)))
    (accepted,) = desk.to("p", m.Registered)
    assert [row.reason for row in accepted.verdicts] == ["the plugins gave no verdict on it"] * 2
    assert desk.give(on.Decided(ask.ticket, (FULL,))).out == [], "asked once, answered once"


def test_a_digest_that_does_not_fit_its_claims_is_turned_away() -> None:
    desk = Desk().hear("p", register("w", claim(), digest=1))
    (rejected,) = desk.to("p", m.Rejected)
    assert rejected.code == "digest"
    assert desk.view.workers == {}
    assert [e.code for e in desk.told(PeerRejected)] == ["digest"]


@pytest.mark.parametrize(
    ("versions", "agreed"), [((1, 1), True), ((1, 9), True), ((0, 1), True), ((2, 3), False)]
)
def test_P05_versions_are_a_range_and_must_meet(versions: tuple[int, int], agreed: bool) -> None:
    desk = Desk().hear("p", register("w", versions=versions))
    assert bool(desk.to("p", m.Registered)) == agreed
    if agreed:
        assert desk.to("p", m.Registered)[0].version == 1
    else:
        (rejected,) = desk.to("p", m.Rejected)
        assert rejected.reason == (
            "worker w speaks protocol versions 2 to 3, this supervisor 1 to 1"
        )


def test_L16_a_worker_of_another_cluster_is_turned_away() -> None:
    desk = Desk().hear("p", register("w", cluster="dev"))
    (rejected,) = desk.to("p", m.Rejected)
    assert (rejected.code, rejected.reason) == ("cluster", "this is cluster 'prod', not 'dev'")
    assert desk.view.workers == {}


def test_P03_workers_are_bounded_and_so_are_those_that_begin() -> None:
    desk = Desk(limits=replace(LIMITS, workers=1)).hear("p", register("w1"))
    (rejected,) = desk.hear("q", register("w2")).to("q", m.Rejected)
    assert rejected.code == "full"
    assert desk.hear("p", register("w1", attempt=2)).to("p", m.Registered)
    desk = Desk()
    desk.core.registrar.intake._most = 1
    desk.hear("p", register("w1", last=False))
    (busy,) = desk.hear("q", register("w2")).to("q", m.Busy)
    assert busy.retry_after > 0
    desk.tick(11.0)
    assert desk.hear("q", register("w2")).to("q", m.Registered)


def test_P03_more_claims_than_a_worker_may_hold_are_turned_away() -> None:
    desk = Desk(limits=replace(LIMITS, claims_per_worker=1))
    (rejected,) = desk.hear("p", register("w", claim(), claim("m-rep1"))).to("p", m.Rejected)
    assert (rejected.code, rejected.reason) == ("claims", "more than 1 claims")


def test_S14_a_registration_that_stopped_half_way_leaves_nothing() -> None:
    desk = Desk().hear("p", register("w", claim(), last=False))
    assert desk.core.next_deadline is not None
    desk.pass_(11.0)
    assert len(desk.core.registrar.intake) == 0
    assert desk.view.workers == {}
    desk.hear("q", register("w2", last=False)).give(on.PeerGone("q"))
    assert len(desk.core.registrar.intake) == 0


# --- fences ---


def test_L05_a_new_process_replaces_the_old_and_late_news_of_the_old_changes_nothing() -> None:
    desk = Desk().hear("old", register("w", claim("m-rep0"), incarnation=5))
    session = desk.session("w")
    desk.hear("new", register("w", claim("m-rep1"), incarnation=6, pid=8))
    (fenced,) = desk.to("old", m.Fenced_)
    assert (fenced.final, fenced.incarnation) == (True, 6)
    before = desk.view
    desk.hear("old", m.Goodbye(session, "late")).give(on.PeerGone("old"))
    assert desk.told(WorkerLeft) == []
    assert desk.view.workers == before.workers
    assert desk.view.models == before.models
    assert desk.hear("old", m.Heartbeat(session, 9, 1, 0)).to("old", m.Unknown)
    desk.sound()


def test_L06_the_older_of_two_processes_is_told_and_not_registered() -> None:
    desk = Desk().hear("new", register("w", incarnation=6))
    (fenced,) = desk.hear("old", register("w", incarnation=5, pid=8)).to("old", m.Fenced_)
    assert (fenced.incarnation, fenced.final) == (6, False)
    assert desk.view.workers["w"].incarnation == 6


def test_L06_two_processes_of_one_incarnation_the_second_is_refused_for_good() -> None:
    desk = Desk().hear("one", register("w", pid=7))
    (fenced,) = desk.hear("two", register("w", pid=8, attempt=2)).to("two", m.Fenced_)
    assert fenced.final
    assert fenced.reason == "worker id 'w' is in use by process 7 already"
    assert desk.view.workers["w"].pid == 7


def test_P03_a_reason_fits_its_field_however_odd_the_name() -> None:
    odd = "\U000e0001" * 200
    desk = Desk().hear("new", register(odd, incarnation=6)).hear("old", register(odd))
    assert len(desk.to("old", m.Fenced_)) == 1
    desk.hear("newest", register(odd, incarnation=7))
    assert len(desk.to("new", m.Fenced_)) == 1


def test_P06_an_older_snapshot_of_the_same_process_is_dropped_and_counted() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep1"), attempt=2, seq=4))
    stale = desk.core.registrar.stale
    desk.hear("p", register("w", claim("m-rep0"), attempt=1, seq=3))
    desk.hear("q", register("w", claim("m-rep1"), attempt=2, seq=4))
    desk.hear("q", register("w", claim("m-rep1"), attempt=1, seq=4))
    assert desk.core.registrar.stale == stale + 3
    assert [r.uid for r in desk.view.models["m"].replicas] == ["m-rep1"]
    assert desk.out == []


def test_P06_a_replay_that_became_stale_while_it_was_decided_changes_nothing() -> None:
    desk = Desk()
    desk.decides = False
    desk.hear("old", register("w", claim("m-rep0"), incarnation=5, pid=1))
    (ask,) = desk.undecided
    desk.hear("new", register("w", claim("m-rep1"), incarnation=6, pid=2)).decide(1)
    assert desk.give(on.Decided(ask.ticket, (FULL,))).out == []
    assert desk.view.workers["w"].incarnation == 6


# --- heartbeats ---


def test_S13_a_heartbeat_never_registers() -> None:
    desk = Desk().hear("p", m.Heartbeat(Session(1000, 1), 1, 0, 0))
    assert desk.to("p", m.Unknown) == [m.Unknown(1000, "me")]
    assert desk.view.workers == {}
    assert desk.core.registrar.stale == 1


def test_S13_a_session_of_somebody_else_is_unknown_too() -> None:
    desk = Desk().hear("p", register("w"))
    assert desk.hear("q", m.Heartbeat(desk.session("w"), 1, 1, 0)).to("q", m.Unknown)
    assert desk.hear("q", m.Goodbye(desk.session("w"), "bye")).out == []
    assert "w" in desk.view.workers


def test_a_heartbeat_is_acknowledged_with_what_is_known() -> None:
    desk = Desk().hear("p", register("w", claim(), seq=3))
    (ack,) = desk.hear("p", m.Heartbeat(desk.session("w"), 8, 3, 0, 2.5)).to("p", m.Ack)
    assert (ack.beat, ack.seq, ack.interval, ack.timeout) == (8, 3, 0.5, 2.0)
    assert desk.view.workers["w"].busy_for == 2.5


def test_a_digest_that_differs_at_equal_seq_asks_for_everything() -> None:
    desk = Desk().hear("p", register("w", claim(), seq=3))
    session = desk.session("w")
    assert desk.hear("p", m.Heartbeat(session, 1, 3, 12345)).to("p", m.Resync)
    assert not desk.hear("p", m.Heartbeat(session, 2, 4, 12345)).to("p", m.Resync)
    good = desk.core.registry.workers["w"].digest
    assert not desk.hear("p", m.Heartbeat(session, 3, 3, good)).to("p", m.Resync)


def test_the_pace_grows_with_the_cluster() -> None:
    timing = Timing(heartbeat_workers=2, registrations_per_second=4)
    desk = Desk(timing=timing)
    for number in range(4):
        desk.hear(f"p{number}", register(f"w{number}"))
    (accepted,) = desk.hear("p0", register("w0", attempt=2)).to("p0", m.Registered)
    assert (accepted.interval, accepted.timeout, accepted.spread) == (1.0, 4.0, 1.0)
    desk.pass_(3.75, "w1")
    assert desk.view.workers["w0"].state is WorkerState.ALIVE


# --- changes ---


def test_V08_a_change_adds_changes_and_removes() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0"), claim("m-rep1")))
    loading = claim("m-rep2", state=ReplicaState.LOADING)
    message = change(desk, "w", loading, removed=(m.Key("m-rep0", 0), m.Key("m-rep9", 0)))
    (ack,) = desk.hear("p", message).to("p", m.Ack)
    assert ack.seq == 2
    assert [(r.uid, r.state) for r in desk.view.models["m"].replicas] == [
        ("m-rep1", "READY"),
        ("m-rep2", "LOADING"),
    ]
    assert desk.view.recovery.restored == ("m-rep1",), "what came later is not restored"
    desk.sound()
    desk.hear("p", change(desk, "w", claim("m-rep2")))
    assert desk.view.models["m"].ready == 2
    desk.sound()
    desk.hear("p", change(desk, "w", removed=(m.Key("m-rep1", 0),)))
    desk.hear("p", change(desk, "w", claim("m-rep1")))
    assert "m-rep1" not in desk.view.recovery.restored, "it is another one"


def test_S14_a_change_that_is_known_is_acknowledged_again() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0"), seq=5))
    old = change(desk, "w", claim("m-rep1"), base=4, seq=5)
    (ack,) = desk.hear("p", old).to("p", m.Ack)
    assert ack.seq == 5
    assert "m-rep1" not in desk.core.registry.replicas


def test_S14_a_change_that_does_not_continue_asks_for_everything() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0"), seq=5))
    assert desk.hear("p", change(desk, "w", base=7, seq=8)).to("p", m.Resync)
    bad = msgspec.structs.replace(change(desk, "w"), claims=(msgspec.Raw(b"\xc1"),))
    assert desk.hear("p", bad).to("p", m.Resync)
    assert desk.core.registry.workers["w"].seq == 5


def test_S14_a_change_whose_digest_does_not_fit_asks_for_everything() -> None:
    desk = Desk().hear("p", register("w", claim("m-rep0")))
    desk.hear("p", change(desk, "w", claim("m-rep1"), digest=1))
    assert desk.to("p", m.Resync)
    assert not desk.to("p", m.Ack)
    desk.sound()


def test_P03_a_worker_cannot_grow_by_changes_beyond_what_it_may_hold() -> None:
    desk = Desk(limits=replace(LIMITS, claims_per_worker=2))
    desk.hear("p", register("w", claim("m-rep0")))
    assert desk.hear("p", change(desk, "w", claim("m-rep1"))).to("p", m.Ack)
    assert desk.hear("p", change(desk, "w", claim("m-rep2"))).to("p", m.Resync)
    assert desk.hear("p", change(desk, "w", claim("m-rep1", version="2"))).to("p", m.Ack)
    assert len(desk.core.registry.workers["w"].claims) == 2


def test_S14_one_change_is_decided_at_a_time() -> None:
    desk = Desk().hear("p", register("w"))
    desk.decides = False
    first = change(desk, "w", claim("m-rep0"))
    desk.hear("p", first, first, change(desk, "w", claim("m-rep0"), claim("m-rep1"), seq=3))
    assert len(desk.undecided) == 1
    desk.decide()
    assert set(desk.core.registry.replicas) == {"m-rep0"}
    desk.sound()


def test_P06_a_change_of_a_session_that_ended_while_it_was_decided_changes_nothing() -> None:
    desk = Desk().hear("p", register("w"))
    desk.decides = False
    desk.hear("p", change(desk, "w", claim("m-rep0")))
    (ask,) = desk.undecided
    desk.hear("p", m.Goodbye(desk.session("w"), "bye"))
    desk.sound()
    assert desk.give(on.Decided(ask.ticket, (FULL,))).out == []
    assert desk.view.models == {}
    desk.sound()


def test_L04_a_worker_that_is_lost_while_its_return_is_decided_is_back() -> None:
    desk = Desk().hear("p", register("w", claim()))
    desk.pass_(15.0)
    desk.decides = False
    desk.hear("q", register("w", claim(), attempt=2))
    desk.pass_(2.0)
    assert desk.view.workers == {}, "the old connection was silent for too long"
    desk.decide()
    assert [r.uid for r in desk.view.models["m"].replicas] == ["m-rep0"]
    desk.sound()


def test_P06_a_registration_takes_the_place_of_a_change_under_way() -> None:
    desk = Desk().hear("p", register("w"))
    desk.decides = False
    desk.hear("p", change(desk, "w", claim("m-rep0")))
    desk.hear("p", register("w", claim("m-rep1"), attempt=2, seq=3))
    assert [isinstance(ask, Decide) for ask in desk.undecided] == [True, True]
    desk.decide(0).decide(0)
    assert set(desk.core.registry.replicas) == {"m-rep1"}
    desk.sound()


# --- ends ---


def test_L14_a_goodbye_is_gone_from_the_view_at_once() -> None:
    desk = Desk().hear("p", register("w", claim())).hear("q", register("v"))
    desk.hear("p", m.Goodbye(desk.session("w"), "asked to stop"))
    assert desk.told(WorkerLeft) == [WorkerLeft("w", "asked to stop")]
    assert (set(desk.view.workers), desk.view.models) == ({"v"}, {})
    desk.sound()


def test_L14_a_goodbye_ends_a_registration_that_is_under_way() -> None:
    desk = Desk()
    desk.decides = False
    desk.hear("p", register("w", claim()))
    (ask,) = desk.undecided
    desk.hear("q", m.Goodbye(Session(0, 0), "not mine", "w", 5))
    desk.sound()
    assert desk.core.registrar._pending, "only its own peer ends it"
    desk.hear("p", m.Goodbye(Session(0, 0), "bye", "w", 5))
    assert desk.give(on.Decided(ask.ticket, (FULL,))).out == []
    assert desk.view.workers == {}
    desk.sound()


def test_L14_a_worker_that_was_not_told_its_session_yet_may_leave_too() -> None:
    desk = Desk().hear("p", register("w", claim()))
    desk.hear("q", m.Goodbye(Session(0, 0), "not mine", "w", 5))
    assert list(desk.view.workers) == ["w"]
    desk.hear("p", m.Goodbye(Session(0, 0), "bye", "w", 5))
    assert desk.told(WorkerLeft) == [WorkerLeft("w", "bye")]
    assert desk.view.workers == {}
    desk.sound()


def test_a_new_epoch_ends_all_sessions_and_all_that_is_under_way() -> None:
    desk = Desk().hear("p", register("w", claim()))
    old = desk.session("w")
    desk.decides = False
    desk.hear("q", register("v"), register("u", last=False))
    (ask,) = desk.undecided
    desk.lead(2000)
    assert (desk.view.workers, desk.view.models, desk.core.epoch) == ({}, {}, 2000)
    assert desk.give(on.Decided(ask.ticket, ())).out == []
    assert desk.hear("p", m.Heartbeat(old, 1, 1, 0)).to("p", m.Unknown) == [m.Unknown(2000, "me")]
    desk.undecided.clear()
    desk.hear("p", register("w", attempt=2, epoch=2000)).decide()
    assert desk.session("w") == Session(2000, 1)
    desk.sound()


def test_a_registration_does_not_span_two_reigns() -> None:
    whole = register("w", claim("m-rep0"), claim("m-rep1"))
    first, second = (
        msgspec.structs.replace(whole, part=part, last=bool(part), claims=(whole.claims[part],))
        for part in (0, 1)
    )
    desk = Desk().hear("p", first).lead(2000).hear("p", second)
    assert desk.view.workers == {} and desk.out == []
    assert desk.hear("p", first, second).session("w").epoch == 2000


def test_a_session_is_not_given_twice_even_where_an_epoch_comes_back() -> None:
    desk = Desk().hear("p", register("w"))
    before = desk.session("w")
    desk.discovery(m.Standby("prod", "me", "other", 1000)).lead(1000)
    assert desk.hear("q", register("v")).session("v") > before


def test_L18_a_part_over_another_connection_is_no_sign_of_life_of_this_one() -> None:
    desk = Desk(expect=1).hear("p", register("w", claim()))
    desk.pass_(1.5)
    desk.hear("q", register("w", claim(), incarnation=6, pid=8, last=False))
    desk.pass_(1.0)
    assert desk.view.workers["w"].state is WorkerState.SUSPECT


def test_P03_strangers_that_come_and_go_leave_nothing_behind() -> None:
    desk = Desk()
    for number in range(300):
        peer = f"p{number}"
        desk.hear(
            peer, register("w", claim(f"m-rep{number % 7}"), incarnation=number + 1, pid=number)
        )
        if number % 3 == 0:
            desk.give(on.PeerGone(peer))
        if number % 5 == 0:
            desk.hear(peer, m.Goodbye(desk.session("w"), "bye"))
    registrar, registry = desk.core.registrar, desk.core.registry
    assert len(registrar._peers) <= 1
    assert (len(registrar._pending), len(registrar._tickets)) == (0, 0)
    assert len(registry._claims) == len(registry.replicas) <= 1
    assert len(registry.sessions) <= 1
    desk.sound()
