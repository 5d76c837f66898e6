"""What should exist: deletes, orders and placements, and whoever must not forget them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.core.desk import Desk, register
from tests.core.driving import CLUSTER, claim
from tests.core.steered import SERVING, Cluster
from zrecover.core import inputs as on
from zrecover.core.effects import Confirm, Effect, Remember, Reply
from zrecover.core.intent import Intent, Losers, Orphans
from zrecover.core.memory import Placement, Tombstone
from zrecover.core.view import ReplicaStatus
from zrecover.errors import InvalidReplica
from zrecover.ids import NO_LAUNCH, Launch, Session
from zrecover.model import ReplicaState
from zrecover.wire import messages as m

# --- deletes ---


def test_V19_a_confirmed_delete_does_not_come_back() -> None:
    cluster = Cluster(3)
    assert cluster.delete("m-rep1") == ""
    assert cluster.uids(cluster.first) == ["m-rep0", "m-rep2"], "hidden at once"
    cluster.world.until(lambda: bool(cluster.world.confirmed), within=1.0)
    assert cluster.world.confirmed[0].done
    second = cluster.again()
    cluster.world.run(30.0)
    assert cluster.uids(second) == ["m-rep0", "m-rep2"]


def test_V19_it_does_not_come_back_from_the_worker_that_was_frozen() -> None:
    cluster = Cluster(3)
    cluster.world.freeze("w1")
    cluster.delete("m-rep1")
    cluster.world.until(lambda: bool(cluster.world.confirmed), within=1.0)
    cluster.world.kill("a")
    second = cluster.world.supervisor("b")
    cluster.world.run(1.0)
    cluster.world.wake("w1")
    cluster.settle(second)
    cluster.world.run(5.0)
    assert "m-rep1" not in cluster.uids(second)
    assert ("w1", "stop", "m-rep1") in cluster.world.orders, "V06: and its worker is told to stop"
    assert len(cluster.workers[1].inventory) == 0


def test_a_delete_is_not_confirmed_by_one_of_three_workers() -> None:
    cluster = Cluster(3)
    for name in ("w1", "w2"):
        cluster.world.freeze(name)
    cluster.delete("m-rep1")
    cluster.world.run(3.0)
    assert cluster.world.confirmed == []
    cluster.world.wake("w2")
    cluster.world.run(5.0)
    assert [c.done for c in cluster.world.confirmed] == [True]


def test_a_delete_on_disk_is_confirmed_without_any_worker() -> None:
    cluster = Cluster(2, journal=True)
    for name in ("w0", "w1"):
        cluster.world.freeze(name)
    cluster.delete("m-rep0")
    cluster.world.run(0.5)
    assert [c.how for c in cluster.world.confirmed] == ["it is on disk"]
    assert [stone.uid for stone in cluster.world.disk.tombstones] == ["m-rep0"]


def test_a_disk_that_fails_leaves_it_to_the_workers() -> None:
    cluster = Cluster(2, journal=True)
    cluster.world.disk_works = False
    cluster.delete("m-rep0")
    cluster.world.run(0.5)
    assert [c.how for c in cluster.world.confirmed] == ["workers keep it"]


def test_a_delete_that_nobody_keeps_is_not_confirmed() -> None:
    cluster = Cluster(1)
    (placed,) = cluster.place("x")
    cluster.world.freeze("w0")
    cluster.world.run(20.0)
    assert cluster.first.registry.workers == {}
    assert cluster.delete("x-rep0") == ""
    cluster.world.run(5.0)
    assert cluster.world.confirmed == []
    cluster.world.give("w0", on.Declared(claim("x-rep0", launch=placed.launch, created_ts=9999)))
    cluster.world.wake("w0")
    cluster.world.run(5.0)
    assert [confirm.how for confirm in cluster.world.confirmed] == ["workers keep it"]
    assert cluster.uids(cluster.first) == ["m-rep0"], "although it was loaded after the delete"
    assert cluster.world.orders == [("w0", "stop", "x-rep0")]


def test_while_it_recovers_one_worker_is_not_all() -> None:
    cluster = Cluster(3)
    for name in ("w0", "w2"):
        cluster.world.freeze(name)
    cluster.world.kill("a")
    second = cluster.world.supervisor("b", expect=3)
    cluster.world.run(2.0)
    assert second.state is not SERVING
    assert cluster.delete("m-rep1", second) == ""
    cluster.world.run(2.0)
    assert cluster.world.confirmed == [], "w1 keeps it, and is the only one that is back"
    cluster.world.wake("w2")
    cluster.settle(second)
    assert [confirm.how for confirm in cluster.world.confirmed] == ["workers keep it"]


def test_a_worker_that_keeps_a_later_roster_need_not_keep_the_tombstone() -> None:
    cluster = Cluster(3)
    cluster.world.lose = lambda to, message: (
        to in ("w0", "w2") and isinstance(message, m.Witness) and bool(message.tombstones)
    )
    cluster.delete("m-rep1")
    cluster.world.give("w2", on.Stop("done"))
    cluster.world.run(3.0)
    assert cluster.workers[0].remembered.workers == ("w0", "w1")
    assert cluster.world.confirmed == [], "the roster was kept, the tombstone was lost"
    cluster.world.lose = lambda to, message: False
    cluster.world.give("w0", on.LinkDown(cluster.workers[0].link.number, "gone"))
    cluster.world.run(2.0)
    assert [confirm.how for confirm in cluster.world.confirmed] == ["workers keep it"]


@pytest.mark.parametrize("end", [None, m.Standby, m.Superseded])
def test_a_delete_that_the_reign_does_not_survive_is_told_so(
    end: type[m.Standby | m.Superseded] | None,
) -> None:
    cluster = Cluster(3)
    for name in ("w1", "w2"):
        cluster.world.freeze(name)
    cluster.delete("m-rep1")
    if end is None:
        cluster.world.give("a", on.Stop("asked"))
    else:
        message = end(CLUSTER, "a", "b", cluster.first.epoch + 1)
        cluster.world.give("a", on.Received(cluster.first.reign.link, message))
    assert [(c.done, c.how) for c in cluster.world.confirmed] == [
        (False, "the supervisor leads no more")
    ]


def test_an_unknown_replica_cannot_be_deleted_and_a_deleted_one_can_again() -> None:
    cluster = Cluster(2)
    assert "no replica" in cluster.delete("x-rep0")
    assert cluster.delete("m-rep0") == ""
    cluster.world.run(2.0)
    assert cluster.delete("m-rep0") == ""
    cluster.world.run(1.0)
    assert len(cluster.world.confirmed) == 2


def test_a_replica_that_is_served_anew_after_its_delete_is_another_one() -> None:
    cluster = Cluster(2)
    cluster.delete("m-rep0")
    cluster.world.run(2.0)
    cluster.world.give("w0", on.Declared(claim("m-rep0", created_ts=99)))
    cluster.world.run(1.0)
    assert cluster.uids(cluster.first) == ["m-rep0", "m-rep1"]


def test_V19_a_delete_covers_what_has_begun_and_was_not_told_yet() -> None:
    cluster = Cluster(3)
    for shard in (0, 1):
        one = claim("s-rep0", shard=shard, n_worker=2, created_ts=1000 + shard)
        cluster.world.give(f"w{shard}", on.Declared(one))
    cluster.world.run(1.0)
    cluster.world.freeze("w1")
    cluster.world.kill("a")
    second = cluster.world.supervisor("b")
    cluster.world.run(2.0)
    assert second.registry.replicas["s-rep0"].state is ReplicaStatus.INCOMPLETE
    cluster.world.wall = 2000
    assert cluster.delete("s-rep0", second) == ""
    cluster.world.run(1.0)
    assert [confirm.done for confirm in cluster.world.confirmed] == [True]
    cluster.world.wake("w1")
    cluster.settle(second)
    cluster.world.run(2.0)
    assert "s-rep0" not in cluster.uids(second), "its later shard has not come back"
    assert ("w1", "stop", "s-rep0") in cluster.world.orders


def test_V06_what_is_away_with_a_lost_worker_can_be_deleted() -> None:
    cluster = Cluster(3)
    cluster.world.give("w1", on.Declared(claim("x-rep0", launch=Launch(5, 1), created_ts=7)))
    for n in (1, 2):
        shard = claim("s-rep0", shard=n - 1, n_worker=2, created_ts=10 + n)
        cluster.world.give(f"w{n}", on.Declared(shard))
    cluster.world.run(1.0)
    for n in (1, 2):
        cluster.world.freeze(f"w{n}")
    cluster.world.run(20.0)
    assert cluster.uids(cluster.first) == ["m-rep0"]
    away = ["m-rep1", "s-rep0", "x-rep0"]
    assert [cluster.delete(uid) for uid in away] == ["", "", ""]
    assert list(cluster.first.registry.downs.marks) == ["m-rep2"]
    for n in (1, 2):
        cluster.world.wake(f"w{n}")
    cluster.settle(cluster.first)
    cluster.world.run(5.0)
    assert [confirm.done for confirm in cluster.world.confirmed] == [True, True, True]
    assert cluster.uids(cluster.first) == ["m-rep0", "m-rep2"]
    assert "no replica" in cluster.delete("y-rep0")


def test_V06_one_worker_is_not_all_while_the_one_that_held_it_is_lost() -> None:
    cluster = Cluster(2)
    cluster.world.freeze("w1")
    cluster.world.run(20.0)
    assert list(cluster.first.registry.workers) == ["w0"]
    assert cluster.delete("m-rep1") == ""
    cluster.world.run(3.0)
    assert cluster.world.confirmed == [], "w1 would bring it back to one that w0 has not told"
    cluster.world.wake("w1")
    cluster.world.run(3.0)
    assert [confirm.how for confirm in cluster.world.confirmed] == ["workers keep it"]
    cluster.world.give("w1", on.Stop("done"))
    cluster.world.run(1.0)
    assert cluster.delete("m-rep0") == ""
    cluster.world.run(1.0)
    assert len(cluster.world.confirmed) == 2, "w0 is all that there is"


def test_V06_the_only_worker_is_all_once_it_is_back() -> None:
    cluster = Cluster(1)
    cluster.world.freeze("w0")
    cluster.world.run(20.0)
    assert cluster.delete("m-rep0") == ""
    cluster.world.run(3.0)
    assert cluster.world.confirmed == []
    cluster.world.wake("w0")
    cluster.world.run(3.0)
    assert [confirm.done for confirm in cluster.world.confirmed] == [True]


def test_V03_a_copy_that_is_away_is_deleted_with_the_one_that_is_here() -> None:
    cluster = Cluster(3)
    cluster.world.give("w0", on.Declared(claim("x-rep0", created_ts=10)))
    cluster.world.give("w1", on.Declared(claim("x-rep0", created_ts=20)))
    cluster.world.run(1.0)
    cluster.world.freeze("w1")
    cluster.world.run(20.0)
    cluster.delete("x-rep0")
    cluster.world.run(1.0)
    cluster.world.wake("w1")
    cluster.settle(cluster.first)
    cluster.world.run(2.0)
    assert "x-rep0" not in cluster.uids(cluster.first)


def test_a_delete_that_is_asked_for_again_is_confirmed_by_the_disk_alone() -> None:
    cluster = Cluster(1, journal=True)
    cluster.delete("m-rep0")
    cluster.world.run(1.0)
    cluster.world.give("w0", on.Stop("done"))
    cluster.world.run(1.0)
    assert cluster.delete("m-rep0") == ""
    cluster.world.run(1.0)
    assert [confirm.how for confirm in cluster.world.confirmed][1:] == ["it is on disk"]


def test_L13_what_is_served_after_a_delete_is_another_one_though_our_clock_is_behind() -> None:
    cluster = Cluster(2)
    cluster.world.wall = 5000
    cluster.delete("m-rep0")
    cluster.world.run(2.0)
    loading = claim("m-rep0", created_ts=99, state=ReplicaState.LOADING)
    cluster.world.give("w0", on.Declared(loading))
    cluster.world.run(1.0)
    cluster.world.give("w0", on.Declared(claim("m-rep0", created_ts=99)))
    cluster.world.give("w0", on.Declared(claim("m-rep1", launch=Launch(5, 1), created_ts=99)))
    cluster.world.run(1.0)
    (replica,) = [r for r in cluster.first.registry.replicas.values() if r.uid == "m-rep0"]
    assert (replica.state, replica.created_ts) == (ReplicaStatus.READY, 5001)
    held = cluster.workers[0].inventory.get(m.Key("m-rep1", 0))
    assert held is not None and held.created_ts == 99, "a launch is told apart without"


# --- orders ---


def test_R8_an_order_is_given_anew_under_the_new_session() -> None:
    cluster = Cluster(2)
    cluster.world.obey = False
    cluster.delete("m-rep0")
    cluster.world.run(1.0)
    assert cluster.world.orders == [("w0", "stop", "m-rep0")]
    cluster.world.run(6.0)
    assert len(cluster.world.orders) == 2, "again, until it is obeyed"
    cluster.world.obey = True
    cluster.again()
    cluster.world.run(6.0)
    assert len(cluster.workers[0].inventory) == 0


def test_R8_an_order_does_not_wait_for_its_repetition_after_a_new_registration() -> None:
    desk = Desk(expect=1).hear("p", register("w", claim()))
    desk.hear("s", m.Remove("prod", 4, "m-rep0", False))
    (first,) = desk.to("p", m.Order)
    desk.hear("p", register("w", claim(), attempt=2))
    (again,) = desk.to("p", m.Order)
    assert first.session < again.session == desk.session("w")


def test_an_order_of_another_session_or_epoch_is_not_obeyed() -> None:
    cluster = Cluster(1)
    worker = cluster.workers[0]
    session = worker.session
    assert session is not None
    number, boot, epoch = worker.link.number, worker.link.boot, worker.link.epoch
    good = m.Order(session, epoch, boot, 1, "stop", "m-rep0", 0, NO_LAUNCH, 1, "")
    cluster.world.obey = False
    cluster.world.give("w0", on.Received(number, good))
    assert cluster.world.orders == [("w0", "stop", "m-rep0")]
    for order in (
        msgspec.structs.replace(good, id=2, session=session._replace(n=99)),
        msgspec.structs.replace(good, id=3, epoch=epoch - 1),
        msgspec.structs.replace(good, id=4, epoch=epoch + 1),
    ):
        cluster.world.give("w0", on.Received(number, order))
    assert len(cluster.world.orders) == 1


def test_an_order_does_not_meet_what_was_served_anew_meanwhile() -> None:
    cluster = Cluster(2)
    late: list[m.Message] = []

    def lose(to: str, message: m.Message) -> bool:
        late.extend([message] if isinstance(message, m.Order) else [])
        return isinstance(message, m.Order)

    cluster.world.lose = lose
    cluster.delete("m-rep0")
    cluster.world.run(0.1)
    cluster.world.lose = lambda to, message: False
    cluster.world.give("w0", on.Declared(claim("m-rep0", created_ts=99)))
    cluster.world.give("w0", on.Received(cluster.workers[0].link.number, late[0]))
    cluster.world.run(6.0)
    assert cluster.world.orders == []
    assert cluster.uids(cluster.first) == ["m-rep0", "m-rep1"]


@pytest.mark.parametrize("policy", [Losers.DRAIN, Losers.STOP])
def test_R2_a_higher_launch_that_is_not_ready_has_not_lost(policy: Losers) -> None:
    cluster = Cluster(2, intent=Intent(losers=policy))
    old, new = claim("x-rep0", launch=Launch(5, 1)), claim("x-rep0", launch=Launch(5, 2))
    loading = ReplicaState.LOADING
    cluster.world.give("w0", on.Declared(old))
    cluster.world.give("w1", on.Declared(msgspec.structs.replace(new, state=loading)))
    cluster.world.run(6.0)
    assert cluster.world.orders == [], "it is still coming"
    cluster.world.give("w1", on.StateChanged("x-rep0", 0, ReplicaState.READY))
    cluster.world.run(1.0)
    assert cluster.world.orders == [("w0", policy.value, "x-rep0")]


def test_R2_what_is_drained_already_is_not_told_again() -> None:
    cluster = Cluster(2, intent=Intent(losers=Losers.DRAIN))
    stopping = ReplicaState.STOPPING
    cluster.world.give("w0", on.Declared(claim("x-rep0", launch=Launch(5, 1), state=stopping)))
    cluster.world.give("w1", on.Declared(claim("x-rep0", launch=Launch(5, 2))))
    cluster.world.run(12.0)
    assert cluster.world.orders == []


def test_an_answer_counts_for_the_order_that_it_names() -> None:
    cluster = Cluster(1)
    cluster.world.obey = False
    for n in (1, 2):
        cluster.world.give("w0", on.Declared(claim(f"m-rep{n}")))
    cluster.world.run(0.5)
    for n in (1, 2):
        cluster.delete(f"m-rep{n}")
    cluster.world.run(0.5)
    assert len(cluster.world.orders) == 2
    orders, session = cluster.first.steward.orders, cluster.workers[0].session
    assert session is not None
    about = ("w0", m.Key("m-rep2", 0))
    for _ in range(2):  # a second answer to the same order changes nothing
        assert orders.done(session, m.OrderDone(session, 2, False, "busy")) == about
    assert orders.done(session, m.OrderDone(session, 3, True)) is None
    notes = [str(note) for note in cluster.first.evidence.of("m-rep2")]
    assert "worker w0 cannot obey: it is busy" in notes


def test_an_answer_to_an_older_order_changes_nothing() -> None:
    cluster = Cluster(1)
    cluster.world.give("w0", on.Obeyed(17, True))
    cluster.world.run(1.0)
    assert cluster.uids(cluster.first) == ["m-rep0"]


@pytest.mark.parametrize("policy", [Losers.DRAIN, Losers.STOP])
def test_R2_a_loser_is_drained_or_stopped_once_the_supervisor_serves(policy: Losers) -> None:
    cluster = Cluster(2, intent=Intent(losers=policy))
    cluster.world.give("w0", on.Declared(claim("x-rep0", launch=Launch(5, 1))))
    cluster.world.give("w1", on.Declared(claim("x-rep0", launch=Launch(5, 2))))
    cluster.world.run(1.0)
    assert cluster.world.orders == [("w0", policy.value, "x-rep0")]


def test_R2_a_loser_is_kept_by_default() -> None:
    cluster = Cluster(2)
    cluster.world.give("w0", on.Declared(claim("x-rep0", launch=Launch(5, 1))))
    cluster.world.give("w1", on.Declared(claim("x-rep0", launch=Launch(5, 2))))
    cluster.world.run(10.0)
    assert cluster.world.orders == []


def test_somebody_may_ask_to_stop_a_replica() -> None:
    cluster = Cluster(2)
    assert cluster.first.steward.stop("m-rep0") == ""
    assert "no worker holds" in cluster.first.steward.stop("x-rep0")
    cluster.world.run(2.0)
    assert cluster.uids(cluster.first) == ["m-rep1"]
    cluster.world.give("w0", on.Declared(claim("m-rep0", created_ts=99)))
    cluster.world.run(2.0)
    assert cluster.uids(cluster.first) == ["m-rep0", "m-rep1"], "it may be served again"


# --- placements ---


def test_V08_a_launching_placement_is_shown_and_survives_a_registration() -> None:
    cluster = Cluster(2)
    placed = cluster.place("x", 2)
    assert [(p.uid, p.launch) for p in placed] == [
        ("x-rep0", Launch(cluster.first.epoch, 1)),
        ("x-rep1", Launch(cluster.first.epoch, 2)),
    ]
    cluster.world.give("w0", on.Declared(claim("x-rep0", launch=placed[0].launch)))
    cluster.world.run(1.0)
    model = cluster.first.view(cluster.world.now).models["x"]
    assert [r.state for r in model.replicas] == [ReplicaStatus.READY, ReplicaStatus.LAUNCHING]
    assert (model.desired, model.ready) == (2, 1), "V15"
    assert cluster.first.registry.replicas == cluster.first.registry.recomputed()


def test_V15_what_is_desired_counts_what_was_placed_whatever_is_there_already() -> None:
    cluster = Cluster(2, journal=True)
    (placed,) = cluster.place("x")
    cluster.world.give("w0", on.Declared(claim("x-rep0", launch=placed.launch)))
    cluster.world.run(1.0)
    cluster.world.recalls = False
    second = cluster.again(expect=2)
    assert second.registry.model("x").desired is None
    second.steward.recalled(cluster.world.disk, [])
    assert second.registry.model("x").desired == 1
    second.registry.bury([Tombstone("x-rep0", NO_LAUNCH, 1)])
    assert second.registry.model("x").desired == 1
    cluster.delete("x-rep0", second)
    assert "x" not in second.view(cluster.world.now).models


def test_a_placement_takes_indexes_that_are_free() -> None:
    cluster = Cluster(2)
    assert [p.uid for p in cluster.place("m", 2)] == ["m-rep2", "m-rep3"]
    assert [p.uid for p in cluster.place("m")] == ["m-rep4"]


def test_a_placement_is_journaled_and_ends_with_its_delete() -> None:
    cluster = Cluster(2, journal=True)
    (placed,) = cluster.place("x")
    cluster.world.run(0.1)
    assert cluster.world.disk.placements == (placed,)
    second = cluster.again()
    assert second.view(cluster.world.now).models["x"].replicas[0].state == "LAUNCHING"
    cluster.delete("x-rep0", second)
    cluster.world.run(1.0)
    assert "x" not in second.view(cluster.world.now).models
    assert not cluster.world.disk.placements


def test_who_places_is_told_when_it_is_on_disk() -> None:
    cluster = Cluster(1, journal=True)
    cluster.place("x")
    cluster.place("y", ticket=8)
    cluster.world.run(0.1)
    assert [(c.ticket, c.done, c.how) for c in cluster.world.confirmed] == [
        (8, True, "it is on disk")
    ]
    out: list[Effect] = []
    cluster.first.steward.place("z", 2, 1, out, ticket=9)
    (asked,) = [effect for effect in out if isinstance(effect, Remember)]
    (told,) = cluster.first.steward.remembered(asked.ticket, False)
    assert told == Confirm(9, False, "it cannot be written")
    assert cluster.first.steward.remembered(asked.ticket, True) == []
    cluster.first.steward.place("z", 1, 1, [], ticket=10)
    out.clear()
    cluster.first.steward.end(out)
    assert Confirm(10, False, "the supervisor leads no more") in out


def test_without_a_journal_nobody_waits_for_it() -> None:
    cluster = Cluster(1)
    cluster.place("x", ticket=8)
    cluster.world.run(1.0)
    assert cluster.world.confirmed == []


@pytest.mark.parametrize(
    ("model", "replicas", "n_worker"),
    [
        ("", 1, 1),
        ("a b", 1, 1),
        (None, 1, 1),
        ("x", 0, 1),
        ("x", "2", 1),
        ("x", 2.5, 1),
        ("x", True, 1),
        ("x", 1, 0),
        ("x", 1, 2.0),
        ("x" * 196, 1, 1),  # its uids would be longer than any name may be
        ("x" * 195, 11, 1),
    ],
)
def test_what_cannot_be_placed_is_refused(model: Any, replicas: Any, n_worker: Any) -> None:
    cluster = Cluster(1)
    with pytest.raises(InvalidReplica):
        cluster.place(model, replicas, n_worker)
    assert not cluster.first.registry.intent.placements
    assert cluster.place("x" * 195, 10)


@pytest.mark.parametrize("policy", list(Orphans))
def test_R6_a_replica_that_nobody_placed(policy: Orphans) -> None:
    cluster = Cluster(1, intent=Intent(orphans=policy))
    assert cluster.first.view(cluster.world.now).models["m"].ready == 1, "nothing was placed yet"
    cluster.place("x")
    cluster.world.run(2.0)
    replicas = {r.uid: r for r in cluster.first.registry.replicas.values()}
    match policy:
        case Orphans.ADOPT:
            assert replicas["m-rep0"].routes
        case Orphans.QUARANTINE:
            assert replicas["m-rep0"].state is ReplicaStatus.HELD
        case Orphans.STOP:
            assert "m-rep0" not in replicas


def test_R6_without_the_last_placement_there_are_no_orphans() -> None:
    cluster = Cluster(1, intent=Intent(orphans=Orphans.QUARANTINE))
    cluster.place("x")
    assert not cluster.first.registry.replicas["m-rep0"].routes
    cluster.delete("x-rep0")
    assert cluster.first.registry.replicas["m-rep0"].routes
    assert cluster.first.registry.replicas == cluster.first.registry.recomputed()


# --- tombstones ---


def test_a_tombstone_covers_what_is_not_newer() -> None:
    stone = Tombstone("m-rep0", Launch(3, 1), 500)
    assert stone.covers(Launch(3, 1), 500)
    assert stone.covers(Launch(2, 9), 900)
    assert stone.covers(Launch(3, 1), 501), "one launch is one replica, whenever it was loaded"
    assert not stone.covers(Launch(3, 2), 1)
    unplaced = Tombstone("m-rep0", NO_LAUNCH, 500)
    assert unplaced.covers(NO_LAUNCH, 500)
    assert not unplaced.covers(NO_LAUNCH, 501), "served anew"


def test_tombstones_are_bounded_and_the_oldest_go_first() -> None:
    intent = Intent()
    intent.bury(Tombstone(f"m-rep{n}", NO_LAUNCH, 1) for n in range(100_002))
    assert len(intent.tombstones) == 100_000
    assert not intent.deleted("m-rep1", NO_LAUNCH, 1)
    assert intent.deleted("m-rep2", NO_LAUNCH, 1)


def test_what_was_deleted_is_not_placed_by_older_memory() -> None:
    intent = Intent()
    intent.bury([Tombstone("x-rep0", Launch(3, 1), 0)])
    launches = {"x-rep0": Launch(3, 1), "x-rep1": Launch(3, 2)}
    intent.place(Placement(uid, "x", launch, 1) for uid, launch in launches.items())
    assert list(intent.placements) == ["x-rep1"]
    intent.place([Placement("x-rep1", "x", Launch(2, 9), 1)])
    assert intent.placements["x-rep1"].launch == Launch(3, 2), "nor is it placed back"


# --- from afar ---


def answer(desk: Desk, peer: str = "s") -> dict[str, object]:
    (result,) = desk.to(peer, m.Result)
    body: dict[str, object] = json.loads(result.body) if result.body else {"error": result.error}
    return body


def test_a_client_hears_that_its_delete_is_not_confirmed_before_it_turns_away() -> None:
    desk = Desk().hear("p", register("w", claim())).routes("s")
    desk.hear("s", m.Remove("prod", 4, "m-rep0", True)).give(on.Stop("done"))
    last = [e.message for e in desk.out if isinstance(e, Reply) and e.peer == "s"]
    assert [type(message) for message in last] == [m.Result, m.Restarting]
    (result,) = desk.to("s", m.Result)
    assert (result.error, result.code) == ("the supervisor leads no more", "unconfirmed")


def kept(desk: Desk, peer: str) -> m.Kept:
    """A worker's answer to what it was just handed."""
    witness = desk.to(peer, m.Witness)[-1]
    return m.Kept(witness.session, witness.version)


def deleting(*uids: str) -> Desk:
    """Three workers, p, q and r, which were not asked to delete anything yet."""
    desk = Desk(expect=3).hear("p", register("w", *map(claim, uids)))
    return desk.hear("q", register("v")).hear("r", register("u"))


def test_V19_a_new_process_of_a_worker_keeps_nothing_that_the_old_one_kept() -> None:
    desk = deleting("m-rep0").hear("s", m.Remove("prod", 4, "m-rep0", True))
    from_v, from_u = kept(desk, "q"), kept(desk, "r")
    desk.hear("q", from_v).hear("q2", register("v", incarnation=6, pid=8))
    again = kept(desk, "q2")
    assert desk.hear("r", from_u).to("s", m.Result) == [], "only u keeps it now"
    assert answer(desk.hear("q2", again)) == {"how": "workers keep it"}


def test_V19_who_keeps_one_tombstone_does_not_keep_those_handed_out_before() -> None:
    desk = deleting("m-rep0", "m-rep1").hear("s", m.Remove("prod", 4, "m-rep0", True))
    desk.hear("t", m.Remove("prod", 5, "m-rep1", True))
    from_v, from_u = kept(desk, "q"), kept(desk, "r")
    desk.hear("q", from_v).hear("r", from_u)
    assert answer(desk, "t") == {"how": "workers keep it"}
    assert desk.to("s", m.Result) == []


def test_R5_an_older_tombstone_is_no_news() -> None:
    intent = Intent()
    new, old = (Tombstone("m-rep0", Launch(1, n), n) for n in (2, 1))
    assert (intent.bury([new]), intent.bury([old])) == ([new], [])
    assert intent.deleted("m-rep0", Launch(1, 2), 0)


def test_a_delete_from_afar_is_answered_once_it_is_confirmed() -> None:
    desk = Desk().hear("p", register("w", claim())).hear("q", register("v"))
    desk.hear("s", m.Remove("prod", 4, "m-rep0", True))
    assert desk.to("s", m.Result) == []
    (witness,) = desk.to("p", m.Witness)
    desk.hear("p", m.Kept(desk.session("w"), witness.version))
    assert desk.to("s", m.Result) == []
    desk.hear("q", m.Kept(desk.session("v"), witness.version))
    assert answer(desk) == {"how": "workers keep it"}
    desk.hear("p", m.Kept(Session(1, 9), witness.version))
    assert desk.to("p", m.Unknown), "a session that there is not"


def test_a_delete_from_afar_that_the_reign_does_not_survive_is_told_so() -> None:
    desk = Desk().hear("p", register("w", claim()))
    desk.hear("s", m.Remove("prod", 4, "m-rep0", True))
    desk.give(on.Stop("asked"))
    assert answer(desk) == {"error": "the supervisor leads no more"}


@pytest.mark.parametrize(
    ("delete", "error"),
    [(True, "no replica 'x-rep0' is known"), (False, "no worker holds 'x-rep0'")],
)
def test_what_is_not_there_cannot_be_removed_from_afar(delete: bool, error: str) -> None:
    desk = Desk().hear("s", m.Remove("prod", 4, "x-rep0", delete))
    assert answer(desk) == {"error": f"{error} yet: recovering, 0 workers are back"}, "V12"
    desk.pass_(10.5).hear("s", m.Remove("prod", 4, "x-rep0", delete))
    assert answer(desk) == {"error": error}


def test_a_stop_from_afar_is_answered_at_once_and_ordered_when_it_serves() -> None:
    desk = Desk().hear("p", register("w", claim()))
    desk.hear("s", m.Remove("prod", 4, "m-rep0", False))
    assert answer(desk) == {"uid": "m-rep0"}
    assert desk.to("p", m.Order) == [], "R6: not while it recovers"
    desk.pass_(10.5, "w")
    (order, *_) = desk.to("p", m.Order)
    assert (order.action, order.uid, order.session) == ("stop", "m-rep0", desk.session("w"))
